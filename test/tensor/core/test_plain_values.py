"""Plain values are the same if their types and values are."""

from typing import Any

import numpy as np
import pytest

from picograd.tensor.core.plain_values import is_plain, is_plain_value, is_same


@pytest.mark.parametrize(
    ("value", "wanted", "result"),
    [
        (1, 1, True), (1, True, False), (1, 1.0, False), (0.0, -0.0, False), (0.5, 0.5, True),
        ("a", "a", True), ((1, (2, "b")), (1, (2, "b")), True), ((1, 2), (1, 2, 3), False),
        ((1, 0.0), (1, -0.0), False), ([1], [1], False), (np.int64(2), np.int64(2), True),
        (float("nan"), float("nan"), False),
    ],
)  # fmt: skip
def test_same_values(value: Any, wanted: Any, result: bool) -> None:
    assert is_same(value, wanted) is result


def test_plain_tuples() -> None:
    assert is_plain((1, ("a", None), ...)) and is_plain_value(int)
    assert not is_plain((1, [2])) and not is_plain_value(len) and not is_plain_value(lambda: 0)
