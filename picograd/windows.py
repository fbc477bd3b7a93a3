"""PyTorch's `torch.signal.windows`: windows of M points, symmetric unless told otherwise."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.dtype import float32, float64
from picograd.errors import DTypeError, ValueRangeError, check_least, check_positive
from picograd.tensor.making.tensors_like import bessel, cosines, points, triangle, window
from picograd.tensor.tensor import Tensor
from picograd.typed import strided

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip

Array = Any
Window = Callable[..., Tensor]


def made(op: str, values: Array, more: dict[str, Any]) -> Tensor:
    """Make the tensor; `more` are dtype, device and requires_grad. One point is 1."""
    layout = more.pop("layout", None)
    if layout not in (None, strided):
        raise ValueRangeError(op, "the layout is not strided", "leave it out")
    found = window(values, more)
    if found.dtype not in (float32, float64):
        text = f"takes float32 or float64, not {found.dtype.name}"
        raise ValueRangeError(op, text, "cast the window")
    return found


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **more: Any) -> Tensor:
    """Make a sum of cosines: a0 - a1 cos(t) + a2 cos(2 t) ...

    >>> import picograd
    >>> picograd.signal.windows.general_cosine(3, a=[0.5, 0.5]).tolist()
    [0.0, 1.0, 0.0]
    """
    if not isinstance(a, (list, tuple)):
        text = f"a is {type(a).__name__}, the coefficients are a list of numbers"
        raise DTypeError("general_cosine", text, "pass a list")
    weights = list(a)
    if not weights:
        raise ValueRangeError("general_cosine", "there are no coefficients", "give some as a")
    values = cosines("general_cosine", M, not sym, weights)
    return made("general_cosine", values, more)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **more: Any) -> Tensor:
    """Make a window alpha - (1 - alpha) cos(t)."""
    weights = (alpha, 1 - alpha)
    values = cosines("general_hamming", M, not sym, weights)
    return made("general_hamming", values, more)


def of_cosines(name: str, *weights: float) -> Window:
    """Make the function of one sum of cosines."""

    def make(M: int, *, sym: bool = True, **more: Any) -> Tensor:
        return made(name, cosines(name, M, not sym, weights), more)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Make a window of cosines whose weights are {weights}."
    return make


hann = of_cosines("hann", 0.5, 0.5)
hamming = of_cosines("hamming", 0.54, 0.46)
blackman = of_cosines("blackman", 0.42, 0.5, 0.08)
nuttall = of_cosines("nuttall", 0.3635819, 0.4891775, 0.1365995, 0.0106411)


def bartlett(M: int, *, sym: bool = True, **more: Any) -> Tensor:
    """Make a triangle."""
    values = triangle("bartlett", M, not sym)
    return made("bartlett", values, more)


def cosine(M: int, *, sym: bool = True, **more: Any) -> Tensor:
    """Make half a wave, whose ends are half a point outside."""
    at, last = points("cosine", M, not sym)
    step = math.pi / (last + 1)
    angle = (at + 0.5) * step
    return made("cosine", np.sin(angle), more)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **more: Any
) -> Tensor:
    """Make exp(-|n - center| / tau); only a window that repeats has another center."""
    check_positive("exponential", "tau", tau)
    if sym and center is not None:
        problem = "a symmetric window has its center in the middle"
        raise ValueRangeError("exponential", problem, "leave center out, or pass sym=False")
    at, last = points("exponential", M, not sym)
    middle = last / 2 if center is None else center
    distance = np.abs(at - middle)
    return made("exponential", np.exp(-distance / tau), more)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **more: Any) -> Tensor:
    """Make exp(-((n - middle) / std)^2 / 2)."""
    check_positive("gaussian", "std", std)
    at, last = points("gaussian", M, not sym)
    middle = last / 2
    distance = (at - middle) / std
    square = distance**2
    return made("gaussian", np.exp(-square / 2), more)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **more: Any) -> Tensor:
    """Make Kaiser's window: I0(beta sqrt(1 - t^2)) / I0(beta) over t from -1 to 1."""
    check_least("kaiser", "beta", beta)
    values = bessel("kaiser", M, not sym, beta)
    return made("kaiser", values, more)
