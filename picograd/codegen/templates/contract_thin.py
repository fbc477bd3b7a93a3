"""Few vectors and a matrix on a CPU: nothing is packed, as nothing is read again.

contiguous along K    a dot product for each element of the result
contiguous along N    result[n] += a[k] b[k, n], a few rows of the matrix at a time; the sums
                      of a task stay in the first-level cache
"""

from collections.abc import Iterator, Sequence

from picograd.codegen.cuts import Cut, Piece, range_cut
from picograd.codegen.layout import Blocked
from picograd.codegen.operands import Contraction, bind, size_of, stores, strides, swap
from picograd.codegen.templates.contract_in_place import with_places
from picograd.codegen.templates.contract_plan import WORK_PER_TASK, choose, nearest
from picograd.codegen.templates.grid import balanced
from picograd.codegen.tile import Accumulate, Assign, For, Step, Store, Tile, TilePart, When
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Condition, Expr, const, needed, rewrite
from picograd.target import Target

VECTOR = 16  # elements; shorter axes are better packed
LONG_DEPTH = 8192  # elements that are summed at once: LLVM keeps about 64 partial sums of them
THIN = 8  # vectors up to which reading the matrix once for each beats packing it
AT_ONCE = 8  # rows of the matrix that are added to a sum before it goes back to memory
CACHED = 16 << 20  # bytes of a matrix that is read from a cache; memory gives whole rows faster
LEAST_COLUMNS, MOST_COLUMNS = 256, 2048  # of a task: 32 KiB of sums, at most


def build_part(product: Contraction, target: Target) -> TilePart | None:
    """Write a product of few vectors and a matrix; None if it is another.

    Whole panels of a matrix in the cache are faster read where they lie, by register blocks.
    """
    if any(compute.reduce for compute in product.computes[1:]):
        return None
    for side in (product, swap(product)):
        if side.sizes[1] > THIN or not side.depth:
            continue
        if is_contiguous(side, deep=True) and side.depth[-1].size >= 2 * VECTOR:
            return dots_part(side)
        if is_contiguous(side, deep=False) and len(side.depth) == 1 and not side.ends:
            if side.sizes[2] >= 2 * VECTOR and side.columns[-1].size >= 2 * VECTOR:
                is_in_place = side is product and reads_panels(product, target)
                return None if is_in_place else streamed_part(side)
    return None


def is_contiguous(product: Contraction, deep: bool) -> bool:
    """Tell whether the matrix is contiguous along its depth, and the vectors, or along N."""

    def is_nearer(expr: Expr, side: Sequence[Axis]) -> bool:
        return nearest(strides(expr, product.depth[-1:])) < nearest(strides(expr, side))

    if deep:
        return is_nearer(product.a, product.rows) and is_nearer(product.b, product.columns)
    across = nearest(strides(product.b, product.columns[-1:]))
    return bool(product.columns) and across < nearest(strides(product.b, product.depth))


def reads_panels(product: Contraction, target: Target) -> bool:
    """Tell whether a packed product would read a matrix in the cache where it lies.

    Workers share its columns in smaller parts where rows are added up.
    """
    _, _, n, k = product.sizes
    is_cached = n * k * product.dtype.itemsize <= CACHED
    is_whole = target.threads == 1 or n <= LEAST_COLUMNS
    return is_cached and is_whole and with_places(choose(product, target)).b_place is not None


def streamed_part(product: Contraction) -> TilePart:
    """Write the columns of a task: rows of the matrix are added to their sums, in order."""
    _, m, n, _ = product.sizes
    most = MOST_COLUMNS // ceil_div(m, THIN // 2)
    block = min(max(round_up(ceil_div(n, 8), VECTOR), LEAST_COLUMNS), most)
    chunk = Axis("chunk", ceil_div(n, block))
    steps: list[Step] = []
    tiles: list[Tile] = []
    for number, piece in enumerate(range_cut(product.columns, block, (chunk,)).pieces):
        dims = (*product.rows, *piece.dims)
        shape = tuple(axis.size for axis in dims)
        names = f"total{number}", f"part{number}"
        tiles += [Tile(name, shape, product.dtype, "register") for name in names]
        steps += guarded_steps(piece.when, list(streamed(product, piece, dims, names)))
    return TilePart((*product.batch, chunk), tuple(tiles), tuple(steps))


def streamed(
    product: Contraction, piece: Piece, dims: tuple[Axis, ...], names: tuple[str, str]
) -> Iterator[Step]:
    """Yield the steps of a piece of the columns: the sums of each few rows, added to the total."""
    (depth,) = product.depth
    here = tuple(map(axis_index, dims))
    total, part = (Expr("tile", (), (name, here), product.dtype) for name in names)
    yield Assign(names[0], dims, const(0, product.dtype), here)
    whole, left = divmod(depth.size, AT_ONCE)
    for count, size, first in ((whole, AT_ONCE, 0), (1, left, whole * AT_ONCE)):
        if not count or not size:
            continue
        block, row = Axis("block", count), Axis("row", size)
        at = axis_index(block) * size + axis_index(row) + first
        values = {**piece.values, depth: at}
        factors = (bind(product.a, values), bind(product.b, values))
        body = Expr("mul", factors, None, product.dtype)
        few = Accumulate(names[1], dims, (row,), "sum", body)
        yield For(block, (few, Accumulate(names[0], dims, (), "sum", part, False)))
    outputs = stores(product, dict(piece.values), {product.number: total})
    for output in outputs:
        yield Store(output.slot, output.index, dims, output.expr)


def dots_part(product: Contraction) -> TilePart:
    """Write one dot product per result element."""
    _, m, n, k = product.sizes
    block = max(min(ceil_div(n, 8), 64), WORK_PER_TASK // 4 // max(m * k, 1), 1)
    chunk = Axis("chunk", ceil_div(n, block))
    piece = range_cut(product.columns, block, (chunk,), True).pieces[0]
    values = dict(piece.values)
    body = Expr("mul", (bind(product.a, values), bind(product.b, values)), None, product.dtype)
    total, sum_up = long_sum(product, body)
    value = Expr("tile", (), ("total", ()), product.dtype)
    done = [
        Store(o.slot, o.index, (), o.expr) for o in stores(product, values, {product.number: value})
    ]
    inner = guarded_steps(piece.guards, loops(product.rows, [*sum_up, *done]))
    return TilePart((*product.batch, chunk), total, (For(piece.dims[0], inner),))


def long_sum(product: Contraction, body: Expr) -> tuple[tuple[Tile, ...], list[Step]]:
    """Sum along K into the tile "total"; where it is long, the sums of pieces of it."""
    dtype, (first, *rest) = product.dtype, product.depth
    total = Tile("total", (), dtype, "register")
    length = product.sizes[3]
    chunk = balanced(first.size, max(LONG_DEPTH * first.size // length, 1))
    if chunk == first.size or not dtype.is_float:
        return (total,), [Accumulate("total", (), product.depth, "sum", body)]
    piece = Axis("piece", ceil_div(first.size, chunk))
    within = Axis("within", chunk)
    index = axis_index(piece) * chunk + axis_index(within)
    if first.size % chunk:
        inside = ((index, 0, first.size - 1),)
        body = Expr("guard", (body, const(0, dtype)), inside, dtype)
    body = rewrite(body, {first: index})
    part = Tile("part", (), dtype, "register")
    value = Expr("tile", (), ("part", ()), dtype)
    parts = Accumulate("part", (), (within, *rest), "sum", body)
    add = Accumulate("total", (), (), "sum", value, False)
    start = Assign("total", (), const(0, dtype))
    return (total, part), [start, For(piece, (parts, add))]


def guarded_steps(conditions: Sequence[Condition], steps: Sequence[Step]) -> tuple[Step, ...]:
    """Run steps under the conditions that do not always hold."""
    tests = needed(conditions)
    return (When(tests, tuple(steps)),) if tests and steps else tuple(steps)


def loops(axes: Sequence[Axis], steps: Sequence[Step]) -> tuple[Step, ...]:
    """Nest loops around steps, the first axis outermost."""
    body = tuple(steps)
    for axis in reversed(axes):
        body = (For(axis, body),) if axis.size != 1 else body
    return body


def pack(tile: str, dims: Sequence[Axis], expr: Expr, index: Sequence[Index]) -> Assign:
    """Make a packing step: an assignment that the linearizer writes with explicit vectors."""
    shape = tuple(axis.size for axis in dims)
    ones = (1,) * len(shape)
    layout = Blocked(shape, ones, (*ones[:-1], VECTOR) if shape else ())
    return Assign(tile, tuple(dims), expr, tuple(index), layout)


def missing_depth(depth: Cut) -> list[tuple[tuple[Condition, ...], tuple[Axis, Index]]]:
    """Find the depths that a shorter last block lacks: there both operands must be 0."""
    found = []
    for piece in depth.pieces:
        size = size_of(piece.dims)
        if size < depth.size:
            axis = Axis("fill", depth.size - size)
            found.append((piece.when, (axis, axis_index(axis) + size)))
    return found
