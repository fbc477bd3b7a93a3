"""Checks of gradients against finite differences, for users who write a Function of their own."""

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from picograd.dtype import complex128, float64
from picograd.errors import DTypeError, GradientError, ShapeError, ValueRangeError
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.recording import Recorded, grad
from picograd.tensor.public import view_as_complex, view_as_real
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.derivatives import jvp, of_chosen

Array = Any
# what PyTorch checks besides: here it holds by construction, or all is checked anyway
BESIDES = {
    "nondet_tol", "masked", "fast_mode", "check_undefined_grad", "check_grad_dtypes",
    "check_batched_grad", "check_batched_forward_grad", "check_forward_ad", "check_backward_ad",
    "check_fwd_over_rev", "check_rev_over_rev", "gen_non_contig_grad_outputs",
}  # fmt: skip


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **besides: Any,
) -> bool:
    """Compare the gradients of a function with central differences, element by element.

    `inputs` is a tensor or a tuple; those that ask for gradients are checked: float64 or
    complex128, whose real and imaginary parts are two elements; coarser ones with a warning.
    `func` returns a tensor or a tuple of tensors. Inputs of real numbers are moved in place, and
    back, so that a function may reach them by other ways than its arguments. Raises GradientError
    that names the first difference, or returns False with `raise_exception=False`. Derivatives
    along directions are compared too with `check_forward_ad=True`, and gradients are not with
    `check_backward_ad=False`. PyTorch's other options change nothing.

    >>> x = picograd.Tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    >>> picograd.autograd.gradcheck(lambda x: x.exp() * x, x)
    True
    """
    check_options("gradcheck", besides)
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    checked = [at for at, each in enumerate(given) if is_checked(each)]
    if not checked:
        text = "no input is a float tensor that asks for gradients"
        raise ValueRangeError("gradcheck", text, "set requires_grad=True")
    func, given = in_real_numbers(func, given, checked)
    every = list(enumerate(outputs_of(func, given)))
    outputs = [(n, y) for n, y in every if y.requires_grad] or every
    modes = exact_modes(func, given, checked, outputs, besides)  # before an input is moved
    for at in checked:
        columns = numeric(func, given, at, eps)
        for (place, (number, _)), (rule, exact) in product(enumerate(outputs), modes):
            wanted = by_output(columns, number)
            problem = difference(exact[at][place], wanted, atol, rtol)
            if problem and raise_exception:
                text = f"output {number} with respect to input {at}: {problem}"
                raise GradientError("gradcheck", text, f"mend {rule}, or widen atol and rtol")
            if problem:
                return False
    return True


def exact_modes(
    func: Callable[..., Any],
    given: tuple[Any, ...],
    checked: Sequence[int],
    outputs: Sequence[tuple[int, Tensor]],
    options: dict[str, Any],
) -> list[tuple[str, dict[int, list[Array]]]]:
    """List the rules to check, and what each gives: by input, one array for each output."""
    modes = []
    if options.get("check_backward_ad", True):
        found = {at: [analytic(y, given[at]) for _, y in outputs] for at in checked}
        modes.append(("backward", found))
    if options.get("check_forward_ad"):
        along = {at: forward(func, given, at) for at in checked}
        modes.append(("jvp", {at: [by_output(along[at], n) for n, _ in outputs] for at in checked}))
    return modes


def check_options(op: str, options: dict[str, Any]) -> None:
    """Raise DTypeError for an option that PyTorch has not either."""
    for name in options:
        if name not in BESIDES:
            raise DTypeError(op, f"no option {name!r}", "leave it out")


def in_real_numbers(
    func: Callable[..., Any], inputs: tuple[Any, ...], checked: Sequence[int]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Make a function of real numbers, and its inputs: complex ones are pairs of their parts.

    The gradient of a complex number is that of its real part plus i times that of the other, so
    that the pair's is right where it is.
    """
    complex_ones = [at for at in checked if inputs[at].dtype.is_complex]
    pairs = list(inputs)
    for at in complex_ones:
        parts = inputs[at].detach().numpy()
        both = np.stack([parts.real, parts.imag], -1)
        pairs[at] = Tensor.of(both, device=inputs[at].device, requires_grad=True)

    def real(*values: Any) -> list[Any]:
        given = list(values)
        for at in complex_ones:
            given[at] = view_as_complex(given[at])
        made = outputs_of(func, given)
        return [view_as_real(each) if each.dtype.is_complex else each for each in made]

    return real, tuple(pairs)


def is_checked(value: Any) -> bool:
    """Tell whether an input asks for gradients; warn if it is coarse."""
    if not (isinstance(value, Recorded) and value.requires_grad):
        return False
    if value.dtype not in (float64, complex128):
        text = (
            f"gradcheck: an input is {value.dtype.name}, coarse for differences. Fix: use float64."
        )
        warnings.warn(text, stacklevel=3)
    return True


def outputs_of(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """Call the function; its float outputs."""
    result = func(*inputs)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    return [each for each in outputs if isinstance(each, Recorded) and each.dtype.is_differentiable]


def analytic(output: Any, leaf: Any) -> Array:
    """Compute the Jacobian by `grad`: a row for each element of the output."""
    size = int(output.numel())
    if not output.requires_grad:  # nor does any other: it should not change with the inputs
        return np.zeros((size, leaf.numel()))
    rows = []
    for at in range(size):
        start = (Tensor.arange(size, device=output.device) == at).cast(output.dtype)
        given = start.reshape(output.shape)
        rows.append(grad(output, leaf, given, materialize_grads=True)[0].numpy().reshape(-1))
    return np.array(rows).reshape(size, leaf.numel())


def by_output(columns: Sequence[Any], number: int) -> Array:
    """Read the Jacobian of one output from columns of all."""
    return np.array([column[number] for column in columns]).T


def forward(func: Callable[..., Any], inputs: Sequence[Any], at: int) -> list[Any]:
    """Compute Jacobians along directions: for each element of an input, a column an output."""
    leaf, columns = inputs[at].detach(), []
    of_one = of_chosen(lambda *given: outputs_of(func, given), inputs, [at], {})
    for position in range(leaf.numel()):
        step = (Tensor.arange(leaf.numel(), device=leaf.device) == position).cast(leaf.dtype)
        _, along = jvp(of_one, (leaf,), (step.reshape(leaf.shape),))
        columns.append([each.numpy().reshape(-1) for each in along])
    return columns


def numeric(func: Callable[..., Any], inputs: Sequence[Any], at: int, eps: float) -> list[Any]:
    """Compute Jacobians by central differences: for each element of an input, a column an output.

    One input is moved, in place, and gets its values back.
    """
    leaf, columns = inputs[at], []
    start = leaf.detach().clone().numpy()
    try:
        for position in np.ndindex(*start.shape):
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved[position] += sign * eps
                move(leaf, moved)
                ends.append(
                    [each.detach().numpy().reshape(-1) for each in outputs_of(func, inputs)]
                )
            columns.append([(high - low) / (2 * eps) for high, low in zip(*ends)])
    finally:
        move(leaf, start)
    return columns


@no_grad()
def move(leaf: Any, values: Array) -> None:
    """Write other values to an input."""
    leaf.copy_(Tensor.of(values, device=leaf.device))


def difference(exact: Array, wanted: Array, atol: float, rtol: float) -> str:
    """Describe the first difference of two Jacobians, or nothing."""
    wanted = wanted.reshape(exact.shape)
    wrong = np.argwhere(~np.isclose(exact, wanted, rtol, atol))
    if not len(wrong):
        return ""
    row, column = (int(each) for each in wrong[0])
    return (
        f"element {row} along element {column} has gradient {exact[row, column]:.6g}, "
        f"the difference is {wanted[row, column]:.6g}"
    )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **besides: Any,
) -> bool:
    """Check second derivatives: `gradcheck` of the gradients of a function.

    `grad_outputs` multiplies the outputs; by default numbers from 0.5 to 1.5.

    >>> x = picograd.Tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    >>> picograd.autograd.gradgradcheck(lambda x: x.exp() * x, x)
    True
    """
    check_options("gradgradcheck", besides)
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = outputs_of(func, given)
    starts = [spread(each) for each in outputs] if grad_outputs is None else list_of(grad_outputs)
    if len(starts) != len(outputs):
        text = f"{len(starts)} grad_outputs for {len(outputs)} outputs"
        raise ShapeError("gradgradcheck", text, "give one per output")
    for each in starts:
        each.requires_grad = True

    def slopes(*values: Any) -> Any:
        leaves, weights = values[: len(given)], values[len(given) :]
        asked: list[Any] = [x for x in leaves if isinstance(x, Recorded) and x.requires_grad]
        pairs = [(y, w) for y, w in zip(outputs_of(func, leaves), weights) if y.requires_grad]
        return tuple(
            grad([y for y, _ in pairs], asked, [w for _, w in pairs], True, materialize_grads=True)
        )

    options = {"eps": eps, "atol": atol, "rtol": rtol}
    return gradcheck(slopes, (*given, *starts), raise_exception=raise_exception, **options)


def list_of(values: Any) -> list[Any]:
    """Read one tensor or several."""
    return list(values) if isinstance(values, (tuple, list)) else [values]


def spread(output: Any) -> Any:
    """Make weights of an output that are all different."""
    weights = np.linspace(0.5, 1.5, int(output.numel())).reshape(output.shape)
    if output.dtype.is_complex:
        weights = weights + 1j * (2.25 - weights)
    return Tensor.of(weights, device=output.device)
