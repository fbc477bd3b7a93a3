"""Activations as modules, so that they fit into Sequential.

`inplace` writes the result over the input, as in PyTorch; a result of its own costs no more.
"""

from collections.abc import Callable
from typing import Any

from picograd.errors import DTypeError, ShapeError
from picograd.nn import functional
from picograd.nn.family import Family
from picograd.nn.init import constant_, constant_values
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.tensor import Tensor


class Plain(Family):
    """This class is the base of activations without settings."""

    function: Callable[..., Tensor]

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function of the class."""
        return self.function(input)


class Activation(Family):
    """This class is the base of activations that may write their result over the input."""

    function: Callable[..., Tensor]

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Describe the settings, and `inplace` where it was asked for."""
        settings = [super().extra_repr()] if self._shown else []
        return ", ".join(settings + ["inplace=True"] * bool(self.inplace))

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function of the class."""
        return self.function(input, self.inplace)


class Adjusted(Activation):
    """This class is the base of those whose function takes `settings` of the class before that."""

    settings: tuple[str, ...] = ()

    def __init_subclass__(cls, **own: Any) -> None:
        """Show the settings by their names."""
        super().__init_subclass__(**own)
        cls._shown = ", ".join(f"{name}={{self.{name}}}" for name in cls.settings)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function of the class."""
        values = [getattr(self, name) for name in self.settings]
        return self.function(input, *values, self.inplace)


def whole_or_none(module: Any, dim: Any) -> Any:
    """Check the axis of a module that is given no other option; a tensor is for its call."""
    if isinstance(dim, Tensor):
        name = type(module).__name__
        raise DTypeError(name, "dim is a tensor", f"make it, then call it: {name}(-1)(input)")
    return dim


class Shrink(Family):
    """This class is the base of activations that change what is within `lambd` of 0."""

    function: Callable[..., Tensor]
    _shown = "{self.lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function of the class."""
        return self.function(input, self.lambd)


class AlongAxis(Family):
    """This class is the base of activations along an axis; None chooses one by the rank."""

    function: Callable[..., Tensor]
    _shown = "dim={self.dim}"

    def __init__(self, dim: int | None = None) -> None:
        self.dim = whole_or_none(self, dim)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function of the class."""
        return self.function(input, self.dim)


class ReLU(Activation, function=functional.relu):
    """This class computes max(x, 0).

    >>> from picograd import Tensor, nn
    >>> nn.ReLU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """


class ReLU6(Activation, function=functional.relu6):
    """This class computes min(max(x, 0), 6).

    >>> from picograd import Tensor, nn
    >>> nn.ReLU6()(Tensor([-1.0, 3.0, 8.0])).tolist()
    [0.0, 3.0, 6.0]
    """

    min_val, max_val = 0.0, 6.0


class LeakyReLU(Adjusted, function=functional.leaky_relu, settings=("negative_slope",)):
    """This class computes x where positive, else negative_slope * x.

    >>> from picograd import Tensor, nn
    >>> nn.LeakyReLU(0.5)(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.5, 0.0, 2.0]
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        self.negative_slope = negative_slope
        self.inplace = inplace


class PReLU(Module):
    """This class is the leaky ReLU with learnt slopes: one, or one per channel (axis 1).

    >>> from picograd import Tensor, nn
    >>> nn.PReLU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.25, 0.0, 2.0]
    """

    _shown = "num_parameters={self.num_parameters}"

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.num_parameters = num_parameters
        self.init = init
        self.weight: Parameter = Parameter(
            constant_values((num_parameters,), self.init, device, dtype)
        )

    def reset_parameters(self) -> None:
        """Set the slopes to what they began with."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the slopes where x is not positive."""
        return functional.prelu(input, self.weight)


class RReLU(Activation):
    """This class is the leaky ReLU with slopes drawn for each element while training.

    >>> from picograd import Tensor, nn
    >>> nn.RReLU(0.5, 0.5)(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.5, 0.0, 2.0]
    """

    _shown = "lower={self.lower}, upper={self.upper}"

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply random slopes, or their middle in evaluation mode."""
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class ELU(Adjusted, function=functional.elu, settings=("alpha",)):
    """This class computes x where positive, else alpha * (exp(x) - 1).

    >>> from picograd import Tensor, nn
    >>> nn.ELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.6321..., 0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace


class CELU(Adjusted, function=functional.celu, settings=("alpha",)):
    """This class computes max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).

    >>> from picograd import Tensor, nn
    >>> nn.CELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.6321..., 0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha
        self.inplace = inplace


class SELU(Activation, function=functional.selu):
    """This class is the scaled ELU, which keeps mean 0 and variance 1.

    >>> from picograd import Tensor, nn
    >>> nn.SELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-1.1113..., 0.0, 2.1014...]
    """


class GELU(Module):
    """This class computes x * Phi(x), with `approximate="tanh"` by the tanh formula.

    >>> from picograd import Tensor, nn
    >>> nn.GELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.1586..., 0.0, 1.9544...]
    """

    _shown = "approximate={self.approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply GELU to each element."""
        return functional.gelu(input, approximate=self.approximate)


class SiLU(Activation, function=functional.silu):
    """This class computes x * sigmoid(x).

    >>> from picograd import Tensor, nn
    >>> nn.SiLU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.2689..., 0.0, 1.7615...]
    """


class Mish(Activation, function=functional.mish):
    """This class computes x * tanh(softplus(x)).

    >>> from picograd import Tensor, nn
    >>> nn.Mish()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.3034..., 0.0, 1.9439...]
    """


class Hardswish(Activation, function=functional.hardswish):
    """This class computes x * relu6(x + 3) / 6.

    >>> from picograd import Tensor, nn
    >>> nn.Hardswish()(Tensor([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """

    extra_repr = Family.extra_repr  # as in PyTorch, which leaves `inplace` out here


class Hardsigmoid(Activation, function=functional.hardsigmoid):
    """This class computes relu6(x + 3) / 6.

    >>> from picograd import Tensor, nn
    >>> nn.Hardsigmoid()(Tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    extra_repr = Family.extra_repr  # as in PyTorch, which leaves `inplace` out here


class Hardtanh(Adjusted, function=functional.hardtanh, settings=("min_val", "max_val")):
    """This class limits values to [min_val, max_val].

    >>> from picograd import Tensor, nn
    >>> nn.Hardtanh()(Tensor([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace


class Softplus(Module):
    """This class computes log(1 + exp(beta * x)) / beta; x itself above the threshold.

    >>> from picograd import Tensor, nn
    >>> nn.Softplus()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.3132..., 0.6931..., 2.1269...]
    """

    _shown = "beta={self.beta}, threshold={self.threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply softplus to each element."""
        return functional.softplus(input, self.beta, self.threshold)


class Softsign(Plain, function=functional.softsign):
    """This class computes x / (1 + |x|).

    >>> from picograd import Tensor, nn
    >>> nn.Softsign()(Tensor([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """


class Softshrink(Shrink, function=functional.softshrink):
    """This class moves elements by lambd towards 0, not past it.

    >>> from picograd import Tensor, nn
    >>> nn.Softshrink()(Tensor([-1.0, 0.25, 2.0])).tolist()
    [-0.5, 0.0, 1.5]
    """


class Hardshrink(Shrink, function=functional.hardshrink):
    """This class zeroes elements in [-lambd, lambd].

    >>> from picograd import Tensor, nn
    >>> nn.Hardshrink()(Tensor([-1.0, 0.25, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """


class Tanhshrink(Plain, function=functional.tanhshrink):
    """This class computes x - tanh(x).

    >>> from picograd import Tensor, nn
    >>> nn.Tanhshrink()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.2384..., 0.0, 1.0359...]
    """


class Threshold(Adjusted, function=functional.threshold, settings=("threshold", "value")):
    """This class replaces elements up to a threshold by a value.

    >>> from picograd import Tensor, nn
    >>> nn.Threshold(1.0, 9.0)(Tensor([-1.0, 0.5, 2.0])).tolist()
    [9.0, 9.0, 2.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold = threshold
        self.value = value
        self.inplace = inplace


class Tanh(Plain, function=functional.tanh):
    """This class computes tanh(x).

    >>> from picograd import Tensor, nn
    >>> nn.Tanh()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.7615..., 0.0, 0.9640...]
    """


class Sigmoid(Plain, function=functional.sigmoid):
    """This class computes 1 / (1 + exp(-x)).

    >>> from picograd import Tensor, nn
    >>> nn.Sigmoid()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.2689..., 0.5, 0.8807...]
    """


class LogSigmoid(Plain, function=functional.logsigmoid):
    """This class computes log(1 / (1 + exp(-x))).

    >>> from picograd import Tensor, nn
    >>> nn.LogSigmoid()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-1.3132..., -0.6931..., -0.1269...]
    """


class GLU(AlongAxis, function=functional.glu):
    """This class halves an axis and computes a * sigmoid(b): (..., 2 N) -> (..., N).

    >>> from picograd import Tensor, nn
    >>> nn.GLU()(Tensor([1.0, 2.0, 0.0, 0.0])).tolist()
    [0.5, 1.0]
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = whole_or_none(self, dim)


class Softmax(AlongAxis, function=functional.softmax):
    """This class normalises exp(x) to sum 1 along one axis (None: see `functional.softmax`).

    >>> from picograd import Tensor, nn
    >>> nn.Softmax(0)(Tensor([1.0, 1.0, 1.0, 1.0])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """


class Softmin(AlongAxis, function=functional.softmin):
    """This class normalises exp(-x) to sum 1 along one axis.

    >>> from picograd import Tensor, nn
    >>> nn.Softmin(0)(Tensor([1.0, 1.0, 1.0, 1.0])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """


class Softmax2d(Module):
    """This class applies softmax over the channels of (B, C, H, W) or (C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.Softmax2d()(Tensor([[[[1.0]], [[1.0]]]])).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply softmax along axis -3. Raises ShapeError for an input of other than 3 or 4 axes."""
        if input.ndim not in (3, 4):
            problem = f"needs (B, C, H, W) or (C, H, W), got {tuple(input.shape)}"
            raise ShapeError("Softmax2d", problem, "use nn.Softmax(axis) for other shapes")
        return functional.softmax(input, -3)


class LogSoftmax(AlongAxis, function=functional.log_softmax):
    """This class computes log(softmax(x)) along one axis without overflow.

    >>> from picograd import Tensor, nn
    >>> nn.LogSoftmax(0)(Tensor([1.0, 1.0, 1.0])).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """
