"""Constraints: what is inside, as PyTorch says; parameters and values outside are named."""

import math

import numpy as np
import pytest
from distribution_support import torch

import picograd
from picograd import Tensor, distributions
from picograd.distributions import constraints

MATRICES = np.array(
    [
        [[1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.6, 0.8]],
        [[2.0, 0.5], [0.5, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[-1.0, 0.0], [2.0, 3.0]],
        [[1.0, 2.0], [2.0, 1.0]],
    ],
    np.float32,
)
NUMBERS = np.array([-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, math.nan, math.inf], np.float32)
VECTORS = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 1.0], [-1.0, 2.0], [2.0, 1.0]], np.float32)
OF_NUMBERS = {
    "real": (), "positive": (), "nonnegative": (), "unit_interval": (), "boolean": (),
    "nonnegative_integer": (), "positive_integer": (), "interval": (-1.0, 2.0),
    "half_open_interval": (-1.0, 2.0), "integer_interval": (-1, 2), "greater_than": (0.5,),
    "greater_than_eq": (0.5,), "less_than": (0.5,), "_IntegerLessThan": (1,),
}  # fmt: skip
OF_VECTORS = {"simplex": (), "one_hot": (), "real_vector": (), "multinomial": (2,)}
OF_MATRICES = [
    "square", "symmetric", "lower_triangular", "lower_cholesky", "corr_cholesky",
    "positive_definite",
]  # fmt: skip


def of(library, name: str, given: tuple):
    found = getattr(library.distributions.constraints, name)
    return found(*given) if given else found


def check(name: str, given: tuple, values: np.ndarray) -> None:
    ours, theirs = of(picograd, name, given), of(torch, name, given)
    want = theirs.check(torch.from_numpy(values)).numpy()
    np.testing.assert_array_equal(ours.check(Tensor(values)).numpy(), want)
    np.testing.assert_array_equal(ours.check(values), want)  # what is known already
    assert repr(ours) == repr(theirs) or name == "multinomial"
    assert (ours.event_dim, ours.is_discrete) == (theirs.event_dim, theirs.is_discrete)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_of_numbers(name: str) -> None:
    check(name, OF_NUMBERS[name], NUMBERS)


@pytest.mark.parametrize("name", OF_VECTORS)
def test_of_vectors(name: str) -> None:
    check(name, OF_VECTORS[name], VECTORS)


@pytest.mark.parametrize("name", OF_MATRICES)
def test_of_matrices(name: str) -> None:
    # PyTorch's answer for a batch is that of symmetry alone where one of it is not symmetric
    check(name, (), MATRICES[[0, 2, 3, 5]] if name == "positive_definite" else MATRICES)


def test_matrices_that_are_not_square_or_singular() -> None:
    assert not constraints.positive_definite.check(Tensor.ones(2, 3)).item()
    assert constraints.square.check(Tensor.ones(4, 2, 3)).tolist() == [False] * 4
    semidefinite = constraints.positive_semidefinite.check(MATRICES[2:4].astype(np.float64))
    assert semidefinite[0] and not constraints.positive_definite.check(MATRICES[5:])[0]
    assert not constraints.positive_semidefinite.check(MATRICES[5:])[0]


def test_of_parts() -> None:
    """Joined, stacked, and of more axes."""
    values = np.abs(np.random.default_rng(0).standard_normal((2, 3, 4))).astype(np.float32)
    found = []
    for library, value in ((picograd, Tensor(values)), (torch, torch.from_numpy(values))):
        c = library.distributions.constraints
        cat = c.cat([c.positive, c.less_than(1.0)], dim=1, lengths=[1, 2])
        stack = c.stack([c.positive, c.unit_interval], dim=0)
        wide = c.independent(c.unit_interval, 2)
        mixed = c.MixtureSameFamilyConstraint(c.unit_interval)
        rows = [each.check(value).tolist() for each in (cat, stack, wide)]
        found.append((rows, [each.event_dim for each in (cat, stack, wide, mixed)]))
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="2 lengths for 1"):
        constraints.cat([constraints.real], lengths=[1, 1])
    with pytest.raises(ValueError, match="axes"):
        constraints.real_vector.check(Tensor(1.0))
    with pytest.raises(ValueError, match="lower_bound"):
        constraints.greater_than(1.0, 2.0)
    assert constraints.interval(lower_bound=0, upper_bound=2).upper_bound == 2


def test_dependent_ones() -> None:
    for library in (picograd, torch):
        c = library.distributions.constraints
        assert c.is_dependent(c.dependent) and not c.is_dependent(c.real)
        assert c.dependent(event_dim=1).event_dim == 1
        assert c.is_dependent(library.distributions.Uniform.support)
        assert isinstance(library.distributions.Normal.support, c._Real)
        with pytest.raises(NotImplementedError):
            print(c.dependent.is_discrete)
        with pytest.raises(ValueError):
            c.dependent.check(1.0)

    class Mine:
        @constraints.dependent_property(event_dim=0)
        def support(self) -> object:
            return constraints.positive

    assert Mine.support.event_dim == 0 and Mine().support is constraints.positive


def test_wrong_parameters_are_named(cpu_by_default: None) -> None:
    d = distributions
    for wrong in (
        lambda: d.Normal(Tensor([0.0]), Tensor([-1.0])),
        lambda: d.Bernoulli(Tensor([1.5])),
        lambda: d.Normal(Tensor([math.nan]), 1.0),
        lambda: d.Exponential(1.0).log_prob(Tensor([-1.0])),
        lambda: d.Uniform(0.0, 1.0).log_prob(Tensor([2.0])),
        lambda: d.Wishart(Tensor(1.0), Tensor([[1.0, 0.0], [0.0, 1.0]])),
        lambda: d.LKJCholesky(3, -1.0),
        lambda: d.VonMises(0.0, -1.0),
        lambda: d.Categorical(),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_a_constraint_of_a_program() -> None:
    """It is given tensors, where checks were asked for."""

    class Even(constraints.Constraint):
        def check(self, value: Tensor) -> Tensor:
            return value.remainder(2).eq(0)

    class Mine(distributions.Distribution):
        arg_constraints = {"size": Even()}

        def __init__(self, size: Tensor, validate_args: bool | None = None) -> None:
            self.size = size
            super().__init__(validate_args=validate_args)

    Mine(Tensor([2.0]), True)
    Mine(Tensor([3.0]))
    with pytest.raises(ValueError, match=r"size of shape \(1,\) is not within Even"):
        Mine(Tensor([3.0]), True)


def test_checks_of_programs_are_given_tensors(monkeypatch) -> None:
    """A check that a program puts into a class of ours reads tensors, as all of its own do."""
    seen = []

    def check(self, value):
        seen.append(value)
        return value.detach() > 0

    check.__module__ = constraints.__name__
    monkeypatch.setattr(type(constraints.positive), "check", check)
    distributions.Exponential(Tensor([1.0]), validate_args=True)
    assert all(isinstance(each, Tensor) for each in seen) and seen
