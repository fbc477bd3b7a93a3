"""Few rows on Hopper, as in decoding: blocks share the places of a stream, the last one adds up.

    block (head, split): peak, sums and products of its places, to memory
    the last block of a head, for each row and column:
      peak     = greatest of all splits
      result   = sum over splits of product * factor of its peak, over the same of the totals

Splits are dealt the blocks of a stream in turns, so that they are alike where a mask shows only a
part of it. They are added up in their order, whoever comes last.
"""

from collections.abc import Callable

from picograd.codegen.layout import Blocked, Layout, RowsOf
from picograd.codegen.operands import role, size_of
from picograd.codegen.streams import Stream, binary, left, read
from picograd.codegen.templates.attention_frame import SPAN, Frame
from picograd.codegen.tile import Accumulate, Assign, LastBlock, Step, Store, Tile
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Condition, Expr
from picograd.target import Target

Factor = Callable[[Expr, Expr], Expr]  # of a peak and the greatest one
MOST_SPLITS = 64
FILLING, ADDING = 2, 2  # blocks of a stream that a tile, and adding up, take as long as
LANES, LINES = 4, 8  # columns of a thread, rows at once


def split_count(stream: Stream, size: int, target: Target) -> int:
    """Choose in how many splits a stream of blocks of `size` places takes the least time."""
    stored = [compute for compute in stream.computes if compute.store is not None]
    if any(stream.product_like(compute) is None for compute in stored):
        return 1
    heads, blocks = size_of(stream.batch), ceil_div(size_of(stream.over), size)

    def time(splits: int) -> int:
        rounds = ceil_div(heads * splits, target.multiprocessors)
        each = ceil_div(blocks, splits) + FILLING
        return rounds * each + (ADDING if splits > 1 else 0)

    return min(range(1, min(blocks, MOST_SPLITS) + 1), key=time)


def leave_split(frame: Frame, factor: Factor) -> list[Step]:
    """Leave what a split found; the last one of a head adds up, and stores results."""
    return Splits(frame, factor).steps()


class Splits:
    """This class writes what comes after the main loop."""

    def __init__(self, frame: Frame, factor: Factor) -> None:
        self.frame, self.factor = frame, factor
        self.line = Axis("line", round_up(size_of(frame.stream.rows), LINES))
        self.part = Axis("part", frame.split.size)
        self.role = frame.in_batch(frame.stream.rows, axis_index(self.line))

    def steps(self) -> list[Step]:
        """Write the steps."""
        frame, stream = self.frame, self.frame.stream
        steps: list[Step] = []
        for number in stream.reductions:
            steps.append(self.leave(number, (frame.row,), RowsOf(frame.scored)))
        for each in stream.products:
            width = frame.width(each)
            column = Axis("column", width)
            steps.append(self.leave(each.number, (frame.row, column), frame.fragment(width)))
        body: list[Step] = []
        for number, compute in enumerate(stream.computes):
            if compute.store is not None:
                body += self.store(number)
        counter = len(frame.workspaces)
        frame.workspaces.append((4 * size_of(stream.batch), True))
        return [*steps, LastBlock(counter, frame.number, self.part.size, tuple(body))]

    def leave(self, number: int, dims: tuple[Axis, ...], layout: Layout) -> Step:
        """Store a value of the rows that there are."""
        frame, dtype = self.frame, self.frame.dtype
        count = size_of(frame.stream.batch)
        shape = count, self.part.size, self.line.size, *(axis.size for axis in dims[1:])
        place = len(frame.workspaces)
        frame.workspaces.append((product(shape) * dtype.itemsize, False))
        name = f"left{number}"
        frame.tiles[name] = Tile(name, shape, dtype, "workspace", workspace=place)
        index = tuple(map(axis_index, dims))
        value = read(f"value{number}", index, dtype)
        at = frame.number, axis_index(frame.split), *index
        return Assign(name, dims, value, at, layout, frame.rows.conditions)

    def found(self, number: int, *rest: Index) -> Expr:
        """Read what a split left; of lines behind the last row it is anything, and not stored."""
        at = self.frame.number, axis_index(self.part), axis_index(self.line), *rest
        return read(f"left{number}", at, self.frame.dtype)

    def store(self, number: int) -> list[Step]:
        """Add up whatever a result is made of, and store it."""
        frame, stream = self.frame, self.frame.stream
        each = stream.product_like(stream.computes[number])
        axes = each.columns if each is not None else ()
        column = Axis("column", frame.width(each) if each is not None else 1)
        dims = self.line, column
        threads, lanes = (LINES, SPAN // LANES), (1, LANES)
        shape = self.line.size, column.size
        layout = Blocked(shape, threads, lanes)
        added = Blocked((*shape, self.part.size), (*threads, 1), (*lanes, 1))
        index = tuple(map(axis_index, dims))
        steps: list[Step] = []

        def whole(source: int, monoid: str, value: Expr) -> Expr:
            name = f"whole{number}_{source}"
            if name not in frame.tiles:
                frame.tiles[name] = Tile(name, shape, frame.dtype, "register", layout)
                steps.append(Accumulate(name, dims, (self.part,), monoid, value, layout=added))
            return read(name, index, frame.dtype)

        peak = stream.peak

        def held(source: int, ref: Expr) -> Expr:
            greatest = None if peak is None else whole(peak, "max", self.found(peak))
            if source == peak and greatest is not None:
                return greatest
            rest = () if source in stream.reductions else index[1:]
            value = self.found(source, *rest)
            if peak is not None and greatest is not None and stream.is_repaired(source):
                value = binary("mul", value, self.factor(self.found(peak), greatest))
            return whole(source, str(stream.computes[source].monoid), value)

        beside = role(axes, axis_index(column))
        slot, target, value = left(stream, number, (self.role, beside), held)
        conditions: tuple[Condition, ...] = (*self.role.conditions, *beside.conditions)
        return [*steps, Store(slot, target, dims, value, conditions, layout)]
