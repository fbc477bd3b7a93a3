"""turned_products: weights times values, stored in the order of dimensions that somebody wants.

    p = w @ v                            p' = w @ v, its dimensions in the order of b
    a = f(p)                     ->      a = f(permute(p', back))
    b = permute(p, order)                b = p'
    c = contiguous(b)                    c = p'

Kernels that stream over scores store results in whatever order for the same price, and a view of
them costs nothing: heads beside one another for the layer that follows, gradients as their
operands are. What is made of exponentials is weights.

turned_results: products that nobody reads but turned round, stored as they are read.

    permute(q @ k, (1, 0))                       ->    contract(q, k, "ik,kj->ji")

A copy engine brings operands along either dimension, so rows of a result may be columns for the
same price. Who reads a result across its rows has a cache line for each element.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from picograd.graph.bounded import EndedNode
from picograd.graph.node import Node
from picograd.graph.row import EXPONENTIALS
from picograd.schedule.repack import BETWEEN, LEAST, permutation_of, sizes_of
from picograd.schedule.viewindex import SOURCES
from picograd.schedule.weighted_sums import is_product, is_reshaped, replaced, shorter_sums, wide
from picograd.target import Target


def edit_weights(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Shorten sums of weights, and turn their products: the graph is built once for both.

    `order` lists the nodes under the roots, inputs first, and not below realized ones.
    """
    new = shorter_sums(order, target.copies_boxes) | turned_products(order)
    if target.copies_boxes:
        new = turned_results(roots, order) | new
    return replaced(roots, order, new) if new else list(roots)


def turned_results(roots: Sequence[Node], order: Sequence[Node]) -> dict[int, Node]:
    """Find what stands for permutations of products that nothing else reads, by their identities.

    Those whose nearest dimension stays the nearest are read by whole lines as they are.
    """
    turned: dict[int, Node] = {}
    readers: Counter[int] = Counter()
    for node in order:
        if node.op not in SOURCES or node.realized is not None:
            continue
        product = node.inputs[0]
        if type(product) is not Node or not is_product(product):
            continue
        axes = permutation_of(node)
        _, rows, columns, _ = sizes_of(product)
        if axes is None or min(rows, columns) < LEAST:
            continue
        own = wide(product.shape, range(product.rank))
        if not own or own[-1] == [axis for axis in axes if axis in own][-1]:
            continue
        if not readers:
            read = chain.from_iterable(each.inputs for each in order)
            readers = Counter(map(id, chain(roots, read)))
        if readers[id(product)] == 1:
            turned[id(node)] = turn(product, axes)
    return turned


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
        is_weighted = not weights.isdisjoint(map(id, node.inputs))
        if node.op in EXPONENTIALS or (is_weighted and node.row.role in BETWEEN):
            weights.add(id(node))
            continue
        is_ended = type(node) is EndedNode  # it says where a size that varies ends: it stays
        if is_weighted and is_product(node) and not is_ended:
            products[id(node)] = node
            continue
        source = node.inputs[0]
        if id(source) in turned and node.row.is_stored:  # it lies there as it is asked for
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
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))
