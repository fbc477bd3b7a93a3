"""Derivatives of functions under torch.autograd.functional's names."""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.tensor.core.recording import grad
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms import custom

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Inputs = Tensor | Sequence[Tensor]
Function = Callable[..., Any]


def jacobian(
    func: Function,
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the derivative of every output element: output shape + input shape."""
    return custom.jacobian(func, inputs, create_graph)


def hessian(
    func: Function,
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the second derivatives of a function that gives one number."""
    return custom.hessian(func, inputs, create_graph)


def vjp(
    func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute func(inputs) and the product of `v` with its Jacobian."""
    return custom.vjp(func, inputs, v, create_graph)


def jvp(
    func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute func(inputs) and the product of its Jacobian with `v`."""
    return custom.jvp(func, inputs, v, create_graph)


def hvp(
    func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute func(inputs), one number, and the product of its Hessian with `v`.

    >>> from picograd import Tensor, autograd
    >>> x, v = Tensor([1.0, 2.0]), Tensor([1.0, 1.0])
    >>> y, product = autograd.functional.hvp(lambda x: (x**3).sum(), x, v)
    >>> product.tolist()
    [6.0, 12.0]
    """
    points = [point.detach().requires_grad_() for point in custom.several(inputs)]
    directions = custom.several(points[0].new_ones(()) if v is None else v)
    output = func(*points)
    first = grad(output, points, create_graph=True, materialize_grads=True)
    along = sum((part * each).sum() for part, each in zip(first, directions))
    found: Any = grad(along, points, create_graph=create_graph, materialize_grads=True)
    found = tuple(found) if isinstance(inputs, (list, tuple)) else found[0]
    return custom.finished(output, create_graph), found


vhp = hvp  # a Hessian is symmetric
