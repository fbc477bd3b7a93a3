"""The von Mises distribution, of angles."""

from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import LOG_2_PI, Centred, Sizes, as_tensors
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.making.distributions import host_draw
from picograd.tensor.math.special import i0e, i1e
from picograd.tensor.tensor import Tensor


class VonMises(Centred):
    """This class is the von Mises distribution of angles around `loc`, in radians.

    Mean and variance are those of directions: the variance is one less the length of the mean of
    points on the unit circle.

    >>> from picograd.distributions import VonMises
    >>> round(VonMises(0.0, 1.0).variance.item(), 4)
    0.5536
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = as_tensors(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def variance(self) -> Tensor:
        """1 - I1(k) / I0(k)."""
        k = self.concentration
        return 1.0 - i1e(k) / i0e(k)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw angles from -pi to pi, on the host; no gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, spread = self.loc.expand(*shape), self.concentration.expand(*shape)
            return host_draw("vonmises", self.loc.dtype, None, loc, spread)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute k (cos(x - loc) - 1) - log(2 pi I0(k) exp(-k))."""
        self._validate_sample(value)
        k = self.concentration
        less = (value - self.loc).cos() - 1.0
        return k * less - LOG_2_PI - i0e(k).log()
