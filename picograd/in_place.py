"""Methods that write into a tensor as functions: `picograd.exp_(x)` is `x.exp_()`."""

from typing import Any

from picograd.tensor.core.subclasses import publish
from picograd.tensor.tensor import Tensor


def __getattr__(name: str) -> Any:
    """Give a method of tensors, which is none of a class that has it."""
    globals()[name] = getattr(Tensor, name)
    publish(globals(), (name,))
    return globals()[name]
