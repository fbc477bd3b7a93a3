"""Ends: where, along its axes, the elements of an array stop being seen.

    End = axis, step, size, count        (place // step) % size < count     for what is seen

`count` is a runtime scalar; `size` 0 stands for no remainder. An axis merged of several factors has
an end for each that varies. Nodes of a bounded graph (graph/bounded.py) carry two kinds:

    ends       of the node's own elements: a licence. Beyond them an element may be anything, or
               never be computed; nothing that is seen depends on it.
    sources    of each input of a reduce, contract or conv: a part of what is computed. What lies
               beyond them is left out of the sum, as if it were the identity of the monoid.
               Of the stacked inputs of a loop: it has no steps beyond them.
"""

from typing import Any

import numpy as np

from picograd.buffer import RuntimeScalar
from picograd.dtype import DType, int64
from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.graph.shape import Shape
from picograd.late_methods import dataclass

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
        view = [1] * array.ndim
        view[end.axis] = -1
        array = np.where(seen.reshape(view), array, np.asarray(fill, array.dtype))
    return array
