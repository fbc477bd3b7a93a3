"""Every row is the method it says, in place too, under its own name and documentation."""

import inspect

import pytest

from picograd import Tensor
from picograd.tensor.core.function import FUNCTIONS


@pytest.mark.parametrize("name", sorted(name for name, row in FUNCTIONS.items() if row.method))
def test_every_row_is_shown(name: str) -> None:
    row, shown = FUNCTIONS[name], getattr(Tensor, name)
    assert shown.__doc__ == row.definition.__doc__ and shown.__name__ == name
    assert "Node" not in str(inspect.signature(shown))
    assert not row.in_place or getattr(Tensor, f"{name}_").form_of == name
