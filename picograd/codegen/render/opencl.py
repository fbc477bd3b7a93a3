"""render: Program -> OpenCL C, one instruction a line, for a device whose groups have 32 lanes.

A block of CUDA is a work-group here, a warp a sub-group of 32, shared memory `__local`. OpenCL C is
C99 without templates: functions that CUDA C has as templates are written for each type that a
program needs (`instances`), and only if it calls them. 16-bit floats are structs of their raw bits,
bools in memory are bytes, and vectors are structs of lanes, which compilers load and store whole.

The copies that CUDA makes beside its arithmetic (`cp.async`) are plain copies here, done at once.
"""

import re
from functools import cache

from picograd.codegen.program import Instr, Program
from picograd.codegen.render.c import FUNCTIONS, SPELLING, Dialect, type_name
from picograd.codegen.render.c_program import Statement, Value, Writer
from picograd.dtype import ALL, DType

TITLE = "OpenCL C"
LANES = 32  # of a sub-group
FLOATS, HALVES = ("float", "double"), ("half_bits", "bfloat16_bits")
CONVERSIONS = {"saturate_": "cast", "bit_cast_": "bitcast"}  # functions of these ops
CALLED = {"atomic_add": "atomic_plus"}  # what instructions call whose own name is another
TYPES = {
    "bool": "boolean", "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "int8": "char", "int16": "short", "int32": "int", "int64": "long", "float8_e4m3fn": "uchar",
    "float8_e5m2": "uchar", "float16": "half_bits", "bfloat16": "bfloat16_bits", "float32": "float",
    "float64": "double",
}  # fmt: skip
EXACT = {
    "quick_exp2": "exp2({0})", "whole_exp2": "exp2({0})", "quick_divide": "{0} / {1}",
    "quick_reciprocal": "1 / {0}", "popcount": "popcount({0})",
}  # fmt: skip
BITS = {name: dtype.bits for dtype in ALL for name in (TYPES[dtype.name],)}
OPENCL_C = Dialect(
    "{}_{}", "{}_{}", "({}){{{}}}", "{}.lane[{}]", "l", "as_float", "as_double", TYPES,
    {**SPELLING, **EXACT},
)  # fmt: skip

PROLOGUE = """\
#pragma OPENCL FP_CONTRACT OFF
#define DEVICE static inline __attribute__((overloadable))
typedef uchar boolean;
typedef struct { ushort bits; } half_bits;
typedef struct { ushort bits; } bfloat16_bits;
"""
EXTENSIONS = {
    "double": "cl_khr_fp64",
    "sub_group_barrier": "cl_khr_subgroups",
    "sub_group_shuffle_xor": "cl_khr_subgroup_shuffle",
    "sub_group_ballot": "cl_khr_subgroup_ballot",
    "atom_cmpxchg": "cl_khr_int64_base_atomics",
}
# By the name that is called.
HELPERS = {
    "to_float": """\
DEVICE float to_float(half_bits a) { return vload_half(0, (const half*)&a.bits); }
DEVICE float to_float(bfloat16_bits a) { return as_float((uint)a.bits << 16); }
""",
    "round_to_half_bits": """\
DEVICE half_bits round_to_half_bits(float a) {
  half_bits result;
  vstore_half_rte(a, 0, (half*)&result.bits);
  return result;
}
""",
    "round_to_bfloat16_bits": """\
DEVICE bfloat16_bits round_to_bfloat16_bits(float a) {
  const uint bits = as_uint(a);
  bfloat16_bits result = {(ushort)(a != a ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  return result;
}
""",
    "match_any": """\
DEVICE uint match_any(uint a, int bits) {
  uint same = ~0u;
  for (int bit = 0; bit < bits; bit++) {
    const int own = (int)(a << (31 - bit)) >> 31;  // all ones if it is set
    same &= ~(sub_group_ballot(own < 0).x ^ own);
  }
  return same;
}
""",
    "copy_async": """\
DEVICE void copy_chunk(__local uint4* to, const __global uint4* from, bool is_inside) {
  *to = is_inside ? *from : (uint4)(0);
}
#define copy_async(to, at, from, index, is_inside) \\
  copy_chunk((__local uint4*)((to) + (at)), (const __global uint4*)((from) + (index)), is_inside)
""",
}
SATURATE = "DEVICE T saturate_T(F a) { return a != a ? 0 : convert_T_sat(a); }\n"
SHUFFLE = "DEVICE T shuffle_xor(T a, int mask) { return sub_group_shuffle_xor(a, mask); }\n"
SHUFFLE_NARROW = """\
DEVICE T shuffle_xor(T a, int mask) { return (T)sub_group_shuffle_xor((int)a, mask); }
"""
SHUFFLE_BITS = """\
DEVICE T shuffle_xor(T a, int mask) {
  a.bits = (ushort)sub_group_shuffle_xor((int)a.bits, mask);
  return a;
}
"""
BIT_CAST = """\
DEVICE T bit_cast_T(F a) {
  union { F from; T to; } both;
  both.from = a;
  return both.to;
}
"""
# What a work-item wrote before is seen by who reads the sum, and what others wrote by this one.
ATOMIC = """\
DEVICE T atomic_plus(__global T* place, T value) {
  mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  const T old = atomic_add((volatile __global T*)place, value);
  mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  return old;
}
"""
ATOMIC_FLOAT = """\
DEVICE T atomic_plus(__global T* place, T value) {
  volatile __global B* cell = (volatile __global B*)place;
  B seen = *cell, wanted;
  do {
    wanted = seen;
    seen = EXCHANGE(cell, wanted, as_B(as_T(wanted) + value));
  } while (seen != wanted);
  return as_T(seen);
}
"""
ATOMICS: dict[str, tuple[str, dict[str, str]]] = {
    "int": (ATOMIC, {}),
    "uint": (ATOMIC, {}),
    "float": (ATOMIC_FLOAT, {"B": "uint", "EXCHANGE": "atomic_cmpxchg"}),
    "double": (ATOMIC_FLOAT, {"B": "ulong", "EXCHANGE": "atom_cmpxchg"}),
}


def texts_of_functions() -> dict[str, list[str]]:
    """List the texts of CUDA C's functions, by name: templates, and those of some types."""
    found: dict[str, list[str]] = {}
    for text in re.split(r"(?m)^(?=template|DEVICE)", FUNCTIONS)[1:]:
        if text.startswith("template <>"):
            text = text.removeprefix("template <> ").replace("bool", "boolean")
        found.setdefault(re.findall(r"DEVICE .+? (\w+)\(", text)[0], []).append(text)
    return found


TEXTS = texts_of_functions()


def render(program: Program) -> str:
    """Write a program as OpenCL C: prologue, helper functions it calls, one kernel."""
    body = OpenclWriter(program).body()
    if program.shared_bytes:
        room = f"__local uchar shared[{program.shared_bytes}] __attribute__((aligned(128)));"
        body = f"  {room}\n{body}"
    called = helpers(program, body)
    head = signature(program, "sub_group_" in called + body)
    text = f"{called}{head} {{\n{body}\n}}\n"
    enabled = [
        f"#pragma OPENCL EXTENSION {extension} : enable\n"
        for word, extension in EXTENSIONS.items()
        if re.search(rf"\b{word}\b", text)
    ]
    return "".join(enabled) + text


def helpers(program: Program, body: str) -> str:
    """Write the prologue, the types of vectors, and the functions that a body calls."""
    dtypes = {(i.dtype, i.lanes) for i in program.instructions if i.dtype is not None}
    vectors = {vector_text(dtype, lanes) for dtype, lanes in dtypes if lanes > 1}
    wanted: dict[str, str] = {}
    add_called(body, types_called(program), wanted)
    return PROLOGUE + "".join(sorted(vectors)) + "".join(wanted.values())


def types_called(program: Program) -> dict[str, set[str]]:
    """Find the types of what functions are called with, by a program or by one another."""
    found: dict[str, set[str]] = {}
    for instr in program.instructions:
        dtypes = [instr.dtype, *(program.instructions[arg].dtype for arg in instr.args)]
        names = {type_name(dtype, 1, OPENCL_C) for dtype in dtypes if dtype is not None}
        names |= {"float"} if names & set(HALVES) else set()
        op = f"rare_{instr.arg}" if instr.op == "rare" else instr.op
        text = OPENCL_C.spelling.get(op, f"{CALLED.get(op, op)}(")
        for function in re.findall(r"(\w+)\(", text):
            found.setdefault(function, set()).update(names)
    for name in [name for name in found if name in TEXTS]:
        for function in re.findall(r"(\w+)\(", "".join(TEXTS[name])):  # of a function in another
            found.setdefault(function, set()).update(found[name])
    return found


def add_called(text: str, types: dict[str, set[str]], wanted: dict[str, str]) -> None:
    """Add the functions that a text calls, each after those that it calls itself."""
    for name in sorted(set(re.findall(r"\b(\w+)\(", text)) - set(wanted)):
        op = next((op for start, op in CONVERSIONS.items() if name.startswith(start)), name)
        names = tuple(sorted(types.get(op, ())))
        inside = HELPERS.get(name) or instances(name, names)
        if inside:
            add_called(re.sub(rf"\b{name}\(", "", inside), types, wanted)
            wanted[name] = inside


def vector_text(dtype: DType, lanes: int) -> str:
    """Write the type of a vector: a struct of its lanes, aligned as one element."""
    name, whole = (type_name(dtype, n, OPENCL_C) for n in (1, lanes))
    aligned = f"__attribute__((aligned({dtype.itemsize * lanes})))"
    return f"typedef struct {aligned} {{ {name} lane[{lanes}]; }} {whole};\n"


@cache
def instances(name: str, types: tuple[str, ...]) -> str:
    """Write the functions of one name for the types of these names; "" if there are none."""
    if name.startswith("saturate_"):
        to = name.removeprefix("saturate_")
        return "".join(for_type(SATURATE, T=to, F=kind) for kind in types if kind in FLOATS)
    if name.startswith("bit_cast_"):
        to = name.removeprefix("bit_cast_")
        return "".join(for_type(BIT_CAST, T=to, F=x) for x in types if BITS[x] == BITS[to])
    if name == "shuffle_xor":
        return "".join(for_type(shuffle_text(each), T=each) for each in types)
    if name == "atomic_plus":
        chosen = [(each, *ATOMICS[each]) for each in types if each in ATOMICS]
        return "".join(for_type(text, T=each, **words) for each, text, words in chosen)
    return "".join(in_c(name, text, types) for text in TEXTS.get(name, ()))


def in_c(name: str, text: str, types: tuple[str, ...]) -> str:
    """Write a function of CUDA C in C: a template once for each type that has no other."""
    text = re.sub(r"\b(fabs|pow|fma)f\(", r"\1(", text.replace("long long", "long"))
    if name.startswith("large_"):
        return f"#define {name} {name[6:]}\n"
    if not text.startswith("template"):
        return text if set(re.findall(r"\w+", text)) & set(types) else ""
    own = [re.findall(r"DEVICE (\w+)", each)[0] for each in TEXTS[name]]
    kinds = [each for each in types if each not in own and each not in HALVES]
    if name.startswith("float_"):
        kinds = [each for each in kinds if each in FLOATS]
    text = re.sub(r"\bT\((-?\d+)\)", r"(T)\1", text.removeprefix("template <typename T> "))
    text = re.sub(r"\bT\(", "(T)(", text)
    return "".join(for_type(text, T=each) for each in kinds)


def for_type(text: str, **types: str) -> str:
    """Write a text with types, and other words, for the letters that stand for them."""
    for letter, name in types.items():
        text = re.sub(rf"(?<![a-zA-Z]){letter}(?![a-zA-Z])", name, text)
    return text


def shuffle_text(name: str) -> str:
    """Choose how values of a type are exchanged: sub-groups need not exchange narrow ones."""
    if name in HALVES:
        return SHUFFLE_BITS
    return SHUFFLE if name in (*FLOATS, "int", "uint", "long", "ulong") else SHUFFLE_NARROW


def signature(program: Program, has_lanes: bool) -> str:
    """Write the entry's head: slots, then workspaces, then scalars by value."""
    parameters = []
    for number, (dtype, role) in enumerate(program.parameters):
        const = "const " if role == "in" else ""
        parameters.append(f"{const}__global {type_name(dtype, 1, OPENCL_C)}* restrict s{number}")
    parameters += [f"__global uchar* restrict w{n}" for n in range(len(program.workspaces))]
    scalars = enumerate(program.scalars)
    parameters += [f"{type_name(dtype, 1, OPENCL_C)} c{n}" for n, dtype in scalars]
    bounds = f"__attribute__((reqd_work_group_size({program.threads}, 1, 1)))"
    if has_lanes:
        bounds += f" __attribute__((intel_reqd_sub_group_size({LANES})))"
    return f"__kernel {bounds} void {program.name}({', '.join(parameters)})"


ALL_MEMORY = "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"


def copy_lines(name: str, args: list[str], instr: Instr) -> list[str]:
    """Copy at once; nothing is left to be waited for but by the barrier that follows."""
    is_copy = instr.arg.function == "copy_async"
    return [f"copy_async({', '.join(args)});"] if is_copy else []


STATEMENTS: dict[str, Statement] = {
    "barrier": lambda name, args, instr: [f"barrier({ALL_MEMORY});"],
    "warp_barrier": lambda name, args, instr: [f"sub_group_barrier({ALL_MEMORY});"],
    "atomic_max": lambda name, args, instr: [f"atomic_max({args[0]} + {args[1]}, {args[2]});"],
    "count": lambda name, args, instr: [f"atomic_add({args[0]} + {args[1]}, 1);"],
    "mma": copy_lines,
}
VALUES: dict[str, Value] = {
    "task": lambda args, instr: "get_group_id(0)",
    "thread": lambda args, instr: "get_local_id(0)",
    "shuffle_xor": lambda args, instr: f"shuffle_xor({args[0]}, {instr.arg})",
    "match_any": lambda args, instr: f"match_any({args[0]}, {instr.arg})",
    "atomic_add": lambda args, instr: f"atomic_plus({args[0]} + {args[1]}, {args[2]})",
}


class OpenclWriter(Writer):
    """Writes OpenCL C: pointers say which memory they point to."""

    dialect = OPENCL_C
    statements = STATEMENTS
    values = VALUES

    def space(self, number: int) -> str:
        """Begin the type of a pointer."""
        return "__local " if self.program.instructions[number].op == "shared" else "__global "

    def zero(self, typed: str) -> str:
        """Write a value of a type that is zero."""
        return f"({typed}){{0}}"

    def pointer(self, name: str, instr: Instr, place: str) -> str:
        """Name a place in memory as elements of the instruction's dtype."""
        typed = f"{'__local' if instr.op == 'shared' else '__global'} {self.type_of(instr)}*"
        return f"{typed} const {name} = ({typed})({place.replace('_memory()', '')});"

    def chosen_type(self, instr: Instr) -> str:
        """Name the type of what `choose` chooses."""
        typed = super().chosen_type(instr)
        return typed if instr.arg == "scalar" else f"__global {typed.split('*')[0]}*"
