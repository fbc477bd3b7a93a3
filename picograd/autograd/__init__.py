"""Gradients under torch.autograd's names: functions of your own, checks of them, and `grad`."""

from collections.abc import Sequence
from typing import Any

import picograd.profiler as profiler
from picograd.autograd import forward_ad, functional, graph
from picograd.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from picograd.errors import ShapeError
from picograd.tensor.core import recording
from picograd.tensor.core.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from picograd.tensor.core.recording import listed
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.custom import Context as FunctionCtx  # noqa: F401 (PyTorch's name)
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
    "Function", "Variable", "backward", "checkpoint", "detect_anomaly", "enable_grad", "forward_ad",
    "functional", "grad", "gradcheck", "gradgradcheck", "graph", "hessian", "inference_mode",
    "is_anomaly_enabled", "is_grad_enabled", "jacobian", "jvp", "no_grad", "once_differentiable",
    "profiler", "set_detect_anomaly", "set_grad_enabled", "vjp",
]  # fmt: skip


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Find the gradients of outputs with respect to inputs, as `picograd.grad`.

    The arguments are in PyTorch's order, and the result is a tuple.

    >>> import picograd
    >>> x = picograd.Tensor([3.0], requires_grad=True)
    >>> picograd.autograd.grad((x * x).sum(), x)[0].tolist()
    [6.0]
    """
    options = (allow_unused, retain_graph, is_grads_batched, materialize_grads)
    outputs, inputs = graph.tensors_of(outputs), graph.tensors_of(inputs)
    return tuple(recording.grad(outputs, inputs, grad_outputs, create_graph, *options))


class VariableKind(type):
    """This class makes tensors under their old name, and knows them."""

    def __call__(cls, data: Any = (), requires_grad: bool = False, volatile: bool = False) -> Any:
        """Give a tensor that shows the data, and asks for gradients if told."""
        found = data.detach() if isinstance(data, Tensor) else Tensor.of(data)
        return found.requires_grad_(requires_grad)

    def __instancecheck__(cls, instance: Any) -> bool:
        """Tell whether something is a tensor."""
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableKind):
    """This class is the old name of tensors: Variable(data, requires_grad) is a Tensor.

    >>> import picograd
    >>> picograd.autograd.Variable(picograd.Tensor([1.0]), requires_grad=True).requires_grad
    True
    """


class InplaceFunction(Function):
    """This class is the base that programs give functions which may write over their input."""


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
    outputs = listed(graph.tensors_of(tensors))
    targets = None if inputs is None else listed(graph.tensors_of(inputs))
    given = [None] * len(outputs) if grad_tensors is None else listed(grad_tensors)
    if len(given) != len(outputs):
        text = f"{len(given)} gradients for {len(outputs)} tensors"
        raise ShapeError("backward", text, "give one per tensor, or None")
    for output, gradient in zip(outputs, given):
        output.backward(gradient, retain_graph, create_graph, targets)
