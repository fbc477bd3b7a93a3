"""PyTorch's `torch.ao.quantization` for models that run in floats: no tensor is quantised."""

from typing import Any, NoReturn

from picograd.errors import DTypeError
from picograd.helpers import lying_along
from picograd.nn.module import Module
from picograd.nn.shaping import Identity
from picograd.tensor.public import cat
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.custom import Function


class QuantStub(Identity):
    """This class marks where a model that was quantised would leave floats."""

    def __init__(self, qconfig: Any = None) -> None:
        """Take PyTorch's settings."""


class DeQuantStub(QuantStub):
    """This class marks where it would come back to them."""


class FloatFunctional(Module):
    """This class does arithmetic whose results a quantised model would observe.

    >>> from picograd.nn.quantization_names import FloatFunctional
    >>> FloatFunctional().add_relu(Tensor([1.0]), Tensor([-2.0])).tolist()
    [0.0]
    """

    def add(self, x: Tensor, y: Any) -> Tensor:
        """Add."""
        return x + y

    def mul(self, x: Tensor, y: Any) -> Tensor:
        """Multiply."""
        return x * y

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """Add, and cut at 0."""
        return (x + y).relu()

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Join."""
        return cat(x, dim)

    add_scalar, mul_scalar = add, mul


class ObserverBase(Module):
    """This class would watch values to find their ranges; programs import it and derive from it."""


class QConfig(tuple[Any, ...]):
    """This class would name the observers of a quantised model."""


HistogramObserver = MinMaxObserver = PerChannelMinMaxObserver = ObserverBase
MovingAverageMinMaxObserver = PlaceholderObserver = FakeQuantizeBase = ObserverBase


class FakeQuantize(Function):
    """This class rounds to a grid; inside its limits the gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Any, zero: Any, low: int, high: int) -> Tensor:
        """Round to the nearest step, cut at the limits, and give floats."""
        step = (x * (1 / scale) + zero).round()
        kept = step.clamp(low, high)
        ctx.save_for_backward(step == kept)
        return (kept - zero) * scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Pass on what was not cut."""
        return gradient * ctx.saved_tensors[0], None, None, None, None


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """Round floats to the grid of integers that a quantised model would store.

    >>> fake = picograd.fake_quantize_per_tensor_affine
    >>> fake(Tensor([0.12, 9.0]), 0.1, 0, 0, 15).tolist()
    [0.1000..., 1.5]
    """
    return FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Round as `fake_quantize_per_tensor_affine`, with a grid for each place along an axis."""
    sizes = lying_along(axis, input.ndim)
    grid = scale.reshape(sizes), zero_point.reshape(sizes), quant_min, quant_max
    return fake_quantize_per_tensor_affine(input, *grid)


def quantize_dynamic(*given: Any, **options: Any) -> NoReturn:
    """Raise: there are no quantised tensors."""
    fix = "run the model in bfloat16, or load a quantised ONNX file"
    raise DTypeError("quantization", "there are no quantised tensors", fix)


prepare = prepare_qat = convert = quantize = quantize_dynamic
fuse_modules = fuse_modules_qat = quantize_dynamic
