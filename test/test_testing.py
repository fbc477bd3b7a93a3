"""assert_close says what torch.testing's says."""

import re

import numpy as np
import pytest

import picograd
from picograd import Tensor, testing

CASES = [
    ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}),
    ([1.0, 2.0], [1.0, 2.1], {}),
    ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1, "atol": 0.0}),
    ([float("nan")], [float("nan")], {}),
    ([float("nan")], [float("nan")], {"equal_nan": True}),
    ([float("inf")], [float("inf")], {}),
    ([1, 2], [1, 3], {}),
    ([True], [False], {}),
    ([], [], {}),
    ([1.0], [[1.0]], {}),
    ([1.0], [1], {}),
    ([1.0], [1], {"check_dtype": False}),
    ([1 + 1j], [1 + 1j], {}),
]


@pytest.mark.parametrize(("a", "b", "options"), CASES)
def test_it_raises_where_pytorch_does(a: list, b: list, options: dict) -> None:
    torch = pytest.importorskip("torch")
    outcomes = []
    for lib, made in ((picograd, picograd.tensor), (torch, torch.tensor)):
        try:
            lib.testing.assert_close(made(a), made(b), **options)
            outcomes.append(True)
        except AssertionError:
            outcomes.append(False)
    assert outcomes[0] == outcomes[1]


def test_containers_and_messages() -> None:
    x = Tensor([1.0, 2.0])
    testing.assert_close({"a": [x, 1.0]}, {"a": [x, 1.0]})
    with pytest.raises(AssertionError, match=re.escape("item ['a']: item [0]: 1 of 2 elements")):
        testing.assert_close({"a": [x]}, {"a": [x + Tensor([0.0, 1.0])]})
    with pytest.raises(AssertionError, match="lengths differ: 1 and 2"):
        testing.assert_close([x], [x, x])
    with pytest.raises(AssertionError, match="mine: 2 of 2"):
        testing.assert_close(x, x + 1, msg=lambda text: f"mine: {text}")
    with pytest.raises(picograd.errors.DTypeError, match="give both"):
        testing.assert_close(x, x, rtol=1.0)
    testing.assert_close(np.float32(1.0), 1.0)
