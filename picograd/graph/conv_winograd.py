"""Convolutions of 3 x 3 taps with fewer products (Winograd; Lavin and Gray, 2016: F(4 x 4, 3 x 3)).

    out = A^T [(G w G^T) * (B^T d B)] A         d: a patch of 6 x 6 of the image, out: 4 x 4 results
    dw  = G^T [(A g A^T) * (B^T d B)] G         g: the gradients of these

Each of the 36 elements of transformed patches is a matrix, channels x patches, so that 36 products
of matrices do with 2.25 multiplications a result what 9 do. Errors are about twice those of sums.
What is transformed passes through memory, so that channels must be many.
"""

from collections.abc import Callable
from functools import reduce
from math import prod

from picograd.dtype import float32
from picograd.graph.composites import join
from picograd.graph.node import Node, constant
from picograd.graph.shape import Shape
from picograd.helpers import ceil_div
from picograd.target import Target

STEP, PATCH = 4, 6  # results a patch, along an axis
# Where polynomials are evaluated, beside 0 and infinity: on both sides of 0. As their product is 1,
# few numbers are multiplied, and errors are half of those of 1 and 2 (docs/records/0014).
POINTS = 2 / 3, 3 / 2
# In multiplications that a GPU does meanwhile (docs/records/0014): to move an element, and to
# launch three kernels more. What is transformed takes so many bytes at most.
MOVED, LAUNCHED = 24, 1.4e6
MOST_BYTES = 1 << 30
JOINED = 64  # elements: arrays of a multiple of them are computed one behind another
Terms = Callable[..., list[Node]]


class Numbers(dict[float, Node]):
    """Numbers as nodes beside the parts of a transform, each made once."""

    def __init__(self, part: Node) -> None:
        super().__init__()
        self.part = part

    def __missing__(self, number: float) -> Node:
        self[number] = constant(number, self.part.shape, self.part.dtype, self.part.device)
        return self[number]


def around_zero(even: Node, odd: Node, point: Node) -> list[Node]:
    """Evaluate a polynomial at +-point: its even part, and its odd part but for one factor."""
    odd = odd * point
    return [even + odd, even - odd]


def patch_terms(n: Numbers, *d: Node) -> list[Node]:
    """Transform an axis of an image's patches: B^T."""
    both = n[POINTS[0] ** 2 + POINTS[1] ** 2]
    made = [d[0] - d[2] * both + d[4]]
    for point, other in zip(POINTS, POINTS[::-1]):
        square = n[other**2]
        made += around_zero(d[4] - d[2] * square, d[3] - d[1] * square, n[point])
    return [*made, d[1] - d[3] * both + d[5]]


def factor_terms(n: Numbers, *c: Node) -> list[Node]:
    """Transform an axis of a weight, G, or of gradients of results, A: polynomials at points."""
    made = [c[0]]
    for point in POINTS:
        square = n[point**2]
        odd = c[1] + c[3] * square if len(c) > 3 else c[1]
        made += around_zero(c[0] + c[2] * square, odd, n[point])
    return [*made, c[-1]]


def result_terms(n: Numbers, *m: Node, count: int = STEP) -> list[Node]:
    """Transform an axis of products back to results, A^T, or to a weight, G^T."""
    pairs = [(m[at] + m[at + 1], m[at] - m[at + 1]) for at in (1, 3)]
    made = []
    for power in range(count):
        first, second = (
            pair[power % 2] * n[point**power / (2 * point**2 * (point**2 - other**2))]
            for pair, point, other in zip(pairs, POINTS, POINTS[::-1])
        )
        made.append(first + second)
    return [m[0] + made[0], *made[1:-1], made[-1] + m[5]]


def weight_terms(n: Numbers, *m: Node) -> list[Node]:
    """Transform an axis of products back to a weight: G^T."""
    return result_terms(n, *m, count=3)


def cut(node: Node, counts: Shape = (), step: int = 1) -> list[list[Node]]:
    """List what the last two axes hold at each place, or at places that are a `step` apart.

    Of these there are `counts`, which stay axes; else the axes are dropped.
    """
    whole = [(0, n, 1) for n in node.shape[:-2]]
    rows, columns = (
        [(n, n + (count - 1) * step + 1, step) for n in range(size - (count - 1) * step)]
        for size, count in zip(node.shape[-2:], counts or (1, 1))
    )
    shape = (*node.shape[:-2], *counts)
    return [[node.slice((*whole, row, each)).reshape(shape) for each in columns] for row in rows]


def along_both(parts: list[list[Node]], terms: Terms) -> list[Node]:
    """Transform both axes of a square of parts: I x J -> I' * J'."""
    numbers = Numbers(parts[0][0])
    rows = zip(*[terms(numbers, *column) for column in zip(*parts)])
    return [term for row in rows for term in terms(numbers, *row)]


def behind(parts: list[Node]) -> Node:
    """Put arrays one behind another, computed in their places by one kernel (in_place.py)."""
    count = len(parts)
    wide = [part.stored().reshape((1, *part.shape)) for part in parts]
    ends = [((n, count - 1 - n), *((0, 0) for _ in part.shape)) for n, part in enumerate(parts)]
    padded = [part.pad(pads, 0.0) for part, pads in zip(wide, ends)]
    return reduce(Node.__add__, padded)


def between(parts: list[Node], axis: int) -> Node:
    """Put arrays one between another: their elements are a new axis."""
    cut = [part.reshape((*part.shape[:axis], 1, *part.shape[axis:])) for part in parts]
    return join(cut, axis)


def patches_of(x: Node, low: Shape, counts: Shape) -> Node:
    """Transform patches of images: (C, N, H, W) -> (36, C, N * counts)."""
    pads = [(0, 0), (0, 0)]
    for size, count, before in zip(x.shape[2:], counts, low):
        pads.append((before, STEP * count + PATCH - STEP - size - before))
    made = behind(along_both(cut(x.pad(tuple(pads)), counts, STEP), patch_terms))
    return made.reshape((PATCH**2, x.shape[0], x.shape[1] * prod(counts)))


def multiplied(a: Node, b: Node, labels: tuple[Shape, Shape, Shape]) -> Node:
    """Multiply the 36 pairs of matrices, and give the result 6 x 6 of them."""
    made = a.contract(b, labels)
    return made.reshape((PATCH, PATCH, *made.shape[1:]))


def expand_winograd(node: Node, target: Target) -> Node | None:
    """Write a convolution by transformed patches; None if it has none, or takes less time so."""
    x, weight = node.inputs
    spec = node.arg
    is_plain = {*spec.stride, *spec.input_dilation, *spec.kernel_dilation} == {1}
    if node.dtype is not float32 or not target.has_async or len(spec.stride) != 2 or not is_plain:
        return None
    low = spec.padding[0][0], spec.padding[1][0]
    if x.shape[1] != 1 or min(low) < 0:
        return None
    if weight.shape[3:] == (3, 3):
        sides, places = (x.shape[2], weight.shape[1]), (node.shape[0], *node.shape[3:])
        is_worth = is_faster(sides, places, 2, target)
        return by_patches(x, weight, low, node.shape) if is_worth else None
    if node.shape[3:] == (3, 3):
        sides, places = (x.shape[0], weight.shape[1]), weight.shape[2:]
        is_worth = is_faster(sides, places, 0, target)
        return by_gradients(x, weight, low, node.shape) if is_worth else None
    return None


def is_faster(sides: Shape, places: Shape, more: int, target: Target) -> bool:
    """Estimate products of so many channels, on both sides, at places of (images, H, W).

    Results are moved some times `more` than patches are, and what becomes of a weight once.
    """
    images, *sizes = places
    count, patches = prod(places), images * prod(ceil_div(n, STEP) for n in sizes)
    channels, outputs = sides
    moved = (count + PATCH**2 * patches) * (channels + outputs) + more * count * outputs
    moved += PATCH**2 * channels * outputs
    taken = PATCH**2 * patches * channels * outputs + MOVED * moved
    is_small = 4 * PATCH**2 * patches * (channels + outputs) <= MOST_BYTES
    is_whole = not patches * channels % JOINED and not patches * outputs % JOINED
    return (
        is_small
        and is_whole
        and taken + LAUNCHED * target.multiprocessors < 9 * count * channels * outputs
    )


def by_patches(x: Node, weight: Node, low: tuple[int, int], shape: Shape) -> Node:
    """Convolve (N, 1, C, H, W) by (1, O, C, 3, 3).

    Taps wait for the image: those of all layers, made at once, would take four times the weights.
    """
    images, _, outputs, *sizes = shape
    channels = x.shape[2]
    counts = tuple([ceil_div(n, STEP) for n in sizes])
    image = x.after(weight).reshape((images, channels, *x.shape[3:])).permute((1, 0, 2, 3))
    seen = patches_of(image, low, counts)
    taps = weight.after(x).reshape((outputs, channels, 3, 3))
    taps = behind(along_both(cut(taps.permute((1, 0, 2, 3))), factor_terms))
    made = multiplied(taps, seen, ((0, 2, 1), (0, 2, 3), (0, 1, 3)))
    made = made.permute((2, 3, 0, 1)).reshape((outputs, images, *counts, PATCH, PATCH))
    each = [part.permute((1, 0, 2, 3)).stored() for part in along_both(cut(made), result_terms)]
    rows = [between(each[n : n + STEP], 4) for n in range(0, STEP**2, STEP)]
    if max(counts) > 1:
        wide = between(rows, 3).stored()
    else:  # a reduction behind would put one patch together where it reads
        wide = between([row.stored() for row in rows], 3)
    wide = wide.reshape((images, 1, outputs, *(STEP * n for n in counts)))
    return wide.slice(tuple([(0, n, 1) for n in shape]))


def by_gradients(x: Node, rows: Node, low: tuple[int, int], shape: Shape) -> Node:
    """Sum images (C, 1, N, H, W) by gradients (1, O, N, H', W'): (C, 1, O, 3, 3).

    No plan keeps the patches of the way forth, which are more than twice as long as their image.
    """
    channels, _, outputs = shape[:3]
    images, *sizes = rows.shape[2:]
    counts = tuple([ceil_div(n, STEP) for n in sizes])
    image = x.after(rows).reshape((channels, *x.shape[2:]))
    seen = patches_of(image, low, counts)
    pads = ((0, 0), (0, 0), *((0, STEP * count - n) for n, count in zip(sizes, counts)))
    given = rows.reshape(rows.shape[1:]).pad(pads)
    given = given.reshape((outputs, images, counts[0], STEP, counts[1], STEP))
    given = behind(along_both(cut(given.permute((0, 1, 2, 4, 3, 5))), factor_terms))
    given = given.reshape((PATCH**2, outputs, images * prod(counts)))
    made = multiplied(given, seen, ((0, 1, 3), (0, 2, 3), (0, 1, 2)))
    each = along_both(cut(made.permute((2, 3, 0, 1))), weight_terms)
    made = between([part.stored() for part in each], 2)
    return made.reshape((outputs, 1, channels, 3, 3)).permute((2, 1, 0, 3, 4))
