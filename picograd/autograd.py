"""Gradients under torch.autograd's names: functions of your own, checks of them, and `grad`."""

from collections.abc import Sequence
from typing import Any

from picograd.errors import ShapeError
from picograd.tensor.core.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from picograd.tensor.core.recording import grad, listed
from picograd.tensor.transforms.custom import (
    Function,
    checkpoint,
    hessian,
    jacobian,
    jvp,
    once_differentiable,
    vjp,
)
from picograd.tensor.transforms.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "backward",
    "checkpoint",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "hessian",
    "inference_mode",
    "is_grad_enabled",
    "jacobian",
    "jvp",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
    "vjp",
]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: Any = None,
    create_graph: bool = False,
    inputs: Sequence[Any] | None = None,
) -> None:
    """Add the gradients of the sum of several tensors to the `grad` of the leaves.

    >>> import picograd
    >>> x = picograd.Tensor([1.0, 2.0], requires_grad=True)
    >>> picograd.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad.tolist()
    [3.0, 5.0]
    """
    outputs = listed(tensors)
    given = [None] * len(outputs) if grad_tensors is None else listed(grad_tensors)
    if len(given) != len(outputs):
        text = f"{len(given)} gradients for {len(outputs)} tensors"
        raise ShapeError("backward", text, "give one per tensor, or None")
    for output, gradient in zip(outputs, given):
        output.backward(gradient, retain_graph, create_graph, inputs)
