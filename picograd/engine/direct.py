"""One operation over memory, done before: `a + b` of computed tensors finds its plan as it stands.

So does a gradient that is a formula over memory. What the plan of an operation depends on is the
operation and what its inputs look like, so the key is written down without a walk. Only plans of
one stretch of launches that fill one new buffer and take no numbers are known here; small.py finds
the others, and is asked first whether a graph may be computed alone. `note` is told of what it
found: so a plan is the same both ways. Once a plan has run often, machine code does all of this
(tensor/core/native_direct.py).
"""

import weakref
from typing import Any

from picograd.buffer import Buffer
from picograd.config import config
from picograd.engine import carried, native_calls
from picograd.engine.carried import entries
from picograd.engine.debug import user_line
from picograd.engine.executable import CompiledPlan
from picograd.engine.native_calls import CALLS, Native
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.watch import PROFILES
from picograd.graph.node import RESULT, Node
from picograd.late_methods import dataclass

KNOWN_LIMIT = 1024
MOST_INPUTS = 4


@dataclass(slots=True)
class Direct:
    """A plan, and which of the memory below an operation it takes, in order."""

    plan: "weakref.ref[CompiledPlan]"
    places: tuple[int, ...]
    native: Native


@dataclass(slots=True)
class Coded:
    """`compute`, and what is around it in pending.py, as machine code, once there is some."""

    compute: Any = None


KNOWN: dict[Any, Direct] = {}
CODED = Coded()
native_calls.SLOTS[Direct] = "places", "native"


def whole_of(root: Node) -> Node | None:
    """Find the formula of whose result a node is made alone, as `backward` gives one; else None."""
    below = root.inputs[0] if len(root.inputs) == 1 else root
    return below.inputs[0] if below.op == RESULT and below.realized is None else None


def key_of(root: Node, whole: Node | None, held: list[Buffer]) -> Any:
    """Describe an operation over memory: all that its plan depends on."""
    inputs, formula, number = root.inputs, None, None
    if whole is not None:
        inputs, formula, number = whole.inputs, whole.arg, inputs[0].arg
    first = inputs[0]
    own = config.epoch, root.op, root.arg, formula, number, root.shape, root.dtype, root.device
    if len(held) == 1:
        return *own, first.device, 0, first.shape, first.dtype
    pattern = 0  # which of the memory is the same
    for buffer in held:
        pattern = pattern * MOST_INPUTS + held.index(buffer)
    if len(held) == 2:
        second = inputs[1]
        facts: Any = first.shape, first.dtype, second.shape, second.dtype
    else:
        facts = [fact for node in inputs for fact in (node.shape, node.dtype)]
    return *own, first.device, pattern, *facts


def memory_below(inputs: tuple[Node, ...]) -> list[Buffer] | None:
    """Give the memory that few nodes are; None if one is something else."""
    held = []
    for node in inputs:
        buffer = leaf_buffer(node)
        if buffer is None:
            return None
        held.append(buffer)
    return held if 0 < len(held) <= MOST_INPUTS else None


def is_alone(root: Node, whole: Node, live: Any) -> bool:
    """Tell whether nothing that is alive, and new, may read what a formula computes on the way.

    Nor is there another gradient of it, which would be stored beside.
    """
    if entries(carried.WAITING) or len(carried.GRADIENTS.get(whole, ())) > 1:
        return False
    return all(key == id(root) or live.get(key) is None for key in list(carried.NEW))


def compute(root: Node, live: Any) -> bool:
    """Compute an operation over memory if its plan is known; the caller sees that it is alone."""
    if type(root) is not Node:
        return False
    whole = whole_of(root)
    held = memory_below(root.inputs if whole is None else whole.inputs)
    known = None if held is None else KNOWN.get(key_of(root, whole, held))
    plan = None if known is None else known.plan()
    if plan is None or known is None or held is None or config.debug or PROFILES:
        return False
    passed = entries(carried.PASSED)
    if (passed and weakref.ref(root) in passed) or (
        whole is not None and not is_alone(root, whole, live)
    ):
        return False
    if not PLANS.touch(plan):
        return False
    if plan.native.address and CODED.compute is None:  # machine code does this from now on
        CODED.compute = CALLS.find("picograd_direct")
    root.realized = plan.fill([held[place] for place in known.places], user_line())
    if whole is not None:
        carried.GRADIENTS.pop(whole, None)
        carried.NEW.clear()
    else:
        carried.NEW.pop(id(root), None)
    tensor = live.get(id(root))
    if tensor is not None:
        tensor.settle()
    return True


def note(root: Node, buffers: list[Buffer], plan: CompiledPlan) -> None:
    """Remember the plan of an operation; `buffers` are what it reads, in the order it takes."""
    whole = whole_of(root)
    held = memory_below(root.inputs if whole is None else whole.inputs)
    if held is None or not plan.fills_one or not set(map(id, buffers)) <= set(map(id, held)):
        return
    if len(KNOWN) >= KNOWN_LIMIT:
        KNOWN.clear()
    places = tuple([next(n for n, each in enumerate(held) if each is b) for b in buffers])
    KNOWN[key_of(root, whole, held)] = Direct(weakref.ref(plan), places, plan.native)
