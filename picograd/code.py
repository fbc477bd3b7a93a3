"""Code: the text of one generated kernel and everything needed to launch it.

The calling conventions that codegen and runtime share (neither imports the other):

llvm  `void entry(ptr buffers, ptr scalars, ptr scratch, i64 begin, i64 end)`: `buffers` is an array
      of pointers, slots first, then one per workspace; `scalars` an array of 8-byte cells, each
      holding an i64 or a double; `scratch` 64-byte aligned memory of the calling worker. The
      runtime splits tasks 0..tasks-1 into ranges and calls the entry from its workers, in any
      order; no task waits for another. A task may find out that it is the last one to finish
      through an atomic counter in a zeroed workspace, which it must leave zero again.
cuda  `extern "C" __global__ void entry(T0* s0, ..., W0* w0, ..., scalars by value, tensor maps)`:
      slots, then workspaces, then scalars (each as its own C type), then tensor maps (128 bytes by
      value, which the runtime encodes), launched with `tasks` blocks of `threads`.
opencl  `__kernel void entry(...)` with the same arguments but tensor maps, launched with `tasks`
      work-groups of `threads`.

Workspaces that are zero between launches are numbered last: the others may lie in a plan's arena.
"""

import zlib
from binascii import a2b_base64, b2a_base64
from dataclasses import replace

from picograd.dtype import DType
from picograd.late_methods import dataclass

# A CPU kernel of so few operations and bytes runs a microsecond longer at most as code written
# straight from its IR, which takes 5 ms where all passes of LLVM take 35 (measured).
SMALL_WORK = 1024
WARM_WORK = 16384  # one of so few, some 10 us longer
# Or of an operation or byte for this many characters of source: 3,000 computed arrays in one, each
# by a loop of its own, take all passes 30 s (measured).
SOURCE_OF_WORK = 8
# Of so many kernels that a plan lacks all are waited for, 60 ms each: 3.7 us a character of text,
# 1.2 of one with tiles of vectors. Without most passes they run 0.25 ns longer for an operation or
# byte, those with tiles 0.05 (measured, medians): 2 % of what passes take, for up to so many of
# them a character, twice as many with tiles. One of up to `MANY_WORK` runs 40 us longer.
MANY_KERNELS, WORK_OF_SOURCE, WORK_OF_TILES, MANY_WORK = 16, 256, 512, 4 * WARM_WORK
TILES = " x <"  # arrays of vectors
# One with tiles of more work, up to this for a character, gets `MIDDLE` passes: it runs 0.005 ns
# longer for an operation (medians, 0.2 at most), and is compiled in 0.45 of the time (measured).
WORK_OF_MIDDLE = 1 << 14
FEW, MIDDLE, ALL = 0, 1, 2  # passes, and how much LLVM's emission does about them
# One that reads nothing makes first values, most often once: it runs 6 ms longer at most, and all
# passes take 130 ms for ten parts of random numbers (measured); or, by its text, a sixth of that.
FIRST_WORK = 1 << 22
FREEDOM = " reassoc "  # of the sums of a reduction to be rounded in another order: passes use it


@dataclass(frozen=True, slots=True)
class Workspace:
    """Scratch memory of a launch. `is_zeroed`: zero before the first one, left zero by each."""

    bytes: int
    is_zeroed: bool = False


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows begin, along all dimensions of an array but the nearest and the last.

    Along dimension d, nearest first, `counts[d]` windows begin at `first[d]`, `first[d] + steps[d]`
    and so on. Windows are counted with the nearest dimension fastest, and on to the next position
    of the last dimension. An element of a window lies at its offsets from where the window begins.
    """

    first: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """How the bulk copy engine sees a slot: an array of boxes, its nearest dimension first.

    Counted in elements: `offset` of the first one from the start of the slot, `sizes` of the
    dimensions, `strides` of all but the first, which is contiguous, and the `box` of one copy. In
    shared memory a box has rows of 128 bytes whose 16-byte chunks are permuted (128-byte swizzle).
    With `windows` a box is `box[0]` elements of the nearest dimension at each of `box[1]` windows.
    """

    slot: int
    dtype: DType
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    windows: "Windows | None" = None


@dataclass(frozen=True, slots=True)
class Code:
    """Source text plus launch facts of one kernel."""

    name: str
    language: str  # "llvm", "cuda" or "opencl"
    entry: str
    source: str
    tasks: int  # CPU tasks, or CUDA blocks
    threads: int = 1  # CUDA threads a block
    shared_bytes: int = 0  # CUDA dynamic shared memory
    workspaces: tuple[Workspace, ...] = ()
    scalars: tuple[DType, ...] = ()
    scratch_bytes: int = 0  # scratch each CPU worker gets
    flops: int = 0
    bytes_moved: int = 0
    tensors: tuple[TensorMap, ...] = ()  # CUDA
    inputs: int = 1  # slots it reads, at least where that is not known
    beside: int = 1  # kernels that were compiled together with it
    ended: int = 0  # axes that end at a size of the call
    packed: str = ""  # CPU, from disk: the source, compressed, if it may be compiled again

    @property
    def work(self) -> int:
        """Floating operations and bytes moved; 0 where they are not known.

        Sizes of a call are on average half way to the bounds up to which all is counted.
        """
        return -(-(self.flops + self.bytes_moved) >> self.ended)

    @property
    def is_small(self) -> bool:
        """Whether the kernel does so little that passes would gain nothing.

        Or would cost more: sums for many sizes are added up in order, as those of small kernels
        are, and a size that comes often gets a kernel of its own.
        """
        is_bounded_sum = self.ended > 0 and FREEDOM in self.source
        return 0 < self.work <= (WARM_WORK if is_bounded_sum else SMALL_WORK)

    @property
    def passes(self) -> int:
        """Which passes it gets at first: `FEW`, `MIDDLE` or `ALL`."""
        if not (self.is_small or self.is_warm):
            return ALL
        is_long = TILES in self.source and self.work > WORK_OF_TILES * len(self.source)
        return MIDDLE if is_long else FEW

    @property
    def is_warm(self) -> bool:
        """Whether it gets fewer passes at first, and all once it has run often: the same bits.

        On a CPU; the source of one that can not be compiled again is not there.
        """
        if self.packed:
            return True
        most = max(WARM_WORK, len(self.source) // SOURCE_OF_WORK) if self.inputs else FIRST_WORK
        if self.beside >= MANY_KERNELS or not self.inputs:
            each = WORK_OF_MIDDLE if TILES in self.source else WORK_OF_SOURCE
            most = max(most, each * len(self.source))
        if self.ended:  # it runs until its sizes get kernels of their own
            most = max(most, MANY_WORK)
        is_between = SMALL_WORK < self.work <= most
        return is_between and bool(self.source) and FREEDOM not in self.source


def packed(source: str) -> str:
    """Compress the source of a kernel, to a tenth or so; `unpacked` is the way back."""
    return b2a_base64(zlib.compress(source.encode(), 1), newline=False).decode()


def unpacked(code: Code) -> Code:
    """Give a kernel from disk its source."""
    if not code.packed:
        return code
    source = zlib.decompress(a2b_base64(code.packed)).decode()
    return replace(code, source=source, packed="")
