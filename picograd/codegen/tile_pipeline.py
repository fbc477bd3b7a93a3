"""Steps of Tile IR for pipelines: copies of boxes, a ring of stages, blocks that stay.

    Persistent = points, block, teams, body     every block runs the body at many points of the grid
    Pipeline   = axis, produce, consume         one after the other in meaning, overlapped in time
    CopyBox    = tile, tensor, at, slab, ...    shared tile = boxes of a slot, 0 outside of it
    Join       = acc, partial, flags, ..., body adds up what blocks have of a point that they share
    BoxStore   = tensor, at, tile               how a `Store` leaves: shared memory, then boxes
    RowStore   = tile                           the same, then row by row

Their meaning is sequential: for every point, for every stage, produce, then consume. Who runs what
when is the linearizer's: on Hopper a warpgroup of its own runs the `produce` steps of all points,
as far ahead as the ring has stages, and teams of warpgroups run the rest. The tiles that `produce`
writes are rings of `Tile.stages`; only `consume` of the same pipeline may read them.
"""

from typing import Any

from picograd.code import TensorMap
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index
from picograd.schedule.loop import Condition, Expr, walk

Steps = tuple[Any, ...]  # of Tile IR: those of codegen/tile.py and these


@dataclass(frozen=True, slots=True)
class Teams:
    """Who runs the body of a `Persistent`: `count` teams of `threads` take points in turn.

    While one is in the main loop of its point, another stores its own. `registers` are those of a
    thread that produces and of one of a team.
    """

    count: int
    threads: int
    registers: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shares:
    """How points are dealt by their steps, where they are too few to keep all blocks busy.

    The `depth` steps of all points, one point after the other, fall into as many equal stretches
    as there are blocks. A block runs the body for each point that it has steps of, the last one
    first, with `first` and `stop` bound to where its steps of that point begin and end.
    """

    depth: int
    first: Axis
    stop: Axis

    def stretch(self, points: int, blocks: int, block: int) -> list[tuple[int, int, int]]:
        """List the points that a block has steps of: (point, first step, stop)."""
        low, high = (number * points * self.depth // blocks for number in (block, block + 1))
        found = []
        for point in reversed(range(low // self.depth, ceil_div(high, self.depth))):
            start = point * self.depth
            found.append((point, max(low - start, 0), min(high - start, self.depth)))
        return found

    def first_block(self, point: Index, points: int, blocks: int) -> Index:
        """Find the block that has the first step of a point."""
        return ((point * self.depth + 1) * blocks - 1) // (points * self.depth)


@dataclass(frozen=True, slots=True)
class Persistent:
    """Run `body` at points block, block + blocks, ... of `points` (row-major, last axis fastest).

    `block` is the grid axis of the part: as many blocks as the device runs at once. If they are
    `is_dealt`, the points of each position of the first axis are dealt by themselves, in rounds:
    block after block in one round, back from the last block in the next. So all work on the same
    few, and a block that had more to do in one round has less to do in the other. Every two rounds
    the first block is another, so that whatever is long comes to all of them in turn. With `shares`
    the steps of points are dealt, and a `Join` of the body adds up what blocks have of a point.
    """

    points: tuple[Axis, ...]
    block: Axis
    teams: Teams
    body: Steps
    is_dealt: bool = False
    shares: Shares | None = None

    @property
    def rounds(self) -> int:
        """Rounds in which the points of a position of the first axis are dealt."""
        return ceil_div(product(axis.size for axis in self.points[1:]), self.block.size)

    @property
    def shift(self) -> int:
        """How many blocks on the first one is after two rounds: once around in all of them."""
        turns = self.points[0].size * self.rounds
        return max(2 * self.block.size // turns, 1)

    def points_of(self, block: int) -> list[int]:
        """List the points of a block."""
        count, blocks = product(axis.size for axis in self.points), self.block.size
        if not self.is_dealt:
            return list(range(block, count, blocks))
        groups = self.points[0].size
        found = []
        for turn in range(groups * self.rounds):
            group, number = divmod(turn, self.rounds)
            own = (block + turn // 2 * self.shift) % blocks
            place = number * blocks + (blocks - 1 - own if turn % 2 else own)
            if place < count // groups:
                found.append(group * (count // groups) + place)
        return found


@dataclass(frozen=True, slots=True)
class Join:
    """Run `body` in the block that has the last steps of a point, with all parts of it in `acc`.

    Any other block leaves its part in partial[block], a workspace tile. Where `last` holds, the
    parts of the blocks from `first` up to this one are added to `acc` in order, so that sums are
    the same in every run. `flags` numbers a zeroed workspace of int32, one for each warp that
    leaves its share of a part; they are left zero. Blocks wait for those of smaller numbers alone,
    which have left their part before they wait for anybody.
    """

    acc: str
    partial: str
    flags: int
    block: Axis
    first: Index
    last: Condition
    body: Steps


@dataclass(frozen=True, slots=True)
class Pipeline:
    """For every position of `axis`: run `produce`, then `consume`.

    From `first` on and before `stop`, if there are such: 0 or more, and at most the axis' size.
    If it `is_rotated`, the products at the end of `consume` may run beside those that begin the
    next position: they alone read their boxes, and the first ones touch nothing that they do.
    """

    axis: Axis
    produce: Steps
    consume: Steps
    first: Index | None = None
    stop: Index | None = None
    is_rotated: bool = False


@dataclass(frozen=True, slots=True)
class CopyBox:
    """Each slab of a tile = the box of a slot from `at` on (nearest dimension first), 0 outside.

    `slab` numbers the slabs. Of a map with windows: `at` is where the first window begins, and
    `offsets` are those of the elements from there, in every window the same. So many neighbouring
    blocks as are `together` want the same boxes at the same points: each brings a part to all.
    If it `is_kept`, boxes are the same at all points: each position has a stage, filled once.
    """

    tile: str
    tensor: TensorMap
    at: tuple[Index, ...]
    slab: Axis
    offsets: tuple[Index, ...] = ()
    together: int = 1
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class BoxStore:
    """A `Store` of a whole block tile whose element [0, 0] lies `at` a place of `tensor`.

    Each warp gathers 16 rows and 128 bytes of columns in a slot of the shared `tile`, a ring of its
    own, and the copy engine takes them from there; what lies outside of the array is not stored.
    If it `is_rolled`, slots hold the rounded product first, of all parts at once, and a loop
    computes from them what is stored.
    """

    tensor: TensorMap
    at: tuple[Index, ...]
    tile: str
    is_rolled: bool = False


@dataclass(frozen=True, slots=True)
class RowStore:
    """A `Store` of a whole block tile whose rows no box can have, as they begin anywhere.

    Each warp gathers 16 rows and 128 bytes of columns in its slot of the shared `tile`, and stores
    them row by row: a lane an element. If the rounded product is all that an expression reads of
    the accumulator, slots hold that, and the rest is computed as rows are stored.
    """

    tile: str


def rounded_product(expr: Expr) -> Expr | None:
    """Find the rounded accumulator in an expression; None if it reads another, or more than it."""
    read = [each for each in walk(expr) if each.op == "tile"]
    found = [each for each in walk(expr) if is_rounded_product(each)]
    return found[0] if len(read) == len(found) == 1 else None


def is_rounded_product(expr: Expr) -> bool:
    """Tell whether an expression is an accumulator, rounded: of fewer bits than what it is of."""
    if len(expr.args) != 1 or expr.args[0].op != "tile":
        return False
    return expr.dtype.is_float and expr.dtype.bits == 16 < expr.args[0].dtype.bits
