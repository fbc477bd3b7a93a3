"""How a plan for many sizes is bound to the sizes of a graph, kept so that the next is bound fast.

Which axes change together, the bounded graph and its plan are the same for all graphs of a family
that fit the bounds. What differs are sizes of leaves and numbers in arguments, and a `Binding`
knows where they stand:

    (7, (0, 2, 0))     the number arg[0][2][0] of node 7
    (-1, (12,))        the size of axis 12, of all axes of all nodes

So a later graph is checked, and read.
"""

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from picograd.buffer import Buffer
from picograd.config import config
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import GraphKey, leaf_buffer
from picograd.graph.axes import Axes, Degenerate, Parts, memory_of
from picograd.graph.bounded import Bounded, Origin
from picograd.graph.bounded_rules import Bounds, holds
from picograd.graph.node import Node, Nodes
from picograd.graph.recurrence import steps_of
from picograd.graph.row import SCALARS, WRITES, Role
from picograd.graph.shape import Shape
from picograd.graph.starts import MOVING
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.number import GivenInt
from picograd.traced_number import TracedNumber, plain

MOST_ELEMENTS = 1 << 26  # of a bounded array, if that is more than twice what there is

Pair = tuple[Shape, Shape]  # of an array: its layout, and the one wanted
Layout = tuple[Parts, Shape]  # the factors of an array's axes, and their bounds


@dataclass(slots=True)
class Bound:
    """A plan's numbers for one graph; see `BoundedPlan`."""

    inputs: list[tuple[int, Pair | None]]
    scalars: list[tuple[int, int | float]]
    outputs: list[Pair | None]
    written: list[tuple[int, Pair]]
    assigned: dict[int, int]


@dataclass(slots=True)
class Binding:
    """A plan for many sizes, and where a graph says what it needs; nodes are given by position."""

    epoch: int  # of the settings
    bounds: Bounds
    plan: "weakref.ref[CompiledPlan]"
    plain: list[tuple[int, int]]  # axes that vary, and others of the same sizes
    merged: list[tuple[int, Parts]]  # axes that vary, and their factors
    elements: int  # of all arrays at their bounds
    has_loop: bool  # whose number of steps varies
    large: list[tuple[int, int]]  # nodes whose bounded arrays are large, and how large
    inputs: list[tuple[int, Layout | None]]
    scalars: list[Origin]
    outputs: list[Layout]
    written: list[tuple[int, Layout]]
    assigned: dict[int, int]  # roots that are assignments: the node that has the memory

    def fits(self, sizes: Sequence[int]) -> bool:
        """Tell whether axes that should be of one size are, within the bounds."""
        if not holds(self.bounds, sizes):
            return False
        for at, of in self.plain:
            if sizes[at] != sizes[of] or sizes[at] < 2:
                return False
        return all(sizes[at] == product(own_sizes(parts, sizes)) for at, parts in self.merged)

    def bind(
        self,
        order: Nodes,
        sizes: Sequence[int],
        buffers: Sequence[Buffer],
        places: dict[int, int],
        is_traced: bool = False,
    ) -> Bound:
        """Read what the plan needs from a graph that fits, of these buffers.

        `places` are those of runtime scalars, by identity. With `is_traced`, numbers stay traced.
        """
        for number, size in self.large:
            if size > 2 * order[number].size:
                raise Degenerate
        numbers = {id(buffer): number for number, buffer in enumerate(buffers)}

        def number_of(position: int) -> int:
            return numbers[id(leaf_buffer(order[position]))]

        def scalar_of(origin: Origin) -> tuple[int, int | float]:
            value = read_number(order, sizes, origin)
            at = places.get(id(value), -1)
            if is_traced and at < 0:
                return at, as_traced(value)
            return at, plain_value(value) if at < 0 else 0

        return Bound(
            [(number_of(at), pair_of(layout, sizes)) for at, layout in self.inputs],
            [scalar_of(origin) for origin in self.scalars],
            [turned(pair_of(layout, sizes)) for layout in self.outputs],
            [(number_of(at), laid_pair(layout, sizes)) for at, layout in self.written],
            {root: number_of(at) for root, at in self.assigned.items()},
        )


def read_number(order: Nodes, sizes: Sequence[int], origin: Origin) -> Any:
    """Find a number of a graph."""
    number, path = origin
    if number < 0:
        return sizes[path[0]]
    value = order[number].arg
    for part in path:
        value = value[part]
    return value


def plain_value(number: Any) -> int | float:
    """Read a number that a plan is bound to: of a traced number, that is noted."""
    source = number if type(number) is TracedNumber else getattr(number, "source", None)
    return plain(source) if source is not None else getattr(number, "value", number)


def as_traced(number: Any) -> Any:
    """Give the traced number that a number is, if it is one."""
    return getattr(number, "source", None) or number if type(number) is GivenInt else number


def own_sizes(parts: Parts, sizes: Sequence[int]) -> Shape:
    """Give the sizes of factors."""
    return tuple([sizes[part[0]] if isinstance(part, tuple) else part for part in parts])


def laid_pair(layout: Layout, sizes: Sequence[int]) -> Pair:
    """Give the sizes that an array has along its factors, and their bounds."""
    return own_sizes(layout[0], sizes), layout[1]


def pair_of(layout: Layout | None, sizes: Sequence[int]) -> Pair | None:
    """Give two layouts of an array; None if they are one."""
    if layout is None:
        return None
    pair = laid_pair(layout, sizes)
    return None if pair[0] == pair[1] else pair


def turned(pair: Pair | None) -> Pair | None:
    """Swap two layouts."""
    return None if pair is None else (pair[1], pair[0])


def make_binding(
    graph: Bounded, roots: Nodes, wanted: Nodes, inner: GraphKey, plan: CompiledPlan
) -> Binding:
    """Note where a bounded graph has its numbers from. `wanted` are its roots, then the values."""
    axes = graph.axes
    positions: dict[int, int] = {}
    origins = {key: origin for key, (_, origin) in graph.origins.items()}
    for number, node in enumerate(axes.order):
        buffer = leaf_buffer(node)
        if buffer is not None:
            positions.setdefault(id(buffer), number)
        elif node.op in SCALARS:
            origins.setdefault(id(node.arg), (number, ()))
        elif node.op in MOVING:
            for path, start in given_starts(node.arg):
                origins.setdefault(id(start), (number, path))
    targets = {id(value): positions[id(buffer)] for buffer, _, value in graph.written}
    varying = [each for node in axes.order for each in varying_axes(axes, node)]
    return Binding(
        config.epoch,
        graph.bounds,
        weakref.ref(plan),
        [(at, of) for at, parts in varying for of in plain_class(parts)],
        [(at, parts) for at, parts in varying if not plain_class(parts)],
        sum(graph.made[id(node)].size for node in axes.order),
        has_loop(graph),
        large_arrays(graph),
        bound_inputs(graph, positions, inner),
        [origins[id(scalar)] for scalar in inner.scalars],
        [graph.layout(root) for root in roots],
        [(positions[id(buffer)], graph.layout(node)) for buffer, node, _ in graph.written],
        {
            number: targets[id(made)]
            for number, made in enumerate(wanted[: len(roots)])
            if id(made) in targets
        },
    )


def given_starts(arg: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """List the positions that a user gave in an argument, and where they stand."""
    if isinstance(arg, tuple):
        for number, part in enumerate(arg):
            yield from given_starts(part, (*path, number))
    elif type(arg) is GivenInt:
        yield path, arg


def varying_axes(axes: Axes, node: Node) -> list[tuple[int, Parts]]:
    """List the axes of a node that vary, and their factors."""
    base = axes.bases[axes.numbers[id(node)]]
    return [(base + axis, axes.parts_of(node, axis)) for axis in axes.dynamic_axes(node)]


def plain_class(parts: Parts) -> tuple[int, ...]:
    """Give the class of an axis that is all of one factor, which varies; nothing of others."""
    part = parts[0] if len(parts) == 1 else ()
    return part if isinstance(part, tuple) else ()


def has_loop(graph: Bounded) -> bool:
    """Tell whether a graph has a loop whose number of steps varies."""
    loops = [node for node in graph.axes.order if node.row.role is Role.LOOP]
    return any(steps_of(graph.made[id(loop)]) is not None for loop in loops)


def large_arrays(graph: Bounded) -> list[tuple[int, int]]:
    """List the nodes whose bounded arrays are large."""
    sizes = [graph.made[id(node)].size for node in graph.axes.order]
    return [(number, size) for number, size in enumerate(sizes) if size > MOST_ELEMENTS]


def bound_inputs(
    graph: Bounded, positions: dict[int, int], inner: GraphKey
) -> list[tuple[int, Layout | None]]:
    """Say for every buffer of a bounded graph which leaf it is, and how it is laid out."""
    laid = {
        id(leaf_buffer(leaf)): (positions[id(buffer)], graph.layout(node))
        for buffer, node, leaf in graph.leaves
    }
    return [laid.get(id(buffer)) or (positions[id(buffer)], None) for buffer in inner.buffers]


def written_parts(order: Nodes) -> set[int]:
    """Find the memory of which a part is written: to lay it out anew would copy all the rest."""
    found = set()
    for node in order:
        if node.op in WRITES and memory_of(node) is None:
            value, target = node.inputs[1], node.inputs[0]
            while value.op == "contiguous":
                value = value.inputs[0]
            if value.op in ("put", "scatter"):
                found.add(id(memory_of(target)))
    return found
