"""picograd.fft: Fourier transforms, as torch.fft, with gradients.

NumPy computes them on the host, a GPU in steps if it can (graph/host_call.py).

Where one of what the host is given and gives is real, complex numbers are a last axis of
(real, imaginary).
"""

from typing import Any

import numpy as np

from picograd.dtype import default_float
from picograd.errors import AxisError, DTypeError, ShapeError, ValueRangeError, check_known
from picograd.graph.complex_numbers import view_as_complex, view_as_real
from picograd.graph.host_call import FLIPPED
from picograd.graph.node import Node
from picograd.graph.room import check_host
from picograd.tensor.core.annotations import Axis, DeviceLike, DTypeLike, Sizes, Tensor
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.operands import as_axis, floating
from picograd.tensor.core.recording import Recorded, apply
from picograd.tensor.core.spelling import spell_functions
from picograd.tensor.core.subclasses import publish
from picograd.tensor.linalg import host
from picograd.tensor.linalg.calls import called
from picograd.tensor.shaping import movement

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "istft", "rfft",
    "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip


def read_norm(op: str, norm: str | None) -> str:
    """Read the name of a normalisation."""
    check_known(op, "norm", norm, (None, "backward", "forward", "ortho"))
    return norm or "backward"


def resized(node: Node, axis: int, size: int | None) -> Node:
    """Cut or pad an axis to a size."""
    if size is None or size == node.shape[axis]:
        return node
    pads = [(0, 0)] * len(node.shape)
    pads[axis] = (0, size - node.shape[axis])
    return movement.pad_constant(node, pads, 0.0)


def as_complex(op: str, node: Node) -> Node:
    """Read numbers as complex ones of 32 bits a part or more."""
    x = floating(op, node).accumulated()
    return x.cast(x.dtype.complex)


def as_real(op: str, node: Node) -> Node:
    """Cast real numbers to a float dtype; complex ones are an error."""
    if node.dtype.is_complex:
        raise DTypeError(op, f"takes real numbers, not {node.dtype.name}", "use fft, or take .real")
    return floating(op, node).accumulated()


def transformed(op: str, node: Node, dim: int) -> int:
    """Find the axis that is transformed; a number without axes has none."""
    if not node.rank:
        text = f"axis {dim} is out of range for 0 axes"
        raise AxisError(op, text, "transform a tensor of one axis or more: x.reshape(1)")
    return as_axis(dim, node.rank, op)


def complex_axis(node: Node, n: int | None, dim: int, norm: str | None, is_inverse: bool) -> Node:
    """Transform one axis of complex numbers."""
    op = "ifft" if is_inverse else "fft"
    axis = transformed(op, node, dim)
    x = resized(as_complex(op, node), axis, n)
    return host.fourier(x, axis, is_inverse, read_norm(op, norm))


def real_axis(node: Node, n: int | None, dim: int, norm: str | None) -> Node:
    """Transform one axis of a real tensor to its n // 2 + 1 first frequencies."""
    axis = transformed("rfft", node, dim)
    x = resized(as_real("rfft", node), axis, n)
    return view_as_complex(host.fourier_of_real(x, axis, read_norm("rfft", norm)))


def half_axis(node: Node, n: int | None, dim: int, norm: str | None) -> Node:
    """Transform n // 2 + 1 frequencies of one axis back to n real numbers."""
    axis = transformed("irfft", node, dim)
    size = 2 * (node.shape[axis] - 1) if n is None else n
    host.need_points("irfft", size)
    x = view_as_real(resized(as_complex("irfft", node), axis, size // 2 + 1))
    return host.real_of_fourier(x, axis, size, read_norm("irfft", norm))


def fft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform complex numbers, or real ones, along one axis.

    >>> picograd.fft.fft(Tensor([1.0, 2.0])).tolist()
    [(3+0j), (-1+0j)]
    """
    return called(complex_axis, x, n, dim, norm, False)


def ifft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform complex numbers back along one axis.

    >>> picograd.fft.ifft(Tensor([3.0, -1.0])).tolist()
    [(1+0j), (2+0j)]
    """
    return called(complex_axis, x, n, dim, norm, True)


def rfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform a real tensor to its first n // 2 + 1 frequencies.

    >>> picograd.fft.rfft(picograd.Tensor([1.0, 1.0])).tolist()
    [(2+0j), 0j]
    """
    return called(real_axis, x, n, dim, norm)


def irfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform n // 2 + 1 frequencies back to n real numbers.

    >>> picograd.fft.irfft(picograd.fft.rfft(Tensor([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    return called(half_axis, x, n, dim, norm)


def each_axis(x: Tensor, s: Any, dim: Any) -> list[tuple[int, int | None]]:
    """Pair the axes to transform with their sizes; without `dim` the last ones, or all."""
    need_tensor("fft", x)
    rank, s = x.ndim, (s,) if isinstance(s, int) else s
    if dim is None:
        dim = range(rank - len(s), rank) if s is not None else range(rank)
    axes = [as_axis(axis, rank, "fft") for axis in ((dim,) if isinstance(dim, int) else dim)]
    sizes = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if len(sizes) != len(axes) or len(set(axes)) < len(axes):
        text = f"{len(sizes)} sizes for axes {tuple(axes)}"
        raise ShapeError("fft", text, "give one size per axis, each axis once")
    return list(zip(axes, sizes))


def last_apart(x: Tensor, s: Any, dim: Any) -> Any:
    """Pair the axes with their sizes; there must be a last one, which is halved."""
    pairs = each_axis(x, s, dim)
    if not pairs:
        raise ShapeError("fft", "no axis is left to halve", "name at least one axis")
    return pairs


def fftn(x: Tensor, s: Sizes | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
    """Transform complex numbers along several axes.

    >>> picograd.fft.fftn(picograd.Tensor([[1.0, 2.0]])).tolist()
    [[(3+0j), (-1+0j)]]
    """
    for axis, size in each_axis(x, s, dim):
        x = fft(x, size, axis, norm)
    return x


def ifftn(x: Tensor, s: Sizes | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
    """Transform complex numbers back along several axes.

    >>> picograd.fft.ifftn(picograd.Tensor([[3.0, -1.0]])).tolist()
    [[(1+0j), (2+0j)]]
    """
    for axis, size in each_axis(x, s, dim):
        x = ifft(x, size, axis, norm)
    return x


def rfftn(x: Tensor, s: Sizes | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
    """Transform a real tensor along several axes; the last of them is halved.

    >>> picograd.fft.rfftn(picograd.Tensor([[1.0, 1.0]])).tolist()
    [[(2+0j), 0j]]
    """
    *others, (last, size) = last_apart(x, s, dim)
    result = rfft(x, size, last, norm)
    for axis, count in others:
        result = fft(result, count, axis, norm)
    return result


def irfftn(x: Tensor, s: Sizes | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
    """Transform the result of rfftn back to real numbers; `s` gives the sizes.

    >>> picograd.fft.irfftn(picograd.Tensor([[2.0, 0.0]])).tolist()
    [[1.0, 1.0]]
    """
    *others, (last, size) = last_apart(x, s, dim)
    for axis, count in others:
        x = ifft(x, count, axis, norm)
    return irfft(x, size, last, norm)


def fft2(
    x: Tensor, s: Sizes | None = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform complex numbers along two axes.

    >>> picograd.fft.fft2(Tensor([[1.0, 2.0]])).tolist()
    [[(3+0j), (-1+0j)]]
    """
    return fftn(x, s, dim, norm)


def ifft2(
    x: Tensor, s: Sizes | None = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform complex numbers back along two axes.

    >>> picograd.fft.ifft2(Tensor([[3.0, -1.0]])).tolist()
    [[(1+0j), (2+0j)]]
    """
    return ifftn(x, s, dim, norm)


def rfft2(
    x: Tensor, s: Sizes | None = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform a real tensor along two axes; the last of them is halved.

    >>> picograd.fft.rfft2(Tensor([[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2)
    """
    return rfftn(x, s, dim, norm)


def irfft2(
    x: Tensor, s: Sizes | None = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform the result of rfft2 back to real numbers; `s` gives the sizes.

    >>> picograd.fft.irfft2(picograd.fft.rfft2(Tensor([[1.0, 2.0], [3.0, 4.0]]))).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return irfftn(x, s, dim, norm)


def hfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform n // 2 + 1 numbers of a Hermitian signal to n real frequencies.

    >>> picograd.fft.hfft(picograd.Tensor([1.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    need_tensor("hfft", x)
    return irfft(x.conj(), n, dim, FLIPPED[read_norm("hfft", norm)])


def ihfft(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Transform real frequencies back to the first n // 2 + 1 numbers of a Hermitian signal.

    >>> picograd.fft.ihfft(picograd.Tensor([1.0, 1.0])).real.tolist()
    [1.0, 0.0]
    """
    need_tensor("ihfft", x)
    return rfft(x, n, dim, FLIPPED[read_norm("ihfft", norm)]).conj()


def hfftn(x: Tensor, s: Sizes | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
    """Transform a signal that is Hermitian along its last axis, along several axes.

    >>> picograd.fft.hfftn(picograd.Tensor([[1.0, 0.0]])).tolist()
    [[1.0, 1.0]]
    """
    need_tensor("hfftn", x)
    return irfftn(x.conj(), s, dim, FLIPPED[read_norm("hfftn", norm)])


def ihfftn(x: Tensor, s: Sizes | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
    """Transform real frequencies of several axes back: a Hermitian signal, its last axis halved.

    >>> picograd.fft.ihfftn(picograd.Tensor([[1.0, 1.0]])).real.tolist()
    [[1.0, 0.0]]
    """
    need_tensor("ihfftn", x)
    return rfftn(x, s, dim, FLIPPED[read_norm("ihfftn", norm)]).conj()


def hfft2(
    x: Tensor, s: Sizes | None = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform a signal that is Hermitian along its last axis, along two axes.

    >>> picograd.fft.hfft2(picograd.Tensor([[1.0, 0.0]])).tolist()
    [[1.0, 1.0]]
    """
    return hfftn(x, s, dim, norm)


def ihfft2(
    x: Tensor, s: Sizes | None = None, dim: Sizes = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform real frequencies of two axes back: a Hermitian signal, its last axis halved.

    >>> picograd.fft.ihfft2(picograd.Tensor([[1.0, 1.0]])).real.tolist()
    [[1.0, 0.0]]
    """
    return ihfftn(x, s, dim, norm)


# frequencies and shifts


def fftfreq(
    n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """List the frequencies of `fft`, in cycles per unit of the distance d.

    >>> picograd.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    check_host("fftfreq", n)
    return Recorded.kind.of(np.fft.fftfreq(n, d), dtype=dtype or default_float(), device=device)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """List the frequencies of `rfft`, in cycles per unit of the distance d.

    >>> picograd.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    check_host("rfftfreq", n)
    return Recorded.kind.of(np.fft.rfftfreq(n, d), dtype=dtype or default_float(), device=device)


def shifted(op: str, x: Tensor, dim: Sizes | None, is_back: bool) -> Tensor:
    """Rotate axes by half their sizes."""
    need_tensor(op, x)
    axes = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    listed = [as_axis(axis, x.ndim, op) for axis in axes]
    halves = [(x.shape[axis] + is_back) // 2 for axis in listed]
    return x.roll(tuple(halves), tuple(listed))


def fftshift(x: Tensor, dim: Axis = None) -> Tensor:
    """Bring frequency 0 to the middle of all axes, or of some.

    >>> picograd.fft.fftshift(picograd.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return shifted("fftshift", x, dim, False)


def ifftshift(x: Tensor, dim: Axis = None) -> Tensor:
    """Undo `fftshift`.

    >>> picograd.fft.ifftshift(picograd.Tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    return shifted("ifftshift", x, dim, True)


# short-time transforms


def framing(op: str, n_fft: int, hop: Any, width: Any, window: Any, like: Tensor) -> Any:
    """Read the length of a step, and a window of n_fft points, padded on both sides."""
    step, size = n_fft // 4 if hop is None else hop, n_fft if width is None else width
    if not 0 < size <= n_fft or step < 1:
        text = f"n_fft={n_fft}, hop_length={step}, win_length={size}"
        raise ValueRangeError(op, text, "use 0 < win_length <= n_fft and a positive hop_length")
    kind = Recorded.kind
    if window is None:
        window = kind.ones(size, dtype=like.dtype.real, device=like.device)
    if tuple(window.shape) != (size,):
        text = f"the window has shape {tuple(window.shape)}, not ({size},)"
        raise ShapeError(op, text, "give one of win_length elements")
    low = (n_fft - size) // 2
    return step, window.pad((low, n_fft - size - low))


@composed()
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """Transform overlapping frames of a signal: (..., T) -> complex (..., frequencies, frames).

    Of a complex signal all frequencies, of a real one half of them. With `return_complex=False`
    the result has a last axis of (real, imaginary).

    >>> picograd.stft(picograd.Tensor.ones(16), 8).shape
    (5, 9)
    """
    is_complex = any(x is not None and x.dtype.is_complex for x in (input, window))
    if onesided and is_complex:
        raise DTypeError("stft", "half of a complex signal says too little", "use onesided=False")
    step, shape = framing("stft", n_fft, hop_length, win_length, window, input)
    x = input.reshape(-1, input.shape[-1]) if input.ndim else input.reshape(1, 1)
    if center:
        x = x.pad((n_fft // 2, n_fft // 2), mode=pad_mode)
    if x.shape[-1] < n_fft:
        text = f"{tuple(input.shape)} is shorter than n_fft={n_fft}"
        raise ShapeError("stft", text, "use a smaller n_fft")
    frames = x.unfold(-1, n_fft, step) * shape  # rows, frames, n_fft
    is_half = not is_complex if onesided is None else onesided
    found = rfft(frames) if is_half else fft(frames)
    found = found.transpose(-2, -1) * (n_fft**-0.5 if normalized else 1.0)
    found = found.reshape(*input.shape[:-1], *found.shape[1:])
    return apply(view_as_real, found) if return_complex is False else found


@composed()
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """Undo `stft`: add the frames up where they lay, and divide by the squared windows there.

    >>> x = picograd.Tensor.ones(16)
    >>> picograd.istft(picograd.stft(x, 8), 8).round().sum().item()
    16.0
    """
    if not input.dtype.is_complex:
        text = f"takes a complex dtype, not {input.dtype.name}"
        raise DTypeError("istft", text, "call picograd.view_as_complex first")
    step, shape = framing("istft", n_fft, hop_length, win_length, window, input)
    frequencies = input.shape[-2] if input.ndim in (2, 3) else 0
    is_whole = return_complex or frequencies == n_fft
    is_half = not is_whole if onesided is None else onesided
    count = n_fft // 2 + 1 if is_half else n_fft
    if frequencies != count:
        text = f"the input has shape {tuple(input.shape)}, and n_fft={n_fft}"
        raise ShapeError("istft", text, f"pass {count} frequencies: (..., {count}, frames)")
    x = input.reshape(-1, *input.shape[-2:]).mT
    x = x * (n_fft**0.5 if normalized else 1.0)
    if return_complex and not is_half:
        rows = ifft(x)
    else:
        rows = irfft(x[..., : n_fft // 2 + 1], n_fft)
    total = overlaid(rows * shape, step)
    weight = overlaid((shape * shape).expand(1, *rows.shape[1:]), step)
    low = n_fft // 2 if center else 0
    size = total.shape[-1] - 2 * low if length is None else length
    size = min(size, total.shape[-1] - low)
    result = total.narrow(-1, low, size) / weight.narrow(-1, low, size)
    if length is not None and length > size:
        result = result.pad((0, length - size))
    return result.reshape(*input.shape[:-2], result.shape[-1])


def overlaid(frames: Tensor, step: int) -> Tensor:
    """Add frames (rows, frames, n) up, each `step` after the one before."""
    _, count, size = frames.shape
    whole = (1, size + step * (count - 1))
    return frames.transpose(1, 2).col2im(whole, (1, size), stride=(1, step)).flatten(1)


guard_functions(globals(), __all__)
spell_functions(globals(), __all__)
publish(globals(), __all__)
