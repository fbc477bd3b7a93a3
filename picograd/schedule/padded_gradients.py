"""padded_gradients: of a gradient that is 0 but for a slice, what is made of the slice is computed.

    pad(g) @ w.T      ->  pad(g @ w.T)            the gradient of what x[:, 0] was cut from,
    pad(g) * h        ->  pad(g * h[:, 0])        and those of the layers before it
    x.T @ pad(g)      ->  x[:, 0].T @ g

A classifier reads one place of its last layer. The gradient there has zeros for all others, and
products of them took as long as those of any layer. What reads zeros beside numbers gets them: the
sum of such a gradient and of another. Zeros times infinity are 0 here.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import islice
from typing import NamedTuple

from picograd.graph.bounded import ends_of
from picograd.graph.gradient import is_zero
from picograd.graph.node import Node
from picograd.graph.row import MOVING, Role, ops_of
from picograd.schedule.narrowed import (
    FEW,
    WHOLE,
    Cuts,
    axes_read,
    common,
    is_slice,
    passed,
    rebuilt,
    shown,
    sliced,
)
from picograd.schedule.order import nodes_of
from picograd.schedule.weighted_sums import change, is_sum
from picograd.target import Target

CONTRACTIONS = ops_of(Role.CONTRACT)
NONE = 0, 0
FACTORS, CHOSEN = (0, 1), (1, 2)  # inputs in which a product is linear, and what is chosen of two


class Padded(NamedTuple):
    """A value that is 0 but for a part of it, which has some ranges of its axes."""

    inside: Node
    cuts: Cuts


def cut_gradients(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Compute what is made of padded gradients without the zeros; `order` lists inputs first."""
    padded = list(filter(few_padded, nodes_of(order, MOVING)))
    if not padded or not nodes_of(order, CONTRACTIONS):
        return list(roots)
    cutter = Cutter()
    for node in islice(order, order.index(padded[0]), None):
        cutter.visit(node)
    return [cutter.whole(root) for root in roots] if cutter.products else list(roots)


class Cutter:
    """This class knows what nodes have become, in a walk over them, inputs first."""

    def __init__(self) -> None:
        self.made: dict[int, Node] = {}  # of those that are others now
        self.padded: dict[int, Padded] = {}
        self.products = 0  # that are smaller

    def whole(self, node: Node) -> Node:
        """Give what a node has become, with its zeros."""
        if id(node) in self.padded and id(node) not in self.made:
            self.made[id(node)] = with_zeros(*self.padded[id(node)], node.shape)
        return self.made.get(id(node), node)

    def cuts(self, node: Node) -> Cuts:
        """Find where a node is not 0."""
        known = self.padded.get(id(node))
        return WHOLE if known is None else known.cuts

    def visit(self, node: Node) -> None:
        """Make a node of what its inputs have become."""
        few = few_padded(node)
        if not few and self.padded.keys().isdisjoint(map(id, node.inputs)):
            change(node, self.made)
            return
        if node.realized is not None:
            return
        is_plain = type(node) is Node and not ends_of(node)
        if is_plain and few:
            self.padded[id(node)] = self.pad(node, few)
        elif not is_plain or not self.cut(node):
            wholes = map(self.whole, node.inputs)
            self.made[id(node)] = node.with_inputs(tuple(wholes))

    def pad(self, node: Node, few: Cuts) -> Padded:
        """Put zeros beside a value, but not yet along the axes of which it has few."""
        (source,) = node.inputs
        pads, _ = node.arg
        cuts = self.cuts(source)
        kept = {axis: cut for axis, cut in cuts.items() if pads[axis] == NONE}
        rest = [NONE if axis in few else pad for axis, pad in enumerate(pads)]
        inside = self.inside(source, kept)
        return Padded(inside.pad(tuple(rest)), kept | few)

    def cut(self, node: Node) -> bool:
        """Make a node smaller, if that is what it is but for zeros."""
        cuts, summed = self.cuts_of(node), self.summed(node)
        if not cuts and not summed:
            return False
        inputs = []
        for place, source in enumerate(node.inputs):
            wanted = summed.get(place, WHOLE) | passed(node, cuts, place)
            inputs.append(self.inside(source, wanted))
        if is_slice(node):  # it shows all of the axes that are smaller
            made = sliced(inputs[0], shown(node))
        else:
            made = rebuilt(node, cuts, tuple(inputs))
        self.products += node.op in CONTRACTIONS
        if cuts:
            self.padded[id(node)] = Padded(made, cuts)
        else:
            self.made[id(node)] = made
        return True

    def cuts_of(self, node: Node) -> Cuts:
        """Find where a node that is made of others is not 0."""
        row, role = node.row, node.row.role
        if is_pad(node) and node.arg[1] != 0:
            return WHOLE  # what is put beside zeros, too
        found = [self.shown_by(node, place) for place in range(len(node.inputs))]
        if role is Role.CONTRACT or row.linear == FACTORS:
            return found[1] | found[0]
        is_alone = len(found) == 1 and (row.linear or row.factors)
        if is_sum(node) or is_alone or role is Role.VIEW or row.linear == (0,):
            return found[0]
        added = row.linear if row.linear == CHOSEN else range(len(row.factors))
        numbers = [found[place] for place in added if not is_zero(node.inputs[place])]
        return reduce(common, numbers or [WHOLE])

    def shown_by(self, node: Node, place: int) -> Cuts:
        """Find where a node shows what an operand is not 0."""
        cuts = self.cuts(node.inputs[place])
        axes = axes_read(node, place) if cuts else ()
        return {axis: cuts[own] for axis, own in enumerate(axes) if own in cuts}

    def summed(self, node: Node) -> dict[int, Cuts]:
        """Find where what a node sums is not 0, by the axes of each operand."""
        found: dict[int, Cuts] = {}
        if is_sum(node):
            cuts_read = self.cuts(node.inputs[0])
            gone = node.arg[1]
            own = {axis: cut for axis, cut in cuts_read.items() if axis in gone}
            return {0: own} if own else found
        if node.row.role is not Role.CONTRACT:
            return found
        first, second, out = node.arg
        for label in set(first) & set(second) - set(out):
            axes = first.index(label), second.index(label)
            pairs = zip(node.inputs, axes, strict=True)
            cuts = [self.cuts(source).get(axis) for source, axis in pairs]
            known = [cut for cut in cuts if cut is not None]
            for place in range(2 if known else 0):
                found.setdefault(place, {})[axes[place]] = known[0]
        return found

    def inside(self, node: Node, cuts: Cuts) -> Node:
        """Give a value where it is asked for: of what is padded alike, without its zeros."""
        known = self.padded.get(id(node))
        if known is None:
            return sliced(self.whole(node), cuts)
        same = common(known.cuts, cuts)
        whole = with_zeros(known.inside, beside(known.cuts, same), node.shape)
        return sliced(whole, beside(cuts, same))


def few_padded(node: Node) -> Cuts:
    """Find the axes along which most of a node is zeros that were put there."""
    is_plain = node.op in MOVING and type(node) is Node and node.realized is None
    if not is_plain or not is_pad(node) or node.arg[1] != 0:
        return WHOLE
    found: Cuts = {}
    for axis, (low, high) in enumerate(node.arg[0]):
        size = node.shape[axis]
        if 0 < node.inputs[0].shape[axis] * FEW <= size:
            found[axis] = low, size - high, 1
    return found


def is_pad(node: Node) -> bool:
    """Tell whether a node puts a number beside its input."""
    row = node.row
    return row.role is Role.VIEW and row.starts is not None and not row.is_showing


def beside(cuts: Cuts, others: Cuts) -> Cuts:
    """Leave out the axes that others have."""
    return {axis: cut for axis, cut in cuts.items() if axis not in others}


def with_zeros(inside: Node, cuts: Cuts, shape: Sequence[int]) -> Node:
    """Put zeros around what was cut out of a shape."""
    pads = [NONE] * inside.rank
    for axis, (first, end, _) in cuts.items():
        pads[axis] = first, shape[axis] - end
    return inside.pad(tuple(pads))
