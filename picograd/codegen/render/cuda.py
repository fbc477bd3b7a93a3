"""render: Program -> header-free CUDA C for NVRTC, one instruction a line.

16-bit floats are structs of their raw bits; the conversions are single PTX instructions, so no CUDA
header is needed. `CUDA_SHIM` is defined only when a test compiles the text as host C++.

The number of a thread is a value that NVRTC cannot look into: else it computes it, and what is made
of it, anew in many places, and ptxas of CUDA 12.8 to 13.0 may merge these wrongly: it overwrote the
number with a sum, and took the row of a thread from the sum (docs/records/0012-attention).
"""

import zlib
from collections.abc import Callable

from picograd.codegen.program import SCOPES, Instr, Program
from picograd.codegen.render import cuda_async
from picograd.codegen.render.c import FUNCTIONS, SPELLING, elementwise, is_half, literal, type_name
from picograd.dtype import DType, bfloat16, float32, int32, uint32
from picograd.errors import check

REGISTERS = 1 << 16  # of a multiprocessor (CUDA C guide)

TITLE = "CUDA C"
PROLOGUE = """\
typedef signed char int8;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;
typedef long long int64;
#ifdef CUDA_SHIM
#include "cuda_shim.h"
#else
#define DEVICE __device__ __forceinline__
struct half { unsigned short bits; };
struct bfloat16 { unsigned short bits; };
DEVICE float to_float(half a) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(a.bits));
  return result;
}
DEVICE float to_float(bfloat16 a) { return __uint_as_float((unsigned int)a.bits << 16); }
template <typename T> DEVICE T round_to(float a);
template <> DEVICE half round_to(float a) {
  half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(a));
  return result;
}
template <> DEVICE bfloat16 round_to(float a) {
  bfloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(a));
  return result;
}
template <int threads> DEVICE int thread_number() {
  int number = threadIdx.x;
  asm("" : "+r"(number));
  __builtin_assume(0 <= number && number < threads);
  return number;
}
DEVICE unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char shared[];
  return shared;
}
template <typename T> DEVICE T exchange(T a, int mask) { return __shfl_xor_sync(~0u, a, mask); }
template <int bits> DEVICE uint32 match_any(uint32 a) {
  uint32 same = ~0u;
  for (int bit = 0; bit < bits; bit++) {
    const uint32 set = __ballot_sync(~0u, a >> bit & 1);
    same &= a >> bit & 1 ? set : ~set;
  }
  return same;
}
#endif
template <typename T, int lanes> struct __align__(sizeof(T) * lanes) Vector {
  T lane[lanes];
  DEVICE T& operator[](int i) { return lane[i]; }
  DEVICE const T& operator[](int i) const { return lane[i]; }
};
template <typename To, typename From> DEVICE To bit_cast(From a) {
  union { From from; To to; } both;
  both.from = a;
  return both.to;
}
template <typename T, typename F> DEVICE T saturate(F a) {
  const T low = (T)-1 < (T)0 ? (T)(1ull << (8 * sizeof(T) - 1)) : (T)0, high = (T)~low;
  return a != a ? (T)0 : a <= (F)low ? low : a >= (F)high ? high : (T)a;
}
DEVICE float shuffle_xor(float a, int mask) { return exchange(a, mask); }
DEVICE double shuffle_xor(double a, int mask) { return exchange(a, mask); }
template <typename T> DEVICE T shuffle_xor(T a, int mask) {
  if (sizeof(T) == 8) return bit_cast<T>(exchange(bit_cast<long long>(a), mask));
  return bit_cast<T>(exchange(bit_cast<int>(a), mask));
}
"""

ROUND_LANES = """\
#ifdef CUDA_SHIM
template <typename T, int lanes> DEVICE Vector<T, lanes> round_lanes(Vector<float, lanes> a) {
  Vector<T, lanes> result;
  for (int i = 0; i < lanes; i++) result[i] = round_to<T>(a[i]);
  return result;
}
#else
template <typename T> DEVICE uint32 round_pair(float a, float b);
template <> DEVICE uint32 round_pair<half>(float a, float b) {
  uint32 result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(b), "f"(a));
  return result;
}
template <> DEVICE uint32 round_pair<bfloat16>(float a, float b) {
  uint32 result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(b), "f"(a));
  return result;
}
template <typename T, int lanes> DEVICE Vector<T, lanes> round_lanes(Vector<float, lanes> a) {
  struct __align__(2 * lanes) { uint32 pairs[lanes / 2]; } result;
  for (int i = 0; i < lanes / 2; i++) result.pairs[i] = round_pair<T>(a[2 * i], a[2 * i + 1]);
  return bit_cast<Vector<T, lanes>>(result);
}
#endif
"""
WIDEN_LANES = """\
template <int lanes> DEVICE Vector<float, lanes> widen_lanes(Vector<bfloat16, lanes> a) {
  struct __align__(2 * lanes) Pairs { uint32 pair[lanes / 2]; };
  const Pairs pairs = bit_cast<Pairs>(a);
  Vector<float, lanes> result;
  for (int i = 0; i < lanes / 2; i++) {
    result[2 * i] = __uint_as_float(pairs.pair[i] << 16);
    result[2 * i + 1] = __uint_as_float(pairs.pair[i] & 0xffff0000u);
  }
  return result;
}
"""
# One fence by one thread: `__threadfence` is sequentially consistent, and every thread would wait.
ATOMIC_ADD = """\
DEVICE int atomic_add(int* p, int a) {
#ifdef CUDA_SHIM
  return atomicAdd(p, a);
#else
  int old;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;"
    : "=r"(old) : "l"(p), "r"(a) : "memory");
  return old;
#endif
}
"""
QUICK_TEXT = """\
DEVICE float NAME(PARAMETERS) {
#ifdef CUDA_SHIM
  return EXACT;
#else
  float result;
  asm("INSTRUCTION" : "=f"(result) : OPERANDS);
  return result;
#endif
}
"""


def quick_text(name: str, names: str, exact: str, instruction: str) -> str:
    """Write a function of one instruction; on the host it is exact."""
    places = ", ".join(f"%{number}" for number in range(1 + len(names)))
    replacements = {
        "NAME": name,
        "PARAMETERS": ", ".join(f"float {each}" for each in names),
        "EXACT": exact,
        "INSTRUCTION": f"{instruction} {places};",
        "OPERANDS": ", ".join(f'"f"({each})' for each in names),
    }
    text = QUICK_TEXT
    for word, meaning in replacements.items():
        text = text.replace(word, meaning)
    return text


# What only kernels that call it define. Which of two zeros or NaNs is the extreme of a reduction
# may differ.
QUICK = {
    "quick_exp2(": quick_text("quick_exp2", "a", "exp2(a)", "ex2.approx.ftz.f32"),
    "whole_exp2(": quick_text("whole_exp2", "a", "exp2(a)", "ex2.approx.f32"),
    "quick_divide(": quick_text("quick_divide", "ab", "a / b", "div.full.f32"),
    "quick_reciprocal(": quick_text("quick_reciprocal", "a", "1 / a", "rcp.approx.ftz.f32"),
    "quick_maximum(": quick_text("quick_maximum", "ab", "maximum(a, b)", "max.NaN.f32"),
    "quick_minimum(": quick_text("quick_minimum", "ab", "minimum(a, b)", "min.NaN.f32"),
    "atomic_add(": ATOMIC_ADD,
    "round_lanes<": ROUND_LANES,
    "widen_lanes(": WIDEN_LANES,
}
PARAMETERS = {"param": "s", "scalar": "c", "tensor": "t"}  # first letters of their names


def render(program: Program) -> str:
    """Write a program as CUDA C: prologue, helper functions it calls, one kernel."""
    names = [f"v{number}" for number in range(len(program.instructions))]
    lines, depth = [], 1
    for number, instr in enumerate(program.instructions):
        depth -= instr.op == "end"
        for line in instruction(program, names, number, instr):
            is_pragma = line.startswith("#")
            lines.append(line if is_pragma else "  " * depth + line)
        depth += instr.op in SCOPES
    called = [text for instr in program.instructions for text in needed(instr)]
    body = "\n".join(lines)
    called += [text for call, text in QUICK.items() if call in body]
    helpers = "".join(once(text) for text in dict.fromkeys((PROLOGUE + FUNCTIONS, *called)))
    return f"{helpers}{signature(program)} {{\n{body}\n}}\n"


def needed(instr: Instr) -> tuple[str, ...]:
    """List the texts that define what an instruction calls."""
    return instr.arg.texts if instr.op == "mma" else cuda_async.helpers(instr)


def is_quick(instr: Instr) -> bool:
    """Tell whether one instruction finds an extreme: of a reduction in float32."""
    return instr.arg == "reduce" and instr.dtype is float32 and f"quick_{instr.op}" in SPELLING


def once(text: str) -> str:
    """Guard helper text so that several kernels can share one compilation."""
    name = f"HELPER_{zlib.crc32(text.encode()):08x}"
    return f"#ifndef {name}\n#define {name}\n{text}#endif\n"


def blocks_together(program: Program) -> int:
    """Count the blocks that a multiprocessor has registers for, by what roles take; 0: any."""
    if not program.tensors:
        return program.together
    roles = [instr.arg for instr in program.instructions if instr.op == "role"]
    taken = sum(role.threads * role.teams * role.registers for role in roles)
    return max(REGISTERS // taken, 1) if taken else 1


def signature(program: Program) -> str:
    """Write the entry's head: slots, then workspaces, then scalars by value."""
    parameters = []
    for number, (dtype, role) in enumerate(program.parameters):
        const = "const " if role == "in" else ""
        parameters.append(f"{const}{type_name(dtype)}* __restrict__ s{number}")
    parameters += [f"unsigned char* __restrict__ w{n}" for n in range(len(program.workspaces))]
    parameters += [f"{type_name(dtype)} c{n}" for n, dtype in enumerate(program.scalars)]
    count = len(program.tensors)
    parameters += [f"const __grid_constant__ TensorMap t{n}" for n in range(count)]
    # `setmaxnreg` wants the registers at entry to be bounded, by the blocks of a multiprocessor.
    together = blocks_together(program)
    limits = (program.threads, together) if together else (program.threads,)
    bounds = f"__launch_bounds__({', '.join(map(str, limits))})"
    clusters = {instr.arg for instr in program.instructions if instr.op == "cluster_barrier"}
    bounds += "".join(f" __cluster_dims__({size}, 1, 1)" for size in clusters)
    return f'extern "C" __global__ void {bounds} {program.name}({", ".join(parameters)})'


def instruction(program: Program, names: list[str], number: int, instr: Instr) -> list[str]:
    """Write one instruction; values that are only names (constants, pointers) write nothing."""
    args = [names[a] for a in instr.args]
    if instr.op in STATEMENTS:
        return STATEMENTS[instr.op](names[number], args, instr)
    inline = inline_text(instr)
    if inline is not None:
        names[number] = inline
        return []
    check(instr.dtype is not None, f"%{number} {instr.op} has no dtype", program)
    dtype = instr.dtype or int32
    if instr.op == "load":
        has_lane_mask = len(args) == 3 and program.instructions[instr.args[2]].lanes > 1
        lanes = has_lane_mask and instr.lanes
        text = load_text(instr, args, type_name(dtype, 1 if lanes else instr.lanes), lanes or 0)
    else:
        text = value_text(program, args, instr, dtype)
    return [f"const {type_name(dtype, instr.lanes)} {names[number]} = {text};"]


def inline_text(instr: Instr) -> str | None:
    """Text of a value that needs no variable of its own."""
    if instr.op in PARAMETERS:
        return f"{PARAMETERS[instr.op]}{instr.arg}"
    if instr.op == "const" and instr.dtype is not None:
        text = literal(instr.arg, instr.dtype)
        if instr.lanes > 1:
            return f"{type_name(instr.dtype, instr.lanes)}{{{', '.join([text] * instr.lanes)}}}"
        return text
    return None


def load_text(instr: Instr, args: list[str], typed: str, masked_lanes: int) -> str:
    """Read one scalar or aligned vector; a false mask reads nothing and gives zero."""
    pointer, index = args[:2]
    if masked_lanes:
        lanes = range(masked_lanes)
        each = [f"{args[2]}[{n}] ? {pointer}[{index} + {n}] : {typed}{{}}" for n in lanes]
        return f"{{{', '.join(each)}}}"
    if instr.lanes == 1:
        place = f"{pointer}[{index}]"
    else:
        place = f"*(const {typed}*)({pointer} + {index})"
    if len(args) == 2:
        return place
    if instr.dtype is not None and instr.dtype.bits == 16 and instr.lanes % 2 == 0:
        # What is chosen between stays in whole registers.
        words = type_name(uint32, instr.lanes // 2)
        place = place.replace(typed, words)
        return f"bit_cast<{typed}>({args[2]} ? {place} : {words}{{}})"
    return f"{args[2]} ? {place} : {typed}{{}}"


def value_text(program: Program, args: list[str], instr: Instr, dtype: DType) -> str:
    """Write the expression of a value that is not a load."""
    if instr.op == "task":
        return "blockIdx.x"
    if instr.op == "thread":
        return f"thread_number<{program.threads}>()"
    if instr.op in cuda_async.VALUES:
        return cuda_async.VALUES[instr.op](args, instr)
    if instr.op == "get":
        return f"{args[0]}[{args[1]}]"
    if instr.op == "splat":
        return f"{{{', '.join(args * instr.lanes)}}}"
    if instr.op == "shuffle_xor":
        return f"shuffle_xor({args[0]}, {instr.arg})"
    if instr.op == "match_any":
        return f"match_any<{instr.arg}>({args[0]})"
    if instr.op == "atomic_add":
        return f"atomic_add({args[0]} + {args[1]}, {args[2]})"
    if instr.op == "extract":
        return f"{args[0]}[{instr.arg}]"
    if instr.op == "pack":
        return f"{{{', '.join(args)}}}"
    sources = [program.instructions[a] for a in instr.args]
    dtypes = [source.dtype or int32 for source in sources]
    op = f"rare_{instr.arg}" if instr.op == "rare" else instr.op
    op = f"quick_{op}" if is_quick(instr) else op
    if instr.lanes == 1:
        return elementwise(op, args, dtypes, dtype)
    if op == "cast" and is_half(dtype) and dtypes == [float32]:
        return f"round_lanes<{type_name(dtype)}>({args[0]})"
    if op == "cast" and dtype is float32 and dtypes == [bfloat16]:
        return f"widen_lanes({args[0]})"
    lanes = []
    for lane in range(instr.lanes):
        picked = [
            f"{a}[{lane}]" if s.lanes > 1 and s.op != "const" else scalar_constant(a, s)
            for a, s in zip(args, sources, strict=True)
        ]
        lanes.append(elementwise(op, picked, dtypes, dtype))
    return f"{{{', '.join(lanes)}}}"


def scalar_constant(text: str, source: Instr) -> str:
    """Text of one lane of an argument that is the same in all lanes."""
    if source.op == "const" and source.dtype is not None:
        return literal(source.arg, source.dtype)
    return text


def render_loop(name: str, args: list[str], instr: Instr) -> list[str]:
    """Write a loop head; `is_unrolled` None forbids unrolling."""
    (first, last), (step, is_unrolled) = args, instr.arg
    typed = type_name(instr.dtype or int32)
    head = f"for ({typed} {name} = {first}; {name} < {last}; {name} += {step}) {{"
    if is_unrolled is None:
        return ["#pragma unroll 1", head]
    return ["#pragma unroll", head] if is_unrolled else [head]


def render_array(name: str, args: list[str], instr: Instr) -> list[str]:
    """Declare a register array."""
    return [f"{type_name(instr.dtype or int32, instr.lanes)} {name}[{instr.arg}];"]


def render_store(name: str, args: list[str], instr: Instr) -> list[str]:
    """Write one scalar or aligned vector to memory."""
    pointer, index, value = args[:3]
    if instr.lanes == 1:
        text = f"{pointer}[{index}] = {value};"
    else:
        typed = type_name(instr.dtype or int32, instr.lanes)
        text = f"*({typed}*)({pointer} + {index}) = {value};"
    return [f"if ({args[3]}) {text}" if len(args) == 4 else text]


def render_shared(name: str, args: list[str], instr: Instr) -> list[str]:
    """Name a place in the block's dynamic shared memory."""
    typed = type_name(instr.dtype or int32)
    return [f"{typed}* const {name} = ({typed}*)(shared_memory() + {instr.arg});"]


def render_workspace(name: str, args: list[str], instr: Instr) -> list[str]:
    """Name a workspace as a pointer to elements of the instruction's dtype."""
    typed = type_name(instr.dtype or int32)
    return [f"{typed}* const {name} = ({typed}*)w{instr.arg};"]


def render_choose(name: str, args: list[str], instr: Instr) -> list[str]:
    """Choose by a jump that a whole block takes: selections would cost each thread every option."""
    pointer = "" if instr.arg == "scalar" else "*" if instr.arg == "workspace" else "* __restrict__"
    const = "const " if instr.arg == "in" else ""
    cases = [f"case {n}: {name} = {option}; break;" for n, option in enumerate(args[1:-1])]
    declared = f"{const}{type_name(instr.dtype or int32)}{pointer} {name};"
    return [declared, f"switch ({args[0]}) {{ {' '.join(cases)} default: {name} = {args[-1]}; }}"]


def barrier_text(threads: int | None) -> str:
    """Wait for all threads of the block, or for those of a role."""
    return (
        f'asm volatile("bar.sync 1, {threads};" ::: "memory");' if threads else "__syncthreads();"
    )


Statement = Callable[[str, list[str], Instr], list[str]]
STATEMENTS: dict[str, Statement] = {
    "loop": render_loop,
    "if": lambda name, args, instr: [f"if ({args[0]}) {{"],
    "end": lambda name, args, instr: ["}"],
    "store": render_store,
    "array": render_array,
    "set": lambda name, args, instr: [f"{args[0]}[{args[1]}] = {args[2]};"],
    "shared": render_shared,
    "workspace": render_workspace,
    "choose": render_choose,
    "barrier": lambda name, args, instr: [barrier_text(instr.arg)],
    "warp_barrier": lambda name, args, instr: ["__syncwarp();"],
    "mma": lambda name, args, instr: [f"{instr.arg.function}({', '.join(args)});"],
    **cuda_async.STATEMENTS,
}
