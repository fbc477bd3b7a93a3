"""The front door: raw errors are named, others pass."""

import pickle
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.tensor.guard import described, guarded, is_guarded, translated

X = Tensor([[1.0, 2.0], [3.0, 4.0]])


def test_raw_errors_become_ours() -> None:
    with pytest.raises(DTypeError, match="argument 0 must be a Tensor, not int") as caught:
        nn.functional.relu(3)
    assert isinstance(caught.value.__cause__, AttributeError) or caught.value.op == "relu"
    with pytest.raises(
        DTypeError, match=r"roll: the arguments \(float32\(2, 2\), 'a'\) do not fit"
    ):
        picograd.roll(X, "a")
    with pytest.raises(TypeError, match="op: the arguments"):
        raise translated("op", TypeError("no"), (1,))
    assert type(translated("op", IndexError("far"), ())) is ShapeError
    assert type(translated("op", KeyError("k"), ())) is ValueRangeError


def test_errors_of_the_caller_pass() -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        picograd.checkpoint(fails, X)
    with pytest.raises(KeyError, match="mine"):
        picograd.jvp(fails, X, X)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        X.sum(nothing=3)
    with pytest.raises(TypeError, match="missing 2 required"):
        picograd.roll()


def test_guarded_functions_are_themselves() -> None:
    assert is_guarded(nn.functional.relu) and not is_guarded(described)  # type: ignore[arg-type]
    assert nn.functional.relu.__doc__ and nn.functional.relu.__name__ == "relu"
    for function in (nn.functional.relu, picograd.zeros_like, picograd.linalg.inv):
        assert pickle.loads(pickle.dumps(function)) is function
    assert not is_guarded(Tensor.__add__)  # operators are called often

    @guarded
    def double(x: Any, *, times: int = 2) -> Any:
        """Multiply."""
        return x * times

    assert double(3, times=3) == 9 and double.__doc__ == "Multiply."


def test_arguments_are_described() -> None:
    found = [described(each) for each in (X, 3, "a", None, [1], "b" * 50)]
    assert found == ["float32(2, 2)", "3", "'a'", "None", "list", "str"]
