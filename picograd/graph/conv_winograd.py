"""Convolutions of 3 x 3 taps with fewer products (Winograd; Lavin and Gray, 2016: F(2 x 2, 3 x 3)).

    out = A^T [(G w G^T) * (B^T d B)] A         d: a patch of 4 x 4 of the image, out: 2 x 2 results
    dw  = G^T [(A g A^T) * (B^T d B)] G         g: the gradients of these

Each of the 16 elements of transformed patches is a matrix, channels x patches, so that 16 products
of matrices do with 4 multiplications a result what 9 do. Transforms add and halve alone: errors
stay those of sums. What is transformed passes through memory, so that channels must be many.
"""

from collections.abc import Callable
from functools import reduce
from math import prod

from picograd.dtype import float32
from picograd.graph.composites import join
from picograd.graph.node import Node
from picograd.graph.shape import Shape
from picograd.helpers import ceil_div
from picograd.target import Target

STEP, PATCH = 2, 4  # results a patch, along an axis
# In multiplications that a GPU does meanwhile (docs/records/0014): to move an element, and to
# launch three kernels more. What is transformed takes so many bytes at most.
MOVED, LAUNCHED = 24, 1.4e6
MOST_BYTES = 1 << 30
JOINED = 64  # elements: arrays of a multiple of them are computed one behind another
Terms = Callable[..., list[Node]]


def patch_terms(a: Node, b: Node, c: Node, d: Node) -> list[Node]:
    """Transform an axis of an image's patches: B^T."""
    return [a - c, b + c, c - b, b - d]


def tap_terms(a: Node, b: Node, c: Node) -> list[Node]:
    """Transform an axis of a weight: G."""
    half = (a + c) * 0.5
    return [a, half + b * 0.5, half - b * 0.5, c]


def result_terms(a: Node, b: Node, c: Node, d: Node) -> list[Node]:
    """Transform an axis of products back to results: A^T."""
    return [a + b + c, b - c - d]


def gradient_terms(a: Node, b: Node) -> list[Node]:
    """Transform an axis of gradients of results: A."""
    return [a, a + b, a - b, -b]


def weight_terms(a: Node, b: Node, c: Node, d: Node) -> list[Node]:
    """Transform an axis of products back to a weight: G^T."""
    half = (b + c) * 0.5
    return [a + half, (b - c) * 0.5, half + d]


def cut(node: Node, axis: int) -> list[Node]:
    """List what lies along an axis, which is dropped."""
    whole = [(0, n, 1) for n in node.shape]
    rest = node.shape[:axis] + node.shape[axis + 1 :]
    return [
        node.slice((*whole[:axis], (n, n + 1, 1), *whole[axis + 1 :])).reshape(rest)
        for n in range(node.shape[axis])
    ]


def every_other(node: Node, axis: int) -> list[Node]:
    """List what the patches along an axis have at each of their places."""
    size, whole = node.shape[axis], [(0, n, 1) for n in node.shape]
    before, after = whole[:axis], whole[axis + 1 :]
    last = size - PATCH + 1
    return [node.slice((*before, (n, n + last, STEP), *after)) for n in range(PATCH)]


def along_both(
    node: Node, terms: Terms, cut: Callable[[Node, int], list[Node]] = cut
) -> list[Node]:
    """Transform two axes, the last ones: (..., I, J) -> I' * J' of (...)."""
    rows = terms(*cut(node, node.rank - 2))
    return [term for row in rows for term in terms(*cut(row, row.rank - 1))]


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
    """Transform patches of images: (C, N, H, W) -> (16, C, N * counts)."""
    pads = [(0, 0), (0, 0)]
    for size, count, before in zip(x.shape[2:], counts, low):
        pads.append((before, STEP * count + PATCH - STEP - size - before))
    made = behind(along_both(x.pad(tuple(pads)), patch_terms, every_other))
    return made.reshape((PATCH**2, x.shape[0], x.shape[1] * prod(counts)))


def multiplied(a: Node, b: Node, labels: tuple[Shape, Shape, Shape]) -> Node:
    """Multiply the 16 pairs of matrices, and give the result 4 x 4 of them."""
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

    Results are moved some times `more` than patches are.
    """
    images, *sizes = places
    count, patches = prod(places), images * prod(ceil_div(n, STEP) for n in sizes)
    channels, outputs = sides
    moved = (count + PATCH**2 * patches) * (channels + outputs) + more * count * outputs
    taken = PATCH**2 * patches * channels * outputs + MOVED * moved
    is_small = 4 * PATCH**2 * patches * (channels + outputs) <= MOST_BYTES
    is_whole = not patches * channels % JOINED and not patches * outputs % JOINED
    return (
        is_small
        and is_whole
        and taken + LAUNCHED * target.multiprocessors < 9 * count * channels * outputs
    )


def by_patches(x: Node, weight: Node, low: tuple[int, int], shape: Shape) -> Node:
    """Convolve (N, 1, C, H, W) by (1, O, C, 3, 3)."""
    images, _, outputs, *sizes = shape
    channels = x.shape[2]
    counts = tuple([ceil_div(n, STEP) for n in sizes])
    image = x.after(weight, True).reshape((images, channels, *x.shape[3:])).permute((1, 0, 2, 3))
    seen = patches_of(image, low, counts)
    taps = weight.reshape((outputs, channels, 3, 3))
    taps = behind(along_both(taps.permute((1, 0, 2, 3)), tap_terms))
    made = multiplied(taps, seen, ((0, 2, 1), (0, 2, 3), (0, 1, 3)))
    made = made.permute((2, 3, 0, 1)).reshape((outputs, images, *counts, PATCH, PATCH))
    each = [part.permute((1, 0, 2, 3)).stored() for part in along_both(made, result_terms)]
    rows = [between(each[n : n + STEP], 4) for n in (0, STEP)]
    wide = between([row.stored() for row in rows], 3)
    wide = wide.reshape((images, 1, outputs, *(STEP * n for n in counts)))
    return wide.slice(tuple([(0, n, 1) for n in shape]))


def by_gradients(x: Node, rows: Node, low: tuple[int, int], shape: Shape) -> Node:
    """Sum images (C, 1, N, H, W) by gradients (1, O, N, H', W'): (C, 1, O, 3, 3).

    No plan keeps the patches of the way forth, which are four times as long as their image.
    """
    channels, _, outputs = shape[:3]
    images, *sizes = rows.shape[2:]
    counts = tuple([ceil_div(n, STEP) for n in sizes])
    image = x.after(rows, True).reshape((channels, *x.shape[2:]))
    seen = patches_of(image, low, counts)
    pads = ((0, 0), (0, 0), *((0, STEP * count - n) for n, count in zip(sizes, counts)))
    given = rows.reshape(rows.shape[1:]).pad(pads)
    given = given.reshape((outputs, images, counts[0], STEP, counts[1], STEP))
    given = behind(along_both(given.permute((0, 1, 2, 4, 3, 5)), gradient_terms))
    given = given.reshape((PATCH**2, outputs, images * prod(counts)))
    made = multiplied(given, seen, ((0, 1, 3), (0, 2, 3), (0, 1, 2)))
    each = along_both(made.permute((2, 3, 0, 1)), weight_terms)
    made = between([part.stored() for part in each], 2)
    return made.reshape((outputs, 1, channels, 3, 3)).permute((2, 1, 0, 3, 4))
