"""Methods that write into a tensor, as functions."""

import numpy as np
import pytest

import picograd
from picograd import in_place, late_names

NAMES = late_names.ELSEWHERE["in_place"]


@pytest.mark.parametrize("name", NAMES)
def test_the_function_is_the_method(name: str) -> None:
    function = getattr(picograd, name)
    assert function is getattr(in_place, name)
    assert getattr(function, "func", function) is getattr(picograd.Tensor, name)


def test_it_writes() -> None:
    x = picograd.tensor([0.5, 1.0])
    assert picograd.exp_(x) is x
    np.testing.assert_allclose(x.numpy(), np.exp([0.5, 1.0]), rtol=1e-6)
