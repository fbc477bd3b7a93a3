"""Small graphs that were seen before: what an eager operation records finds its plan in one look.

One node over memory, or a layer or a few, asked for while no write waits: then most of what
`pending.compute` looks for cannot be there. The key is made from the roots down, without the walk
that larger graphs need; a table leads from it to the plan, which the cache of plans owns. What is
carried from one computation to the next (carried.py) is a root as well.
"""

import weakref
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from picograd.buffer import Buffer
from picograd.config import config
from picograd.engine import carried, direct
from picograd.engine.carried import entries
from picograd.engine.debug import user_line
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import NO_KEY, GraphKey, hashable
from picograd.graph.node import Node
from picograd.graph.pattern import made_with
from picograd.graph.row import MEMORY, NUMBERS, SCALARS, WRITES
from picograd.graph.starts import MOVING, placed, starts_of
from picograd.number import GIVEN

LIMIT = 64  # nodes, leaves among them
KNOWN_LIMIT = 4096


@dataclass(slots=True)
class SmallGraph:
    """A key, with the epoch of settings, and what the plan reads in the order of the key."""

    key: Any
    roots: list[Node]
    nodes: list[Node]  # the root that was asked for first
    buffers: list[Buffer]
    scalars: list[Any]
    inner: list[Node]  # what is computed below the root
    made: list[Node]  # of it, what the key tells together with a result; none is in `nodes`

    def order(self) -> list[Node]:
        """List what it computes, the root last."""
        return [*self.inner[::-1], self.nodes[0]]


@dataclass(slots=True)
class Known:
    """A plan, where in a small graph the buffers and scalars are that it takes, and the roots'
    places among its results.
    """

    plan: "weakref.ref[CompiledPlan]"
    buffers: list[int]
    scalars: list[int]
    results: list[int]


KNOWN: dict[Any, Known] = {}


def small_graph(root: Node) -> SmallGraph | None:
    """Find the key of a small graph; None for what is larger, or not of this kind."""
    return graph_below([root], {id(root): 0}, WRITES, LIMIT)


def graph_below(
    roots: list[Node], places: dict[int, Any], refused: Container[str], limit: int
) -> SmallGraph | None:
    """Find the key of what is below some nodes; None if it is large, or has ops that are refused.

    `places` are those of the roots, in order, and below 0 of what is told elsewhere.
    """
    nodes, buffers, scalars, inner, made = [*roots], [], [], [], []  # type: ignore[var-annotated]
    key: list[Any] = [config.epoch]
    root, first = roots[0], len(roots) - 1 - len(places)
    for node in nodes:
        held: Any = node.realized
        inputs: Sequence[Node] = node.inputs
        if held is None and inputs:
            op, arg = node.op, node.arg
            if op in refused or type(node) is not Node or len(nodes) > limit:
                return None
            if node.stamped is not None:
                op, arg, inputs = told_as_one(node, places, made, first, scalars)
            read = []
            for child in inputs:
                place = places.get(id(child))
                if place is None:
                    place = places[id(child)] = len(nodes)
                    nodes.append(child)
                read.append(place)
            if node is not root:
                inner.append(node)
            if op in MOVING and starts_of(node):
                arg = placed(node, partial(name_start, scalars, places))
            key += op, tuple(read), arg, node.shape, node.dtype, node.device
            continue
        if held is None and node.op in MEMORY:
            held = node.arg.buffer
        if held is not None:
            name = name_of(buffers, places, held)
            key += name, node.shape, node.dtype, node.device
        elif node.op in SCALARS or (node.op in NUMBERS and type(node.arg) in GIVEN):
            name = name_of(scalars, places, node.arg)
            key += "scalar", name, node.shape, node.dtype, node.device
        else:
            key += node.op, hashable(node), node.shape, node.dtype, node.device
    return SmallGraph(tuple(key), roots, nodes, buffers, scalars, inner + made, made)


def told_as_one(
    node: Node, places: dict[int, Any], made: list[Node], first: int, scalars: list[Any]
) -> Any:
    """Give the op, argument and inputs of a node: of what was made together, its pattern's.

    What was made on the way gets a place from `first` down.
    """
    stamped = made_with(node, lambda made: places.keys().isdisjoint(map(id, made)))
    if stamped is None:
        return node.op, node.arg, node.inputs
    pattern, members, within = stamped
    places.update(zip(map(id, within), count(first - len(made), -1)))
    made += within
    names = [name_of(scalars, places, within[at].arg) for at in pattern.numbers]
    return pattern, tuple(names), [members[at] for at in pattern.reads]


def name_of(found: list[Any], places: dict[int, Any], held: Any) -> int:
    """Give the number of a buffer or scalar, a new one where it was not met before."""
    number: int = places.setdefault(id(held), len(found))
    if number == len(found):
        found.append(held)
    return number


def name_start(scalars: list[Any], places: dict[int, Any], start: Any) -> tuple[str, int]:
    """Name the position of a slice by its number among the scalars."""
    return "at", name_of(scalars, places, start)


def with_carried(graph: SmallGraph, live: Any) -> bool:
    """Make roots of what is stored beside what a graph was asked for; False if that is elsewhere.

    The key then tells which of the nodes these are.
    """
    order = graph.order()
    again = [*carried.read_again(order), *carried.read_ahead(order, graph.roots, live)]
    if again:
        listed = enumerate([*graph.nodes, *graph.made])
        numbers = {id(node): number for number, node in listed}
        places = [numbers.get(id(node), -1) for node in again]
        if min(places) < 0:
            return False
        graph.key = graph.key, tuple(places)
        graph.roots = [*{id(node): node for node in (*again, *graph.roots)}.values()]
    return True


def compute(graph: SmallGraph, live: Any) -> bool:
    """Compute the root of a small graph by its plan, if that is known."""
    if entries(carried.GRADIENTS) and not direct.is_one_gradient(graph.roots[0], graph.order()):
        return False
    is_beside = not is_alone(graph, live)
    if is_beside and not with_carried(graph, live):
        return False
    known = KNOWN.get(graph.key)
    plan = None if known is None else known.plan()
    if known is None or plan is None or not PLANS.touch(plan):
        return False
    found, roots = graph.buffers, graph.roots
    buffers = [found[number] for number in known.buffers]
    scalars = [graph.scalars[number].value for number in known.scalars] if graph.scalars else ()
    whole = direct.whole_of(roots[0])
    if not (scalars or (graph.inner and whole is None)) and len(roots) == 1:
        direct.note(roots[0], buffers, plan)
    made = plan.launch(buffers, scalars, user_line())
    if whole is not None:
        carried.GRADIENTS.pop(whole, None)
    for root, number in zip(roots, known.results):
        root.realized = made[number]
    if is_beside:
        note_beside(graph, live)
    elif graph.inner or len(carried.NEW) == 1:  # of the others all are gone
        carried.NEW.clear()
    else:
        carried.NEW.pop(id(roots[0]), None)
    for root in roots:
        tensor = live.get(id(root))
        if tensor is not None:
            tensor.settle()
    return True


def note_beside(graph: SmallGraph, live: Any) -> None:
    """Remember what lives on beside a graph that was computed, and let go the past of the rest."""
    order = graph.order()
    computed = set(order)
    leaves = [node for node in graph.nodes if node not in computed]
    found = GraphKey(NO_KEY, order, leaves, [], [], {id(node): 0 for node in order})
    carried.cut_past(found, graph.roots[:-1])
    carried.note(found, live)


def is_alone(graph: SmallGraph, live: Any) -> bool:
    """Tell whether a graph stores all of it that a live tensor holds or reads."""
    root, passed = graph.roots[0], entries(carried.PASSED)
    if passed and weakref.ref(root) in passed:
        return False
    if not graph.inner:
        return True
    if passed or carried.LINES or entries(carried.WAITING):
        return False
    reference_of = live.data.get
    for node in graph.inner:
        reference = reference_of(id(node))
        if reference is not None and reference() is not None:
            return False
    return all(key == id(root) or live.get(key) is None for key in carried.NEW)


def note(graph: SmallGraph, roots: Sequence[Node], found: GraphKey, plan: Any) -> None:
    """Remember the plan of a small graph, which was found for its roots in some order."""
    if type(plan) is not CompiledPlan or {*map(id, roots)} != {*map(id, graph.roots)}:
        return
    if len(KNOWN) >= KNOWN_LIMIT:
        KNOWN.clear()
    KNOWN[graph.key] = Known(
        weakref.ref(plan),
        places_in(graph.buffers, [found.buffers[number] for number in plan.input_numbers]),
        places_in(graph.scalars, [found.scalars[number] for number in plan.scalar_numbers]),
        places_in(roots, graph.roots),
    )


def places_in(listed: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """Find where objects are in a list; None for one that is not."""
    numbers = {id(each): number for number, each in enumerate(listed)}
    return [numbers.get(id(each)) for each in wanted]
