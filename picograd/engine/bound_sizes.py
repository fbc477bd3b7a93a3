"""Plans for many sizes, bound to the numbers of a call by code: no graph is copied.

The graph of a call is copied, with traced numbers for the sizes, and a plan that served it is bound
to that copy (`picograd/engine/binding.py`). All that the binding compares is a guard,
all that it gives is computed of the sizes; so both are evaluated for the sizes of another call.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.config import config
from picograd.engine.binding import Bound
from picograd.engine.sizes import BoundedPlan, bind_traced, rebound
from picograd.graph.node import Node
from picograd.traced_number import Numbers, Program, TracedNumber, program

FILLED = ("inputs", "scalars", "outputs", "written")  # what depends on sizes

Copy = Callable[[Sequence[Any]], tuple[list[Node], dict[int, int]]]


class BoundSizes:
    """How a plan is bound to the numbers of a call: those in `slots` are the arguments.

    It does not keep the plan, whose code may be unloaded.
    """

    def __init__(
        self, plan: BoundedPlan, slots: Sequence[int], numbers: Numbers, bound: Any
    ) -> None:
        known: Any = plan  # found by a family
        self.binding, self.family, self.nbytes = known.binding, known.family, plan.nbytes
        self.slots, self.assigned = slots, bound.assigned
        self.program: Program = program(numbers, wanted_slots(bound))
        self.filled = filling(bound)

    def is_alive(self) -> bool:
        """Tell whether the plan is still there, for the present settings."""
        return self.binding.plan() is not None and self.binding.epoch == config.epoch

    def find(self, values: Sequence[Any]) -> BoundedPlan | None:
        """Bind the plan to the numbers of a call; None where a guard does not hold."""
        found = self.program.run([values[slot] for slot in self.slots])
        if not isinstance(found, list):
            return None
        inputs, scalars, outputs, written = self.filled(found)
        bound = Bound(inputs, scalars, outputs, written, self.assigned)
        return rebound(self.family, self.binding, bound, self.nbytes)


def bound_sizes(
    plan: BoundedPlan,
    slots: Sequence[int],
    values: Sequence[Any],
    copy: Copy,
    inputs: Sequence[Any],
    is_near: bool = False,
) -> BoundSizes | None:
    """Bind a plan to a copy of the graph at traced sizes; None where that cannot be.

    With `is_near` it has to be one for sizes near those of the call.
    """
    numbers = Numbers([values[slot] for slot in slots], lambda: "")
    numbers.has_sizes = True
    given = list(values)
    for at, slot in enumerate(slots):
        given[slot] = numbers.argument(at)
    try:
        roots, places = copy(given)
        bound = bind_traced(plan, roots, inputs, places, is_near)
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


def filling(bound: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """Make the function that gives what depends on sizes, by the slots of a call's numbers."""
    constants: list[Any] = []

    def text(part: Any) -> str:
        if type(part) is TracedNumber:
            return f"slots[{part.slot}]"
        if wanted_slots(part):
            inside = "".join([f"{text(each)}, " for each in part])
            return f"({inside})" if isinstance(part, tuple) else f"[{inside}]"
        constants.append(part)
        return f"constants[{len(constants) - 1}]"

    wanted = [text(getattr(bound, name)) for name in FILLED]
    return eval(f"lambda slots: [{', '.join(wanted)}]", {"constants": constants})
