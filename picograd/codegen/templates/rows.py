"""Rows: the steps by which one grid point reduces its rows; see reduce.py for the schemes."""

from collections.abc import Mapping, Sequence

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import balanced, guard, in_piece, loads_apart, rebind
from picograd.codegen.templates.rescaled_sums import below_piece, rescaled, sums_of
from picograd.codegen.templates.row_pieces import seen_at, stores_ahead
from picograd.codegen.templates.threads import Threads, is_expensive, loads_free_of
from picograd.codegen.templates.transposed import write_out
from picograd.codegen.tile import Accumulate, Assign, For, LastBlock, Step, Store, Tile
from picograd.dtype import DType
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axes, Axis, Index, axes_of, axis_index, constant, flatten
from picograd.schedule.loop import Compute, Condition, Conditions, Expr, Part, const, rewrite, walk
from picograd.schedule.monoid import identity

# A float sum longer than this is summed in pieces: LLVM keeps about 64 partial sums of a row, one
# for each lane of four vectors, but only one partial sum of a column.
# A sum over all rows has one.
ROW_PIECE, COLUMN_PIECE, GRAND_PIECE = 8192, 4096, 256
KEPT_ELEMENTS = 16384  # of a row, in the first-level cache
KEPT_REGISTERS = 32  # of one CUDA thread


def is_across(part: Part, compute: Compute) -> bool:
    """Tell whether a compute is a sum over all rows, for each element, or computed of those."""
    return bool(part.rows and compute.axes) and set(part.rows).isdisjoint(compute.axes)


class Rows:
    """Collects tiles, workspaces and steps for one part.

    `axes` maps old axes to new ones, `dims` are the rows handled at once, of which only those
    where `conditions` hold exist. `values` holds, per compute, what stands for a reference to it.
    """

    def __init__(
        self,
        part: Part,
        dims: Axes,
        axes: Mapping[Axis, Index],
        conditions: Conditions,
        threads: Threads | None,
        is_column: bool,
    ) -> None:
        self.part, self.dims, self.axes, self.conditions = part, dims, axes, conditions
        self.threads, self.is_column = threads, is_column
        self.here = tuple(axis_index(axis) for axis in dims)
        self.tiles: list[Tile] = []
        self.workspaces: list[tuple[int, bool]] = []
        self.values: dict[int, Expr] = {}
        self.fixed: dict[tuple[int, Index], tuple[Expr, Step]] = {}  # read once a row
        self.stores: list[Store] = []
        self.columns: list[Accumulate] = []  # sums over all rows
        self.keeps_shared = False  # shared memory holds the rows that registers cannot
        self.pieces: Axes = ()  # loops over the pieces of long sums over all rows
        self.is_across = False  # a CPU stores elements only after a block of rows

    # -- levels -----------------------------------------------------------------------------------

    def level(self, compute: Compute) -> str:
        """Tell at which level a compute sits: grand, row, elem, column or window."""
        if self.part.rows and not compute.axes:
            return "grand"
        if is_across(self.part, compute):
            return "column"
        if compute.axes == self.part.rows:
            return "row"
        return "window" if compute.reduce else "elem"

    def inner(self, compute: Compute) -> Axes:
        """List the row-element axes of a compute, already cut."""
        return tuple(a for a in compute.axes if a not in self.part.rows)

    def body(self, compute: Compute) -> Expr:
        """Rewrite a body for the cut axes and the values made so far."""

        def replace(expr: Expr) -> Expr | None:
            return self.values[expr.arg] if expr.op == "ref" else None

        return rewrite(compute.body, self.axes, replace)

    def guarded(self, expr: Expr, fill: object, more: Sequence[Condition] = ()) -> Expr:
        """Guard an expression by the conditions of the dims and some more."""
        return guard(expr, fill, (*self.conditions, *more))

    def guarded_elements(self, expr: Expr, fill: object, more: Sequence[Condition] = ()) -> Expr:
        """Guard what is reduced; where a thread has several columns, each load by itself.

        What columns outside add up to is stored nowhere.
        """
        own, layout = self.conditions, self.layout()
        if self.is_column and layout and product(layout.steps) > 1:
            expr, own = loads_apart(expr, own)
        return guard(expr, fill, (*own, *more))

    def tile(self, name: str, inner: Sequence[Axis], dtype: DType, space: str = "register") -> Expr:
        """Make a tile over (*dims, *inner) and the expression that reads it here."""
        axes = self.order(inner)
        shape = tuple(a.size for a in axes)
        self.tiles.append(Tile(name, shape, dtype, space, self.layout(inner)))
        return Expr("tile", (), (name, tuple(axis_index(a) for a in axes)), dtype)

    def order(self, inner: Sequence[Axis]) -> Axes:
        """Order the axes of elements: on a CPU neighbouring columns go innermost."""
        is_inner = self.is_column and self.threads is None
        return (*inner, *self.dims) if is_inner else (*self.dims, *inner)

    def layout(self, inner: Sequence[Axis] = ()) -> Blocked | None:
        """Make the layout over (*dims, *inner), if threads share the work."""
        return self.threads.layout(inner) if self.threads else None

    # -- the whole scheme -------------------------------------------------------------------------

    def whole(self) -> list[Step]:
        """Write every compute of the dims' rows in order, stores last."""
        steps: list[Step] = []
        kept = self.kept()
        pending: list[tuple[int, Compute]] = []
        order = self.in_waves()
        readers = [place for place, number in enumerate(order) if self.reads_elements(number)]
        for position, number in enumerate(order):
            compute = self.part.computes[number]
            is_reduction = self.is_row_reduction(compute)
            over = compute.reduce if is_reduction else ()
            waits = {e.arg for e in walk(compute.body) if e.op == "ref"} & {n for n, _ in pending}
            if pending and (waits or over != pending[0][1].reduce):
                steps += self.reductions(pending, position <= readers[-1])
                pending = []
            if is_reduction:
                pending.append((number, compute))
                self.values[number] = self.tile(f"r{number}", (), compute.dtype)
                continue
            steps += self.other(number, compute, number in kept)
        steps += self.reductions(pending, False)
        if self.threads or not self.is_column:
            of_rows = [store for store in self.stores if self.columns and store.dims == self.dims]
            others = [store for store in self.stores if store not in of_rows]
            return [*steps, *of_rows, *self.columns, *others]
        return [*steps, *write_out(self.stores, self.tiles)]

    def is_row_reduction(self, compute: Compute) -> bool:
        """Tell whether a compute reduces whole rows."""
        return self.level(compute) == "row" and bool(compute.reduce)

    def in_waves(self) -> list[int]:
        """Order the computes so that row reductions that need not wait for one another follow.

        A wave is what can be computed once the row reductions of earlier waves are there; in each,
        the reductions come last.
        """
        computes, waves = self.part.computes, list[int]()
        for compute in computes:
            refs = {expr.arg for expr in walk(compute.body) if expr.op == "ref"}
            after = [waves[ref] + self.is_row_reduction(computes[ref]) for ref in refs]
            waves.append(max(after, default=0))

        def place(number: int) -> tuple[int, int]:
            length = product(axis.size for axis in computes[number].reduce)
            return waves[number], length * self.is_row_reduction(computes[number])

        return sorted(range(len(computes)), key=place)

    def reads_elements(self, number: int) -> bool:
        """Tell whether a compute reads elements of a row."""
        compute = self.part.computes[number]
        return self.is_row_reduction(compute) or self.level(compute) in ("elem", "window")

    def reductions(self, group: Sequence[tuple[int, Compute]], elements_follow: bool) -> list[Step]:
        """Write reductions that share their axes, and queue their stores.

        A CPU writes elements that are known by then in the loop that reads them for the last time.
        """
        if not group:
            return []
        exprs = []
        for _, compute in group:
            fill = identity(compute.monoid or "sum", compute.body.dtype)
            body = self.with_fixed(self.body(compute), compute.reduce)
            exprs.append(self.guarded_elements(body, fill))
        over = group[0][1].reduce
        early: list[Store] = []
        ahead, self.stores = stores_ahead(self.stores, self.dims)
        if self.threads is None and self.is_column and not elements_follow:
            early = [store for store in self.stores if store.dims == (*over, *self.dims)]
            self.stores = [store for store in self.stores if store not in early]
        steps = [*ahead, *self.accumulate(group, over, exprs, early)]
        for number, compute in group:
            self.store(compute, self.values[number], ())
        return steps

    def other(self, number: int, compute: Compute, is_kept: bool) -> list[Step]:
        """Write a compute that is no row reduction: nothing, if its readers recompute it."""
        level, inner = self.level(compute), self.inner(compute)
        if level == "column":
            return self.column_step(number, compute)
        expr = self.body(compute)
        if level == "grand":
            return self.grand_step(number, compute, expr)
        if level == "row" and not self.is_cheap(expr):
            is_kept = True
        if level == "window":
            value = self.tile(f"w{number}", inner, compute.dtype)
            fill = identity(compute.monoid or "sum", expr.dtype)
            layout = self.layout(inner)
            wide = layout and layout.with_alone(tuple(axis.size for axis in compute.reduce))
            dims, monoid = self.order(inner), compute.monoid or "sum"
            step: Step = Accumulate(
                f"w{number}", dims, compute.reduce, monoid, self.guarded(expr, fill), True, wide
            )
            self.values[number] = value
            self.store(compute, value, inner)
            return [step]
        if not is_kept:
            self.values[number] = expr
            self.store(compute, expr, inner)
            return []
        layout = self.layout(inner)
        is_long = layout is not None and layout.register_count > KEPT_REGISTERS
        space = "shared" if is_long else "register"
        value = self.values[number] = self.tile(f"v{number}", inner, compute.dtype, space)
        self.store(compute, value, inner)
        return [Assign(f"v{number}", self.order(inner), self.guarded(expr, 0), None, layout)]

    def is_cheap(self, expr: Expr) -> bool:
        """Tell whether an expression only renames a value."""
        return expr.op in ("tile", "const", "scalar")

    def kept(self) -> set[int]:
        """Find the per-element values worth keeping: read twice, and dear (or on a GPU)."""
        uses = [0] * len(self.part.computes)
        stored = [
            n for n, c in enumerate(self.part.computes) if c.store and self.level(c) == "elem"
        ]
        for compute in self.part.computes:
            for number in {e.arg for e in walk(compute.body) if e.op == "ref"}:
                uses[number] += 1
        found = set(stored) if len(stored) > 1 else set()
        for number, compute in enumerate(self.part.computes):
            is_used = uses[number] + bool(compute.store) > 1
            if self.level(compute) == "elem" and is_used:
                if self.threads or any(is_expensive(e.op) for e in walk(compute.body)):
                    found.add(number)
        return {n for n in found if self.fits(self.part.computes[n])}

    def fits(self, compute: Compute) -> bool:
        """Tell whether a tile of a compute's row elements is small enough to keep."""
        inner = self.inner(compute)
        if inner and self.is_across:
            return False
        layout = self.layout(inner)
        if layout is not None:
            is_shared = self.keeps_shared and compute.body.op == "load"
            return is_shared or layout.register_count <= KEPT_REGISTERS
        return product(a.size for a in (*self.dims, *inner)) <= KEPT_ELEMENTS

    def store(self, compute: Compute, value: Expr, inner: Axes) -> None:
        """Queue the store of a compute."""
        if not compute.store:
            return
        slot, index = compute.store[0], rebind(compute.store[1], self.axes)
        self.stores.append(self.store_step(slot, index, inner, value, seen_at(compute, self.axes)))

    def store_step(
        self, slot: int, index: Index, inner: Axes, value: Expr, more: Conditions
    ) -> Store:
        """Make a store; on a CPU the contiguous columns go innermost."""
        conditions = (*self.conditions, *more, *self.ends_inside(inner))
        if self.threads or not self.is_column:
            return Store(slot, index, (*self.dims, *inner), value, conditions, self.layout(inner))
        return Store(slot, index, (*inner, *self.dims), value, conditions)

    def ends_inside(self, inner: Axes) -> Conditions:
        """List the ends of the part along the elements of a row, where they are stored."""
        if self.threads:
            return ()
        ends = [end for end in self.part.ends if axes_of(end[0]) & set(inner)]
        return tuple((rebind(index, self.axes), lo, hi) for index, lo, hi in ends)

    def with_fixed(self, body: Expr, over: Axes) -> Expr:
        """Read what a GPU would load again for every element of a row from registers.

        Loads under a condition of their own stay where they are.
        """
        if self.threads is None:
            return body
        found: dict[Expr, Expr] = {}
        registers = self.threads.layout().register_count
        limit = KEPT_REGISTERS // registers
        for expr in loads_free_of(body, over):
            if expr.arg not in self.fixed:
                if len(self.fixed) >= limit:
                    continue
                name = f"f{len(self.tiles)}"
                read = self.tile(name, (), expr.dtype)
                value = self.guarded(expr, 0)
                self.fixed[expr.arg] = read, Assign(name, self.dims, value)
            found[expr] = self.fixed[expr.arg][0]
        return rewrite(body, {}, found.get)

    # -- accumulation -----------------------------------------------------------------------------

    def accumulate(
        self,
        group: Sequence[tuple[int, Compute]],
        over: Axes,
        exprs: Sequence[Expr],
        stored: Sequence[Store] = (),
    ) -> list[Step]:
        """Write reductions into the tiles r<number>, long float sums piece by piece.

        `stored` are stores of the elements, which a CPU writes in the loop that reduces them.
        """
        before, self.fixed = [step for _, step in self.fixed.values()], {}
        length = product(axis.size for axis in over)
        limit = COLUMN_PIECE if self.is_column else ROW_PIECE
        is_sum = any(c.monoid == "sum" and c.dtype.is_float for _, c in group)
        names = [f"r{number}" for number, _ in group]
        monoids = [compute.monoid or "sum" for _, compute in group]
        if self.threads or not is_sum or length < 2 * limit or over[0].size == 1:
            made = [
                Accumulate(name, self.dims, over, monoid, expr, True, self.layout(over))
                for name, monoid, expr in zip(names, monoids, exprs, strict=True)
            ]
            return [*before, *made, *stored]
        return self.in_pieces(group, over, exprs, max(1, limit * over[0].size // length), stored)

    def in_pieces(
        self,
        group: Sequence[tuple[int, Compute]],
        over: Axes,
        exprs: Sequence[Expr],
        chunk: int,
        stored: Sequence[Store] = (),
    ) -> list[Step]:
        """Write sums of pieces: for piece: part = sum over a piece; total += part."""
        size = over[0].size
        chunk = balanced(size, chunk)
        piece, within = (Axis("piece", ceil_div(size, chunk)), Axis(f"{over[0].name}_in", chunk))
        index = axis_index(piece) * chunk + axis_index(within)
        ragged = ((index, 0, size - 1),) if size % chunk else ()
        starts, parts, totals = list[Step](), list[Step](), list[Step]()
        for (number, compute), expr in zip(group, exprs, strict=True):
            monoid, dtype = compute.monoid or "sum", compute.dtype
            value = self.tile(f"p{number}", (), dtype)
            fill = identity(monoid, dtype)
            if expr.op == "guard":
                expr = Expr("guard", expr.args, (*expr.arg, *ragged), expr.dtype)
            elif ragged:
                expr = Expr("guard", (expr, const(fill, expr.dtype)), ragged, expr.dtype)
            expr = rewrite(expr, {over[0]: index})
            name = f"r{number}"
            starts.append(Assign(name, self.dims, const(fill, dtype)))
            axes = (within, *over[1:])
            parts.append(Accumulate(f"p{number}", self.dims, axes, monoid, expr, True))
            totals.append(Accumulate(name, self.dims, (), monoid, value, False))
        early = [in_piece(store, over[0], within, index, ragged) for store in stored]
        return [*starts, For(piece, (*parts, *early, *totals))]

    # -- sums over all rows -----------------------------------------------------------------------

    def column_step(self, number: int, compute: Compute) -> list[Step]:
        """Add the elements of the dims' rows to sums that go on from row to row (column_sums.py).

        What is computed of the sums waits until all rows are done.
        """
        if not compute.reduce:
            return []
        inner, name = self.inner(compute), f"c{number}"
        self.tile(name, inner, compute.dtype)
        value = self.guarded(self.body(compute), identity("sum", compute.dtype))
        axes, layout = self.order(inner), self.layout(inner)
        self.columns.append(Accumulate(name, axes, (), "sum", value, False, layout))
        return []

    # -- grand results ----------------------------------------------------------------------------

    def grand_step(self, number: int, compute: Compute, expr: Expr) -> list[Step]:
        """Add the rows of the dims to a grand result; its epilogues wait for the last block."""
        self.values[number] = Expr("tile", (), (f"g{number}", ()), compute.dtype)
        if not compute.reduce:
            return []
        monoid = compute.monoid or "sum"
        expr = self.guarded(expr, identity(monoid, expr.dtype))
        layout = self.threads.layout() if self.threads else None
        name = f"p{number}" if self.pieces else f"t{number}"
        return [Accumulate(name, (), self.dims, monoid, expr, False, layout)]

    def scalar_tile(self, name: str, dtype: DType) -> None:
        """Make a register tile of one element, known to every thread."""
        layout = Blocked((), (), ()) if self.threads else None
        self.tiles.append(Tile(name, (), dtype, "register", layout))

    def grand(self, points: int, point: Index) -> tuple[list[Step], list[Step]]:
        """Write what comes before and after all rows of a grid point, for grand results."""
        first, last, final = list[Step](), list[Step](), list[Step]()
        block = Axis("point", points)
        for number, compute in enumerate(self.part.computes):
            if self.level(compute) != "grand":
                continue
            dtype, monoid = compute.dtype, compute.monoid or "sum"
            self.scalar_tile(f"g{number}", dtype)
            if not compute.reduce:
                final.append(Assign(f"g{number}", (), self.body(compute)))
            else:
                self.scalar_tile(f"t{number}", dtype)
                start = const(identity(monoid, dtype), dtype)
                first.append(Assign(f"t{number}", (), start))
                name, total = f"q{number}", Expr("tile", (), (f"t{number}", ()), dtype)
                self.workspace_tile(name, (points,), dtype)
                last.append(Assign(name, (), total, (point,)))
                partial = Expr("tile", (), (name, (axis_index(block),)), dtype)
                layout = self.all_threads(points)
                final.append(Accumulate(f"g{number}", (), (block,), monoid, partial, True, layout))
            if compute.store:
                index = rebind(compute.store[1], self.axes)
                value = self.values[number]
                scalar = Blocked((), (), ()) if self.threads else None
                final.append(Store(compute.store[0], index, (), value, (), scalar))
        if not final:
            return [], []
        self.workspaces.append((4, True))
        counter = len(self.workspaces) - 1
        return first, [*last, LastBlock(counter, constant(0), points, tuple(final))]

    def all_threads(self, size: int) -> Blocked | None:
        """Make the layout in which every thread of a block shares one axis."""
        if self.threads is None:
            return None
        return Blocked((size,), (product(self.threads.threads) * self.threads.inner,), (1,))

    def workspace_tile(self, name: str, shape: tuple[int, ...], dtype: DType) -> None:
        """Make a tile in a workspace of its own."""
        number = len(self.workspaces)
        self.tiles.append(Tile(name, shape, dtype, "workspace", None, number))
        self.workspaces.append((product(shape) * dtype.itemsize, False))

    # -- the split scheme -------------------------------------------------------------------------

    def split(
        self, split: Axis, over: Axes, ragged: Conditions, point: Index, points: int
    ) -> list[Step]:
        """Write partial reductions of one split, then what the last block does."""
        reductions: list[tuple[int, Compute]] = []
        exprs: list[Expr] = []
        after: list[tuple[int, Compute]] = []
        sums = sums_of(self.part)
        for number, compute in enumerate(self.part.computes):
            if number in sums:
                self.values[number] = self.tile(f"r{number}", (), compute.dtype)
            elif self.level(compute) == "row" and compute.reduce:
                exprs.append(self.piece(compute, over, ragged))
                reductions.append((number, compute))
                self.values[number] = self.tile(f"r{number}", (), compute.dtype)
            elif self.level(compute) == "row":
                after.append((number, compute))
                self.values[number] = Expr("tile", (), (f"v{number}", self.here), compute.dtype)
            else:
                self.element_store(number, compute, over, ragged)
        early, self.stores = self.stores, []
        steps = self.accumulate(reductions, over, exprs, early)
        for number, below in sums.items():
            reductions.append((number, self.part.computes[number]))
            piece = below_piece(self.part.computes[number], below, self.values[below.peak])
            steps += self.accumulate(reductions[-1:], over, [self.piece(piece, over, ragged)])
        partials, final = self.combine(split, reductions, point, points)
        self.workspaces.append((4 * points, True))
        counter = len(self.workspaces) - 1
        for number, compute in reductions:
            self.store(compute, self.values[number], ())
        for number, compute in after:
            self.tile(f"v{number}", (), compute.dtype)
            final.append(Assign(f"v{number}", self.dims, self.guarded(self.body(compute), 0)))
            self.store(compute, self.values[number], ())
        body = (*final, *self.stores)
        return [*steps, *partials, LastBlock(counter, point, split.size, body)]

    def piece(self, compute: Compute, over: Axes, ragged: Conditions) -> Expr:
        """Write what is reduced of a piece of a row."""
        fill = identity(compute.monoid or "sum", compute.body.dtype)
        value = self.with_fixed(self.body(compute), over)
        return self.guarded_elements(value, fill, ragged)

    def element_store(self, number: int, compute: Compute, over: Axes, ragged: Conditions) -> None:
        """Note a per-element value of the split scheme, and queue its store."""
        expr = self.with_fixed(self.body(compute), over)
        self.values[number] = expr
        if compute.store:
            slot, index = compute.store[0], rebind(compute.store[1], self.axes)
            value = self.guarded(expr, 0, ragged)
            self.stores.append(self.store_step(slot, index, over, value, ragged))

    def combine(
        self, split: Axis, reductions: Sequence[tuple[int, Compute]], point: Index, points: int
    ) -> tuple[list[Step], list[Step]]:
        """Write the partial results to workspaces, and their combination in order."""
        partials: list[Step] = []
        final: list[Step] = []
        sums = sums_of(self.part)
        number_of = Axis("part", split.size)
        columns = flatten(self.here, [axis.size for axis in self.dims])
        width = product(axis.size for axis in self.dims)
        for number, compute in reductions:
            name, dtype = f"q{number}", compute.dtype
            self.workspace_tile(name, (points * split.size, width), dtype)
            row = point * split.size + axis_index(split)
            place = (row, columns)
            partials.append(Assign(name, self.dims, self.values[number], place, self.layout()))
            read = (point * split.size + axis_index(number_of), columns)
            partial = Expr("tile", (), (name, read), dtype)
            if number in sums:
                peak = sums[number].peak
                own = Expr("tile", (), (f"q{peak}", read), dtype)
                partial = rescaled(compute, sums[number], partial, own, self.values[peak])
            wide = self.layout((number_of,))
            monoid, over = compute.monoid or "sum", (number_of,)
            final.append(Accumulate(f"r{number}", self.dims, over, monoid, partial, True, wide))
        return partials, final
