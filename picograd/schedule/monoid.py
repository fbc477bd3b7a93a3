"""Monoids: what a reduction starts from and how it combines, for schedule and codegen."""

from typing import Any

from picograd.dtype import DType, bool_

# The elementwise operation that combines two values; the keys are all monoids there are.
COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def identity(monoid: str, dtype: DType) -> Any:
    """Find the value that leaves the other operand of a monoid unchanged, as a Python number.

    The extremes of floats start from infinities, those of integers from the dtype's ends.
    """
    if monoid in ("sum", "prod"):
        start = 0 if monoid == "sum" else 1
        return dtype.numpy.type(start).item()
    if dtype.is_float:
        return float("-inf" if monoid == "max" else "inf")
    if dtype is bool_:
        return monoid == "min"
    least, most = dtype.ends
    return least if monoid == "max" else most
