"""The base of optimizers, where PyTorch's programs import it from."""

from collections.abc import Iterable
from typing import Any

from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.hooks import of_every_optimizer
from picograd.tensor.tensor import Tensor

__all__ = [
    "Optimizer", "ParamsT", "StateDict", "params_t", "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook", "required",
]  # fmt: skip

ParamsT = params_t = Iterable[Tensor] | Iterable[dict[str, Any]]
StateDict = dict[str, Any]
register_optimizer_step_pre_hook = of_every_optimizer("before")
register_optimizer_step_post_hook = of_every_optimizer("after")


class Required:
    """This class marks an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()
