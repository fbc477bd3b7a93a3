"""Q and R of matrices by a GPU: panels of columns, whose reflectors turn what is right by products.

The vectors V of reflectors 1 - v v^T make one block of them (Puglisi, 1992; |v|^2 = 2 here):

    H1 H2 ... Hn = 1 - V U^-1 V^T    U = the upper triangle of V^T V, with ones on its diagonal

So a panel turns others by two products and a small triangle. A panel that a block of threads has no
room for falls into pieces of rows, each of which is turned, and then the first rows of all of them
together, which lie where they lay (Demmel et al., "Communication-optimal QR", 2012).
"""

from picograd.graph.composites import join
from picograd.graph.elimination import eliminate, identity, part, without
from picograd.graph.matrix_loops import (
    ACROSS,
    DOWN,
    NONE,
    PANEL_BYTES,
    SIDE,
    Two,
    head,
    left,
    moved_down,
    padded,
    repeated,
    right,
    solved,
    tail,
)
from picograd.graph.node import Node, Nodes
from picograd.graph.shape import Shape
from picograd.helpers import ceil_div

HALVED = 512  # rows from which on a loop takes half of the panels
Loops = list[Nodes]  # the vectors of panels, of pieces and of all, of loops in turn
Turned = tuple[Node, Node, Nodes]

ALONG_ROWS = (0, 1, 2), (0, 1, 3), (0, 2, 3)  # labels of x^T y


def panel_of(x: Node, width: int) -> tuple[Node, Node]:
    """Turn the first columns: the vectors (B, M, W) of reflectors, and R (B, W, W)."""
    stack, rows, _ = x.shape
    found = eliminate(left(x, width), "reflect", width)
    line = found.reshape((stack, 1, found.shape[1]))
    cells = rows * width
    both = left(line, cells).reshape((stack, rows, width))
    row = both.iota(DOWN)
    column = both.iota(ACROSS)
    is_below = column.binary("less_equal", row)
    vectors = is_below.where(both, 0.0)
    top = head(both, width)
    row = top.iota(DOWN)
    column = top.iota(ACROSS)
    is_above = row.binary("less", column)
    is_here = row.binary("equal", column)
    diagonal = right(line, cells).expand(top.shape)
    lower = is_here.where(diagonal, 0.0)
    upper = is_above.where(top, lower)
    return vectors, upper


def turned(x: Node, vectors: Node, kind: str) -> Node:
    """Multiply by a block of reflectors, or in reverse: "unit_upper", "unit_lower"."""
    along = vectors.contract(x, ALONG_ROWS)
    return turned_by(x, vectors, along, kind)


def turned_by(x: Node, vectors: Node, along: Node, kind: str) -> Node:
    """Multiply by a block of reflectors, given V^T x."""
    triangle = vectors.contract(vectors, ALONG_ROWS)
    taken = solved(triangle, along, kind)
    return without(x, vectors, taken).stored()


def most_rows(x: Node) -> int:
    """Count the rows of a panel that a block of threads has room for."""
    return PANEL_BYTES // (SIDE * x.dtype.itemsize)


def eliminated(x: Node, width: int) -> Turned:
    """Turn matrices so that their first columns are R (B, W, W): it, what becomes of the others,
    and the vectors, of pieces and of all."""
    stack, rows, columns = x.shape
    if rows > most_rows(x):
        pieces = in_pieces(x, ceil_div(rows, most_rows(x)))
        upper, pieces, own = eliminated(pieces, width)
        firsts = join([upper, head(pieces, width)], ACROSS)
        upper, firsts, later = eliminated(in_one(firsts, stack), width)
        others = with_firsts(pieces, firsts)
        return upper, head(others, rows), [*own, *later]
    vectors, upper = panel_of(x, width)
    others = right(x, width)
    if columns > width:
        others = turned(others, vectors, "unit_lower")
    return upper, others, [vectors]


def turned_back(x: Node, vectors: Nodes, width: int) -> Node:
    """Multiply by the reflectors of a panel: by those of all pieces, and then of each."""
    own, *others = vectors
    if not others:
        return turned(x, own, "unit_upper")
    stack, rows, _ = x.shape
    count = own.shape[0] // stack
    pieces = in_pieces(x, count)
    firsts = in_one(head(pieces, width), stack)
    firsts = turned_back(firsts, others, width)
    x = with_firsts(pieces, firsts)
    pieces = turned(in_pieces(x, count), own, "unit_upper")
    return head(in_one(pieces, stack), rows)


def in_pieces(x: Node, count: int) -> Node:
    """Cut rows into pieces, which are matrices of their own."""
    stack, rows, columns = x.shape
    size = ceil_div(rows, count * SIDE) * SIDE
    x = padded(x, count * size - rows, 0)
    return x.reshape((stack * count, size, columns))


def in_one(pieces: Node, stack: int) -> Node:
    """Put pieces below one another."""
    count, size, columns = pieces.shape
    rows = count // stack * size
    return pieces.reshape((stack, rows, columns))


def with_firsts(pieces: Node, firsts: Node) -> Node:
    """Put pieces together, of which the first rows have changed."""
    stack, rows, columns = firsts.shape
    count = pieces.shape[0]
    width = stack * rows // count
    firsts = firsts.reshape((count, width, columns))
    whole = join([firsts, tail(pieces, width)], DOWN)
    return in_one(whole, stack)


# whole matrices


def widths(count: int) -> tuple[int, int]:
    """Choose how many panels some columns are, and how wide these."""
    steps = ceil_div(count, SIDE)
    return steps, ceil_div(count, steps)


def in_panels(x: Node, steps: int, width: int) -> tuple[Loops, Node]:
    """Turn the first columns of matrices, panel by panel.

    Returned are the vectors of each, and the rows of R, which go on behind those columns. In a loop
    what is left keeps its shape: where it becomes much smaller, a loop of its own has the rest.
    """
    rows, columns = x.shape[1:]
    count = ceil_div(steps, 2)
    is_halved = rows > HALVED and count * width * 4 >= rows
    count = count if is_halved else steps

    def step(x: Node) -> Two:
        upper, others, vectors = eliminated(x, width)
        turn = join([upper, head(others, width)], ACROSS)
        below = tail(others, width)
        return [padded(below, width, width)], [turn, *vectors]

    lasts, results, _ = repeated(step, count, [x])
    turns, *vectors = results
    turns = turns.permute((0, 1, 3, 2))
    upper = moved_down(turns).permute((0, 2, 1))
    if count == steps:
        return [vectors], upper
    done = count * width
    left_over = 0, rows - done
    right_over = 0, columns - done
    others = part(lasts[0], left_over, right_over)
    more, others = in_panels(others.stored(), steps - count, width)
    before = done, 0
    others = others.pad((NONE, NONE, before))
    return [vectors, *more], join([upper, others], DOWN).stored()


def product_of(loops: Loops, shape: Shape) -> Node:
    """Multiply all reflectors: the first columns of Q."""
    if max(map(len, loops)) > 1:
        return product_of_pieces(loops, shape)
    joined = []
    done = 0
    for (own,) in loops:
        vectors = moved_down(own)
        before = done, 0
        joined.append(vectors.pad((NONE, before, NONE)))
        done += vectors.shape[2]
    vectors = join(joined, ACROSS).stored()
    along = head(vectors, shape[2]).permute((0, 2, 1))
    return turned_by(identity(vectors, shape), vectors, along, "unit_upper")


def product_of_pieces(loops: Loops, shape: Shape) -> Node:
    """Multiply the reflectors of loops over panels that fell into pieces, from the last on."""
    vectors, *others = loops
    stack, rows, columns = shape
    length, _, _, width = vectors[0].shape
    last = identity(vectors[0], shape)
    if others:
        done = length * width
        rest = stack, rows - done, columns - done
        last = padded(product_of_pieces(others, rest), done, done)

    def step(x: Node, *vectors: Node) -> Two:
        above = 0, rows - width
        before = 0, columns - width
        more = width, 0
        others = part(x, above, before)
        others = others.pad((NONE, more, more))
        is_done = others.iota(DOWN).binary("less", width)
        first = identity(x, shape)
        x = is_done.where(first, others)
        x = turned_back(x, vectors, width)
        return [x], []

    lasts, *_ = repeated(step, length, [last.stored()], *vectors, is_reverse=True)
    return lasts[0]


def decomposed(x: Node, columns: int) -> tuple[Node, Node]:
    """Write matrices (B, M, N) as Q R, with so many columns of Q: min(M, N) at least."""
    stack, rows, width = x.shape
    steps, each = widths(min(rows, width))
    whole = steps * each
    x = padded(x, max(whole - rows, 0), max(whole - width, 0))
    loops, upper = in_panels(x, steps, each)
    q = product_of(loops, (stack, x.shape[1], columns))
    upper = left(head(upper, min(rows, width)), width)
    upper = padded(upper, columns - upper.shape[1], 0)
    return head(q, rows), upper


def reduced(a: Node, b: Node) -> tuple[Node, Node]:
    """Write a as Q R, and give R and Q^T b: what R is nearest to is what a is nearest to."""
    count = a.shape[2]
    steps, each = widths(count)
    whole = steps * each
    a = padded(a, 0, whole - count)
    both = join([a, b], ACROSS)
    both = padded(both, max(whole - both.shape[1], 0), 0)
    _, upper = in_panels(both, steps, each)
    upper = head(upper, count)
    return left(upper, count), right(upper, whole)
