"""turned_products: weights times values, stored in the order of dimensions that somebody wants.

    p = w @ v                            p' = w @ v, its dimensions in the order of b
    a = f(p)                     ->      a = f(permute(p', back))
    b = permute(p, order)                b = p'

Kernels that stream over scores store results in whatever order for the same price, and a view of
them costs nothing: heads beside one another for the layer that follows, gradients as their
operands are. What is made of exponentials is weights.
"""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.schedule.views import dimension_map
from picograd.schedule.weighted_sums import is_product, is_reshaped, replaced, wide
from picograd.target import Target

BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)


def turn_products(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite products of weights that a permutation reads; the same nodes if there are none.

    `order` lists the nodes under the roots, inputs first, and not below realized ones.
    """
    weights: set[int] = set()
    products: dict[int, Node] = {}
    turned: dict[int, Node] = {}
    for node in order:  # a product may be seen with dimensions of one position more or less
        if node.realized is not None:
            continue
        is_weighted = any(id(child) in weights for child in node.inputs)
        if node.row.is_exponential or (is_weighted and node.row.role in BETWEEN):
            weights.add(id(node))
        elif is_weighted and is_product(node):
            products[id(node)] = node
        elif is_reshaped(node) and id(node.inputs[0]) in products:
            products[id(node)] = products[id(node.inputs[0])]
        elif node.inputs and id(node.inputs[0]) in products:
            product, order_wanted = products[id(node.inputs[0])], permutation_of(node)
            if order_wanted is not None and id(product) not in turned:
                axes = axes_of(product, node.inputs[0], order_wanted)
                made = turn(product, axes)
                turned[id(node)] = made.reshape(node.shape)
                turned[id(product)] = made.permute(inverse(axes))
    return replaced(roots, turned) if turned else list(roots)


def permutation_of(node: Node) -> tuple[int, ...] | None:
    """Find the order in which a view shows dimensions; None if it does anything else."""
    if node.row.role is not Role.VIEW or node.row.is_same_bytes:
        return None
    mapping = dimension_map(node)
    is_whole = mapping is not None and sorted(mapping) == list(range(node.inputs[0].rank))
    return tuple(mapping or ()) if is_whole and node.size == node.inputs[0].size else None


def axes_of(product: Node, source: Node, wanted: Sequence[int]) -> tuple[int, ...]:
    """Find the order of the dimensions of a product where `source`, which shows it, is permuted.

    Those of one position come first.
    """
    seen = source.shape
    own = [d for d, size in enumerate(product.shape) if size != 1]
    lone = [d for d, size in enumerate(product.shape) if size == 1]
    number = dict(zip(wide(seen, range(len(seen))), own, strict=True))
    return (*lone, *(number[axis] for axis in wanted if axis in number))


def turn(product: Node, axes: Sequence[int]) -> Node:
    """Multiply, with the dimensions of the result in another order."""
    *labels, out = product.arg
    return product.inputs[0].contract(
        product.inputs[1], (labels[0], labels[1], tuple(out[axis] for axis in axes))
    )


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Invert a permutation."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))
