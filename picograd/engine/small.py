"""Small graphs that were seen before: what an eager operation records finds its plan in one look.

One node over memory, or a few, asked for alone, while no write waits and nothing is carried from
one computation to the next: then what `pending.compute` looks for cannot be there. The key is
made from the root down, without the walk that larger graphs need; a table leads from it to the
plan, which the cache of plans owns.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from picograd.buffer import Buffer
from picograd.config import config
from picograd.engine import carried, direct
from picograd.engine.carried import entries
from picograd.engine.debug import user_line
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import GraphKey, hashable
from picograd.graph.node import Node
from picograd.graph.row import MEMORY, NUMBERS, SCALARS, WRITES
from picograd.graph.starts import MOVING
from picograd.number import GIVEN

LIMIT = 12  # nodes, leaves among them
KNOWN_LIMIT = 4096
ELSEWHERE = MOVING | WRITES  # ops whose argument, or order, the other key tells


@dataclass(slots=True)
class SmallGraph:
    """A key, with the epoch of settings, and what the plan reads in the order of the key."""

    key: Any
    nodes: list[Node]
    buffers: list[Buffer]
    scalars: list[Any]
    inner: list[Node] = field(default_factory=list)  # what is computed below the root


@dataclass(slots=True)
class Known:
    """A plan, and where in a small graph the buffers and scalars are that it takes, in order."""

    plan: "weakref.ref[CompiledPlan]"
    buffers: list[int]
    scalars: list[int]


KNOWN: dict[Any, Known] = {}


def small_graph(root: Node) -> SmallGraph | None:
    """Find the key of a small graph; None for what is larger, or not of this kind."""
    nodes, buffers, scalars, inner = [root], [], [], []  # type: ignore[var-annotated]
    places: dict[int, Any] = {id(root): 0}
    key: list[Any] = [config.epoch]
    for node in nodes:
        held: Any = node.realized
        inputs = node.inputs
        if held is None and inputs:
            if node.op in ELSEWHERE or type(node) is not Node:
                return None
            read = []
            for child in inputs:
                place = places.get(id(child))
                if place is None:
                    place = places[id(child)] = len(nodes)
                    nodes.append(child)
                read.append(place)
            if len(nodes) > LIMIT:
                return None
            if node is not root:
                inner.append(node)
            key += node.op, tuple(read), node.arg, node.shape, node.dtype, node.device
        else:
            if held is None and node.op in MEMORY:
                held = node.arg.buffer
            found: list[Any] = buffers
            if held is None and is_scalar(node):
                found, held = scalars, node.arg
            if held is None:
                key += node.op, hashable(node), node.shape, node.dtype, node.device
            else:
                number = places.setdefault(id(held), len(found))
                if number == len(found):
                    found.append(held)
                key += number, found is scalars, node.shape, node.dtype, node.device
    return SmallGraph(tuple(key), nodes, buffers, scalars, inner)


def is_scalar(node: Node) -> bool:
    """Tell whether a leaf without memory is an argument of the plan."""
    return node.op in SCALARS or (node.op in NUMBERS and type(node.arg) in GIVEN)


def compute(graph: SmallGraph, live: Any) -> bool:
    """Compute the root of a small graph by its plan, if that is known and nothing else is due."""
    known = KNOWN.get(graph.key)
    plan = None if known is None else known.plan()
    if known is None or plan is None or not is_alone(graph, live) or not PLANS.touch(plan):
        return False
    found, root = graph.buffers, graph.nodes[0]
    buffers = [found[number] for number in known.buffers]
    scalars = [graph.scalars[number].value for number in known.scalars] if graph.scalars else ()
    if not scalars and (not graph.inner or direct.whole_of(root) is not None):
        direct.note(root, buffers, plan)
    (root.realized,) = plan.launch(buffers, scalars, user_line())
    if graph.inner or len(carried.NEW) == 1:  # of the others all are gone
        carried.NEW.clear()
    else:
        carried.NEW.pop(id(root), None)
    tensor = live.get(id(root))
    if tensor is not None:
        tensor.settle()
    return True


def is_alone(graph: SmallGraph, live: Any) -> bool:
    """Tell whether a graph stores all of it that a live tensor holds or reads."""
    root, passed = graph.nodes[0], entries(carried.PASSED)
    if passed and weakref.ref(root) in passed:
        return False
    if not graph.inner:
        return True
    if passed or carried.LINES or entries(carried.WAITING):
        return False
    if any(live.get(id(node)) is not None for node in graph.inner):
        return False
    return all(key == id(root) or live.get(key) is None for key in carried.NEW)


def note(graph: SmallGraph, found: GraphKey, plan: Any) -> None:
    """Remember the plan of a small graph."""
    if type(plan) is not CompiledPlan:
        return
    if len(KNOWN) >= KNOWN_LIMIT:
        KNOWN.clear()
    KNOWN[graph.key] = Known(
        weakref.ref(plan),
        places_in(graph.buffers, [found.buffers[number] for number in plan.input_numbers]),
        places_in(graph.scalars, [found.scalars[number] for number in plan.scalar_numbers]),
    )


def places_in(listed: Sequence[Any], wanted: Sequence[Any]) -> list[int]:
    """Find where objects are in a list."""
    numbers = {id(each): number for number, each in enumerate(listed)}
    return [numbers[id(each)] for each in wanted]
