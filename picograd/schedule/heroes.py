"""Index maps of the operations with a template of their own: contract, conv, scatter."""

from picograd.graph.node import Node
from picograd.graph.row import VIEWS
from picograd.graph.shape import ConvSpec
from picograd.helpers import ceil_div, product, reached
from picograd.schedule.cost import FEW_CHANNELS, UNPACKED, packings
from picograd.schedule.group import Facts
from picograd.schedule.index import Axis, Index, Indices, axis_index
from picograd.schedule.loop import Condition, Expr
from picograd.schedule.lower import as_index
from picograd.schedule.views import strip_views
from picograd.target import Target

Operand = tuple[Indices, tuple[Condition, ...]]


def label_sizes(node: Node) -> dict[int, int]:
    """Find the sizes of the labels of a contraction."""
    labels_a, labels_b, _ = node.arg
    first, second = node.inputs
    sizes = dict(zip(labels_a, first.shape, strict=True))
    sizes.update(zip(labels_b, second.shape, strict=True))
    return sizes


def contract_operands(node: Node, own: Indices) -> tuple[Operand, Indices, tuple[Axis, ...]]:
    """Indices of both operands and the axes summed over, from einsum labels."""
    labels_a, labels_b, labels_out = node.arg
    places, sizes = dict(zip(labels_out, own, strict=True)), label_sizes(node)
    over: list[Axis] = []
    for label in dict.fromkeys((*labels_a, *labels_b)):
        if label not in places:
            axis = Axis(f"k{len(over)}", sizes[label])
            places[label] = axis_index(axis)
            over += [axis] if axis.size != 1 else []
    a = tuple(places[label] for label in labels_a)
    b = tuple(places[label] for label in labels_b)
    return (a, ()), b, tuple(over)


def conv_operands(node: Node, own: Indices) -> tuple[Operand, Indices, tuple[Axis, ...]]:
    """position = out * stride + k * kernel_dilation - padding, tested against the dilated input.

    Where the input is dilated only every `dilation`-th position holds an element. Reduce axes run
    over the kernel, then over channels, which are contiguous in channels-last activations.
    """
    x, w = node.inputs
    spec, rank = node.arg, len(own) - 3
    channel = Axis("c", x.shape[2])
    taps = [Axis(f"k{d}", n) for d, n in enumerate(w.shape[3:])]
    places: list[Index] = []
    tests: list[Condition] = []
    for d in range(rank):
        move = own[3 + d] * spec.stride[d] + axis_index(taps[d]) * spec.kernel_dilation[d]
        position = move - spec.padding[d][0]
        dilation = spec.input_dilation[d]
        place = position // dilation
        places.append(place)
        tests.append((place, 0, x.shape[3 + d] - 1))
        if dilation > 1:
            tests.append((position % dilation, 0, 0))
    n, g, o = own[:3]
    a = (n, g, axis_index(channel), *places)
    b = (g, o, axis_index(channel), *(axis_index(tap) for tap in taps))
    over = tuple(axis for axis in (*taps, channel) if axis.size != 1)
    return (a, tuple(tests)), b, over


def product_depth(node: Node) -> int:
    """Count the products that an element of a contraction or convolution sums."""
    if isinstance(node.arg, ConvSpec):
        return product(node.inputs[1].shape[2:])
    return product(n for label, n in label_sizes(node).items() if label not in node.arg[2])


def count_matrices(node: Node) -> int:
    """Count the matrices that an operand of a contraction is, of a convolution its groups."""
    if isinstance(node.arg, ConvSpec):
        return node.shape[1]
    shared = set(node.arg[0]).intersection(*node.arg[1:])
    return product(n for label, n in label_sizes(node).items() if label in shared)


def product_sides(node: Node) -> tuple[set[int], set[int]]:
    """Dimensions of a result that only the first operand has, and only the second.

    Both are empty if the operands share one: those are several products.
    """
    wide = {d for d, n in enumerate(node.shape) if n != 1}
    if isinstance(node.arg, ConvSpec):
        return (set(), set()) if 1 in wide else (wide - {2}, wide & {2})
    labels_a, labels_b, labels_out = node.arg
    a = {d for d in wide if labels_out[d] in labels_a}
    b = {d for d in wide if labels_out[d] in labels_b}
    return (set(), set()) if a & b else (a, b)


def times_packed(node: Node, number: int, size: int) -> int:
    """Count how often an element of a value of `size` elements is read, as an operand, to pack it.

    A convolution packs an image once for each tap of its kernel.
    """
    if isinstance(node.arg, ConvSpec):
        (x, w), wanted = node.inputs, node.shape[2]
        points, taps = product((node.shape[0], *node.shape[3:])), product(w.shape[3:])
        own, other = (points, wanted) if number == 0 else (wanted, points)
        read = points * node.shape[1] * x.shape[2] * taps if number == 0 else w.size
        few = FEW_CHANNELS
    else:
        mine, others, wanted = node.arg[number], node.arg[1 - number], node.arg[2]
        sizes = dict(zip(wanted, node.shape, strict=True))
        own = product(n for label, n in sizes.items() if label not in others)
        other = product(n for label, n in sizes.items() if label not in mine)
        read, few = node.inputs[number].size, UNPACKED
    return ceil_div(read * packings(own, other, few), max(size, 1))


def is_product(hero: Facts) -> bool:
    """Tell whether the kernel of a contraction will multiply arrays and sum: see `hero_of`."""
    if hero.node.size == 0 or product_depth(hero.node) <= 1:
        return False
    return all(source.loads or strip_views(source).is_loaded for source in hero.inputs)


def uses_tensor_cores(hero: Facts, target: Target) -> bool:
    """Tell whether the kernel of a contraction may multiply on tensor cores."""
    bits = [strip_views(source).node.dtype.bits for source in hero.inputs]
    return target.tensor_cores and max(bits) <= (32 if target.tf32 else 16)


def has_every_axis(source: Facts) -> bool:
    """Tell whether an operand changes along all of its dimensions: nothing in it is repeated."""
    pending = [source]
    for facts in reached(pending):
        if facts.is_loaded:
            return True
        node = facts.node
        if node.op in VIEWS and node.size > node.inputs[0].size:
            continue
        pending += [each for each in facts.inputs if each.node.size * 2 > node.size]
    return False


def scatter_places(
    shape: tuple[int, ...], axes: tuple[int, ...], positions: list[Expr], rest: Indices
) -> Indices:
    """Indices an update goes to: a position each for some axes, its own place on the others."""
    spare, found = list(rest), []
    for d, size in enumerate(shape):
        if d in axes:
            at = as_index(positions[axes.index(d)], size)
        else:
            at = spare.pop(0)
        found.append(at)
    return tuple(found)
