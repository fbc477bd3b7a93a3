"""Values that are known while operations are recorded: computed already and few, or constants.

Checks of values (an index, a divisor, a probability) look at these; they never compute anything.
"""

from typing import Any

import numpy as np

from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy
from picograd.engine.tracing import is_tracing
from picograd.errors import ValueRangeError
from picograd.graph.node import Node

KEEPING = ("reshape", "permute", "expand", "flip", "detach")  # views of all values
CHECKED = 4096  # values up to this many are looked at
SAME = ("detach", "expand", "reshape", "contiguous")  # what a constant passes through unchanged


def known_values(node: Node) -> Any:
    """Give the values of a node that are computed, few and on the CPU, or constant; or None."""
    if node.size > CHECKED or is_tracing():
        return None
    source = node
    while source.op in SAME and source.realized is None:
        source = source.inputs[0]
    if source.op == "const":
        return np.broadcast_to(np.asarray(source.arg), node.shape)
    buffer = leaf_buffer(node)
    if buffer is None or node.device != "cpu":
        return None
    return buffer_to_numpy(buffer, node.shape)


def check_between(op: str, what: str, node: Node, low: float, high: float) -> None:
    """Raise ValueRangeError for a known value outside [low, high]; NaN is outside."""
    values = known_values(node)
    if values is not None and values.size and not ((values >= low) & (values <= high)).all():
        text = f"{what} has values outside [{low}, {high}]"
        raise ValueRangeError(op, text, "pass probabilities")


def check_divisor(op: str, divisor: Any) -> None:
    """Raise ValueRangeError for an integer divisor with a zero in it, where that is known."""
    if isinstance(divisor, Node):
        if divisor.dtype.is_float:
            return
        values = known_values(divisor)
        has_zero = values is not None and not np.all(values)
    else:
        has_zero = not isinstance(divisor, float) and divisor == 0
    if has_zero:
        text = "an integer is divided by zero"
        raise ValueRangeError(op, text, "choose other divisors, or compute in floats")


def seen_values(node: Node) -> Any:
    """Give known values below views that keep every value, in whatever order and shape."""
    while node.realized is None and (node.op in KEEPING or is_widening(node)):
        node = node.inputs[0]
    return known_values(node)


def is_widening(node: Node) -> bool:
    """Tell whether a node casts integers to a signed dtype that has them all."""
    if node.op != "cast":
        return False
    source, dtype = node.inputs[0].dtype, node.dtype
    fits = dtype.kind == "int" and source.bits < dtype.bits
    return source is dtype or (source.is_integer and fits)
