"""One definition: the method, the function, the form in place, and what type checkers read."""

import importlib.util
import inspect
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

import picograd
from picograd import Tensor, nn
from picograd.tensor.core.function import FUNCTIONS, MODULES

ROOT = Path(__file__).parents[3]


def load_tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("stubs", ROOT / "docs/stubs.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["stubs"] = module
    specification.loader.exec_module(module)
    return module


def test_stubs_are_up_to_date(update_golden: bool) -> None:
    tool = load_tool()
    if update_golden:
        tool.main()
    for name, text in tool.write_stubs().items():
        assert (tool.FOLDER / name).read_text() == text, "run python docs/stubs.py"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_row_is_shown(name: str) -> None:
    row = FUNCTIONS[name]
    shown = [getattr(Tensor, name, None)] * row.method
    shown += [getattr(picograd, name, None)] * row.function
    for each in shown:
        assert each.__doc__ == row.definition.__doc__ and each.__name__ == name
        assert "Node" not in str(inspect.signature(each))
    assert not row.in_place or getattr(Tensor, f"{name}_").form_of == name


@pytest.mark.parametrize("name", sorted(MODULES["functional"]))
def test_every_function_of_layers_is_shown(name: str) -> None:
    row, shown = MODULES["functional"][name], getattr(nn.functional, name)
    assert shown.__doc__ == row.definition.__doc__ and shown.__name__ == name
    assert pickle.loads(pickle.dumps(shown)) is shown
    assert "Node" not in str(inspect.signature(shown))
    assert hasattr(nn.functional, f"{name}_") == row.in_place


def test_inplace_by_place_and_by_name() -> None:
    for call in (
        lambda x: nn.functional.leaky_relu(x, 0.5, True),
        lambda x: nn.functional.leaky_relu(input=x, negative_slope=0.5, inplace=True),
        lambda x: nn.functional.leaky_relu_(x, 0.5),
    ):
        x = Tensor([-1.0, 2.0])
        assert call(x) is x and x.tolist() == [-0.5, 2.0]
    assert list(inspect.signature(nn.functional.elu).parameters) == ["input", "alpha", "inplace"]
    with pytest.raises(TypeError, match="positional"):
        nn.functional.relu(Tensor([1.0]), True, True)


def test_arguments_by_name_are_put_in_place() -> None:
    x = Tensor([[1.0, 2.0], [4.0, 3.0]])
    assert x.sum(axis=1).tolist() == x.sum(dim=1).tolist() == picograd.sum(input=x, dim=1).tolist()
    assert x.var(keepdims=True, unbiased=False, axis=0).tolist() == [[2.25, 0.25]]
    assert x.sum(1, dtype="float64").dtype is picograd.float64
    for call, text in (
        (lambda: x.sum(1, axis=1), "both axis and dim were given"),
        (lambda: x.sum(axis=1, dim=None), "both axis and dim were given"),
        (lambda: x.sum(other=1), "unexpected keyword argument 'other'"),
        (lambda: x.sum(1, True, "float64"), "takes 3 positional arguments but 4"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
