"""Activations as modules, so that they fit into Sequential."""

from picograd.nn.module import Module
from picograd.tensor.tensor import Tensor


class ReLU(Module):
    """This class computes max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply ReLU to each element."""
        return x.relu()


class GELU(Module):
    """This class computes x * Phi(x), with `approximate="tanh"` by the tanh formula."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply GELU to each element."""
        return x.gelu(approximate=self.approximate)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """This class computes x * sigmoid(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply SiLU to each element."""
        return x.silu()


class Tanh(Module):
    """This class computes tanh(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply tanh to each element."""
        return x.tanh()


class Sigmoid(Module):
    """This class computes 1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the sigmoid to each element."""
        return x.sigmoid()


class Softmax(Module):
    """This class normalises exp(x) to sum 1 along one axis."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Apply softmax along the axis."""
        return x.softmax(self.dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """This class computes log(softmax(x)) along one axis without overflow."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """Apply log-softmax along the axis."""
        return x.log_softmax(self.dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}"


class Flatten(Module):
    """This class merges axes `start_dim` to `end_dim`: (B, C, H, W) -> (B, C*H*W)."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Merge the axes."""
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Identity(Module):
    """This class returns its input."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x
