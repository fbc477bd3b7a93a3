"""Tensor cores through `mma.sync.m16n8k8` of TF32: operands that no copy engine can bring.

And of float64, whose fragments lie in the same lanes, and whose sums are exact to the last digit.

    multiply(acc, a, b)  acc[m, n] += a[k, m] * b[k, n] over one stage, 10 bits of each mantissa

The other bits are cut off by the unit, as `wgmma` does: rounding takes two instructions an element.
Tiles are [k][m] and [k][n] in shared memory, as without tensor cores: `ldmatrix` cannot
transpose 32-bit values, so each thread loads its own. Rows are 8 more than a multiple of 32 apart:
the four rows and eight columns that a warp loads at once lie in different banks.
"""

from picograd.codegen.tensor_core import Call, WarpSchedule
from picograd.dtype import DType, float32, float64
from picograd.helpers import ceil_div
from picograd.late_methods import dataclass

DEPTH = 8  # of one instruction
SKEW = 8
LEAST_TF32 = 256  # of K, for which a block leaves a part of a sum
LEAST_FLOAT64 = 64  # of K of a processor, from which tensor cores are worth their larger tiles
LEAST_ROWS = 64  # of tiles of float64
# The tile of long sums with no more rows and columns: gradients of kernels of a few channels.
SMALL = 32, 32, 64


@dataclass(frozen=True, slots=True)
class Tf32Schedule(WarpSchedule):
    """How a block multiplies float32 on tensor cores."""

    vector: int = 4  # elements of one copy
    resident: int = 1  # blocks of a multiprocessor

    @property
    def shared_bytes(self) -> int:
        """Shared memory of all stages."""
        rows = self.pitch(self.block[0]) + self.pitch(self.block[1])
        return self.stages * rows * self.block[2] * self.shared_dtype.itemsize

    def pitch(self, size: int) -> int:
        """Elements between rows of a shared tile with rows of `size`."""
        return size + SKEW

    @property
    def shared_dtype(self) -> DType:
        """Elements of shared tiles."""
        return float32


@dataclass(frozen=True, slots=True)
class Float64Schedule(Tf32Schedule):
    """How a block multiplies float64 on tensor cores."""

    vector: int = 2

    @property
    def shared_dtype(self) -> DType:
        """Elements of shared tiles."""
        return float64

    def pitch(self, size: int) -> int:
        """Elements between rows of a shared tile: four rows and four columns in their own banks."""
        return size + SKEW // 2


def tf32_options(m: int, n: int, majors: tuple[bool, bool]) -> list[Tf32Schedule]:
    """List schedules of TF32 for operands that are no boxes: gradients of convolutions' weights.

    A block of the second is as fast alone as two of the first: 128 of 132 processors have one, of
    512 rows and 3 x 3 taps of 512 columns, where the first would have 144 blocks for 264.
    """
    if max(m, n) <= SMALL[0]:
        return [Tf32Schedule(SMALL, (2, 4), 2, *majors)]
    large = Tf32Schedule((128, 128, 16), (2, 2), 3, *majors, resident=2)
    alone = Tf32Schedule((128, 144, 32), (2, 2), 4, *majors)
    return [large, alone, Tf32Schedule((64, 96, 32), (1, 4), 2, *majors, resident=3)]


def float64_options(majors: tuple[bool, bool]) -> list[Tf32Schedule]:
    """List schedules of float64 on tensor cores, which Hopper has twice the rate of: large first.

    4,096 rows, columns and K take 3.2 ms in the first, 3.5 in the others; 1,024 56 us in the second
    and 65 in the first, K in two parts; 512 16 us in the last and 23 in the second.
    """
    return [
        Float64Schedule((128, 128, 16), (2, 4), 3, *majors),
        Float64Schedule((128, 64, 16), (4, 2), 4, *majors),
        Float64Schedule((128, 64, 16), (4, 2), 3, *majors, resident=2),
        Float64Schedule((64, 64, 16), (2, 2), 3, *majors, resident=2),
    ]


def keeps_busy(schedule: Float64Schedule, tiles: int, depth: int, processors: int) -> bool:
    """Tell whether blocks fill three quarters of their waves, or the smallest tiles of one wave.

    K falls into parts where two blocks are on a processor: then three fifths will do.
    """
    wave = schedule.resident * processors
    most = depth // LEAST_TF32 if schedule.resident > 1 else 1
    blocks = tiles * max(1, min(wave // tiles, most))
    waves = ceil_div(blocks, wave)
    share = 3 / 5 if schedule.resident > 1 else 3 / 4
    is_even = blocks >= share * waves * wave
    is_least = schedule.block[0] == LEAST_ROWS and 4 * blocks >= 3 * processors
    is_long = depth * tiles >= LEAST_FLOAT64 * processors
    return is_long and (is_even or is_least)


PRIMITIVES = """\
#ifndef CUDA_SHIM
DEVICE unsigned int to_tf32(float a) { return __float_as_uint(a); }
DEVICE void multiply_tf32(float* c, const unsigned int* a, const unsigned int* b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
"""

PRIMITIVES_FLOAT64 = """\
#ifndef CUDA_SHIM
DEVICE void multiply_float64(double* c, const double* a, const double* b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
    : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
#endif
"""

MULTIPLY = """\
DEVICE void {name}({real} (&acc)[{registers}], const {real}* a_tile, int a_at,
                   const {real}* b_tile, int b_at) {{
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int row = lane >> 2, depth = lane & 3;
  const {real}* a = a_tile + a_at + depth * {a_pitch} + warp / {warps_n} * {warp_m} + row;
  const {real}* b = b_tile + b_at + depth * {b_pitch} + warp % {warps_n} * {warp_n} + row;
  #pragma unroll
  for (int step = 0; step < {steps}; step++, a += 8 * {a_pitch}, b += 8 * {b_pitch}) {{
    {part} a_part[{m_parts}][4], b_part[{n_parts}][2];
    #pragma unroll
    for (int i = 0; i < {m_parts}; i++) {{
      a_part[i][0] = {bits}(a[i * 16]);
      a_part[i][1] = {bits}(a[i * 16 + 8]);
      a_part[i][2] = {bits}(a[i * 16 + 4 * {a_pitch}]);
      a_part[i][3] = {bits}(a[i * 16 + 4 * {a_pitch} + 8]);
    }}
    #pragma unroll
    for (int j = 0; j < {n_parts}; j++) {{
      b_part[j][0] = {bits}(b[j * 8]);
      b_part[j][1] = {bits}(b[j * 8 + 4 * {b_pitch}]);
    }}
    #pragma unroll
    for (int i = 0; i < {m_parts}; i++) {{
      #pragma unroll
      for (int j = 0; j < {n_parts}; j++)
        {multiply}(acc + (i * {n_parts} + j) * 4, a_part[i], b_part[j]);
    }}
  }}
}}
"""


def multiply_tf32(schedule: Tf32Schedule) -> Call:
    """Write the function acc += a @ b over one stage."""
    m_parts, n_parts = schedule.layout.fragments
    is_double = schedule.shared_dtype is float64
    multiply = "multiply_float64" if is_double else "multiply_tf32"
    name = multiply + "_" + "x".join(map(str, (*schedule.block, *schedule.warps)))
    text = MULTIPLY.format(
        name=name,
        multiply=multiply,
        real="double" if is_double else "float",
        part="double" if is_double else "unsigned int",
        bits="" if is_double else "to_tf32",
        registers=schedule.layout.register_count,
        warps_n=schedule.warps[1],
        warp_m=m_parts * 16,
        warp_n=n_parts * 8,
        steps=schedule.block[2] // DEPTH,
        m_parts=m_parts,
        n_parts=n_parts,
        a_pitch=schedule.pitch(schedule.block[0]),
        b_pitch=schedule.pitch(schedule.block[1]),
    )
    return Call(name, (PRIMITIVES_FLOAT64 if is_double else PRIMITIVES, text))
