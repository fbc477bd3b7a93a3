"""Choices of a CPU contraction: which side is N, block sizes, register block, tasks."""

from dataclasses import replace
from math import gcd

from picograd.codegen import cuts
from picograd.codegen.dot import Digit, InPlace, Runs
from picograd.codegen.operands import (
    Contraction,
    Windows,
    bind,
    by_stride,
    expr_axes,
    narrow,
    output_strides,
    products_of,
    size_of,
    stores,
    strides,
    swap,
)
from picograd.codegen.templates.register_block import register_block
from picograd.codegen.tile import Step, Tile
from picograd.dtype import DType
from picograd.errors import internal
from picograd.helpers import ceil_div, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Index,
    axes_of,
    axis_index,
    position_over,
    substitute,
    unflatten,
)
from picograd.schedule.loop import Expr, const, count_operations, indices_of, walk
from picograd.target import Target

SHORT, FARTHEST = 11, 4  # elements: taps that are no run, between windows that are one
CACHE_BYTES = 1 << 20  # second-level cache of one core: Zen 4 and 5, Sapphire Rapids have 1 MiB+
DEPTH = 96  # longest depth block: a panel of B, 64 columns of it, stays in L1
NARROW_DEPTH = 2 * DEPTH  # of panels of one or two vectors beside rows that are not packed
FEW_COLUMNS, FEWER_COLUMNS = 256, 32  # for which rows of a are read where they lie
SHARED_DEPTH = 384  # of tasks that share K: sums of each are written and read again
MOST_ROWS = 384  # of a block of A: more would only grow the block of results
MOVING = {"cast", "const", "scalar", "index"}  # of an operand: what packing does anyway
ONE_BY_ONE = 16  # cost of packing an element by itself, against a multiply-add
WORK_PER_TASK = 1 << 20  # multiply-adds that outweigh handing out a task (about 10 us)


@dataclass(frozen=True, slots=True)
class Columns:
    """The N side: its blocks, and the panels of `lanes` columns in which a block is packed."""

    cut: cuts.Cut
    panel: Axis  # loop over the panels of a block
    packs: tuple[cuts.Piece, ...]  # how to pack; position = panel * lanes + lane
    lanes: int
    is_looped: bool  # the pieces of `packs` walk one panel


@dataclass(frozen=True, slots=True)
class Image:
    """Columns that lie in an image as taps read them: templates/contract_shift.py."""

    shape: tuple[int, int]  # of its tile: channels, places
    taps: tuple[Digit, ...]  # see `Dot`
    place: Index  # where a panel begins
    column: Index  # where its results do
    width: int  # columns of all results
    runs: Runs  # of a panel
    steps: tuple[Step, ...]  # that fill it


@dataclass(frozen=True, slots=True)
class Patches:
    """How a block of results is computed without packing: templates/contract_patches.py."""

    tiles: tuple[Tile, ...]
    before: tuple[Step, ...]  # of a task
    steps: tuple[Step, ...]  # of a block of columns
    walked: tuple[Axis, ...]  # blocks of columns of a task


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything chosen about one contraction."""

    product: Contraction
    rows: cuts.Cut
    columns: Columns
    depth: cuts.Cut
    height: int  # rows of the register block
    task: tuple[Axis, ...]  # grid axes of the rows
    row_loop: Axis  # row blocks of one task
    part: Axis  # grid axis of the parts of K
    is_km: bool
    packs_all: bool
    tag: str = ""  # of the names of its tiles, where a task computes several products
    shares_a: bool = False  # the first product has packed its rows
    image: Image | None = None  # instead of packed columns
    patches: Patches | None = None  # instead of packed rows and columns
    a_place: InPlace | None = None  # where rows lie that are not packed
    b_place: InPlace | None = None  # and columns
    is_paired: bool = False  # by tiles of bfloat16: templates/contract_tiles.py

    @property
    def reach(self) -> tuple[list[cuts.Reach], list[cuts.Reach], list[cuts.Reach]]:
        """How far rows, columns and depths go, where their sizes vary."""
        product, ends = self.product, self.product.ends
        deep = cuts.depth_ends(product.a, product.b, product.depth)
        return (
            cuts.reaches(self.rows, product.rows, ends),
            cuts.reaches(self.columns.cut, product.columns, ends),
            cuts.reaches(self.depth, product.depth, deep),
        )

    @property
    def cells(self) -> tuple[Axis, ...]:
        """Grid axes of the blocks of results."""
        walked = self.patches.walked if self.patches is not None else ()
        columns = [axis for axis in self.columns.cut.outer if axis not in walked]
        return (*self.product.batch, *self.task, *columns)

    @property
    def a(self) -> str:
        """Name of the tile of its packed rows."""
        return "a" if self.shares_a else f"a{self.tag}"

    @property
    def b(self) -> str:
        """Name of the tile of its packed columns."""
        return f"b{self.tag}"

    @property
    def c(self) -> str:
        """Name of the tile of its results."""
        return f"c{self.tag}"

    @property
    def is_split(self) -> bool:
        """Tell whether several tasks share K."""
        return self.part.size > 1

    @property
    def is_first(self) -> bool:
        """Tell whether one block covers the depth of a task: sums need not be kept before it."""
        return self.depth.count == 1 and self.depth.size > 0 and not self.depth.guard

    @property
    def kept(self) -> int:
        """Rows of the block before that windows in a block take."""
        first = walked_windows(self.product)
        if first is None or not keeps_rows(first, self.rows):
            return 0
        rows = [axis for axis in self.product.rows if axis.size > 1]
        return first.kept * size_of(rows[rows.index(first.axis) + 1 :])

    @property
    def rows_padded(self) -> int:
        """Rows of the packed block: whole register blocks."""
        return round_up(self.rows.size, self.height)

    @property
    def width(self) -> int:
        """Columns of the block of results."""
        return self.image.width if self.image else self.panels * self.columns.lanes

    @property
    def panels(self) -> int:
        """Panels of one block of columns."""
        return self.columns.panel.size


def nearest(steps: dict[Axis, int]) -> int:
    """Smallest nonzero stride of axes that move."""
    return min((s for axis, s in steps.items() if axis.size > 1 and s), default=1 << 61)


def vector_lanes(dtype: DType, target: Target) -> int:
    """Elements of one vector register."""
    return max(target.vector_bytes // max(dtype.itemsize, 4), 1)


def orient(product: Contraction, target: Target) -> Contraction:
    """Choose which side is N (vectors) and which M (broadcast): the cheaper by `side_cost`."""
    if product.windows:  # of rows
        return with_orders(product)
    lanes = vector_lanes(product.dtype, target)
    turned = swap(product)
    is_turned = side_cost(turned, lanes) < side_cost(product, lanes)
    return with_orders(turned if is_turned else product)


def side_cost(product: Contraction, lanes: int) -> float:
    """Estimate instructions: multiply-adds, packing both operands, storing the result.

    B is transposed unless memory runs along N, element by element if it is no plain copy, and found
    by division if N is several axes whose last does not fill vectors; A is fine along M or K.
    """
    _, m, n, k = product.sizes
    near_a = nearest(strides(product.a, (*product.rows, *product.depth)))
    weight = packing_weight(product.b, product.columns, product.depth)
    b_step = 1.0 if weight == ONE_BY_ONE else weight / 2 / lanes
    b_step = 6.0 if is_awkward(product, lanes) else b_step
    out = nearest(output_strides(product, product.columns))
    is_row = out <= nearest(output_strides(product, product.rows))
    multiply = m * round_up(n, lanes) * k / lanes
    packing = 2 * (n * k * b_step + m * k * (1 / lanes if near_a == 1 else 1))
    if reads_rows_in_place(product):
        packing = 2 * n * k * b_step
    return multiply + packing + 2 * m * n * (1 / lanes if is_row else 1)


def reads_rows_in_place(product: Contraction) -> bool:
    """Tell whether rows of a are read where they lie, if blocks divide them.

    Rows of a large matrix are read in runs that are as long as a block is deep: one of few columns.
    Where sizes vary they are packed.
    """
    _, m, n, k = product.sizes
    is_cached = m * k * product.dtype.itemsize <= CACHE_BYTES
    is_few = n <= (FEW_COLUMNS if is_cached else FEWER_COLUMNS)
    is_matrix = product.a.op == "load" and not product.ends
    return is_few and is_matrix and not is_rowwise(product)


def with_orders(product: Contraction) -> Contraction:
    """Order the axes of each role for packing and storing."""
    a_steps = strides(product.a, (*product.rows, *product.depth))
    b_steps = strides(product.b, (*product.columns, *product.depth))
    if product.windows or is_rowwise(product):
        rows = by_stride(product.rows, a_steps)
    else:
        rows = by_stride(product.rows, output_strides(product, product.rows))
    if is_range(product, product.columns):
        columns = by_stride(product.columns, output_strides(product, product.columns))
    else:
        columns = by_stride(product.columns, b_steps)
    far = {x: (a_steps[x], b_steps[x]) for x in product.depth}
    # An axis that ends comes first: the sum stops there.
    deep = {cuts.single_axis(end) for end in cuts.depth_ends(product.a, product.b, product.depth)}
    order = sorted(
        product.depth, key=lambda x: (x.size > 1, x not in deep, (-far[x][0], -far[x][1]))
    )
    return replace(product, rows=rows, columns=columns, depth=tuple(order))


def is_range(product: Contraction, axes: tuple[Axis, ...]) -> bool:
    """Tell whether a role is as good as one axis: its flat position needs no division."""
    axes = by_stride(axes, output_strides(product, axes))
    if sum(axis.size > 1 for axis in axes) <= 1:
        return True
    flat = Axis("flat", size_of(axes))
    parts = unflatten(axis_index(flat), tuple(axis.size for axis in axes))
    values = dict(zip(axes, parts, strict=True))
    sums = dict.fromkeys(products_of(product.computes), const(0, product.dtype))
    outputs = stores(product, values, sums)
    exprs = [bind(product.b, values), bind(product.a, values), *(o.expr for o in outputs)]
    indices = [o.index for o in outputs]
    for expr in exprs:
        for node in walk(expr):
            indices += indices_of(node)
    return all(is_plain(index, flat) for index in indices)


def is_plain(index: Index, flat: Axis) -> bool:
    """Tell whether an index uses an axis outside div and mod only."""
    inner = [atom for atom, _ in index.terms if not isinstance(atom, Axis)]
    return not any(flat in axes_of(Index(((atom, 1),), 0)) for atom in inner)


def is_awkward(product: Contraction, lanes: int) -> bool:
    """Tell whether N is several axes whose last one does not fill whole vectors."""
    if is_range(product, product.columns):
        return False
    order = by_stride(product.columns, strides(product.b, product.columns))
    return order[-1].size % lanes != 0


def aligned_height(product: Contraction, height: int) -> int:
    """Let groups of rows divide a short axis that ends: those beyond its end are left out then."""
    rows = [axis for axis in product.rows if axis.size != 1]
    for axis in map(cuts.single_axis, product.ends):
        if axis is None or axis not in rows[1:]:
            continue
        length = size_of(rows[rows.index(axis) :])
        parts = [each for each in range(height // 2 + 1, height + 1) if length % each == 0]
        if length < 8 * height and parts:
            return parts[-1]
    return height


def is_rowwise(product: Contraction) -> bool:
    """Tell whether a is contiguous along M, so that it is packed [k][m]; ties: the longer run."""
    steps = strides(product.a, (*product.rows, *product.depth))

    def key(axes: tuple[Axis, ...]) -> tuple[int, int]:
        moving = [(steps[x], -x.size) for x in axes if x.size > 1 and steps[x]]
        return min(moving, default=(1 << 61, 0))

    if nearest({x: steps[x] for x in product.rows}) > 1:  # as under a stride
        return reads_along(product.a, product.rows, product.depth)
    return key(product.rows) < key(product.depth)


def packing_weight(expr: Expr, side: tuple[Axis, ...], depth: tuple[Axis, ...]) -> int:
    """Cost of packing an element of B against a multiply-add: vectors 2, turned round 4."""
    if reads_along(expr, side, depth):
        return 2
    has_one_axis = all(sum(axis.size > 1 for axis in axes) <= 1 for axes in (side, depth))
    return 4 if narrow(expr).op == "load" and has_one_axis else ONE_BY_ONE


def reads_along(expr: Expr, side: tuple[Axis, ...], depth: tuple[Axis, ...]) -> bool:
    """Tell whether to read an operand along a side rather than along K.

    Where windows overlap under a stride, taps are nearer to one another, but they are few.
    """
    steps = strides(expr, (*side, *depth))
    run = 1
    for axis in reversed(by_stride(depth, steps)):
        run *= axis.size if steps[axis] == run else 1
    beside, behind = (nearest({axis: steps[axis] for axis in axes}) for axes in (side, depth))
    return beside <= (FARTHEST if beside < run <= SHORT else behind)


def packed_operations(expr: Expr) -> int:
    """Operations of packing an element that are more than moving it."""
    return count_operations(node for node in walk(expr) if node.op not in MOVING)


def counts(low: int, high: int) -> list[int]:
    """Numbers of parts worth trying: all small ones, then steps of a quarter."""
    found = [low]
    while found[-1] < high:
        found.append(min(max(found[-1] + 1, found[-1] * 5 // 4), high))
    return found


def share_work(
    product: Contraction,
    least: tuple[int, int],
    most: tuple[int, int, int],
    block: tuple[int, int],
    threads: int,
) -> tuple[int, int, int]:
    """Choose into how many parts M, N and K are divided, by estimated time.

    Each part of M packs all of B again and the other way round; parts of K write partial sums.
    Threads idle while the last tasks run, and other work on the machine delays some of them.
    """
    _, m, n, k = product.sizes
    batch = max(product.sizes[0], 1)
    b_weight = packing_weight(product.b, product.columns, product.depth)
    b_weight += packed_operations(product.b)
    a_weight = 2 + packed_operations(product.a)
    best, found = 0.0, (least[0], least[1], 1)
    for rows in counts(least[0], most[0]):
        for columns in counts(least[1], most[1]):
            for parts in counts(1, most[2]):
                tasks = batch * rows * columns * parts
                whole = rows * round_up(ceil_div(m, rows), block[0])
                work = whole * columns * round_up(ceil_div(n, columns), block[1])
                work += b_weight * rows * n + a_weight * columns * m
                work += 6 * parts * m * n // max(k, 1) if parts > 1 else 0
                idle = ceil_div(tasks, threads) * threads / tasks
                time = work * idle * (1 + 0.25 * threads / tasks)
                if not best or time < best:
                    best, found = time, (rows, columns, parts)
    return found


def most_rows(product: Contraction, height: int, depth: int) -> int:
    """Longest block of A: a quarter of the cache.

    Where packing B is slow, A may overflow it: a row is streamed only once per panel.
    """
    is_slow = packing_weight(product.b, product.columns, product.depth) == ONE_BY_ONE
    rows = CACHE_BYTES // (1 if is_slow else 4) // (max(depth, 1) * product.dtype.itemsize)
    return max(min(rows, MOST_ROWS) // height, 1) * height


def choose(product: Contraction, target: Target, count: int = 1) -> Plan:
    """Choose blocks, panels and tasks for one contraction, or the first of `count` of its kind."""
    batch, m, n, k = product.sizes
    lanes, item = vector_lanes(product.dtype, target), product.dtype.itemsize * count
    height, vectors = register_block(m, n, lanes, target.registers, True)
    height = aligned_height(product, height)
    is_narrow = vectors <= 2 and reads_rows_in_place(product)
    depth = cuts.nested_cut(product.depth, NARROW_DEPTH if is_narrow else DEPTH)
    tasks = 4 * target.threads if target.threads > 1 else 1
    wanted = min(batch * m * n * k // WORK_PER_TASK, tasks)
    wanted //= max(batch, 1)
    packs_all = round_up(n, lanes) * max(k, 1) * item <= CACHE_BYTES
    tall = max(most_rows(product, height, depth.size), window_rows(product))
    walked = walked_windows(product)
    wide = CACHE_BYTES // 2 // (min(tall, m) * item)
    if not packs_all or depth.count > 1:
        wide = min(wide, CACHE_BYTES // 2 // (depth.size * item))
    least = 1 if packs_all and not is_nested(product) else ceil_div(m, tall), ceil_div(n, wide)
    deep_parts = cuts.nested_cut(product.depth, SHARED_DEPTH).count
    is_deep = count == 1 and deep_parts > 1 and not (packs_all and m > 8 * tall)
    is_deep = is_deep and (walked is None or walked.is_beside)
    parts = min(wanted, deep_parts) if is_deep else 1
    most = (min(wanted, ceil_div(m, height)), min(wanted, ceil_div(n, lanes)), max(parts, 1))
    block = height, lanes * vectors
    row_tasks, column_tasks, parts = share_work(product, least, most, block, target.threads)
    part = Axis("part", 1)
    if parts > 1:
        packs_all = False
        share = max(min(SHARED_DEPTH, ceil_div(k, parts)), SHARED_DEPTH // 4)
        depth = cuts.nested_cut(product.depth, share)
        depth, part = cuts.split_outer(depth, parts)
        tall = max(most_rows(product, height, depth.size), window_rows(product))
        row_tasks = max(row_tasks, ceil_div(m, tall))
    share = round_up(ceil_div(m, row_tasks), height)
    rows, task, loop = cut_rows(product, share, tall, height, packs_all)
    columns = cut_columns(product, ceil_div(n, column_tasks), lanes, vectors)
    height, is_km = min(height, rows.size), is_rowwise(product)
    return Plan(product, rows, columns, depth, height, task, loop, part, is_km, packs_all)


def alongside(other: Contraction, plan: Plan, number: int) -> Plan:
    """Plan one more product of the blocks of another; `number` counts them."""
    first = plan.product
    other = aligned(other, first)
    is_km = is_rowwise(other)
    is_deep_alike = other.depth == first.depth
    depth = plan.depth if is_deep_alike else cuts.nested_cut(other.depth, DEPTH)
    is_shared = is_deep_alike and other.a == first.a and is_km == plan.is_km
    more = str(number)
    return replace(plan, product=other, depth=depth, is_km=is_km, tag=more, shares_a=is_shared)


def aligned(other: Contraction, first: Contraction) -> Contraction:
    """Let a product count rows and columns as the first of its part does, and depth if it can.

    Operands that both products read are then equal.
    """
    c = with_orders(with_sides(other, first))
    c = replace(c, rows=first.rows, columns=first.columns)
    if [axis.size for axis in c.depth] != [axis.size for axis in first.depth]:
        return c
    shared = {own: axis_index(axis) for own, axis in zip(c.depth, first.depth, strict=True)}
    return replace(c, depth=first.depth, a=bind(c.a, shared), b=bind(c.b, shared))


def with_sides(other: Contraction, first: Contraction) -> Contraction:
    """Turn a product so that its rows are those of another: what is constant has no side."""
    rows, columns = set(first.rows), set(first.columns)
    for c in (other, swap(other)):
        is_apart = expr_axes(c.a).isdisjoint(columns) and expr_axes(c.b).isdisjoint(rows)
        if is_apart:
            return replace(c, rows=first.rows, columns=first.columns)
    internal("products of one part have the same sides", other)


def is_nested(product: Contraction) -> bool:
    """Tell whether blocks are of whole axes of M, and a part of another."""
    is_split = is_rowwise(product) and not is_range(swap(product), product.rows)
    return is_split or bool(product.windows)


def window_rows(product: Contraction) -> int:
    """Count the rows of a block that holds windows, at least."""
    first, rows = walked_windows(product), [axis for axis in product.rows if axis.size > 1]
    if first is None:
        return 1
    return min(first.step, first.axis.size) * size_of(rows[rows.index(first.axis) + 1 :])


def walked_windows(product: Contraction) -> Windows | None:
    """Find the windows along the first axis that has any: blocks hold all others whole."""
    along = {each.axis: each for each in product.windows}
    return next((along[axis] for axis in product.rows if axis in along), None)


def cut_rows(
    product: Contraction, share: int, tall: int, height: int, packs_all: bool
) -> tuple[cuts.Cut, tuple[Axis, ...], Axis]:
    """Divide M among tasks of about `share` rows, and a task into blocks of at most `tall`.

    Returns the cut, its grid axes and its loop.
    """
    is_km = is_rowwise(product)
    if is_nested(product):
        return cut_nested(product, share, tall, packs_all)
    blocks = ceil_div(share, tall) if packs_all else 1
    size = round_up(ceil_div(share, blocks), height)
    tasks = ceil_div(ceil_div(size_of(product.rows), size), blocks)
    task, loop = Axis("rows", tasks), Axis("row_block", blocks)
    return cuts.range_cut(product.rows, size, (task, loop), not is_km), (task,), loop


def cut_nested(
    product: Contraction, share: int, tall: int, packs_all: bool
) -> tuple[cuts.Cut, tuple[Axis, ...], Axis]:
    """Divide M along whole axes: a task walks the blocks of a cut axis, or has one block.

    It walks them if its windows take rows of the block before, and so as not to pack N for each.
    """
    first = walked_windows(product)
    if first is None or first.is_beside:
        most = max(min(share, tall), window_rows(product))
    else:
        most = tall
    rows = cuts.nested_cut(product.rows, most, {} if first is None else {first.axis: first.step})
    inner = rows.outer[-1:]
    is_shared = packs_all and size_of(inner) * rows.size <= share
    if inner and (is_shared or keeps_rows(first, rows)):
        return rows, rows.outer[:-1], inner[0]
    return rows, rows.outer, Axis("row_block", 1)


def keeps_rows(first: Windows | None, rows: cuts.Cut) -> bool:
    """Tell whether windows in a block take rows of the block before."""
    if first is None or not first.kept:
        return False
    return any(first.axis in piece.values for piece in rows.pieces)


def cut_columns(product: Contraction, width: int, lanes: int, vectors: int) -> Columns:
    """Divide N into blocks of about `width`, and a block into panels."""
    axes = product.columns
    if not is_range(product, axes) and axes[-1].size % lanes == 0:
        cut = cuts.nested_cut(axes, max(width, lanes))
        inner = gcd(*(piece.dims[-1].size if piece.dims else 1 for piece in cut.pieces))
        if inner % lanes == 0:
            return nested_columns(cut, lanes * (vectors if inner % (lanes * vectors) == 0 else 1))
    panel_width = lanes * min(vectors, ceil_div(width, lanes))
    block = round_up(width, panel_width)
    chunk = Axis("columns", ceil_div(size_of(axes), block))
    panel = Axis("panel", block // panel_width)
    cut = cuts.range_cut(axes, block, (chunk,))
    packs = []
    for piece in cuts.range_cut(axes, panel_width, (chunk, panel)).pieces:
        position = axis_index(panel) * panel_width + piece.position
        packs.append(replace(piece, position=position))
    return Columns(cut, panel, tuple(packs), panel_width, True)


def nested_columns(cut: cuts.Cut, lanes: int) -> Columns:
    """Walk a nested block with its last axis split into panels, so that lanes stay contiguous."""
    pieces = []
    for piece in cut.pieces:
        axis = piece.dims[-1]
        parts = Axis(f"{axis.name}p", axis.size // lanes), Axis(f"{axis.name}l", lanes)
        joined = {axis: axis_index(parts[0]) * lanes + axis_index(parts[1])}
        values = {x: substitute(v, joined) for x, v in piece.values.items()} | joined
        dims = (*piece.dims[:-1], *parts)
        pieces.append(replace(piece, dims=dims, values=values, position=position_over(dims)))
    panel = Axis("panel", cut.size // lanes)
    return Columns(replace(cut, pieces=tuple(pieces)), panel, tuple(pieces), lanes, False)
