"""Arguments by any of their names, in any of their places."""

import inspect
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.tensor.core.calling import late_functions
from picograd.tensor.core.function import FUNCTIONS


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
    for named in (picograd.add(x1=x, x2=x), picograd.sum(a=x), picograd.maximum(x, x2=x)):
        assert named.tolist() in ([[2.0, 4.0], [8.0, 6.0]], 10.0, x.tolist())
    assert nn.functional.relu(x=x).tolist() == x.tolist()
    for call, text in (
        (lambda: x.sum(1, axis=1), "both axis and dim were given"),
        (lambda: x.sum(axis=1, dim=None), "both axis and dim were given"),
        (lambda: x.sum(other=1), "unexpected keyword argument 'other'"),
        (lambda: x.sum(1, True, "float64"), "takes 3 positional arguments but 4"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


NUMBERS = """
L.arange(n) | L.arange(n, 9) | L.arange(f, 5, f) | L.full((2,), f) | L.full((2,), n)
L.linspace(f, 4, n)
L.full_like(x, f) | x.new_full((n,), f) | x.repeat(n, n) | x.chunk(n, 1)[2] | x.split(n, 1)[0]
x.topk(n - 1, 1).values | x.kthvalue(n - 1, 1).values | x.cumsum(n - 2)
x.tril(n - 2) | x.diagonal(n - 3)
x.unfold(1, n - 1, 1) | x.tensor_split(n, 1)[1] | L.nn.functional.one_hot(i, n) | x.select(1, n - 1)
"""


@pytest.mark.parametrize("call", NUMBERS.strip().replace("\n", " | ").split(" | "))
def test_a_tensor_of_one_number_stands_for_it(call: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (picograd, torch):
        x = lib.arange(6.0).reshape(2, 3)
        names = {
            "L": lib,
            "x": x,
            "n": lib.tensor(3),
            "f": lib.tensor(2.5),
            "i": lib.tensor([0, 2]),
        }
        results.append(eval(call, names))
    found, wanted = results
    assert found.dtype.name == str(wanted.dtype)[6:]
    assert found.tolist() == wanted.tolist()


def test_a_number_that_is_learned_is_no_option() -> None:
    slope = Tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match="full: operand must be"):
        picograd.full((2,), slope)
    with pytest.raises(TypeError, match="is not an index|must be an int"):
        Tensor([1.0, 2.0]).topk(Tensor(1.0))


def test_functions_of_a_module_are_made_when_they_are_asked_for() -> None:
    space: dict[str, Any] = {"__name__": "picograd.somewhere"}
    find, _ = late_functions(space, {"exp": FUNCTIONS["exp"]})
    made = find("exp")
    assert made(Tensor([0.0])).tolist() == [1.0] and space["exp"] is made is find("exp")
    assert made.__module__ == "picograd.somewhere"
    with pytest.raises(AttributeError, match=r"'picograd\.somewhere' has no attribute 'nothing'"):
        find("nothing")
    for module in (picograd, picograd.special, picograd.nn.functional):
        assert set(module.__all__) <= set(dir(module))
        assert all(hasattr(module, name) for name in module.__all__)
