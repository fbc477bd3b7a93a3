"""What kernels on Hopper that stream over scores share: tiles of rows, rings, masks, results.

A block has `groups` warpgroups of 64 rows, and `size` places of the stream at once. One warpgroup
more copies: what is streamed arrives in rings, what stays for a tile of rows may be held too. The
longest tiles of a mask come first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from picograd.code import TensorMap
from picograd.codegen.boxes import place_of, view_of
from picograd.codegen.layout import Layout, RowsOf, Swizzled, WgmmaAccumulator
from picograd.codegen.operands import Role, narrow, role, size_of
from picograd.codegen.stream_masks import edges, emptied, extreme, minimum_of, scaled
from picograd.codegen.streams import Product, Stream, binary, is_tile, left, read, replaced
from picograd.codegen.tile import Assign, Step, Store, Tile, TilePart, When
from picograd.codegen.tile_pipeline import CopyBox, Persistent, Pipeline, Teams
from picograd.dtype import DType
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Expr, const
from picograd.schedule.monoid import identity
from picograd.target import Target

ROWS = 64  # of a warpgroup
MEMORY = 200 << 10  # bytes of shared memory, for what is copied
MOST_STAGES = 4
CACHED = 24 << 20  # bytes, half of the second-level cache
SPAN = 64  # columns of a slab
WARPGROUP = 128  # threads


@dataclass(frozen=True, slots=True)
class Schedule:
    """How blocks work: see the module docstring; `registers` as in `Teams`."""

    groups: int
    size: int
    registers: tuple[int, int]


def head_axes(stream: Stream, itemsize: int) -> tuple[Axis, Axis]:
    """Cut the batch in groups whose streamed operands stay in the cache while all rows read them.

    In a group all longest tiles of rows come first: of a mask, the last ones are the shortest.
    """
    count = size_of(stream.batch)
    columns = sum(size_of(each.depth) for each in stream.scores)
    columns = max(columns, sum(size_of(each.columns) for each in stream.products))
    size = 2 * size_of(stream.over) * columns * itemsize
    most = max(CACHED // size, 1)
    group = max(n for n in range(1, min(count, most) + 1) if count % n == 0)
    return Axis("group", count // group), Axis("head", group)


class Frame:
    """This class holds the tiles of a block, and what is copied to them."""

    def __init__(self, stream: Stream, schedule: Schedule, target: Target) -> None:
        self.stream, self.schedule, self.target = stream, schedule, target
        first = stream.scores[0]
        self.dtype = stream.computes[first.number].dtype
        self.half = narrow(first.streamed).dtype
        self.size, self.height = schedule.size, ROWS * schedule.groups
        self.block = Axis("block", ceil_div(size_of(stream.over), self.size))
        self.tile = Axis("rows", ceil_div(size_of(stream.rows), self.height))
        self.row, self.place = Axis("row", self.height), Axis("place", self.size)
        turned = axis_index(self.tile) * -1 + (self.tile.size - 1)
        self.start = turned * self.height
        self.group, self.head = head_axes(stream, self.half.itemsize)
        flat = axis_index(self.group) * self.head.size + axis_index(self.head)
        self.batch = role(stream.batch, flat)
        self.rows = self.in_batch(stream.rows, self.start + axis_index(self.row))
        self.first = axis_index(self.block) * self.size
        self.over = self.in_batch(stream.over, self.first + axis_index(self.place))
        self.scored = self.fragment(self.size)
        self.tiles: dict[str, Tile] = {}
        self.copied: dict[tuple[int, Index, Index], str] = {}
        self.ring: list[CopyBox] = []
        self.held: list[CopyBox] = []
        self.factors: dict[int, float] = {}  # of results, that their tiles are without

    def in_batch(self, axes: tuple[Axis, ...], position: Index) -> Role:
        """Find the values of axes at a position, and those of the batch."""
        found = role(axes, position)
        return Role({**self.batch.values, **found.values}, found.conditions)

    # -- tiles ------------------------------------------------------------------------------------

    @property
    def point(self) -> tuple[Index, Index]:
        """Place of a score in its tile."""
        return axis_index(self.row), axis_index(self.place)

    @property
    def dims(self) -> tuple[Axis, Axis]:
        """Dimensions of the tile of scores."""
        return self.row, self.place

    def fragment(self, columns: int) -> WgmmaAccumulator:
        """Lay out a tile of the block's rows."""
        return WgmmaAccumulator(columns, self.schedule.groups)

    def add(self, name: str, shape: tuple[int, ...], layout: Layout, dtype: DType) -> str:
        """Add a register tile."""
        self.tiles[name] = Tile(name, shape, dtype, "register", layout)
        return name

    def add_rows(self, name: str, dtype: DType) -> str:
        """Add a register tile of one value a row."""
        return self.add(name, (self.height,), RowsOf(self.scored), dtype)

    def add_scores(self, name: str, dtype: DType) -> str:
        """Add a register tile of one value a score."""
        return self.add(name, (self.height, self.size), self.scored, dtype)

    def width(self, each: Product) -> int:
        """Count the columns of a product, whole slabs of them."""
        return round_up(size_of(each.columns), SPAN)

    def start_product(self, each: Product) -> Step:
        """Add the accumulator of a product, and start it."""
        column = Axis("column", self.width(each))
        shape = self.height, column.size
        name = self.add(f"value{each.number}", shape, self.fragment(column.size), self.dtype)
        return Assign(name, (self.row, column), const(0.0, self.dtype))

    def start_reduction(self, number: int) -> Step:
        """Add the rows of a reduction, and start them."""
        compute = self.stream.computes[number]
        name = self.add_rows(f"value{number}", compute.dtype)
        start = const(identity(str(compute.monoid), compute.dtype), compute.dtype)
        return Assign(name, (self.row,), start)

    # -- boxes ------------------------------------------------------------------------------------

    def streamed(self, operand: Expr, axes: tuple[Axis, ...]) -> str:
        """Find or add the ring of a streamed operand, which boxes bring."""
        return self.copy(operand, axes, self.stream.over, self.first, self.ring)

    def hold(self, operand: Expr, axes: tuple[Axis, ...]) -> str:
        """Find or add the tile of rows that stay for all of the stream."""
        return self.copy(operand, axes, self.stream.rows, self.start, self.held)

    def can_hold(self, operand: Expr, axes: tuple[Axis, ...]) -> bool:
        """Tell whether boxes can bring rows."""
        plain = narrow(operand)
        if plain.op != "load" or plain.dtype is not self.half:
            return False
        stream, size = self.stream, self.half.itemsize
        return view_of(plain.arg[1], axes, stream.rows, stream.batch, size) is not None

    def copy(
        self,
        operand: Expr,
        near: tuple[Axis, ...],
        far: tuple[Axis, ...],
        first: Index,
        copies: list[CopyBox],
    ) -> str:
        """Find or add the tile that boxes of an operand fill: `far` positions from `first` on."""
        plain = narrow(operand)
        if plain.op != "load":
            internal("an operand in boxes lies in memory", plain)
        slot, index = plain.arg
        itemsize = self.half.itemsize
        view = view_of(index, near, far, self.stream.batch, itemsize)
        if view is None:
            internal("an operand has other strides than boxes", plain)
        key = slot, substitute(index, dict.fromkeys(near, constant(0))), first
        if key in self.copied:
            return self.copied[key]
        rows = self.size if copies is self.ring else self.height
        layout = Swizzled((rows, round_up(size_of(near), SPAN)), itemsize)
        box = (layout.span, rows, *(1 for _ in view.wide))
        tensor = TensorMap(slot, self.half, view.offset, view.sizes, view.strides, box)
        name = self.copied[key] = f"boxes{len(self.copied)}"
        self.tiles[name] = Tile(name, layout.shape, self.half, "shared", swizzle=layout)
        slab = Axis("slab", layout.slabs)
        rest = [place_of(view, axis, self.batch.values[axis]) for axis in view.wide]
        at = (axis_index(slab) * layout.span, first, *rest)
        copies.append(CopyBox(name, tensor, at, slab))
        return name

    def fill_memory(self, values: Sequence[str]) -> None:
        """Give the rings, those of values too, as many stages as there is memory for.

        What is held has two where that takes a third of the memory at most.
        """
        held = self.bytes_of([each.tile for each in self.held])
        stages = 2 if 0 < held <= MEMORY // 6 else 1
        self.set_stages([each.tile for each in self.held], stages)
        rings = [*(each.tile for each in self.ring), *values]
        count = (MEMORY - held * stages) // self.bytes_of(rings)
        self.set_stages(rings, min(count, MOST_STAGES))

    def bytes_of(self, names: Sequence[str]) -> int:
        """Count the bytes of one stage of some tiles."""
        tiles = [self.tiles[name] for name in names]
        return sum(product(tile.shape) * tile.dtype.itemsize for tile in tiles)

    def set_stages(self, names: Sequence[str], count: int) -> None:
        """Say how many stages some tiles have."""
        for name in names:
            self.tiles[name] = replace(self.tiles[name], stages=count)

    # -- the block --------------------------------------------------------------------------------

    def part(self, before: Sequence[Step], pipeline: Pipeline) -> TilePart:
        """Write the program of a block: what starts a tile of rows, and the main loop."""
        body = (*before, *self.held, pipeline, *self.leave())
        points = self.group, self.tile, self.head
        count = product(axis.size for axis in points)
        block = Axis("blocks", min(count, self.target.multiprocessors))
        teams = Teams(1, WARPGROUP * self.schedule.groups, self.schedule.registers)
        loop = Persistent(points, block, teams, body, is_dealt=True)
        return TilePart((block,), tuple(self.tiles.values()), (loop,))

    def pipeline(self, values: Sequence[Step], steps: Sequence[Step]) -> Pipeline:
        """Write the main loop over the blocks that a mask shows."""
        first, stop = self.shown()
        return Pipeline(self.block, (*self.ring, *values), tuple(steps), first, stop)

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

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Where there are rows and places."""
        return (*self.rows.conditions, *self.over.conditions)

    def chosen(self, whole: Sequence[Step], edge: Sequence[Step]) -> list[Step]:
        """Take steps without masks and guards where a block needs neither, else others."""
        found = edges(self.stream, self.bounded, self.conditions)
        if not found or whole == edge:
            return list(whole)
        least = minimum_of(found)
        is_edge = least, min(least.lo, -1), -1
        is_whole = least, 0, max(least.hi, 0)
        last = When((is_edge,), tuple(edge))
        return [When((is_whole,), tuple(whole)), last] if whole else [last]

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
                value = read(f"value{number}", index[:1] if is_row else index, ref.dtype)
                factor = self.factors.get(number, 1.0)
                return value if factor == 1 else scaled(value, factor)

            roles = self.rows, beside
            slot, target, value = left(self.stream, number, roles, held)
            value = self.undivided(value, steps)
            dims = (self.row,) if each is None else (self.row, column)
            layout: Layout = RowsOf(self.scored)
            if each is not None:
                layout = self.fragment(column.size)
            conditions = (*self.rows.conditions, *beside.conditions)
            steps.append(Store(slot, target, dims, value, conditions, layout))
        return steps

    def undivided(self, value: Expr, steps: list[Step]) -> Expr:
        """Multiply by the inverse of what has one value a row, which is divided by once a row."""
        here = (axis_index(self.row),)

        def find(expr: Expr) -> Expr | None:
            is_quotient = expr.op in OPS and OPS[expr.op].linear == (0,) and len(expr.args) == 2
            if not is_quotient or not is_tile(expr.args[1]) or expr.args[1].arg[1] != here:
                return None
            over = expr.args[1]
            name = f"inverse_{over.arg[0]}"
            if name not in self.tiles:
                self.add_rows(name, over.dtype)
                one = const(1.0, over.dtype)
                steps.append(
                    Assign(name, (self.row,), Expr(expr.op, (one, over), None, over.dtype))
                )
            return binary("mul", expr.args[0], read(name, here, over.dtype))

        return replaced(value, find)
