"""padded_gradients: of a gradient that is 0 but for a slice, what is made of the slice is computed.

    pad(g) @ w.T      ->  pad(g @ w.T)            the gradient of what x[:, 0] was cut from,
    pad(g) * h        ->  pad(g * h[:, 0])        and those of the layers before it
    x.T @ pad(g)      ->  x[:, 0].T @ g

A classifier reads one place of its last layer. The gradient there has zeros for all others, and
products of them took as long as those of any layer. What reads zeros beside numbers gets them: the
sum of such a gradient and of another. Zeros times infinity are 0 here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from picograd.graph.bounded import ends_of
from picograd.graph.node import Node
from picograd.graph.row import NUMBERS, Role, ops_of
from picograd.schedule.cost import Machine, machine
from picograd.schedule.narrowed import FEW, axes_read, is_same, is_slice
from picograd.schedule.values import is_leaf
from picograd.target import Target

CONTRACTIONS = ops_of(Role.CONTRACT)
SUM = "sum"
NONE = 0, 0
FACTORS, CHOSEN = (0, 1), (1, 2)  # inputs in which a product is linear, and what is chosen of two
Pads = dict[int, tuple[int, int]]  # by axis: zeros before, and behind


@dataclass(frozen=True, slots=True)
class Padded:
    """A value that is 0 beside a smaller one."""

    inside: Node
    pads: Pads

    def whole(self) -> Node:
        """Put the zeros there."""
        around = [NONE] * self.inside.rank
        for axis, pad in self.pads.items():
            around[axis] = pad
        return self.inside.pad(tuple(around))


def cut_gradients(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Compute what is made of padded gradients without the zeros; `order` lists inputs first."""
    if not any(node.op in CONTRACTIONS for node in order) or not any(map(few_padded, order)):
        return list(roots)
    cutter = Cutter(machine(target))
    for node in order:
        cutter.visit(node)
    return [cutter.whole(root) for root in roots] if cutter.products else list(roots)


class Cutter:
    """This class knows what nodes have become, in a walk over them, inputs first."""

    def __init__(self, machine: Machine) -> None:
        self.few = machine.launch * machine.rate * machine.workers  # elements of a launch's time
        self.made: dict[int, Node] = {}
        self.padded: dict[int, Padded] = {}
        self.products = 0  # that are smaller

    def whole(self, node: Node) -> Node:
        """Give what a node has become, with its zeros."""
        found = self.made.get(id(node))
        if found is not None:
            return found
        known = self.padded[id(node)]
        if is_sum(node) and (node.size - known.inside.size) * length(node) <= self.few:
            inputs = [self.widened(source) for source in node.inputs]
            found = node.with_inputs(tuple(inputs))  # another kernel for the zeros takes longer
        else:
            found = known.whole()
        self.made[id(node)] = found
        return found

    def widened(self, node: Node) -> Node:
        """Give what a node has become, with zeros beside the smaller value."""
        found = self.made.get(id(node))
        return self.padded[id(node)].whole() if found is None else found

    def visit(self, node: Node) -> None:
        """Make a node of what its inputs have become."""
        if is_leaf(node):
            self.made[id(node)] = node
            return
        few = few_padded(node)
        if not few and self.padded.keys().isdisjoint(map(id, node.inputs)):
            self.made[id(node)] = node.with_inputs(tuple([self.made[id(x)] for x in node.inputs]))
            return
        is_plain = type(node) is Node and not ends_of(node)
        if is_plain and few:
            self.padded[id(node)] = self.pad(node, few)
        elif not is_plain or not self.cut(node):
            inputs = map(self.whole, node.inputs)
            self.made[id(node)] = node.with_inputs(tuple(inputs))

    def pad(self, node: Node, few: Pads) -> Padded:
        """Put zeros beside a value, but not yet along the axes of which it has few."""
        (source,) = node.inputs
        pads, _ = node.arg
        kept: Pads = {}
        for axis, pad in self.pads(source).items():
            if pads[axis] == NONE:
                kept[axis] = pad
        rest = list(pads)
        for axis in few:
            rest[axis] = NONE
        inside = self.inside(source, kept)
        return Padded(inside.pad(tuple(rest)), kept | few)

    def pads(self, node: Node) -> Pads:
        """Find where there are zeros in what a node has become."""
        known = self.padded.get(id(node))
        return {} if known is None else known.pads

    def cut(self, node: Node) -> bool:
        """Make a node smaller, if that is what it is but for zeros."""
        pads = self.pads_of(node)
        summed = self.summed(node)
        if not pads and not summed:
            return False
        inputs = []
        for place, source in enumerate(node.inputs):
            axes = axes_read(node, place)
            own = dict(summed.get(place, {}))
            for axis, pad in pads.items():
                if axes[axis] >= 0:
                    own[axes[axis]] = pad
            inside = self.inside(source, own)
            inputs.append(inside)
        shape = without(node.shape, pads)
        made = remade(node, tuple(inputs), shape)
        self.products += node.op in CONTRACTIONS
        if pads:
            self.padded[id(node)] = Padded(made, pads)
        else:
            self.made[id(node)] = made
        return True

    def pads_of(self, node: Node) -> Pads:
        """Find along which axes of a node there are zeros, and where."""
        row, role = node.row, node.row.role
        if is_pad(node) and node.arg[1] != 0:
            return {}  # what is put beside zeros, too
        found = [self.passed(node, place) for place in range(len(node.inputs))]
        if role is Role.CONTRACT or row.linear == FACTORS:
            return found[1] | found[0]
        is_alone = len(found) == 1 and (row.linear or row.factors)
        if is_sum(node) or is_alone or role is Role.VIEW or row.linear == (0,):
            return found[0]
        added = row.linear if row.linear == CHOSEN else range(len(row.factors))
        numbers = [found[place] for place in added if not is_zero(node.inputs[place])]
        first, *others = numbers or [{}]
        return common(first, others)

    def passed(self, node: Node, place: int) -> Pads:
        """Find where a node has zeros because one of its inputs has."""
        pads = self.pads(node.inputs[place])
        found: Pads = {}
        for axis, own in enumerate(axes_read(node, place) if pads else ()):
            if own in pads:
                found[axis] = pads[own]
        return found

    def summed(self, node: Node) -> dict[int, Pads]:
        """Find where what a node sums is 0, by the axes of each operand."""
        found: dict[int, Pads] = {}
        if node.row.role is Role.REDUCE and node.arg[0] == SUM:
            pads = self.pads(node.inputs[0])
            own = {axis: pad for axis, pad in pads.items() if axis in node.arg[1]}
            return {0: own} if own else found
        if node.row.role is not Role.CONTRACT:
            return found
        first, second, out = node.arg
        for label in set(first) & set(second) - set(out):
            axes = first.index(label), second.index(label)
            for source, axis in zip(node.inputs, axes, strict=True):
                pad = self.pads(source).get(axis)
                if pad is None:
                    continue
                for place in range(2):
                    found.setdefault(place, {})[axes[place]] = pad
                break
        return found

    def inside(self, node: Node, pads: Pads) -> Node:
        """Give a value where it is not beside: without zeros, or cut."""
        known = self.padded.get(id(node))
        if known is None:
            return cut(self.whole(node), pads)
        same = common(known.pads, [pads])
        others = beside(known.pads, same)
        whole = Padded(known.inside, others).whole()
        return cut(whole, beside(pads, same))


def few_padded(node: Node) -> Pads:
    """Find the axes along which most of a node is zeros that were put there."""
    found: Pads = {}
    if not is_pad(node) or is_leaf(node) or type(node) is not Node:
        return found
    pads, fill = node.arg
    sizes = node.inputs[0].shape
    for axis, pad in enumerate(pads):
        is_few = 0 < sizes[axis] * FEW <= node.shape[axis]
        if is_few and fill == 0:
            found[axis] = pad
    return found


def is_sum(node: Node) -> bool:
    """Tell whether a node is a product, or sums its input."""
    role = node.row.role
    return role is Role.CONTRACT or (role is Role.REDUCE and node.arg[0] == SUM)


def length(node: Node) -> int:
    """Count what each element of a sum is the sum of."""
    (source, *_) = node.inputs
    if node.row.role is Role.REDUCE:
        return source.size // max(node.size, 1)
    labels, _, out = node.arg
    sizes = zip(labels, source.shape, strict=True)
    return prod(size for label, size in sizes if label not in out)


def is_pad(node: Node) -> bool:
    """Tell whether a node puts a number beside its input."""
    row = node.row
    return row.role is Role.VIEW and row.starts is not None and not row.is_showing


def is_zero(node: Node) -> bool:
    """Tell whether a node is the number 0."""
    return node.op in NUMBERS and node.arg == 0


def is_alike(one: tuple[int, int], other: tuple[int, int] | None) -> bool:
    """Tell whether as much is beside a value, by the same position."""
    return other is not None and is_same((*one, 1), (*other, 1))


def common(first: Pads, others: Sequence[Pads]) -> Pads:
    """Find what there is alike beside several values."""
    found: Pads = {}
    for axis, pad in first.items():
        if all(is_alike(pad, other.get(axis)) for other in others):
            found[axis] = pad
    return found


def beside(pads: Pads, others: Pads) -> Pads:
    """Leave out the axes that others have."""
    return {axis: pad for axis, pad in pads.items() if axis not in others}


def without(shape: tuple[int, ...], pads: Pads) -> tuple[int, ...]:
    """Give a shape without what is beside."""
    sizes = list(shape)
    for axis, pad in pads.items():
        sizes[axis] -= sum(pad)
    return tuple(sizes)


def cut(node: Node, pads: Pads) -> Node:
    """Cut off what is beside."""
    if not pads:
        return node
    if node.op in NUMBERS:
        shape = without(node.shape, pads)
        return Node(node.op, (), node.arg, shape, node.dtype, node.device)
    ranges = [(0, size, 1) for size in node.shape]
    for axis, (lo, hi) in pads.items():
        ranges[axis] = lo, node.shape[axis] - hi, 1
    return node.slice(tuple(ranges))


def remade(node: Node, inputs: tuple[Node, ...], shape: tuple[int, ...]) -> Node:
    """Make a node of smaller inputs."""
    row = node.row
    if row.role is Role.VIEW and (row.is_same_bytes or row.is_repeating):
        return Node(node.op, inputs, shape, shape, node.dtype, node.device)
    arg = node.arg
    if is_slice(node):  # it shows all of what is smaller
        ranges = list(arg)
        for axis, size in enumerate(shape):
            if size != node.shape[axis]:
                ranges[axis] = 0, size, 1
        arg = tuple(ranges)
    return Node(node.op, inputs, arg, shape, node.dtype, node.device)
