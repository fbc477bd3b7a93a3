"""The base of optimizers, where PyTorch's programs import it from."""

from picograd.nn.optim.base import Optimizer

__all__ = ["Optimizer"]
