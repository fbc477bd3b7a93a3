"""Hooks of what gradients read: packed when it is recorded, unpacked when a gradient is taken.

Nothing is kept for gradients here before they are planned, so that there is nothing to hook: an
operation recorded inside a block of hooks packs the operands that its gradient reads, and its
gradient is that of the operation done again on what is unpacked.
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.errors import DTypeError, GradientError, StateError
from picograd.graph.build_composite import custom
from picograd.graph.gradient import gradient
from picograd.graph.node import Node, toposort
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import no_grad

KEY = "saved tensors"  # of the open regions: none of them leaves what is recorded as it is


class Packing:
    """This class is a pair of hooks; `name` tells it from others."""

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        self.pack, self.unpack = pack, unpack
        self.name = f"hooks {id(self)}"


class Disabled:
    """This class stands where hooks are forbidden, and why."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.name = f"none: {message}"


def current() -> Packing | None:
    """Find the innermost hooks."""
    found: Any = REGIONS.dtypes.get(KEY)
    return found if isinstance(found, Packing) else None


def check_allowed() -> None:
    """Raise StateError where hooks are forbidden."""
    found: Any = REGIONS.dtypes.get(KEY)
    if isinstance(found, Disabled):
        fix = "leave out hooks inside disable_saved_tensors_hooks"
        raise StateError("saved_tensors_hooks", found.message, fix)


def unpacked(packing: Packing, packed: Any, node: Node) -> Node:
    """Give what a hook unpacks, as the value of a node, whose gradients it takes."""
    found = packing.unpack(packed)
    value: Any = getattr(found, "_node", None)
    if not isinstance(value, Node):
        text = f"the hook that unpacks returned a {type(found).__name__}"
        raise DTypeError("saved_tensors_hooks", text, "return a tensor")
    if value.shape != node.shape or value.dtype is not node.dtype:
        text = (
            f"what was unpacked is {value.dtype.name}{value.shape}, "
            f"what was packed {node.dtype.name}{node.shape}"
        )
        raise GradientError("saved_tensors_hooks", text, "return a tensor like the packed one")
    if not node.dtype.is_differentiable:
        return value
    return custom(value, [node], lambda flowing, *others: [flowing])


def apart(node: Node) -> Node:
    """Give another node of the same value, which no view of it goes past."""
    return Node("cast", (node,), node.dtype, node.shape, node.dtype, node.device)


def read_of(again: Callable[..., Node], operands: Sequence[Node]) -> set[int]:
    """Find the places of the operands whose values the gradient of an operation reads."""
    ends = [apart(each) for each in operands]
    ids = {id(each) for each in ends}
    result = again(*ends)
    targets = [each for each in ends if each.dtype.is_differentiable]
    found = gradient([(result, result.const_like(1))], targets, lambda node: id(node) in ids)
    slopes = [each for each in found if each is not None]
    read = {id(node) for node in toposort(slopes, lambda node: id(node) in ids)}
    return {place for place, each in enumerate(ends) if id(each) in read}


def refuse(op: str) -> None:
    """Raise StateError for an operation whose gradient hooks do not see, inside their block."""
    if current() is not None:
        text = f"hooks do not see what the gradient of {op} reads"
        raise StateError("saved_tensors_hooks", text, "call it outside the block")


def hooked(
    result: Node, operands: Sequence[Node], again: Callable[..., Node], show: Callable[..., Any]
) -> Node:
    """Pack what the gradient of a result reads; `again(*operands)` records the result.

    `show` makes the tensor of a node that the hook sees.
    """
    packing = current()
    if packing is None or not operands:
        return result
    packs: dict[int, Any] = {}
    with no_grad():
        for place in read_of(again, operands):
            packs[place] = packing.pack(show(operands[place]))
    if not packs:
        return result

    def vjp(flowing: Node, output: Node, *nodes: Node) -> list[Node | None]:
        ends = []
        for place, node in enumerate(nodes):
            value = node
            if place in packs:
                value = unpacked(packing, packs[place], node)
            ends.append(apart(value))
        ids = {id(each) for each in ends}
        redone = again(*ends)
        return gradient([(redone, flowing)], ends, lambda node: id(node) in ids)

    return custom(result, operands, vjp)
