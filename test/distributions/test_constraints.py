"""Parameters and values outside of what a distribution allows are named."""

import math

import pytest

from picograd import Tensor, distributions


def test_wrong_parameters_are_named(cpu_by_default: None) -> None:
    d = distributions
    for wrong in (
        lambda: d.Normal(Tensor([0.0]), Tensor([-1.0])),
        lambda: d.Bernoulli(Tensor([1.5])),
        lambda: d.Normal(Tensor([math.nan]), 1.0),
        lambda: d.Exponential(1.0).log_prob(Tensor([-1.0])),
        lambda: d.Categorical(),
    ):
        with pytest.raises(ValueError):
            wrong()
