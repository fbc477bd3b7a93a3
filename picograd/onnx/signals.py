"""ONNX operators of signals: windows, Fourier transforms. A complex number is a pair of reals."""

import math
from typing import Any

import numpy as np

import picograd.tensor.linalg.fourier as fft
from picograd.onnx.table import Call, Value, operator
from picograd.onnx.values import dtype_of_onnx
from picograd.tensor.public import view_as_complex, view_as_real
from picograd.tensor.tensor import Tensor

WINDOWS = {  # of the cosines of one, two periods
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@operator(*WINDOWS)
def window(call: Call, count: int, output_datatype: int = 1, periodic: int = 1) -> Value:
    """Make a window of cosines, periodic or symmetric."""
    first, second, third = WINDOWS[call.node.op_type]
    turns = 2 * math.pi * np.arange(count) / max(count if periodic else count - 1, 1)
    values = first - second * np.cos(turns) + third * np.cos(2 * turns)
    return Tensor(values.astype(np.float32)).to(dtype_of_onnx(output_datatype))


@operator("DFT")
def dft(
    call: Call, x: Tensor, size: int | None = None, axis: int | None = None, inverse: int = 0,
    onesided: int = 0,
) -> Tensor:  # fmt: skip
    """Discrete Fourier transform along an axis, which is an attribute before opset 20."""
    usual = -2 if call.opset >= 20 else 1
    place = usual if axis is None else axis
    return transformed(x, place, size, bool(inverse), bool(onesided))


def transformed(x: Tensor, axis: int, size: int | None, inverse: bool, onesided: bool) -> Tensor:
    """Transform an axis of (..., 1 or 2) reals, or pairs of real and imaginary parts.

    In float64: what the standard's tests ask for is more than float32 has.
    """
    place, wide = axis % x.ndim, x.double()
    numbers = view_as_complex(wide) if x.shape[-1] == 2 else wide[..., 0]
    if inverse and onesided:
        return fft.irfft(numbers, size, place).unsqueeze(-1).cast(x.dtype)
    if onesided and not numbers.dtype.is_complex:
        return view_as_real(fft.rfft(numbers, size, place)).cast(x.dtype)
    found = view_as_real((fft.ifft if inverse else fft.fft)(numbers, size, place)).cast(x.dtype)
    return found.narrow(place, 0, found.shape[place] // 2 + 1) if onesided else found


@operator("STFT")
def stft(
    x: Tensor, hop: int, window: Any = None, length: int | None = None, onesided: int = 1
) -> Tensor:
    """Fourier transforms of windows of a signal (batch, samples, 1 or 2)."""
    size = window.shape[0] if length is None else length
    x = x if x.ndim == 3 else x.unsqueeze(-1)
    count = (x.shape[1] - size) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(size)
    frames = x[:, Tensor(places.reshape(-1))].reshape(x.shape[0], count, size, x.shape[2])
    if window is not None:
        frames = frames * window.reshape(-1, 1)
    return transformed(frames, 2, size, False, bool(onesided))
