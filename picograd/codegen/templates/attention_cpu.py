"""CPU attention: a task streams over blocks of keys, with its own queries in the lanes of vectors.

    task (batch, block of rows)
      pack the rows as panels [depth][lane]
      for a block of the stream: if a mask shows any of it
        copy the streamed operands and values
        for panel:  score[j][lane] = streamed @ row                     Dot
                    peak, sums, weights[j][lane]                        vectors of rows
                    result[v][lane] = result * factor + values^T @ weights     Dot
      store result / total

Scores stand with the stream in their rows and the rows of the result in their lanes: the maximum of
a row is one of vectors, what is streamed is read as it lies in memory, and weights are a panel as
they are. Blocks that a mask shows whole are written without it, and those it hides are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from picograd.codegen.dot import Dot
from picograd.codegen.operands import bind_roles, guarded, narrow, role, size_of
from picograd.codegen.stream_masks import bared, edges, emptied, extreme, minimum_of, settled
from picograd.codegen.streams import (
    Product,
    analyse,
    is_tile,
    left,
    placed,
    read,
    replaced,
    subtracted,
)
from picograd.codegen.templates.attention_cpu_across import Across
from picograd.codegen.templates.attention_cpu_operands import form_of, put_in_turn
from picograd.codegen.templates.attention_cpu_tiles import (
    Element,
    Tiles,
    shared_powers,
    turned_sum,
    with_turned_reads,
    without_masks,
)
from picograd.codegen.tile import Accumulate, Assign, For, Step, Store, TileKernel, TilePart, When
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant
from picograd.schedule.loop import Condition, Expr, Kernel, Part, binary, cast, const
from picograd.schedule.monoid import COMBINE, identity
from picograd.target import Target

PANELS = 4  # of a task: what is streamed is copied once for so many, twice as many of many tasks
MANY = 32  # tasks, that leave no worker idle
VECTORS = 2  # columns of the register block
Indices = tuple[Index, ...]


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write an attention kernel for a CPU."""
    parts = [Writer(kernel, part, target).part() for part in kernel.parts]
    return TileKernel(kernel, tuple(parts))


class Writer:
    """This class writes one part; see the module docstring."""

    def __init__(self, kernel: Kernel, part: Part, target: Target) -> None:
        stream = self.stream = analyse(kernel, part)
        first = stream.scores[0].number
        self.dtype = stream.computes[first].dtype
        self.form = form_of(stream, target)
        self.height = self.form.height
        count = size_of(stream.rows)
        length = size_of(stream.over)
        vector = max(target.vector_bytes // self.dtype.itemsize, 1)
        self.lanes = vector * VECTORS if count > vector else vector
        whole = round_up(length, self.height)
        self.size = min(self.form.block, whole)
        panels = ceil_div(count, self.lanes)
        tasks = ceil_div(panels, 2 * PANELS)
        if tasks * size_of(stream.batch) < MANY and not stream.across:
            tasks = ceil_div(panels, PANELS)
        self.panel = Axis("panel", ceil_div(panels, tasks))
        self.task = Axis("rows", ceil_div(panels, self.panel.size))
        self.block = Axis("block", ceil_div(length, self.size))
        self.lane = Axis("lane", self.lanes)
        self.place = Axis("place", self.size)
        self.tiles = Tiles()
        self.place_roles()
        self.across = Across(
            stream,
            self.tiles,
            self.rows,
            self.over,
            self.height,
            (self.block, self.place),
            (self.panel, self.lane),
        )

    def place_roles(self) -> None:
        """Say where the rows and places of a panel are, and what ends them."""
        stream = self.stream
        panel = axis_index(self.task) * self.panel.size + axis_index(self.panel)
        self.start = panel * self.lanes
        rows = role(stream.rows, self.start + axis_index(self.lane))
        row_stops = [placed(stop, rows) for stop in stream.row_stops]
        self.rows = replace(rows, conditions=(*rows.conditions, *row_stops))
        first = axis_index(self.block) * self.size
        over = role(stream.over, first + axis_index(self.place))
        stops = [placed(stop, over) for stop in stream.stops]
        self.over = replace(over, conditions=(*over.conditions, *stops))
        self.ends = [placed(end, self.rows) for end in stream.ends]

    # -- the task ---------------------------------------------------------------------------------

    def part(self) -> TilePart:
        """Write the program of a task: of all rows, where others are summed over them."""
        before = self.pack_rows()
        before += self.begin()
        packed = self.pack_stream()
        panels = For(self.panel, tuple(self.one_panel()))
        body = self.where_seen((*packed, panels), is_panel=False)
        after = For(self.panel, tuple(self.leave()))
        steps: tuple[Step, ...] = (*before, For(self.block, body), after)
        grid = (*self.stream.batch, self.task)
        if self.stream.across:
            steps = (*self.across.begin(), For(self.task, steps), *self.across.leave())
            grid = self.stream.batch
        tiles = tuple(self.tiles.every.values())
        return TilePart(grid, tiles, steps)

    def here(self, *index: Index) -> Indices:
        """Place of this panel in a tile of all of them."""
        return (axis_index(self.panel), *index)

    @property
    def point(self) -> Indices:
        """Place of a score in the tile of a panel."""
        return axis_index(self.place), axis_index(self.lane)

    def pack_rows(self) -> list[Step]:
        """Copy the operands that stay: [panel][depth][lane]."""
        found: list[Step] = []
        for score in self.stream.scores:
            key = "row", score.row
            if key in self.tiles.names:
                continue
            depth = Axis("depth", size_of(score.depth))
            name = f"row{len(found)}"
            self.tiles.names[key] = name
            deep = role(score.depth, axis_index(depth))
            value = cast(score.row, self.dtype)
            value = bind_roles(value, self.rows, deep)
            value = guarded(value, self.rows.conditions)
            dims = self.panel, self.lane, depth
            found += self.form.panels(self.tiles, name, dims, value)
        return found + self.across.pack()

    def pack_stream(self) -> list[Step]:
        """Copy what is streamed: [place][depth], read as it is and as its transpose."""
        found: list[Step] = []
        every = [(score.streamed, score.depth, False) for score in self.stream.scores]
        every += [(each.value, each.columns, True) for each in self.stream.products]
        for operand, axes, is_value in every:
            key = self.key(operand, axes, is_value)
            if key in self.tiles.names:
                continue
            width = Axis("width", size_of(axes))
            name = f"streamed{len(found)}"
            self.tiles.names[key] = name
            beside = role(axes, axis_index(width))
            value = cast(operand, self.dtype)
            value = bind_roles(value, self.over, beside)
            value = guarded(value, self.over.conditions)
            dims = self.place, width
            found += self.form.places(self.tiles, name, dims, value, self.height, is_value)
        return found

    def key(self, operand: Expr, axes: Sequence[Axis], is_value: bool) -> tuple[str, Expr]:
        """Name a streamed operand, which may lie otherwise for a sum over its places."""
        kind = "turned" if is_value and self.form.is_paired else "streamed"
        return kind, self.tiles.plain(operand, axes, self.dtype)

    def columns(self, product: Product) -> Axis:
        """Make the axis of the columns of a product, whole register blocks of them."""
        count = size_of(product.columns)
        return Axis("column", round_up(count, self.height))

    def begin(self) -> list[Step]:
        """Start every maximum and sum."""
        stream = self.stream
        found: list[Step] = []
        for number in stream.reductions:
            compute = stream.computes[number]
            shape = self.panel.size, self.lanes
            name = self.tiles.add(f"value{number}", shape, compute.dtype)
            start = stream.start_of(number, self.rows)
            found.append(Assign(name, (self.panel, self.lane), start))
        for number in stream.early:
            compute = stream.computes[number]
            lanes = self.panel, self.lane
            found += turned_sum(self.tiles, number, compute, self.rows, lanes)
        for product in stream.products:
            column = self.columns(product)
            dims = self.panel, column, self.lane
            sizes = tuple(axis.size for axis in dims)
            name = self.tiles.add(f"value{product.number}", sizes, self.dtype)
            found.append(Assign(name, dims, const(0.0, self.dtype)))
        return found

    # -- masks ------------------------------------------------------------------------------------

    def bounded(self, index: Index, is_most: bool, is_panel: bool = True) -> Index:
        """Bound an index over the rows and places of a panel, or of all panels of a task."""
        values = {**self.rows.values, **self.over.values}
        free = {self.lane, self.place}
        if not is_panel:
            free.add(self.panel)
        return extreme(index, values, free, is_most)

    def where_seen(self, steps: Sequence[Step], is_panel: bool) -> tuple[Step, ...]:
        """Run steps if anything of the block is there, and a mask may show it."""
        needed: list[Condition] = []
        for index in emptied(self.stream):
            most = self.bounded(index, True, is_panel)
            if most.lo < 0:
                needed.append((most, 0, max(most.hi, 0)))
        stops = [stop for stop in self.over.conditions if axes_of(stop[0])]
        row_stops = [placed(stop, self.rows) for stop in self.stream.row_stops]
        for index, _, hi in (*self.ends, *row_stops, *stops) if is_panel else stops:
            least = self.bounded(index, False, is_panel)
            if least.hi > hi:
                needed.append((least, min(least.lo, hi), hi))
        count = size_of(self.stream.rows)
        if is_panel and self.start.hi >= count:
            needed.append((self.start, 0, count - 1))
        return (When(tuple(needed), tuple(steps)),) if needed else tuple(steps)

    # -- one panel --------------------------------------------------------------------------------

    def one_panel(self) -> tuple[Step, ...]:
        """Multiply, reduce and weigh the scores of a panel."""
        steps = self.multiply_scores()
        weights: dict[int, str] = {}
        conditions = (*self.rows.conditions, *self.over.conditions)
        found = edges(self.stream, partial(self.bounded, is_most=False), conditions)
        whole = self.weigh(True, weights)
        if found:
            least = minimum_of(found)
            edge = self.weigh(False, weights)
            is_whole = least, 0, max(least.hi, 0)
            is_edge = least, min(least.lo, -1), -1
            steps.append(When((is_whole,), tuple(whole)))
            steps.append(When((is_edge,), tuple(edge)))
        else:
            steps += whole
        steps += self.multiply_weights(weights)
        return self.where_seen(steps, is_panel=True)

    def multiply_scores(self) -> list[Step]:
        """Multiply what is streamed with the rows of a panel."""
        found: list[Step] = []
        zero = constant(0)
        for score in self.stream.scores:
            shape = self.size, self.lanes
            name = self.tiles.add(f"score{score.number}", shape, self.dtype)
            streamed = self.key(score.streamed, score.depth, False)
            group, row = self.groups(self.size)
            dot = Dot(
                name,
                self.tiles.names[streamed],
                self.tiles.names["row", score.row],
                round_up(size_of(score.depth), self.form.step),
                self.form.unit,
                a_origin=(row, zero),
                b_origin=self.here(zero, zero),
                acc_origin=(row, zero),
                block=(self.height, self.lanes),
                is_first=True,
            )
            found.append(For(group, (dot,)))
        return found

    def multiply_weights(self, weights: Mapping[int, str]) -> list[Step]:
        """Add the values of a block, transposed, times its weights."""
        found: list[Step] = []
        zero = constant(0)
        found += self.across.multiply(weights)
        is_paired = self.form.is_paired
        for product in self.stream.products:
            group, row = self.groups(self.columns(product).size)
            weight = weights[product.number]
            value = self.key(product.value, product.columns, True)
            if is_paired:
                pairs = f"{weight}_pairs"
                dims = self.place, self.lane
                found.append(put_in_turn(self.tiles, weight, pairs, dims))
                weight = pairs
            dot = Dot(
                f"value{product.number}",
                self.tiles.names[value],
                weight,
                self.size,
                self.form.unit,
                a_is_km=not is_paired,
                a_origin=(row, zero) if is_paired else (zero, row),
                b_origin=(zero, zero),
                acc_origin=self.here(row, zero),
                block=(self.height, self.lanes),
            )
            found.append(For(group, (dot,)))
        return found

    def groups(self, rows: int) -> tuple[Axis, Index]:
        """Count register blocks along rows, and say where one begins."""
        group = Axis("group", rows // self.height)
        return group, axis_index(group) * self.height

    def weigh(self, is_whole: bool, weights: dict[int, str]) -> list[Step]:
        """Write everything between the products; `is_whole`: no mask or guard is needed."""
        stream = self.stream
        steps: list[Element] = []
        known: dict[Expr, Expr] = {}  # bodies that are in tiles
        if stream.peak is not None:
            steps += self.find_peak(stream.peak, is_whole, known)
        else:
            steps += self.share_powers(is_whole, known)
        for number in stream.sums:
            compute = stream.computes[number]
            body, monoid = compute.body, str(compute.monoid)
            value = self.body(body, monoid, is_whole, known)
            value = self.kept(f"element{number}", value, steps)
            known[settled(body) if is_whole else bared(body)] = value
            steps += self.add(number, value)
        for product in stream.weighed:
            weight = without_masks(stream, cast(product.weight, self.dtype))
            weight = narrow(weight) if self.form.is_paired else weight
            value = self.body(weight, "sum", is_whole, known)
            name = weights.get(product.number, f"weight{product.number}")
            is_new = product.number not in weights
            is_own = len(stream.weighed) == 1 or value in known.values()
            if is_tile(value) and is_new and is_own:
                name = value.arg[0]  # what masks hide at edges is taken out of it there
            weights[product.number] = name
            if is_tile(value) and value.arg[0] == name:
                continue
            value = self.kept(name, value, steps, is_copied=True)
            known[settled(weight) if is_whole else bared(weight)] = value
        conditions = (*self.rows.conditions, *self.over.conditions)
        dims = self.place, self.lane
        return with_turned_reads(self.tiles, steps, dims, conditions) + self.repair()

    def share_powers(self, is_whole: bool, known: dict[Expr, Expr]) -> list[Element]:
        """Compute exponentials that several weights are made of once."""
        steps: list[Element] = []
        for power in shared_powers(self.stream, settled if is_whole else bared):
            value = self.body(power, "sum", is_whole, known)
            known[power] = self.kept(f"power{len(known)}", value, steps)
        return steps

    def kept(
        self, name: str, value: Expr, steps: list[Assign | Accumulate], is_copied: bool = False
    ) -> Expr:
        """Keep a value of every score of a panel in a tile, unless it is in one."""
        if is_tile(value) and not is_copied:
            return value
        if name not in self.tiles.every:
            self.tiles.add(name, (self.size, self.lanes), value.dtype)
        steps.append(Assign(name, (self.place, self.lane), value))
        return read(name, self.point, value.dtype)

    def body(self, body: Expr, monoid: str, is_whole: bool, known: Mapping[Expr, Expr]) -> Expr:
        """Write a body at one place of a panel: `known` parts of it are in tiles."""
        scores = {each.number for each in self.stream.scores}

        def find(expr: Expr) -> Expr | None:
            if expr in known:
                return known[expr]
            if expr.op != "ref":
                return None
            if expr.arg in scores:
                return read(f"score{expr.arg}", self.point, expr.dtype)
            if expr.arg in self.stream.early:
                row = self.here(self.point[1])
                return read(f"value{expr.arg}", row, expr.dtype)
            return read("safe", self.point[1:], expr.dtype)

        found = replaced(settled(body) if is_whole else bared(body), find)
        found = bind_roles(found, self.rows, self.over)
        conditions = (*self.rows.conditions, *self.over.conditions)
        if is_whole or not conditions or is_tile(found):
            return found
        fill = const(identity(monoid, found.dtype), found.dtype)
        return Expr("guard", (found, fill), conditions, found.dtype)

    def find_peak(self, number: int, is_whole: bool, known: dict[Expr, Expr]) -> list[Element]:
        """Find the greatest score so far, and by what sums of lower ones are scaled."""
        compute = self.stream.computes[number]
        dtype, lane = compute.dtype, axis_index(self.lane)
        steps: list[Element] = []
        value = self.body(compute.body, "max", is_whole, known)
        value = self.kept("edited", value, steps)
        known[settled(compute.body) if is_whole else bared(compute.body)] = value
        for name in ("greatest", "top", "safe", "factor"):
            self.tiles.add(name, (self.lanes,), dtype, "register")
        dims = (self.lane,)
        here = self.here(lane)
        before = read(f"value{number}", here, dtype)
        greatest = read("greatest", (lane,), dtype)
        top = read("top", (lane,), dtype)
        safe = read("safe", (lane,), dtype)
        less = binary("sub", before, safe)
        factor = Expr(self.stream.exponential, (less,), None, dtype)
        return [
            *steps,
            Accumulate("greatest", dims, (self.place,), "max", value),
            Assign("top", dims, binary(COMBINE["max"], before, greatest)),
            Assign("safe", dims, subtracted(top, top)),
            Assign("factor", dims, factor),
            Assign(f"value{number}", dims, top, here),
        ]

    def add(self, number: int, value: Expr) -> list[Element]:
        """Add the elements of a block to a sum, scaled if the peak changed."""
        compute, lane = self.stream.computes[number], axis_index(self.lane)
        dtype, monoid = compute.dtype, str(compute.monoid)
        name = self.tiles.add(f"part{number}", (self.lanes,), dtype, "register")
        before = read(f"value{number}", self.here(lane), dtype)
        if self.stream.is_repaired(number):
            factor = read("factor", (lane,), dtype)
            before = binary("mul", before, factor)
        part = read(name, (lane,), dtype)
        total = binary(COMBINE[monoid], before, part)
        return [
            Accumulate(name, (self.lane,), (self.place,), monoid, value),
            Assign(f"value{number}", (self.lane,), total, self.here(lane)),
        ]

    def repair(self) -> list[Step]:
        """Scale the products of weights whose peak changed."""
        steps: list[Step] = []
        lane = axis_index(self.lane)
        for product in self.stream.products:
            if not self.stream.is_repaired(product.number):
                continue
            column = self.columns(product)
            index = self.here(axis_index(column), lane)
            name = f"value{product.number}"
            before = read(name, index, self.dtype)
            factor = read("factor", (lane,), self.dtype)
            dims = column, self.lane
            steps.append(Assign(name, dims, binary("mul", before, factor), index))
        return steps

    # -- results ----------------------------------------------------------------------------------

    def leave(self) -> list[Step]:
        """Store rows, then products, with whatever is computed of them."""
        steps: list[Step] = []
        lane = axis_index(self.lane)
        products = {each.number for each in self.stream.products}
        for number, compute in enumerate(self.stream.computes):
            if compute.store is None or self.across.has(compute):
                continue
            product = self.stream.product_like(compute)
            axes = () if product is None else product.columns
            column = Axis("column", size_of(axes))
            beside = role(axes, axis_index(column))
            index = (axis_index(column), lane) if axes else (lane,)

            def held(number: int, ref: Expr, index: Indices = index) -> Expr:
                is_row = number not in products
                place = self.here(lane) if is_row else self.here(*index)
                return read(f"value{number}", place, ref.dtype)

            roles = self.rows, beside
            slot, target, value = left(self.stream, number, roles, held)
            dims = (self.lane, column) if axes else (self.lane,)
            steps.append(Store(slot, target, dims, value, self.rows.conditions))
        return steps
