"""Hopper's tensor cores: `wgmma.mma_async`, fed from swizzled shared memory by `cp.async`.

A warpgroup (128 threads) multiplies 64 x n x 16 straight from shared memory; 64-bit matrix
descriptors tell where (PTX ISA, "Asynchronous warpgroup level matrix instructions"). Tiles are
slabs with rows of 128 bytes in the 128-byte swizzle, which `SharedOperand` with span 64 is exactly.

One multiplication stays in flight while the next stage is prepared, so a stage is free again one
step later than with `mma.sync`.
"""

from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.tensor_core import PRIMITIVES, Call, SharedOperand, shared_operand
from picograd.dtype import DType
from picograd.late_methods import dataclass

SPAN = 64  # 16-bit values in the 128 bytes of a swizzled row
DESCRIPTOR = "0x4000004000000000ull"  # 128-byte swizzle; 1024 bytes between groups of 8 rows


@dataclass(frozen=True, slots=True)
class WgmmaSchedule:
    """How a block multiplies with `groups` = block[0] / 64 warpgroups."""

    block: tuple[int, int, int]  # m, n, k
    stages: int
    a_is_k_major: bool = True
    b_is_k_major: bool = True

    @property
    def layout(self) -> WgmmaAccumulator:
        """Layout of the accumulator."""
        return WgmmaAccumulator(self.block[1], self.block[0] // 64)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.layout.thread_count

    @property
    def a(self) -> SharedOperand:
        """Shared tile of one stage of the left operand."""
        return shared_operand(self.block[0], self.block[2], self.a_is_k_major, SPAN)

    @property
    def b(self) -> SharedOperand:
        """Shared tile of one stage of the right operand."""
        return shared_operand(self.block[1], self.block[2], self.b_is_k_major, SPAN)

    @property
    def ahead(self) -> int:
        """Tiles in flight while two are being multiplied."""
        return self.stages - 2

    @property
    def shared_bytes(self) -> int:
        """Shared memory of all stages."""
        return self.stages * (self.a.size + self.b.size) * 2


WARPGROUP = """\
#ifndef CUDA_SHIM
DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void warpgroup_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending> DEVICE void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory");
}
DEVICE int warpgroup() { return __shfl_sync(~0u, (int)threadIdx.x >> 7, 0); }
DEVICE void keep(float& value) { asm volatile("" : "+f"(value) :: "memory"); }
#endif
template <int count> DEVICE void finish_multiply(float (&acc)[count]) {
  warpgroup_wait<0>();
  #pragma unroll
  for (int i = 0; i < count; i++) keep(acc[i]);
}
"""

INSTRUCTION = """\
#ifndef CUDA_SHIM
DEVICE void {name}(float (&d)[{count}], uint64 a, uint64 b) {{
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, 1, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{type}.{type} "
    "{{{registers}}}, %{count}, %{after}, p, 1, 1, {a_transposed}, {b_transposed};\\n}}"
    : {outputs} : "l"(a), "l"(b));
}}
#else
DEVICE void {name}(float (&d)[{count}], uint64 a, uint64 b) {{
  warpgroup_multiply<{struct}, {n}, {a_transposed}, {b_transposed}>(d, a, b);
}}
#endif
"""

MULTIPLY = """\
DEVICE void {name}(float (&acc)[{count}], const void* a_tile, int a_at, const void* b_tile,
                   int b_at) {{
  const uint32 a = shared_address((const uint16*)a_tile + a_at) + warpgroup() * {a_group};
  const uint32 b = shared_address((const uint16*)b_tile + b_at);
  const uint64 a_start = {descriptor} | {a_slab}ull << 16 | (a & 0x3ffff) >> 4;
  const uint64 b_start = {descriptor} | {b_slab}ull << 16 | (b & 0x3ffff) >> 4;
  warpgroup_fence();
  #pragma unroll
  for (int step = 0; step < {steps}; step++)
    {instruction}(acc, a_start + step * {a_step}, b_start + step * {b_step});
  warpgroup_commit();
  warpgroup_wait<1>();
}}
"""


def instruction_text(schedule: WgmmaSchedule, dtype: DType) -> tuple[str, str]:
    """Write the function of one `wgmma` instruction; return its name and text."""
    n, count = schedule.block[1], schedule.block[1] // 2
    flags = int(not schedule.a_is_k_major), int(not schedule.b_is_k_major)
    name = f"wgmma_{dtype.name}_n{n}_{flags[0]}{flags[1]}"
    text = INSTRUCTION.format(
        name=name,
        count=count,
        after=count + 1,
        n=n,
        type={"float16": "f16", "bfloat16": "bf16"}[dtype.name],
        struct={"float16": "half", "bfloat16": "bfloat16"}[dtype.name],
        registers=", ".join(f"%{i}" for i in range(count)),
        outputs=", ".join(f'"+f"(d[{i}])' for i in range(count)),
        a_transposed=flags[0],
        b_transposed=flags[1],
    )
    return name, text


def multiply_warpgroup(schedule: WgmmaSchedule, dtype: DType) -> Call:
    """Write the function acc += a @ b over one stage, left in flight until the next call."""
    instruction, text = instruction_text(schedule, dtype)
    sizes = "x".join(map(str, schedule.block))
    name = f"multiply_{instruction}_{sizes}"
    slab = schedule.block[2] * SPAN * 2  # bytes of a slab stored along m or n
    body = MULTIPLY.format(
        name=name,
        count=schedule.block[1] // 2,
        a_group=64 * SPAN * 2 if schedule.a_is_k_major else slab,
        descriptor=DESCRIPTOR,
        a_slab=1 if schedule.a_is_k_major else slab >> 4,
        b_slab=1 if schedule.b_is_k_major else slab >> 4,
        steps=schedule.block[2] // 16,
        instruction=instruction,
        # 16 values of k: 32 bytes of a row, or 16 rows; in units of 16 bytes.
        a_step=2 if schedule.a_is_k_major else 128,
        b_step=2 if schedule.b_is_k_major else 128,
    )
    return Call(name, (PRIMITIVES, WARPGROUP, text, body))


def warpgroup_primitive(function: str) -> Call:
    """Make the call of one primitive, such as "fence_async_proxy"."""
    return Call(function, (PRIMITIVES, WARPGROUP))
