"""Checks of what an op is applied to; each raises under the name of the op the user called."""

from collections.abc import Sequence

from picograd.errors import DeviceError, DTypeError, ShapeError
from picograd.graph.node import Node
from picograd.graph.row import DTypeRule


def check_device(op: str, inputs: Sequence[Node]) -> None:
    """Raise DeviceError unless all inputs are on one device."""
    first = inputs[0].device
    for node in inputs:
        if node.device != first:
            text = f"operands are on different devices: {first} and {node.device}"
            raise DeviceError(op, text, f'move one with .to("{first}")')


def check_dtype(op: str, rule: DTypeRule, inputs: Sequence[Node]) -> None:
    """Raise DTypeError unless all inputs have one dtype and the rule takes it."""
    dtype = inputs[0].dtype
    if dtype.kind not in rule.kinds:
        is_stored = dtype.kind == "float8"  # for storage: PyTorch computes little with it too
        fix = "call .float() first" if is_stored else "cast the operand first"
        raise DTypeError(op, f"takes {rule.wanted}, not {dtype.name}", fix)
    for node in inputs:
        if node.dtype is not dtype:
            raise DTypeError(
                op, f"operands are {dtype.name} and {node.dtype.name}", "cast one of them first"
            )


def check_same(op: str, inputs: Sequence[Node]) -> None:
    """Raise ShapeError or DeviceError unless shapes and devices are equal."""
    shape = inputs[0].shape
    for node in inputs:
        if node.shape != shape:
            raise ShapeError(op, f"shapes differ: {shape} and {node.shape}", "broadcast them first")
    check_device(op, inputs)
