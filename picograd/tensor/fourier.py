"""picograd.fft: Fourier transforms, as torch.fft, with gradients; computed by NumPy on the host.

picograd has no complex dtype: a complex tensor has a last axis of size 2, (real, imaginary), as
torch.view_as_real gives. `dim` counts the other axes only; negative ones from their end.
"""

from collections.abc import Sequence
from typing import Any

from picograd.errors import ShapeError, ValueRangeError
from picograd.graph.node import Node
from picograd.tensor import host, movement
from picograd.tensor.operands import as_axis, floating
from picograd.tensor.recording import apply
from picograd.tensor.tensor import Tensor


def read_norm(op: str, norm: str | None) -> str:
    """Read the name of a normalisation."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise ValueRangeError(
            op, f"norm={norm!r}", 'use "backward", "forward" or "ortho"'
        )
    return norm or "backward"


def resized(node: Node, axis: int, size: int | None) -> Node:
    """Cut or pad an axis to a size."""
    if size is None or size == node.shape[axis]:
        return node
    pads = [(0, 0)] * len(node.shape)
    pads[axis] = (0, size - node.shape[axis])
    return movement.pad_constant(node, pads, 0.0)


def need_pairs(op: str, node: Node) -> None:
    """Raise ShapeError unless the last axis holds (real, imaginary)."""
    if not node.shape or node.shape[-1] != 2 or len(node.shape) < 2:
        text = f"{node.shape} has no last axis of (real, imaginary)"
        raise ShapeError(
            op,
            text,
            "stack the parts with picograd.stack([real, imag], -1)",
        )


def complex_axis(
    node: Node,
    n: int | None,
    dim: int,
    norm: str | None,
    is_inverse: bool,
) -> Node:
    """Transform one axis of a complex tensor."""
    op = "ifft" if is_inverse else "fft"
    need_pairs(op, node)
    axis = as_axis(dim, len(node.shape) - 1, op)
    x = resized(floating(op, node).accumulated(), axis, n)
    return host.fourier(x, axis, is_inverse, read_norm(op, norm))


def real_axis(
    node: Node, n: int | None, dim: int, norm: str | None
) -> Node:
    """Transform one axis of a real tensor to its n // 2 + 1 first frequencies."""
    axis = as_axis(dim, len(node.shape), "rfft")
    x = resized(floating("rfft", node).accumulated(), axis, n)
    pairs = movement.stack([x, x.const_like(0.0)], -1)
    whole = host.fourier(pairs, axis, False, read_norm("rfft", norm))
    return movement.cut(whole, axis, 0, x.shape[axis] // 2 + 1)


def half_axis(
    node: Node, n: int | None, dim: int, norm: str | None
) -> Node:
    """Transform n // 2 + 1 frequencies of one axis back to n real numbers."""
    need_pairs("irfft", node)
    axis = as_axis(dim, len(node.shape) - 1, "irfft")
    size = 2 * (node.shape[axis] - 1) if n is None else n
    x = resized(
        floating("irfft", node).accumulated(), axis, size // 2 + 1
    )
    mirrored = movement.flip(
        movement.cut(x, axis, 1, (size + 1) // 2), (axis,)
    )
    last = len(x.shape) - 1
    sign = mirrored.iota(last).binary("equal", 0)
    conjugate = sign.where(mirrored, -mirrored)
    whole = movement.cat([x, conjugate], axis)
    found = host.fourier(whole, axis, True, read_norm("irfft", norm))
    return movement.cut(found, last, 0, 1).reshape(found.shape[:-1])


def fft(
    x: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
) -> Tensor:
    """Transform a complex tensor (..., 2) along one axis."""
    return apply(complex_axis, x, n, dim, norm, False)


def ifft(
    x: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
) -> Tensor:
    """Transform a complex tensor (..., 2) back along one axis."""
    return apply(complex_axis, x, n, dim, norm, True)


def rfft(
    x: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
) -> Tensor:
    """Transform a real tensor to its first n // 2 + 1 frequencies, (..., 2).

    >>> import picograd
    >>> picograd.fft.rfft(picograd.Tensor([1.0, 1.0])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    return apply(real_axis, x, n, dim, norm)


def irfft(
    x: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
) -> Tensor:
    """Transform n // 2 + 1 frequencies (..., 2) back to n real numbers."""
    return apply(half_axis, x, n, dim, norm)


def fft2(
    x: Tensor, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform a complex tensor (..., 2) along two axes."""
    return fft(fft(x, None, dim[1], norm), None, dim[0], norm)


def ifft2(
    x: Tensor, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform a complex tensor (..., 2) back along two axes."""
    return ifft(ifft(x, None, dim[1], norm), None, dim[0], norm)


def rfft2(
    x: Tensor, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """Transform a real tensor along two axes; the last of them is halved."""
    return fft(rfft(x, None, dim[1], norm), None, dim[0], norm)


def irfft2(
    x: Tensor,
    s: Any = None,
    dim: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    """Transform the result of rfft2 back to real numbers; `s` gives the sizes."""
    first, last = (None, None) if s is None else s
    return irfft(ifft(x, first, dim[0], norm), last, dim[1], norm)
