"""One operation over memory, done before: `a + b` of computed tensors finds its plan as it stands.

What the plan of an operation depends on is the operation and what its inputs look like, so the key
is written down without a walk. Only plans of one stretch of launches that fill one new buffer and
take no numbers are known here; small.py finds the others, and is asked first whether a graph may
be computed alone. `note` is told of what it found: so a plan is the same both ways.
"""

import weakref
from dataclasses import dataclass
from typing import Any

from picograd.buffer import Buffer
from picograd.config import config
from picograd.engine import carried
from picograd.engine.carried import entries
from picograd.engine.debug import user_line
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.watch import PROFILES
from picograd.graph.node import Node

KNOWN_LIMIT = 1024


@dataclass(slots=True)
class Direct:
    """A plan; `is_turned`: it takes the second input first."""

    plan: "weakref.ref[CompiledPlan]"
    is_turned: bool


KNOWN: dict[Any, Direct] = {}


def key_of(root: Node, held: list[Buffer]) -> Any:
    """Describe an operation over memory: all that its plan depends on."""
    key = config.epoch, root.op, root.arg, root.shape, root.dtype, root.device
    first = root.inputs[0]
    if len(held) == 1:
        return *key, first.shape, first.dtype, first.device
    second = root.inputs[1]
    return *key, first.shape, first.dtype, second.shape, second.dtype, held[0] is held[1]


def memory_below(root: Node) -> list[Buffer] | None:
    """Give the memory that an operation of one or two inputs reads; None for any other."""
    if type(root) is not Node or len(root.inputs) > 2:
        return None
    held = []
    for node in root.inputs:
        buffer = leaf_buffer(node)
        if buffer is None:
            return None
        held.append(buffer)
    return held


def compute(root: Node, live: Any) -> bool:
    """Compute an operation over memory if its plan is known; the caller sees that it is alone."""
    held = memory_below(root)
    known = None if held is None else KNOWN.get(key_of(root, held))
    plan = None if known is None else known.plan()
    if plan is None or known is None or held is None or config.debug or PROFILES:
        return False
    passed = entries(carried.PASSED)
    if (passed and weakref.ref(root) in passed) or not PLANS.touch(plan):
        return False
    if len(held) == 2 and held[0] is held[1]:
        del held[1]
    elif known.is_turned:
        held.reverse()
    root.realized = plan.fill(held, user_line())
    carried.NEW.pop(id(root), None)
    tensor = live.get(id(root))
    if tensor is not None:
        tensor.settle()
    return True


def note(root: Node, buffers: list[Buffer], plan: CompiledPlan) -> None:
    """Remember the plan of an operation; `buffers` are what it reads, in the order it takes."""
    held = memory_below(root)
    if not held or not plan.fills_one or len(buffers) != len({*map(id, held)}):
        return
    if len(KNOWN) >= KNOWN_LIMIT:
        KNOWN.clear()
    KNOWN[key_of(root, held)] = Direct(weakref.ref(plan), buffers[0] is not held[0])
