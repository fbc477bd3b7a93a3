"""Products of few columns each, on a CPU: depthwise convolutions, whose channels share no weights.

    task: taps = weights, as their readers go through them
          for tap: c[...] += x[... + tap] * taps[tap]      where the tap is inside the image
          what follows, over c

There is nothing to pack: a matrix product would read a vector of columns for the few there are. The
sums of a task stay in the first-level cache, and each tap is one pass over them, whose guards are
the bounds of its loops. So are images whose channels lie last, or whose sizes vary, and strides
beside gaps; what has places in common with its taps reads a tile: templates/contract_shift.py.
"""

from collections.abc import Iterator

from picograd.codegen.linearize_cpu_pack import as_bounds
from picograd.codegen.operands import Contraction, expr_axes, strides
from picograd.codegen.templates.grid import Cut, cut, ended, guarded, rebind
from picograd.codegen.templates.map import inline
from picograd.codegen.tile import Accumulate, Assign, Step, Store, Tile, TilePart, When
from picograd.dtype import DType
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant
from picograd.schedule.loop import Condition, Expr, Part, const, rewrite

FEW_COLUMNS = 4  # the phases of a stride of 2: of the 16 of a vector of a matrix product
MOST_TAPS = 128  # more are better packed, or summed as a reduction
# Results of an innermost loop (14 that taps cut at the ends take longer than packing, 24 half as
# long), and elements between what two of them read.
SHORTEST, SHORTEST_CUT, FARTHEST = 4, 16, 4
POINTS = 2048  # sums of a task, 8 KiB: a third of the first-level cache, with what they read
PIXELS = 16  # that share weights which a task lays out, at least


def is_tapped(product: Contraction) -> bool:
    """Tell whether each of several products has few columns and taps, with maps behind it."""
    batch, m, n, k = product.sizes
    if batch == 1 or min(m, n) > FEW_COLUMNS:
        return False
    if not 1 < k <= MOST_TAPS:
        return False
    first, *others = product.computes
    for compute in others:
        if compute.reduce:
            return False
        if compute.axes != first.axes:
            return False
    return is_near(product) and has_bounds(product)


def is_near(product: Contraction) -> bool:
    """Tell whether neighbouring results read what lies close together in memory."""
    last = product.computes[0].axes[-1]
    own, _ = sides(product)
    step = strides(own, (last,))[last]
    if not 1 <= step <= FARTHEST:
        return False
    is_cut = any(last in axes_of(test[0]) for test in tests_of(product))
    least = SHORTEST_CUT if is_cut else SHORTEST
    return last.size >= least


def has_bounds(product: Contraction) -> bool:
    """Tell whether all guards can be bounds of the loops over the results."""
    axes = product.computes[0].axes
    return all(any(as_bounds(test, axis, ()) for axis in axes) for test in tests_of(product))


def tests_of(product: Contraction) -> tuple[Condition, ...]:
    """List the conditions under which the operand with the rows is not 0.

    Those of weights, taps that no phase of a stride has, are looked at once a tap.
    """
    own, _ = sides(product)
    return own.arg if own.op == "guard" else ()


def is_plain(product: Contraction) -> bool:
    """Tell whether each tap reads its operand as it is in memory: nothing is widened each time."""
    own, _ = sides(product)
    return bare(own).op == "load"


def bare(expr: Expr) -> Expr:
    """Take the guard off an operand."""
    return expr.args[0] if expr.op == "guard" else expr


def sides(product: Contraction) -> tuple[Expr, Expr]:
    """Give the operand that has the rows, and the weights: the one of few columns."""
    _, rows, columns, _ = product.sizes
    if columns <= rows:
        return product.a, product.b
    return product.b, product.a


def build_part(part: Part, product: Contraction) -> TilePart:
    """Write one product."""
    axes = product.computes[0].axes
    points, last = POINTS, axes[-1]
    if is_along(product, last):
        points = max(points, PIXELS * last.size)
    space = ended(cut(axes, points), part)
    dims, dtype = space.dims, product.dtype
    tiles = [tile_over("c", dims, dtype)]
    steps: list[Step] = []
    own, weights = sides(product)
    if is_along(product, dims[-1]):
        tile, packing, weights = packed(product, dims[-1])
        tiles.append(tile)
        steps.append(packing)
    steps.append(Assign("c", dims, const(0, dtype)))
    both = bare(own), weights
    steps += each_tap(product, space, Expr("mul", both, None, dtype))
    total = element("c", dims, dtype)
    steps += followed(product, space, total)
    return TilePart(space.grid, tuple(tiles), tuple(steps))


def is_along(product: Contraction, axis: Axis) -> bool:
    """Tell whether weights differ along an axis, and along no other one of the results."""
    _, weights = sides(product)
    used = expr_axes(weights)
    return axis in used and used <= {*product.depth, axis}


def packed(product: Contraction, last: Axis) -> tuple[Tile, Step, Expr]:
    """Lay weights out as the innermost loop reads them: the tile, what fills it, what reads it."""
    _, weights = sides(product)
    axes = (*product.depth, last)
    tile = tile_over("taps", axes, product.dtype)
    filling = Assign("taps", axes, weights)
    read = element("taps", axes, product.dtype)
    return tile, filling, read


def tile_over(name: str, axes: tuple[Axis, ...], dtype: DType) -> Tile:
    """Make a tile with an element for every point of some axes."""
    shape = tuple(axis.size for axis in axes)
    return Tile(name, shape, dtype, "register")


def element(name: str, axes: tuple[Axis, ...], dtype: DType) -> Expr:
    """Read the element of such a tile at the present point."""
    here = tuple(map(axis_index, axes))
    return Expr("tile", (), (name, here), dtype)


def each_tap(product: Contraction, space: Cut, term: Expr) -> Iterator[Step]:
    """Add the taps up; one by one along the axis that moves the ends of the innermost loop.

    So LLVM knows how long that is, and takes few elements one by one.
    """
    dims, depth = space.dims, product.depth
    tests = moved(space, tests_of(product))
    body = rewrite(term, space.axes)
    conditions = (*tests, *space.conditions)
    if conditions:
        zero = const(0, body.dtype)
        body = Expr("guard", (body, zero), conditions, body.dtype)
    moving: set[Axis] = set()
    for index, _, _ in tests:
        if dims[-1] in axes_of(index):
            moving |= axes_of(index)
    axis = next((each for each in depth if each in moving), None)
    if axis is None:
        yield Accumulate("c", dims, depth, "sum", body, False)
        return
    others = tuple(each for each in depth if each is not axis)
    for number in range(axis.size):
        fixed: dict[Axis, Index] = {axis: constant(number)}
        tap = rewrite(body, fixed)
        step = Accumulate("c", dims, others, "sum", tap, False)
        yield When((), (step,))  # a nest for each, with its own bounds


def moved(space: Cut, tests: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Rewrite conditions for the axes of a cut space."""
    return tuple([(rebind(index, space.axes), lo, hi) for index, lo, hi in tests])


def followed(product: Contraction, space: Cut, total: Expr) -> Iterator[Step]:
    """Write what is computed of the sums, and the stores."""
    values: list[Expr] = []
    for number, compute in enumerate(product.computes):
        value = total
        if number != product.number:
            value = inline(compute.body, values, space)
            value = guarded(value, space)
        values.append(value)
        if compute.store:
            slot, index = compute.store
            place = rebind(index, space.axes)
            yield Store(slot, place, space.dims, value, space.conditions)
