"""summed_products: products that are only added up become one, which sums over the rows of all.

    a.T @ x + b.T @ y + c.T @ z        ->        cat(a, b, c).T @ cat(x, y, z)

A weight that each step of a loop multiplies, a loop that is written out, has such a gradient: each
product is as large as the weight, and of few rows. Where operands are shorter than their product,
putting them one behind another takes less than storing it. Sums are rounded once then, too.

On a CPU: a GPU multiplies such products beside the steps of the loop, which wait for one another.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from picograd.graph.composites import join
from picograd.graph.node import Node
from picograd.schedule.order import nodes_of
from picograd.schedule.weighted_sums import CONTRACTIONS, is_product, replaced
from picograd.target import Target

LEAST = 4  # products: fewer are no loop
LARGE = 1 << 16  # elements of a product that is not added up as part of another kernel


def sum_products(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Add up products of few rows by one product; `order` lists inputs first."""
    if target.has_blocks or sum(map(is_short, nodes_of(order, CONTRACTIONS))) < LEAST:
        return list(roots)
    readers = Counter(map(id, chain.from_iterable(node.inputs for node in order)))
    for root in roots:
        readers[id(root)] += 2
    inner: set[int] = set()
    new: dict[int, Node] = {}
    for node in reversed(order):
        if is_added(node) and id(node) not in inner:
            total = added(list(summands(node, readers, inner)), readers)
            if total is not None:
                new[id(node)] = total
    return replaced(roots, order, new) if new else list(roots)


def is_added(node: Node) -> bool:
    """Tell whether a node is the sum of two that is not in memory."""
    return node.realized is None and type(node) is Node and node.row.factors == (1, 1)


def is_short(node: Node) -> bool:
    """Tell whether a node is a large product over one dimension, of operands shorter than it."""
    if type(node) is not Node or not is_product(node) or node.size < LARGE:
        return False
    first, second = node.inputs
    return first.size + second.size <= node.size and len(summed(node)) == 1


def summed(node: Node) -> list[int]:
    """List the labels that a product sums over."""
    first, second, out = node.arg
    return [label for label in first if label in second and label not in out]


def summands(node: Node, readers: "Counter[int]", inner: set[int]) -> Iterator[Node]:
    """Yield what a sum adds up, in order, through sums that nothing else reads."""
    waiting = [node]
    while waiting:
        top = waiting.pop()
        if top is node or (is_added(top) and readers[id(top)] == 1):
            inner.add(id(top))
            waiting += reversed(top.inputs)
        else:
            yield top


def added(terms: Sequence[Node], readers: "Counter[int]") -> Node | None:
    """Add up terms, products of one kind by one product; None if there are too few of a kind."""
    kinds: dict[Any, list[Node]] = {}
    for term in terms:
        is_own = readers[id(term)] == readers[id(below(term))] == 1
        kinds.setdefault(kind_of(term) if is_own else id(term), []).append(term)
    parts: list[Node] = []
    for found in kinds.values():
        parts += [product_of(found)] if len(found) >= LEAST else found
    if len(parts) == len(terms):
        return None
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def below(term: Node) -> Node:
    """Look below conversions of a product that change no number."""
    while term.realized is None and type(term) is Node and term.row.keeps_value:
        (source,) = term.inputs
        is_wider = term.dtype.bits > source.dtype.bits
        if not (is_wider and term.dtype.is_float and source.dtype.is_float):
            break
        term = source
    return term


def kind_of(term: Node) -> Any:
    """Tell which terms can be one product: they differ in how many rows they sum over."""
    node = below(term)
    if not is_short(node):
        return id(term)
    (label,) = summed(node)
    known = [node.arg, node.dtype]
    for labels, operand in zip(node.arg, node.inputs):
        place = labels.index(label)
        shape = operand.shape
        known += [shape[:place], shape[place + 1 :], operand.dtype]
    return tuple(known)


def product_of(terms: Sequence[Node]) -> Node:
    """Multiply all rows at once, and convert the result as the terms are."""
    products = [below(term) for term in terms]
    first = products[0]
    (label,) = summed(first)
    operands = []
    for number, labels in enumerate(first.arg[:2]):
        parts = [each.inputs[number] for each in products]
        operands.append(join(parts, labels.index(label)))
    left, right = operands
    total = left.contract(right, first.arg)
    wanted = terms[0].dtype
    return total if total.dtype is wanted else total.cast(wanted)
