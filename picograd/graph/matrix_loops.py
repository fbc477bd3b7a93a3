"""Factors of large matrices by a GPU: loops over panels of columns, each step the same kernels.

A step eliminates the first columns of what is left, a panel, and takes it out of the columns behind
it by one product; then rows and columns move up, so that the next panel is the first again. What
is left keeps its shape, zeros follow. Matrices for which that would move too much memory fall into
halves, or into blocks of columns, of which each is such a loop.
"""

from collections.abc import Callable

from picograd.dtype import int32
from picograd.graph.composites import join
from picograd.graph.elimination import (
    SUBSTITUTIONS,
    beside,
    eliminate,
    identity,
    part,
    stacked,
    without,
)
from picograd.graph.node import Node, Nodes
from picograd.graph.recurrence import make_body, outcome, placeholder, recur, rows_of
from picograd.helpers import ceil_div
from picograd.target import Target

SIDE = 32  # columns of a panel: a thread has a row of it (codegen/templates/panels.py)
WIDTH = 64  # columns of a block of threads that solves triangles
LOOPED = 1024  # rows of what a step moves whole, 8 MB of float32
COLUMNS = 512  # of matrices of more rows, one after the other
PANEL_BYTES = 128 << 10  # of a panel with pivots: half the registers of a multiprocessor
WIDTHS = 32, 16, 8, 4  # columns of a panel with pivots
SPARE = 512  # elements beside rows and columns
DOWN, ACROSS = 1, 2  # axes
FEW = 64  # columns for which a triangle is one loop
BLOCK = 128  # rows of what is inverted of a triangle: less is solved, more loses digits
PRODUCT = (0, 1, 2), (0, 2, 3), (0, 1, 3)  # labels of x y
SQUARE = (0, 1, 2), (0, 3, 2), (0, 1, 3)  # labels of x x^T
NONE = 0, 0  # elements that are added

Values = list[Node]
Two = tuple[Nodes, Nodes]
Three = tuple[Node, Node, Node]
Step = Callable[..., Two]


def repeated(
    step: Step, length: int, carries: Nodes, *xs: Node, is_reverse: bool = False
) -> list[Values]:
    """Make steps in turn, each of the carries and a row of every x, or from the last row on.

    A step gives what the carries become, and results. Returned are the last carries, the results
    of all steps, a row for each, and the carries before each step, and behind the last.
    """
    held = [leaf("carry", each) for each in carries]
    rows = [leaf("x", each) for each in xs]
    nexts, results = step(*held, *rows)
    constants: Nodes = []
    leaves = held, rows, constants
    body, numbers = make_body(leaves, nexts, results)
    inputs = [*carries, *xs]
    loop = recur(body, length, is_reverse, inputs)
    counts = range(len(held))
    lasts = [outcome(loop, "carry", number) for number in counts]
    places = [numbers[id(each)] for each in results]
    stacks = [outcome(loop, "stack", place) for place in places]
    histories = [outcome(loop, "history", number) for number in counts]
    return [lasts, stacks, histories]


def leaf(kind: str, x: Node) -> Node:
    """Make what a step knows of a carry, or of an x."""
    first = int(kind == "x")
    shape = x.shape[first:]
    return placeholder(kind, shape, x.dtype, x.device)


# parts of matrices (B, M, N)


def head(x: Node, count: int) -> Node:
    """Take the first rows."""
    return part(x, (0, count), (0, x.shape[2]))


def tail(x: Node, start: int) -> Node:
    """Leave out the first rows."""
    return part(x, (start, x.shape[1]), (0, x.shape[2]))


def left(x: Node, count: int) -> Node:
    """Take the first columns."""
    return part(x, (0, x.shape[1]), (0, count))


def right(x: Node, start: int) -> Node:
    """Leave out the first columns."""
    return part(x, (0, x.shape[1]), (start, x.shape[2]))


def corner(x: Node, count: int) -> Node:
    """Take the first rows and columns."""
    first = 0, count
    return part(x, first, first)


def rest(x: Node, start: int) -> Node:
    """Leave out the first rows and columns."""
    below = tail(x, start)
    return right(below, start)


def padded(x: Node, rows: int, columns: int) -> Node:
    """Add zeros behind matrices."""
    below = 0, rows
    behind = 0, columns
    return x.pad((NONE, below, behind))


def moved(x: Node, rows: int, columns: int) -> Node:
    """Leave out the first rows and columns of matrices, and add zeros behind the last."""
    below = tail(x, rows)
    found = right(below, columns)
    return padded(found, rows, columns)


def turned_up(x: Node, count: int) -> Node:
    """Put the first rows of matrices behind the others."""
    if count % x.shape[1] == 0:
        return x
    first = head(x, count)
    others = tail(x, count)
    return join([others, first], DOWN)


def missing(count: int, step: int = SIDE) -> int:
    """Count what is missing to a multiple."""
    return -count % step


def grown(x: Node, more: int) -> Node:
    """Add rows and columns of an identity matrix behind the last."""
    if not more:
        return x
    _, rows, columns = x.shape
    x = padded(x, more, more)
    row, column = x.iota(DOWN), x.iota(ACROSS)
    is_old = column.binary("less", columns)
    own = row + (columns - rows)
    is_one = own.binary("equal", column)
    ones = is_one.where(1.0, x)
    return is_old.where(x, ones)


# positive definite matrices


def factored(x: Node) -> Node:
    """Factor L L^T: in a loop, or in halves."""
    size = x.shape[-1]
    if size <= LOOPED:
        whole = grown(x, missing(size))
        found = factored_in_loop(whole)
        return corner(found, size)
    half = half_of(size)
    own = corner(x, half).stored()
    first = factored(own)
    above = head(x, half)
    beside = right(above, half)
    turned = solved(first, beside.stored(), "lower")
    below = turned.permute((0, 2, 1))
    others = rest(x, half)
    others = without(others, below, below, True)
    last = factored(others.stored())
    top = padded(first, 0, size - half)
    bottom = join([below, last], ACROSS)
    return join([top, bottom], DOWN).stored()


def half_of(size: int) -> int:
    """Halve a number of rows, which fall into panels."""
    return ceil_div(size, 2 * SIDE) * SIDE


def factored_in_loop(x: Node) -> Node:
    """Factor L L^T, panel by panel: each of its warps has the corner, and rows of its own."""
    stack, size, _ = x.shape
    count = size // SIDE

    def step(x: Node) -> Two:
        found = factored_panel(left(x, SIDE))
        column = found.reshape((stack, size, SIDE))
        below = moved(column, SIDE, 0)
        product = below.contract(below, SQUARE)
        row = product.iota(DOWN)
        at = product.iota(ACROSS)
        furthest = row.binary("maximum", at)
        is_left = furthest.binary("less", size - SIDE)
        taken = moved(x, SIDE, SIDE) - product
        return [is_left.where(taken, 0.0)], [found]

    _, results, _ = repeated(step, count, [x])
    columns = results[0]
    columns = columns.reshape((count, stack, size, SIDE))
    row = columns.iota(2)
    column = columns.iota(3)
    is_lower = column.binary("less_equal", row)
    lower = is_lower.where(columns, 0.0)
    return moved_down(lower)


def factored_panel(panel: Node) -> Node:
    """Factor the first columns of positive definite matrices, each of its rows as one below."""
    stack, size, _ = panel.shape
    shape = stack, size // SIDE, SIDE, SIDE
    first = head(panel, SIDE)
    first = first.reshape((stack, 1, SIDE, SIDE))
    firsts = stacked(first.expand(shape))
    others = stacked(panel.reshape(shape))
    pairs = join([firsts, others], DOWN)
    return eliminate(pairs, "below", SIDE)


def moved_down(columns: Node) -> Node:
    """Put panels (T, B, N, C), of which each begins on the diagonal, beside one another."""
    count, stack, size, width = columns.shape
    columns = columns.permute((1, 0, 2, 3))
    more = NONE, NONE, (0, width), NONE
    columns = columns.pad(more)
    longer = count * (size + width)
    rows = columns.reshape((stack, longer, width))
    rows = head(rows, count * size)
    found = rows.reshape((stack, count, size, width))
    found = found.permute((0, 2, 1, 3))
    shape = stack, size, count * width
    return found.reshape(shape).stored()


def moved_up(x: Node, width: int) -> Node:
    """Cut matrices into panels (T, B, N, C) of which each begins on the diagonal."""
    stack, size, _ = x.shape
    count = size // width
    columns = x.reshape((stack, size, count, width))
    columns = columns.permute((0, 2, 1, 3))
    rows = columns.reshape((stack, count * size, width))
    rows = padded(rows, size, 0)
    shape = stack * count, size + width, width
    rows = rows.reshape(shape)
    found = head(rows, size)
    found = found.reshape((stack, count, size, width))
    found = found.permute((1, 0, 2, 3))
    return found.stored()


# triangles


def solved(triangle: Node, b: Node, kind: str) -> Node:
    """Solve triangles: in a loop, or in halves."""
    is_upper, is_unit = SUBSTITUTIONS[kind]
    if is_upper:  # read from its end, an upper triangle is a lower one
        kind = "unit_lower" if is_unit else "lower"
        turned = triangle.flip((DOWN, ACROSS))
        last_first = b.flip((DOWN,))
        found = solved(turned, last_first, kind)
        found = found.flip((DOWN,))
        return found.stored()
    stack, size, columns = b.shape
    if size <= SIDE:
        return in_rows(solved_in_columns(triangle, b, kind), stack, columns)
    if size <= LOOPED or columns <= FEW:
        side = block_of(size)
        more = missing(size, side)
        whole = grown(triangle, more)
        b = padded(b, more, 0)
        found = solved_in_loop(whole, b, kind, side)
        return head(found, size).stored()
    half = half_of(size)
    above = corner(triangle, half).stored()
    own = head(b, half).stored()
    first = solved(above, own, kind)
    below = tail(triangle, half)
    others = left(below, half)
    own = without(tail(b, half), others, first)
    below = right(below, half).stored()
    last = solved(below, own.stored(), kind)
    return join([first, last], DOWN).stored()


def block_of(size: int) -> int:
    """Choose the rows of blocks that are inverted: panels, doubled."""
    side = SIDE
    while side < min(size, BLOCK):
        side *= 2
    return side


def solved_in_loop(triangle: Node, b: Node, kind: str, side: int) -> Node:
    """Solve lower triangles, some unknowns at a time, which are taken out of what is left.

    What is taken out is multiplied by the inverse before, so that a step is one product.
    """
    stack, size, columns = b.shape
    count = size // side
    row = triangle.iota(DOWN)
    column = triangle.iota(ACROSS)
    is_lower = column.binary("less_equal", row)
    panels = moved_up(is_lower.where(triangle, 0.0), side)
    every = panels.reshape((count * stack, size, side))
    blocks = inverted(head(every, side), kind).stored()
    below = moved(every, side, 0).contract(blocks, PRODUCT)
    below = below.reshape((count, stack, size, side))

    def step(b: Node, below: Node) -> Two:
        own = head(b, side)
        others = moved(b, side, 0)
        return [without(others, below, own)], []

    *_, histories = repeated(step, count, [b], below)
    before = rows_of(histories[0], 0, count)
    given = head(before.reshape((count * stack, size, columns)), side)
    found = blocks.contract(given, PRODUCT)
    found = found.reshape((count, stack, side, columns))
    rows = found.permute((1, 0, 2, 3))
    return rows.reshape((stack, size, columns))


def inverted(triangle: Node, kind: str) -> Node:
    """Invert lower triangles (B, N, N) of a panel's rows, doubled some times.

    [[A, 0], [C, D]]^-1 = [[A^-1, 0], [-D^-1 C A^-1, D^-1]], both halves of the diagonal at once.
    """
    stack, size, _ = triangle.shape
    if size <= SIDE:
        found = eliminate(beside(triangle, identity(triangle)), kind, size)
        return found.reshape(triangle.shape)
    half = size // 2
    both = join([corner(triangle, half), rest(triangle, half)], 0)
    both = inverted(both, kind).stored()
    first = rows_of(both, 0, stack)
    last = rows_of(both, stack, 2 * stack)
    below = left(tail(triangle, half), half)
    below = last.contract(below.contract(first, PRODUCT), PRODUCT)
    top = padded(first, 0, half)
    bottom = join([-below, last], ACROSS)
    return join([top, bottom], DOWN)


def solved_in_columns(triangle: Node, b: Node, kind: str) -> Node:
    """Solve small triangles for many columns: some of them in a block of threads."""
    stack, size, columns = b.shape
    width = min(columns, WIDTH)
    b = padded(b, 0, missing(columns, width))
    count = b.shape[2] // width
    b = b.reshape((stack, size, count, width))
    b = b.permute((0, 2, 1, 3))
    triangle = triangle.reshape((stack, 1, size, size))
    triangle = triangle.expand((stack, count, size, size))
    return eliminate(beside(triangle, b), kind, size)


def in_rows(found: Node, stack: int, columns: int) -> Node:
    """Let columns that several blocks of threads solved lie beside one another."""
    width = min(columns, WIDTH)
    blocks, cells = found.shape
    count = blocks // stack
    size = cells // width
    found = found.reshape((stack, count, size, width))
    found = found.permute((0, 2, 1, 3))
    rows = found.reshape((stack, size, count * width))
    return left(rows, columns)


# matrices with pivots


def width_of(x: Node, target: Target) -> int:
    """Count the columns of a panel that a block of threads has room for; 0 for too few.

    In registers, and in shared memory, where a column lies beside it; matrices of no rows have 0.
    """
    if not x.shape[1]:
        return 0
    itemsize = x.dtype.itemsize
    rows = ceil_div(x.shape[1], SIDE) * SIDE
    for width in WIDTHS:
        elements = rows * (width + 3) + SPARE
        has_room = elements * itemsize <= target.shared_bytes
        if has_room and rows * width * itemsize <= PANEL_BYTES:
            return width
    return 0


def rows_by(x: Node, order: Node) -> Node:
    """Take rows of matrices (B, M, W) in an order (B, R)."""
    stack, rows, width = x.shape
    whole = x.reshape((stack * rows, width))
    first = order.iota(0, int32) * rows
    return whole.gather((order + first,), (0,))


def eliminated(x: Node, count: int, target: Target) -> Three:
    """Eliminate the first columns of matrices (B, M, W), which pivots are chosen from.

    Returned are both triangles, with what the other columns became; the row (B, M) that stands at
    each place now, and the rows (B, count) that were swapped, counted from 1.
    """
    rows, width = x.shape[1], width_of(x, target)
    if count <= COLUMNS or rows <= LOOPED:
        return eliminated_in_loop(x, count, width)
    columns = left(x, COLUMNS).stored()
    first, order, swaps = eliminated_in_loop(columns, COLUMNS, width)
    others = right(x, COLUMNS)
    others = rows_by(others, order).stored()
    own = corner(first, COLUMNS)
    beside = head(others, COLUMNS).stored()
    top = solved(own.stored(), beside, "unit_lower")
    below = tail(first, COLUMNS)
    others = tail(others, COLUMNS)
    others = without(others, below, top).stored()
    last, later, more = eliminated(others, count - COLUMNS, target)
    top = join([own, top], ACROSS)
    below = rows_by(below, later)
    bottom = join([below, last], ACROSS)
    both = join([top, bottom], DOWN)
    order = ordered_again(order, later)
    swaps = join([swaps, more + COLUMNS], 1)
    return both.stored(), order.stored(), swaps


def ordered_again(order: Node, later: Node) -> Node:
    """Bring the last rows of an order (B, M) into an order of their own."""
    stack, count = order.shape
    column = order.reshape((stack, count, 1))
    kept = count - later.shape[1]
    last = tail(column, kept)
    last = rows_by(last, later)
    first = head(column, kept)
    found = join([first, last], DOWN)
    return found.reshape(order.shape)


def eliminated_in_loop(x: Node, count: int, width: int) -> Three:
    """Eliminate columns, panel by panel.

    What is done goes behind what is left, rows and columns, so that it is swapped as well, and is
    in order when all panels are done.
    """
    stack, kept, _ = x.shape
    end = count + missing(count, width)
    x = squared(x, count, end - count)
    rows = x.shape[1]
    length = end // width

    def step(x: Node, order: Node, turn: Node) -> Two:
        both, swaps, places = pivoted_panel(x, width, turn)
        order = rows_by(order, places)
        order = turned_up(order, width)
        x = taken_out(x, both, places, turn)
        return [x, order], [swaps]

    numbers = left(x, 1).iota(DOWN, int32)
    turns = Node("iota", (), 0, (length,), int32, x.device)
    carries = [x, numbers.stored()]
    lasts, results, _ = repeated(step, length, carries, turns)
    x, numbers = (turned_up(each, rows - end) for each in lasts)
    order = head(numbers, kept).reshape((stack, kept))
    swaps = counted(results[0], width, count)
    x = head(x, kept)
    behind = x.shape[2] - end
    found = left(right(x, behind), count)
    if behind:
        others = left(x, behind)
        found = join([found, others], ACROSS).stored()
    return found, order, swaps


def counted(swaps: Node, width: int, count: int) -> Node:
    """Count rows that panels (T, B, W) swapped from the first of all: (B, count)."""
    length, stack, _ = swaps.shape
    first = swaps.iota(0) * width
    swaps = swaps + first.cast(swaps.dtype)
    swaps = swaps.permute((1, 0, 2))
    row = swaps.reshape((stack, 1, length * width))
    row = left(row, count)
    return row.reshape((stack, count))


def squared(x: Node, count: int, more: int) -> Node:
    """Add rows and columns of an identity matrix behind the columns that are eliminated."""
    if not more:
        return x
    own = left(x, count)
    own = grown(own, more)
    others = right(x, count)
    others = padded(others, more, 0)
    return join([own, others], ACROSS).stored()


def pivoted_panel(x: Node, width: int, turn: Node) -> Three:
    """Eliminate the first columns: both triangles, the rows swapped, and the order of all rows."""
    stack, rows, _ = x.shape
    panel = left(x, width)
    is_left = is_ahead(panel, DOWN, turn, width)
    panel = is_left.where(panel, 0.0)
    found = eliminate(panel, "panel", width)
    width_of_all = found.shape[1]
    line = found.reshape((stack, 1, width_of_all))
    cells = rows * width
    both = left(line, cells)
    both = both.reshape(panel.shape)
    behind = right(line, cells)
    swaps = left(behind, width)
    swaps = swaps.reshape((stack, width))
    places = right(behind, width)
    places = places.reshape((stack, rows))
    return both, swaps, places.cast(int32)


def is_ahead(x: Node, axis: int, turn: Node, width: int) -> Node:
    """Tell which rows or columns are not done after so many steps: those done are the last."""
    count = turn * -width + x.shape[axis]
    place = x.iota(axis, int32)
    return place.binary("less", count.broadcast_to(x.shape))


def taken_out(x: Node, both: Node, places: Node, turn: Node) -> Node:
    """Take a panel out of the columns behind it, and put it behind all."""
    stack, rows, columns = x.shape
    width = both.shape[2]
    if width == columns:
        return turned_up(both, width)
    x = rows_by(x, places)
    own = corner(both, width)
    first = head(x, width)
    first = right(first, width)
    is_left = is_ahead(first, ACROSS, turn, width)
    asked = is_left.where(first, 0.0)
    top = solved_in_columns(own, asked, "unit_lower")
    top = in_rows(top, stack, columns - width)
    first = is_left.where(top, first)
    first = join([first, own], ACROSS)
    if width == rows:
        return first
    below = tail(both, width)
    is_left = is_ahead(below, DOWN, turn, width)
    others = tail(x, width)
    done = left(others, width)
    done = is_left.where(below, done)
    others = right(others, width)
    others = join([others, done], ACROSS)
    whole = join([others, first], DOWN)
    below = padded(below, width, 0)
    top = padded(top, 0, width)
    return without(whole, below, top)
