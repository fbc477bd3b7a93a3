"""The base of optimizers, where PyTorch's programs import it from."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from picograd.nn.optim.base import Optimizer
from picograd.nn.optim.hooks import of_every_optimizer
from picograd.tensor.core.autograd import set_grad_enabled
from picograd.tensor.tensor import Tensor

__all__ = [
    "Optimizer", "ParamsT", "StateDict", "params_t", "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook", "required",
]  # fmt: skip

ParamsT = params_t = Iterable[Tensor] | Iterable[dict[str, Any]]
StateDict = dict[str, Any]
register_optimizer_step_pre_hook = of_every_optimizer("before")
register_optimizer_step_post_hook = of_every_optimizer("after")


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """Let the step of an optimizer be recorded if it is made with differentiable=True."""

    @wraps(step)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **options)

    return run


def _default_to_fused_or_foreach(
    params: Sequence[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Tell that neither is chosen: steps of one tensor after another become shared launches."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """List the devices whose steps are captured with numbers as tensors."""
    return ["cuda"]


class Required:
    """This class marks an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()
