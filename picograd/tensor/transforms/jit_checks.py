"""Checks of a trace that come before its writes: a call that fails leaves everything as it was.

A check is a bool that must be false: an index lies inside its axis, a label is a class. Where the
trace changes what was there before, they are looked at first if they take little: values that are
in memory when the call begins are read there, and what is computed of such values by a few cheap
operations has a plan of its own. Other bools are results of the trace's plan (of indices that it
computes by products, of followed sizes), as are those of functions that change nothing, and on a
GPU, where nobody looks before a value is read.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from picograd.buffer import Buffer
from picograd.engine.executable import Runnable
from picograd.engine.foreign import seen_through
from picograd.engine.plan_key import GraphKey, graph_key, leaf_buffer
from picograd.engine.realize import buffer_view, check_later, find_plan, flat_view
from picograd.errors import PicogradError
from picograd.graph.node import Node, is_cut
from picograd.graph.row import Role
from picograd.late_methods import dataclass
from picograd.target import is_host
from picograd.tensor.core.known_values import below_views

# a bool, its error; the node that is checked, and what raises for wrong values of it, or None
Check = tuple[Node, PicogradError, Node | None, Callable[[Any], None] | None]
CHEAP = {  # roles of ops
    Role.MEMORY, Role.NUMBER, Role.SCALAR, Role.POSITION, Role.DRAW, Role.VIEW, Role.FOLD,
    Role.ELEMENTWISE, Role.REDUCE,
}  # fmt: skip
LENGTH = 64  # nodes of a check that is computed beforehand


@dataclass(slots=True)
class Look:
    """Values in memory to look at: an input of the trace's plan, seen through views."""

    position: int
    shape: tuple[int, ...]
    views: list[Node]
    look: Callable[[Any], None]

    def at(self, inputs: Sequence[Buffer]) -> None:
        """Raise for wrong values."""
        buffer = inputs[self.position]
        if self.views:
            self.look(seen_through(buffer_view(buffer, self.shape), self.views))
        else:
            self.look(flat_view(buffer))


@dataclass(slots=True)
class Early:
    """The checks that come first: what is looked at, and the plan of those that are computed."""

    looks: list[Look] = field(default_factory=list)
    plan: Runnable | None = None
    positions: list[int] = field(default_factory=list)  # of its inputs, among the other plan's
    errors: list[PicogradError] = field(default_factory=list)

    def run(self, inputs: Sequence[Buffer]) -> None:
        """Raise the error of the first check that fails."""
        for each in self.looks:
            each.at(inputs)
        if self.plan is not None:
            results = self.plan.run([inputs[position] for position in self.positions], [])
            for buffer, error in zip(results, self.errors):
                check_later(buffer, error)


def is_early(check: Check, known: set[int]) -> bool:
    """Tell whether a check takes little, of buffers that the trace's plan reads too."""
    failed = check[0]
    if not is_host(failed.device):
        return False
    found = graph_key([failed])
    roles = {node.row.role for node in found.order if node.realized is None}
    is_cheap = len(found.order) <= LENGTH and roles <= CHEAP
    return is_cheap and not found.scalars and known.issuperset(map(id, found.buffers))


def early_checks(checks: Sequence[Check], found: GraphKey) -> Early | None:
    """Say how to look at checks that come first, if there are some."""
    if not checks:
        return None
    early, roots = Early(), []
    numbers = {id(buffer): number for number, buffer in enumerate(found.buffers)}
    for failed, error, checked, look in checks:
        source, views = (failed, []) if checked is None else below_views(checked)
        buffer = leaf_buffer(source)
        if buffer is None or look is None or source.dtype.is_narrow_float:
            roots.append(failed)
            early.errors.append(error)
        else:
            kept = views if any(map(is_cut, views)) else []
            early.looks.append(Look(numbers[id(buffer)], source.shape, kept, look))
    if roots:
        own = graph_key(roots)
        early.plan = find_plan(own, roots)
        early.positions = [numbers[id(buffer)] for buffer in own.buffers]
    return early
