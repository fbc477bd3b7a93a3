"""Steps of K that a tile of a product has: the others would multiply zeros.

    b[k, n] = guard(0 <= 2 * tap - phase + 1 <= 2; ...)      tap of k, phase of n

An operand is 0 where its guards fail. If they test axes that have one position in a tile, such as
the phase of a gradient under a stride, a tile has a range of steps outside of which a guard fails
everywhere. It may have none at all: then it is 0.

Schedules of products without tensor cores, and an estimate of how long each takes.

A row of `SCHEDULES` is a tile; the estimate says how many times processors multiply one, how full
the last wave is, and what it takes to add the parts where K is split over blocks.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from picograd.codegen.boxes import Depth
from picograd.codegen.operands import Contraction, narrow, role, size_of
from picograd.codegen.tensor_core import MmaSchedule, SimtSchedule
from picograd.codegen.windows import unguarded
from picograd.dtype import DType, float32, int64
from picograd.helpers import ceil_div, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axes_of,
    constant,
    flatten,
    substitute,
)
from picograd.schedule.loop import Condition, Expr
from picograd.target import Target

MOST_RANGES = 16  # a tile takes longer to choose from more
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reach:
    """The first step that a tile has and where they stop.

    Tiles have a `share` of all steps; a share of them is `empty`.
    """

    first: Index
    stop: Index
    share: float
    empty: float


def reach_of(
    c: Contraction, depth: Depth, corners: tuple[Index, Index], block: tuple[int, int]
) -> Reach | None:
    """Find the steps that tiles of a block have; None if all have all."""
    found = ranges_of(c, depth, corners, block)
    if found is None:
        return None
    number, ranges = found
    first = choose(number, [each[0] for each in ranges])
    stop = choose(number, [each[1] for each in ranges])
    steps = sum(stop - first for first, stop in ranges)
    empty = sum(first == stop for first, stop in ranges)
    return Reach(first, stop, steps / (len(ranges) * depth.count), empty / len(ranges))


def ranges_of(
    c: Contraction, depth: Depth, corners: tuple[Index, Index], block: tuple[int, int]
) -> tuple[Index, list[Range]] | None:
    """List the ranges of steps (first, stop) that tiles have, and which of them a tile has.

    None if all have all steps.
    """
    sides = zip((c.a, c.b), (c.rows, c.columns), corners, block, strict=True)
    for expr, axes, corner, size in sides:
        fixed = axes_of_tiles(axes, size)
        _, conditions = unguarded(narrow(expr, 8))
        known = {*fixed, *depth.outer}
        tests = [each for each in conditions if axes_of(each[0]) <= known]
        tested = set().union(*(axes_of(place) for place, *_ in tests))
        chosen = tuple(axis for axis in fixed if axis in tested)
        if not chosen or size_of(chosen) > MOST_RANGES:
            continue
        values = role(axes, corner).values
        sizes = tuple(axis.size for axis in chosen)
        number = flatten([values[axis] for axis in chosen], sizes)
        places = product(*map(range, sizes))
        return number, [range_at(tests, bound(chosen, place), depth) for place in places]
    return None


def bound(axes: tuple[Axis, ...], position: tuple[int, ...]) -> dict[Axis, Index]:
    """Give axes their positions."""
    places = map(constant, position)
    return dict(zip(axes, places, strict=True))


def axes_of_tiles(axes: tuple[Axis, ...], size: int) -> tuple[Axis, ...]:
    """Find the axes that have one position in each tile of `size` flat positions."""
    real = tuple(wide(axes))
    places = range(len(real))
    whole = [place for place in places if size_of(real[place:]) % size == 0]
    count = max(whole, default=0)
    return real[:count]


def range_at(tests: list[Condition], fixed: dict[Axis, Index], depth: Depth) -> Range:
    """Find the steps from the first to the last where all tests hold, where some axes are fixed."""
    holding = []
    sizes = [range(axis.size) for axis in depth.outer]
    for number, position in enumerate(product(*sizes)):
        values = fixed | bound(depth.outer, position)
        if all(holds(test, values) for test in tests):
            holding.append(number)
    if not holding:
        return 0, 0
    first, last = holding[0], holding[-1]
    return first * depth.blocks, (last + 1) * depth.blocks


def holds(test: Condition, values: dict[Axis, Index]) -> bool:
    """Tell whether a condition holds where all of its axes have values."""
    index, low, high = test
    return low <= substitute(index, values).const <= high


def choose(number: Index, values: list[int]) -> Index:
    """Write values[number]."""
    low, high = min(values), max(values)
    *others, last = values
    found = constant(last)
    for place, value in reversed([*enumerate(others)]):
        here = constant(value)
        if found == here:
            continue
        options = [Expr("index", (), index, int64) for index in (here, found)]
        expr = Expr("guard", tuple(options), ((number, 0, place),), int64)
        found = atom_index(Dynamic(expr, low, high))
    return found


THREADS = 16, 16
# Rates, and what is below, fit 16 products in all tiles and splits on an H100
# (docs/records/0011-products): what is chosen takes 0.1 % longer than the best, on average. Fewer
# threads, with more registers each, multiply as fast, but bring the patches of images more slowly.
SCHEDULES = (
    SimtSchedule((256, 128, 16), THREADS, 4, 2, rate=0.92),
    SimtSchedule((192, 128, 16), THREADS, 4, 2, rate=0.915),
    SimtSchedule((128, 64, 16), THREADS, 4, 2, resident=2, rate=0.79),
    SimtSchedule((64, 128, 16), THREADS, 4, 2, resident=2, rate=0.74),
    SimtSchedule((64, 64, 16), THREADS, 4, 2, resident=3, rate=0.62),
)
# The same for matrices, of which 14 products were timed in 12 tiles and up to 52 parts of K on an
# H200: what is chosen takes 0.6 % longer than the best.
PLAIN = (
    SimtSchedule((256, 128, 16), THREADS, 4, 2, rate=0.78),
    SimtSchedule((192, 128, 16), THREADS, 4, 2, rate=0.76),
    SimtSchedule((128, 64, 16), THREADS, 4, 2, resident=2, rate=0.69),
    SimtSchedule((64, 128, 16), THREADS, 4, 2, resident=2, rate=0.66),
    SimtSchedule((64, 64, 16), THREADS, 4, 2, resident=3, rate=0.525),
    SimtSchedule((128, 64, 16), (16, 8), 4, 2, resident=4, rate=0.725),
    SimtSchedule((64, 128, 16), (8, 16), 4, 2, resident=4, rate=0.74),
    SimtSchedule((64, 64, 16), (8, 8), 4, 2, resident=8, rate=0.74),
    SimtSchedule((32, 32, 16), (8, 8), 4, 3, resident=14, rate=0.45),
)
# Of at most so many rows, or columns: blocks of (rows, others).
FEW = 32
FEW_ROWS = (
    SimtSchedule((16, 128, 32), (4, 32), 4, 2, resident=5, rate=0.425),
    SimtSchedule((32, 64, 16), (8, 16), 4, 2, resident=6, rate=0.5),
    SimtSchedule((32, 128, 16), (8, 16), 4, 2, resident=4, rate=0.54),
)
# Of patches of images, and rates beside the others' on an H200 (docs/records/0014-convolutions).
IMAGE = SimtSchedule((64, 128, 16), (16, 8), 4, resident=4, rate=0.77, is_bound=True)
IMAGES = (
    replace(IMAGE, block=(64, 96, 16), rate=0.72),
    IMAGE,
    replace(IMAGE, block=(128, 96, 16), resident=2, rate=0.86),
    replace(IMAGE, block=(64, 256, 16), threads_mn=(8, 32), resident=2, rate=0.88),
)
DOUBLE = SimtSchedule((64, 64, 8), THREADS, 2, 2, resident=2)
# To begin and to store a tile: as so many positions of K.
FILL = 4
PLAIN_FILL = 5
ADDED = 80  # the same, to leave a part of one in memory, and to add it
LONE = 0.35  # exponent: fewer blocks than can be resident keep a processor less busy
PLAIN_LONE = 0.25
# Of matrices, in products of two elements: to wait for the parts, and to add an element of them.
WAITED = 135_000
ADDED_BY_ALL = 30  # of all parts, where each block adds a share of the tile
ADDED_BY_LAST = 6  # of each part, where the last block adds all of them
LONG_SUM = 1 << 16  # elements of all parts, of more of which that takes longer
WAVES = 4  # of tiles, beside which parts of K gain little, and take memory
LEAST_STEPS = 4  # of K, for each block that shares it
MANY = 32  # blocks that share K: then each warp adds some parts of a few elements (measured)
EVEN = 128  # threads that keep all parts of a processor busy: smaller blocks count in pairs


def is_plain(c: Contraction) -> bool:
    """Tell whether operands are matrices, not the patches of images."""
    return len(wide(c.depth)) <= 1


def sorted_options(
    c: Contraction, dtype: DType, majors: tuple[bool, bool], target: Target
) -> list[SimtSchedule]:
    """List the schedules of a dtype, 16-byte vectors of each operand, the fastest first."""
    found: list[SimtSchedule] = [DOUBLE]
    if dtype.itemsize < 8:
        found = [*few_tiles(c), *PLAIN] if is_plain(c) else [*SCHEDULES]
    has_single = is_plain(c) and target.has_async
    a, b = majors
    if dtype is float32 and not is_plain(c):
        run = c.depth[-1].size if b else IMAGE.block[1]
        if run >= IMAGE.block[2]:  # else what a thread reads lies apart
            found += IMAGES
    if c.twin is not None:
        fitting = (each for each in found if each.has_twins)
        sums = c.sums
        found = [replace(each, sums=sums) for each in fitting]
    options = [
        replace(each, a_is_k_major=a, b_is_k_major=b, has_single=has_single) for each in found
    ]
    return sorted(options, key=lambda schedule: time_of(c, schedule, target))


def time_of(c: Contraction, schedule: SimtSchedule, target: Target) -> float:
    """Estimate the time with as many blocks for a tile as are best."""
    return cost(c, schedule, split_count(c, schedule, target), target)


def few_tiles(c: Contraction) -> list[SimtSchedule]:
    """List the tiles of few rows, or of few columns, for a product of so few."""
    _, m, n, _ = c.sizes
    if min(m, n) > FEW:
        return []
    turned = [each.turned() for each in FEW_ROWS]
    return turned if m > n else [*FEW_ROWS]


def wide(axes: Iterable[Axis]) -> list[Axis]:
    """List the axes of several positions."""
    return [axis for axis in axes if axis.size > 1]


def split_count(c: Contraction, schedule: SimtSchedule, target: Target) -> int:
    """Count the blocks that best share a tile."""
    batch, m, n, k = c.sizes
    block_m, block_n, block_k = schedule.block
    rows = ceil_div(m, block_m)
    columns = ceil_div(n, block_n)
    blocks = schedule.resident * target.multiprocessors
    tiles = batch * rows * columns
    if tiles > WAVES * blocks:
        return 1
    wave = blocks // tiles
    steps = ceil_div(k, block_k)
    most = min(steps // LEAST_STEPS, max(wave, MANY))
    most = max(most, 1)
    counts = range(1, most + 1)
    sizes, plain = c.sizes, is_plain(c)

    def taken(splits: int) -> float:
        return cost_of(sizes, plain, schedule, splits, target)

    return min(counts, key=taken)


def cost(c: Contraction, schedule: SimtSchedule, splits: int, target: Target) -> float:
    """Estimate the time; the unit is one product of two elements."""
    return cost_of(c.sizes, is_plain(c), schedule, splits, target)


def cost_of(
    sizes: tuple[int, int, int, int],
    plain: bool,
    schedule: SimtSchedule,
    splits: int,
    target: Target,
) -> float:
    """Estimate the time for products of batch, M, N and K, of matrices or of patches."""
    batch, m, n, k = sizes
    block_m, block_n, block_k = schedule.block
    rows, columns = ceil_div(m, block_m), ceil_div(n, block_n)
    steps = ceil_div(k, block_k)
    own = ceil_div(steps, splits)
    parts = ceil_div(steps, own)
    area = block_m * block_n
    blocks = batch * rows * columns * parts
    depth = own * block_k
    resident = schedule.resident
    if not plain:
        added = ADDED if parts > 1 else 0
        each = area * (depth + FILL + added) / schedule.rate
        return time_of_waves(blocks, each, resident, target)
    each = area * (depth + PLAIN_FILL) / schedule.rate
    if parts > 1:
        added = ADDED_BY_LAST * parts
        if is_long_sum(schedule, parts):
            added = ADDED_BY_ALL
        each += WAITED + area * added
    unit = ceil_div(EVEN, schedule.threads)
    return time_of_waves(blocks, each, resident, target, PLAIN_LONE, unit)


def bound_to(c: Contraction, schedule: SimtSchedule, resident: int) -> SimtSchedule:
    """Let fewer blocks share a processor: each multiplies faster, and all together slower."""
    lone = PLAIN_LONE if is_plain(c) else LONE
    rate = schedule.rate * min(resident / schedule.resident, 1) ** lone
    return replace(schedule, resident=resident, rate=rate, is_bound=True)


def is_long_sum(schedule: SimtSchedule | MmaSchedule, parts: int) -> bool:
    """Tell whether all blocks add the parts of a tile: the last one alone would take longer."""
    block_m, block_n, _ = schedule.block
    return parts * block_m * block_n > LONG_SUM


def time_of_waves(
    blocks: int, each: float, resident: int, target: Target, lone: float = LONE, unit: int = 1
) -> float:
    """Estimate the time of so many blocks, some resident in a processor together."""
    processors = target.multiprocessors
    waves, rest = divmod(blocks, processors * resident)
    time = waves * resident * each
    beside = round_up(ceil_div(rest, processors), unit)
    if beside:
        slower = (resident / beside) ** lone
        time += beside * each * slower
    return time
