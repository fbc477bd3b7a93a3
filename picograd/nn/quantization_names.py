"""PyTorch's `torch.ao.quantization` for models that run in floats: no tensor is quantised."""

from typing import Any, NoReturn

from picograd.errors import DTypeError
from picograd.nn.module import Module
from picograd.nn.shaping import Identity
from picograd.tensor.public import cat
from picograd.tensor.tensor import Tensor


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
MovingAverageMinMaxObserver = PlaceholderObserver = ObserverBase


def quantize_dynamic(*given: Any, **options: Any) -> NoReturn:
    """Raise: there are no quantised tensors."""
    fix = "run the model in bfloat16, or load a quantised ONNX file"
    raise DTypeError("quantization", "there are no quantised tensors", fix)


prepare = prepare_qat = convert = quantize = quantize_dynamic
fuse_modules = fuse_modules_qat = quantize_dynamic
