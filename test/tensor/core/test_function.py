"""The table of functions: every row is shown where it says."""

import inspect
import pickle

import pytest

from picograd import nn
from picograd.tensor.core.function import MODULES


@pytest.mark.parametrize("name", sorted(MODULES["functional"]))
def test_every_function_of_layers_is_shown(name: str) -> None:
    row, shown = MODULES["functional"][name], getattr(nn.functional, name)
    assert shown.__doc__ == row.definition.__doc__ and shown.__name__ == name
    assert pickle.loads(pickle.dumps(shown)) is shown
    assert "Node" not in str(inspect.signature(shown))
    assert hasattr(nn.functional, f"{name}_") == row.in_place
