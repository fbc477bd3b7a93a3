"""The base of optimizers, where PyTorch's programs import it from."""

from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.base import Optimizer
from picograd.tensor.tensor import Tensor

__all__ = ["Optimizer", "ParamsT", "StateDict", "params_t", "required"]

ParamsT = params_t = Iterable[Tensor] | Iterable[dict[str, Any]]
StateDict = dict[str, Any]


class Required:
    """This class marks an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()
