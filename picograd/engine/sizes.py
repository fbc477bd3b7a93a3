"""Sizes are arguments: a graph that was seen with other sizes runs the plan of a bounded graph.

    first recording           sizes 37      a plan of its own
    second, other sizes       sizes 38      a plan for sizes up to 64 (graph/bounded.py)
    every later one           sizes 39..64  the same plan, other runtime scalars

Recordings of one structure are a family; comparing two of them shows which sizes vary. Inputs whose
sizes vary are laid out at the bound before a run, outputs cut out after it. A size that is used so
often that a plan of its own is worth its compilation gets one (`PATIENCE`).
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.engine.backends import get_device
from picograd.engine.debug import log_action
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_key import GraphKey, graph_key, leaf_buffer, walk_pending, with_scalars
from picograd.errors import CompileError, InternalError
from picograd.graph.axes import (
    Axes,
    Changes,
    Degenerate,
    NoRule,
    Record,
    is_degenerate,
    memory_of,
    record,
)
from picograd.graph.bounded import Bounded
from picograd.graph.bounded_rules import bounded
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node
from picograd.graph.shape import Shape
from picograd.graph.size_bounds import Bounds, choose_bounds, fits
from picograd.helpers import product
from picograd.number import is_given
from picograd.runtime.device import Executable
from picograd.schedule.plan import Plan
from picograd.traced_number import TracedNumber, plain

FAMILY_LIMIT = 256  # structures that are remembered; the one seen longest ago goes first
PATIENCE = 100  # runs at one size; a count, not a time, so that a program repeats its bits
TRIALS = 3  # plans for many sizes that a structure gets before one has served twice
KEPT = ("scan", "sort")  # composites with a rule of their own
BOUND_BYTES, ENTRY_BYTES = 2048, 256  # that a bound plan takes, and a row of its key
MOST_ELEMENTS = 1 << 26  # of a bounded array, if that is more than twice what there is

Compile = Callable[[Sequence[Node], GraphKey], CompiledPlan]
Limits = Mapping[tuple[int, int], int]
Pair = tuple[Shape, Shape]  # of an array: its layout, and the one wanted


@dataclass(slots=True)
class Family:
    """Recordings of one structure: the first one, what varied since, and the bounds in use."""

    first: Record
    largest: list[Shape]  # each node's sizes, the largest that were seen
    changes: Changes = field(default_factory=Changes)
    bounds: list[Bounds] = field(default_factory=list)
    refused: str = ""
    made: int = 0  # plans for many sizes
    reused: int = 0  # recordings that took one that was there

    @property
    def is_wanted(self) -> bool:
        """Whether another plan for many sizes is likely to serve more than one of them."""
        return self.made < TRIALS or self.reused >= self.made


FAMILIES: OrderedDict[Any, Family] = OrderedDict()


@dataclass(eq=False)
class BoundedPlan:
    """A plan for many sizes, bound to one: how arrays are laid out, and the runtime scalars.

    `inputs` has, for every buffer of the plan, which buffer of the graph key it is, and how it is
    laid out; `scalars` which scalar of the key, or -1 and a value; `outputs` how each root is cut
    out; `written` which buffers of the key get the last results.
    """

    inner: CompiledPlan
    inputs: list[tuple[int, Pair | None]]
    scalars: list[tuple[int, int | float]]
    outputs: list[Pair | None]
    written: list[tuple[int, Pair]]
    assigned: dict[int, int]  # roots that are assignments: which buffer of the key they are
    patience: int  # runs before a plan for these sizes alone is worth making
    nbytes: int = 0  # of memory it takes beside the code, about
    key: Any = None  # in the cache of plans

    @property
    def plan(self) -> Plan:
        """The plan of the bounded graph."""
        return self.inner.plan

    @property
    def executables(self) -> tuple[Executable, ...]:
        """The kernels of that plan, each once."""
        return self.inner.executables

    @property
    def is_worn(self) -> bool:
        """Whether these sizes ran so often that they should have a plan of their own."""
        return self.patience <= 0

    def run(
        self, buffers: Sequence[Buffer], values: Sequence[int | float], origin: str = ""
    ) -> list[Buffer]:
        """Run on the buffers and scalars of a graph key; returns one buffer a root."""
        self.patience -= 1
        inner = [laid_out(buffers[number], pair, origin) for number, pair in self.inputs]
        scalars = [values[number] if number >= 0 else value for number, value in self.scalars]
        results = self.inner.run(inner, scalars, origin)
        count = len(self.outputs)
        found = [
            buffers[self.assigned[n]] if n in self.assigned else laid_out(result, pair, origin)
            for n, (result, pair) in enumerate(zip(results, self.outputs))
        ]
        for (number, pair), result in zip(self.written, results[count:], strict=True):
            copy_part(buffers[number], pair[0], result, pair[1])
        return found


def as_array(buffer: Buffer, shape: Shape) -> "np.ndarray[Any, Any]":
    """Show the memory of a CPU buffer as an array."""
    cpu: Any = get_device(buffer.device)
    raw: np.ndarray[Any, Any] = cpu.view(buffer).view(buffer.dtype.storage)
    return raw[: product(shape)].reshape(shape)


def copy_part(to: Buffer, to_shape: Shape, source: Buffer, shape: Shape) -> None:
    """Copy what two layouts have both, the first elements of every axis."""
    places = tuple([slice(min(pair)) for pair in zip(to_shape, shape)])
    as_array(to, to_shape)[places] = as_array(source, shape)[places]


def laid_out(buffer: Buffer, pair: Pair | None, origin: str) -> Buffer:
    """Give memory of the first layout in the second one, larger or smaller; None: they are one."""
    if pair is None:
        return buffer
    size = product(pair[1])
    made = get_device(buffer.device).new_buffer(buffer.dtype, size, origin)
    copy_part(made, pair[1], buffer, pair[0])
    return made


def prime(roots: Sequence[Node]) -> None:
    """Note a graph as one seen before, at sizes that it will have."""
    expanded = expand_composites(with_scalars(roots, graph_key(roots)), KEPT)
    order = walk_pending(expanded)
    family = Family(record(order), [node.shape for node in order])
    FAMILIES.setdefault(structure(order, expanded), family)


def bounded_plan(
    roots: Sequence[Node], found: GraphKey, compiled: Compile, limits: Limits
) -> BoundedPlan | None:
    """Find a plan for many sizes; None if the sizes are new, or no plan for others will do.

    `compiled` finds or makes the plan of a graph; `limits` are bounds by memory and axis.
    """
    if any(node.device != "cpu" for node in found.order):
        return None
    expanded = expand_composites(with_scalars(roots, found), KEPT)
    order = walk_pending(expanded)
    key = structure(order, expanded)
    family = FAMILIES.get(key)
    if family is None:
        FAMILIES[key] = Family(record(order), [node.shape for node in order])
        while len(FAMILIES) > FAMILY_LIMIT:
            FAMILIES.popitem(last=False)
        return None
    FAMILIES.move_to_end(key)
    if family.refused:
        return None
    try:
        return fitted(family, order, expanded, found, compiled, limits)
    except Degenerate:
        return None
    except (NoRule, InternalError, CompileError, ArithmeticError, LookupError) as error:
        kind = "" if isinstance(error, NoRule) else f"{type(error).__name__}: "
        family.refused = f"{kind}{error}"
        log_action("sizes", f"each has a plan of its own: {error}")
        return None


def structure(order: Sequence[Node], roots: Sequence[Node]) -> Any:
    """Key a graph by what stays when its sizes change."""
    numbers: dict[int, int] = {}
    buffers: dict[int, int] = {}
    scalars: dict[int, int] = {}
    rows: list[Any] = []
    for position, node in enumerate(order):
        numbers[id(node)] = position
        kind = node.op, len(node.shape), node.dtype.name
        buffer = leaf_buffer(node)
        if buffer is not None:
            rows.append((*kind[1:], buffers.setdefault(id(buffer), position)))
        elif node.op == "scalar":
            rows.append((kind, scalars.setdefault(id(node.arg), position)))
        else:
            inputs = tuple([numbers[id(source)] for source in node.inputs])
            rows.append((kind, inputs, fixed_part(node)))
    return tuple(rows), tuple(numbers[id(root)] for root in roots)


def fixed_part(node: Node) -> Any:
    """Give what of an argument is no size."""
    if node.op in ("reshape", "expand", "const"):
        return None
    if node.op == "slice":
        return tuple([(step, is_given(start)) for start, _, step in node.arg])
    if node.op == "pad":
        pads, fill = node.arg
        ends = tuple([(not low, not high, is_given(low)) for low, high in pads])
        return ends, repr(fill)
    return node.arg[0] if node.op == "fold" else node.arg


def fitted(
    family: Family,
    order: Sequence[Node],
    expanded: Sequence[Node],
    found: GraphKey,
    compiled: Compile,
    limits: Limits,
) -> BoundedPlan | None:
    """Bind the plan of a family to the sizes of a graph."""
    is_now, is_first = is_degenerate(order, family.first, family.changes)
    pairs = zip(family.largest, order)
    family.largest = [tuple(map(max, most, node.shape)) for most, node in pairs]
    if is_first:
        family.first, family.changes = record(order), Changes()
        family.bounds.clear()
    if is_now or is_first:
        return None
    changes = family.changes.copy()
    changes.compare(order, family.first)
    is_wider = changes.size() != family.changes.size()
    if not changes.axes or (is_wider and not family.is_wanted):
        return None
    axes = Axes(order, family.first, changes)
    known = [] if is_wider else family.bounds
    bounds = next((each for each in known if fits(axes, each)), None)
    if bounds is None:
        if not family.is_wanted:
            return None
        bounds = choose_bounds(axes, family.largest, limits)
        if bounds not in known:
            family.changes, family.bounds = changes, [*known, bounds]
            family.made += 1
    else:
        family.reused += 1
    graph = bounded(axes, bounds)
    check_room(graph)
    return bind(graph, expanded, found, compiled)


def check_room(graph: Bounded) -> None:
    """Raise Degenerate where the layout for the largest sizes takes much more memory."""
    for node in graph.axes.order:
        size = graph.made[id(node)].size
        if size > MOST_ELEMENTS and size > 2 * node.size:
            raise Degenerate


def plain_value(scalar: Any) -> int | float:
    """Read a scalar that a plan is bound to: of a traced number, that is noted."""
    number = scalar if type(scalar) is TracedNumber else getattr(scalar, "source", None)
    found: int | float = scalar.value if number is None else plain(number)
    return found


def bind(
    graph: Bounded, expanded: Sequence[Node], found: GraphKey, compiled: Compile
) -> BoundedPlan:
    """Compile a bounded graph, and say where its inputs come from and its results go."""
    parts = written_parts(found.order)
    if any(id(buffer) in parts for buffer, _, _ in graph.written):
        raise Degenerate
    wanted = [graph.made[id(root)] for root in expanded]
    wanted += [value for _, _, value in graph.written]
    inner_found = graph_key(wanted)
    inner = compiled(wanted, inner_found)
    numbers = {id(buffer): number for number, buffer in enumerate(found.buffers)}
    places = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    scalars = [
        (places[id(each)], 0) if id(each) in places else (-1, plain_value(each))
        for each in inner_found.scalars
    ]
    outputs: list[Pair | None] = []
    assigned: dict[int, int] = {}
    targets = {id(value): numbers[id(buffer)] for buffer, _, value in graph.written}
    for number, (root, made) in enumerate(zip(expanded, wanted)):
        own, bound = graph.layout(root)
        outputs.append(None if root.shape == made.shape else (bound, own))
        if id(made) in targets:
            assigned[number] = targets[id(made)]
    written = [(numbers[id(buffer)], graph.layout(node)) for buffer, node, _ in graph.written]
    return BoundedPlan(
        inner,
        bound_inputs(graph, numbers, inner_found),
        scalars,
        outputs,
        written,
        assigned,
        PATIENCE,
        BOUND_BYTES + ENTRY_BYTES * (len(found.order) + len(found.buffers)),
    )


def written_parts(order: Sequence[Node]) -> set[int]:
    """Find the memory of which a part is written: to lay it out anew would copy all the rest."""
    found = set()
    for node in order:
        if node.op == "assign" and memory_of(node) is None:
            value, target = node.inputs[1], node.inputs[0]
            while value.op == "contiguous":
                value = value.inputs[0]
            if value.op in ("put", "scatter"):
                found.add(id(memory_of(target)))
    return found


def bound_inputs(
    graph: Bounded, numbers: dict[int, int], inner: GraphKey
) -> list[tuple[int, Pair | None]]:
    """Say for every buffer of a bounded graph which buffer it is, and how it is laid out."""
    laid: dict[int, tuple[int, Pair | None]] = {}
    for buffer, node, leaf in graph.leaves:
        own, bound = graph.layout(node)
        laid[id(leaf_buffer(leaf))] = numbers[id(buffer)], (own, bound) if own != bound else None
    found = []
    for buffer in inner.buffers:
        at = laid.get(id(buffer))
        found.append((numbers[id(buffer)], None) if at is None else at)
    return found
