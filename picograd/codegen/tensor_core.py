"""Tensor cores through `mma.sync.m16n8k16`: operand tiles in shared memory, and reading them.

One function here writes the CUDA text of "multiply two shared tiles into the accumulator"; the rest
of a pipelined multiplication is ordinary Program. The primitives are one PTX instruction each (PTX
ISA, "Matrix multiply-accumulate"); a test's host shim defines the same names in C++.

A shared operand is rows x columns of 16-bit values. Rows are cut into chunks of 8 values = 16
bytes, and the chunks of a row are permuted by an exclusive or with the row number, so that the
eight rows one `ldmatrix` reads lie in different banks without padding.

Hopper's tensor cores: `wgmma.mma_async`, fed from swizzled shared memory by `cp.async`.

A warpgroup (128 threads) multiplies 64 x n x 16 straight from shared memory; 64-bit matrix
descriptors tell where (PTX ISA, "Asynchronous warpgroup level matrix instructions"). Tiles are
slabs with rows of 128 bytes in the 128-byte swizzle, which `SharedOperand` with span 64 is exactly.

One multiplication stays in flight while the next stage is prepared, so a stage is free again one
step later than with `mma.sync`.
"""

from dataclasses import field, replace

from picograd.codegen.layout import Blocked, MmaAccumulator, WgmmaAccumulator
from picograd.dtype import DType
from picograd.errors import check
from picograd.late_methods import dataclass

CHUNK = 8  # 16-bit values in the 16 bytes that cp.async and ldmatrix move


@dataclass(frozen=True, slots=True)
class Call:
    """What a `mma` instruction writes: a call of `function`, which `texts` define."""

    function: str
    texts: tuple[str, ...]

    def __repr__(self) -> str:
        return self.function


@dataclass(frozen=True, slots=True)
class SharedOperand:
    """A swizzled shared tile; `is_k_major`: a row is one m (or n), its columns run along k.

    `span`: columns of a slab; the slabs of a wider tile follow each other.
    """

    rows: int
    columns: int
    is_k_major: bool
    span: int

    @property
    def chunks(self) -> int:
        """16-byte chunks of a row of a slab."""
        return self.span // CHUNK

    @property
    def shift_mask(self) -> tuple[int, int]:
        """Row bits (row >> shift) & mask that permute the chunks of a row."""
        if self.chunks >= 8:
            return 0, 7
        return (1 if self.chunks == 4 else 2), self.chunks - 1

    @property
    def size(self) -> int:
        """Elements of the tile."""
        return self.rows * self.columns

    def offset(self, row: int, column: int) -> int:
        """Position of one element in the tile, in elements."""
        shift, mask = self.shift_mask
        slab, inside = divmod(column, self.span)
        chunk = inside // CHUNK ^ (row >> shift & mask)
        return (slab * self.rows + row) * self.span + chunk * CHUNK + inside % CHUNK

    def address(self, row: str, chunk: str) -> str:
        """C expression of the position of a chunk of the first slab."""
        shift, mask = self.shift_mask
        bits = f"({row} >> {shift} & {mask})" if shift else f"({row} & {mask})"
        return f"{row} * {self.span} + (({chunk}) ^ {bits}) * {CHUNK}"


def shared_operand(size: int, depth: int, is_k_major: bool, span: int = 0) -> SharedOperand:
    """Make the tile of an operand with `size` rows (or columns) of the product."""
    rows, columns = (size, depth) if is_k_major else (depth, size)
    return SharedOperand(rows, columns, is_k_major, min(span or columns, columns))


@dataclass(frozen=True, slots=True)
class WarpSchedule:
    """How warps of a block multiply: tile sizes, pipeline depth, majors of the operands."""

    block: tuple[int, int, int]  # m, n, k
    warps: tuple[int, int]
    stages: int
    a_is_k_major: bool = True
    b_is_k_major: bool = True

    @property
    def layout(self) -> MmaAccumulator:
        """Layout of the accumulator."""
        return MmaAccumulator(self.block[:2], self.warps)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.layout.thread_count

    @property
    def ahead(self) -> int:
        """Tiles in flight while one is multiplied."""
        return self.stages - 1


@dataclass(frozen=True, slots=True)
class MmaSchedule(WarpSchedule):
    """How a block multiplies 16-bit floats, which lie in shared tiles of swizzled chunks."""

    @property
    def a(self) -> SharedOperand:
        """Shared tile of one stage of the left operand."""
        return shared_operand(self.block[0], self.block[2], self.a_is_k_major)

    @property
    def b(self) -> SharedOperand:
        """Shared tile of one stage of the right operand."""
        return shared_operand(self.block[1], self.block[2], self.b_is_k_major)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of all stages."""
        return self.stages * (self.a.size + self.b.size) * 2


@dataclass(frozen=True, slots=True)
class SimtSchedule:
    """How a block multiplies without tensor cores: `vector` x `vector` patches of each thread.

    Shared tiles are [k][m] and [k][n], rows padded so that transposing stores spread over banks.
    `resident` blocks share a processor, which registers are only kept for if it `is_bound`;
    `rate`: how fast they multiply, of what it can. With `has_single`, what cannot be copied in
    vectors is copied element by element. With `sums` of two the columns of a tile are those of a
    product and of its twin.
    """

    block: tuple[int, int, int]  # m, n, k
    threads_mn: tuple[int, int]
    vector: int  # neighbours along m and along n, and elements of one copy
    stages: int = 2
    a_is_k_major: bool = True
    b_is_k_major: bool = True
    resident: int = 1
    rate: float = 1.0
    has_single: bool = False
    is_bound: bool = False
    sums: int = field(default=1, repr=False)

    @property
    def layout(self) -> Blocked:
        """Layout of an accumulator."""
        rows, columns, _ = self.block
        shape = rows, columns // self.sums
        return Blocked(shape, self.threads_mn, (self.vector, self.vector))

    @property
    def has_twins(self) -> bool:
        """Tell whether threads have whole patches of half the columns, and copy as many chunks."""
        _, columns, depth = self.block
        patches = columns // 2 % (self.threads_mn[1] * self.vector)
        chunks = columns // 2 * depth // self.vector % self.threads
        return patches == chunks == 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.layout.thread_count

    @property
    def ahead(self) -> int:
        """Tiles in flight while one is multiplied."""
        return self.stages - 1

    def turned(self) -> "SimtSchedule":
        """Let columns be rows."""
        m, n, k = self.block
        return replace(self, block=(n, m, k), threads_mn=self.threads_mn[::-1])

    def pitch(self, size: int) -> int:
        """Elements between rows of a shared tile with rows of `size`."""
        return size + self.vector

    def per_thread(self, d: int) -> int:
        """Rows (d = 0) or columns (d = 1) of a thread."""
        return self.layout.steps[d] * self.vector


PRIMITIVES = """\
#ifndef CUDA_SHIM
DEVICE unsigned int shared_address(const void* p) {
  return (unsigned int)__cvta_generic_to_shared(p);
}
template <typename T, typename S>
DEVICE void copy_async(T* to, int at, const S* from, long long index, bool is_inside) {
  const int bytes = is_inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
    :: "r"(shared_address(to + at)), "l"(from + index), "r"(bytes) : "memory");
}
template <typename T, typename S>
DEVICE void copy_async_element(T* to, int at, const S* from, long long index, bool is_inside) {
  const int bytes = is_inside ? sizeof(T) : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
    :: "r"(shared_address(to + at)), "l"(from + index), "n"(sizeof(T)), "r"(bytes) : "memory");
}
DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending> DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
}
DEVICE void load_matrices(unsigned int* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
DEVICE void load_matrices_transposed(unsigned int* r, const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
#define MULTIPLY(NAME, TYPE) \\
DEVICE void NAME(float* c, const unsigned int* a, const unsigned int* b) { \\
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 " \\
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \\
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \\
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \\
}
MULTIPLY(multiply_float16, "f16")
MULTIPLY(multiply_bfloat16, "bf16")
#endif
"""

MULTIPLY_TILES = """\
DEVICE void {name}(float (&acc)[{registers}], const void* a_tile, int a_at, const void* b_tile,
                   int b_at) {{
  const unsigned short* a = (const unsigned short*)a_tile + a_at;
  const unsigned short* b = (const unsigned short*)b_tile + b_at;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int m0 = warp / {warps_n} * {warp_m}, n0 = warp % {warps_n} * {warp_n};
  #pragma unroll
  for (int step = 0; step < {steps}; step++) {{
    unsigned int a_part[{m_parts}][4], b_part[{n_pairs}][4];
    #pragma unroll
    for (int i = 0; i < {m_parts}; i++) {{
      {a_load}
    }}
    #pragma unroll
    for (int j = 0; j < {n_pairs}; j++) {{
      {b_load}
    }}
    #pragma unroll
    for (int i = 0; i < {m_parts}; i++) {{
      #pragma unroll
      for (int j = 0; j < {n_parts}; j++)
        {multiply}(acc + (i * {n_parts} + j) * 4, a_part[i], b_part[j / 2] + j % 2 * 2);
    }}
  }}
}}
"""


def fragment_load(operand: SharedOperand, is_left: bool) -> str:
    """Write the `ldmatrix` that fills one 16 x 16 fragment of an operand.

    The four 8 x 8 matrices come from lanes 0-7, 8-15, 16-23 and 24-31. The left operand wants them
    in the order (rows 0-7, k 0-7), (rows 8-15, k 0-7), (rows 0-7, k 8-15), (rows 8-15, k 8-15); the
    right operand the middle two exchanged. A tile stored along m or n is read transposed.
    """
    part, start, target = ("i", "m0", "a_part[i]") if is_left else ("j", "n0", "b_part[j]")
    source = "a" if is_left else "b"
    low, high = "(lane & 7) + (lane >> 4) * 8", "(lane >> 3 & 1)"
    if is_left == operand.is_k_major:
        low, high = "(lane & 15)", "(lane >> 4)"
    if operand.is_k_major:
        row, chunk = f"{start} + {part} * 16 + {low}", f"step * 2 + {high}"
    else:
        row, chunk = f"step * 16 + {low}", f"{start} / 8 + {part} * 2 + {high}"
    load = "load_matrices" if operand.is_k_major else "load_matrices_transposed"
    place = operand.address("row", chunk)
    return f"const int row = {row};\n      {load}({target}, {source} + {place});"


def multiply_tiles(schedule: MmaSchedule, dtype: DType) -> Call:
    """Write the function acc += a @ b over one stage: shared tiles to fragments to `mma.sync`."""
    check(dtype.bits == 16 and dtype.is_float, f"mma.sync of {dtype.name} is not supported")
    m_parts, n_parts = schedule.layout.fragments
    check(n_parts % 2 == 0, "a warp needs an even number of 8-column fragments", schedule)
    sizes = "x".join(map(str, (*schedule.block, *schedule.warps)))
    majors = ("k" if schedule.a_is_k_major else "m") + ("k" if schedule.b_is_k_major else "n")
    name = f"multiply_tiles_{dtype.name}_{sizes}_{majors}"
    text = MULTIPLY_TILES.format(
        name=name,
        registers=schedule.layout.register_count,
        warps_n=schedule.warps[1],
        warp_m=m_parts * 16,
        warp_n=n_parts * 8,
        steps=schedule.block[2] // 16,
        m_parts=m_parts,
        n_parts=n_parts,
        n_pairs=n_parts // 2,
        a_load=fragment_load(schedule.a, True),
        b_load=fragment_load(schedule.b, False),
        multiply=f"multiply_{dtype.name}",
    )
    return Call(name, (PRIMITIVES, text))


def primitive(function: str) -> Call:
    """Make the call of one primitive, such as "copy_async_commit"."""
    return Call(function, (PRIMITIVES,))


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
