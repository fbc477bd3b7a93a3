"""Distributions of counts and choices, against PyTorch's."""

import math

import pytest
from distribution_support import A, P, check_against_pytorch, check_divergence, check_moments

import picograd
from picograd import Tensor, distributions

torch = pytest.importorskip("torch")

ROWS = [
    ("Poisson", (A,), [0.0, 1.0, 3.0]),
    ("Bernoulli", (P,), [0.0, 1.0, 1.0]),
    ("Geometric", (P,), [0.0, 1.0, 3.0]),
    ("Binomial", (4, P), [0.0, 1.0, 3.0]),
    ("Categorical", (P,), [0.0, 1.0, 2.0]),
    ("OneHotCategorical", (P,), [0.0, 1.0, 0.0]),
    ("Multinomial", (4, P), [1.0, 2.0, 1.0]),
]


@pytest.mark.parametrize(("name", "given", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_against_pytorch(name: str, given: tuple, values: list[float]) -> None:
    check_against_pytorch(name, given, values)
    check_divergence(name, given)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row[0] in ("Geometric", "Binomial", "Multinomial")],
    ids=lambda row: row[0],
)
def test_draws_have_the_moments(row: tuple) -> None:
    check_moments(*row[:2])


def test_log_probabilities_at_the_ends():
    for library in (picograd, torch):
        d, tensor = library.distributions, library.tensor
        assert d.Geometric(1).log_prob(tensor(0.0)).item() == 0.0
        assert d.Geometric(1).log_prob(tensor(1.0)).item() == -math.inf
        assert d.Beta(1.0, 1.0).log_prob(tensor([0.0, 1.0])).tolist() == [0.0, 0.0]
        p, q = tensor([0.0, 0.0, 1.0, 0.5]), tensor([0.0, 1.0, 0.0, 1.0])
        found = d.kl_divergence(d.Bernoulli(p), d.Bernoulli(q)).tolist()
        assert found == [0.0, math.inf, math.inf, math.inf]


def test_what_cannot_occur_and_does_not_counts_for_nothing() -> None:
    logits = Tensor([-math.inf, 0.0])
    for choices, count in (
        (distributions.OneHotCategorical(logits=logits), 1.0),
        (distributions.Multinomial(10, logits=logits), 10.0),
    ):
        assert choices.log_prob(Tensor([0.0, count])).item() == 0
        assert choices.log_prob(Tensor([count, 0.0])).item() == -math.inf


def test_chances_and_trials_that_make_no_sense(cpu_by_default: None) -> None:
    for probs in (0, Tensor([0.0, 0.5])):
        with pytest.raises(ValueError, match="Geometric: parameter probs"):
            distributions.Geometric(probs)
    with pytest.raises(NotImplementedError, match="counts of trials differ"):
        distributions.Binomial(Tensor([10.0, 8.0]), 0.5).enumerate_support()
