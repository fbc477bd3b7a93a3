"""Normal distributions of vectors: of a covariance, and of one that is a diagonal and few columns.

The second kind never builds the covariance: solves and determinants are those of the small
capacitance I + W^T D^-1 W (Woodbury's identity).
"""

from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import LOG_2_PI, Centred, Distribution, Sizes, need_one
from picograd.distributions.utils import standard_normal
from picograd.errors import ShapeError
from picograd.tensor.linalg.decompositions import cholesky
from picograd.tensor.linalg.systems import cholesky_inverse, solve_triangular
from picograd.tensor.public import broadcast_tensors
from picograd.tensor.tensor import Tensor


def half_log_det(factor: Tensor) -> Tensor:
    """Compute half the logarithm of the determinant of a matrix, from its lower factor."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """Find the lower triangular factor of a covariance."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return cholesky(matrix)
    return precision_to_scale_tril(matrix)


def precision_to_scale_tril(P: Tensor) -> Tensor:
    """Find the lower triangular factor of a matrix's inverse, from the matrix's end."""
    flipped = cholesky(P.flip(-1, -2))
    upper = flipped.flip(-1, -2).mT
    eye = Tensor.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return solve_triangular(upper, eye.expand(*P.shape), upper=False)


def batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Multiply matrices and vectors."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """Compute the squared lengths of vectors by a covariance's lower factor."""
    factor, column = bL, bx.unsqueeze(-1)
    batch = broadcast_tensors(factor[..., 0, 0], column[..., 0, 0])[0].shape
    factor = factor.expand(*batch, *factor.shape[-2:])
    column = column.expand(*batch, *column.shape[-2:])
    white = solve_triangular(factor, column, upper=False)
    return white.squeeze(-1).square().sum(-1)


def only_matrix(op: str, *matrices: Tensor | None) -> tuple[str, Tensor]:
    """Find the one that was given of a covariance, its inverse and its lower factor, and its name.

    Raises ValueRangeError otherwise.
    """
    named: dict[str, Any] = dict(zip(Covariance.matrix_constraints, matrices, strict=True))
    given = need_one(op, **named)
    return given, named[given]


class Covariance(Distribution):
    """This class has a covariance, the inverse of one, or its lower factor: it knows all three."""

    matrix_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _factor: Tensor

    def take(self, name: str, matrix: Tensor) -> None:
        """Keep what is given, and the factor."""
        vars(self)[name] = matrix
        self._factor = factor_of(name, matrix)

    def __getattr__(self, name: str) -> Any:
        known = vars(self).get("_factor")
        if known is not None and name in ("scale_tril", "_unbroadcasted_scale_tril"):
            return known
        if known is not None and name == "covariance_matrix":
            return known @ known.mT
        if known is not None and name == "precision_matrix":
            return cholesky_inverse(known)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class NormalVector(Centred):
    """This class is the base of normal distributions of vectors, however their spread is given."""

    support = constraints.real_vector
    has_rsample = True

    def distance(self, away: Tensor) -> Tensor:
        """Compute the squared length of a difference, by the inverse of the covariance."""
        raise self._lacks("distance")

    def half_log_det(self) -> Tensor:
        """Compute half the logarithm of the covariance's determinant."""
        raise self._lacks("half_log_det")

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        distance = self.distance(value - self.loc)
        constant = self.event_shape[0] * LOG_2_PI
        return -0.5 * (constant + distance) - self.half_log_det()

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        size = self.event_shape[0]
        return self.half_log_det() + 0.5 * size * (1.0 + LOG_2_PI)


class MultivariateNormal(Covariance, NormalVector):
    """This class is the normal distribution of vectors.

    Its spread is given as a covariance, as the inverse of one, or as a lower triangular factor.

    >>> from picograd import Tensor
    >>> from picograd.distributions import MultivariateNormal
    >>> unit = MultivariateNormal(Tensor.zeros(2), Tensor.eye(2))
    >>> round(unit.log_prob(Tensor.zeros(2)).item(), 4)
    -1.8379
    """

    arg_constraints = {"loc": constraints.real_vector, **Covariance.matrix_constraints}

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        size = loc.shape[-1]
        matrices = covariance_matrix, precision_matrix, scale_tril
        given, matrix = only_matrix("MultivariateNormal", *matrices)
        batch = broadcast_tensors(loc[..., 0], matrix[..., 0, 0])[0].shape
        self.loc = loc.expand(*batch, size)
        self.take(given, matrix.expand(*batch, size, size))
        super().__init__(batch, (size,), validate_args)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self._factor.square().sum(-1)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        draws = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + batch_mv(self._factor, draws)

    def distance(self, away: Tensor) -> Tensor:
        """Compute the squared length of a difference, by the inverse of the covariance."""
        return batch_mahalanobis(self._factor, away)

    def half_log_det(self) -> Tensor:
        """Compute half the logarithm of the covariance's determinant."""
        return half_log_det(self._factor)

    def columns(self) -> Tensor:
        """Give columns whose outer products add up to the covariance."""
        return self._factor

    def squared_lengths(self, columns: Tensor) -> Tensor:
        """Sum the squared lengths of columns, by the inverse of the covariance."""
        white = solve_triangular(self._factor, columns, upper=False)
        return white.square().sum((-2, -1))


class LowRankMultivariateNormal(NormalVector):
    """This class is the normal distribution of vectors of covariance W W^T + D.

    W is `cov_factor`, of few columns; D is a diagonal, `cov_diag`.

    >>> from picograd import Tensor
    >>> from picograd.distributions import LowRankMultivariateNormal
    >>> ones = Tensor.ones(2)
    >>> LowRankMultivariateNormal(ones, Tensor.ones(2, 1), ones).variance.tolist()
    [2.0, 2.0]
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        size = loc.shape[-1] if loc.ndim else -1
        if cov_factor.ndim < 2 or (size, size) != (cov_factor.shape[-2], cov_diag.shape[-1]):
            text = f"loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            raise ShapeError("LowRankMultivariateNormal", text, "pass (n), (n, m) and (n)")
        place = broadcast_tensors(loc[..., 0], cov_factor[..., 0, 0], cov_diag[..., 0])[0]
        batch = place.shape
        self.loc = loc.expand(*batch, size)
        self.cov_diag = cov_diag.expand(*batch, size)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, (size,), validate_args)
        self._capacitance_tril = self.capacitance()

    def capacitance(self) -> Tensor:
        """Compute the lower factor of I + W^T D^-1 W."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        eye = Tensor.eye(scaled.shape[-2], dtype=scaled.dtype, device=scaled.device)
        return cholesky(eye + scaled @ self.cov_factor)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """W W^T + D."""
        product = self.cov_factor @ self.cov_factor.mT
        return product + self.cov_diag.diag_embed()

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        inverse = self.cov_diag.reciprocal().diag_embed()
        white = self.whitened(inverse)
        return inverse - white.mT @ white

    @property
    def scale_tril(self) -> Tensor:
        """The lower factor of the covariance, well conditioned: of D^-1/2 W W^T D^-1/2 + I."""
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        eye = Tensor.eye(root.shape[-2], dtype=root.dtype, device=root.device)
        return root * cholesky(scaled @ scaled.mT + eye)

    def whitened(self, columns: Tensor) -> Tensor:
        """Solve the capacitance's factor for W^T times columns that were divided by D."""
        product = self.cov_factor.mT @ columns
        factor = self._capacitance_tril
        each = factor.expand(*product.shape[:-2], *factor.shape[-2:])
        return solve_triangular(each, product, upper=False)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        few = (*shape[:-1], self.cov_factor.shape[-1])
        common = standard_normal(few, self.loc.dtype, self.loc.device)
        own = standard_normal(shape, self.loc.dtype, self.loc.device)
        shared = batch_mv(self.cov_factor, common)
        return self.loc + shared + self.cov_diag.sqrt() * own

    def half_log_det(self) -> Tensor:
        """Compute half the logarithm of the covariance's determinant."""
        diagonal = self.cov_diag.log().sum(-1)
        return half_log_det(self._capacitance_tril) + 0.5 * diagonal

    def distance(self, away: Tensor) -> Tensor:
        """Compute the squared length of a difference, by the inverse of the covariance."""
        return self.squared_lengths(away.unsqueeze(-1))

    def columns(self) -> Tensor:
        """Give columns whose outer products add up to the covariance."""
        diagonal = self.cov_diag.sqrt().diag_embed()
        return Tensor.cat([self.cov_factor, diagonal], dim=-1)

    def squared_lengths(self, columns: Tensor) -> Tensor:
        """Sum the squared lengths of columns, by the inverse of the covariance."""
        divided = columns / self.cov_diag.unsqueeze(-1)
        plain = (columns * divided).sum((-2, -1))
        return plain - self.whitened(divided).square().sum((-2, -1))


_batch_mv, _batch_mahalanobis = batch_mv, batch_mahalanobis
_precision_to_scale_tril = precision_to_scale_tril
