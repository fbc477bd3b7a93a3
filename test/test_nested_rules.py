"""The tables of what nested tensors take name functions that there are, each in one way."""

from picograd import Tensor
from picograd.nested_rules import ALONG, ELEMENTWISE, ON_ROWS, OPERATORS
from picograd.nn import functional


def test_names_are_those_of_functions() -> None:
    for name in (*ALONG, *ON_ROWS, *OPERATORS.values()):
        assert hasattr(Tensor, name) or hasattr(functional, name), name


def test_each_function_is_called_in_one_way() -> None:
    assert not ELEMENTWISE & (ALONG.keys() | ON_ROWS)
