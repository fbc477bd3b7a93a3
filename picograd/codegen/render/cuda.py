"""render: Program -> header-free CUDA C for NVRTC, one instruction a line.

16-bit floats are structs of their raw bits; the conversions are single PTX instructions, so no CUDA
header is needed. `CUDA_SHIM` is defined only when a test compiles the text as host C++.

The number of a thread is a value that NVRTC cannot look into: else it computes it, and what is made
of it, anew in many places, and ptxas of CUDA 12.8 to 13.0 may merge these wrongly: it overwrote the
number with a sum, and took the row of a thread from the sum (docs/records/0012-attention).
"""

import zlib
from dataclasses import replace

from picograd.codegen.program import Instr, Program
from picograd.codegen.render import cuda_async
from picograd.codegen.render.c import FUNCTIONS, SPELLING, is_half, type_name
from picograd.codegen.render.c_program import Statement, Value, Writer
from picograd.dtype import DType, bfloat16, float32, uint32, uint64
from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.schedule.monoid import COMBINE

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
    const int own = (int)(a << (31 - bit)) >> 31;  // all ones if it is set
    same &= ~(__ballot_sync(~0u, own < 0) ^ own);
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
# NVRTC makes products of 64 bits of what it does not see to be words.
WIDE_PRODUCT = """\
DEVICE uint64 wide_product(uint32 a, uint32 b) {
#ifdef CUDA_SHIM
  return (uint64)a * b;
#else
  uint64 result;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(result) : "r"(a), "r"(b));
  return result;
#endif
}
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
NEAR = """\
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
template <int blocks, typename T> DEVICE void store_near(T* to, T a) {
  uint64 at;
  if (threadIdx.x >= blocks) return;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(at) : "l"(to), "r"(threadIdx.x));
  *(T*)at = a;
}
"""

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
# Lanes that raise one place, as those of sorted indices do, agree before.
RAISE_TO = """\
DEVICE void raise_to(uint32* p, uint32 a) {
#if !defined(CUDA_SHIM) && __CUDA_ARCH__ >= 800
  const uint32 here = __activemask();
  const int first = __ffs(here) - 1;
  const uint64 at = __shfl_sync(here, (uint64)p, first);
  if (__all_sync(here, at == (uint64)p)) {
    a = __reduce_max_sync(here, a);
    if (threadIdx.x % 32 != first) return;
  }
#endif
  atomicMax(p, a);
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
    "cluster_arrive(": NEAR,
    "atomic_add(": ATOMIC_ADD,
    "raise_to(": RAISE_TO,
    "round_lanes<": ROUND_LANES,
    "widen_lanes(": WIDEN_LANES,
    "wide_product(": WIDE_PRODUCT,
}


def render(program: Program) -> str:
    """Write a program as CUDA C: prologue, helper functions it calls, one kernel."""
    body = CudaWriter(program).body()
    called = [text for instr in program.instructions for text in needed(instr)]
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


CLUSTERS = ("cluster_barrier", "cluster_arrive")


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
    clusters = {instr.arg for instr in program.instructions if instr.op in CLUSTERS}
    bounds += "".join(f" __cluster_dims__({size}, 1, 1)" for size in clusters)
    return f'extern "C" __global__ void {bounds} {program.name}({", ".join(parameters)})'


def barrier_text(threads: int | None) -> str:
    """Wait for all threads of the block, or for those of a role."""
    return (
        f'asm volatile("bar.sync 1, {threads};" ::: "memory");' if threads else "__syncthreads();"
    )


STATEMENTS: dict[str, Statement] = {
    "barrier": lambda name, args, instr: [barrier_text(instr.arg)],
    "warp_barrier": lambda name, args, instr: ["__syncwarp();"],
    "atomic_max": lambda name, args, instr: [f"raise_to({args[0]} + {args[1]}, {args[2]});"],
    "count": lambda name, args, instr: [f"atomicAdd({args[0]} + {args[1]}, 1);"],
    **dict.fromkeys(
        ("cluster_arrive", "cluster_wait"), lambda name, args, instr: [f"{instr.op}();"]
    ),
    "store_near": lambda name, args, instr: [
        f"store_near<{instr.arg}>({args[0]} + {args[1]}, {args[2]});"
    ],
    "mma": lambda name, args, instr: [f"{instr.arg.function}({', '.join(args)});"],
    **cuda_async.STATEMENTS,
}
VALUES: dict[str, Value] = {
    "task": lambda args, instr: "blockIdx.x",
    "shuffle_xor": lambda args, instr: f"shuffle_xor({args[0]}, {instr.arg})",
    "match_any": lambda args, instr: f"match_any<{instr.arg}>({args[0]})",
    "atomic_add": lambda args, instr: f"atomic_add({args[0]} + {args[1]}, {args[2]})",
    **cuda_async.VALUES,
}


def is_wide_product(program: Program, instr: Instr) -> bool:
    """Tell whether 64 bits are the product of a word and a constant word."""
    if instr.dtype is not uint64 or instr.op != COMBINE["prod"] or instr.lanes > 1:
        return False
    word, number = (program.instructions[arg] for arg in instr.args)
    row, known = OPS.get(word.op), OPS.get(number.op)
    is_converted = row is not None and row.keeps_value
    is_number = known is not None and known.role is Role.NUMBER
    if not is_converted or not is_number:
        return False
    is_word = program.instructions[word.args[0]].dtype is uint32
    return is_word and 0 <= number.arg < 1 << 32


class CudaWriter(Writer):
    """Writes CUDA C: what tensor cores, warps and copies need, and quick instructions."""

    statements = STATEMENTS

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.values = {
            **VALUES,
            "thread": lambda args, instr: f"thread_number<{program.threads}>()",
        }

    def choice(self, instr: Instr, mask: str, place: str, typed: str) -> str:
        """Read a place if a mask holds; what is chosen between stays in whole registers."""
        if instr.dtype is None or instr.dtype.bits != 16 or instr.lanes % 2:
            return super().choice(instr, mask, place, typed)
        words = type_name(uint32, instr.lanes // 2)
        place = place.replace(typed, words)
        return f"bit_cast<{typed}>({mask} ? {place} : {words}{{}})"

    def computed(self, args: list[str], instr: Instr, dtype: DType) -> str:
        """Write an elementwise operation: of one instruction, of all lanes, or lane by lane."""
        if is_quick(instr):
            instr = replace(instr, op=f"quick_{instr.op}")
        if is_wide_product(self.program, instr):
            return f"wide_product((uint32){args[0]}, (uint32){args[1]})"
        if instr.op != "cast" or instr.lanes == 1:
            return super().computed(args, instr, dtype)
        source = self.program.instructions[instr.args[0]].dtype
        if is_half(dtype) and source is float32:
            return f"round_lanes<{type_name(dtype)}>({args[0]})"
        if dtype is float32 and source is bfloat16:
            return f"widen_lanes({args[0]})"
        return super().computed(args, instr, dtype)
