"""Products of few results each that lie side by side in memory, on a CPU.

    task (channels): for block of places: part[tap, channel] = sum of x[place + tap, channel] * g
                                          total[tap, channel] += part[tap, channel]
                     what follows, over total

These are gradients of depthwise convolutions' weights, channels last. Vectors run along channels: a
matrix product would read a vector of columns for each one, of which it needs one.
"""

from collections.abc import Iterator

from picograd.codegen import cuts
from picograd.codegen.operands import Contraction, bind, guarded, is_element, stores, strides
from picograd.codegen.templates.contract_taps import bare, element, tile_over
from picograd.codegen.templates.contract_thin import guarded_steps, loops
from picograd.codegen.tile import Accumulate, Assign, Step, Store, Tile, TilePart
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis
from picograd.schedule.loop import Condition, Expr, const
from picograd.target import Target

MOST_RESULTS, LEAST_DEPTH = 64, 16  # of a product: with more results vectors of these are whole
LANES, MOST_LANES = 16, 64  # channels of a task: its sums stay in the first-level cache
MOST_SUMMED = 256  # places of a part: longer sums round more


def build_part(product: Contraction, target: Target) -> TilePart | None:
    """Write such products; None if these are others."""
    lane = nearest(product)
    if lane is None or not is_alike(product):
        return None
    block = MOST_LANES
    if target.threads > 1:
        share = ceil_div(lane.size, 2 * target.threads)
        block = min(round_up(share, LANES), block)
    chunk = Axis("chunk", ceil_div(lane.size, block))
    cut = cuts.range_cut((lane,), block, (chunk,))
    tiles: list[Tile] = []
    steps: list[Step] = []
    for number, piece in enumerate(cut.pieces):
        names = f"part{number}", f"total{number}"
        dims = *product.rows, *product.columns, *piece.dims
        tiles += [tile_over(name, dims, product.dtype) for name in names]
        found = list(summed(product, piece, dims, names))
        steps += guarded_steps(piece.when, found)
    others = tuple(axis for axis in product.batch if axis is not lane)
    return TilePart((*others, chunk), tuple(tiles), tuple(steps))


def is_alike(product: Contraction) -> bool:
    """Tell whether products have few results of many terms each, with maps behind them."""
    _, rows, columns, depth = product.sizes
    if product.ends or depth < LEAST_DEPTH:
        return False
    if min(rows, columns) != 1 or rows * columns > MOST_RESULTS:
        return False
    others = product.computes[1:]
    return all(is_element(product, compute) for compute in others)


def nearest(product: Contraction) -> Axis | None:
    """Find the axis of the batch along which both operands lie in memory."""
    operands = product.a, product.b
    for axis in product.batch:
        steps = [strides(operand, (axis,))[axis] for operand in operands]
        if steps == [1, 1] and axis.size >= LANES:
            return axis
    return None


def summed(
    product: Contraction, piece: cuts.Piece, dims: tuple[Axis, ...], names: tuple[str, str]
) -> Iterator[Step]:
    """Write the sums of some channels, and what is computed of them."""
    dtype = product.dtype
    part, total = (element(name, dims, dtype) for name in names)
    yield Assign(names[1], dims, const(0, dtype))
    depth = cuts.nested_cut(product.depth, MOST_SUMMED)
    body = multiplied(product)
    block: list[Step] = []
    for deep in depth.pieces:
        values = {**piece.values, **deep.values}
        term = bind(body, values)
        some = Accumulate(names[0], dims, deep.dims, "sum", term)
        add = Accumulate(names[1], dims, (), "sum", part, False)
        block += guarded_steps(deep.when, (some, add))
    yield from loops(depth.outer, block)
    *taps, lane = dims
    sums = {product.number: total}
    for out in stores(product, dict(piece.values), sums):
        yield Store(out.slot, out.index, (lane, *taps), out.expr)


def multiplied(product: Contraction) -> Expr:
    """Write a product of two elements, 0 where one is guarded: bounds of the loops over it."""
    operands = product.a, product.b
    factors = tuple(map(bare, operands))
    tests: list[Condition] = []
    for operand in operands:
        if operand.op == "guard":
            tests += operand.arg
    made = Expr("mul", factors, None, product.dtype)
    return guarded(made, tests)
