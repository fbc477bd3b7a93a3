"""Making tensors in PyTorch's other spellings: like another tensor, logarithmic ranges, windows.

Functions of tensors made of `Tensor.zeros` and its neighbours.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.dtype import default_float, to_dtype
from picograd.engine.foreign import share
from picograd.engine.realize import node_over_numpy
from picograd.errors import ValueRangeError
from picograd.graph.room import check_host
from picograd.helpers import row_major
from picograd.target import is_host
from picograd.tensor.core import aliasing
from picograd.tensor.core.annotations import Data, DeviceLike, DTypeLike, Scalar, Sizes, Tensor
from picograd.tensor.core.function import composed
from picograd.tensor.core.recording import Recorded, fresh
from picograd.tensor.core.recording import made as made_leaf
from picograd.tensor.making import creation

Array = Any


@composed(method=False)
def scalar_tensor(
    s: Scalar, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor:
    """Make a zero-dim tensor of a number, a float unless told otherwise.

    >>> picograd.scalar_tensor(3).item()
    3.0
    """
    return Recorded.kind.full((), s, dtype=dtype or default_float(), device=device, **more)


@composed(method=False)
def frombuffer(
    buffer: Any,
    *,
    dtype: DTypeLike | None,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor of the bytes of an object, on the CPU; it shares memory that may be written.

    Raises ValueRangeError where `count` elements behind `offset` bytes are none, or not there.

    >>> picograd.frombuffer(b"\\x01\\x02", dtype=picograd.uint8).tolist()
    [1, 2]
    """
    wanted = to_dtype(dtype)
    try:
        array = np.frombuffer(buffer, wanted.storage, count, offset)
    except (ValueError, TypeError) as error:
        raise ValueRangeError("frombuffer", str(error), "check count and offset") from None
    if not array.size:
        raise ValueRangeError("frombuffer", "there is no element", "check count and offset")
    if array.flags.writeable:
        made = made_leaf(share(node_over_numpy(array, wanted)))
    else:
        made = Recorded.kind.of(array.copy())
        made = made if made.dtype is wanted else made.bitcast(wanted)
    return made.requires_grad_() if requires_grad else made


def new_shape(size: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """Read `f(2, 3)`, `f((2, 3))` and `f(size=(2, 3))` alike."""
    if "size" in more and not size:
        return more.pop("size")
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


@composed(function=False)
def new_zeros(
    x: Tensor,
    *size: Sizes,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Make zeros of this dtype and device.

    >>> picograd.Tensor([1]).new_zeros(2).tolist()
    [0, 0]
    """
    return x.new_full(new_shape(size, more), 0, dtype=dtype, device=device, **more)


@composed(function=False)
def new_ones(
    x: Tensor,
    *size: Sizes,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Make ones of this dtype and device.

    >>> picograd.Tensor([3.0]).new_ones((1, 2)).tolist()
    [[1.0, 1.0]]
    """
    return x.new_full(new_shape(size, more), 1, dtype=dtype, device=device, **more)


@composed(function=False)
def new_empty(
    x: Tensor,
    *size: Sizes,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Make a tensor of this dtype and device whose values nobody promises; here zeros.

    >>> picograd.Tensor([1.0]).new_empty(3).shape
    (3,)
    """
    return x.new_full(new_shape(size, more), 0, dtype=dtype, device=device, **more)


@composed(function=False)
def new_full(
    x: Tensor,
    size: Sizes,
    fill_value: Scalar,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Fill a shape with one value, in this dtype and on this device.

    >>> picograd.Tensor([1.0]).new_full((2,), 7).tolist()
    [7.0, 7.0]
    """
    place = dict(dtype=dtype or x.dtype, device=device or x.device)
    return Recorded.kind.full(size, fill_value, **place, **more)


@composed(function=False)
def new(x: Tensor, *data: Any, size: Any = None, device: DeviceLike | None = None) -> Tensor:
    """Make a tensor of data, or of zeros with the sizes that ints, a shape or `size` are.

    >>> x = picograd.Tensor([[1.0]])
    >>> x.new(2, 3).shape, x.new(x.shape).shape, x.new([2, 3]).tolist()
    ((2, 3), (1, 1), [2.0, 3.0])
    """
    place = dict(dtype=x.dtype, device=device or x.device)
    sizes = creation.sizes_among(data) if data else (0,) if size is None else tuple(size)
    if sizes is not None:
        return Recorded.kind.zeros(*sizes, **place)
    if isinstance(data[0], Recorded) and (data[0].dtype, device) == (x.dtype, None):
        return Recorded.kind(data[0])
    return Recorded.kind.of(data[0], **place)


@composed(function=False)
def new_tensor(
    x: Tensor,
    data: Data,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Make a tensor of data in this dtype and on this device.

    >>> picograd.Tensor([1.0]).new_tensor([2, 3]).tolist()
    [2.0, 3.0]
    """
    return Recorded.kind.of(data, dtype=dtype or x.dtype, device=device or x.device, **more)


@composed(method=False)
def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: DTypeLike | None = None,
    device: DeviceLike | None = None, **more: Any,
) -> Tensor:  # fmt: skip
    """Compute base ** x for numbers x spaced evenly, both ends included.

    >>> picograd.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    count = operator.index(steps)
    if count < 0:
        raise ValueRangeError("logspace", f"{count} numbers are not possible", "use at least 0")
    check_host("logspace", count)
    wanted = to_dtype(dtype or default_float())
    first, last = (int(x) if wanted.is_integer else float(x) for x in (start, end))
    powers = np.power(float(base), np.linspace(first, last, count))
    return Recorded.kind.of(powers, dtype=wanted, device=device, **more)


@composed("range", method=False)
def linear_range(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Count from start (0) up to and including end, in floats: PyTorch's old `range`.

    >>> picograd.range(1, 3).tolist()
    [1.0, 2.0, 3.0]
    """
    first, last = (0, start) if end is None else (start, end)
    wanted = to_dtype(dtype or default_float())
    if wanted.is_integer:
        first, last, step = int(first), int(last), int(step)
    if not step or (last - first) / step < 0:
        text = f"{last} is not reached from {first} by steps of {step}"
        raise ValueRangeError("range", text, "change the step")
    count = math.floor((last - first) / step) + 1
    place = creation.device_named(device)
    return fresh(creation.progression((count,), first, step, wanted, place), **more)


# windows for signals: N points of a cosine series, periodic unless told otherwise


def points(op: str, length: Any, is_periodic: bool) -> tuple[Array, int]:
    """Number the points of a window; and the last of them, where one that repeats has one more."""
    count = operator.index(length)
    if count < 0:
        raise ValueRangeError(op, f"{count} points are negative", "use 0 or more")
    check_host(op, count)
    return np.arange(count, dtype=np.float64), max(count if is_periodic else count - 1, 1)


def cosines(op: str, length: Any, is_periodic: bool, weights: Sequence[float]) -> Array:
    """Sum a0 - a1 cos(t) + a2 cos(2 t) ... over t from 0 to 2 pi."""
    at, last = points(op, length, is_periodic)
    angle = at * (2 * math.pi / last)
    return sum((-1) ** n * a * np.cos(n * angle) for n, a in enumerate(weights))


def triangle(op: str, length: Any, is_periodic: bool) -> Array:
    """Rise from 0 to 1 in the middle, and fall again."""
    at, last = points(op, length, is_periodic)
    return 1 - np.abs(2 * at / last - 1)


def bessel(op: str, length: Any, is_periodic: bool, beta: float) -> Array:
    """Compute I0(beta sqrt(1 - t^2)) / I0(beta) over t from -1 to 1."""
    at, last = points(op, length, is_periodic)
    inside = 1 - (2 * at / last - 1) ** 2
    return np.i0(beta * np.sqrt(np.maximum(inside, 0))) / np.i0(beta)


def window(values: Array, more: Any) -> Tensor:
    """Make the tensor; one point is 1."""
    values = np.ones(1) if len(values) == 1 else values
    wanted = to_dtype(more.pop("dtype", None) or default_float())
    if not wanted.is_float:
        raise ValueRangeError("window", f"{wanted.name} is no float dtype", "pass a float dtype")
    return Recorded.kind.of(values, dtype=wanted, **more)


@composed(method=False)
def hann_window(window_length: int, periodic: bool = True, **more: Any) -> Tensor:
    """Make Hann's window: 1/2 - 1/2 cos(2 pi n / N).

    >>> picograd.hann_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return window(cosines("hann_window", window_length, periodic, (0.5, 0.5)), more)


@composed(method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **more: Any
) -> Tensor:
    """Make Hamming's window: alpha - beta cos(2 pi n / N).

    >>> round(picograd.hamming_window(4)[0].item(), 3)
    0.08
    """
    return window(cosines("hamming_window", window_length, periodic, (alpha, beta)), more)


@composed(method=False)
def blackman_window(window_length: int, periodic: bool = True, **more: Any) -> Tensor:
    """Make Blackman's window: 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N).

    >>> round(picograd.blackman_window(4)[2].item(), 3)
    1.0
    """
    return window(cosines("blackman_window", window_length, periodic, (0.42, 0.5, 0.08)), more)


@composed(method=False)
def bartlett_window(window_length: int, periodic: bool = True, **more: Any) -> Tensor:
    """Make a triangle of N points.

    >>> picograd.bartlett_window(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return window(triangle("bartlett_window", window_length, periodic), more)


@composed(method=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **more: Any
) -> Tensor:
    """Make Kaiser's window: I0(beta sqrt(1 - t^2)) / I0(beta) over t from -1 to 1.

    >>> picograd.kaiser_window(4, beta=0.0).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return window(bessel("kaiser_window", window_length, periodic, beta), more)


# like another tensor


def place_like(x: Tensor, dtype: DTypeLike | None, device: DeviceLike | None) -> dict[str, Any]:
    """Default dtype and device to those of a tensor."""
    return dict(dtype=dtype or x.dtype, device=device or x.device)


@composed()
def zeros_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor:
    """Make zeros of the shape, dtype and device of another tensor.

    >>> picograd.zeros_like(picograd.Tensor([5.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    return Recorded.kind.zeros(input.shape, **place_like(input, dtype, device), **more)


@composed()
def ones_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor:
    """Make ones of the shape, dtype and device of another tensor.

    >>> picograd.ones_like(picograd.Tensor([5.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    return Recorded.kind.ones(input.shape, **place_like(input, dtype, device), **more)


@composed()
def empty_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor:
    """Make a tensor of the shape, dtype and device of another; its values are zeros.

    >>> picograd.empty_like(picograd.Tensor([1.0, 2.0])).shape
    (2,)
    """
    return Recorded.kind.empty(input.shape, **place_like(input, dtype, device), **more)


@composed()
def full_like(
    input: Tensor,
    fill_value: Scalar,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Tensor:
    """Fill the shape of another tensor with one value.

    >>> picograd.full_like(picograd.Tensor([1.0, 2.0]), 7).tolist()
    [7.0, 7.0]
    """
    return Recorded.kind.full(input.shape, fill_value, **place_like(input, dtype, device), **more)


@composed()
def rand_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor:
    """Draw uniformly from [0, 1) in the shape of another tensor.

    >>> picograd.rand_like(picograd.Tensor([5.0, 2.0])).shape
    (2,)
    """
    return Recorded.kind.rand(input.shape, **place_like(input, dtype, device), **more)


@composed()
def randn_like(
    input: Tensor, dtype: DTypeLike | None = None, device: DeviceLike | None = None, **more: Any
) -> Tensor:
    """Draw from the standard normal distribution in the shape of another tensor.

    >>> picograd.randn_like(picograd.Tensor([5.0, 2.0])).shape
    (2,)
    """
    return Recorded.kind.randn(input.shape, **place_like(input, dtype, device), **more)


# facts about a tensor


@composed(method=False)
def numel(input: Tensor) -> int:
    """Count the elements.

    >>> picograd.numel(picograd.Tensor([[1, 2]]))
    2
    """
    return input.numel()


@composed(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Tell whether the dtype is a float.

    >>> picograd.is_floating_point(picograd.Tensor([1]))
    False
    """
    return input.dtype.is_float


@composed()
def is_conj(input: Tensor) -> bool:
    """Tell whether a conjugate is still to be taken: never, `conj` takes it at once.

    >>> picograd.is_conj(picograd.Tensor([1.0]))
    False
    """
    return False


@composed()
def is_neg(input: Tensor) -> bool:
    """Tell whether a tensor is still to be negated: never, `neg` does it at once.

    >>> picograd.is_neg(picograd.Tensor([-1.0]))
    False
    """
    return False


@composed()
def resolve_conj(input: Tensor) -> Tensor:
    """Take a conjugate that waits: there is none, so this is the tensor itself.

    >>> picograd.Tensor([1.0, -2.0]).resolve_conj().tolist()
    [1.0, -2.0]
    """
    return input


@composed()
def resolve_neg(input: Tensor) -> Tensor:
    """Negate where that waits: nothing does, so this is the tensor itself.

    >>> picograd.Tensor([1.0, -2.0]).resolve_neg().tolist()
    [1.0, -2.0]
    """
    return input


@composed()
def is_signed(input: Tensor) -> bool:
    """Tell whether the dtype has negative numbers.

    >>> picograd.Tensor([1]).is_signed()
    True
    """
    return input.dtype.kind in ("int", "float", "complex")


@composed(function=False)
def is_contiguous(input: Tensor) -> bool:
    """Tell whether elements lie in row-major order in the memory that the tensor shows.

    >>> picograd.Tensor([[1, 2], [3, 4]]).T.is_contiguous()
    False
    """
    strides = aliasing.strides_of(aliasing.as_passed(input, "strides"))
    order = zip(input.shape, strides, row_major(input.shape))
    return 0 in input.shape or all(size == 1 or ours == wanted for size, ours, wanted in order)


@composed()
def get_device(input: Tensor) -> int:
    """Give the number of the GPU a tensor lives on, -1 on the CPU.

    >>> picograd.Tensor([1], device="cpu").get_device()
    -1
    """
    _, _, number = input.device.partition(":")
    return -1 if is_host(input.device) else int(number or 0)


@composed(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Convert to the dtype, and copy to the device, of another tensor.

    >>> picograd.Tensor([1]).type_as(picograd.Tensor([1.0])).tolist()
    [1.0]
    """
    return input.to(other)
