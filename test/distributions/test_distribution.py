"""What all distributions do: checks that can be turned off, shapes that are expanded."""

import math

import pytest

import picograd
from picograd import Tensor, distributions


def test_checks_and_shapes() -> None:
    d = distributions
    unchecked = d.Normal(Tensor([0.0]), Tensor([-1.0]), validate_args=False)
    assert math.isnan(unchecked.log_prob(Tensor([0.0])).item())
    assert d.Normal(0.0, 1.0).expand((2, 3)).sample().shape == (2, 3)


def test_values_are_not_looked_at_where_classes_say_so() -> None:
    class Silent(picograd.distributions.Normal):
        _validate_args = False

    assert abs(Silent(0.0, 1.0).cdf(0.0).item() - 0.5) < 1e-6
    with pytest.raises(picograd.errors.ShapeError, match="pass a Tensor"):
        picograd.distributions.Normal(0.0, 1.0).cdf(0.0)


def test_a_program_that_asks_whether_to_check_does(cpu_by_default: None) -> None:
    class Above(distributions.Distribution):
        support = distributions.constraints.positive

        def log_prob(self, value: Tensor) -> Tensor:
            if self._validate_args:
                self._validate_sample(value)
            return -value

    assert Above().log_prob(Tensor(2.0)).item() == -2.0
    with pytest.raises(ValueError, match="value of shape"):
        Above().log_prob(Tensor(-2.0))
    assert Above(validate_args=False).log_prob(Tensor(-2.0)).item() == 2.0
