"""Methods of `Tensor` by kind. Special functions: circular, hyperbolic, error and gamma functions.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from typing import Final

from picograd.tensor.core.annotations import TensorLike
from picograd.tensor.core.recording import Recorded, Same, apply
from picograd.tensor.math import gamma, transcendental


class SpecialMethods(Recorded):
    """This class holds the special functions of `Tensor`."""

    __slots__ = ()

    def sinh(self: Same) -> Same:
        """Compute the hyperbolic sine.

        >>> Tensor([-1.0, 0.0, 2.0]).sinh().tolist()
        [-1.1752..., 0.0, 3.6268...]
        """
        return apply(transcendental.sinh, self)

    def cosh(self: Same) -> Same:
        """Compute the hyperbolic cosine.

        >>> Tensor([0.0, 1.0, 2.0]).cosh().tolist()
        [1.0, 1.5430..., 3.7621...]
        """
        return apply(transcendental.cosh, self)

    def asin(self: Same) -> Same:
        """Compute the inverse sine.

        >>> Tensor([-1.0, 0.0, 1.0]).asin().tolist()
        [-1.5707..., 0.0, 1.5707...]
        """
        return apply(transcendental.asin, self)

    def acos(self: Same) -> Same:
        """Compute the inverse cosine.

        >>> Tensor([-1.0, 0.0, 1.0]).acos().tolist()
        [3.1415..., 1.5707..., 0.0]
        """
        return apply(transcendental.acos, self)

    def atan(self: Same) -> Same:
        """Compute the inverse tangent.

        >>> Tensor([-1.0, 0.0, 2.0]).atan().tolist()
        [-0.7853..., 0.0, 1.1071...]
        """
        return apply(transcendental.atan, self)

    def asinh(self: Same) -> Same:
        """Compute the inverse hyperbolic sine.

        >>> Tensor([-1.0, 0.0, 2.0]).asinh().tolist()
        [-0.8813..., 0.0, 1.4436...]
        """
        return apply(transcendental.asinh, self)

    def acosh(self: Same) -> Same:
        """Compute the inverse hyperbolic cosine.

        >>> Tensor([1.0, 2.0, 3.0]).acosh().tolist()
        [0.0, 1.3169..., 1.7627...]
        """
        return apply(transcendental.acosh, self)

    def atanh(self: Same) -> Same:
        """Compute the inverse hyperbolic tangent.

        >>> Tensor([-0.5, 0.0, 0.5]).atanh().tolist()
        [-0.5493..., 0.0, 0.5493...]
        """
        return apply(transcendental.atanh, self)

    def sinc(self: Same) -> Same:
        """Compute sin(pi x) / (pi x).

        >>> Tensor([0.0, 0.5, 1.5]).sinc().tolist()
        [1.0, 0.6366..., -0.2122...]
        """
        return apply(transcendental.sinc, self)

    def erfc(self: Same) -> Same:
        """Compute 1 - erf(x), accurate where erf is nearly 1.

        >>> Tensor([-1.0, 0.0, 2.0]).erfc().tolist()
        [1.8427..., 1.0, 0.0046...]
        """
        return apply(transcendental.erfc, self)

    def erfinv(self: Same) -> Same:
        """Invert erf.

        >>> Tensor([-0.5, 0.0, 0.5]).erfinv().tolist()
        [-0.4769..., 0.0, 0.4769...]
        """
        return apply(transcendental.erfinv, self)

    def lgamma(self: Same) -> Same:
        """Compute log|gamma(x)|.

        >>> Tensor([3.0, 4.0, 5.0]).lgamma().tolist()
        [0.6931..., 1.7917..., 3.1780...]
        """
        return apply(transcendental.lgamma, self)

    def digamma(self: Same) -> Same:
        """Compute the derivative of lgamma.

        >>> Tensor([1.0, 2.0, 3.0]).digamma().tolist()
        [-0.5772..., 0.4227..., 0.9227...]
        """
        return apply(transcendental.digamma, self)

    def signbit(self: Same) -> Same:
        """Tell which elements have a minus sign.

        >>> Tensor([-1.0, 0.0, -0.0]).signbit().tolist()
        [True, False, True]
        """
        return apply(transcendental.signbit, self)

    def atan2(self: Same, other: TensorLike) -> Same:
        """Compute the angle of the point (other, self).

        >>> Tensor([1.0, -1.0, 0.0]).atan2(Tensor([1.0, 1.0, -1.0])).tolist()
        [0.7853..., -0.7853..., 3.1415...]
        """
        return apply(transcendental.atan2, self, other)

    def hypot(self: Same, other: TensorLike) -> Same:
        """Compute sqrt(self^2 + other^2).

        >>> Tensor([3.0, 5.0, 8.0]).hypot(Tensor([4.0, 12.0, 15.0])).tolist()
        [5.0, 13.0, 17.0]
        """
        return apply(transcendental.hypot, self, other)

    def copysign(self: Same, other: TensorLike) -> Same:
        """Give |self| the sign of other.

        >>> Tensor([1.0, 2.0, -3.0]).copysign(Tensor([-1.0, 1.0, 1.0])).tolist()
        [-1.0, 2.0, 3.0]
        """
        return apply(transcendental.copysign, self, other)

    def fmod(self: Same, other: TensorLike) -> Same:
        """Compute the remainder with the sign of self, as C's fmod.

        >>> Tensor([-5.0, 5.0, 7.5]).fmod(3).tolist()
        [-2.0, 2.0, 1.5]
        """
        return apply(transcendental.fmod, self, other)

    def logaddexp(self: Same, other: TensorLike) -> Same:
        """Compute log(exp(self) + exp(other)).

        >>> Tensor([0.0, 1.0, 2.0]).logaddexp(Tensor([0.0, 1.0, 2.0])).tolist()
        [0.6931..., 1.6931..., 2.6931...]
        """
        return apply(transcendental.logaddexp, self, other)

    def xlogy(self: Same, other: TensorLike) -> Same:
        """Compute self * log(other); 0 where self is 0.

        >>> Tensor([0.0, 1.0, 2.0]).xlogy(Tensor([0.0, 2.0, 2.0])).tolist()
        [0.0, 0.6931..., 1.3862...]
        """
        return apply(transcendental.xlogy, self, other)

    def polygamma(self: Same, n: int) -> Same:
        """Compute the n-th derivative of digamma: `x.polygamma(1)`."""
        return apply(gamma.polygamma, self, n)

    arcsin: Final = asin
    arccos: Final = acos
    arctan: Final = atan
    arctan2: Final = atan2
    arcsinh: Final = asinh
    arccosh: Final = acosh
    arctanh: Final = atanh
