"""Factors of large matrices by a GPU: loops over panels of columns, each step the same kernels.

A step eliminates the first columns of what is left, a panel, and takes it out of the columns behind
it by one product; then rows and columns move up, so that the next panel is the first again. What
is left keeps its shape, zeros follow. Matrices for which that would move too much memory fall into
halves, or into blocks of columns, of which each is such a loop.
"""

from collections.abc import Callable, Sequence

from picograd.dtype import int32
from picograd.graph.composites import join
from picograd.graph.elimination import SUBSTITUTIONS, beside, eliminate, part, stacked, without
from picograd.graph.node import Node, Nodes
from picograd.graph.recurrence import make_body, outcome, placeholder, recur
from picograd.helpers import ceil_div
from picograd.target import Target

SIDE = 32  # columns of a panel: its steps are written out (codegen/templates/elimination.py)
WIDTH = 64  # columns of a block of threads that solves triangles
LOOPED = 1024  # rows of what a step moves whole, 8 MB of float32
COLUMNS = 512  # of matrices of more rows, one after the other
PANEL_BYTES = 128 << 10  # of a panel with pivots: half the registers of a multiprocessor
WIDTHS = 32, 16, 8, 4  # columns of a panel
SPARE = 512  # elements beside rows and columns

Step = Callable[..., tuple[Sequence[Node], Sequence[Node]]]


def repeated(step: Step, length: int, carries: Nodes, *xs: Node) -> tuple[list[Node], list[Node]]:
    """Make steps in turn, each of the carries and a row of every x.

    A step gives what the carries become, and results. Returned are the last carries, and the
    results of all steps, a row for each.
    """
    held = [placeholder("carry", each.shape, each.dtype, each.device) for each in carries]
    rows = [placeholder("x", each.shape[1:], each.dtype, each.device) for each in xs]
    nexts, results = step(*held, *rows)
    body, numbers = make_body((held, rows, []), list(nexts), list(results))
    loop = recur(body, length, False, [*carries, *xs])
    lasts = [outcome(loop, "carry", number) for number in range(len(held))]
    stacks = [outcome(loop, "stack", numbers[id(each)]) for each in results]
    return lasts, stacks


def grown(x: Node, rows: int, columns: int, start: int = 0) -> Node:
    """Add rows and columns with ones on the diagonal that begins behind `start` rows."""
    if not rows and not columns:
        return x
    _, first, second = x.shape
    x = x.pad(((0, 0), (0, rows), (0, columns)))
    row, column = x.iota(1), x.iota(2)
    is_new = column.binary("less", second).binary("equal", False)
    is_same = row.binary("add", second - first).binary("equal", column)
    return is_new.binary("logical_and", is_same).where(1.0, x)


def missing(count: int, step: int = SIDE) -> int:
    """Count what is missing to a multiple."""
    return -count % step


def left_of(x: Node, rows: int, columns: int) -> Node:
    """Drop the first rows and columns of matrices, and add zeros behind the last."""
    found = part(x, (rows, x.shape[1]), (columns, x.shape[2]))
    return found.pad(((0, 0), (0, rows), (0, columns)))


# positive definite matrices


def factored(x: Node) -> Node:
    """Factor L L^T: in a loop, or in halves."""
    size = x.shape[-1]
    if size <= LOOPED:
        more = missing(size)
        found = factored_in_loop(grown(x, more, more))
        return part(found, (0, size), (0, size))
    half = ceil_div(size, 2 * SIDE) * SIDE
    head, tail = (0, half), (half, size)
    corner = factored(part(x, head, head).stored())
    turned = part(x, tail, head).permute((0, 2, 1))
    below = solved(corner, turned.stored(), "lower").permute((0, 2, 1))
    rest = without(part(x, tail, tail), below, below, True)
    last = factored(rest.stored())
    top = corner.pad(((0, 0), (0, 0), (0, size - half)))
    return join([top, join([below, last], 2)], 1).stored()


def factored_in_loop(x: Node) -> Node:
    """Factor L L^T, panel by panel: each of its warps has the corner, and rows of its own."""
    size = x.shape[-1]

    def step(x: Node) -> tuple[Sequence[Node], Sequence[Node]]:
        column = factored_panel(part(x, (0, size), (0, SIDE)))
        below = left_of(column.reshape((x.shape[0], size, SIDE)), SIDE, 0)
        product = below.contract(below, ((0, 1, 2), (0, 3, 2), (0, 1, 3)))
        moved = left_of(x, SIDE, SIDE)
        row, at = product.iota(1), product.iota(2)
        is_left = row.binary("maximum", at).binary("less", size - SIDE)
        return [is_left.where(moved - product, 0.0)], [column]

    _, (columns,) = repeated(step, size // SIDE, [x])
    columns = columns.reshape((size // SIDE, x.shape[0], size, SIDE))
    is_lower = columns.iota(3).binary("less_equal", columns.iota(2))
    return moved_down(is_lower.where(columns, 0.0))


def factored_panel(panel: Node) -> Node:
    """Factor the first columns of positive definite matrices, each of its rows as one below."""
    stack, size, _ = panel.shape
    count = size // SIDE
    shape = stack, count, SIDE, SIDE
    corner = part(panel, (0, SIDE), (0, SIDE)).reshape((stack, 1, SIDE, SIDE)).expand(shape)
    pairs = join([stacked(corner), stacked(panel.reshape(shape))], 1)
    return eliminate(pairs, "below", SIDE)


def moved_down(columns: Node) -> Node:
    """Put panels (T, B, N, C), of which each begins on the diagonal, beside one another."""
    count, stack, size, width = columns.shape
    columns = columns.permute((1, 0, 2, 3)).pad(((0, 0), (0, 0), (0, width), (0, 0)))
    columns = columns.reshape((stack, count * (size + width), width))
    columns = part(columns, (0, count * size), (0, width))
    columns = columns.reshape((stack, count, size, width))
    return columns.permute((0, 2, 1, 3)).reshape((stack, size, count * width)).stored()


def moved_up(x: Node) -> Node:
    """Cut matrices into panels (T, B, N, C) of which each begins on the diagonal."""
    stack, size, _ = x.shape
    count = size // SIDE
    columns = x.reshape((stack, size, count, SIDE)).permute((0, 2, 1, 3))
    columns = columns.reshape((stack, count * size, SIDE))
    columns = columns.pad(((0, 0), (0, size), (0, 0)))
    columns = columns.reshape((stack, count, size + SIDE, SIDE))
    whole = (0, stack, 1), (0, count, 1), (0, size, 1), (0, SIDE, 1)
    return columns.slice(whole).permute((1, 0, 2, 3)).stored()


# triangles


def solved(triangle: Node, right: Node, kind: str) -> Node:
    """Solve triangles: in a loop, or in halves."""
    is_upper, is_unit = SUBSTITUTIONS[kind]
    if is_upper:  # read from its end, an upper triangle is a lower one
        kind = "unit_lower" if is_unit else "lower"
        return solved(triangle.flip((1, 2)), right.flip((1,)), kind).flip((1,)).stored()
    size, columns = right.shape[1:]
    if size <= LOOPED:
        more = missing(size)
        triangle = grown(triangle, more, more)
        right = right.pad(((0, 0), (0, more), (0, 0)))
        return part(solved_in_loop(triangle, right, kind), (0, size), (0, columns)).stored()
    half = ceil_div(size, 2 * SIDE) * SIDE
    head, tail, every = (0, half), (half, size), (0, columns)
    first = solved(part(triangle, head, head).stored(), part(right, head, every).stored(), kind)
    others = part(triangle, tail, head)
    rest = without(part(right, tail, every), others, first)
    last = solved(part(triangle, tail, tail).stored(), rest.stored(), kind)
    return join([first, last], 1).stored()


def solved_in_loop(triangle: Node, right: Node, kind: str) -> Node:
    """Solve lower triangles, some unknowns at a time, which are taken out of what is left."""
    stack, size, columns = right.shape
    row, column = triangle.iota(1), triangle.iota(2)
    is_lower = column.binary("less_equal", row)
    panels = moved_up(is_lower.where(triangle, 0.0))

    def step(right: Node, panel: Node) -> tuple[Sequence[Node], Sequence[Node]]:
        corner = part(panel, (0, SIDE), (0, SIDE))
        found = solved_in_columns(corner, part(right, (0, SIDE), (0, columns)), kind)
        known = in_rows(found, stack, columns)
        return [without(left_of(right, SIDE, 0), left_of(panel, SIDE, 0), known)], [found]

    count = size // SIDE
    _, (found,) = repeated(step, count, [right], panels)
    found = in_rows(found.reshape((count * found.shape[1], found.shape[2])), count * stack, columns)
    found = found.reshape((count, stack, SIDE, columns)).permute((1, 0, 2, 3))
    return found.reshape((stack, size, columns))


def solved_in_columns(triangle: Node, right: Node, kind: str) -> Node:
    """Solve small triangles for many columns: some of them in a block of threads."""
    stack, size, columns = right.shape
    width = min(columns, WIDTH)
    count = ceil_div(columns, width)
    right = right.pad(((0, 0), (0, 0), (0, missing(columns, width))))
    right = right.reshape((stack, size, count, width)).permute((0, 2, 1, 3))
    triangle = triangle.reshape((stack, 1, size, size)).expand((stack, count, size, size))
    return eliminate(beside(triangle, right), kind, size)


def in_rows(found: Node, stack: int, columns: int) -> Node:
    """Let columns that several blocks of threads solved lie beside one another."""
    width = min(columns, WIDTH)
    count = found.shape[0] // stack
    size = found.shape[1] // width
    found = found.reshape((stack, count, size, width)).permute((0, 2, 1, 3))
    return part(found.reshape((stack, size, count * width)), (0, size), (0, columns))


# matrices with pivots


def width_of(x: Node, target: Target) -> int:
    """Count the columns of a panel that a block of threads has room for; 0 for too few.

    In registers, and in shared memory, where a column lies beside it.
    """
    size = x.dtype.itemsize
    rows = ceil_div(x.shape[1], SIDE) * SIDE
    for width in WIDTHS:
        has_room = (rows * (width + 3) + SPARE) * size <= target.shared_bytes
        if rows * width * size <= PANEL_BYTES and has_room:
            return width
    return 0


def rows_by(x: Node, order: Node) -> Node:
    """Take rows of matrices (B, M, W) in an order (B, R)."""
    stack, rows, width = x.shape
    whole = x.reshape((stack * rows, width))
    first = order.iota(0, int32) * rows
    return whole.gather((order + first,), (0,))


def eliminated(x: Node, count: int, target: Target) -> tuple[Node, Node, Node]:
    """Eliminate the first columns of matrices (B, M, W), which pivots are chosen from.

    Returned are both triangles, with what the other columns became; the row (B, M) that stands at
    each place now, and the rows (B, count) that were swapped, counted from 1.
    """
    stack, rows, width = x.shape
    if count <= COLUMNS or rows <= LOOPED:
        return eliminated_in_loop(x, count, width_of(x, target))
    here, rest = (0, COLUMNS), (COLUMNS, rows)
    left = part(x, (0, rows), here).stored()
    left, order, swaps = eliminated_in_loop(left, COLUMNS, width_of(x, target))
    right = rows_by(part(x, (0, rows), (COLUMNS, width)), order).stored()
    other = 0, width - COLUMNS
    top = solved(part(left, here, here).stored(), part(right, here, other).stored(), "unit_lower")
    below = part(left, rest, here)
    rest_of = without(part(right, rest, other), below, top)
    last, later, more = eliminated(rest_of.stored(), count - COLUMNS, target)
    bottom = join([rows_by(below, later), last], 2)
    first = join([part(left, here, here), top], 2)
    numbers = order.reshape((stack, rows, 1))
    last_order = rows_by(part(numbers, rest, (0, 1)), later)
    order = join([part(numbers, here, (0, 1)), last_order], 1).reshape((stack, rows))
    return join([first, bottom], 1).stored(), order.stored(), join([swaps, more + COLUMNS], 1)


def eliminated_in_loop(x: Node, count: int, width: int) -> tuple[Node, Node, Node]:
    """Eliminate columns, panel by panel.

    What is done goes behind what is left, rows and columns, so that it is swapped as well, and is
    in order when all panels are done.
    """
    stack, kept, behind = x.shape[0], x.shape[1], x.shape[2] - count
    more = missing(count, width)
    x = squared(x, count, more)
    rows, end = x.shape[1], count + more

    def step(x: Node, order: Node, turn: Node) -> tuple[Sequence[Node], Sequence[Node]]:
        both, swaps, places = pivoted_panel(x, width, turn)
        moved = taken_out(x, both, places, turn)
        order = rows_by(order.reshape((stack, rows, 1)), places)
        order = turned_up(order, width).reshape((stack, rows))
        return [moved, order], [swaps]

    numbers = Node("iota", (), 1, (stack, rows), int32, x.device)
    turns = Node("iota", (), 0, (end // width,), int32, x.device)
    (x, numbers), (swaps,) = repeated(step, end // width, [x, numbers.stored()], turns)
    x = turned_up(x, rows - end)
    numbers = turned_up(numbers.reshape((stack, rows, 1)), rows - end).reshape((stack, rows))
    found = join([part(x, (0, kept), (behind, behind + count)), part(x, (0, kept), (0, behind))], 2)
    swaps = swaps + swaps.iota(0).cast(swaps.dtype) * width
    swaps = swaps.permute((1, 0, 2)).reshape((stack, 1, end))
    swaps = part(swaps, (0, 1), (0, count)).reshape((stack, count))
    order = part(numbers.reshape((stack, 1, rows)), (0, 1), (0, kept)).reshape((stack, kept))
    return found.stored() if behind else found, order, swaps


def squared(x: Node, count: int, more: int) -> Node:
    """Add rows and columns of an identity matrix behind the columns that are eliminated."""
    if not more:
        return x
    rows = 0, x.shape[1]
    found = grown(part(x, rows, (0, count)), more, more)
    others = part(x, rows, (count, x.shape[2])).pad(((0, 0), (0, more), (0, 0)))
    return join([found, others], 2).stored()


def turned_up(x: Node, count: int) -> Node:
    """Put the first rows of matrices behind the others."""
    rows, columns = x.shape[1], (0, x.shape[2])
    if count % rows == 0:
        return x
    return join([part(x, (count, rows), columns), part(x, (0, count), columns)], 1)


def pivoted_panel(x: Node, width: int, turn: Node) -> tuple[Node, Node, Node]:
    """Eliminate the first columns: both triangles, the rows swapped, and the order of all rows."""
    stack, rows, _ = x.shape
    panel = part(x, (0, rows), (0, width))
    found = eliminate(is_ahead(panel, 1, turn, width).where(panel, 0.0), "panel", width)
    ends = rows * width, rows * width + width, found.shape[1]
    starts = 0, *ends
    cut = [found.slice(((0, stack, 1), (*each, 1))) for each in zip(starts, ends)]
    return cut[0].reshape(panel.shape), cut[1], cut[2].cast(int32)


def is_ahead(x: Node, axis: int, turn: Node, width: int) -> Node:
    """Tell which rows or columns are not done after so many steps: those done are the last."""
    left = turn * -width + x.shape[axis]
    return x.iota(axis, int32).binary("less", left.broadcast_to(x.shape))


def taken_out(x: Node, both: Node, places: Node, turn: Node) -> Node:
    """Take a panel out of the columns behind it, and put it behind all."""
    stack, rows, columns = x.shape
    width = both.shape[2]
    own, rest = (0, width), (width, columns)
    if width == columns:
        return turned_up(both, width)
    x = rows_by(x, places)
    corner = part(both, own, own)
    first = part(x, own, rest)
    is_left = is_ahead(first, 2, turn, width)
    top = solved_in_columns(corner, is_left.where(first, 0.0), "unit_lower")
    top = in_rows(top, stack, columns - width)
    first = join([is_left.where(top, first), corner], 2)
    if width == rows:
        return first
    tail = width, rows
    below = part(both, tail, own)
    is_left = is_ahead(below, 1, turn, width)
    lying = is_left.where(below, part(x, tail, own))
    left = join([join([part(x, tail, rest), lying], 2), first], 1)
    top = top.pad(((0, 0), (0, 0), (0, width)))
    return without(left, left_of(both, width, 0), top)
