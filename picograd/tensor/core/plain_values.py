"""Plain values that functions are called with: what a way may compare, and keep (ways.py)."""

import math
from types import EllipsisType, FunctionType
from typing import Any

import numpy as np

from picograd.device_name import device
from picograd.dtype import DType

PLAIN = {bool, int, str, type(None), EllipsisType, float, DType, FunctionType, type, device}
PLAIN |= {np.int32, np.int64}  # which programs compute sizes with


def is_plain(values: tuple[Any, ...]) -> bool:
    """Tell whether a tuple is of plain values, and tuples of such."""
    return all(map(is_plain_value, values))


def is_plain_value(value: Any) -> bool:
    """Tell whether a value is plain, or a tuple of such."""
    kind = type(value)
    return is_plain(value) if kind is tuple else kind in PLAIN and kind is not FunctionType


def is_same(value: Any, wanted: Any) -> bool:
    """Tell whether plain values are the same, and of one type."""
    kind = type(value)
    if kind is not type(wanted):
        return False
    if kind is tuple:
        return len(value) == len(wanted) and all(map(is_same, value, wanted))
    if kind is float:
        is_signed = math.copysign(1.0, value) == math.copysign(1.0, wanted)
        return value == wanted and is_signed
    return kind in PLAIN and bool(value == wanted)
