"""Steps of Tile IR for pipelines: copies of boxes, a ring of stages, blocks that stay.

    Persistent = points, block, teams, body     every block runs the body at many points of the grid
    Pipeline   = axis, produce, consume         one after the other in meaning, overlapped in time
    CopyBox    = tile, tensor, at, slab, ...    shared tile = boxes of a slot, 0 outside of it
    BoxStore   = tensor, at, tile               how a `Store` leaves: shared memory, then boxes

Their meaning is sequential: for every point, for every stage, produce, then consume. Who runs what
when is the linearizer's: on Hopper a warpgroup of its own runs the `produce` steps of all points,
as far ahead as the ring has stages, and teams of warpgroups run the rest. The tiles that `produce`
writes are rings of `Tile.stages`; only `consume` of the same pipeline may read them.
"""

from dataclasses import dataclass
from typing import Any

from picograd.code import TensorMap
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index
from picograd.schedule.loop import Expr, walk

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
class Persistent:
    """Run `body` at points block, block + blocks, ... of `points` (row-major, last axis fastest).

    `block` is the grid axis of the part: as many blocks as the device runs at once. If they are
    `is_dealt`, the points of each position of the first axis are dealt by themselves, in rounds:
    block after block in one round, back from the last block in the next. So all work on the same
    few, and a block that had more to do in one round has less to do in the other.
    """

    points: tuple[Axis, ...]
    block: Axis
    teams: Teams
    body: Steps
    is_dealt: bool = False

    @property
    def rounds(self) -> int:
        """Rounds in which the points of a position of the first axis are dealt."""
        return ceil_div(product(axis.size for axis in self.points[1:]), self.block.size)

    def points_of(self, block: int) -> list[int]:
        """List the points of a block."""
        count, blocks = product(axis.size for axis in self.points), self.block.size
        if not self.is_dealt:
            return list(range(block, count, blocks))
        groups = self.points[0].size
        found = []
        for turn in range(groups * self.rounds):
            group, number = divmod(turn, self.rounds)
            place = number * blocks + (blocks - 1 - block if turn % 2 else block)
            if place < count // groups:
                found.append(group * (count // groups) + place)
        return found


@dataclass(frozen=True, slots=True)
class Pipeline:
    """For every position of `axis`: run `produce`, then `consume`.

    From `first` on and before `stop`, if there are such: 0 or more, and at most the axis' size.
    """

    axis: Axis
    produce: Steps
    consume: Steps
    first: Index | None = None
    stop: Index | None = None


@dataclass(frozen=True, slots=True)
class CopyBox:
    """Each slab of a tile = the box of a slot from `at` on (nearest dimension first), 0 outside.

    `slab` numbers the slabs. Of a map with windows: `at` is where the first window begins, and
    `offsets` are those of the elements from there, in every window the same.
    """

    tile: str
    tensor: TensorMap
    at: tuple[Index, ...]
    slab: Axis
    offsets: tuple[Index, ...] = ()


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
