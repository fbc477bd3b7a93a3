"""What arguments may be: the checks that a signature gives, and the first misfit."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from picograd import Tensor
from picograd.errors import DTypeError
from picograd.tensor.core import argument_kinds as kinds


def scaled(x: Any, size: int, factor: float | None = None, *, is_even: bool = False) -> None:
    """A function with a signature."""


CHECKS = kinds.checks_of(scaled, ("x", "size", "factor", "is_even"), 3)


def test_ints_numbers_and_flags_are_checked() -> None:
    assert [each.name for each in CHECKS] == ["size", "factor", "is_even"]
    kinds.check_call("scaled", CHECKS, (None, np.int64(3), None), {"is_even": True})
    kinds.check_call("scaled", CHECKS, (None, Tensor.of(3), 2), {"factor": None})


@pytest.mark.parametrize(
    ("args", "options", "text"),
    [
        ((0, 2.0), {}, "size must be an int, not 2.0"),
        ((0, True), {}, "size must be an int, not True"),
        ((0, 1, "a"), {}, "factor must be a number or None, not 'a'"),
        ((0, 1), {"factor": 1j}, "factor must be a number or None, not 1j"),
        ((0, 1), {"is_even": [1]}, "is_even must be True or False, not list"),
    ],
)
def test_what_does_not_fit_is_named(args: Any, options: Any, text: str) -> None:
    with pytest.raises(DTypeError, match="^scaled: ") as caught:
        kinds.check_call("scaled", CHECKS, args, options)
    assert text in str(caught.value)


def listed(sizes: Sequence[int], function: Callable[[], Any], other: int | str) -> None:
    """A function that nobody checks at the door."""


def test_a_misfit_is_found_after_a_failure() -> None:
    assert kinds.misfit("listed", listed, ([1, 2], print, "a"), {}) is None
    for args in (([1.5], print, 1), ([1], 3, 1), ([1], print, 2.5), ([1], print, Tensor.of(1))):
        assert isinstance(kinds.misfit("listed", listed, args, {}), DTypeError)
