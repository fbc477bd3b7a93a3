"""Host calls of matrices by kernels of a GPU: small ones in one kernel, large ones in loops.

A row of a host call names what computes it here (`kernels`): nothing where a matrix is complex, or
too large.
"""

import math
from functools import reduce

from picograd.dtype import float64, int32
from picograd.graph import matrix_loops, reflector_loops
from picograd.graph.composites import join
from picograd.graph.elimination import SUBSTITUTIONS, beside, eliminate, identity, part, stacked
from picograd.graph.node import Node, constant
from picograd.graph.shape import Shape
from picograd.helpers import product
from picograd.target import Target

BLOCK_BYTES = 128 << 10  # of a matrix: half the registers of a multiprocessor
MOST_ROWS = 512  # of which each warp sees all
SPARE = 512  # elements beside rows and columns
MOST_TINY = 4  # rows of matrices that a thread has, and unknowns
EVEN = 32  # columns: tiles of products are whole
TERMS = 20  # of Taylor's series, after halving until the norm is below 1: 1 / 20! is 4e-19
SQUARINGS = {4: 32, 8: 53}  # by the bytes of an element: more of them leave no digit


def is_complex(node: Node) -> bool:
    """Tell whether a host call is of complex matrices, which are pairs of numbers later on."""
    return node.dtype.is_complex or node.arg.in_pairs


def fits(node: Node, rows: int, columns: int, target: Target) -> bool:
    """Tell whether a block of threads has room for real matrices of so many rows and columns.

    In registers, and in shared memory beside rows and columns of it.
    """
    size = rows * columns
    beside = size + 5 * rows + 2 * columns
    is_small = 0 < size * node.dtype.itemsize <= BLOCK_BYTES
    has_room = (beside + SPARE) * node.dtype.itemsize <= target.shared_bytes
    is_short = rows <= MOST_ROWS
    return is_small and has_room and is_short and not is_complex(node)


def matrix_fits(node: Node, x: Node, target: Target) -> bool:
    """Tell whether a block of threads has room for matrices."""
    rows, columns = x.shape[-2:]
    return fits(node, rows, columns, target)


def solved(node: Node, a: Node, b: Node, target: Target, is_told: bool = False) -> Node | None:
    """Solve systems: the solutions, one a row, with what went wrong behind each if it is told."""
    size, columns = b.shape[-2:]
    if is_tiny(node) and 0 < size * columns <= MOST_TINY:  # more take long to be compiled
        parts = tiny_solved(stacked(a), stacked(b))
        parts = parts if is_told else parts[:-1]
        return join(parts, 1)
    if fits(node, size, size + columns, target):
        found = eliminate(beside(a, b), "solve", size)
        return found if is_told else without_failure(found)
    a = stacked(exact(a, target))
    b = stacked(exact(b, target))
    if is_complex(node) or not matrix_loops.width_of(a, target):
        return None
    more = -columns % EVEN
    b = matrix_loops.padded(b, 0, more)
    whole = join([a, b], 2)
    both, _, _ = matrix_loops.eliminated(whole, size, target)
    upper = matrix_loops.left(both, size)
    right = matrix_loops.right(both, size)
    right = matrix_loops.left(right, columns)
    found = matrix_loops.solved(upper, right, "upper")
    found = found.reshape((found.shape[0], size * columns))
    if not is_told:
        return found
    failure = failure_of(upper)
    return join([found, failure], 1)


def failure_of(x: Node) -> Node:
    """Find the first zero on the diagonal, counted from 1; 0 if there is none."""
    stack, size, _ = x.shape
    diagonal = diagonal_of(x)
    number = diagonal.iota(1).cast(x.dtype)
    past = 2.0 * size
    is_nothing = diagonal.binary("equal", 0.0)
    failed = is_nothing.where(number + 1.0, past)
    first = failed.reduce("min", (1,))
    first = first.reshape((stack, 1))
    is_fine = first.binary("equal", past)
    return is_fine.where(0.0, first)


def diagonal_of(x: Node) -> Node:
    """Read the diagonals of square matrices (B, N, N)."""
    stack, size, _ = x.shape
    count = size * size
    cells = x.reshape((stack, count))
    every = 0, stack, 1
    diagonal = 0, count, size + 1
    return cells.slice((every, diagonal))


def without_failure(found: Node) -> Node:
    """Leave out what went wrong."""
    count, size = found.shape
    rows = 0, count, 1
    cells = 0, size - 1, 1
    return found.slice((rows, cells))


def solve_kernels(node: Node, target: Target) -> Node | None:
    """Solve systems, whether or not they can be."""
    a, b = node.inputs
    found = solved(node, a, b, target)
    return None if found is None else found.reshape(node.shape)


def told_solve_kernels(node: Node, target: Target) -> Node | None:
    """Solve systems, and tell which could not be."""
    a, b = node.inputs
    found = solved(node, a, b, target, True)
    return None if found is None else found.reshape(node.shape)


def inverse_kernels(node: Node, target: Target) -> Node | None:
    """Invert matrices, whether or not they can be."""
    (x,) = node.inputs
    found = solved(node, x, identity(x), target)
    return None if found is None else found.reshape(node.shape)


def told_inverse_kernels(node: Node, target: Target) -> Node | None:
    """Invert matrices, and tell which could not be."""
    (x,) = node.inputs
    found = solved(node, x, identity(x), target, True)
    return None if found is None else found.reshape(node.shape)


def triangle_kernels(node: Node, target: Target) -> Node | None:
    """Solve triangles."""
    a, b = node.inputs
    options = node.arg.options
    size, columns = b.shape[-2:]
    if is_complex(node) or not a.size:
        return None
    kind = next(kind for kind, each in SUBSTITUTIONS.items() if each == options)
    if fits(node, size, size + columns, target):
        found = eliminate(beside(a, b), kind, size)
    else:
        triangle = stacked(exact(a, target))
        right = stacked(exact(b, target))
        found = matrix_loops.solved(triangle, right, kind)
    return found.reshape(node.shape)


def cholesky_kernels(node: Node, target: Target) -> Node | None:
    """Factor positive definite matrices."""
    (x,) = node.inputs
    if is_complex(node):
        return None
    if matrix_fits(node, x, target):
        found = eliminate(stacked(x), "cholesky", x.shape[-1])
    else:
        found = matrix_loops.factored(stacked(exact(x, target)))
    return found.reshape(node.shape)


def exact(x: Node, target: Target) -> Node:
    """Compute in float64 where products of float32 have fewer digits."""
    return x.cast(float64) if target.tf32 else x


def lu_kernels(node: Node, target: Target) -> Node | None:
    """Write matrices as P L U."""
    (x,) = node.inputs
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    if matrix_fits(node, x, target):
        return eliminate(stacked(x), "lu", count).reshape(node.shape)
    x = stacked(exact(x, target))
    width = matrix_loops.width_of(x, target)
    if is_complex(node) or not width or (rows > columns and count % width):
        return None
    both, _, swaps = matrix_loops.eliminated(x, count, target)
    both = both.reshape((x.shape[0], rows * columns))
    return join([both, swaps], 1).reshape(node.shape)


def pivots(node: Node, target: Target) -> tuple[Node, Node] | None:
    """Find the pivots of square matrices (B, N), and whether rows were swapped at each step."""
    (x,) = node.inputs
    size = x.shape[-1]
    if matrix_fits(node, x, target):
        found = eliminate(stacked(x), "lu", size)
        count, width = found.shape
        rows = 0, count, 1
        both = 0, size * size, size + 1
        diagonal = found.slice((rows, both))
        behind = size * size, width, 1
        swaps = found.slice((rows, behind))
    else:
        x = stacked(exact(x, target))
        if is_complex(node) or not matrix_loops.width_of(x, target):
            return None
        found, _, swaps = matrix_loops.eliminated(x, size, target)
        diagonal = diagonal_of(found)
    own = swaps.iota(1).binary("add", 1)
    return diagonal, swaps.binary("not_equal", own.cast(x.dtype))


def is_tiny(node: Node) -> bool:
    """Tell whether a thread eliminates a whole matrix, so that nothing is shared."""
    size = node.inputs[0].shape[-1]
    return 0 < size <= MOST_TINY and not is_complex(node)


def cells_of(x: Node) -> list[list[Node]]:
    """Take tiny matrices apart: the elements of each row, one of every matrix."""
    stack, rows, columns = x.shape
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    found: list[list[Node]] = [[] for _ in range(rows)]
    for row, column in cells:
        down = row, row + 1
        across = column, column + 1
        one = part(x, down, across).reshape((stack,))
        found[row].append(one)
    return found


def tiny_rows(rows: list[list[Node]]) -> tuple[list[list[Node]], Node]:
    """Eliminate: rows of the triangle from its diagonal on, and what stands beside them.

    Gives also 1 or, after an odd number of swaps, -1.
    """
    found: list[list[Node]] = []
    like = rows[0][0]
    sign = constant(1, like.shape, like.dtype, like.device)
    while rows:
        first, *others = rows
        for number, other in enumerate(others):
            here = first[0].unary("abs")
            there = other[0].unary("abs")
            is_larger = here.binary("less", there)
            sign = is_larger.where(-sign, sign)
            both = list(zip(first, other, strict=True))
            first = [is_larger.where(two, one) for one, two in both]
            others[number] = [is_larger.where(one, two) for one, two in both]
        found.append(first)
        head, *right = first
        is_nothing = head.binary("equal", 0.0)
        divisor = is_nothing.where(1.0, head)
        rows = []
        for below, *rest in others:
            factor = below / divisor
            pairs = zip(right, rest, strict=True)
            rows.append([two - factor * one for one, two in pairs])
    return found, sign


def tiny_solved(a: Node, b: Node) -> list[Node]:
    """Solve tiny systems: the solutions, and the first pivot that is 0, counted from 1."""
    beside_it = zip(cells_of(a), cells_of(b), strict=True)
    rows, sign = tiny_rows([left + right for left, right in beside_it])
    failure = sign.const_like(0)
    found: list[list[Node]] = []
    numbered = list(enumerate(rows, 1))
    for number, (head, *rest) in reversed(numbered):
        right = rest[len(found) :]
        for factor, known in zip(rest, found):
            pairs = zip(right, known, strict=True)
            right = [each - factor * one for each, one in pairs]
        solution = [each / head for each in right]
        found.insert(0, solution)
        is_nothing = head.binary("equal", 0.0)
        failure = is_nothing.where(failure.const_like(number), failure)
    columns = [each for row in found for each in row]
    columns.append(failure)
    shape = *failure.shape, 1
    return [each.reshape(shape) for each in columns]


def tiny_pivots(x: Node) -> tuple[list[Node], Node]:
    """Find the pivots of tiny matrices (B, N, N), and 1 or, after an odd number of swaps, -1."""
    rows, sign = tiny_rows(cells_of(x))
    return [row[0] for row in rows], sign


def sign_of(is_swapped: Node, like: Node) -> Node:
    """Give 1 for an even number of swaps, -1 for an odd one."""
    count = is_swapped.cast(int32).reduce("sum", (1,))
    odd = count.binary("mod", 2).cast(like.dtype)
    return 1.0 - odd * 2.0


def determinant_kernels(node: Node, target: Target) -> Node | None:
    """Multiply pivots."""
    if is_tiny(node):
        own, sign = tiny_pivots(stacked(node.inputs[0]))
        value = reduce(Node.__mul__, own, sign)
        return value.reshape(node.shape)
    found = pivots(node, target)
    if found is None:
        return None
    diagonal, is_swapped = found
    value = diagonal.reduce("prod", (1,))
    return (value * sign_of(is_swapped, value)).reshape(node.shape)


def log_determinant_kernels(node: Node, target: Target) -> Node | None:
    """Multiply the signs of pivots, and add the logarithms of their sizes."""
    if is_tiny(node):
        own, sign = tiny_pivots(stacked(node.inputs[0]))
        each_sign = [each.unary("sign") for each in own]
        each_size = [each.unary("abs") for each in own]
        logarithms = [each.unary("log") for each in each_size]
        signs = reduce(Node.__mul__, each_sign, sign)
        sizes = reduce(Node.__add__, logarithms)
    else:
        found = pivots(node, target)
        if found is None:
            return None
        diagonal, is_swapped = found
        signs = diagonal.unary("sign").reduce("prod", (1,))
        signs = signs * sign_of(is_swapped, signs)
        sizes = diagonal.unary("abs").unary("log")
        sizes = sizes.reduce("sum", (1,))
    column = (*signs.shape, 1)
    parts = [each.reshape(column) for each in (signs, sizes)]
    both = join(parts, 1)
    return both.reshape(node.shape)


def qr_kernels(node: Node, target: Target) -> Node | None:
    """Write matrices as Q R."""
    (x,) = node.inputs
    if is_complex(node) or not x.size:
        return None
    rows, columns = x.shape[-2:]
    (mode,) = node.arg.options
    is_complete = mode == "complete"
    count = rows if is_complete else min(rows, columns)
    matrices = stacked(exact(x, target))
    both = reflector_loops.decomposed(matrices, count)
    lines = [each.reshape((each.shape[0], product(each.shape[1:]))) for each in both]
    found = join(lines, 1)
    return found.reshape(node.shape)


def nearest_kernels(node: Node, target: Target) -> Node | None:
    """Make squares of tall matrices, which the host finds what is nearest with."""
    a, b = node.inputs
    rows, columns = a.shape[-2:]
    is_nothing = not a.size or not b.size
    if is_complex(node) or is_nothing or rows <= columns:
        return None
    lead = a.shape[:-2]
    a = stacked(exact(a, target))
    b = stacked(exact(b, target))
    square, right = reflector_loops.reduced(a, b)
    inputs = spread(square, lead, node), spread(right, lead, node)
    return Node("host_call", inputs, node.arg, node.shape, node.dtype, node.device)


def spread(x: Node, lead: Shape, node: Node) -> Node:
    """Give a stack of matrices its axes back, and the dtype of a call."""
    shape = *lead, *x.shape[1:]
    return x.reshape(shape).cast(node.dtype)


def asked(node: Node, x: Node, shape: Shape) -> Node:
    """Ask the host for what a call is of other matrices, of a result's shape for one."""
    whole = *x.shape[:-2], *shape
    return Node("host_call", (x,), node.arg, whole, node.dtype, node.device)


# exponentials


def exponential_kernels(node: Node, target: Target) -> Node | None:
    """Sum x^n / n! in float64, scaled and squared: as often as the norm of each matrix asks.

    Squarings are as many for all of a stack as the call says, or as can leave a digit; what is
    squared enough stays. Of a matrix that takes more of them the result is NaN.
    """
    (x,) = node.inputs
    options = node.arg.options
    most = options[0] if options else SQUARINGS[node.dtype.itemsize]
    if is_complex(node) or most > SQUARINGS[8]:
        return None
    x = stacked(x).cast(float64)
    halvings = halvings_of(x)
    less = -halvings
    factor = less.unary("exp2")
    x = x * factor.expand(x.shape)
    result = series(x.stored())
    if most:
        steps = left_of(halvings, most)
        lasts, *_ = matrix_loops.repeated(squared, most, [result], steps)
        (result,) = lasts
    is_enough = halvings.binary("less_equal", float(most))
    is_enough = is_enough.expand(result.shape)
    result = is_enough.where(result, math.nan)
    return result.reshape(node.shape)


def halvings_of(x: Node) -> Node:
    """Count how often each matrix (B, N, N) is halved until its norm is 1 at most: (B, 1, 1)."""
    sizes = x.unary("abs")
    sums = sizes.reduce("sum", (1,), True)
    norm = sums.reduce("max", (2,), True)
    is_plain = norm.binary("less", math.inf)
    norm = norm.binary("maximum", 1.0)
    count = norm.unary("log2").unary("ceil")
    return is_plain.where(count, 0.0)


def left_of(halvings: Node, most: int) -> Node:
    """Count how often each matrix is to be squared from each step on: (T, B, 1, 1)."""
    shape = most, *halvings.shape
    whole = halvings.broadcast_to(shape)
    step = whole.iota(0)
    left = whole - step.cast(whole.dtype)
    return left.stored()


def squared(result: Node, left: Node) -> matrix_loops.Two:
    """Square matrices that are to be squared."""
    is_done = left.binary("less", 0.5)
    is_done = is_done.expand(result.shape)
    square = multiplied(result, result)
    return [is_done.where(result, square)], []


def multiplied(a: Node, b: Node) -> Node:
    """Multiply matrices (B, N, N)."""
    return a.contract(b, matrix_loops.PRODUCT)


def series(x: Node) -> Node:
    """Sum x^n / n! for matrices of norms up to 1: four terms at a time, eight products."""
    square = multiplied(x, x).stored()
    cube = multiplied(square, x).stored()
    fourth = multiplied(square, square).stored()
    powers = identity(x), x, square, cube
    result: Node | None = None
    for start in reversed(range(0, TERMS, len(powers))):
        terms = []
        for n, power in enumerate(powers, start):
            factor = 1 / math.factorial(n)
            terms.append(power * factor)
        first, second, third, last = terms
        part = first + second + (third + last)
        if result is not None:
            part = multiplied(result, fourth) + part
        result = part.stored()
    return part
