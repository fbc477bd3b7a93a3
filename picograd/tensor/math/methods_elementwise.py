"""Methods of `Tensor` by kind. Functions of single elements, and activations.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Any, Final, overload

from picograd.dtype import bool_
from picograd.errors import DTypeError
from picograd.graph import build_composite as composite
from picograd.tensor.core.annotations import Tensor, TensorLike
from picograd.tensor.core.operands import UNSET
from picograd.tensor.core.recording import Recorded, Same, apply
from picograd.tensor.indexing import indexing
from picograd.tensor.math import elementwise, transcendental
from picograd.tensor.network import activation


class ElementwiseMethods(Recorded):
    """This class holds methods of `Tensor`. Functions of single elements, and activations."""

    __slots__ = ()

    # elementwise functions

    def exp(self: Same) -> Same:
        """Compute e ** x.

        >>> Tensor([0.0, 1.0, 2.0]).exp().tolist()
        [1.0, 2.7182..., 7.3890...]
        """
        return apply(elementwise.unary, "exp", self)

    def exp2(self: Same) -> Same:
        """Compute 2 ** x.

        >>> Tensor([0.0, 1.0, 3.0]).exp2().tolist()
        [1.0, 2.0, 8.0]
        """
        return apply(elementwise.unary, "exp2", self)

    def expm1(self: Same) -> Same:
        """Compute e ** x - 1, exact near 0.

        >>> Tensor([0.0, 1.0, 2.0]).expm1().tolist()
        [0.0, 1.7182..., 6.3890...]
        """
        return apply(transcendental.expm1, self)

    def log(self: Same) -> Same:
        """Compute the natural logarithm.

        >>> Tensor([1.0, 2.0, 4.0]).log().tolist()
        [0.0, 0.6931..., 1.3862...]
        """
        return apply(elementwise.unary, "log", self)

    def log2(self: Same) -> Same:
        """Compute the logarithm to base 2.

        >>> Tensor([1.0, 2.0, 8.0]).log2().tolist()
        [0.0, 1.0, 3.0]
        """
        return apply(elementwise.unary, "log2", self)

    def log10(self: Same) -> Same:
        """Compute the logarithm to base 10.

        >>> Tensor([1.0, 10.0, 1000.0]).log10().tolist()
        [0.0, 1.0, 3.0]
        """
        return apply(elementwise.unary, "log10", self)

    def log1p(self: Same) -> Same:
        """Compute log(1 + x), exact near 0.

        >>> Tensor([0.0, 1.0, 3.0]).log1p().tolist()
        [0.0, 0.6931..., 1.3862...]
        """
        return apply(transcendental.log1p, self)

    def sqrt(self: Same) -> Same:
        """Compute the square root.

        >>> Tensor([1.0, 4.0, 9.0]).sqrt().tolist()
        [1.0, 2.0, 3.0]
        """
        return apply(elementwise.unary, "sqrt", self)

    def rsqrt(self: Same) -> Same:
        """Compute 1 / sqrt(x).

        >>> Tensor([1.0, 4.0, 16.0]).rsqrt().tolist()
        [1.0, 0.5, 0.25]
        """
        return apply(elementwise.unary, "rsqrt", self)

    def reciprocal(self: Same) -> Same:
        """Compute 1 / x.

        >>> Tensor([1.0, 2.0, 4.0]).reciprocal().tolist()
        [1.0, 0.5, 0.25]
        """
        return apply(elementwise.unary, "reciprocal", self)

    def square(self: Same) -> Same:
        """Compute x * x.

        >>> Tensor([1.0, -2.0, 3.0]).square().tolist()
        [1.0, 4.0, 9.0]
        """
        return apply(elementwise.power, "pow", self, 2)

    def sin(self: Same) -> Same:
        """Compute the sine.

        >>> Tensor([0.0, 1.0, 2.0]).sin().tolist()
        [0.0, 0.8414..., 0.9092...]
        """
        return apply(elementwise.unary, "sin", self)

    def cos(self: Same) -> Same:
        """Compute the cosine.

        >>> Tensor([0.0, 1.0, 2.0]).cos().tolist()
        [1.0, 0.5403..., -0.4161...]
        """
        return apply(elementwise.unary, "cos", self)

    def tan(self: Same) -> Same:
        """Compute the tangent.

        >>> Tensor([0.0, 1.0, 2.0]).tan().tolist()
        [0.0, 1.5574..., -2.1850...]
        """
        return apply(transcendental.tan, self)

    def tanh(self: Same) -> Same:
        """Compute the hyperbolic tangent.

        >>> Tensor([-1.0, 0.0, 2.0]).tanh().tolist()
        [-0.7615..., 0.0, 0.9640...]
        """
        return apply(elementwise.unary, "tanh", self)

    def erf(self: Same) -> Same:
        """Compute the error function.

        >>> Tensor([-1.0, 0.0, 2.0]).erf().tolist()
        [-0.8427..., 0.0, 0.9953...]
        """
        return apply(elementwise.unary, "erf", self)

    def abs(self: Same) -> Same:
        """Compute |x|.

        >>> Tensor([-1.0, 2.0, -3.0]).abs().tolist()
        [1.0, 2.0, 3.0]
        """
        return apply(elementwise.absolute, self)

    def sign(self: Same) -> Same:
        """Compute -1, 0 or 1.

        >>> Tensor([-3.0, 0.0, 2.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
        return apply(elementwise.sign, self)

    def floor(self: Same) -> Same:
        """Round down.

        >>> Tensor([-1.5, 0.2, 2.0]).floor().tolist()
        [-2.0, 0.0, 2.0]
        """
        return apply(elementwise.rounding, "floor", self)

    def ceil(self: Same) -> Same:
        """Round up.

        >>> Tensor([-1.5, 0.2, 2.0]).ceil().tolist()
        [-1.0, 1.0, 2.0]
        """
        return apply(elementwise.rounding, "ceil", self)

    def round(self: Same, *, decimals: int = 0) -> Same:
        """Round to so many decimals, halves to even."""
        if not isinstance(decimals, int):
            text = f"decimals must be an int, not {decimals!r}"
            raise DTypeError("round", text, "pass a whole number")
        if decimals and self.dtype.is_float:
            return apply(elementwise.round_decimals, self, decimals)
        return apply(elementwise.rounding, "round", self)

    def trunc(self: Same) -> Same:
        """Round towards 0.

        >>> Tensor([-1.5, 0.2, 2.0]).trunc().tolist()
        [-1.0, 0.0, 2.0]
        """
        return apply(elementwise.rounding, "trunc", self)

    def maximum(self: Same, other: TensorLike) -> Same:
        """Compute the larger of two; NaN propagates.

        >>> Tensor([1.0, 5.0, 3.0]).maximum(Tensor([2.0, 4.0, 3.0])).tolist()
        [2.0, 5.0, 3.0]
        """
        return apply(elementwise.arithmetic, "maximum", self, other)

    def minimum(self: Same, other: TensorLike) -> Same:
        """Compute the smaller of two; NaN propagates.

        >>> Tensor([1.0, 5.0, 3.0]).minimum(Tensor([2.0, 4.0, 3.0])).tolist()
        [1.0, 4.0, 3.0]
        """
        return apply(elementwise.arithmetic, "minimum", self, other)

    def clamp(self: Same, min: TensorLike | None = None, max: TensorLike | None = None) -> Same:
        """Limit values to [min, max].

        >>> Tensor([-1.0, 0.5, 3.0]).clamp(0, 1).tolist()
        [0.0, 0.5, 1.0]
        """
        return apply(elementwise.clamp, self, min, max)

    clip: Final = clamp

    def lerp(self: Same, end: TensorLike, weight: TensorLike) -> Same:
        """Interpolate: self + weight * (end - self).

        >>> Tensor([0.0, 2.0, 4.0]).lerp(Tensor([4.0, 4.0, 4.0]), 0.25).tolist()
        [1.0, 2.5, 4.0]
        """
        return apply(elementwise.lerp, self, end, weight)

    def where(self: Same, condition: TensorLike, other: TensorLike) -> Same:
        """Choose: `x.where(condition, y)`; a bool tensor is the condition: `mask.where(x, y)`."""
        if self.dtype is bool_:
            return chosen(self, condition, other)
        return chosen(condition, self, other)

    def masked_fill(self: Same, mask: Same, value: TensorLike) -> Same:
        """Replace elements where the mask holds.

        >>> x = Tensor([1.0, 2.0, 3.0])
        >>> x.masked_fill(x > 1.5, 0).tolist()
        [1.0, 0.0, 0.0]
        """
        return apply(indexing.masked_fill, self, mask, value)

    # activations

    def relu(self: Same) -> Same:
        """Compute max(x, 0).

        >>> Tensor([-1.0, 0.0, 2.0]).relu().tolist()
        [0.0, 0.0, 2.0]
        """
        return apply(activation.relu, self)

    def sigmoid(self: Same) -> Same:
        """Compute 1 / (1 + exp(-x)).

        >>> Tensor([-1.0, 0.0, 2.0]).sigmoid().tolist()
        [0.2689..., 0.5, 0.8807...]
        """
        return apply(activation.sigmoid, self)

    def logsigmoid(self: Same) -> Same:
        """Compute log(sigmoid(x)).

        >>> Tensor([-1.0, 0.0, 2.0]).logsigmoid().tolist()
        [-1.3132..., -0.6931..., -0.1269...]
        """
        return apply(activation.log_sigmoid, self)

    def silu(self: Same) -> Same:
        """Compute x * sigmoid(x).

        >>> Tensor([-1.0, 0.0, 2.0]).silu().tolist()
        [-0.2689..., 0.0, 1.7615...]
        """
        return apply(composite.silu, self)

    def gelu(self: Same, approximate: str = "none") -> Same:
        """Compute x * Phi(x); approximate="tanh" for the usual approximation.

        >>> Tensor([-1.0, 0.0, 2.0]).gelu().tolist()
        [-0.1586..., 0.0, 1.9544...]
        """
        return apply(composite.gelu, self, approximate)

    def leaky_relu(self: Same, negative_slope: float = 0.01) -> Same:
        """Compute x where positive, else negative_slope * x.

        >>> Tensor([-1.0, 0.0, 2.0]).leaky_relu(0.5).tolist()
        [-0.5, 0.0, 2.0]
        """
        return apply(activation.leaky_relu, self, negative_slope)

    def elu(self: Same, alpha: float = 1.0) -> Same:
        """Compute x where positive, else alpha * (exp(x) - 1).

        >>> Tensor([-1.0, 0.0, 2.0]).elu().tolist()
        [-0.6321..., 0.0, 2.0]
        """
        return apply(activation.elu, self, alpha)

    def softplus(self: Same, beta: float = 1.0, threshold: float = 20.0) -> Same:
        """Compute log(1 + exp(beta * x)) / beta.

        >>> Tensor([-1.0, 0.0, 2.0]).softplus().tolist()
        [0.3132..., 0.6931..., 2.1269...]
        """
        return apply(activation.softplus, self, beta, threshold)

    def hardtanh(self: Same, min_val: float = -1.0, max_val: float = 1.0) -> Same:
        """Limit values to [min_val, max_val].

        >>> Tensor([-3.0, 0.5, 2.0]).hardtanh().tolist()
        [-1.0, 0.5, 1.0]
        """
        return apply(activation.hard_limit, self, min_val, max_val)

    def relu6(self: Same) -> Same:
        """Compute min(max(x, 0), 6).

        >>> Tensor([-1.0, 3.0, 8.0]).relu6().tolist()
        [0.0, 3.0, 6.0]
        """
        return apply(activation.hard_limit, self, 0, 6)


@overload
def where(condition: TensorLike) -> tuple[Tensor, ...]: ...


@overload
def where(condition: TensorLike, a: TensorLike, b: TensorLike) -> Tensor: ...


def where(condition: TensorLike, a: TensorLike = UNSET, b: TensorLike = UNSET) -> Any:
    """Choose from `a` where the condition holds, else from `b`; all broadcast.

    With a condition alone, the positions where it holds, one vector per axis.

    >>> picograd.where(Tensor([True, False, True]), Tensor([1.0, 2.0, 3.0]), 0.0).tolist()
    [1.0, 0.0, 3.0]
    """
    if b is UNSET:
        found: Any = condition
        return found.nonzero(as_tuple=True)
    return chosen(condition, a, b)


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """Choose elements; what is no tensor yet comes to the device of the others."""
    if not isinstance(condition, Recorded):
        like = a if isinstance(a, Recorded) else b
        condition = Recorded.kind(
            condition, device=like.device if isinstance(like, Recorded) else None
        )
    return apply(elementwise.where, condition, a, b)
