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
from picograd.schedule.weighted_sums import is_product, replaced
from picograd.target import Target

BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)


def turn_products(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite products of weights that a permutation reads; the same nodes if there are none.

    `order` lists the nodes under the roots, inputs first, and not below realized ones.
    """
    weights: set[int] = set()
    products: dict[int, Node] = {}
    turned: dict[int, Node] = {}
    for node in order:
        if node.realized is not None:
            continue
        is_weighted = any(id(child) in weights for child in node.inputs)
        if node.row.is_exponential or (is_weighted and node.row.role in BETWEEN):
            weights.add(id(node))
        elif is_weighted and is_product(node):
            products[id(node)] = node
        if is_permutation(node) and id(node.inputs[0]) in products:
            product = products.pop(id(node.inputs[0]))
            turned[id(node)] = made = turn(product, node.arg)
            turned[id(product)] = made.permute(inverse(node.arg))
    return replaced(roots, turned) if turned else list(roots)


def is_permutation(node: Node) -> bool:
    """Tell whether a node orders dimensions anew."""
    return node.op == "permute"


def turn(product: Node, axes: Sequence[int]) -> Node:
    """Multiply, with the dimensions of the result in another order."""
    *labels, out = product.arg
    return product.inputs[0].contract(
        product.inputs[1], (labels[0], labels[1], tuple(out[axis] for axis in axes))
    )


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Invert a permutation."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))
