"""Plans of graphs with updates, which are told in larger parts than nodes.

What an optimizer writes is told by formulas (engine/update.py), so the key has two kinds of rows:

    op, inputs, arg ...        a node
    kind, inputs, formula ...  an update, with the memory that it reads

Where such a key is new, all nodes are looked at, the plan is found as for any graph, and remembered
here with the places of what it takes. With VERIFY that is done each time, and both must
ask for the same. A key that is new only in sizes takes a plan that is bound to sizes by code
(engine/size_patterns.py): which numbers they are is remembered for these keys, too.
"""

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.config import config
from picograd.engine import realize, size_patterns
from picograd.engine.debug import user_place
from picograd.engine.executable import CompiledPlan, Runnable, scalar_values
from picograd.engine.followed import EVENTS, Taken, check_expected
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import GraphKey, add_rows, graph_key, walk_pending, with_key
from picograd.engine.size_patterns import Learnt
from picograd.engine.sizes import BoundedPlan
from picograd.engine.small import places_in
from picograd.engine.update import Update
from picograd.errors import check
from picograd.graph.node import Node, Nodes
from picograd.helpers import Key
from picograd.late_methods import dataclass

KNOWN_LIMIT = 64


class Walk:
    """What is under some nodes, inputs first, as `walk_pending` lists it, and updates in it."""

    __slots__ = ("order", "seen", "updates")

    def __init__(self) -> None:
        self.order: list[Node] = []
        self.seen: set[Node] = set()
        self.updates: list[tuple[int, Update]] = []  # where in the order they are

    def add(self, roots: Nodes) -> None:
        """Add what is under some nodes and not yet in the list."""
        walk_pending(roots, self.seen, self.order)

    def add_update(self, update: Update) -> None:
        """Add an update after what its gradients are made of; memory that it reads is left out."""
        whole = update.whole
        self.add([node for node in whole.inputs if held_by(node) is None])
        self.updates.append((len(self.order), update))
        self.order.append(whole)
        self.seen.add(whole)

    def key(self, roots: Nodes) -> GraphKey:
        """Describe the list: a row for each update, and one for each other node."""
        order = self.order
        found = GraphKey(Key(()), order, [], [], [], {})
        rows: list[Any] = []
        numbers, start = found.numbers, 0
        for place, update in self.updates:
            add_rows(order[start:place], start, found, rows)
            rows.append(update_row(update, found))
            numbers[id(update.whole)] = place
            start = place + 1
        add_rows(order[start:] if start else order, start, found, rows)
        if 0 < start < len(order):  # is this read there, or other leaves of the same memory?
            read = [node for _, update in self.updates for node in update.whole.inputs]
            rows.append(tuple([numbers.get(id(node)) for node in read]))
        return with_key(found, rows, roots)


def held_by(node: Node) -> Buffer | None:
    """Give the memory of a leaf of present contents."""
    arg = node.arg
    return arg.buffer if type(arg) is Storage else None


def update_row(update: Update, found: GraphKey) -> tuple[Any, ...]:
    """Describe an update: memory that nothing read before it by numbers below 0."""
    whole, numbers, places, buffers = update.whole, found.numbers, found.places, found.buffers
    read: list[Any] = []
    for node in whole.inputs:
        number: Any = numbers.get(id(node))
        if number is None:
            held: Any = held_by(node)
            place = places.setdefault(id(held), len(buffers))
            number = -1 - place
            if place == len(buffers):
                buffers.append(held)
                numbers[id(node)] = number
            else:
                number = "another leaf", number
        read.append(number)
    return update.kind, tuple(read), whole.arg, whole.device


@dataclass(slots=True)
class Known:
    """A plan, the key that found it, and where it takes its buffers and scalars from, in order.

    It has its own key in `KNOWN`, too: where the same object is looked up, nothing is compared.
    """

    plan: "weakref.ref[Runnable]"
    key: Any
    buffers: list[int]
    scalars: list[int]
    own: Any


@dataclass(slots=True)
class OfSizes:
    """How a plan is bound to the sizes of graphs of one structure, by their keys and by all nodes.

    It takes all buffers and scalars of the nodes: where they are.
    """

    learnt: Learnt
    whole: Learnt
    buffers: list[int]
    scalars: list[int]


KNOWN: "OrderedDict[Any, Known]" = OrderedDict()
OF_SIZES: "OrderedDict[Any, OfSizes]" = OrderedDict()


def run(updates: Sequence[Update], roots: Nodes, found: GraphKey) -> list[Buffer]:
    """Compute roots and updates, of which a `Walk` found the key: a buffer a root, one a write."""
    numbers = found.numbers
    named = tuple([(numbers[id(each.whole)], each.targets) for each in updates])
    key = found.key, named, config.epoch
    known = KNOWN.get(key)
    plan = None if known is None else known.plan()
    if known is None or plan is None or not PLANS.touch(plan):
        known = known_sizes(key, found)
        plan = None if known is None else known.plan()
    if known is None or plan is None or plan.is_worn:
        return run_anew(updates, roots, found, key, plan)
    if config.verify:
        check_known(known, updates, roots, found)
    KNOWN.move_to_end(known.own)
    buffers = [found.buffers[number] for number in known.buffers]
    scalars = [found.scalars[number] for number in known.scalars]
    if not isinstance(plan, CompiledPlan):
        return plan.run(buffers, scalar_values(scalars), user_place())
    if EVENTS.learning is not None:
        EVENTS.learning.close(Taken(plan, buffers, scalars, roots), updates)
    if EVENTS.expected is not None:
        check_expected(plan, buffers, [each.value for each in scalars], roots)
    return plan.launch(buffers, scalar_values(scalars), user_place())


def with_writes(updates: Sequence[Update], roots: Nodes) -> list[Node]:
    """Add the nodes of all writes to roots."""
    return [*roots, *(node for each in updates for node in each.writes())]


def run_anew(
    updates: Sequence[Update], roots: Nodes, found: GraphKey, key: Any, worn: Runnable | None
) -> list[Buffer]:
    """Find or make the plan by the nodes of the writes, and remember it.

    One that is `worn` is for many sizes, and ran so often for these that they get their own.
    """
    together = with_writes(updates, roots)
    full = graph_key(together)
    if isinstance(worn, BoundedPlan):
        PLANS.drop(worn.key)
        PLANS.put((full.key, config.epoch), worn)
    plan = realize.find_plan(full, together)
    note(key, found, full, plan)
    return plan.run(full.buffers, scalar_values(full.scalars), user_place())


def note(key: Any, found: GraphKey, full: GraphKey, plan: Runnable) -> None:
    """Remember a plan, and where a key tells what it takes.

    What a handler of a signal computed since the walk is memory that the walk did not see.
    """
    if isinstance(plan, CompiledPlan):
        buffers = places_in(found.buffers, [full.buffers[at] for at in plan.input_numbers])
        scalars = places_in(found.scalars, [full.scalars[at] for at in plan.scalar_numbers])
        if None not in buffers and None not in scalars:
            keep(KNOWN, key, Known(weakref.ref(plan), full.key, buffers, scalars, key))
        return
    whole = size_patterns.learnt_of(full)
    buffers = places_in(found.buffers, full.buffers)
    scalars = places_in(found.scalars, full.scalars)
    if whole is None or None in buffers or None in scalars:
        return
    variables = whole.variables.moved(full, found)
    if variables is not None:
        learnt = replace(whole, variables=variables)
        keep(OF_SIZES, structure(key, found), OfSizes(learnt, whole, buffers, scalars))


def structure(key: Any, found: GraphKey) -> Any:
    """Key a graph with updates by what stays when its sizes change."""
    return size_patterns.structure(found), key[1:]


def keep(table: "OrderedDict[Any, Any]", key: Any, value: Any) -> None:
    """Remember something, and not too much: what was asked for longest ago goes first."""
    table.pop(key, None)  # an equal key would stay, and be compared with this one each time
    table[key] = value
    if len(table) > KNOWN_LIMIT:
        table.popitem(last=False)


def known_sizes(key: Any, found: GraphKey) -> Known | None:
    """Bind a plan for many sizes to those of a graph, and remember it."""
    if not config.dynamic:
        return None
    kind = structure(key, found)
    of_sizes = OF_SIZES.get(kind)
    if of_sizes is None:
        return None
    learnt = of_sizes.learnt
    plan = learnt.find(found) if learnt.bound.is_alive() else None
    if plan is None:
        return None
    OF_SIZES.move_to_end(kind)
    realize.put_bounded(plan, key, 0)
    known = Known(weakref.ref(plan), of_sizes, of_sizes.buffers, of_sizes.scalars, key)
    keep(KNOWN, key, known)
    return known


def check_known(known: Known, updates: Sequence[Update], roots: Nodes, found: GraphKey) -> None:
    """Check that the nodes of the writes ask for the same plan on the same memory."""
    full = graph_key(with_writes(updates, roots))
    plan: Any = known.plan()
    if isinstance(known.key, OfSizes):
        values = known.key.learnt.variables.read(found)
        is_same = values is not None and values == known.key.whole.variables.read(full)
        taken: Any = range(len(full.buffers)), range(len(full.scalars))
    else:
        is_same, taken = full.key == known.key, (plan.input_numbers, plan.scalar_numbers)
    if not is_same and None in places_in(found.buffers, full.buffers):
        return  # a handler of a signal computed something since the walk
    check(is_same, "an update took the plan of another graph")
    for listed, places, numbers, mine in (
        (full.buffers, known.buffers, taken[0], found.buffers),
        (full.scalars, known.scalars, taken[1], found.scalars),
    ):
        pairs = zip(places, numbers, strict=True)
        same = all(mine[place] is listed[number] for place, number in pairs)  # type: ignore[index]
        check(same, "an update took other memory than its writes")


def by_itself(nodes: Nodes) -> tuple[list[Node], list[Node], Walk]:
    """Give nodes that nothing has to run with."""
    roots, walk = realize.pending_roots(nodes), Walk()
    walk.add(roots)
    return list(nodes), roots, walk
