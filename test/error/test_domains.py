"""Values outside an operation's domain: defined results, as PyTorch's where PyTorch defines any.

Floats give NaN and infinities. Integer division by zero gives 0 (PyTorch's CPU kernels raise, its
CUDA kernels are undefined), a float too large for an integer dtype saturates, NaN becomes 0, and
shifts by the width or more shift everything out.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ValueRangeError

INF, NAN = math.inf, math.nan
FLOATS = [INF, -INF, NAN, 1e30, -1e30]
LOWEST = {"int8": -128, "int32": -(2**31), "int64": -(2**63)}


def same(found: Any, wanted: Any) -> bool:
    """Compare nested lists, NaN being equal to itself."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return found == wanted or (found != found and wanted != wanted)


FLOAT_CASES: list[tuple[str, Callable[[], Tensor], Any]] = [
    ("log", lambda: Tensor([-1.0, 0.0]).log(), [NAN, -INF]),
    ("log2", lambda: Tensor([-1.0, 0.0]).log2(), [NAN, -INF]),
    ("log1p", lambda: Tensor([-2.0, -1.0]).log1p(), [NAN, -INF]),
    ("sqrt", lambda: Tensor([-1.0, 0.0]).sqrt(), [NAN, 0.0]),
    ("rsqrt", lambda: Tensor([-1.0, 0.0]).rsqrt(), [NAN, INF]),
    ("reciprocal", lambda: Tensor([0.0, -0.0]).reciprocal(), [INF, -INF]),
    ("div", lambda: Tensor([1.0, -1.0, 0.0]) / 0.0, [INF, -INF, NAN]),
    ("floordiv", lambda: Tensor([1.0, -1.0]) // 0.0, [INF, -INF]),
    ("mod", lambda: Tensor([1.0]) % 0.0, [NAN]),
    ("pow root", lambda: Tensor([-1.0]) ** 0.5, [NAN]),
    ("pow negative", lambda: Tensor([0.0]) ** -1.0, [INF]),
    ("exp", lambda: Tensor([1000.0, -1000.0]).exp(), [INF, 0.0]),
    ("mul", lambda: Tensor([1e38]) * 10.0, [INF]),
    ("half", lambda: Tensor([1e5, -1e5]).half().float(), [INF, -INF]),
    ("sin", lambda: Tensor([INF, -INF]).sin(), [NAN, NAN]),
    ("softmax", lambda: Tensor([-INF, -INF]).softmax(0), [NAN, NAN]),
    ("max", lambda: Tensor([NAN, 1.0]).max(), NAN),
    ("argmax", lambda: Tensor([1.0, NAN]).argmax(), 1),
    ("maximum", lambda: Tensor([NAN]).maximum(1.0), [NAN]),
    ("mean of nothing", lambda: Tensor([]).mean(), NAN),
    ("var of one", lambda: Tensor([1.0]).var(), NAN),
    ("sum of nothing", lambda: Tensor([]).sum(), 0.0),
    ("layer_norm of inf", lambda: Tensor([INF, 1.0]) - Tensor([INF, 1.0]).mean(), [NAN, -INF]),
]


@pytest.mark.parametrize("case", FLOAT_CASES, ids=lambda case: case[0])
def test_floats(case: tuple[str, Callable[[], Tensor], Any]) -> None:
    found = case[1]().tolist()
    assert same(found, case[2]), found


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint64"])
def test_integers_are_not_divided_by_a_known_zero(dtype: str, cpu_by_default: None) -> None:
    a, zero = Tensor([7, 0, 1], dtype=dtype), Tensor([1, 0, 2], dtype=dtype)
    for wrong in (lambda: a // zero, lambda: a % zero, lambda: a // 0, lambda: a % 0,
                  lambda: a.fmod(zero), lambda: a.div(zero, rounding_mode="trunc")):  # fmt: skip
        with pytest.raises(ValueRangeError, match="an integer is divided by zero"):
            wrong()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint64"])
def test_by_a_zero_that_comes_later(dtype: str) -> None:
    """At once on a CPU, else when a value is read; after every run under jit and vmap."""
    a, one = Tensor([7, 0, 1], dtype=dtype), Tensor([1, 2, 1], dtype=dtype)
    calls = [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a.fmod(b),
             lambda a, b: a.div(b, rounding_mode="trunc")]  # fmt: skip
    for call in calls:
        for way in (call, picograd.jit(call), picograd.vmap(call)):
            assert way(a, one * 2).tolist() == call(a, Tensor([2, 4, 2], dtype=dtype)).tolist()
            with pytest.raises(RuntimeError, match="an integer is divided by zero"):
                way(a, one - 1).tolist()
    assert (a // (one.clamp(min=1))).tolist() == [7, 0, 1]


@pytest.mark.parametrize("dtype", list(LOWEST))
def test_the_lowest_integer_by_minus_one_wraps(dtype: str) -> None:
    lowest, minus = Tensor([LOWEST[dtype]], dtype=dtype), Tensor([-1], dtype=dtype)
    assert (lowest // minus).tolist() == [LOWEST[dtype]]
    assert (lowest % minus).tolist() == [0]
    assert lowest.abs().tolist() == (-lowest).tolist() == [LOWEST[dtype]]


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("int8", [127, -128, 0, 127, -128]),
        ("uint8", [255, 0, 0, 255, 0]),
        ("int32", [2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31)]),
        ("int64", [2**63 - 1, -(2**63), 0, 2**63 - 1, -(2**63)]),
        ("bool", [True, True, True, True, True]),
    ],
)
def test_float_to_integer_saturates(dtype: str, wanted: list[Any]) -> None:
    assert Tensor(FLOATS).cast(dtype).tolist() == wanted


def test_shifts_past_the_width() -> None:
    one, width = Tensor([1, -1]), Tensor([64, 64])
    assert (one << width).tolist() == [0, 0]
    assert (one >> width).tolist() == [0, -1]
    assert (one << Tensor([-1, -1])).tolist() == [0, 0]


def test_integer_power_of_a_negative_exponent() -> None:
    found = Tensor([2, 1, -1]) ** Tensor([-1, -1, -1])
    assert found.tolist() == [0, 1, -1]


def test_gradients_at_the_border_are_not_a_crash() -> None:
    x = Tensor([-1.0, 0.0, 4.0], requires_grad=True)
    x.sqrt().sum().backward()
    assert x.grad is not None and same(x.grad.tolist(), [NAN, INF, 0.25])


def test_layers_without_outputs() -> None:
    """A plan whose temporaries are all empty needs no arena."""
    layer = nn.Linear(2, 0)
    assert layer(Tensor([[1.0, 2.0]])).numpy().shape == (1, 0)
    assert layer(Tensor([[1.0, 2.0]])).sum().item() == 0.0


def test_zero_rounded_down_has_the_sign_of_the_quotient(device: str) -> None:
    a = np.array([-0.0, 0.0, 0.0, -0.0, -3.0, 3.0, -0.0, 2.0], np.float32)
    b = np.array([1.0, 1.0, -1.0, INF, -4.0, 4.0, -2.0, INF], np.float32)
    found = (Tensor(a, device=device) // Tensor(b, device=device)).numpy()
    with np.errstate(all="ignore"):
        want = np.floor_divide(a, b)
    assert (found == want).all() and (np.signbit(found) == np.signbit(want)).all(), found
