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

from picograd.graph.bounded import ends_of
from picograd.graph.node import Node
from picograd.graph.row import NUMBERS, Role, ops_of
from picograd.schedule.narrowed import FEW, axes_read, is_same, is_slice
from picograd.schedule.values import is_leaf
from picograd.target import Target

CONTRACTIONS = ops_of(Role.CONTRACT)
SUM = "sum"
Pads = dict[int, tuple[int, int]]  # by axis: zeros before, and behind


@dataclass(frozen=True, slots=True)
class Padded:
    """A value that is 0 beside a smaller one."""

    inside: Node
    pads: Pads

    def whole(self) -> Node:
        """Put the zeros there."""
        axes = range(self.inside.rank)
        return self.inside.pad(tuple([self.pads.get(axis, (0, 0)) for axis in axes]))


def cut_gradients(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Compute what is made of padded gradients without the zeros; `order` lists inputs first."""
    if not any(map(few_padded, order)):
        return list(roots)
    cutter = Cutter()
    for node in order:
        cutter.visit(node)
    return [cutter.whole(root) for root in roots] if cutter.products else list(roots)


class Cutter:
    """This class knows what nodes have become, in a walk over them, inputs first."""

    def __init__(self) -> None:
        self.made: dict[int, Node] = {}
        self.padded: dict[int, Padded] = {}
        self.products = 0  # that are smaller

    def whole(self, node: Node) -> Node:
        """Give what a node has become, with its zeros."""
        found = self.made.get(id(node))
        if found is None:
            found = self.made[id(node)] = self.padded[id(node)].whole()
        return found

    def visit(self, node: Node) -> None:
        """Make a node of what its inputs have become."""
        if is_leaf(node) or type(node) is not Node or ends_of(node):
            inputs = () if is_leaf(node) else tuple(map(self.whole, node.inputs))
            self.made[id(node)] = node.with_inputs(inputs) if inputs else node
        elif few := few_padded(node):
            self.padded[id(node)] = self.pad(node, few)
        elif self.padded.keys().isdisjoint(map(id, node.inputs)) or not self.cut(node):
            self.made[id(node)] = node.with_inputs(tuple(map(self.whole, node.inputs)))

    def pad(self, node: Node, few: Pads) -> Padded:
        """Put zeros beside a value, but not yet along the axes of which it has few."""
        (source,) = node.inputs
        known = self.padded.get(id(source))
        pads, _ = node.arg
        kept = {} if known is None else {a: p for a, p in known.pads.items() if pads[a] == (0, 0)}
        inside = self.inside(source, kept)
        rest = [(0, 0) if axis in few else pad for axis, pad in enumerate(pads)]
        return Padded(inside.pad(tuple(rest)), kept | few)

    def cut(self, node: Node) -> bool:
        """Make a node smaller, if that is what it is but for zeros."""
        axes = [axes_read(node, place) for place in range(len(node.inputs))]
        pads = self.pads_of(node, axes)
        summed = self.summed(node)
        if not pads and not summed:
            return False
        inputs = []
        for place, source in enumerate(node.inputs):
            own = {axes[place][a]: pad for a, pad in pads.items() if axes[place][a] >= 0}
            inputs.append(self.inside(source, own | summed.get(place, {})))
        sizes = [n - sum(pads.get(axis, (0, 0))) for axis, n in enumerate(node.shape)]
        made = remade(node, tuple(inputs), tuple(sizes))
        self.products += node.op in CONTRACTIONS
        if pads:
            self.padded[id(node)] = Padded(made, pads)
        else:
            self.made[id(node)] = made
        return True

    def pads_of(self, node: Node, axes: Sequence[Sequence[int]]) -> Pads:
        """Find along which axes of a node there are zeros, and where."""
        row, role = node.row, node.row.role
        found: list[Pads] = []
        for place, source in enumerate(node.inputs):
            known = self.padded.get(id(source))
            pads = {} if known is None else known.pads
            found.append({a: pads[d] for a, d in enumerate(axes[place]) if d in pads})
        if role is Role.CONTRACT or row.linear == (0, 1):
            return found[1] | found[0]
        is_sum = role is Role.REDUCE and node.arg[0] == SUM
        if is_sum or role is Role.VIEW or row.linear == (0,) or row.factors == (-1,):
            return found[0]
        if row.linear != (1, 2) and len(row.factors) != len(node.inputs):
            return {}
        numbers = [
            pads
            for place, (pads, source) in enumerate(zip(found, node.inputs, strict=True))
            if (place in row.linear or row.factors) and not is_zero(source)
        ]
        first, *others = numbers or [{}]
        return {a: pad for a, pad in first.items() if all(is_alike(pad, o.get(a)) for o in others)}

    def summed(self, node: Node) -> dict[int, Pads]:
        """Find where what a node sums is 0, by the axes of each operand."""
        sources = [self.padded.get(id(source)) for source in node.inputs]
        found: dict[int, Pads] = {}
        if node.row.role is Role.REDUCE and node.arg[0] == SUM and sources[0] is not None:
            found[0] = {a: pad for a, pad in sources[0].pads.items() if a in node.arg[1]}
        if node.row.role is Role.CONTRACT:
            first, second, out = node.arg
            for label in set(first) & set(second) - set(out):
                places = first.index(label), second.index(label)
                both = zip(sources, places, strict=True)
                pads = [source.pads[a] for source, a in both if source and a in source.pads]
                for place, axis in enumerate(places if pads else ()):
                    found.setdefault(place, {})[axis] = pads[0]
        return {place: pads for place, pads in found.items() if pads}

    def inside(self, node: Node, pads: Pads) -> Node:
        """Give a value where it is not beside: without zeros, or cut."""
        known = self.padded.get(id(node))
        if known is None:
            return cut(self.whole(node), pads)
        same = {a for a, pad in known.pads.items() if is_alike(pad, pads.get(a))}
        others = {a: pad for a, pad in known.pads.items() if a not in same}
        left = {a: pad for a, pad in pads.items() if a not in same}
        return cut(Padded(known.inside, others).whole(), left)


def few_padded(node: Node) -> Pads:
    """Find the axes along which most of a node is zeros that were put there."""
    row = node.row
    if row.role is not Role.VIEW or row.starts is None or row.is_showing or is_leaf(node):
        return {}
    pads, fill = node.arg
    if fill != 0 or type(node) is not Node:
        return {}
    sizes = node.inputs[0].shape
    return {a: pad for a, pad in enumerate(pads) if 0 < sizes[a] * FEW <= node.shape[a]}


def is_zero(node: Node) -> bool:
    """Tell whether a node is the number 0."""
    return node.op in NUMBERS and node.arg == 0


def is_alike(one: tuple[int, int], other: tuple[int, int] | None) -> bool:
    """Tell whether as much is beside a value, by the same position."""
    return other is not None and is_same((*one, 1), (*other, 1))


def cut(node: Node, pads: Pads) -> Node:
    """Cut off what is beside."""
    if not pads:
        return node
    none = 0, 0
    if node.op in NUMBERS:
        sizes = [size - sum(pads.get(axis, none)) for axis, size in enumerate(node.shape)]
        return Node(node.op, (), node.arg, tuple(sizes), node.dtype, node.device)
    parts = [(pads.get(axis, none), size) for axis, size in enumerate(node.shape)]
    return node.slice(tuple([(lo, size - hi, 1) for (lo, hi), size in parts]))


def remade(node: Node, inputs: tuple[Node, ...], shape: tuple[int, ...]) -> Node:
    """Make a node of smaller inputs."""
    row = node.row
    if row.role is Role.VIEW and (row.is_same_bytes or row.is_repeating):
        return Node(node.op, inputs, shape, shape, node.dtype, node.device)
    arg = node.arg
    if is_slice(node):  # it shows all of what is smaller
        sizes = zip(arg, node.shape, shape, strict=True)
        arg = tuple([each if size == n else (0, n, 1) for each, size, n in sizes])
    return Node(node.op, inputs, arg, shape, node.dtype, node.device)
