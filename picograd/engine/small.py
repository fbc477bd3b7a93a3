"""Small graphs that were seen before: what an eager operation records finds its plan in one look.

One node over memory, or a layer or a few, asked for while no write waits: then most of what
`pending.compute` looks for cannot be there. The key is made from the roots down, without the walk
that larger graphs need; a table leads from it to the plan, which the cache of plans owns. What is
carried from one computation to the next (carried.py) is a root as well.
"""

import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from picograd.buffer import Buffer, Overwritten
from picograd.config import config
from picograd.engine import carried
from picograd.engine.carried import entries
from picograd.engine.debug import user_place
from picograd.engine.executable import CompiledPlan, Runnable
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import Native
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import NO_KEY, GraphKey, name_of, name_start
from picograd.engine.realize import settle
from picograd.engine.sizes import BoundedPlan
from picograd.engine.watch import PROFILES
from picograd.graph.composites import NO_GRADIENT, CustomGradient
from picograd.graph.node import Node
from picograd.graph.row import MEMORY, NUMBERS, SCALARS, WRITES
from picograd.graph.starts import MOVING, placed, starts_of
from picograd.late_methods import dataclass
from picograd.number import GIVEN

LIMIT = 64  # nodes, leaves among them
HOPS = 8  # views of views that may wait; a longer chain is stored, or it would grow for ever
KNOWN_LIMIT = 4096
MANY = 8  # nodes below what is asked for, from which on it pays to follow what records them


class SmallGraph:
    """This class is what a graph is found by: a key, with the epoch of settings, and what the plan
    reads, in the order of the key.
    """

    __slots__ = (
        "asked", "buffers", "inner", "key", "met", "nodes", "places", "roots", "scalars", "tops",
    )  # fmt: skip

    def __init__(self) -> None:
        self.key: Any = (config.epoch,)
        self.asked = 0  # how many of the roots were, the last ones
        self.roots: list[Node] = []
        self.tops: list[Node] = []  # what `add` was given, in order
        self.nodes: list[Node] = []
        self.places: dict[int, Any] = {}
        self.buffers: list[Buffer] = []
        self.scalars: list[Any] = []
        self.inner: list[Node] = []  # what is computed below these
        self.met: list[Node] = []  # formulas of gradients that wait for this graph

    def order(self) -> list[Node]:
        """List what it computes, the last of the roots last."""
        return [*self.inner[::-1], *self.tops]

    def add(self, tops: Sequence[Node]) -> bool:
        """Add roots, and what is under them; False where that is larger, or not of this kind."""
        places, key, first = self.places, list(self.key), len(self.nodes)
        nodes = [node for node in tops if id(node) not in places]
        for place, node in enumerate(nodes, first):
            places[id(node)] = place
        if len(places) > 1:
            key += "roots", *[places[id(node)] for node in tops]
        count = len(nodes)
        for place, node in enumerate(nodes):
            held, inputs = node.realized, node.inputs
            if held is None and inputs:
                op, arg = node.op, node.arg
                arg = NO_GRADIENT if type(arg) is CustomGradient else arg
                if type(node) is not Node or first + len(nodes) > LIMIT:
                    return False
                if op in WRITES and place >= count:  # what waits to be written is a root
                    return False
                read = []
                for child in inputs:
                    number = places.get(id(child))
                    if number is None:
                        number = places[id(child)] = first + len(nodes)
                        nodes.append(child)
                    read.append(number)
                if place >= count:
                    self.inner.append(node)
                if op in MOVING and starts_of(node):
                    arg = placed(node, partial(name_start, self.scalars, places))
                key += op, tuple(read), arg, node.shape, node.dtype, node.device
                continue
            if type(node.arg) is Overwritten:  # the long way says what is gone
                return False
            key += self.leaf_row(node)
        self.key = tuple(key)
        self.nodes += nodes
        self.tops += tops
        self.put_first(tops)
        return True

    def leaf_row(self, node: Node) -> tuple[Any, ...]:
        """Describe a leaf, or a value that was computed."""
        held = node.arg.buffer if node.realized is None and node.op in MEMORY else node.realized
        if held is None:
            return self.number_row(node)
        return name_of(self.buffers, self.places, held), node.shape, node.dtype, node.device

    def number_row(self, node: Node) -> tuple[Any, ...]:
        """Describe a leaf without memory: a number that may be another the next time, or one that
        is part of the plan.
        """
        kind = node.shape, node.dtype, node.device
        if node.op in SCALARS or (node.op in NUMBERS and type(node.arg) in GIVEN):
            return "scalar", name_of(self.scalars, self.places, node.arg), *kind
        if node.op in NUMBERS:  # 1, 1.0, True, -0.0 and nan are apart
            return node.op, type(node.arg), repr(node.arg), *kind
        return node.op, node.arg, *kind

    def put_first(self, nodes: Sequence[Node]) -> None:
        """Make roots of nodes, before those that are."""
        self.roots = [*dict.fromkeys((*nodes, *self.roots))] if self.roots else [*nodes]


@dataclass(slots=True)
class Known:
    """A plan, where in a small graph the buffers and scalars are that it takes, and the roots'
    places among its results.
    """

    plan: "weakref.ref[Runnable]"
    buffers: list[int]
    scalars: list[int]
    results: list[int]
    native: Native


KNOWN: dict[Any, Known] = {}


def small_graph(*roots: Node) -> SmallGraph | None:
    """Find the key of a small graph; None for what is larger, or not of this kind."""
    graph, distinct = SmallGraph(), {id(node): node for node in roots}
    graph.asked = len(distinct)
    return graph if graph.add([*distinct.values()]) else None


def with_changed(nodes: Sequence[Node], changed: Sequence[Node], live: Any) -> list[Node]:
    """Add to what is asked for the values that tensors without memory were given in place.

    Nothing where that may be no small graph: some of it is computed, or tracks gradients.
    """
    together = [*nodes, *changed]
    if not nodes or not all(map(is_due, together)):
        return []
    if not changed:
        return together
    owners = [live.get(id(node)) for node in together]
    is_tracking = any(each is not None and each.requires_grad for each in owners)
    is_one = len({node.device for node in together}) == 1
    return [] if is_tracking or not is_one else together


def is_due(node: Node) -> bool:
    """Tell whether a node is still to be computed, or made of nothing: a range, or one number."""
    return node.realized is None and (bool(node.inputs) or node.op not in MEMORY)


def with_carried(graph: SmallGraph, live: Any) -> bool:
    """Make roots of what is stored beside what a graph was asked for; False if that is large.

    The key then tells which of the nodes these are.
    """
    order = graph.order()
    asked = graph.roots[-graph.asked :]
    again = [*carried.read_again(order), *carried.read_ahead(order, graph.roots, asked, live)]
    if again:
        known = {*map(id, graph.nodes)}
        beside = [node for node in again if id(node) not in known]
        if beside and not graph.add(beside):
            return False
        numbers = {id(node): number for number, node in enumerate(graph.nodes)}
        graph.key = graph.key, tuple([numbers[id(node)] for node in again])
        graph.put_first(again)
    return True


def with_gradients(graph: SmallGraph) -> bool:
    """Make roots of gradients that wait for a graph, as the long way does; False if it is large."""
    graph.met = carried.met(graph.order())
    gradients = carried.gradients_of(graph.met)
    names = set(map(id, graph.roots))
    return names.issuperset(map(id, gradients)) or graph.add(gradients)


def compute(graph: SmallGraph, live: Any) -> bool:
    """Compute the roots of a small graph by their plan, if that is known."""
    if entries(carried.GRADIENTS) and not with_gradients(graph):
        return False
    is_beside = not is_alone(graph, live)
    if is_beside and not with_carried(graph, live):
        return False
    known = KNOWN.get(graph.key)
    plan: Any = None if known is None else known.plan()
    if known is None or plan is None or not PLANS.may_run(plan):
        return False
    found, roots = graph.buffers, graph.roots
    buffers = [found[number] for number in known.buffers]
    scalars = [graph.scalars[number].value for number in known.scalars] if graph.scalars else ()
    if type(plan) is BoundedPlan:
        made = plan.run(buffers, scalars, user_place())
    elif plan.fills_one and not (config.debug or PROFILES):
        made = [plan.fill(buffers, user_place())]
    else:
        made = plan.launch(buffers, scalars, user_place())
    is_large = is_beside or len(graph.inner) >= MANY  # machine code does the others
    EVENTS.computed = plan if is_large and plan.may_follow else None
    for formula in graph.met:
        carried.GRADIENTS.pop(formula, None)
    settle(roots, [made[number] for number in known.results])
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
    asked = carried.asked_plainly(graph.roots[-graph.asked :], live)
    carried.cut_past(found, graph.roots[: -graph.asked], asked)
    carried.note(found, live)


def is_alone(graph: SmallGraph, live: Any) -> bool:
    """Tell whether a graph stores all of it that a live tensor holds or reads."""
    roots, passed = graph.roots, entries(carried.PASSED)
    if passed and any(weakref.ref(root) in passed for root in roots):
        return False
    if not graph.inner:
        return True
    if entries(carried.WAITING):
        return False
    if passed and any(map(carried.is_pending, carried.nodes_of(carried.PASSED))):
        return False
    reference_of = live.data.get
    for node in graph.inner:
        reference = reference_of(id(node))
        if reference is not None and reference() is not None and not shows_leaf(node):
            return False
    names = set(map(id, roots))
    return all(key in names or live.get(key) is None for key in list(carried.NEW))


def shows_leaf(node: Node) -> bool:
    """Tell whether a node is a view of a leaf: a number costs nothing to compute again."""
    while node.op in carried.FREE and node.realized is None:
        node = node.inputs[0]
    return node.realized is None and not node.inputs


def note(graph: SmallGraph, roots: Sequence[Node], found: GraphKey, plan: Any) -> None:
    """Remember the plan of a small graph, which was found for its roots in some order."""
    if {*map(id, roots)} != {*map(id, graph.roots)}:
        return
    buffers, scalars = found.buffers, found.scalars  # a plan for many sizes takes all
    if type(plan) is CompiledPlan:
        buffers = [buffers[number] for number in plan.input_numbers]
        scalars = [scalars[number] for number in plan.scalar_numbers]
    elif type(plan) is not BoundedPlan:
        return
    PLANS.touch(plan)
    if len(KNOWN) >= KNOWN_LIMIT:
        KNOWN.clear()
    KNOWN[graph.key] = Known(
        weakref.ref(plan),
        places_in(graph.buffers, buffers),
        places_in(graph.scalars, scalars),
        places_in(roots, graph.roots),
        plan.native,
    )


def places_in(listed: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """Find where objects are in a list; None for one that is not."""
    numbers = {id(each): number for number, each in enumerate(listed)}
    return [numbers.get(id(each)) for each in wanted]
