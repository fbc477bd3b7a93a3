"""The multivariate normal distribution."""

from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import LOG_2_PI, Distribution, Sizes, need_one
from picograd.tensor.linalg.decompositions import cholesky
from picograd.tensor.linalg.systems import cholesky_inverse, solve_triangular
from picograd.tensor.public import broadcast_tensors
from picograd.tensor.tensor import Tensor


class MultivariateNormal(Distribution):
    """This class is the normal distribution of vectors.

    Its spread is given as a covariance, as the inverse of one, or as a lower triangular factor.

    >>> from picograd import Tensor
    >>> from picograd.distributions import MultivariateNormal
    >>> unit = MultivariateNormal(Tensor.zeros(2), Tensor.eye(2))
    >>> round(unit.log_prob(Tensor.zeros(2)).item(), 4)
    -1.8379
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    has_rsample = True
    loc: Tensor

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = dict(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix)
        matrices["scale_tril"] = scale_tril
        self._given = need_one("MultivariateNormal", **matrices)
        matrix: Any = matrices[self._given]
        size = loc.shape[-1]
        batch = broadcast_tensors(loc[..., 0], matrix[..., 0, 0])[0].shape
        self.loc = loc.expand(*batch, size)
        own = matrix.expand(*batch, size, size)
        vars(self)[self._given] = own
        super().__init__(batch, (size,), validate_args)
        self._factor = factor_of(self._given, own)

    def __getattr__(self, name: str) -> Any:
        if name == "scale_tril" and "_factor" in vars(self):
            return self._factor
        if name == "covariance_matrix" and "_factor" in vars(self):
            return self._factor @ self._factor.mT
        if name == "precision_matrix" and "_factor" in vars(self):
            return cholesky_inverse(self._factor)
        raise AttributeError(f"MultivariateNormal has no attribute {name!r}")

    @property
    def support(self) -> Any:
        """All vectors."""
        return constraints.real_vector

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self._factor.square().sum(-1)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        draws = Tensor.randn(*shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._factor @ draws.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        away = (value - self.loc).unsqueeze(-1)
        factor = self._factor.expand(*away.shape[:-1], away.shape[-2])
        white = solve_triangular(factor, away, upper=False).squeeze(-1)
        distance = white.square().sum(-1)
        return -0.5 * (self.event_shape[0] * LOG_2_PI + distance) - self.half_log_det()

    def half_log_det(self) -> Tensor:
        """Compute half the logarithm of the covariance's determinant."""
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        return self.half_log_det() + 0.5 * self.event_shape[0] * (1.0 + LOG_2_PI)


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """Find the lower triangular factor of a covariance."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return cholesky(matrix)
    flipped = cholesky(matrix.flip(-1, -2))  # of the inverse, from its end
    upper = flipped.flip(-1, -2).mT
    eye = Tensor.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return solve_triangular(upper, eye.expand(*matrix.shape), upper=False)
