"""Dropout: zeroes a random part of its input while training."""

from picograd.errors import ValueRangeError
from picograd.nn import functional
from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor


class Dropout(Module):
    """This class zeroes each element with probability p and scales the others by 1/(1-p)."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueRangeError("Dropout", f"p={p} is not a probability", "use 0 <= p <= 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements in training mode; do nothing in evaluation mode."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"p={self.p}"
