"""Distributions of matrices: factors of correlations, and covariances.

Sources: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and
extended onion method" (2009); Bartlett, "On the theory of statistical regression" (1933).
"""

import math
from typing import Any

from picograd.distributions import constraints
from picograd.distributions.distribution import (
    LOG_2,
    Distribution,
    ExponentialFamily,
    Sizes,
    as_tensors,
)
from picograd.distributions.gamma_family import Beta, Chi2
from picograd.distributions.multivariate import Covariance, half_log_det, only_matrix
from picograd.errors import ShapeError, ValueRangeError
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.type_info import finfo
from picograd.tensor.linalg.decompositions import diagonal as diagonal_of
from picograd.tensor.linalg.decompositions import slogdet
from picograd.tensor.linalg.systems import cholesky_solve, solve_triangular
from picograd.tensor.math.special import multigammaln
from picograd.tensor.public import broadcast_shapes
from picograd.tensor.tensor import Tensor


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
        factor = self._factor @ (normal + diagonal.diag_embed())
        return factor @ factor.mT

    def half_count(self) -> Tensor:
        """Compute (df - n - 1) / 2."""
        return (self.df - self._event_shape[-1] - 1.0) / 2.0

    def log_det(self) -> Tensor:
        """Compute n log(2) / 2 and half the logarithm of the covariance's determinant."""
        return half_log_det(self._factor) + 0.5 * self._event_shape[-1] * LOG_2

    def log_prob(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the density."""
        self._validate_sample(value)
        size = self._event_shape[-1]
        shape = broadcast_shapes(value.shape, self._factor.shape)
        factor = self._factor.expand(*shape)
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
    p_factor = p._factor
    q_factor = q._factor.expand(*p_factor.shape)
    solved = solve_triangular(q_factor, p_factor, upper=False)
    ratio = solved.square().sum((-2, -1))
    spread = q.df * (half_log_det(q_factor) - half_log_det(p_factor))
    normalisers = multigammaln(q.df / 2.0, size) - multigammaln(p.df / 2.0, size)
    counts = 0.5 * (p.df - q.df) * p.mean_log_det()
    traces = 0.5 * p.df * (ratio - size)
    return spread + normalisers + counts + traces
