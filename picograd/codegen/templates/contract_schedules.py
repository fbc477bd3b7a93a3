"""Schedules of products whose operands come in boxes, and estimates of how long they take.

A row of `SCHEDULES` says how blocks multiply; the rest weighs rows against one another: what the
tensor cores, the cache and the memory take, how full the last wave is, what is stored while nobody
multiplies.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from math import ceil

from picograd.codegen.boxes import ROW_BYTES, CopyBox, Side
from picograd.codegen.layout import WgmmaAccumulator
from picograd.codegen.operands import Contraction
from picograd.codegen.templates.contract_memory import elements_of, elements_stored, line_cost
from picograd.helpers import ceil_div, product, round_up
from picograd.late_methods import dataclass
from picograd.target import Target

Sides = tuple[Side, ...]  # of the left operand, and each right one

WARP_ROWS = 16  # that a warp stores at once
MOST_REGISTERS, MOST_REGISTERS_BUSY = 192, 128  # of an accumulator: beyond, values spill
DEEP = 6400  # K from which blocks that share a tile beat one that multiplies it alone
MOST_JOINED = 6  # blocks that share a tile
# Estimates measured on an H200 (docs/records/0011-products). To store a tile while nobody
# multiplies: as so much of K; and to compute something dear of it first.
ALONE, DEAR = 128, 512
# To leave a part of a tile, to wait for each of the others and to add it: as so much of K.
JOINED = 500
POWER = 0.9  # times as long: all processors at work wait for power and the cache, half of them less
LONE, FAR = 27, 1.9  # to bring an element where few processors do, and from memory
BESIDE = 0.3  # of the time to multiply is not hidden by what takes longer
WAITING = 0.08  # of what memory takes is not hidden where all warps multiply, then store
CACHE = 50 << 20  # bytes of the cache; what does not fit takes longer to bring
COLD = 1.35  # times as long, where there is half as much again


@dataclass(frozen=True, slots=True)
class BoxSchedule:
    """How blocks multiply: `teams` take tiles of `block` (m, n) in turn, `stages` are ahead.

    A team is `groups` warpgroups. `slots` hold what a warp is storing. `rate`: how fast a
    processor multiplies tiles of this size, compared with others. If `is_shared`, blocks share
    tiles: all have as many steps of K, wherever these begin. If `is_summed`, each stage is
    multiplied by itself and added to the rest in float32: tensor cores add products of 8-bit floats
    with 14 bits. So many blocks as are `together` multiply tiles one below the other, and bring
    their right operand, which is the same, each a part to all of them. With `sums` of two the
    columns of a tile are those of a product and, beside them, of its twin.
    """

    block: tuple[int, int]
    teams: int
    groups: int
    stages: int
    slots: int
    rate: float
    is_shared: bool = False
    is_summed: bool = False
    together: int = 1
    sums: int = field(default=1, repr=False)

    @property
    def results(self) -> tuple[int, int]:
        """Rows and columns of what is stored of a tile."""
        rows, columns = self.block
        return rows, columns // self.sums

    @property
    def layout(self) -> WgmmaAccumulator:
        """Layout of the accumulator of a team."""
        return WgmmaAccumulator(self.block[1], self.groups, self.block[0] // 64 // self.groups)

    @property
    def stored(self) -> WgmmaAccumulator:
        """Layout of what is stored of a tile."""
        return replace(self.layout, n=self.results[1])

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128 * (1 + self.teams * self.groups)

    @property
    def parts(self) -> int:
        """Pieces in which a warp stores its share of a tile of 16-bit numbers."""
        return self.layout.stacked * ceil_div(2 * self.results[1], ROW_BYTES)

    def with_slots(self) -> "BoxSchedule":
        """Give each piece a slot, at the cost of stages."""
        warps = 4 * self.teams * self.groups
        slot_bytes = warps * WARP_ROWS * ROW_BYTES
        stage_bytes = sum(self.block) * ROW_BYTES
        more = max(0, self.parts - self.slots)
        stages = self.stages - ceil_div(more * slot_bytes, stage_bytes)
        return replace(self, slots=self.parts, stages=stages)

    def with_twins(self) -> "BoxSchedule":
        """Let half of the columns be those of a twin; slots go round in what is stored."""
        found = replace(self, sums=2)
        slots = min(found.slots, found.parts)
        return replace(found, slots=slots)

    @property
    def places(self) -> int:
        """Places for products of a stage: two where one is added while the next is multiplied."""
        return 2 if 3 * self.layout.register_count <= MOST_REGISTERS else 1

    @property
    def registers(self) -> tuple[int, int]:
        """Registers of a thread that copies and of one that multiplies: 65,536 in all."""
        return (40, 232) if self.teams * self.groups == 2 else (0, 0)


# Rates of long runs on an H200, where the power limit slows the clock.
SCHEDULES = (
    BoxSchedule((128, 192), 2, 1, 4, 3, 1.0),
    BoxSchedule((128, 128), 2, 1, 6, 2, 0.985),
    BoxSchedule((64, 128), 1, 1, 8, 2, 0.9),
    BoxSchedule((64, 192), 2, 1, 5, 3, 0.75),
    BoxSchedule((128, 256), 1, 2, 4, 2, 0.985),
    BoxSchedule((128, 64), 2, 1, 8, 2, 0.6),
    BoxSchedule((64, 64), 1, 1, 10, 1, 0.6),
    BoxSchedule((192, 96), 1, 3, 5, 1, 0.87),
    BoxSchedule((128, 160), 1, 2, 5, 1, 0.94),
    BoxSchedule((64, 256), 2, 1, 4, 2, 0.75),
    BoxSchedule((256, 128), 1, 2, 4, 2, 0.93),
    BoxSchedule((128, 256), 1, 2, 4, 2, 0.97, together=2),
    BoxSchedule((64, 128), 1, 1, 8, 2, 0.6, together=2),
    BoxSchedule((128, 192), 1, 2, 4, 3, 0.93, is_shared=True),
    BoxSchedule((128, 128), 1, 2, 5, 2, 0.92, is_shared=True),
    BoxSchedule((64, 64), 1, 1, 10, 1, 0.5, is_shared=True),
    BoxSchedule((128, 192), 1, 2, 4, 3, 1.0, is_summed=True),
    BoxSchedule((128, 128), 1, 2, 5, 2, 0.97, is_summed=True),
    BoxSchedule((64, 128), 1, 1, 8, 2, 0.71, is_summed=True),
    BoxSchedule((128, 64), 1, 2, 8, 1, 0.72, is_summed=True),
    BoxSchedule((64, 64), 1, 1, 10, 1, 0.55, is_summed=True),
)


def suits(c: Contraction, target: Target) -> bool:
    """Tell whether boxes are full enough, and of tiles for enough processors.

    Where they are few, K is better split over blocks.
    """
    k = c.sizes[3]
    tiles = max(tile_count(c, schedule) for schedule in SCHEDULES)
    return MOST_JOINED * tiles >= target.multiprocessors or k <= DEEP


def may_share(c: Contraction, schedule: BoxSchedule, target: Target) -> bool:
    """Tell whether tiles are too few to go round, but not much too few, and an operand is cached.

    Blocks that are at other places of K lose what the cache would give where tiles are many, in
    several products, or where both operands are long; where tiles are fewer still, adding parts
    takes most of the time.
    """
    points, blocks = tile_count(c, schedule), target.multiprocessors
    batch, m, n, k = c.sizes
    shorter = min(m, n) * k
    is_cached = 2 * shorter <= CACHE
    is_few = points % blocks > 0 and points < 2 * blocks
    return batch == 1 and is_few and blocks <= MOST_JOINED * points and is_cached


def tile_count(c: Contraction, schedule: BoxSchedule) -> int:
    """Count the tiles of the output."""
    batch, m, n, _ = c.sizes
    return batch * rows_of_tiles(m, schedule) * ceil_div(n, schedule.block[1])


def rows_of_tiles(m: int, schedule: BoxSchedule) -> int:
    """Count the rows of tiles, those beyond the end that fill up a cluster among them."""
    return round_up(ceil_div(m, schedule.block[0]), schedule.together)


@dataclass(frozen=True, slots=True)
class Work:
    """What a tile takes besides its size: positions of K, and what is done with it.

    `blocks` are at work at once. They bring all of the right operand once of as many columns of
    tiles as are `kept`, whose tiles of the same rows run together. `is_dear`: they store a function
    of the product. A share of tiles is `empty`: zeros, which are stored while nobody multiplies.
    """

    depth: float
    blocks: int
    kept: int
    is_dear: bool
    empty: float = 0


def cost(c: Contraction, schedule: BoxSchedule, sides: Sides, work: Work) -> float:
    """Estimate the time: what the tensor cores, or the cache, take for one step of K, times K.

    The unit is one product of two elements, where tiles of 128 x 192 are multiplied.
    """
    points, blocks = tile_count(c, schedule), work.blocks
    share = 1 - work.empty
    full_points, depth = points * share, work.depth / share
    waves: float = ceil(full_points / blocks)
    more = 0
    if schedule.is_shared:
        waves = full_points / blocks
        more = JOINED * ceil_div(blocks, points)
    area = product(schedule.block)
    busy = full_points / (waves * blocks)
    full = 1 + POWER
    slowed = (1 + POWER * busy) / full
    multiplied = waves * area / schedule.rate * slowed
    block_m, block_n = schedule.block
    own_n = 0 if work.kept else block_n / schedule.together
    # What all of them bring, and what one can.
    a_line, b_line, *_ = lines_of(c, sides, points > blocks)
    each = block_m * a_line + own_n * b_line
    shared = each * full_points / blocks
    lone = (block_m + own_n) * LONE
    moved = max(shared, lone)
    waves_alone = waves if schedule.teams == 1 else 1
    each_alone = DEAR if work.is_dear else ALONE
    unhidden = waves_alone * each_alone + more
    alone = unhidden * area
    multiplying = multiplied * depth
    tensors = [side.copy.tensor for side in sides]
    stored = FAR * elements_stored(c, schedule.results[1], work.kept > 0)
    zeros = work.empty * stored
    passed = FAR * sum(map(elements_of, tensors)) + stored - zeros
    waited = WAITING * passed if schedule.groups > 1 else 0
    longest = max(multiplying, moved * depth, passed)
    return zeros + longest + BESIDE * multiplying + alone + waited


def beside(sides: Sequence[Side], schedule: BoxSchedule) -> tuple[Side, list[CopyBox]]:
    """Let the boxes of right operands lie one behind the other in a stage."""
    copies = [replace(side.copy, together=schedule.together) for side in sides]
    first, *others = sides
    if not others:
        return replace(first, copy=copies[0]), []
    rows, columns = first.layout.shape
    shape = rows, columns * len(sides)
    if first.is_k_major:
        shape = rows * len(sides), columns
    layout = replace(first.layout, shape=shape)
    size = first.layout.size
    behind = [replace(each, start=n * size) for n, each in enumerate(copies[1:], 1)]
    return replace(first, copy=copies[0], layout=layout), behind


def lines_of(c: Contraction, sides: Sides, is_again: bool) -> list[float]:
    """Estimate how long an element of each operand takes to bring.

    What is brought again, in later waves, has to be from memory if the cache has no room for all.
    """
    lines: list[float] = [line_cost(side) for side in sides]
    tensors = [side.copy.tensor for side in sides]
    if not is_again or any(tensor.windows for tensor in tensors):
        return lines
    batch, m, n, k = c.sizes
    read = m * k + k * n
    count = batch * (read + m * n)
    size = count * tensors[0].dtype.itemsize
    over = 2 * (size / CACHE - 1)
    longer = (COLD - 1) * min(max(over, 0), 1)
    factor = 1 + longer
    return [line * factor for line in lines]
