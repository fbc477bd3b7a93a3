"""Bounded graphs, graph -> graph: one graph, laid out for the largest sizes, computes all smaller.

    sum(x)  x: f32(37)      ->  sum(where(iota < n, x, 0))  x: f32(64), n a runtime scalar: 37

Every dynamic axis (`Axes`) gets a bound in the place of its size, and the size becomes a runtime
scalar. What lies beyond the size is never defined, and never seen: a reduction replaces it by the
identity of its monoid, an index by a place that exists, a scatter sends it to a row that is cut
off. Every node says where it ends (`End`), so that a kernel need not go to the bound.
Numbers in arguments that vary with the sizes (where a slice starts, what a mean divides by)
are runtime scalars too. So a graph of other sizes is the same bounded graph, and its plan is found
by its key; the graph that was recorded gives the numbers.

The row of an op has its rule (graph/bounded_rules.py); an elementwise op is applied as it is.
`NoRule` where there is none.

Ends: where, along its axes, the elements of an array stop being seen.

    End = axis, step, size, count        (place // step) % size < count     for what is seen

`count` is a runtime scalar; `size` 0 stands for no remainder. An axis merged of several factors has
an end for each that varies. Nodes of a bounded graph carry two kinds:

    ends       of the node's own elements: a licence. Beyond them an element may be anything, or
               never be computed; nothing that is seen depends on it.
    sources    of each input of a reduce, contract or conv: a part of what is computed. What lies
               beyond them is left out of the sum, as if it were the identity of the monoid.
               Of the stacked inputs of a loop: it has no steps beyond them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.dtype import DType, bool_, int64
from picograd.graph.axes import Axes, NoRule, Part, Parts, memory_of
from picograd.graph.node import Node, Number
from picograd.graph.row import Role
from picograd.graph.shape import Shape
from picograd.helpers import lying_along, product
from picograd.late_methods import dataclass
from picograd.number import is_given

Sources = tuple[tuple["End", ...], ...]
ENDING = (Role.REDUCE, Role.CONTRACT, Role.CONV, Role.LOOP)  # of ops whose inputs may end


@dataclass(frozen=True, slots=True)
class End:
    """One end; see the module docstring."""

    axis: int
    step: int
    size: int
    count: RuntimeScalar

    @property
    def scalar(self) -> Node:
        """Give the runtime scalar as a node."""
        return Node("scalar", (), self.count, (), int64, "cpu")

    def __repr__(self) -> str:
        step = f" // {self.step}" if self.step != 1 else ""
        size = f" % {self.size}" if self.size else ""
        return f"axis {self.axis}{step}{size}"


class EndedNode(Node):
    """A node with ends; see the module docstring."""

    __slots__ = ("ends", "sources")

    def __init__(
        self,
        op: str,
        inputs: tuple[Node, ...],
        arg: Any,
        shape: Shape,
        dtype: DType,
        device: str,
        ends: tuple[End, ...],
        sources: Sources,
    ) -> None:
        super().__init__(op, inputs, arg, shape, dtype, device)
        self.ends: tuple[End, ...] = ends
        self.sources: Sources = sources

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        """Apply the same operation to other inputs, with the same ends."""
        made = super().with_inputs(inputs)
        return made if made is self else ended(made, self.ends, self.sources)


def ended(node: Node, ends: tuple[End, ...], sources: Sources = ()) -> Node:
    """Let the elements of a node end; a leaf has them all, and so has a number."""
    sources = sources or sources_of(node)
    if not (ends or any(sources)) or not node.inputs or node.realized is not None:
        return node
    rest = node.shape, node.dtype, node.device
    return EndedNode(node.op, node.inputs, node.arg, *rest, ends, sources)


def ends_of(node: Node) -> tuple[End, ...]:
    """List where the elements of a node end."""
    return node.ends if isinstance(node, EndedNode) else ()


def sources_of(node: Node) -> Sources:
    """List where the inputs of a node end, as far as it reads them."""
    return node.sources if isinstance(node, EndedNode) else ()


def every_end(node: Node) -> tuple[End, ...]:
    """List all ends of a node, its own first."""
    if not isinstance(node, EndedNode):
        return ()
    return (*node.ends, *(end for ends in node.sources for end in ends))


def problem_of_ends(node: Node) -> str:
    """Say what is wrong with the ends of a node; nothing if all is well."""
    if not isinstance(node, EndedNode):
        return ""
    if node.sources and (node.row.role not in ENDING or len(node.sources) != len(node.inputs)):
        return "its inputs have no ends"
    arrays = [(node.shape, node.ends), *zip([x.shape for x in node.inputs], node.sources)]
    for shape, ends in arrays:
        for end in ends:
            if not 0 <= end.axis < len(shape) or end.step < 1 or end.size < 0:
                return f"an end along {end} of {shape}"
    return ""


def left_out(array: Any, ends: tuple[End, ...], fill: Any) -> Any:
    """Replace what lies beyond the ends of a NumPy array."""
    for end in ends:
        place: Any = np.arange(array.shape[end.axis]) // end.step
        seen = (place % end.size if end.size else place) < end.count.value
        seen = seen.reshape(lying_along(end.axis, array.ndim))
        array = np.where(seen, array, np.asarray(fill, array.dtype))
    return array


Origin = tuple[int, tuple[int, ...]]  # a node, and where in its argument; -1 and an axis: its size


class Bounded:
    """This class is one bounded graph: the nodes made, and what their runtime scalars are.

    `leaves` lists the inputs that are laid out anew: (buffer, the leaf, the bounded leaf).
    `origins` says where the numbers are: in the argument of which node, or of which axis the size.
    `written` lists the tensors of varying sizes that are assigned: (buffer, node, its new value).
    """

    def __init__(self, axes: Axes, bounds: dict[int, int]) -> None:
        self.axes: Axes = axes
        self.bounds: dict[int, int] = bounds
        self.made: dict[int, Node] = {}
        self.sizes: dict[int, RuntimeScalar] = {}
        self.leaves: list[tuple[Buffer, Node, Node]] = []
        self.written: list[tuple[Buffer, Node, Node]] = []
        self.laid: dict[tuple[int, tuple[Parts, Shape]], Buffer] = {}
        self.origins: dict[int, tuple[Any, Origin]] = {}  # by identity: the scalar, and its origin

    def run(self) -> None:
        """Make the bounded form of every node, inputs first."""
        seen: set[int] = set()
        for node in self.axes.order:
            made = self.convert(node)
            if made.shape != self.shape(node):
                raise NoRule(f"{node.op} has a shape that no rule gives")
            if id(made) in seen:  # all of another: what is sorted would end with what is cut of it
                self.made[id(node)] = made
                continue
            # The value of an assignment has its ends already, and is looked for by identity.
            row = node.row
            is_whole = row.role is Role.WRITE or (row.sizes is not None and row.sizes.is_whole)
            axes = () if is_whole else self.axes.dynamic_axes(node)
            ends = self.ends(node, axes)
            self.made[id(node)] = made = ended(made, ends)
            seen.add(id(made))

    def convert(self, node: Node) -> Node:
        """Apply the rule of one node."""
        if memory_of(node) is not None:
            return self.leaf(node)
        row = node.row
        is_number = row.role is Role.NUMBER  # it may be a size
        if not is_number and not any(map(self.axes.dynamic_axes, (node, *node.inputs))):
            return node.with_inputs(tuple(self.inputs(node)))
        if row.is_elementwise:
            return self.same(node, self.inputs(node))
        if row.sizes is None or row.sizes.bounded is None:
            raise NoRule(f"{node.op} has sizes that are fixed")
        return row.sizes.bounded(self, node)

    def same(self, node: Node, inputs: Sequence[Node]) -> Node:
        """Apply the op of a node to other inputs, in its bounded shape."""
        shape = self.shape(node)
        return Node(node.op, tuple(inputs), node.arg, shape, node.dtype, node.device)

    def inputs(self, node: Node) -> list[Node]:
        """List the bounded inputs of a node."""
        return [self.made[id(source)] for source in node.inputs]

    def shape(self, node: Node) -> Shape:
        """Find the bounded shape of a node."""
        return tuple(self.bound(node, axis) for axis in range(len(node.shape)))

    def bound(self, node: Node, axis: int) -> int:
        """Find the bounded size of an axis."""
        parts = self.axes.parts_of(node, axis)
        return product(self.bounds[p[0]] if isinstance(p, tuple) else p for p in parts)

    def layout(self, node: Node) -> tuple[Parts, Shape]:
        """Give the factors of all axes of a node, and their bounds."""
        parts: Parts = ()
        for axis in range(len(node.shape)):
            parts += self.axes.parts_of(node, axis)
        bounds = [self.bounds[part[0]] if isinstance(part, tuple) else part for part in parts]
        return parts, tuple(bounds)

    def leaf(self, node: Node) -> Node:
        """Stand for memory: a leaf of the bounded shape, which is filled before a run."""
        if not self.axes.dynamic_axes(node):
            return node
        buffer, shape = memory_of(node), self.shape(node)
        if buffer is None:
            raise NoRule("a leaf without memory")
        key = id(buffer), self.layout(node)
        if key not in self.laid:
            self.laid[key] = Buffer(node.device, node.dtype, product(shape), 0)
            made = Node("buffer", (), Storage(self.laid[key]), shape, node.dtype, node.device)
            self.leaves.append((buffer, node, made))
            return made
        return Node("buffer", (), Storage(self.laid[key]), shape, node.dtype, node.device)

    # sizes, ends and masks

    def ends(self, node: Node, axes: Sequence[int]) -> tuple[End, ...]:
        """Say which elements along some axes of a node there are."""
        found: list[End] = []
        for axis in axes:
            step, parts = 1, self.axes.parts_of(node, axis)
            for at in reversed(range(len(parts))):
                part = parts[at]
                bound = self.bounds[part[0]] if isinstance(part, tuple) else part
                if isinstance(part, tuple):
                    count = self.count(part[0])
                    found.append(End(axis, step, bound if at else 0, count))
                step *= bound
        return tuple(found)

    def scalar(self, node: Node, path: tuple[int, ...], shape: Shape, dtype: DType = int64) -> Node:
        """Take a number in the argument of a node from each call anew; a user's is so already."""
        value = node.arg
        for part in path:
            value = value[part]
        scalar = value if is_given(value) else RuntimeScalar(value)
        self.origins[id(scalar)] = scalar, (self.axes.numbers[id(node)], path)
        return wide(Node("scalar", (), scalar, (), dtype, node.device), shape)

    def size(self, number: int, shape: Shape, device: str) -> Node:
        """Give the size of a class, or of any axis."""
        count = self.count(number)
        return wide(Node("scalar", (), count, (), int64, device), shape)

    def count(self, number: int) -> RuntimeScalar:
        """Find the runtime scalar of the size of a class."""
        if number not in self.sizes:
            scalar = self.sizes[number] = RuntimeScalar(self.axes.sizes[number])
            self.origins[id(scalar)] = scalar, (-1, (number,))
        return self.sizes[number]

    def valid(self, node: Node, axis: int, like: Node) -> Node | None:
        """Tell which positions along an axis of `like` hold values; None if all do."""
        found: Node | None = None
        position = like.iota(axis)
        parts = self.axes.parts_of(node, axis)
        for at, part in reversed(list(enumerate(parts))):
            bound = self.bounds[part[0]] if isinstance(part, tuple) else part
            here = position.binary("mod", bound) if at else position
            if isinstance(part, tuple):
                test = here.binary("less", self.size(part[0], like.shape, like.device))
                found = test if found is None else found.binary("logical_and", test)
            if at:
                position = position.binary("floordiv", bound)
        return found

    def mask(self, node: Node, made: Node, axes: Sequence[int], fill: Number) -> Node:
        """Replace what lies beyond the sizes of some axes of a node by a number."""
        for axis in axes:
            inside = self.valid(node, axis, made)
            if inside is not None:
                made = inside.where(made, fill)
        return made

    def factor(self, part: Part, like: Node) -> tuple[Node, Node]:
        """Give the size of a factor of an axis, and its bound."""
        if isinstance(part, tuple):
            bound = like.const_like(self.bounds[part[0]])
            return self.size(part[0], like.shape, like.device), bound
        return like.const_like(part), like.const_like(part)

    def place(self, node: Node, axis: int, index: Node) -> Node:
        """Turn positions along an axis into those of the bounded layout."""
        parts = self.axes.parts_of(node, axis)
        if len(parts) == 1:
            return index
        rest = index.cast(int64)
        found, step = rest.const_like(0), rest.const_like(1)
        for at in reversed(range(len(parts))):
            own, bound = self.factor(parts[at], rest)
            here = rest.binary("mod", own) if at else rest
            found = found + here * step
            if at:
                rest, step = rest.binary("floordiv", own), step * bound
        return found

    def varies(self, node: Node, axis: int) -> bool:
        """Tell whether a number in a node's argument differs between calls."""
        return (self.axes.numbers[id(node)], axis) in self.axes.changes.numbers

    def moves(self, node: Node, axis: int, start: int) -> bool:
        """Tell whether a slice or pad begins elsewhere in other calls, by or in what varies."""
        dynamic = self.axes.is_dynamic
        is_inside = dynamic(node, axis) or dynamic(node.inputs[0], axis)
        return self.varies(node, axis) or (is_given(start) and is_inside)

    def need_plain(self, node: Node, axis: int) -> None:
        """Raise NoRule for an axis merged of several."""
        if self.axes.find(node, axis) in self.axes.parts:
            raise NoRule(f"{node.op} along an axis merged of several")


def wide(node: Node, shape: Shape) -> Node:
    """Repeat a number over a shape."""
    return node.reshape((1,) * len(shape)).expand(shape)


def fit(node: Node, axis: int, size: int) -> Node:
    """Cut an axis off at a size, or fill it up with what nobody looks at."""
    now = node.shape[axis]
    if now > size:
        return node.slice(tuple((0, size if a == axis else n, 1) for a, n in enumerate(node.shape)))
    pads = tuple((0, size - now if a == axis else 0) for a in range(len(node.shape)))
    return node.pad(pads, zero(node.dtype))


def fit_all(node: Node, shape: Shape) -> Node:
    """Cut or fill all axes."""
    for axis, size in enumerate(shape):
        if node.shape[axis] != size:
            node = fit(node, axis, size)
    return node


def zero(dtype: DType) -> Number:
    """Zero as a constant of a dtype."""
    if dtype.is_float:
        return 0.0
    return False if dtype is bool_ else 0


def read_along(node: Node, positions: Node, axis: int) -> Node:
    """Read an axis at positions, a vector."""
    found = node.gather((positions,), (axis,))
    rank = len(node.shape)
    return found.permute((*range(1, axis + 1), 0, *range(axis + 1, rank)))


def vector(size: int, device: str) -> Node:
    """Count the positions of an axis."""
    return Node("iota", (), 0, (size,), int64, device)


def clamped(positions: Node, size: int) -> Node:
    """Keep positions inside an axis."""
    return positions.binary("maximum", 0).binary("minimum", size - 1)
