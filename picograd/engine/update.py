"""Updates: what a step of an optimizer writes, told by its formulas instead of by nodes.

A step writes every parameter and its state, a node each for the new value and for the write. Nobody
sees these: a step is computed at once. So it is told by its folded formulas, and by which of their
inputs it writes:

    Update(formula of x and g, targets (0,), [x])      x = result 0 of the formula

What finds the plan is the key of the formulas and of what is computed beside them. Where that is
new, the nodes are made, the plan is found as for any graph, and remembered here with the places of
what it takes. With PICOGRAD_VERIFY they are made each time, and must ask for the same.
"""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from picograd.buffer import Buffer, Overwritten, Storage
from picograd.config import config
from picograd.engine import realize
from picograd.engine.debug import user_line
from picograd.engine.executable import CompiledPlan, scalar_values
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import GraphKey, Key, graph_key
from picograd.engine.small import places_in
from picograd.errors import check
from picograd.graph.build import assign
from picograd.graph.formula import Formula, results_of
from picograd.graph.node import Node

KNOWN_LIMIT = 64


@dataclass(slots=True)
class Update:
    """A folded formula, which of its inputs get its results, and the tensors whose they are."""

    whole: Node
    targets: tuple[int, ...]
    tensors: list[Any]

    def written(self) -> Iterator[Node]:
        """List the leaves whose memory is written."""
        inputs = self.whole.inputs
        return (inputs[place] for place in self.targets)

    def writes(self) -> list[Node]:
        """Make the nodes of the writes."""
        return [*map(assign, self.written(), results_of(self.whole))]

    def pairs(self) -> list[tuple[Any, Node]]:
        """List the tensors with their new values."""
        return list(zip(self.tensors, results_of(self.whole)))

    def can_write(self) -> bool:
        """Tell whether each tensor has memory of its own, for values as they are."""
        formula: Formula = self.whole.arg
        kinds = [(leaf.shape, leaf.dtype) for leaf in self.written()]
        is_alike = kinds == list(formula.kinds)
        return is_alike and all(map(has_own_memory, self.tensors, self.written()))


@dataclass(slots=True)
class Known:
    """A plan, the key that found it, and where it takes its buffers and scalars from, in order."""

    plan: "weakref.ref[CompiledPlan]"
    key: Key
    buffers: list[int]
    scalars: list[int]


KNOWN: dict[Any, Known] = {}


def has_own_memory(tensor: Any, leaf: Node) -> bool:
    """Tell whether a tensor is a leaf of memory that no view shows and no write waits for."""
    if tensor._node is not leaf or leaf.op != "buffer" or leaf.realized is not None:
        return False
    if tensor._views is not None:
        tensor._views = [each for each in tensor._views if each() is not None] or None
    if tensor._view is not None or tensor._views is not None or type(leaf.arg) is not Storage:
        return False
    return not tensor._tracks or (leaf.leaf is not None and leaf.leaf() is tensor)


def run(updates: Sequence[Update], roots: Sequence[Node], found: GraphKey) -> list[Buffer]:
    """Compute roots with updates, of which the key was found: a buffer a root, a buffer a write."""
    named = [(found.numbers[id(each.whole)], each.targets) for each in updates]
    key = found.key, tuple(named), config.epoch
    known = KNOWN.get(key)
    plan = None if known is None else known.plan()
    if known is None or plan is None or not PLANS.touch(plan):
        return run_anew(updates, roots, found, key)
    if config.verify:
        check_known(known, updates, roots, found)
    buffers = [found.buffers[number] for number in known.buffers]
    scalars = [found.scalars[number].value for number in known.scalars]
    return plan.launch(buffers, scalars, user_line())


def with_writes(updates: Sequence[Update], roots: Sequence[Node]) -> list[Node]:
    """Add the nodes of all writes to roots."""
    return [*roots, *(node for each in updates for node in each.writes())]


def run_anew(
    updates: Sequence[Update], roots: Sequence[Node], found: GraphKey, key: Any
) -> list[Buffer]:
    """Find or make the plan by the nodes of the writes, and remember it."""
    together = with_writes(updates, roots)
    full = graph_key(together)
    plan = realize.find_plan(full, together)
    if type(plan) is CompiledPlan:
        if len(KNOWN) >= KNOWN_LIMIT:
            KNOWN.clear()
        buffers = [full.buffers[number] for number in plan.input_numbers]
        scalars = [full.scalars[number] for number in plan.scalar_numbers]
        places = places_in(found.buffers, buffers), places_in(found.scalars, scalars)
        KNOWN[key] = Known(weakref.ref(plan), full.key, *places)
    return plan.run(full.buffers, scalar_values(full.scalars), user_line())


def check_known(
    known: Known, updates: Sequence[Update], roots: Sequence[Node], found: GraphKey
) -> None:
    """Check that the nodes of the writes ask for the same plan on the same memory."""
    full = graph_key(with_writes(updates, roots))
    plan: Any = known.plan()
    check(full.key == known.key, "an update took the plan of another graph")
    for listed, places, numbers, mine in (
        (full.buffers, known.buffers, plan.input_numbers, found.buffers),
        (full.scalars, known.scalars, plan.scalar_numbers, found.scalars),
    ):
        pairs = zip(places, numbers, strict=True)
        same = all(mine[place] is listed[number] for place, number in pairs)  # type: ignore[index]
        check(same, "an update took other memory than its writes")


def settle(updates: Sequence[Update], buffers: Sequence[Buffer], live: Any) -> None:
    """Give the tensors the next version of their memory; older graphs name what is gone."""
    number = 0
    for each in updates:
        for tensor in each.tensors:
            older = tensor._node
            storage: Storage = older.arg
            older.arg = Overwritten(storage, storage.version)
            storage.version += 1
            storage.buffer = buffers[number]
            number += 1
            leaf = Node("buffer", (), storage, older.shape, older.dtype, older.device)
            leaf.leaf = weakref.ref(tensor)
            tensor._node, tensor._history = leaf, None
            live.move(id(older), id(leaf), tensor)
