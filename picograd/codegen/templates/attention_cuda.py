"""Attention on Hopper: keys and values arrive in boxes, scores stay in the registers of their rows.

    for each tile of rows: pack the rows as left operands
      pipeline over blocks of the stream that a mask shows:
        scores = rows @ streamed^T                  wgmma, the left operand in registers
        peak, sums, weights                         elements of the fragment, four lanes a row
        result = result * factor + weights @ values wgmma, the weights in registers
      store result / total

One warpgroup copies; each of the others has 64 rows, and while one works on its elements another
multiplies. A fragment of scores lies in registers as the left operand of the next product wants it
(`WgmmaOperand`), so that nothing moves between the two. The longest tiles of a mask come first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from picograd.code import TensorMap
from picograd.codegen.boxes import place_of, view_of
from picograd.codegen.layout import Layout, RowsOf, Swizzled, WgmmaAccumulator, WgmmaOperand
from picograd.codegen.operands import bind_roles, cast, guarded, narrow, role, size_of
from picograd.codegen.stream_masks import (
    edges,
    emptied,
    extreme,
    hiding,
    minimum_of,
    settled,
    unmasked,
)
from picograd.codegen.streams import (
    Product,
    Stream,
    analyse,
    binary,
    is_ref,
    is_tile,
    left,
    read,
    replaced,
    subtracted,
    unconverted,
)
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Dot,
    Step,
    Store,
    Tile,
    TileKernel,
    TilePart,
    When,
)
from picograd.codegen.tile_pipeline import CopyBox, Persistent, Pipeline, Teams
from picograd.dtype import DType
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Expr, Kernel, const
from picograd.schedule.monoid import COMBINE, identity
from picograd.target import Target

ROWS = 64  # of a warpgroup
REGISTERS = {2: (40, 232), 3: (32, 160)}  # of a thread that copies, and of one that multiplies
STAGE_BYTES = 200 << 10  # of shared memory, for the ring
MOST_STAGES = 4
SPAN = 64  # columns of a slab
WARPGROUP = 128  # threads


@dataclass(frozen=True, slots=True)
class Schedule:
    """How blocks work: `groups` warpgroups of 64 rows, on `block` places of the stream at once."""

    groups: int
    block: int


# Wider blocks, or three warpgroups, gain at most 4 % of long streams of narrow heads, and lose a
# fifth of short ones (H200, docs/design/0021).
SCHEDULE = Schedule(2, 128)


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write an attention kernel of one part."""
    (part,) = kernel.parts
    stream = analyse(kernel, part)
    program = Writer(stream, SCHEDULE, target).part()
    threads = WARPGROUP * (1 + SCHEDULE.groups)
    return TileKernel(kernel, (program,), threads)


class Writer:
    """This class writes the part; see the module docstring."""

    def __init__(self, stream: Stream, schedule: Schedule, target: Target) -> None:
        self.stream, self.target = stream, target
        self.groups, self.size = schedule.groups, schedule.block
        (score,) = stream.scores
        self.score = f"score{score.number}"
        self.dtype = stream.computes[score.number].dtype
        self.half = narrow(score.streamed).dtype
        count = size_of(stream.rows)
        length = size_of(stream.over)
        self.height = ROWS * self.groups
        self.block = Axis("block", ceil_div(length, self.size))
        self.tile = Axis("rows", ceil_div(count, self.height))
        self.row = Axis("row", self.height)
        self.place = Axis("place", self.size)
        turned = axis_index(self.tile) * -1 + (self.tile.size - 1)
        start = turned * self.height
        self.rows = role(stream.rows, start + axis_index(self.row))
        self.first = axis_index(self.block) * self.size
        self.over = role(stream.over, self.first + axis_index(self.place))
        self.scored = WgmmaAccumulator(self.size, self.groups)
        self.tiles: dict[str, Tile] = {}
        self.rings: dict[tuple[int, Index], str] = {}
        self.copies: list[CopyBox] = []

    # -- the block --------------------------------------------------------------------------------

    def part(self) -> TilePart:
        """Write the program of a block."""
        packed = self.pack_rows()
        begun = self.begin()
        body = (packed, *begun, self.pipeline(), *self.leave())
        points = (self.tile, *self.stream.batch)
        count = product(axis.size for axis in points)
        block = Axis("blocks", min(count, self.target.multiprocessors))
        teams = Teams(1, WARPGROUP * self.groups, REGISTERS[self.groups])
        loop = Persistent(points, block, teams, body)
        tiles = tuple(self.tiles.values())
        return TilePart((block,), tiles, (loop,))

    @property
    def point(self) -> tuple[Index, Index]:
        """Place of a score in its tile."""
        return axis_index(self.row), axis_index(self.place)

    @property
    def dims(self) -> tuple[Axis, Axis]:
        """Dimensions of the tile of scores."""
        return self.row, self.place

    def add(self, name: str, shape: tuple[int, ...], layout: Layout, dtype: DType) -> str:
        """Add a register tile."""
        self.tiles[name] = Tile(name, shape, dtype, "register", layout)
        return name

    def add_rows(self, name: str, dtype: DType) -> str:
        """Add a register tile of one value a row."""
        return self.add(name, (self.height,), RowsOf(self.scored), dtype)

    def width(self, each: Product) -> int:
        """Count the columns of a product, whole slabs of them."""
        return round_up(size_of(each.columns), SPAN)

    def pack_rows(self) -> Step:
        """Round the rows to a left operand."""
        (score,) = self.stream.scores
        width = round_up(size_of(score.depth), SPAN)
        column = Axis("depth", width)
        layout = WgmmaOperand(WgmmaAccumulator(column.size, self.groups))
        shape = self.height, column.size
        name = self.add("rows", shape, layout, self.half)
        deep = role(score.depth, axis_index(column))
        value = bind_roles(score.row, self.rows, deep)
        conditions = (*self.rows.conditions, *deep.conditions)
        return Assign(name, (self.row, column), guarded(value, conditions))

    def ring(self, operand: Expr, axes: tuple[Axis, ...]) -> str:
        """Find or add the ring of a streamed operand, which boxes bring."""
        plain = narrow(operand)
        if plain.op != "load":
            internal("a streamed operand lies in memory", plain)
        slot, index = plain.arg
        itemsize = self.half.itemsize
        view = view_of(index, axes, self.stream.over, self.stream.batch, itemsize)
        if view is None:
            internal("a streamed operand has other strides than boxes", plain)
        start = dict.fromkeys(axes, constant(0))
        key = slot, substitute(index, start)
        if key in self.rings:
            return self.rings[key]
        width = round_up(size_of(axes), SPAN)
        layout = Swizzled((self.size, width), itemsize)
        box = (layout.span, self.size, *(1 for _ in view.wide))
        tensor = TensorMap(slot, self.half, view.offset, view.sizes, view.strides, box)
        name = self.rings[key] = f"ring{len(self.rings)}"
        self.tiles[name] = Tile(name, layout.shape, self.half, "shared", swizzle=layout)
        slab = Axis("slab", layout.slabs)
        rest = [place_of(view, axis, axis_index(axis)) for axis in view.wide]
        at = (axis_index(slab) * layout.span, self.first, *rest)
        self.copies.append(CopyBox(name, tensor, at, slab))
        return name

    def pipeline(self) -> Pipeline:
        """Write the main loop."""
        (score,) = self.stream.scores
        shape = self.height, self.size
        self.add(self.score, shape, self.scored, self.dtype)
        depth = self.tiles["rows"].shape[1]
        streamed = self.ring(score.streamed, score.depth)
        dot = Dot(self.score, "rows", streamed, depth, "wgmma", b_is_nk=True, is_first=True)
        weights: dict[int, str] = {}
        steps: list[Step] = [dot, *self.edit_block(), *self.weigh(weights)]
        for each in self.stream.products:
            value = self.ring(each.value, each.columns)
            weight = weights[each.number]
            steps.append(Dot(f"value{each.number}", weight, value, self.size, "wgmma"))
        self.fill_memory()
        first, stop = self.shown()
        return Pipeline(self.block, tuple(self.copies), tuple(steps), first, stop)

    def fill_memory(self) -> None:
        """Give the rings as many stages as there is memory for."""
        stages = [self.tiles[name] for name in self.rings.values()]
        size = sum(product(tile.shape) * tile.dtype.itemsize for tile in stages)
        count = min(STAGE_BYTES // size, MOST_STAGES)
        for tile in stages:
            self.tiles[tile.name] = replace(tile, stages=count)

    def begin(self) -> list[Step]:
        """Start every maximum and sum."""
        found: list[Step] = []
        for number in self.stream.reductions:
            compute = self.stream.computes[number]
            name = self.add_rows(f"value{number}", compute.dtype)
            monoid = str(compute.monoid)
            start = const(identity(monoid, compute.dtype), compute.dtype)
            found.append(Assign(name, (self.row,), start))
        for each in self.stream.products:
            column = Axis("column", self.width(each))
            layout = WgmmaAccumulator(column.size, self.groups)
            shape = self.height, column.size
            name = self.add(f"value{each.number}", shape, layout, self.dtype)
            found.append(Assign(name, (self.row, column), const(0.0, self.dtype)))
        return found

    # -- masks ------------------------------------------------------------------------------------

    def bounded(self, index: Index, is_most: bool = False) -> Index:
        """Bound an index over the rows and places of a block."""
        values = {**self.rows.values, **self.over.values}
        return extreme(index, values, self.dims, is_most)

    def shown(self) -> tuple[Index | None, Index | None]:
        """Find the blocks that a mask shows anything of: from the first, and before the stop."""
        first: Index | None = None
        stop: Index | None = None
        for index in emptied(self.stream):
            most = self.bounded(index, True)
            step = dict(most.terms).get(self.block, 0)
            rest = substitute(most, {self.block: constant(0)})
            if step < 0 and stop is None:  # rest + step * block >= 0
                stop = rest // -step + 1
            elif step > 0 and first is None:
                first = (rest * -1 + (step - 1)) // step
        return first, stop

    def edit_block(self) -> list[Step]:
        """Edit scores: with masks and guards only where the block needs them."""
        conditions = (*self.rows.conditions, *self.over.conditions)
        found = edges(self.stream, self.bounded, conditions)
        whole = self.edit(True)
        if not found:
            return whole
        least = minimum_of(found)
        is_edge = least, min(least.lo, -1), -1
        is_whole = least, 0, max(least.hi, 0)
        edge = When((is_edge,), tuple(self.edit(False)))
        return [When((is_whole,), tuple(whole)), edge] if whole else [edge]

    def edit(self, is_whole: bool) -> list[Step]:
        """Edit the scores of a block where they are, and hide those that are not seen."""
        body = self.peak.body
        if is_whole:
            body = settled(body)
        found = replaced(body, self.of_score)
        found = bind_roles(found, self.rows, self.over)
        if is_whole:
            found = unconverted(found)
            return [] if is_tile(found) else [Assign(self.score, self.dims, found)]
        conditions = (*self.rows.conditions, *self.over.conditions)
        fill = const(identity("max", found.dtype), found.dtype)
        if conditions:
            found = Expr("guard", (found, fill), conditions, found.dtype)
        return [Assign(self.score, self.dims, cast(found, self.dtype))]

    # -- elements of a block ----------------------------------------------------------------------

    @property
    def peak(self) -> Compute:
        """The maximum of a row."""
        if self.stream.peak is None:
            internal("scores are edited before the maximum of their row", self.stream)
        return self.stream.computes[self.stream.peak]

    def of_score(self, expr: Expr) -> Expr | None:
        """Read a score."""
        is_score = is_ref(expr, self.stream.scores[0].number)
        return read(self.score, self.point, expr.dtype) if is_score else None

    def weigh(self, weights: dict[int, str]) -> list[Step]:
        """Write the peak, the sums and the weights of a block whose scores are edited."""
        stream, edited = self.stream, self.peak.body
        score = read(self.score, self.point, edited.dtype)
        known = {edited: score}
        steps = self.find_peak(score)
        for number in stream.sums:
            compute = stream.computes[number]
            value = self.element(compute.body, known)
            steps.append(Assign(self.score, self.dims, value))
            value = read(self.score, self.point, compute.dtype)
            known = {compute.body: value}
            steps += self.add_up(number, value)
        for each in stream.products:
            name = f"weight{each.number}"
            shape = self.height, self.size
            self.add(name, shape, WgmmaOperand(self.scored), self.half)
            weights[each.number] = name
            value = self.element(each.weight, known)
            while value.args and OPS[value.op].keeps_value:
                (value,) = value.args  # it is rounded once, where it is packed
            steps.append(Assign(name, self.dims, value))
        return [*steps, *self.repair()]

    def element(self, body: Expr, known: Mapping[Expr, Expr]) -> Expr:
        """Write a body at one place: weights of what is hidden are 0 as exponentials of -inf."""

        def find(expr: Expr) -> Expr | None:
            if expr in known:
                return known[expr]
            inner = expr.args[0] if len(expr.args) == 1 else expr
            is_less = len(inner.args) == 2 and is_ref(inner.args[1], self.stream.peak)
            if is_less and OPS[expr.op].is_exponential:
                return self.exponential(known[inner.args[0]])
            return self.of_score(expr)

        hidden = hiding(self.peak.body)
        visible = unmasked(body, hidden)
        found = replaced(visible, find)
        return bind_roles(found, self.rows, self.over)

    def exponential(self, score: Expr) -> Expr:
        """Write exp(score - peak) as a power of 2: one multiply-add, one special function."""
        safe = read("safe", self.point[:1], score.dtype)
        less = binary("sub", self.scaled(score), safe)
        return Expr("quick_exp2", (less,), None, score.dtype)

    def scaled(self, score: Expr) -> Expr:
        """Multiply by the logarithm, base 2, of the base of the exponentials."""
        base = 2.0 if self.stream.exponential == "exp2" else math.e
        return binary("mul", score, const(math.log2(base), score.dtype))

    def find_peak(self, score: Expr) -> list[Step]:
        """Find the greatest score so far, and by what sums of lower ones are scaled."""
        dtype, rows = score.dtype, (self.row,)
        name, here = f"value{self.stream.peak}", self.point[:1]
        for each in ("greatest", "safe", "factor"):
            self.add_rows(each, dtype)
        before = read(name, here, dtype)
        greatest = read("greatest", here, dtype)
        layout = self.scored
        return [
            Accumulate("greatest", rows, (self.place,), "max", score, layout=layout),
            Assign("greatest", rows, binary(COMBINE["max"], before, greatest)),
            Assign("safe", rows, subtracted(greatest, self.scaled(greatest))),
            Assign("factor", rows, self.exponential(before)),
            Assign(name, rows, greatest),
        ]

    def add_up(self, number: int, value: Expr) -> list[Step]:
        """Add the elements of a block to a sum, scaled if the peak changed."""
        compute, here = self.stream.computes[number], self.point[:1]
        dtype, monoid = compute.dtype, str(compute.monoid)
        part = self.add_rows(f"part{number}", dtype)
        before = read(f"value{number}", here, dtype)
        if self.stream.is_repaired(number):
            factor = read("factor", here, dtype)
            before = binary("mul", before, factor)
        own = read(part, here, dtype)
        total = binary(COMBINE[monoid], before, own)
        layout = self.scored
        return [
            Accumulate(part, (self.row,), (self.place,), monoid, value, layout=layout),
            Assign(f"value{number}", (self.row,), total),
        ]

    def repair(self) -> list[Step]:
        """Scale the products of weights whose peak changed."""
        steps: list[Step] = []
        for each in self.stream.products:
            if not self.stream.is_repaired(each.number):
                continue
            column = Axis("column", self.width(each))
            name = f"value{each.number}"
            index = axis_index(self.row), axis_index(column)
            before = read(name, index, self.dtype)
            factor = read("factor", index[:1], self.dtype)
            steps.append(Assign(name, (self.row, column), binary("mul", before, factor)))
        return steps

    # -- results ----------------------------------------------------------------------------------

    def leave(self) -> list[Step]:
        """Store rows, then products, with whatever is computed of them."""
        steps: list[Step] = []
        row = axis_index(self.row)
        for number, compute in enumerate(self.stream.computes):
            if compute.store is None:
                continue
            each = self.stream.product_like(compute)
            axes = () if each is None else each.columns
            column = Axis("column", 1 if each is None else self.width(each))
            beside = role(axes, axis_index(column))
            index = (row,) if each is None else (row, axis_index(column))

            def held(number: int, ref: Expr, index: tuple[Index, ...] = index) -> Expr:
                is_row = number in self.stream.reductions
                return read(f"value{number}", index[:1] if is_row else index, ref.dtype)

            roles = self.rows, beside
            slot, target, value = left(self.stream, number, roles, held)
            dims = (self.row,) if each is None else (self.row, column)
            layout: Layout = RowsOf(self.scored)
            if each is not None:
                layout = WgmmaAccumulator(column.size, self.groups)
            conditions = (*self.rows.conditions, *beside.conditions)
            steps.append(Store(slot, target, dims, value, conditions, layout))
        return steps
