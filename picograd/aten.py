"""Operators of PyTorch that programs call by their names there: copies of views, `convolution`."""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.engine.tracing import is_tracing
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.nn import functional
from picograd.tensor import public
from picograd.tensor.tensor import Tensor

__all__ = ["_assert_async", "convolution"]


def slice_of(
    x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Take a slice of an axis."""
    moved = x.movedim(dim, 0)[slice(start, end, step)]
    return moved.movedim(0, dim)


def same(x: Tensor) -> Tensor:
    """Give a tensor."""
    return x


METHODS = (
    "as_strided", "detach", "diagonal", "expand", "permute", "select", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
)  # fmt: skip
OTHERS: dict[str, Callable[..., Any]] = {"alias": same, "slice": slice_of}


def copying(name: str, look: Callable[..., Any]) -> Callable[..., Any]:
    """Make the function that copies what a view shows; `out` takes it instead."""

    def copy(input: Tensor, *args: Any, out: Any = None, **options: Any) -> Any:
        if not isinstance(input, Tensor):
            problem = f"the input must be a Tensor, not {type(input).__name__}"
            raise DTypeError(f"{name}_copy", problem, "wrap it in picograd.Tensor(...)")
        found = look(input, *args, **options)
        if isinstance(found, Tensor):
            return found.clone() if out is None else filled(out, found)
        if out is None:
            return tuple(part.clone() for part in found)
        for target, part in zip(out, found):
            filled(target, part)
        return None

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"""Copy what `{name}` shows, whose result would share memory.

    Its arguments are those of the method. `out` names where the copy is written.
    """
    return copy


def filled(out: Tensor, value: Tensor) -> Tensor:
    """Write a value into a tensor, which takes its shape."""
    return out.resize_(value.shape).copy_(value)


COPIES = {name: getattr(Tensor, name) for name in METHODS} | OTHERS
COPIES |= {name: getattr(public, name) for name in ("view_as_complex", "view_as_real")}
NAMES = tuple(f"{name}_copy" for name in COPIES)


def __getattr__(name: str) -> Any:
    """Make one of the functions that copy. Raises AttributeError for other names."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plain = name.removesuffix("_copy")
    made = globals()[name] = copying(plain, COPIES[plain])
    return made


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Convolve along one, two or three axes, as the size of the weight says; or its adjoint.

    >>> import picograd
    >>> x, w = picograd.ones(1, 1, 3), picograd.ones(1, 1, 2)
    >>> picograd.ops.aten.convolution(x, w, None, [1], [0], [1], False, [0], 1).tolist()
    [[[2.0, 2.0]]]
    """
    axes = weight.ndim - 2
    if axes not in (1, 2, 3):
        problem = f"the weight has {weight.ndim} axes"
        raise ShapeError("convolution", problem, "give it 3 to 5: out, in and the window")
    if not transposed:
        convolve = getattr(functional, f"conv{axes}d")
        found: Tensor = convolve(input, weight, bias, stride, padding, dilation, groups)
        return found
    adjoint = getattr(functional, f"conv_transpose{axes}d")
    more = {"output_padding": output_padding, "groups": groups, "dilation": dilation}
    found = adjoint(input, weight, bias, stride, padding, **more)
    return found


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise ValueRangeError where a tensor of one element is zero; not inside a trace.

    >>> import picograd
    >>> picograd._assert_async(picograd.tensor(True), "it holds")
    """
    if input.numel() != 1:
        problem = f"a tensor of shape {tuple(input.shape)} is no single truth"
        raise ShapeError("_assert_async", problem, "use .all()")
    if not is_tracing() and not input.bool().item():
        problem = assert_msg or "the value is zero"
        raise ValueRangeError("_assert_async", problem, "look at what was asserted")
