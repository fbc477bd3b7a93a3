"""joined_sums: sums of multiples of sums, in graphs that attend, are one sum.

    sum(c[h, i, j] * sum(x[b, h, i, j], b), (i, j))    ->    sum(x * c, (b, i, j))

Gradients of what a bias is made of, as slopes of distances, begin with a sum over the batch that
shares it. Alone that is a matrix of scores in memory; where it is joined, scores stream. What one
sum makes small already, as over all places of a row, is multiplied afterwards.
"""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.score_boxes import has_scores, limits_of
from picograd.schedule.scores import openers, score_sizes
from picograd.schedule.weighted_sums import is_alone, is_reshaped, is_sum, replaced
from picograd.target import Target


@dataclass(slots=True)
class Chains:
    """What is linear in a sum: of each node the input that is, and the sum; `whole` ones are read
    otherwise too."""

    places: dict[int, int]
    sums: dict[int, Node]
    whole: set[int]


def join_sums(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Join sums of multiples of sums; `order` lists inputs first."""
    if not has_scores(order, target):
        return list(roots)
    chains = chains_in(order, target)
    chains.whole.update(id(chains.sums[id(root)]) for root in roots if id(root) in chains.sums)
    new: dict[int, Node] = {}
    for node in order:
        inner = chains.sums.get(id(node.inputs[0])) if is_sum(node) else None
        if inner is not None and id(inner) not in chains.whole:
            new[id(node)] = joined(node, inner, chains)
    return replaced(roots, order, new) if new else list(roots)


def chains_in(order: Sequence[Node], target: Target) -> Chains:
    """Find what is linear in sums that leave whole matrices, or are of no scores."""
    sizes = score_sizes(order)
    matrices = [matrix_size(node) for node in openers(order, limits_of(target).least)]
    chains = Chains({}, {}, set())
    for node in order:
        if node.realized is not None:
            continue
        inside = [n for n, each in enumerate(node.inputs) if id(each) in chains.sums]
        found = {id(chains.sums[id(node.inputs[n])]) for n in inside}
        if is_sum(node):
            if node.inputs[0].size not in sizes or node.size >= min(matrices):
                chains.sums[id(node)] = node
        elif len(inside) == 1 and is_linear(node, inside[0]):
            chains.places[id(node)] = inside[0]
            chains.sums[id(node)] = chains.sums[id(node.inputs[inside[0]])]
        else:
            chains.whole |= found
    return chains


def matrix_size(seed: Node) -> int:
    """Count the scores of one of a batch."""
    labels_a, labels_b, out = seed.arg
    named = zip(out, seed.shape, strict=True)
    return product(size for name, size in named if not (name in labels_a and name in labels_b))


def is_linear(node: Node, place: int) -> bool:
    """Tell whether a node is a multiple of an input, element by element."""
    row = node.row
    if is_reshaped(node) or row.keeps_value:
        return True
    is_multiple = row.role is Role.ELEMENTWISE and place in row.linear and type(node) is Node
    return is_multiple and (row.linear == (0, 1) or is_alone(node, place))


def joined(node: Node, inner: Node, chains: Chains) -> Node:
    """Write a sum of multiples of an inner one as a sum over the dimensions of both."""
    _, over = inner.arg
    (source,) = inner.inputs
    kept = [d for d in range(source.rank) if d not in over]
    lead = tuple([source.shape[d] for d in over])
    path = []
    each = node.inputs[0]
    while each is not inner:
        path.append(each)
        each = each.inputs[chains.places[id(each)]]
    value = source.permute((*over, *kept)).reshape((*lead, *inner.shape)).cast(inner.dtype)
    for each in reversed(path):
        value = multiple(each, value, chains.places[id(each)], lead)
    _, axes = node.arg
    moved = [axis + len(lead) for axis in axes]
    return value.reduce("sum", (*range(len(lead)), *moved)).reshape(node.shape)


def multiple(node: Node, value: Node, place: int, lead: tuple[int, ...]) -> Node:
    """Write a node over a value that has more dimensions in front."""
    shape = (*lead, *node.shape)
    if is_reshaped(node):
        return value.reshape(shape)
    ones = (1,) * len(lead)
    inputs = [each.reshape((*ones, *each.shape)).expand(shape) for each in node.inputs]
    inputs[place] = value
    return Node(node.op, tuple(inputs), node.arg, shape, node.dtype, node.device)
