"""The normal distribution of vectors, against PyTorch's."""

import importlib

import pytest
from distribution_support import (
    check_against_pytorch,
    check_divergence,
    check_moments,
    check_same,
    torch,
)

import picograd
from picograd import Tensor, distributions

COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
COLUMNS, DIAGONAL = [[1.0], [-0.5]], [0.5, 2.0]
ROWS = [
    ("MultivariateNormal", ([0.0, 1.0], COVARIANCE), [0.5, 0.5]),
    ("MultivariateNormal", ([0.0, 1.0], None, COVARIANCE), [0.5, 0.5]),
    ("LowRankMultivariateNormal", ([0.0, 1.0], COLUMNS, DIAGONAL), [0.5, 0.5]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])


def kinds(library) -> list:
    d, tensor = library.distributions, library.tensor
    loc, columns, diagonal = tensor([0.0, 1.0]), tensor(COLUMNS), tensor(DIAGONAL)
    batch = columns * tensor([[[1.0]], [[2.0]], [[0.5]]])
    return [
        d.MultivariateNormal(loc, tensor(COVARIANCE)),
        d.LowRankMultivariateNormal(loc * 2.0, columns, diagonal),
        d.LowRankMultivariateNormal(loc, batch, diagonal * 3.0),
    ]


def test_divergences_between_kinds() -> None:
    for ours, theirs in zip(kinds(picograd), kinds(torch)):
        for one, other in zip(kinds(picograd), kinds(torch)):
            found, want = (
                library.distributions.kl_divergence(*pair)
                for library, pair in ((picograd, (ours, one)), (torch, (theirs, other)))
            )
            check_same(found, want)
            assert found.shape == tuple(want.shape)


def test_matrices_of_the_low_rank_one() -> None:
    for ours, theirs in zip(kinds(picograd), kinds(torch)):
        for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
            check_same(getattr(ours, name), getattr(theirs, name))
        assert ours.expand((2, 3)).rsample((4,)).shape == (4, 2, 3, 2)


def test_gradients_through_draws() -> None:
    loc, columns = Tensor([0.0, 1.0], requires_grad=True), Tensor(COLUMNS, requires_grad=True)
    diagonal = Tensor(DIAGONAL, requires_grad=True)
    drawn = distributions.LowRankMultivariateNormal(loc, columns, diagonal).rsample((3,))
    drawn.sum().backward()
    assert loc.grad.tolist() == [3.0, 3.0]
    assert columns.grad.abs().sum().item() > 0 and diagonal.grad.abs().sum().item() > 0


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="cov_diag"):
        distributions.LowRankMultivariateNormal(Tensor.ones(2), Tensor.ones(2, 1), Tensor.ones(3))
    unit = distributions.MultivariateNormal(Tensor.zeros(2), Tensor.eye(2))
    with pytest.raises(ValueError, match="events of shape"):
        unit.log_prob(Tensor.zeros(3))


def test_functions_that_programs_import() -> None:
    ours = importlib.import_module("picograd.distributions.multivariate_normal")
    theirs = torch.distributions.multivariate_normal
    matrix, x = torch.tensor(COVARIANCE), torch.tensor([[0.5, 2.0], [1.0, 0.0]])
    mine, y = Tensor(COVARIANCE), Tensor(x.numpy())
    check_same(ours._precision_to_scale_tril(mine), theirs._precision_to_scale_tril(matrix))
    check_same(ours._batch_mv(mine, y), theirs._batch_mv(matrix, x))
    factor, lower = torch.linalg.cholesky(matrix), picograd.linalg.cholesky(mine)
    check_same(ours._batch_mahalanobis(lower, y), theirs._batch_mahalanobis(factor, x))


def test_under_jit() -> None:
    @picograd.jit
    def step(columns: Tensor, x: Tensor) -> Tensor:
        low = distributions.LowRankMultivariateNormal(x * 0.0, columns, Tensor(DIAGONAL))
        return low.log_prob(x) + low.entropy() + low.rsample().sum() * 0.0

    low = torch.distributions.LowRankMultivariateNormal(
        torch.zeros(2), torch.tensor(COLUMNS), torch.tensor(DIAGONAL)
    )
    want = low.log_prob(torch.tensor([0.5, 2.0])) + low.entropy()
    for _ in range(2):
        check_same(step(Tensor(COLUMNS), Tensor([0.5, 2.0])), want)


def test_classes_that_find_their_factor_later() -> None:
    """A derived class may compute the factor itself, and ask for the matrices of its base."""

    class Later(distributions.MultivariateNormal):
        def __init__(self, loc, covariance):
            self.loc, self.matrix = loc, covariance
            distributions.Distribution.__init__(self, (), loc.shape)

        @property
        def _unbroadcasted_scale_tril(self):
            return picograd.linalg.cholesky(self.matrix)

        @property
        def covariance_matrix(self):
            return super().covariance_matrix * 1.0

    covariance, point = Tensor([[2.0, 0.5], [0.5, 1.0]]), Tensor([1.0, -1.0])
    later = Later(Tensor.zeros(2), covariance)
    plain = distributions.MultivariateNormal(Tensor.zeros(2), covariance)
    assert later.log_prob(point).item() == pytest.approx(plain.log_prob(point).item(), rel=1e-6)
    assert later.covariance_matrix.allclose(covariance) and later.variance.allclose(plain.variance)
