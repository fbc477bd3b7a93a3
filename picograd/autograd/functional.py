"""Derivatives of functions under torch.autograd.functional's names."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from picograd.errors import DTypeError, GradientError, ShapeError
from picograd.tensor.core.autograd import enable_grad
from picograd.tensor.core.recording import grad
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms import custom

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Inputs = Tensor | Sequence[Tensor]
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


def derivative(function: F) -> F:
    """Let gradients be recorded inside, even in `no_grad`, and tensors alone come in and out.

    Raises DTypeError, and ShapeError where `v` does not fit what it is a change of.
    """
    op = function.__name__

    @functools.wraps(function)
    def call(func: Function, inputs: Inputs, *args: Any, **options: Any) -> Any:
        points = tensors_in("inputs", inputs, op)
        v = args[0] if args else options.get("v")
        if op in ("jvp", "hvp", "vhp") and v is not None:
            check_vector(op, v, points)

        def checked(*given: Any) -> Any:
            result = func(*given)
            found = tensors_in("the result of the function", result, op)
            if op == "vjp" and v is not None:
                check_vector(op, v, found)
            return result

        with enable_grad():
            return function(checked, inputs, *args, **options)

    return call  # type: ignore[return-value]


def tensors_in(what: str, values: Any, op: str) -> tuple[Tensor, ...]:
    """Read one tensor or several. Raises DTypeError."""
    found: tuple[Tensor, ...] = _as_tuple(custom.several(values), what, op)[1]
    return found


def check_vector(op: str, v: Any, like: Sequence[Tensor]) -> None:
    """Raise unless `v` has the shapes of other tensors."""
    found, wanted = ([each.shape for each in of] for of in (tensors_in("v", v, op), like))
    if found != wanted:
        text = f"v has shapes {found}, wanted are {wanted}"
        raise ShapeError(op, text.replace("Size", ""), "give one tensor for each, of its shape")


def check_dependence(
    op: str, func: Function, inputs: Inputs, strict: bool, create_graph: bool = False
) -> None:
    """Raise GradientError, where that is wanted, unless all results follow from all inputs.

    With `create_graph` their slopes have to, as well.
    """
    points = [each.detach().requires_grad_() for each in custom.several(inputs)] if strict else []
    for number, result in enumerate(custom.several(func(*points)) if strict else ()):
        slopes: Any = [None] * len(points)
        if result.requires_grad:
            slopes = grad(result.sum(), points, create_graph=True, allow_unused=True)
        for at, slope in enumerate(slopes):
            if slope is None or (create_graph and not slope.requires_grad):
                what = "result" if slope is None else "the slope of result"
                text = f"{what} {number} of the function does not follow from input {at}"
                raise GradientError(op, text, "leave out strict=True: it is a zero")


def check_slopes(op: str, func: Function, inputs: Inputs, strict: bool) -> None:
    """Raise GradientError, where that is wanted, unless all slopes follow from all inputs too."""
    check_dependence(op, func, inputs, strict)

    def slopes(*points: Tensor) -> Any:
        return grad(func(*points), points, create_graph=True)

    check_dependence(op, slopes, inputs, strict)


def one_number(op: str, func: Function) -> Function:
    """Check that a function gives a tensor of one element, and take its axes away."""

    def call(*points: Tensor) -> Tensor:
        result = func(*points)
        if not isinstance(result, Tensor) or result.numel() != 1:
            shown = result.shape if isinstance(result, Tensor) else f"{len(result)} tensors"
            text = f"the function gives {shown}"
            raise GradientError(op, text, "let it return one number, such as .sum()")
        return result.reshape(())

    return call


@derivative
def jacobian(
    func: Function,
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the derivative of every output element: output shape + input shape."""
    check_dependence("jacobian", func, inputs, strict, create_graph)
    shown = [each.detach() for each in custom.several(inputs)]
    if any(type(each) is not Tensor for each in shown):
        func = of_classes(func, shown)
    return custom.jacobian(func, inputs, create_graph)


def of_classes(func: Function, shown: Sequence[Tensor]) -> Function:
    """Call a function with tensors of the classes, and with the attributes, of others."""

    def call(*points: Tensor) -> Any:
        given = [point.as_subclass(type(like)) for point, like in zip(points, shown)]
        for point, like in zip(given, shown):
            vars(point).update(vars(like))
        return func(*given)

    return call


@derivative
def hessian(
    func: Function,
    inputs: Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the second derivatives of a function that gives one number."""
    func = one_number("hessian", func)
    check_slopes("hessian", func, inputs, strict)
    return custom.hessian(func, inputs, create_graph)


@derivative
def vjp(
    func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute func(inputs) and the product of `v` with its Jacobian."""
    check_dependence("vjp", func, inputs, strict, create_graph)
    return custom.vjp(func, inputs, v, create_graph)


@derivative
def jvp(
    func: Function, inputs: Inputs, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute func(inputs) and the product of its Jacobian with `v`."""
    check_dependence("jvp", func, inputs, strict, create_graph)
    return custom.jvp(func, inputs, v, create_graph)


@derivative
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
    func = one_number("hvp", func)
    check_slopes("hvp", func, inputs, strict)
    points = _grad_preprocess(custom.several(inputs), create_graph, True)
    directions = custom.several(points[0].new_ones(()) if v is None else v)
    output = func(*points)
    first = grad(output, points, create_graph=True, materialize_grads=True)
    along = sum((part * each).sum() for part, each in zip(first, directions))
    found: Any = grad(along, points, create_graph=create_graph, materialize_grads=True)
    found = tuple(found) if isinstance(inputs, (list, tuple)) else found[0]
    return custom.finished(output, create_graph), found


vhp = hvp  # a Hessian is symmetric


# what programs import to write derivatives of their own


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    """Make one tensor a tuple; named, say too whether it was one. Raises DTypeError."""
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (list, tuple)) else (inp,)
    found = inp if isinstance(inp, tuple) else (inp,)
    for each in found:
        if not isinstance(each, Tensor):
            problem = f"{arg_name} has a {type(each).__name__}"
            raise DTypeError(str(fn_name), problem, "pass a tensor, or a tuple of tensors")
    return isinstance(inp, tuple), found


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Take single entries out of tuples; `to_unpack` tells of one level, or two, what stays."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    found = res if inner else tuple(each[0] for each in res)
    return found if outer else found[0]


def _grad_preprocess(inputs: Sequence[Any], create_graph: bool, need_graph: bool) -> Any:
    """Give tensors of their own to find gradients of, which lead to the inputs if wanted."""
    return tuple(
        each.view_as(each)
        if create_graph and each.requires_grad
        else each.detach().requires_grad_(need_graph)
        for each in inputs
    )


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Cut results, in tuples of any depth, off from gradients unless they are wanted."""
    if isinstance(inputs, Tensor):
        return inputs if create_graph else inputs.detach()
    return tuple(_grad_postprocess(each, create_graph) for each in inputs)


def _construct_standard_basis_for(tensors: Sequence[Any], tensor_numels: Any) -> Any:
    """Give each tensor its part of the identity matrix of all their elements: (all, own)."""
    like = tensors[0]
    identity = Tensor.eye(sum(tensor_numels), dtype=like.dtype, device=like.device)
    return tuple(identity.split(list(tensor_numels), 1))
