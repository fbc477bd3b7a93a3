"""Every row is the function it says, under its own name and documentation."""

import inspect

import pytest

import picograd
from picograd.tensor.core.function import FUNCTIONS


@pytest.mark.parametrize("name", sorted(name for name, row in FUNCTIONS.items() if row.function))
def test_every_row_is_shown(name: str) -> None:
    row, shown = FUNCTIONS[name], getattr(picograd, name)
    assert shown.__doc__ == row.definition.__doc__ and shown.__name__ == name
    assert "Node" not in str(inspect.signature(shown))
