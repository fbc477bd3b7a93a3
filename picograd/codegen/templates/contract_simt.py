"""Schedules of products without tensor cores, and an estimate of how long each takes.

A row of `SCHEDULES` is a tile; the estimate says how many times processors multiply one, how full
the last wave is, and what it takes to add the parts where K is split over blocks.
"""

from dataclasses import replace

from picograd.codegen.operands import Contraction
from picograd.codegen.tensor_core import SimtSchedule
from picograd.dtype import DType
from picograd.helpers import ceil_div
from picograd.target import Target

THREADS = 16, 16
# Rates, and what is below, fit 16 products in all tiles and splits on an H200
# (docs/records/0011-products): what is chosen takes 0.1 % longer than the best, on average. Fewer
# threads, with more registers each, multiply as fast, but bring the patches of images more slowly.
SCHEDULES = (
    SimtSchedule((256, 128, 16), THREADS, 4, 2, rate=0.92),
    SimtSchedule((192, 128, 16), THREADS, 4, 2, rate=0.915),
    SimtSchedule((128, 64, 16), THREADS, 4, 2, resident=2, rate=0.79),
    SimtSchedule((64, 128, 16), THREADS, 4, 2, resident=2, rate=0.74),
    SimtSchedule((64, 64, 16), THREADS, 4, 2, resident=3, rate=0.62),
)
DOUBLE = SimtSchedule((64, 64, 8), THREADS, 2, 2, resident=2)
FILL = 4  # to begin and to store a tile: as so many positions of K
ADDED = 80  # to leave a part of a tile in memory, and to add it
LONE = 0.35  # exponent: fewer blocks than can be resident keep a processor less busy
MOST_SPLITS, LEAST_STEPS = 64, 4  # blocks that share K, and steps that each has of it


def sorted_options(
    c: Contraction, dtype: DType, majors: tuple[bool, bool], target: Target
) -> list[SimtSchedule]:
    """List the schedules of a dtype, 16-byte vectors of each operand, the fastest first."""
    found = (DOUBLE,) if dtype.itemsize == 8 else SCHEDULES
    a, b = majors
    options = [replace(each, a_is_k_major=a, b_is_k_major=b) for each in found]

    def best(schedule: SimtSchedule) -> float:
        return cost(c, schedule, split_count(c, schedule, target), target)

    return sorted(options, key=best)


def split_count(c: Contraction, schedule: SimtSchedule, target: Target) -> int:
    """Count the blocks that best share a tile."""
    steps = ceil_div(c.sizes[3], schedule.block[2])
    most = max(1, min(steps // LEAST_STEPS, MOST_SPLITS))
    return min(range(1, most + 1), key=lambda splits: cost(c, schedule, splits, target))


def cost(c: Contraction, schedule: SimtSchedule, splits: int, target: Target) -> float:
    """Estimate the time; the unit is one product of two elements."""
    batch, m, n, k = c.sizes
    block_m, block_n, block_k = schedule.block
    rows, columns = ceil_div(m, block_m), ceil_div(n, block_n)
    steps = ceil_div(k, block_k)
    own = ceil_div(steps, splits)
    parts = ceil_div(steps, own)
    depth = own * block_k + FILL
    if parts > 1:
        depth += ADDED
    area = block_m * block_n
    each = area * depth / schedule.rate
    resident = schedule.resident
    processors = target.multiprocessors
    blocks = batch * rows * columns * parts
    waves, rest = divmod(blocks, processors * resident)
    time = waves * resident * each
    beside = ceil_div(rest, processors)
    if beside:
        slower = (resident / beside) ** LONE
        time += beside * each * slower
    return time
