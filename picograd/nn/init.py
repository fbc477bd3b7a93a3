"""Initial values: PyTorch's defaults for layers, and the usual schemes in place (`name_`)."""

import math
from typing import Any

import numpy as np

from picograd.dtype import default_float, to_dtype
from picograd.errors import DTypeError, ShapeError, ValueRangeError, check_known
from picograd.graph.room import check_size
from picograd.helpers import product
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, Sizes
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.operands import fitting_integer
from picograd.tensor.linalg import decompositions
from picograd.tensor.making.creation import device_named
from picograd.tensor.making.random import Generator
from picograd.tensor.tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

Shape = tuple[int, ...]
LINEAR = ("linear", *(f"conv{way}{axes}d" for way in ("", "_transpose") for axes in (1, 2, 3)))
GAINS = {
    **dict.fromkeys(LINEAR, 1.0),
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def per_axis(op: str, value: Sizes, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Repeat one number for every spatial axis, or check that there is one number per axis."""
    check_sizes(op, least, **{name: value})
    sizes = (value,) if isinstance(value, int) else tuple(value)
    sizes = sizes * count if len(sizes) == 1 else sizes
    if len(sizes) != count:
        problem = f"{name}={value} has {len(sizes)} sizes, {count} wanted"
        raise ShapeError(op, problem, "pass one int, or one for every spatial axis")
    return sizes


def check_sizes(op: str, least: int = 0, **sizes: Any) -> None:
    """Raise unless every named size is an int, or a tuple of ints, of at least `least`."""
    for name, value in sizes.items():
        for size in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
                raise DTypeError(op, f"{name} must be an int, not {size!r}", "pass a whole number")
            if size < least:
                text = f"{name}={value} is less than {least}"
                raise ValueRangeError(op, text, f"pass {least} or more")


def uniform_parameter(
    shape: Shape, bound: float, device: DeviceLike | None = None, dtype: DTypeLike | None = None
) -> Parameter:
    """Draw from [-bound, bound)."""
    return Parameter(Tensor.uniform(*shape, low=-bound, high=bound, device=device, dtype=dtype))


def constant_values(
    shape: Shape, value: float, device: DeviceLike | None = None, dtype: DTypeLike | None = None
) -> Tensor:
    """Fill with one value, without a kernel: the tensor has a buffer."""
    wanted = default_float() if dtype is None else to_dtype(dtype)
    if wanted.is_integer:
        value = fitting_integer("constant_", value, wanted)
    if device_named(device) == "meta":
        return Tensor.full(shape, value, dtype=wanted, device="meta")
    check_size("Parameter", shape, wanted.itemsize)
    cell = np.array(value, wanted.numpy)
    return Tensor(np.broadcast_to(cell, shape), dtype=wanted, device=device)


def fan_in_bound(fan_in: int) -> float:
    """Bound of PyTorch's default for weights and biases: kaiming_uniform with a = sqrt(5)."""
    return 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0


def begin(module: Any, kind: type) -> None:
    """Draw the parameters of a layer by the `reset_parameters` of a class derived from it."""
    if type(module).reset_parameters is not kind.reset_parameters:  # type: ignore[attr-defined]
        module.reset_parameters()


def draw_again(module: Any, fan_in: int) -> None:
    """Draw the weight and the bias of a layer by PyTorch's default."""
    bound = fan_in_bound(fan_in)
    for parameter in (module.weight, module.bias):
        if parameter is not None:
            uniform_(parameter, -bound, bound)


def begin_norm(module: Any) -> None:
    """Set the weight of a norm to ones and its bias to zeros."""
    if getattr(module, "weight", None) is not None:
        ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        zeros_(module.bias)


def calculate_fans(shape: Shape) -> tuple[int, int]:
    """Count inputs and outputs of one unit: weight (O, I, *K) -> (I * K, O * K)."""
    if len(shape) < 2:
        problem = f"fans of shape {tuple(shape)} are not defined"
        raise ShapeError("init", problem, "use a weight with two axes or more")
    field = product(shape[2:])
    return shape[1] * field, shape[0] * field


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Find the factor that keeps the variance through a nonlinearity.

    >>> from picograd import nn
    >>> nn.init.calculate_gain("relu")
    1.4142...
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in GAINS:
        names = ", ".join([*GAINS, "leaky_relu"])
        raise ValueRangeError("init", f"nonlinearity {nonlinearity!r} is unknown", f"use {names}")
    return GAINS[nonlinearity]


def _fill(tensor: Tensor, value: Tensor) -> Tensor:
    with no_grad():
        tensor.assign(value)
    return tensor


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Overwrite with values from [a, b)."""
    place: dict[str, Any] = dict(device=tensor.device, dtype=tensor.dtype, generator=generator)
    return _fill(tensor, Tensor.uniform(*tensor.shape, low=a, high=b, **place))


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Overwrite with normally distributed values."""
    place: dict[str, Any] = dict(device=tensor.device, dtype=tensor.dtype, generator=generator)
    return _fill(tensor, Tensor.normal(*tensor.shape, mean=mean, std=std, **place))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Overwrite with one value.

    >>> from picograd import Tensor, nn
    >>> nn.init.constant_(Tensor([1.0, 2.0]), 7.0).tolist()
    [7.0, 7.0]
    """
    return _fill(tensor, constant_values(tuple(tensor.shape), val, tensor.device, tensor.dtype))


def zeros_(tensor: Tensor) -> Tensor:
    """Overwrite with zeros.

    >>> from picograd import Tensor, nn
    >>> nn.init.zeros_(Tensor([5.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Overwrite with ones.

    >>> from picograd import Tensor, nn
    >>> nn.init.ones_(Tensor([5.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    return constant_(tensor, 1.0)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Overwrite with draws from a normal distribution inside [a, b].

    >>> from picograd import Tensor, nn
    >>> bool((nn.init.trunc_normal_(Tensor.zeros(9), a=0.0, b=1.0) >= 0).all())
    True
    """
    with no_grad():
        tensor.trunc_normal_(mean, std, a, b, generator=generator)
    return tensor


def eye_(tensor: Tensor) -> Tensor:
    """Overwrite a matrix with ones on its diagonal and zeros elsewhere.

    >>> from picograd import Tensor, nn
    >>> nn.init.eye_(Tensor.zeros(2, 3)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if len(tensor.shape) != 2:
        problem = f"a tensor of shape {tensor.shape} is no matrix"
        raise ShapeError("eye_", problem, "pass one with two axes")
    values = np.eye(*tensor.shape)
    return _fill(tensor, Tensor(values, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Overwrite the weight of a convolution so that it gives back its channels, in each group.

    Output channels beyond the input channels of a group are zeros.

    >>> from picograd import Tensor, nn
    >>> nn.init.dirac_(Tensor.zeros(1, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]
    """
    shape = tuple(tensor.shape)
    if len(shape) not in (3, 4, 5):
        problem = f"a tensor of shape {shape} is no weight of a convolution"
        raise ShapeError("dirac_", problem, "pass one with 3, 4 or 5 axes")
    if groups < 1 or shape[0] % groups:
        problem = f"{shape[0]} output channels are no multiple of {groups} groups"
        raise ValueRangeError("dirac_", problem, "choose groups that divide them")
    values = np.zeros(shape)
    middle = tuple(size // 2 for size in shape[2:])
    each = shape[0] // groups
    for channel in range(min(each, shape[1])):
        place = slice(channel, None, each), channel, *middle
        values[place] = 1.0
    return _fill(tensor, Tensor(values, dtype=tensor.dtype, device=tensor.device))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Overwrite by Glorot and Bengio (2010): bound gain * sqrt(6 / (fan_in + fan_out)).

    >>> from picograd import Tensor, nn
    >>> bool((nn.init.xavier_uniform_(Tensor.zeros(4, 2)).abs() <= 1).all())
    True
    """
    bound = gain * math.sqrt(6.0 / sum(calculate_fans(tuple(tensor.shape))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Overwrite by Glorot and Bengio (2010): std gain * sqrt(2 / (fan_in + fan_out)).

    >>> from picograd import Tensor, nn
    >>> nn.init.xavier_normal_(Tensor.zeros(3, 2)).shape
    (3, 2)
    """
    std = gain * math.sqrt(2.0 / sum(calculate_fans(tuple(tensor.shape))))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Overwrite by He et al. (2015): bound gain * sqrt(3 / fan).

    >>> from picograd import Tensor, nn
    >>> bound = 3**0.5
    >>> bool((nn.init.kaiming_uniform_(Tensor.zeros(3, 2)).abs() <= bound).all())
    True
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Overwrite by He et al. (2015): std gain / sqrt(fan).

    >>> from picograd import Tensor, nn
    >>> nn.init.kaiming_normal_(Tensor.zeros(3, 2)).shape
    (3, 2)
    """
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Overwrite by Saxe et al. (2014): rows, or columns if there are more rows, are orthonormal.

    Axes after the first count as one. Raises ShapeError for less than two axes.

    >>> from picograd import Tensor, nn
    >>> x = nn.init.orthogonal_(Tensor.zeros(2, 3))
    >>> bool((x @ x.T).allclose(Tensor.eye(2), atol=1e-5))
    True
    """
    if tensor.ndim < 2:
        problem = f"a tensor of shape {tensor.shape} has no rows and columns"
        raise ShapeError("orthogonal_", problem, "use one with two axes or more")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    draws = Tensor.randn(rows, columns, generator=generator, device=tensor.device)
    flat = draws.T if rows < columns else draws
    q, r = decompositions.qr(flat)
    q = q * r.diagonal().sign()  # so that the result is uniform among orthogonal matrices
    q = q.T if rows < columns else q
    return _fill(tensor, (q * gain).reshape(tensor.shape).cast(tensor.dtype))


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Overwrite by Martens (2010): normal draws, a share of them zero in each column.

    Raises ShapeError for what is no matrix.

    >>> from picograd import Tensor, nn
    >>> int((nn.init.sparse_(Tensor.ones(4, 3), 0.5) == 0).sum())
    6
    """
    if tensor.ndim != 2:
        problem = f"a tensor of shape {tensor.shape} is no matrix"
        raise ShapeError("sparse_", problem, "pass one with two axes")
    rows, columns = tensor.shape
    count = math.ceil(sparsity * rows)
    order = Tensor.rand(rows, columns, generator=generator, device=tensor.device).argsort(0)
    normal_(tensor, 0.0, std, generator)
    return _fill(tensor, tensor.detach().masked_fill(order.argsort(0) < count, 0.0))


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    check_known("init", "mode", mode, ("fan_in", "fan_out"))
    fans = calculate_fans(tuple(tensor.shape))
    return calculate_gain(nonlinearity, a) / math.sqrt(fans[mode == "fan_out"])


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Count inputs and outputs of a weight, under the name that PyTorch's programs know."""
    return calculate_fans(tuple(tensor.shape))


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Count the inputs or the outputs of a weight."""
    return calculate_fans(tuple(tensor.shape))[mode.lower() == "fan_out"]


# the names of older programs, and those that programs call inside no_grad
_no_grad_fill_, _no_grad_normal_, _no_grad_uniform_ = constant_, normal_, uniform_
_no_grad_zero_, _no_grad_trunc_normal_ = zeros_, trunc_normal_
xavier_uniform, xavier_normal = xavier_uniform_, xavier_normal_
kaiming_uniform, kaiming_normal = kaiming_uniform_, kaiming_normal_
orthogonal, sparse, dirac, eye = orthogonal_, sparse_, dirac_, eye_
uniform, normal, constant = uniform_, normal_, constant_
