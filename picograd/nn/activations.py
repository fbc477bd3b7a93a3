"""Activations as modules, so that they fit into Sequential.

`inplace` writes the result over the input, as in PyTorch; a result of its own costs no more.
"""

from typing import Any

from picograd.errors import DTypeError
from picograd.nn import functional
from picograd.nn.init import constant
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.tensor.core.annotations import DeviceLike, DTypeLike
from picograd.tensor.tensor import Tensor


def shown_in_place(module: Any, settings: str = "") -> str:
    """Write settings as PyTorch does, with `inplace` where it was asked for."""
    extra = ["inplace=True"] if module.inplace else []
    return ", ".join(([settings] if settings else []) + extra)


def whole_or_none(module: Any, dim: Any) -> Any:
    """Check the axis of a module that is given no other option; a tensor is for its call."""
    if isinstance(dim, Tensor):
        name = type(module).__name__
        raise DTypeError(name, "dim is a tensor", f"make it, then call it: {name}(-1)(input)")
    return dim


class ReLU(Module):
    """This class computes max(x, 0).

    >>> from picograd import Tensor, nn
    >>> nn.ReLU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply ReLU to each element."""
        return functional.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class ReLU6(Module):
    """This class computes min(max(x, 0), 6).

    >>> from picograd import Tensor, nn
    >>> nn.ReLU6()(Tensor([-1.0, 3.0, 8.0])).tolist()
    [0.0, 3.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Limit each element to [0, 6]."""
        return functional.relu6(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class LeakyReLU(Module):
    """This class computes x where positive, else negative_slope * x.

    >>> from picograd import Tensor, nn
    >>> nn.LeakyReLU(0.5)(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.5, 0.0, 2.0]
    """

    inplace: bool
    negative_slope: float

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the leaky ReLU to each element."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self, f"negative_slope={self.negative_slope}")


class PReLU(Module):
    """This class is the leaky ReLU with learnt slopes: one, or one per channel (axis 1).

    >>> from picograd import Tensor, nn
    >>> nn.PReLU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.25, 0.0, 2.0]
    """

    init: float
    num_parameters: int
    weight: Parameter

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(constant((num_parameters,), self.init, device, dtype))

    def forward(self, input: Tensor) -> Tensor:
        """Apply the slopes where x is not positive."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """This class is the leaky ReLU with slopes drawn for each element while training.

    >>> from picograd import Tensor, nn
    >>> nn.RReLU(0.5, 0.5)(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.5, 0.0, 2.0]
    """

    inplace: bool
    lower: float
    upper: float

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply random slopes, or their middle in evaluation mode."""
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self, f"lower={self.lower}, upper={self.upper}")


class ELU(Module):
    """This class computes x where positive, else alpha * (exp(x) - 1).

    >>> from picograd import Tensor, nn
    >>> nn.ELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.6321..., 0.0, 2.0]
    """

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply ELU to each element."""
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self, f"alpha={self.alpha}")


class CELU(Module):
    """This class computes max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).

    >>> from picograd import Tensor, nn
    >>> nn.CELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.6321..., 0.0, 2.0]
    """

    alpha: float
    inplace: bool

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply CELU to each element."""
        return functional.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self, f"alpha={self.alpha}")


class SELU(Module):
    """This class is the scaled ELU, which keeps mean 0 and variance 1.

    >>> from picograd import Tensor, nn
    >>> nn.SELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-1.1113..., 0.0, 2.1014...]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply SELU to each element."""
        return functional.selu(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class GELU(Module):
    """This class computes x * Phi(x), with `approximate="tanh"` by the tanh formula.

    >>> from picograd import Tensor, nn
    >>> nn.GELU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.1586..., 0.0, 1.9544...]
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply GELU to each element."""
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """This class computes x * sigmoid(x).

    >>> from picograd import Tensor, nn
    >>> nn.SiLU()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.2689..., 0.0, 1.7615...]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply SiLU to each element."""
        return functional.silu(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class Mish(Module):
    """This class computes x * tanh(softplus(x)).

    >>> from picograd import Tensor, nn
    >>> nn.Mish()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.3034..., 0.0, 1.9439...]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply Mish to each element."""
        return functional.mish(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class Hardswish(Module):
    """This class computes x * relu6(x + 3) / 6.

    >>> from picograd import Tensor, nn
    >>> nn.Hardswish()(Tensor([0.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply hardswish to each element."""
        return functional.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class Hardsigmoid(Module):
    """This class computes relu6(x + 3) / 6.

    >>> from picograd import Tensor, nn
    >>> nn.Hardsigmoid()(Tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply hardsigmoid to each element."""
        return functional.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self)


class Hardtanh(Module):
    """This class limits values to [min_val, max_val].

    >>> from picograd import Tensor, nn
    >>> nn.Hardtanh()(Tensor([-3.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """

    inplace: bool
    max_val: float
    min_val: float

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Limit each element."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self, f"min_val={self.min_val}, max_val={self.max_val}")


class Softplus(Module):
    """This class computes log(1 + exp(beta * x)) / beta; x itself above the threshold.

    >>> from picograd import Tensor, nn
    >>> nn.Softplus()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.3132..., 0.6931..., 2.1269...]
    """

    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply softplus to each element."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """This class computes x / (1 + |x|).

    >>> from picograd import Tensor, nn
    >>> nn.Softsign()(Tensor([-1.0, 0.0, 3.0])).tolist()
    [-0.5, 0.0, 0.75]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply softsign to each element."""
        return functional.softsign(input)


class Softshrink(Module):
    """This class moves elements by lambd towards 0, not past it.

    >>> from picograd import Tensor, nn
    >>> nn.Softshrink()(Tensor([-1.0, 0.25, 2.0])).tolist()
    [-0.5, 0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Shrink each element."""
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return str(self.lambd)


class Hardshrink(Module):
    """This class zeroes elements in [-lambd, lambd].

    >>> from picograd import Tensor, nn
    >>> nn.Hardshrink()(Tensor([-1.0, 0.25, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Shrink each element."""
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return str(self.lambd)


class Tanhshrink(Module):
    """This class computes x - tanh(x).

    >>> from picograd import Tensor, nn
    >>> nn.Tanhshrink()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.2384..., 0.0, 1.0359...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Shrink each element."""
        return functional.tanhshrink(input)


class Threshold(Module):
    """This class replaces elements up to a threshold by a value.

    >>> from picograd import Tensor, nn
    >>> nn.Threshold(1.0, 9.0)(Tensor([-1.0, 0.5, 2.0])).tolist()
    [9.0, 9.0, 2.0]
    """

    inplace: bool
    threshold: float
    value: float

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Replace elements."""
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return shown_in_place(self, f"threshold={self.threshold}, value={self.value}")


class Tanh(Module):
    """This class computes tanh(x).

    >>> from picograd import Tensor, nn
    >>> nn.Tanh()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-0.7615..., 0.0, 0.9640...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply tanh to each element."""
        return functional.tanh(input)


class Sigmoid(Module):
    """This class computes 1 / (1 + exp(-x)).

    >>> from picograd import Tensor, nn
    >>> nn.Sigmoid()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.2689..., 0.5, 0.8807...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the sigmoid to each element."""
        return functional.sigmoid(input)


class LogSigmoid(Module):
    """This class computes log(1 / (1 + exp(-x))).

    >>> from picograd import Tensor, nn
    >>> nn.LogSigmoid()(Tensor([-1.0, 0.0, 2.0])).tolist()
    [-1.3132..., -0.6931..., -0.1269...]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the logarithm of the sigmoid to each element."""
        return functional.logsigmoid(input)


class GLU(Module):
    """This class halves an axis and computes a * sigmoid(b): (..., 2 N) -> (..., N).

    >>> from picograd import Tensor, nn
    >>> nn.GLU()(Tensor([1.0, 2.0, 0.0, 0.0])).tolist()
    [0.5, 1.0]
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = whole_or_none(self, dim)

    def forward(self, input: Tensor) -> Tensor:
        """Gate the first half by the second."""
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}"


class Softmax(Module):
    """This class normalises exp(x) to sum 1 along one axis (None: see `functional.softmax`).

    >>> from picograd import Tensor, nn
    >>> nn.Softmax(0)(Tensor([1.0, 1.0, 1.0, 1.0])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = whole_or_none(self, dim)

    def forward(self, input: Tensor) -> Tensor:
        """Apply softmax along the axis."""
        return functional.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}"


class Softmin(Module):
    """This class normalises exp(-x) to sum 1 along one axis.

    >>> from picograd import Tensor, nn
    >>> nn.Softmin(0)(Tensor([1.0, 1.0, 1.0, 1.0])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = whole_or_none(self, dim)

    def forward(self, input: Tensor) -> Tensor:
        """Apply softmin along the axis."""
        return functional.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}"


class Softmax2d(Module):
    """This class applies softmax over the channels of (B, C, H, W) or (C, H, W).

    >>> from picograd import Tensor, nn
    >>> nn.Softmax2d()(Tensor([[[[1.0]], [[1.0]]]])).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply softmax along axis -3."""
        return functional.softmax(input, -3)


class LogSoftmax(Module):
    """This class computes log(softmax(x)) along one axis without overflow.

    >>> from picograd import Tensor, nn
    >>> nn.LogSoftmax(0)(Tensor([1.0, 1.0, 1.0])).tolist()
    [-1.0986..., -1.0986..., -1.0986...]
    """

    def __init__(self, dim: int | None = None) -> None:
        self.dim = whole_or_none(self, dim)

    def forward(self, input: Tensor) -> Tensor:
        """Apply log-softmax along the axis."""
        return functional.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Describe the settings."""
        return f"dim={self.dim}"
