"""ONNX operators of signals: windows, Fourier transforms. A complex number is a pair of reals."""

import math

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
def window(call: Call, size: Value, output_datatype: int = 1, periodic: int = 1) -> Value:
    """Make a window of cosines, periodic or symmetric."""
    name, count = call.node.op_type, int(call.host(size).item())
    first, second, third = WINDOWS[name]
    turns = 2 * math.pi * np.arange(count) / max(count if periodic else count - 1, 1)
    values = first - second * np.cos(turns) + third * np.cos(2 * turns)
    dtype = dtype_of_onnx(output_datatype)
    return Tensor(values.astype(np.float32)).to(dtype)


@operator("DFT", since=20)
def dft(
    call: Call,
    x: Value,
    length: Value = None,
    axis: Value = None,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    """Discrete Fourier transform along an axis."""
    place = -2 if axis is None else int(call.host(axis).item())
    size = None if length is None else int(call.host(length).item())
    return transformed(call.tensor(x), place, size, bool(inverse), bool(onesided))


@operator("DFT")
def dft_before(
    call: Call, x: Value, length: Value = None, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """Discrete Fourier transform along an axis that is an attribute."""
    size = None if length is None else int(call.host(length).item())
    return transformed(call.tensor(x), axis, size, bool(inverse), bool(onesided))


def transformed(x: Tensor, axis: int, size: int | None, inverse: bool, onesided: bool) -> Tensor:
    """Transform an axis of (..., 1 or 2) reals, or pairs of real and imaginary parts."""
    place = axis % x.ndim
    numbers = view_as_complex(x) if x.shape[-1] == 2 else x[..., 0]
    if inverse and onesided:
        return fft.irfft(numbers, size, place).unsqueeze(-1)
    if onesided and not numbers.dtype.is_complex:
        return view_as_real(fft.rfft(numbers, size, place))
    found = view_as_real((fft.ifft if inverse else fft.fft)(numbers, size, place))
    return found.narrow(place, 0, found.shape[place] // 2 + 1) if onesided else found


@operator("STFT")
def stft(
    call: Call,
    signal: Value,
    step: Value,
    window: Value = None,
    length: Value = None,
    onesided: int = 1,
) -> Tensor:
    """Fourier transforms of windows of a signal (batch, samples, 1 or 2)."""
    x, hop = call.tensor(signal), int(call.host(step).item())
    size = int(call.host(length).item()) if length is not None else window.shape[0]
    x = x if x.ndim == 3 else x.unsqueeze(-1)
    count = (x.shape[1] - size) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(size)
    frames = x[:, Tensor(places.reshape(-1))].reshape(x.shape[0], count, size, x.shape[2])
    if window is not None:
        frames = frames * call.tensor(window).reshape(-1, 1)
    return transformed(frames, 2, size, False, bool(onesided))
