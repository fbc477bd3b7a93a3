"""Sort template: one task or block for each row, or for each run of a long row.

CPU: short rows by counting how many elements go first (no branch, vectors), others by a radix sort,
least significant byte first: O(n), stable, no branch. CUDA: a radix sort in shared memory, for few
elements a bitonic network over pairs (key, position), which makes it stable; a longer row is sorted
by steps over tiles of it, each a kernel of its own (graph/sorting.py).
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen.cuts import single_axis
from picograd.codegen.templates.grid import cut, merge_part, rebind
from picograd.codegen.templates.transposed import loops
from picograd.codegen.tile import SortStep, Step, Tile, TileKernel, TilePart, When
from picograd.dtype import DType, int32, uint16, uint64
from picograd.errors import check, internal
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, flatten
from picograd.schedule.loop import DIGITS, Condition, Kernel, Part, Radix, Sort, rewrite
from picograd.target import Target

SHORT_ROW = 64  # counting compares n * n elements, 16 at once
CPU_POINTS = 16384  # elements of a task made of short rows
SCRATCH_BYTES = 4 << 20  # a longer row's memory is a workspace, not that of every worker
CUDA_THREADS = 512
FEW = 256  # elements of a run that a network sorts: a radix sort has as many counters
RADIX_THREADS = 256  # one a digit
WARP = 32


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a sort kernel for the target."""
    check(len(kernel.parts) == 1, "a sort kernel has one part", kernel)
    part = merge_part(kernel.parts[0])
    sort = sort_of(part)
    if not target.has_blocks:
        make = counting_part if sort.axis.size <= SHORT_ROW else radix_part
        return TileKernel(kernel, (make(sort, part.ends),), 1)
    if sort.run > FEW:
        return TileKernel(kernel, (digits_part(sort),), RADIX_THREADS)
    threads = WARP
    while threads < CUDA_THREADS and 4 * threads <= padded_size(sort.run):
        threads *= 2
    network = block_part(sort, "bitonic", *tiles_of(sort, padded_size(sort.run), int32))
    return TileKernel(kernel, (network,), threads)


def sort_of(part: Part) -> Sort:
    """Take the sort of a part."""
    if not isinstance(part.along, Sort):
        internal("a sort kernel without a sort", part)
    return part.along


def padded_size(run: int) -> int:
    """Round the elements of a run up to a power of two."""
    return 1 << (run - 1).bit_length()


def stop_of(sort: Sort, ends: Sequence[Condition]) -> tuple[Index | None, list[Condition]]:
    """Say where the elements of a row end, and which rows there are."""
    own = [end for end in ends if single_axis(end) is sort.axis]
    stop = axis_index(sort.axis) - own[0][0] if own else None
    return stop, [end for end in ends if sort.axis not in axes_of(end[0])]


def counting_part(sort: Sort, ends: Sequence[Condition]) -> TilePart:
    """Sort short rows, several in a task."""
    space = cut(sort.rows, max(1, CPU_POINTS // sort.axis.size))
    body, target = rewrite(sort.body, space.axes), rebind(sort.target, space.axes)
    size = sort.axis.size
    own = replace(sort, run=size, body=body, target=target)
    keys = Tile("keys", (size,), sort.body.dtype, "register")
    stop, rows = stop_of(sort, ends)
    step: Step = SortStep(own, constant(0), "rank", stop=stop)
    tests = (*space.conditions, *((rebind(index, space.axes), lo, hi) for index, lo, hi in rows))
    if tests:
        step = When(tests, (step,))
    return TilePart(space.grid, (keys,), tuple(loops(space.dims, [step])))


def radix_part(sort: Sort, ends: Sequence[Condition]) -> TilePart:
    """Sort a row in a task: words twice, wide keys, and a counter for each byte value."""
    size, dtype = sort.axis.size, sort.body.dtype
    check(size < 1 << 31, "positions in a row are int32", sort)
    names, sizes = ["words"], [2 * size]
    if dtype.itemsize > 4:
        names.append("keys")
        sizes.append(size)
    is_large = 8 * sum(sizes) > SCRATCH_BYTES
    rows = tuple(axis.size for axis in sort.rows)
    count = product(rows) if is_large else 1
    space = "workspace" if is_large else "shared"
    tiles = [
        Tile(name, (count * elements,), uint64, space, None, number if is_large else -1)
        for number, (name, elements) in enumerate(zip(names, sizes))
    ]
    tiles.append(Tile("counts", (256,), int32, "register"))
    row = flatten([axis_index(axis) for axis in sort.rows], rows)
    stop, tests = stop_of(sort, ends)
    base = row * (2 * size) if is_large else constant(0)
    step: Step = SortStep(replace(sort, run=size), constant(0), "radix", base, stop)
    if tests:
        step = When(tuple(tests), (step,))
    workspaces = tuple((8 * count * elements, False) for elements in sizes)
    return TilePart(sort.rows, tuple(tiles), (step,), workspaces if is_large else ())


def digits_part(sort: Sort) -> TilePart:
    """Sort a run in a block, digit after digit: a row of counters for each warp, and the run."""
    counters = Tile("counters", (RADIX_THREADS // WARP * (DIGITS + 1),), int32, "shared")
    size = ceil_div(sort.run, RADIX_THREADS) * RADIX_THREADS
    return block_part(sort, "radix", counters, *tiles_of(sort, size, uint16))


def tiles_of(sort: Sort, size: int, positions: DType) -> tuple[Tile, Tile]:
    """Give memory for the keys of a run and their positions."""
    keys = Tile("keys", (size,), sort.body.dtype, "shared")
    return keys, Tile("positions", (size,), positions, "shared")


def block_part(sort: Sort, method: str, *tiles: Tile) -> TilePart:
    """Sort each run in a block."""
    runs = Axis("run", ceil_div(sort.axis.size, sort.run))
    step = SortStep(sort, axis_index(runs) * sort.run, method)
    return TilePart((*sort.rows, runs), tiles, (step,))


def build_radix(kernel: Kernel, target: Target) -> TileKernel:
    """Write one step of a radix sort for CUDA: a block for each tile of a row."""
    part = merge_part(kernel.parts[0])
    radix = part.along
    if not isinstance(radix, Radix) or not target.has_blocks:
        internal("a radix kernel needs a radix step, and CUDA", part)
    cells = RADIX_THREADS // WARP * (DIGITS + 1)
    tiles: tuple[Tile, ...] = (Tile("counters", (cells,), int32, "shared"),)
    if radix.counted is not None:
        tiles += (Tile("offsets", (DIGITS,), int32, "shared"),)
        tiles += (Tile("sorted", (radix.run,), radix.body.dtype, "shared"),)
    grid = (*radix.rows, radix.tile)
    return TileKernel(kernel, (TilePart(grid, tiles, (radix,)),), RADIX_THREADS)
