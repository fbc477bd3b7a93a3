"""Steps of an optimizer that were computed before: what they take is known without a walk.

`backward` has told all of a graph from its loss down, by one key (graph/gradient_formula.py). What
an optimizer makes of the gradients is told by formulas (engine/update.py). So a step is told by

    the known gradients        each node from the loss down, and the formula of the gradients
    the updates                formulas, and which of their inputs are gradients, which memory
    which memory is the same   of the ends of the graph, and of what the updates read
    what waits                 where tensors that were not computed stand in the graph
    the rest, node by node     gradients that were changed, statistics and checks beside the loss

All else follows from these: the order, who reads what is written, the plan, and what it takes. What
is otherwise - a graph of two losses, ends that are not in memory, values carried on - is walked
(engine/quick.py), as is a step that is new. With VERIFY all are, and must find what was
foreseen.
"""

import weakref
from collections.abc import Sequence
from itertools import count
from typing import Any

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.config import config
from picograd.engine import carried, realize, update
from picograd.engine.carried import INPUTS, REALIZED, entries, readers_among
from picograd.engine.debug import user_place
from picograd.engine.executable import CompiledPlan
from picograd.engine.followed import EVENTS, Taken
from picograd.engine.live import LiveTable
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import NO_KEY, GraphKey, leaf_buffer
from picograd.engine.small import SmallGraph, places_in
from picograd.engine.update import Update
from picograd.errors import check
from picograd.graph.gradient_formula import BLOCKS, Placed
from picograd.graph.node import RESULT, Node
from picograd.graph.row import MEMORY, WRITES
from picograd.late_methods import dataclass
from picograd.number import GIVEN

KNOWN_LIMIT = 64
BESIDE_LIMIT = 4096  # nodes that are looked at one by one
NEAR = 8  # nodes above each gradient that was changed: there are formulas soon
HELD, CHANGED = -1, -2  # numbers of inputs that are no gradients as they were recorded


@dataclass(slots=True)
class Step:
    """A key, and what the step's plan may take, in the order of the key."""

    key: Any
    buffers: list[Any]
    scalars: list[Any]
    nodes: list[Node]  # what is computed: of the graph, the gradients, and what is beside


@dataclass(slots=True)
class Known:
    """A plan, where in a step it takes its buffers and scalars from, and its roots."""

    plan: "weakref.ref[CompiledPlan]"
    buffers: list[int]
    scalars: list[int]
    roots: list[int]


KNOWN: dict[Any, Known] = {}


def step_of(updates: Sequence[Update], beside: Sequence[Node], live: LiveTable) -> Step | None:
    """Find the key of a step that computes some nodes beside; None where a walk must tell."""
    if not entries(BLOCKS):
        return None
    step = Step([config.epoch], [], [], [])
    gradients: list[Node] = []
    changed: list[Node] = []
    for each in updates:
        read = read_by(each, step.buffers, gradients, changed)
        step.key += each.kind, each.whole.arg, each.targets, read
    wholes, kinds = wholes_below(gradients, changed), {node.op for node in gradients}
    if not wholes or len(kinds) > 1 or not all(add_known(step, whole) for whole in wholes):
        return None
    step.key += kinds
    step.nodes += gradients
    graph = SmallGraph((), BESIDE_LIMIT)  # of the rest: what is told already has places below 0
    places = graph.places
    places.update(zip(map(id, step.nodes), count(-1, -1)))
    if len(places) != len(step.nodes) or is_carried(step.nodes):
        return None
    carried.let_go_all([*live.waiting], live)
    pending = live.pending()
    met = {*map(id, beside), *map(id, changed)}
    others = [node for node in pending if id(node) not in places and id(node) not in met]
    rest = [*changed, *beside, *readers_of(others, updates, beside, step.nodes)]
    if rest and not add_rest(step, graph, rest):
        return None
    if not carried.are_started(step.nodes):
        return None
    waits = [places[id(node)] for node in pending if id(node) in places]
    step.key += sharing(step.buffers), sharing(step.scalars), len(beside), tuple(waits)
    step.key = tuple(step.key)
    return step


def add_known(step: Step, whole: Node) -> bool:
    """Add the graph of known gradients, down to its ends; False if it has changed meanwhile."""
    placed = BLOCKS.get(whole)
    ends = None if placed is None else ends_of(placed, step)
    if placed is None or ends is None:
        return False
    step.key += placed.block, ends
    step.scalars += placed.given
    step.scalars += [whole.inputs[at].arg for at in placed.block.numbers]
    step.nodes += [*placed.inner, *[placed.order[at] for at in placed.block.outside], whole]
    return True


def add_rest(step: Step, graph: SmallGraph, rest: Sequence[Node]) -> bool:
    """Add nodes over what is told, one by one; False if they are not of the usual kind."""
    roots = list(dict.fromkeys(rest))
    if not graph.places.keys().isdisjoint(map(id, roots)):
        return False
    if not graph.add(roots) or is_carried(graph.nodes):
        return False
    if any(map(REALIZED, graph.nodes)):
        return False
    step.key.append(graph.key)
    step.buffers += graph.buffers
    step.scalars += graph.scalars
    step.nodes += graph.nodes
    return True


def read_by(
    each: Update, buffers: list[Any], gradients: list[Node], changed: list[Node]
) -> tuple[int, ...]:
    """Note what an update reads, and number it: memory, gradients, what was made of gradients."""
    read: list[int] = []
    for node in each.whole.inputs:
        if type(node.arg) is Storage:
            buffers.append(node.arg.buffer)
            read.append(HELD)
            continue
        number = number_of(node)
        read.append(number)
        (changed if number == CHANGED else gradients).append(node)
    return tuple(read)


def number_of(node: Node) -> int:
    """Tell which result of a formula a node is of, cut off from gradients or otherwise made."""
    is_plain = len(node.inputs) == 1 and node.arg is None and node.realized is None
    below = node.inputs[0] if is_plain else node
    is_result = below is not node and below.op == RESULT and below.realized is None
    return below.arg if is_result and below.shape == node.shape else CHANGED


def wholes_below(gradients: Sequence[Node], changed: Sequence[Node]) -> list[Node]:
    """List the formulas whose results gradients are, or what others were made of."""
    found = dict.fromkeys([node.inputs[0].inputs[0] for node in gradients])
    near, seen = [*changed], set(changed)
    for node in near:  # which grows
        if node.op == RESULT:
            found[node.inputs[0]] = None
        elif node.realized is None and len(near) < NEAR * len(changed):
            below = [each for each in node.inputs if each not in seen]
            seen.update(below)
            near += below
    return list(found)


def ends_of(placed: Placed, step: Step) -> Any:
    """Describe where a graph ends, and note the memory, and what was drawn; None unless the rest is
    to be computed.
    """
    order = placed.order
    found: list[Any] = []
    if any(map(REALIZED, order)) or not all(map(INPUTS, placed.inner)):
        return None
    for at in placed.block.leaves:
        node = order[at]
        if type(node.arg) is Storage:
            step.buffers.append(node.arg.buffer)
        elif node.inputs or node.op in MEMORY:
            return None
        elif type(node.arg) is RuntimeScalar:
            step.scalars.append(node.arg)
            found.append(RuntimeScalar)
        elif type(node.arg) not in GIVEN:  # those are among the numbers
            found.append((node.op, type(node.arg), node.arg))
    is_whole = all(order[at].inputs for at in placed.block.outside)
    return tuple(found) if is_whole else None


def is_carried(order: Sequence[Node]) -> bool:
    """Tell whether values that an earlier computation could have stored are among some nodes."""
    if not entries(carried.PASSED):
        return False
    return not set(map(id, carried.nodes_of(carried.PASSED))).isdisjoint(map(id, order))


def readers_of(
    waiting: Sequence[Node], updates: Sequence[Update], beside: Sequence[Node],
    nodes: Sequence[Node],
) -> list[Node]:  # fmt: skip
    """List the nodes that wait elsewhere and read what is about to be written, or what is told."""
    if not waiting:
        return []
    written = {leaf for each in updates for leaf in each.written()}
    written.update([each.inputs[0] for each in beside if each.op in WRITES])
    buffers = {id(leaf_buffer(leaf)) for leaf in written} - {id(None)}
    told = set(nodes)
    return readers_among(waiting, told | written, buffers, told)


def sharing(held: Sequence[Any]) -> Any:
    """Tell which objects of a list are the same: their number if none are."""
    numbers: dict[int, int] = {}
    pattern = [numbers.setdefault(id(each), len(numbers)) for each in held]
    return len(held) if len(numbers) == len(held) else tuple(pattern)


def compute(step: Step, updates: Sequence[Update], live: Any) -> list[Node] | None:
    """Compute a step whose plan is known, and give its roots; None if it is not."""
    known = KNOWN.get(step.key)
    plan = None if known is None else known.plan()
    if known is None or plan is None:
        return None
    roots = [step.nodes[place] for place in known.roots]
    buffers = [step.buffers[number] for number in known.buffers]
    numbers_taken = [step.scalars[number] for number in known.scalars]
    if EVENTS.learning is not None:
        EVENTS.learning.close(Taken(plan, buffers, numbers_taken, roots), updates)
    if config.verify or not PLANS.touch(plan):
        return None
    made = plan.launch(buffers, [each.value for each in numbers_taken], user_place())
    realize.settle(roots, made[: len(roots)])
    update.settle(updates, made[len(roots) :], live)
    numbers = dict.fromkeys(map(id, step.nodes), 0)
    carried.note(GraphKey(NO_KEY, step.nodes, [], [], [], numbers), live)
    return roots


def note(
    step: Step, plan: CompiledPlan, buffers: Sequence[Buffer], scalars: Sequence[Any],
    roots: Sequence[Node],
) -> None:  # fmt: skip
    """Remember the plan of a step, what it takes, and the nodes that it computes beside writes."""
    found = Known(
        weakref.ref(plan),
        places_in(step.buffers, buffers),
        places_in(step.scalars, scalars),
        places_in(step.nodes, roots),
    )
    if None in (*found.buffers, *found.scalars, *found.roots):
        return
    known = KNOWN.get(step.key)
    if config.verify and known is not None and known.plan() is plan:
        check(known == found, "a step was foreseen otherwise than it was found")
    if len(KNOWN) >= KNOWN_LIMIT:
        KNOWN.clear()
    KNOWN[step.key] = found
