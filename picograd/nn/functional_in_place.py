"""Activations that overwrite their input, and return it.

The shape and dtype stay. GradientError for a leaf that asked for gradients, as for any change in
place; a computed tensor keeps its gradient.
"""

from picograd.nn.functional_activation import elu, hardtanh, leaky_relu
from picograd.nn.functional_basic import relu
from picograd.tensor.core.recording import rewrite
from picograd.tensor.network.activation_functions import celu, rrelu, selu
from picograd.tensor.network.activation_functions import threshold as cut
from picograd.tensor.tensor import Tensor


def relu_(input: Tensor) -> Tensor:
    """Overwrite with max(x, 0).

    >>> from picograd import Tensor, nn
    >>> x = Tensor([-1.0, 2.0])
    >>> nn.functional.relu_(x) is x, x.tolist()
    (True, [0.0, 2.0])
    """
    return _written(input, "relu", relu(input))


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Overwrite with x, or x * negative_slope below 0.

    >>> from picograd import Tensor, nn
    >>> nn.functional.leaky_relu_(Tensor([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    return _written(input, "leaky_relu", leaky_relu(input, negative_slope))


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """Overwrite with leaky_relu of a slope drawn from [lower, upper), or their mean.

    >>> from picograd import Tensor, nn
    >>> nn.functional.rrelu_(Tensor([-1.0, 2.0]), 0.25, 0.75).tolist()
    [-0.5, 2.0]
    """
    return _written(input, "rrelu", rrelu(input, lower, upper, training))


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Overwrite with x, or alpha (exp(x) - 1) below 0.

    >>> from picograd import Tensor, nn
    >>> nn.functional.elu_(Tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _written(input, "elu", elu(input, alpha))


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Overwrite with x, or alpha (exp(x / alpha) - 1) below 0.

    >>> from picograd import Tensor, nn
    >>> nn.functional.celu_(Tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _written(input, "celu", celu(input, alpha))


def selu_(input: Tensor) -> Tensor:
    """Overwrite with selu(x).

    >>> from picograd import Tensor, nn
    >>> round(nn.functional.selu_(Tensor([1.0])).item(), 4)
    1.0507
    """
    return _written(input, "selu", selu(input))


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Overwrite with x cut off at both bounds.

    >>> from picograd import Tensor, nn
    >>> nn.functional.hardtanh_(Tensor([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    return _written(input, "hardtanh", hardtanh(input, min_val, max_val))


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Overwrite x with `value` wherever it is not above `threshold`.

    >>> from picograd import Tensor, nn
    >>> nn.functional.threshold_(Tensor([1.0, 3.0]), 2.0, 9.0).tolist()
    [9.0, 3.0]
    """
    return _written(input, "threshold", cut(input, threshold, value))


def _written(input: Tensor, name: str, result: Tensor) -> Tensor:
    written: Tensor = rewrite(input, name, result)
    return written
