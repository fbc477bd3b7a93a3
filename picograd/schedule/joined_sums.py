"""joined_sums: sums of multiples of sums, in graphs that attend, are one sum.

    sum(c[h, i, j] * sum(x[b, h, i, j], b), (i, j))    ->    sum(x * c, (b, i, j))

Gradients of what a bias is made of, as slopes of distances, begin with a sum over the batch that
shares it. Alone that is a matrix of scores in memory; where it is joined, scores stream. What one
sum makes small already, as over all places of a row, is multiplied afterwards.
"""

from collections.abc import Sequence
from dataclasses import field

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.order import nodes_of
from picograd.schedule.score_boxes import has_scores, limits_of
from picograd.schedule.scores import openers, score_sizes
from picograd.schedule.weighted_sums import REDUCTIONS, is_alone, is_reshaped, is_sum, replaced
from picograd.target import Target


@dataclass(slots=True)
class Chains:
    """What is linear in a sum: of each node the input that is, and the sum; `whole` ones are read
    otherwise too."""

    places: dict[int, int] = field(default_factory=dict)
    sums: dict[int, Node] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)

    def spoil(self, nodes: Sequence[Node]) -> None:
        """Note that somebody reads nodes as they are."""
        for node in nodes:
            inner = self.sums.get(id(node))
            if inner is not None:
                self.whole.add(id(inner))

    def follow(self, node: Node) -> None:
        """Look at a node that reads what is linear in sums."""
        inside = [n for n, each in enumerate(node.inputs) if id(each) in self.sums]
        if len(inside) == 1 and is_linear(node, inside[0]):
            (place,) = inside
            source = node.inputs[place]
            self.places[id(node)] = place
            self.sums[id(node)] = self.sums[id(source)]
        else:
            self.spoil(node.inputs)

    def path(self, node: Node, inner: Node) -> list[Node]:
        """List the nodes from a sum on to one that is linear in it."""
        found = []
        while node is not inner:
            found.append(node)
            place = self.places[id(node)]
            node = node.inputs[place]
        return found[::-1]


def join_sums(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Join sums of multiples of sums; `order` lists inputs first."""
    if not has_scores(order, target):
        return list(roots)
    chains = chains_in(order, target)
    chains.spoil(roots)
    new: dict[int, Node] = {}
    for node in nodes_of(order, REDUCTIONS):
        if not is_plain_sum(node):
            continue
        (source,) = node.inputs
        inner = chains.sums.get(id(source))
        if inner is not None and id(inner) not in chains.whole:
            path = chains.path(source, inner)
            new[id(node)] = joined(node, inner, path, chains)
    return replaced(roots, order, new) if new else list(roots)


def chains_in(order: Sequence[Node], target: Target) -> Chains:
    """Find what is linear in sums that leave whole matrices, or are of no scores."""
    sizes = score_sizes(order)
    least = limits_of(target).least
    matrix = min(map(matrix_size, openers(order, least)))
    chains = Chains()
    known = chains.sums.keys()
    for node in order:
        if node.op in REDUCTIONS and is_plain_sum(node):
            is_of_scores = node.inputs[0].size in sizes
            if not is_of_scores or node.size >= matrix:
                chains.sums[id(node)] = node
        elif node.realized is None and not known.isdisjoint(map(id, node.inputs)):
            chains.follow(node)
    return chains


def is_plain_sum(node: Node) -> bool:
    """Tell whether a node is a sum of all elements, whose number does not vary."""
    return type(node) is Node and is_sum(node)


def matrix_size(seed: Node) -> int:
    """Count the scores of one of a batch."""
    labels_a, labels_b, out = seed.arg
    shared = set(labels_a) & set(labels_b)
    named = zip(out, seed.shape, strict=True)
    return product(size for name, size in named if name not in shared)


def is_linear(node: Node, place: int) -> bool:
    """Tell whether a node is a multiple of an input, element by element."""
    row = node.row
    if is_reshaped(node) or row.keeps_value:
        return True
    is_plain = row.role is Role.ELEMENTWISE and type(node) is Node
    if not is_plain or place not in row.linear:
        return False
    return row.linear == (0, 1) or is_alone(node, place)


def joined(node: Node, inner: Node, path: Sequence[Node], chains: Chains) -> Node:
    """Write a sum of multiples of an inner one as a sum over the dimensions of both."""
    _, over = inner.arg
    (source,) = inner.inputs
    kept = [d for d in range(source.rank) if d not in over]
    lead = tuple([source.shape[d] for d in over])
    turned = source.permute((*over, *kept))
    value = turned.reshape((*lead, *inner.shape)).cast(inner.dtype)
    for each in path:
        place = chains.places[id(each)]
        value = multiple(each, value, place, lead)
    count = len(lead)
    _, axes = node.arg
    moved = [axis + count for axis in axes]
    every = (*range(count), *moved)
    return value.reduce("sum", every).reshape(node.shape)


def multiple(node: Node, value: Node, place: int, lead: tuple[int, ...]) -> Node:
    """Write a node over a value that has more dimensions in front."""
    shape = (*lead, *node.shape)
    if is_reshaped(node):
        return value.reshape(shape)
    ones = (1,) * len(lead)
    inputs = []
    for each in node.inputs:
        wide = each.reshape((*ones, *each.shape))
        inputs.append(wide.expand(shape))
    inputs[place] = value
    return Node(node.op, tuple(inputs), node.arg, shape, node.dtype, node.device)
