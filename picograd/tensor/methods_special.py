"""Methods of `Tensor` by kind. Special functions: circular, hyperbolic, error and gamma functions.

Each method records one function on nodes; the class is a base of `Tensor` (tensor.py) alone.
"""

from picograd.errors import ValueRangeError
from picograd.tensor import special
from picograd.tensor.recording import Other, Recorded, Same, apply


class SpecialMethods(Recorded):
    """This class holds the special functions of `Tensor`."""

    __slots__ = ()

    def sinh(self: Same) -> Same:
        """Compute the hyperbolic sine."""
        return apply(special.sinh, self)

    def cosh(self: Same) -> Same:
        """Compute the hyperbolic cosine."""
        return apply(special.cosh, self)

    def asin(self: Same) -> Same:
        """Compute the inverse sine."""
        return apply(special.asin, self)

    def acos(self: Same) -> Same:
        """Compute the inverse cosine."""
        return apply(special.acos, self)

    def atan(self: Same) -> Same:
        """Compute the inverse tangent."""
        return apply(special.atan, self)

    def asinh(self: Same) -> Same:
        """Compute the inverse hyperbolic sine."""
        return apply(special.asinh, self)

    def acosh(self: Same) -> Same:
        """Compute the inverse hyperbolic cosine."""
        return apply(special.acosh, self)

    def atanh(self: Same) -> Same:
        """Compute the inverse hyperbolic tangent."""
        return apply(special.atanh, self)

    def sinc(self: Same) -> Same:
        """Compute sin(pi x) / (pi x)."""
        return apply(special.sinc, self)

    def erfc(self: Same) -> Same:
        """Compute 1 - erf(x), accurate where erf is nearly 1."""
        return apply(special.erfc, self)

    def erfinv(self: Same) -> Same:
        """Invert erf."""
        return apply(special.erfinv, self)

    def lgamma(self: Same) -> Same:
        """Compute log|gamma(x)|."""
        return apply(special.lgamma, self)

    def digamma(self: Same) -> Same:
        """Compute the derivative of lgamma."""
        return apply(special.digamma, self)

    def signbit(self: Same) -> Same:
        """Tell which elements have a minus sign."""
        return apply(special.signbit, self)

    def atan2(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute the angle of the point (other, self)."""
        return apply(special.atan2, self, other)

    def hypot(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute sqrt(self^2 + other^2)."""
        return apply(special.hypot, self, other)

    def copysign(
        self: Same,
        other: Other,
    ) -> Same:
        """Give |self| the sign of other."""
        return apply(special.copysign, self, other)

    def fmod(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute the remainder with the sign of self, as C's fmod."""
        return apply(special.fmod, self, other)

    def logaddexp(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute log(exp(self) + exp(other))."""
        return apply(special.logaddexp, self, other)

    def xlogy(
        self: Same,
        other: Other,
    ) -> Same:
        """Compute self * log(other); 0 where self is 0."""
        return apply(special.xlogy, self, other)

    def polygamma(
        self: Same,
        n: int,
    ) -> Same:
        """Compute the n-th derivative of digamma, for n of 0 or 1: `x.polygamma(1)`."""
        if n not in (0, 1):
            raise ValueRangeError("polygamma", f"n is {n!r}", "use 0 or 1")
        return apply(special.trigamma if n else special.digamma, self)

    arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
    arcsinh, arccosh, arctanh = asinh, acosh, atanh
