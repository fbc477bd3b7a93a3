"""Host calls of Fourier transforms along one axis, named by a negative number.

A complex array has a last axis more, of (real, imaginary), which axes do not count. A transform is
linear: its gradient is the transform back, with the normalisation of the other direction.
"""

from typing import Any

import numpy as np

from picograd.graph.host_call import HostFunction, as_complex, as_pairs, functions, host_call
from picograd.graph.node import Node
from picograd.graph.shape import Shape

Array = Any
FLIPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def fft(pairs: Array, axis: int, is_inverse: bool, norm: Any) -> Array:
    """Transform complex numbers."""
    turn = np.fft.ifft if is_inverse else np.fft.fft
    return as_pairs(turn(as_complex(pairs), axis=axis, norm=norm))


def fft_vjp(g: Node, y: Node, x: Node) -> list[Node]:
    """Transform back."""
    axis, is_inverse, norm = y.arg.options
    return [host_call("fft", g, options=(axis, not is_inverse, FLIPPED[norm]))]


def rfft(x: Array, axis: int, norm: Any) -> Array:
    """Transform real numbers to the first n // 2 + 1 frequencies."""
    return as_pairs(np.fft.rfft(x, axis=axis, norm=norm))


def rfft_shape(x: Shape, axis: int, norm: str) -> Shape:
    """Halve the axis."""
    at = len(x) + axis
    return (*x[:at], x[at] // 2 + 1, *x[at + 1 :], 2)


def rfft_vjp(g: Node, y: Node, x: Node) -> list[Node]:
    """Transform back; the frequencies that stand for two count half."""
    axis, norm = y.arg.options
    size = x.shape[axis]
    halved = is_twofold(g, axis, size).where(g * 0.5, g)
    return [host_call("irfft", halved, options=(axis, size, FLIPPED[norm]))]


def irfft(pairs: Array, axis: int, size: int, norm: Any) -> Array:
    """Transform size // 2 + 1 frequencies back to real numbers."""
    return np.fft.irfft(as_complex(pairs), size, axis, norm)


def irfft_shape(x: Shape, axis: int, size: int, norm: str) -> Shape:
    """Give the axis its size."""
    at = len(x) - 1 + axis
    return (*x[:at], size, *x[at + 1 : -1])


def irfft_vjp(g: Node, y: Node, x: Node) -> list[Node]:
    """Transform forwards; the frequencies that stand for two count double."""
    axis, size, norm = y.arg.options
    found = host_call("rfft", g, options=(axis, FLIPPED[norm]))
    return [is_twofold(found, axis, size).where(found * 2.0, found)]


def is_twofold(node: Node, axis: int, size: int) -> Node:
    """Tell which frequencies have a mirror image: not the first, nor the last of an even size."""
    place = node.iota(node.rank - 1 + axis)
    is_inner = (place * 2).binary("less", size)
    return is_inner.binary("logical_and", place.binary("not_equal", 0))


TRANSFORMS = functions(
    HostFunction("fft", fft, lambda x, *options: x, fft_vjp),
    HostFunction("rfft", rfft, rfft_shape, rfft_vjp),
    HostFunction("irfft", irfft, irfft_shape, irfft_vjp),
)
