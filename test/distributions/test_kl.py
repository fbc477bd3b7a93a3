"""Divergences: of equal distributions none, of pairs nobody registered an error."""

import math

import pytest

from picograd import Tensor, distributions


def test_of_what_is_made_of_others() -> None:
    two = [distributions.Normal(Tensor.zeros(2, 3), Tensor.ones(2, 3)) for _ in range(2)]
    pair = [distributions.Independent(each, 1) for each in two]
    assert distributions.kl_divergence(*pair).tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="register_kl"):
        distributions.kl_divergence(pair[0], distributions.Poisson(1.0))


def test_of_two_kinds_of_the_users_own() -> None:
    class Mine(distributions.Normal):
        pass

    @distributions.register_kl(Mine, distributions.Poisson)
    def divergence(first: Mine, second: distributions.Poisson) -> Tensor:
        return first.mean * 0 + 7

    assert distributions.kl_divergence(Mine(0.0, 1.0), distributions.Poisson(1.0)).item() == 7


def test_what_the_second_rules_out_is_infinitely_far() -> None:
    first, second, even = Tensor([0.9, 0.1]), Tensor([1.0, 0.0]), Tensor(0.5)
    for kind in (distributions.Categorical, distributions.OneHotCategorical):
        assert distributions.kl_divergence(kind(first), kind(second)).item() == math.inf
        assert math.isfinite(distributions.kl_divergence(kind(second), kind(first)).item())
    counts = [distributions.Binomial(count, even) for count in (2, 3)]
    assert distributions.kl_divergence(counts[1], counts[0]).item() == math.inf
    with pytest.raises(NotImplementedError, match="the second Binomial has more trials"):
        distributions.kl_divergence(*counts)
