"""The array API's extension for Fourier transforms."""

from collections.abc import Callable
from typing import Any

from picograd.array_api.elementwise import named
from picograd.tensor.linalg import fourier
from picograd.tensor.linalg.fourier import fftfreq, rfftfreq
from picograd.tensor.tensor import Tensor

ALONG = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OVER = ("fftn", "ifftn", "rfftn", "irfftn")
__all__ = [*ALONG, *OVER, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def along(name: str) -> Callable[..., Tensor]:
    """Make a transform along one axis."""
    compute: Any = getattr(fourier, name)

    def call(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return compute(x, n, axis, norm)

    return named(call, name, f"picograd.fft.{name}")  # type: ignore[no-any-return]


def over(name: str) -> Callable[..., Tensor]:
    """Make a transform over several axes."""
    compute: Any = getattr(fourier, name)

    def call(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        return compute(x, s, axes, norm)

    return named(call, name, f"picograd.fft.{name}")  # type: ignore[no-any-return]


globals().update({name: along(name) for name in ALONG})
globals().update({name: over(name) for name in OVER})


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Move frequency 0 to the middle."""
    return fourier.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Move frequency 0 back to the front."""
    return fourier.ifftshift(x, axes)
