"""What all distributions do: checks that can be turned off, shapes that are expanded."""

import math

from picograd import Tensor, distributions


def test_checks_and_shapes() -> None:
    d = distributions
    unchecked = d.Normal(Tensor([0.0]), Tensor([-1.0]), validate_args=False)
    assert math.isnan(unchecked.log_prob(Tensor([0.0])).item())
    assert d.Normal(0.0, 1.0).expand((2, 3)).sample().shape == (2, 3)
