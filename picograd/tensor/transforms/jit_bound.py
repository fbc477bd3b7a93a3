"""Plans for many sizes, bound to the numbers of a call by code: no graph is copied.

The graph of a trace is copied once more, with traced numbers for the sizes, and a plan that served
it is bound to that copy (`picograd/engine/binding.py`). All that the binding compares is a guard,
all that it gives is computed of the sizes; so both are evaluated for the sizes of another call.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from picograd.config import config
from picograd.engine.binding import Binding
from picograd.engine.sizes import BoundedPlan, Family, bind_traced, rebound
from picograd.graph.node import Node
from picograd.traced_number import Numbers, Program, TracedNumber, program

FILLED = ("inputs", "scalars", "outputs", "written")  # what depends on sizes

Copy = Callable[[Sequence[Any]], tuple[list[Node], dict[int, int]]]


class BoundSizes:
    """How a plan is bound to the numbers of a call: `slots` of a trace are the arguments.

    It does not keep the plan, whose code may be unloaded.
    """

    binding: Binding
    family: Family

    def __init__(
        self, plan: BoundedPlan, slots: Sequence[int], numbers: Numbers, bound: Any
    ) -> None:
        known: Any = plan  # found by a family
        self.binding, self.family, self.nbytes = known.binding, known.family, plan.nbytes
        self.slots, self.bound = slots, bound
        self.program: Program = program(numbers, wanted_slots(bound))

    def is_alive(self) -> bool:
        """Tell whether the plan is still there, for the present settings."""
        return self.binding.plan() is not None and self.binding.epoch == config.epoch

    def find(self, values: Sequence[Any]) -> BoundedPlan | None:
        """Bind the plan to the numbers of a call; None where a guard does not hold."""
        found = self.program.run([values[slot] for slot in self.slots])
        if not isinstance(found, list):
            return None
        return rebound(self.family, self.binding, filled(self.bound, found), self.nbytes)


def bound_sizes(
    plan: BoundedPlan,
    slots: Sequence[int],
    values: Sequence[Any],
    copy: Copy,
    inputs: Sequence[Any],
) -> BoundSizes | None:
    """Bind a plan to a copy of the graph at traced sizes; None where that cannot be."""
    numbers = Numbers([values[slot] for slot in slots], lambda: "")
    numbers.has_sizes = True
    given = list(values)
    for at, slot in enumerate(slots):
        given[slot] = numbers.argument(at)
    try:
        roots, places = copy(given)
        bound = bind_traced(plan, roots, inputs, places)
        return None if bound is None else BoundSizes(plan, slots, numbers, bound)
    finally:
        numbers.close()


def wanted_slots(part: Any) -> list[int]:
    """List the slots of the traced numbers in what a plan is bound to."""
    if type(part) is TracedNumber:
        return [part.slot]
    if isinstance(part, (tuple, list)):
        return [slot for each in part for slot in wanted_slots(each)]
    if hasattr(part, "inputs"):
        return wanted_slots([getattr(part, name) for name in FILLED])
    return []


def filled(part: Any, slots: Sequence[Any]) -> Any:
    """Give what a plan is bound to, with the numbers of a call."""
    if type(part) is TracedNumber:
        return slots[part.slot]
    if isinstance(part, (tuple, list)):
        return type(part)([filled(each, slots) for each in part])
    if hasattr(part, "inputs"):
        changed = {}
        for name in FILLED:
            changed[name] = filled(getattr(part, name), slots)
        return replace(part, **changed)
    return part
