"""turned_products: weights times values, stored in the order of dimensions that somebody wants.

    p = w @ v                            p' = w @ v, its dimensions in the order of b
    a = f(p)                     ->      a = f(permute(p', back))
    b = permute(p, order)                b = p'
    c = contiguous(b)                    c = p'

Kernels that stream over scores store results in whatever order for the same price, and a view of
them costs nothing: heads beside one another for the layer that follows, gradients as their
operands are. What is made of exponentials is weights.
"""

from collections.abc import Sequence

from picograd.graph.ends import EndedNode
from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.schedule.scores import EXPONENTIALS
from picograd.schedule.views import dimension_map
from picograd.schedule.weighted_sums import is_product, is_reshaped, replaced, shorter_sums, wide
from picograd.target import Target

BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)


def edit_weights(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Shorten sums of weights, and turn their products: the graph is built once for both.

    `order` lists the nodes under the roots, inputs first, and not below realized ones.
    """
    new = shorter_sums(order) | turned_products(order)
    return replaced(roots, order, new) if new else list(roots)


def turned_products(order: Sequence[Node]) -> dict[int, Node]:
    """Find what stands for products of weights that a permutation reads, and for what shows them.

    It is known by their identities; `order` is as for `edit_weights`.
    """
    weights: set[int] = set()
    products: dict[int, Node] = {}
    turned: dict[int, Node] = {}
    for node in order:
        if node.realized is not None or not node.inputs:
            continue
        is_weighted = bool(weights) and not weights.isdisjoint(map(id, node.inputs))
        if node.op in EXPONENTIALS or (is_weighted and node.row.role in BETWEEN):
            weights.add(id(node))
            continue
        if not weights:
            continue
        is_ended = type(node) is EndedNode  # it says where a size that varies ends: it stays
        if is_weighted and is_product(node) and not is_ended:
            products[id(node)] = node
            continue
        source = node.inputs[0]
        if node.row.is_stored and id(source) in turned:  # it lies there as it is asked for
            turned[id(node)] = turned[id(source)]
            continue
        product = products.get(id(source))
        if product is None:
            continue
        if is_reshaped(node):  # the product, with dimensions of one position more or less
            products[id(node)] = product
        else:
            wanted = permutation_of(node)
            if wanted is not None and id(product) not in turned:
                axes = axes_of(product, source, wanted)
                made = turn(product, axes)
                turned[id(node)] = made.reshape(node.shape)
                turned[id(product)] = made.permute(inverse(axes))
    return turned


def permutation_of(node: Node) -> tuple[int, ...] | None:
    """Find the order in which a view shows dimensions; None if it does anything else."""
    if node.row.role is not Role.VIEW or node.row.is_same_bytes:
        return None
    source = node.inputs[0]
    mapping = dimension_map(node)
    if mapping is None or node.size != source.size:
        return None
    is_whole = sorted(mapping) == list(range(source.rank))
    return tuple(mapping) if is_whole else None


def axes_of(product: Node, source: Node, wanted: Sequence[int]) -> tuple[int, ...]:
    """Find the order of the dimensions of a product where `source`, which shows it, is permuted.

    Those of one position come first.
    """
    sizes = product.shape
    every = range(len(sizes))
    own = wide(sizes, every)
    lone = [axis for axis in every if axis not in own]
    shown = wide(source.shape, range(source.rank))
    number = dict(zip(shown, own, strict=True))
    kept = [axis for axis in wanted if axis in number]
    turned = [number[axis] for axis in kept]
    return (*lone, *turned)


def turn(product: Node, axes: Sequence[int]) -> Node:
    """Multiply, with the dimensions of the result in another order."""
    first, second = product.inputs
    first_labels, second_labels, out = product.arg
    turned = tuple([out[axis] for axis in axes])
    return first.contract(second, (first_labels, second_labels, turned))


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Invert a permutation."""
    inverted = sorted(range(len(axes)), key=axes.__getitem__)
    return tuple(inverted)
