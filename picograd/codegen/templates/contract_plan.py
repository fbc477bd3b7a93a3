"""Choices of a CPU contraction: which side is N, block sizes, register block, tasks."""

from dataclasses import dataclass, replace
from math import gcd

from picograd.codegen.cuts import Cut, Piece, nested_cut, range_cut, split_outer, whole_position
from picograd.codegen.operands import (
    Contraction,
    bind,
    by_stride,
    output_strides,
    size_of,
    stores,
    strides,
    swap,
)
from picograd.dtype import DType
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, Index, axes_of, axis_index, substitute, unflatten
from picograd.schedule.loop import Expr, const
from picograd.target import Target

CACHE_BYTES = 1 << 20  # second-level cache of one core: Zen 4 and 5, Sapphire Rapids have 1 MiB+
DEPTH = 384  # longest depth block: a 12-row block of A and a panel of B stay in L1 and L2
MOST_ROWS = 384  # of a block of A: more would only grow the block of results
WORK_PER_TASK = 1 << 20  # multiply-adds that outweigh handing out a task (about 10 us)


@dataclass(frozen=True, slots=True)
class Columns:
    """The N side: its blocks, and the panels of `lanes` columns in which a block is packed."""

    cut: Cut
    panel: Axis  # loop over the panels of a block
    packs: tuple[Piece, ...]  # how to pack; position = panel * lanes + lane
    lanes: int
    is_looped: bool  # the pieces of `packs` walk one panel


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything chosen about one contraction."""

    product: Contraction
    rows: Cut
    columns: Columns
    depth: Cut
    height: int  # rows of the register block
    task: tuple[Axis, ...]  # grid axes of the rows
    row_loop: Axis  # row blocks of one task
    part: Axis  # grid axis of the parts of K
    is_km: bool
    packs_all: bool

    @property
    def cells(self) -> tuple[Axis, ...]:
        """Grid axes of the blocks of results."""
        return (*self.product.batch, *self.task, *self.columns.cut.outer)

    @property
    def is_first(self) -> bool:
        """Tell whether one block covers the depth of a task: sums need not be kept before it."""
        return self.depth.count == 1 and self.depth.size > 0 and not self.depth.guard

    @property
    def rows_padded(self) -> int:
        """Rows of the packed block: whole register blocks."""
        return round_up(self.rows.size, self.height)

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
    """Choose which side is N (vectors) and which M (broadcast).

    The output's nearest axis should be N, so that stores are vectors. A side whose axes do not
    form one range and whose last axis does not fill vectors goes to M, where packing it is cheap.
    """
    lanes = vector_lanes(product.dtype, target)
    m = nearest(output_strides(product, product.rows))
    n = nearest(output_strides(product, product.columns))
    if m < n:
        product = swap(product)
    if is_awkward(product, lanes) and not is_awkward(swap(product), lanes):
        product = swap(product)
    return with_orders(product)


def with_orders(product: Contraction) -> Contraction:
    """Order the axes of each role for packing and storing."""
    a_steps = strides(product.a, (*product.rows, *product.depth))
    b_steps = strides(product.b, (*product.columns, *product.depth))
    if is_rowwise(product):
        rows = by_stride(product.rows, a_steps)
    else:
        rows = by_stride(product.rows, output_strides(product, product.rows))
    if is_range(product, product.columns):
        columns = by_stride(product.columns, output_strides(product, product.columns))
    else:
        columns = by_stride(product.columns, b_steps)
    far = {x: (a_steps[x], b_steps[x]) for x in product.depth}
    order = sorted(product.depth, key=lambda x: (x.size > 1, (-far[x][0], -far[x][1])))
    return replace(product, rows=rows, columns=columns, depth=tuple(order))


def is_range(product: Contraction, axes: tuple[Axis, ...]) -> bool:
    """Tell whether a role is as good as one axis: its flat position needs no division."""
    axes = by_stride(axes, output_strides(product, axes))
    if sum(axis.size > 1 for axis in axes) <= 1:
        return True
    flat = Axis("flat", size_of(axes))
    parts = unflatten(axis_index(flat), tuple(axis.size for axis in axes))
    values = dict(zip(axes, parts, strict=True))
    outputs = stores(product, values, const(0, product.dtype))
    exprs = [bind(product.b, values), bind(product.a, values), *(o.expr for o in outputs)]
    indices = [o.index for o in outputs]
    for expr in exprs:
        for node in all_nodes(expr):
            if node.op == "guard":
                indices += [condition[0] for condition in node.arg]
            if node.op == "load":
                indices.append(node.arg[1])
            if node.op == "index":
                indices.append(node.arg)
    return all(is_plain(index, flat) for index in indices)


def all_nodes(expr: Expr) -> list[Expr]:
    """Every node of an expression, repeated ones repeated."""
    found = [expr]
    for arg in expr.args:
        found += all_nodes(arg)
    return found


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


def register_block(m: int, n: int, lanes: int, registers: int) -> tuple[int, int]:
    """Rows and vectors of the register block: 24 of 32 registers accumulate, or 12 of 16."""
    room = (registers * 3) // 4
    wanted = 2 if m > room // 4 else 4
    vectors = min(ceil_div(n, lanes), wanted)
    most = min(room // vectors, 14)
    groups = ceil_div(m, most)
    return (ceil_div(m, groups) if groups <= 8 else most), vectors


def is_rowwise(product: Contraction) -> bool:
    """Tell whether a is contiguous along M, so that it is packed [k][m]; ties: the longer run."""
    steps = strides(product.a, (*product.rows, *product.depth))

    def key(axes: tuple[Axis, ...]) -> tuple[int, int]:
        moving = [(steps[x], -x.size) for x in axes if x.size > 1 and steps[x]]
        return min(moving, default=(1 << 61, 0))

    return key(product.rows) < key(product.depth)


def packing_weight(expr: Expr, side: tuple[Axis, ...], depth: tuple[Axis, ...]) -> int:
    """Cost of packing an element of B against a multiply-add: vectors 2, one by one 16."""
    return 2 if nearest(strides(expr, side)) <= nearest(strides(expr, depth)) else 16


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
    weight = packing_weight(product.b, product.columns, product.depth)
    best, found = 0.0, (least[0], least[1], 1)
    for rows in range(least[0], max(least[0], most[0]) + 1):
        for columns in range(least[1], max(least[1], most[1]) + 1):
            for parts in range(1, most[2] + 1):
                tasks = batch * rows * columns * parts
                whole = rows * round_up(ceil_div(m, rows), block[0])
                work = whole * columns * round_up(ceil_div(n, columns), block[1])
                work += weight * rows * n + 2 * columns * m
                work += 6 * parts * m * n // max(k, 1) if parts > 1 else 0
                idle = ceil_div(tasks, threads) * threads / tasks
                time = work * idle * (1 + 0.25 * threads / tasks)
                if not best or time < best:
                    best, found = time, (rows, columns, parts)
    return found


def choose(product: Contraction, target: Target) -> Plan:
    """Choose blocks, panels and tasks for one contraction."""
    batch, m, n, k = product.sizes
    lanes, item = vector_lanes(product.dtype, target), product.dtype.itemsize
    height, vectors = register_block(m, n, lanes, target.registers)
    depth = nested_cut(product.depth, DEPTH)
    wanted = min(batch * m * n * k // WORK_PER_TASK, 4 * target.threads) // max(batch, 1)
    is_km = is_rowwise(product)
    packs_all = round_up(n, lanes) * max(k, 1) * item <= CACHE_BYTES
    # Where packing B is slow, A may overflow the cache: a row is streamed once per panel.
    is_slow = packing_weight(product.b, product.columns, product.depth) > 2
    tall = CACHE_BYTES // (1 if is_slow else 4) // (max(depth.size, 1) * item)
    tall = min(tall, MOST_ROWS)
    tall = max(tall // height, 1) * height
    wide = CACHE_BYTES // 2 // (min(tall, m) * item)
    if not packs_all or depth.count > 1:
        wide = min(wide, CACHE_BYTES // 2 // (depth.size * item))
    is_nested = is_km and not is_range(swap(product), product.rows)
    least = 1 if packs_all and not is_nested else ceil_div(m, tall), ceil_div(n, wide)
    most = min(wanted, ceil_div(m, height)), min(wanted, ceil_div(n, lanes)), 1
    if depth.count > 1 and not (packs_all and m > 8 * tall):
        most = (*most[:2], max(min(wanted, depth.count), 1))
    row_tasks, column_tasks, parts = share_work(
        product, least, most, (height, lanes * vectors), target.threads
    )
    part = Axis("part", 1)
    if parts > 1:
        packs_all = False
        depth = nested_cut(product.depth, max(min(DEPTH, ceil_div(k, parts)), DEPTH // 4))
        depth, part = split_outer(depth, parts)
        row_tasks = max(row_tasks, ceil_div(m, tall))
    share = round_up(ceil_div(m, row_tasks), height)
    blocks = ceil_div(share, tall) if packs_all else 1
    if is_nested:
        rows = nested_cut(product.rows, min(share, tall))
        task, loop = rows.outer, Axis("row_block", 1)
    else:
        size = round_up(ceil_div(share, blocks), height)
        tasks = ceil_div(ceil_div(m, size), blocks)
        task, loop = (Axis("rows", tasks),), Axis("row_block", blocks)
        rows = range_cut(product.rows, size, (*task, loop), not is_km)
    columns = cut_columns(product, ceil_div(n, column_tasks), lanes, vectors)
    return Plan(
        product, rows, columns, depth, min(height, rows.size), task, loop, part, is_km, packs_all
    )


def cut_columns(product: Contraction, width: int, lanes: int, vectors: int) -> Columns:
    """Divide N into blocks of about `width`, and a block into panels."""
    axes = product.columns
    if not is_range(product, axes) and axes[-1].size % lanes == 0:
        cut = nested_cut(axes, max(width, lanes))
        inner = gcd(*(piece.dims[-1].size if piece.dims else 1 for piece in cut.pieces))
        if inner % lanes == 0:
            return nested_columns(cut, lanes * (vectors if inner % (lanes * vectors) == 0 else 1))
    panel_width = lanes * min(vectors, ceil_div(width, lanes))
    block = round_up(width, panel_width)
    chunk = Axis("columns", ceil_div(size_of(axes), block))
    panel = Axis("panel", block // panel_width)
    cut = range_cut(axes, block, (chunk,))
    packs = []
    for piece in range_cut(axes, panel_width, (chunk, panel)).pieces:
        position = axis_index(panel) * panel_width + piece.position
        packs.append(replace(piece, position=position))
    return Columns(cut, panel, tuple(packs), panel_width, True)


def nested_columns(cut: Cut, lanes: int) -> Columns:
    """Walk a nested block with its last axis split into panels, so that lanes stay contiguous."""
    pieces = []
    for piece in cut.pieces:
        axis = piece.dims[-1]
        parts = Axis(f"{axis.name}p", axis.size // lanes), Axis(f"{axis.name}l", lanes)
        joined = {axis: axis_index(parts[0]) * lanes + axis_index(parts[1])}
        values = {x: substitute(v, joined) for x, v in piece.values.items()} | joined
        dims = (*piece.dims[:-1], *parts)
        pieces.append(replace(piece, dims=dims, values=values, position=whole_position(dims)))
    panel = Axis("panel", cut.size // lanes)
    return Columns(replace(cut, pieces=tuple(pieces)), panel, tuple(pieces), lanes, False)
