"""Normal distributions of vectors: of a covariance, and of one that is a diagonal and few columns.

The second kind never builds the covariance: solves and determinants are those of the small
capacitance I + W^T D^-1 W (Woodbury's identity).

Distributions of matrices: factors of correlations, and covariances.

Sources: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and
extended onion method" (2009); Bartlett, "On the theory of statistical regression" (1933).
"""

import math
from collections.abc import Callable
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import (
    LOG_2,
    LOG_2_PI,
    Centred,
    Distribution,
    ExponentialFamily,
    Sizes,
    as_tensors,
    need_one,
)
from picograd.distributions.gamma_family import Beta, Chi2
from picograd.distributions.utils import standard_normal
from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.type_info import finfo
from picograd.tensor.linalg.decompositions import cholesky, slogdet
from picograd.tensor.linalg.decompositions import diagonal as diagonal_of
from picograd.tensor.linalg.systems import cholesky_inverse, cholesky_solve, solve_triangular
from picograd.tensor.math.special import multigammaln
from picograd.tensor.public import broadcast_shapes, broadcast_tensors
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
    return solve_triangular(factor, column, upper=False).squeeze(-1).square().sum(-1)


def only_matrix(op: str, *matrices: Tensor | None) -> tuple[str, Tensor]:
    """Find the one that was given of a covariance, its inverse and its lower factor, and its name.

    Raises ValueRangeError otherwise.
    """
    named: dict[str, Any] = dict(zip(Covariance.matrix_constraints, matrices, strict=True))
    given = need_one(op, **named)
    return given, named[given]


class Derived:
    """This class is an attribute that is computed unless it was given; nothing is kept."""

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self.function = function

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else self.function(owner)


class Covariance(Distribution):
    """This class has a covariance, the inverse of one, or its lower factor: it knows all three."""

    matrix_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _unbroadcasted_scale_tril: Tensor

    def take(self, name: str, matrix: Tensor) -> None:
        """Keep what is given, and the factor."""
        vars(self)[name] = matrix
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    scale_tril = Derived(lambda self: self._unbroadcasted_scale_tril)
    covariance_matrix = Derived(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = Derived(lambda self: cholesky_inverse(self.scale_tril))


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
        return self._unbroadcasted_scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw; gradients reach the parameters."""
        shape = self._extended_shape(sample_shape)
        draws = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, draws)

    def distance(self, away: Tensor) -> Tensor:
        """Compute the squared length of a difference, by the inverse of the covariance."""
        return batch_mahalanobis(self._unbroadcasted_scale_tril, away)

    def half_log_det(self) -> Tensor:
        """Compute half the logarithm of the covariance's determinant."""
        return half_log_det(self._unbroadcasted_scale_tril)

    def columns(self) -> Tensor:
        """Give columns whose outer products add up to the covariance."""
        return self._unbroadcasted_scale_tril

    def squared_lengths(self, columns: Tensor) -> Tensor:
        """Sum the squared lengths of columns, by the inverse of the covariance."""
        white = solve_triangular(self._unbroadcasted_scale_tril, columns, upper=False)
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
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
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
        return Tensor.cat([self.cov_factor, self.cov_diag.sqrt().diag_embed()], dim=-1)

    def squared_lengths(self, columns: Tensor) -> Tensor:
        """Sum the squared lengths of columns, by the inverse of the covariance."""
        divided = columns / self.cov_diag.unsqueeze(-1)
        plain = (columns * divided).sum((-2, -1))
        return plain - self.whitened(divided).square().sum((-2, -1))


_batch_mv, _batch_mahalanobis = batch_mv, batch_mahalanobis
_precision_to_scale_tril = precision_to_scale_tril


def counted(like: Tensor, start: int, end: int) -> Tensor:
    """Count in the dtype and on the device of a tensor."""
    return Tensor.arange(start, end, dtype=like.dtype, device=like.device)


def normal_below_diagonal(like: Tensor, shape: Sizes) -> Tensor:
    """Draw matrices of normal numbers below the diagonal, in the dtype of a tensor."""
    normal = Tensor.randn(*shape, dtype=like.dtype, device=like.device)
    return normal.tril(-1)


def log_det_of(matrix: Tensor) -> Tensor:
    """Compute the logarithms of the sizes of determinants."""
    _, found = slogdet(matrix)
    return found


class LKJCholesky(Distribution):
    """This class is lower factors of correlation matrices, by powers of their determinants.

    All correlation matrices are as likely with concentration 1; above it, those near the identity
    are more likely.

    >>> from picograd import Tensor
    >>> from picograd.distributions import LKJCholesky
    >>> round(LKJCholesky(2).log_prob(Tensor.eye(2)).exp().item(), 4)
    0.5
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            text = f"matrices of size {dim}"
            raise ValueRangeError("LKJCholesky", text, "pass a size of at least 2")
        self.dim = dim
        (self.concentration,) = as_tensors(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def below_diagonal(self) -> Beta:
        """Distribute the squared length of each row left of its diagonal: 0 in the first row."""
        row = counted(self.concentration, 0, self.dim)
        most = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1)
        half = 0.5 * row
        left = half.maximum(0.5)
        rest = Tensor.where(row == 0, 0.5, most - half)
        return Beta(left, rest, validate_args=False)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        """Draw directions and lengths of rows; no gradients."""
        like = self.concentration
        with no_grad():
            square = self.below_diagonal().sample(sample_shape).unsqueeze(-1)
            normal = normal_below_diagonal(like, self._extended_shape(sample_shape))
            length = normal.square().sum(-1, keepdim=True).sqrt()
            divisor = length.where(length > 0, 1.0)
            row = square.sqrt() * normal / divisor
            left = 1.0 - row.square().sum(-1)
            rest = left.clamp(min=finfo(like.dtype).tiny)
            return row + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the sum of powers of the diagonal's logarithms, and the normaliser."""
        self._validate_sample(value)
        a, size = self.concentration, self.dim - 1
        diagonal = diagonal_of(value)[..., 1:]
        rows_below = counted(a, 0, size).flip(-1)
        power = 2.0 * (a - 1.0).unsqueeze(-1) + rows_below
        whole = a + 0.5 * size
        normaliser = multigammaln(whole - 0.5, size) - whole.lgamma() * size
        inner: Tensor = (power * diagonal.log()).sum(-1)
        circles = 0.5 * size * math.log(math.pi)
        return inner - normaliser - circles


class Wishart(Covariance, ExponentialFamily):
    """This class is the sum of `df` squares of normal vectors, as matrices x x^T.

    >>> from picograd import Tensor
    >>> from picograd.distributions import Wishart
    >>> Wishart(Tensor(3.0), Tensor.eye(2)).mean.tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given, matrix = only_matrix("Wishart", covariance_matrix, precision_matrix, scale_tril)
        if matrix.ndim < 2:
            text = f"{given} has shape {matrix.shape}"
            raise ShapeError("Wishart", text, "pass a matrix, or a batch of them")
        if isinstance(df, Tensor):
            (known,) = as_tensors(df)
        else:
            known = matrix.new_tensor(df)
        batches, event = matrix.shape[:-2], matrix.shape[-2:]
        batch = tuple(broadcast_shapes(batches, known.shape))
        self.df: Tensor = known.expand(*batch) if batch else known
        self.take(given, matrix.expand(*batch, *event))
        super().__init__(batch, event, validate_args)

    @property
    def arg_constraints(self) -> Any:  # type: ignore[override]
        """What parameters may be."""
        least = constraints.greater_than(self._event_shape[-1] - 1)
        return Covariance.matrix_constraints | {"df": least}

    def wide(self, value: Tensor) -> Tensor:
        """Give a number of each batch the axes of matrices."""
        return value.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        """df times the covariance."""
        return self.wide(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) times the covariance; NaN where that is not positive."""
        factor = self.df - self._event_shape[-1] - 1.0
        known = factor.where(factor > 0, math.nan)
        return self.wide(known) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V_ij^2 + V_ii V_jj)."""
        matrix = self.covariance_matrix
        diagonal = diagonal_of(matrix)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.wide(self.df) * (matrix.square() + products)

    def rsample(self, sample_shape: Sizes = (), max_try_correction: int | None = None) -> Tensor:
        """Draw by Bartlett's factor: roots of chi-squared draws above normal ones.

        `max_try_correction` is taken as PyTorch takes it; no draw is repeated.
        """
        size, like = self._event_shape[-1], self.df
        freedom = like.unsqueeze(-1) - counted(like, 0, size)
        each = Chi2(freedom, validate_args=False)
        least = finfo(like.dtype).eps ** 2
        diagonal = each.rsample(sample_shape).clamp(min=least).sqrt()
        normal = normal_below_diagonal(like, self._extended_shape(sample_shape))
        factor = self._unbroadcasted_scale_tril @ (normal + diagonal.diag_embed())
        return factor @ factor.mT

    def half_count(self) -> Tensor:
        """Compute (df - n - 1) / 2."""
        return (self.df - self._event_shape[-1] - 1.0) / 2.0

    def log_det(self) -> Tensor:
        """Compute n log(2) / 2 and half the logarithm of the covariance's determinant."""
        return half_log_det(self._unbroadcasted_scale_tril) + 0.5 * self._event_shape[-1] * LOG_2

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        size = self._event_shape[-1]
        shape = broadcast_shapes(value.shape, self._unbroadcasted_scale_tril.shape)
        factor = self._unbroadcasted_scale_tril.expand(*shape)
        ratio = cholesky_solve(value.expand(*shape), factor)
        trace = diagonal_of(ratio).sum(-1)
        normaliser = self.df * self.log_det() + multigammaln(self.df / 2.0, size)
        power = self.half_count() * log_det_of(value)
        return power - 0.5 * trace - normaliser

    def mean_log_det(self) -> Tensor:
        """Compute the mean of log |x / 2|, less log |V|: a sum of digammas."""
        halves = 0.5 * counted(self.df, 0, self._event_shape[-1])
        arguments = 0.5 * self.df.unsqueeze(-1) - halves
        return arguments.digamma().sum(-1)

    def entropy(self) -> Tensor:
        """Compute the entropy, in nats."""
        size = self._event_shape[-1]
        normaliser = (size + 1.0) * self.log_det() + multigammaln(self.df / 2.0, size)
        power = self.half_count() * self.mean_log_det()
        return normaliser - power + 0.5 * size * self.df

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, self.half_count()

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        matrix, count = natural_params
        size = self._event_shape[-1]
        half = count + 0.5 * (size + 1.0)
        spread = size * LOG_2 - log_det_of(-2.0 * matrix)
        return half * spread + multigammaln(half, size)


def kl_of_wisharts(p: Wishart, q: Wishart) -> Tensor:
    """Compute the divergence of q from p."""
    size = p.event_shape[-1]
    p_factor = p._unbroadcasted_scale_tril
    q_factor = q._unbroadcasted_scale_tril.expand(*p_factor.shape)
    solved = solve_triangular(q_factor, p_factor, upper=False)
    ratio = solved.square().sum((-2, -1))
    spread = q.df * (half_log_det(q_factor) - half_log_det(p_factor))
    normalisers = multigammaln(q.df / 2.0, size) - multigammaln(p.df / 2.0, size)
    counts = 0.5 * (p.df - q.df) * p.mean_log_det()
    traces = 0.5 * p.df * (ratio - size)
    return spread + normalisers + counts + traces
