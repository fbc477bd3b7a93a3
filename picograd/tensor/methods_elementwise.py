"""Methods of `Tensor` by kind. Functions of single elements, and activations.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any

from picograd.dtype import bool_
from picograd.graph import build_composite as composite
from picograd.tensor import activation, elementwise, indexing, special
from picograd.tensor.recording import Other, Recorded, Same, apply


class ElementwiseMethods(Recorded):
    """This class holds methods of `Tensor`. Functions of single elements, and activations."""

    __slots__ = ()

    # elementwise functions

    def exp(self: Same) -> Same:
        """Compute e ** x."""
        return apply(elementwise.unary, "exp", self)

    def exp2(self: Same) -> Same:
        """Compute 2 ** x."""
        return apply(elementwise.exp2, self)

    def expm1(self: Same) -> Same:
        """Compute e ** x - 1, exact near 0."""
        return apply(special.expm1, self)

    def log(self: Same) -> Same:
        """Compute the natural logarithm."""
        return apply(elementwise.unary, "log", self)

    def log2(self: Same) -> Same:
        """Compute the logarithm to base 2."""
        return apply(elementwise.scaled_log, self, elementwise.LOG_2)

    def log10(self: Same) -> Same:
        """Compute the logarithm to base 10."""
        return apply(elementwise.scaled_log, self, elementwise.LOG_10)

    def log1p(self: Same) -> Same:
        """Compute log(1 + x), exact near 0."""
        return apply(special.log1p, self)

    def sqrt(self: Same) -> Same:
        """Compute the square root."""
        return apply(elementwise.unary, "sqrt", self)

    def rsqrt(self: Same) -> Same:
        """Compute 1 / sqrt(x)."""
        return apply(elementwise.unary, "rsqrt", self)

    def reciprocal(self: Same) -> Same:
        """Compute 1 / x."""
        return apply(elementwise.unary, "reciprocal", self)

    def square(self: Same) -> Same:
        """Compute x * x."""
        return apply(elementwise.power, "pow", self, 2)

    def sin(self: Same) -> Same:
        """Compute the sine."""
        return apply(elementwise.unary, "sin", self)

    def cos(self: Same) -> Same:
        """Compute the cosine."""
        return apply(elementwise.unary, "cos", self)

    def tan(self: Same) -> Same:
        """Compute the tangent."""
        return apply(special.tan, self)

    def tanh(self: Same) -> Same:
        """Compute the hyperbolic tangent."""
        return apply(elementwise.unary, "tanh", self)

    def erf(self: Same) -> Same:
        """Compute the error function."""
        return apply(elementwise.unary, "erf", self)

    def abs(self: Same) -> Same:
        """Compute |x|."""
        return apply(elementwise.absolute, self)

    def sign(self: Same) -> Same:
        """Compute -1, 0 or 1."""
        return apply(elementwise.sign, self)

    def floor(self: Same) -> Same:
        """Round down."""
        return apply(elementwise.rounding, "floor", self)

    def ceil(self: Same) -> Same:
        """Round up."""
        return apply(elementwise.rounding, "ceil", self)

    def round(self: Same) -> Same:
        """Round to the nearest whole number, halves to even."""
        return apply(elementwise.rounding, "round", self)

    def trunc(self: Same) -> Same:
        """Round towards 0."""
        return apply(elementwise.rounding, "trunc", self)

    def maximum(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute the larger of two; NaN propagates."""
        return apply(elementwise.arithmetic, "maximum", self, other)

    def minimum(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute the smaller of two; NaN propagates."""
        return apply(elementwise.arithmetic, "minimum", self, other)

    def clamp(
        self: Same,
        min: Other = None,
        max: Other = None,
    ) -> Same:
        """Limit values to [min, max]."""
        return apply(elementwise.clamp, self, min, max)

    clip = clamp

    def lerp(
        self: Same,
        end: Other,
        weight: Other,
    ) -> Same:
        """Interpolate: self + weight * (end - self)."""
        return apply(elementwise.lerp, self, end, weight)

    def where(
        self: Same,
        condition: Any,
        other: Any,
    ) -> Same:
        """Choose: `x.where(condition, y)`; a bool tensor is the condition: `mask.where(x, y)`."""
        if self.dtype is bool_:
            return where(self, condition, other)
        return where(condition, self, other)

    def masked_fill(
        self: Same,
        mask: Same,
        value: Other,
    ) -> Same:
        """Replace elements where the mask holds."""
        return apply(indexing.masked_fill, self, mask, value)

    # activations

    def relu(self: Same) -> Same:
        """Compute max(x, 0)."""
        return apply(activation.relu, self)

    def sigmoid(self: Same) -> Same:
        """Compute 1 / (1 + exp(-x))."""
        return apply(activation.sigmoid, self)

    def logsigmoid(self: Same) -> Same:
        """Compute log(sigmoid(x))."""
        return apply(activation.log_sigmoid, self)

    def silu(self: Same) -> Same:
        """Compute x * sigmoid(x)."""
        return apply(composite.silu, self)

    def gelu(
        self: Same,
        approximate: str = "none",
    ) -> Same:
        """Compute x * Phi(x); approximate="tanh" for the usual approximation."""
        return apply(composite.gelu, self, approximate)

    def leaky_relu(
        self: Same,
        negative_slope: Any = 0.01,
    ) -> Same:
        """Compute x where positive, else negative_slope * x."""
        return apply(activation.leaky_relu, self, negative_slope)

    def elu(
        self: Same,
        alpha: Any = 1.0,
    ) -> Same:
        """Compute x where positive, else alpha * (exp(x) - 1)."""
        return apply(activation.elu, self, alpha)

    def softplus(
        self: Same,
        beta: Any = 1.0,
        threshold: Any = 20.0,
    ) -> Same:
        """Compute log(1 + exp(beta * x)) / beta."""
        return apply(activation.softplus, self, beta, threshold)

    def hardtanh(
        self: Same,
        min_val: Any = -1.0,
        max_val: Any = 1.0,
    ) -> Same:
        """Limit values to [min_val, max_val]."""
        return apply(activation.hard_limit, self, min_val, max_val)

    def relu6(self: Same) -> Same:
        """Compute min(max(x, 0), 6)."""
        return apply(activation.hard_limit, self, 0, 6)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Choose from `a` where the condition holds, else from `b`; all broadcast."""
    if not isinstance(condition, Recorded):
        like = a if isinstance(a, Recorded) else b
        condition = Recorded.kind(
            condition, device=like.device if isinstance(like, Recorded) else None
        )
    return apply(elementwise.where, condition, a, b)
