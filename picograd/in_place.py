"""Methods that write into a tensor as functions: `picograd.exp_(x)` is `x.exp_()`."""

from typing import Any

from picograd.tensor.tensor import Tensor


def __getattr__(name: str) -> Any:
    """Give a method of tensors."""
    return getattr(Tensor, name)
