"""Monoids: what a reduction starts from, shared by templates, linearizers and interpreters."""

from typing import Any

from picograd.dtype import DType, bool_


def identity(monoid: str, dtype: DType) -> Any:
    """Find the value a reduction starts from."""
    if monoid in ("sum", "prod"):
        return dtype.numpy.type(0 if monoid == "sum" else 1).item()
    if dtype.is_float:
        return float("-inf" if monoid == "max" else "inf")
    if dtype is bool_:
        return monoid == "min"
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    high = (1 << (dtype.bits - (dtype.kind == "int"))) - 1
    return low if monoid == "max" else high
