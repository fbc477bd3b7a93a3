"""Columns of matrices that a GPU turns until they are at right angles: X J = W.

Few columns are turned by one block of threads (codegen/templates/rotations.py), many by products,
in Jacobi's method by blocks. Neighbouring blocks of columns meet, two at a time: what turns the
columns of a pair is found of their products. Pairs (0, 1), (2, 3), ... and (1, 2), (3, 4), ... meet
in turns, and each is left in the order of lengths: blocks change places, and every two meet once in
a sweep, as all are reversed before it (Luk and Park, 1989).

    P = [X1, X2]    P^T P J = W    P J
"""

from picograd.dtype import int32
from picograd.graph.composites import join
from picograd.graph.elimination import eliminate, identity, part
from picograd.graph.matrix_loops import (
    DOWN,
    NONE,
    Two,
    head,
    left,
    missing,
    repeated,
    right,
    rows_by,
    tail,
)
from picograd.graph.node import Node
from picograd.graph.sorting import along, sort
from picograd.helpers import ceil_div

BLOCK = 32  # columns: two of them, and what turns them, lie in shared memory
SWEEPS = 9  # large random matrices of float32 take 7
PIECES = 4  # of lines, of which a block of threads each multiplies some
FAR = 2.0  # times as long as any column
ALONG_ROWS = (0, 1, 2), (0, 1, 3), (0, 2, 3)  # labels of x^T y
IN_PIECES = (0, 1, 2, 3), (0, 4, 2, 3), (0, 2, 1, 4)

Pair = tuple[Node, Node]


def turn(x: Node, count: int, kind: str = "turn") -> Pair:
    """Turn columns (B, M, N) by what their first rows are: the squares of their lengths (B, N),
    longest first, and what they become (B, M, N).
    """
    stack, _, columns = x.shape
    found = eliminate(x, kind, count, "rotate")
    every = 0, stack, 1
    first = 0, columns, 1
    behind = columns, found.shape[1], 1
    squares = found.slice((every, first))
    turned = found.slice((every, behind))
    return squares, turned.reshape(x.shape)


def turn_in_blocks(x: Node, count: int) -> Pair:
    """Turn many columns, as `turn` does."""
    more = missing(x.shape[2], 2 * BLOCK)
    count += more
    lines = x.permute((0, 2, 1))  # columns lie as rows
    lines = with_long_ones(lines, more).stored()
    _, size, width = lines.shape
    steps = ceil_div(size, 2 * BLOCK)
    length = steps * SWEEPS
    turns = Node("iota", (), 0, (length,), int32, x.device)

    def step(lines: Node, turn: Node) -> Two:
        lines = met(lines, count)
        if size > 2 * BLOCK:
            last = size - BLOCK
            rows = BLOCK, last
            inner = part(lines, rows, (0, width))
            inner = met(inner, count)
            first = head(lines, BLOCK)
            last_ones = tail(lines, last)
            lines = join([first, inner, last_ones], DOWN)
        number = turn.binary("mod", steps)
        is_over = number.binary("equal", steps - 1)
        is_over = is_over.broadcast_to(lines.shape)
        reversed_lines = lines.flip((DOWN,))
        lines = is_over.where(reversed_lines, lines)
        return [lines.stored()], []

    lasts, *_ = repeated(step, length, [lines], turns)
    return sorted_by_length(lasts[0], count, more)


def with_long_ones(lines: Node, more: int) -> Node:
    """Add columns, which lie as rows, at right angles to the others and longer: they stay."""
    if not more:
        return lines
    squares = lines * lines
    length = squares.reduce("sum", (1, 2), True).unary("sqrt")
    is_nothing = length.binary("equal", 0.0)
    length = is_nothing.where(1.0, length) * FAR
    before = more, 0
    lines = lines.pad((NONE, before, before))
    row = lines.iota(1)
    is_same = row.binary("equal", lines.iota(2))
    is_added = is_same.binary("logical_and", row.binary("less", more))
    return is_added.where(length.expand(lines.shape), lines)


def met(lines: Node, count: int) -> Node:
    """Turn the columns of neighbouring blocks, each two of them, the longest first."""
    stack, size, width = lines.shape
    side = 2 * BLOCK
    number = stack * (size // side)
    pairs = lines.reshape((number, side, width))
    products = squared(left(pairs, count))
    both = join([products, identity(products)], DOWN)
    _, turned = turn(both, side, "sweep")
    turning = tail(turned, side)
    found = turning.contract(pairs, ALONG_ROWS)
    return found.reshape(lines.shape)


def squared(x: Node) -> Node:
    """Multiply lines by one another: some pieces of them at once, as there are few matrices."""
    stack, size, width = x.shape
    piece = ceil_div(width, PIECES)
    more = 0, PIECES * piece - width
    x = x.pad((NONE, NONE, more))
    x = x.reshape((stack, size, PIECES, piece))
    products = x.contract(x, IN_PIECES).stored()
    shape = stack, size, size
    matrices = 0, stack, 1
    every = 0, size, 1
    parts = []
    for n in range(PIECES):
        own = n, n + 1, 1
        each = products.slice((matrices, own, every, every))
        parts.append(each.reshape(shape))
    first, *others = parts
    return sum(others, first)


def sorted_by_length(lines: Node, count: int, more: int) -> Pair:
    """Put columns, which lie as rows, in the order of their lengths, without the first ones."""
    asked = left(lines, count)
    squares = asked * asked
    squares = squares.reduce("sum", (2,))
    order = sort(squares, 1, True)
    stack, size = order.shape
    every = 0, stack, 1
    behind = more, size, 1
    order = order.slice((every, behind))
    squares = along(squares, order, 1)
    lines = rows_by(lines, order.cast(int32))
    lines = right(lines, more)
    columns = lines.permute((0, 2, 1))
    return squares, columns.stored()
