"""Elementwise ops x {once, twice, broadcast, non-contiguous, empty, zero-dim} x dtypes."""

import math
import operator
from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

from picograd import Tensor

torch = pytest.importorskip("torch")

UNARY: dict[str, tuple[Any, tuple[float, float]]] = {
    "neg": (lambda x: -x, (-3, 3)),
    "exp": (lambda x: x.exp(), (-3, 2)),
    "exp2": (lambda x: x.exp2(), (-3, 2)),
    "expm1": (lambda x: x.expm1(), (-3, 2)),
    "log": (lambda x: x.log(), (0.25, 4)),
    "log2": (lambda x: x.log2(), (0.25, 4)),
    "log10": (lambda x: x.log10(), (0.25, 4)),
    "log1p": (lambda x: x.log1p(), (-0.5, 3)),
    "sqrt": (lambda x: x.sqrt(), (0.25, 4)),
    "rsqrt": (lambda x: x.rsqrt(), (0.25, 4)),
    "reciprocal": (lambda x: x.reciprocal(), (0.25, 4)),
    "square": (lambda x: x.square(), (-3, 3)),
    "sin": (lambda x: x.sin(), (-3, 3)),
    "cos": (lambda x: x.cos(), (-3, 3)),
    "tan": (lambda x: x.tan(), (-1, 1)),
    "tanh": (lambda x: x.tanh(), (-3, 3)),
    "erf": (lambda x: x.erf(), (-3, 3)),
    "abs": (lambda x: x.abs(), (-3, 3)),
    "sign": (lambda x: x.sign(), (-3, 3)),
    "floor": (lambda x: x.floor(), (-3, 3)),
    "ceil": (lambda x: x.ceil(), (-3, 3)),
    "round": (lambda x: x.round(), (-3, 3)),
    "trunc": (lambda x: x.trunc(), (-3, 3)),
    "sigmoid": (lambda x: x.sigmoid(), (-3, 3)),
    "relu": (lambda x: x.relu(), (-3, 3)),
    "pow2": (lambda x: x**2, (-3, 3)),
    "pow3": (lambda x: x**3, (-3, 3)),
    "pow_half": (lambda x: x**0.5, (0.25, 4)),
    "pow_fraction": (lambda x: x**1.7, (0.25, 4)),
    "power_of": (lambda x: 2.0**x, (-2, 2)),
    "scalar_right": (lambda x: (x + 2) * 3 - 1.5, (-3, 3)),
    "scalar_left": (lambda x: 2 / (1.5 - x), (-1, 1)),
    "clamp": (lambda x: x.clamp(-1, 1.5), (-3, 3)),
    "clamp_low": (lambda x: x.clamp(min=0.5), (-3, 3)),
    "mod_scalar": (lambda x: x % 0.75, (-3, 3)),
}

FUNCTIONAL: dict[str, tuple[Any, Any]] = {
    "silu": (lambda x: x.silu(), torch.nn.functional.silu),
    "gelu": (lambda x: x.gelu(), torch.nn.functional.gelu),
    "gelu_tanh": (
        lambda x: x.gelu("tanh"),
        lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
    "leaky_relu": (lambda x: x.leaky_relu(), torch.nn.functional.leaky_relu),
    "elu": (lambda x: x.elu(1.5), lambda x: torch.nn.functional.elu(x, 1.5)),
    "softplus": (lambda x: x.softplus(), torch.nn.functional.softplus),
    "hardtanh": (lambda x: x.hardtanh(), torch.nn.functional.hardtanh),
    "relu6": (lambda x: (x * 4).relu6(), lambda x: torch.nn.functional.relu6(x * 4)),
    "logsigmoid": (lambda x: x.logsigmoid(), torch.nn.functional.logsigmoid),
}

BINARY: dict[str, tuple[Any, tuple[float, float]]] = {
    "add": (operator.add, (-3, 3)),
    "sub": (operator.sub, (-3, 3)),
    "mul": (operator.mul, (-3, 3)),
    "div": (operator.truediv, (0.5, 3)),
    "pow": (operator.pow, (0.5, 2)),
    "maximum": (lambda a, b: a.maximum(b), (-3, 3)),
    "minimum": (lambda a, b: a.minimum(b), (-3, 3)),
    "lerp": (lambda a, b: a.lerp(b, 0.25), (-3, 3)),
}

INTEGER = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "maximum": lambda a, b: a.maximum(b),
    "less": operator.lt,
    "equal": operator.eq,
}


def unary_cases(name: str, function: Any, low: float, high: float, reference: Any) -> list[Case]:
    def other(wrapped: Any) -> Any:
        return None if reference is None else wrapped

    x, row = numbers((3, 4), low, high), numbers((1, 4), low, high)
    ref = reference or function
    return [
        Case(name, function, [x], reference),
        Case(
            f"{name} twice",
            lambda t: function(t) * t + function(t),
            [x],
            other(lambda t: ref(t) * t + ref(t)),
        ),
        Case(
            f"{name} broadcast",
            lambda t: function(t.expand(3, 4)),
            [row],
            other(lambda t: ref(t.expand(3, 4))),
        ),
        Case(
            f"{name} non-contiguous",
            lambda t: function(t.T[:, 1:]),
            [x],
            other(lambda t: ref(t.T[:, 1:])),
        ),
        Case(f"{name} empty", function, [numbers((0, 4))], reference),
        Case(f"{name} zero-dim", function, [numbers((), low, high)], reference),
        Case(name, function, [x], reference, dtype="float64"),
        Case(name, function, [x], reference, dtype="float16", has_gradient=False),
        Case(name, function, [x], reference, dtype="bfloat16", has_gradient=False),
    ]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, device: str) -> None:
    function, (low, high) = UNARY[name]
    compare(unary_cases(name, function, low, high, None), device)


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_activation(name: str, device: str) -> None:
    function, reference = FUNCTIONAL[name]
    compare(unary_cases(name, function, -3, 3, reference), device)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, device: str) -> None:
    function, (low, high) = BINARY[name]
    x, y = numbers((3, 4), low, high), numbers((3, 4), low, high, seed=1)
    row, column = numbers((4,), low, high), numbers((3, 1), low, high)
    cases = [
        Case(name, function, [x, y]),
        Case(f"{name} broadcast", function, [x, row]),
        Case(f"{name} outer", function, [column, row]),
        Case(f"{name} non-contiguous", lambda a, b: function(a.T, b.T[:, :]), [x, y]),
        Case(f"{name} empty", function, [numbers((0, 4)), row]),
        Case(f"{name} zero-dim", function, [x, numbers((), low, high)]),
        Case(name, function, [x, y], dtype="float64"),
        Case(name, function, [x, y], dtype="bfloat16", has_gradient=False),
    ]
    if name not in ("maximum", "minimum", "sub"):  # ties: all of the gradient is one tensor's
        cases.append(Case(f"{name} twice", lambda a: function(a, a), [x]))
    compare(cases, device)


@pytest.mark.parametrize("name", INTEGER)
def test_integer(name: str, device: str) -> None:
    function, cases = INTEGER[name], []
    for dtype in ("int64", "int32", "uint8"):
        low = 0 if dtype == "uint8" else -5
        a = integers((3, 4), low, 6, dtype)
        b = np.where(integers((4,), low, 6, dtype) == 0, 3, integers((4,), low, 6, dtype))
        cases.append(Case(f"{name} {dtype}", function, [a, b.astype(dtype)], has_gradient=False))
    compare(cases, device)


def test_predicates(device: str) -> None:
    special = np.array([0.0, -1.5, np.inf, -np.inf, np.nan, 2.0])
    names = {
        "isnan": lambda x: x.isnan(),
        "isinf": lambda x: x.isinf(),
        "isfinite": lambda x: x.isfinite(),
        "not": lambda x: x.logical_not(),
        "less": lambda x: x < 1,
        "greater_equal": lambda x: x >= 0,
        "equal": lambda x: x == 2,
        "not_equal": lambda x: x != 2,
        "and": lambda x: (x > 0) & (x < 3),
        "xor": lambda x: x.logical_xor(x.sign()),
        "invert": lambda x: ~(x > 0),
        "maximum": lambda x: x.maximum(x.abs()),
        "relu": lambda x: x.relu(),
        "clamp": lambda x: x.clamp(-1, 1),
        "exp": lambda x: x.exp(),
        "log1p": lambda x: x.abs().log1p(),
        "expm1": lambda x: x.expm1(),
        "tanh": lambda x: x.tanh(),
        "sigmoid": lambda x: x.sigmoid(),
    }
    compare([Case(name, f, [special], has_gradient=False) for name, f in names.items()], device)


def test_extreme_arguments(device: str) -> None:
    wide = np.array([-100.0, -30.0, -1e-6, 0.0, 1e-6, 30.0, 80.0])
    cases = [
        Case("sigmoid", lambda x: x.sigmoid(), [wide]),
        Case("tanh", lambda x: x.tanh(), [wide]),
        Case("softplus", lambda x: x.softplus(), [wide], torch.nn.functional.softplus),
        Case("expm1", lambda x: (x * 0.1).expm1(), [wide]),
        Case("gelu", lambda x: x.gelu(), [wide], torch.nn.functional.gelu),
        Case("elu", lambda x: x.elu(), [wide], torch.nn.functional.elu),
        Case("log1p", lambda x: x.abs().log1p(), [wide], has_gradient=False),
    ]
    compare(cases, device)


def test_where(device: str) -> None:
    x, y = numbers((3, 4)), numbers((3, 4), seed=1)
    import picograd

    def choose(c: Any, a: Any, b: Any) -> Any:
        return (torch if isinstance(c, torch.Tensor) else picograd).where(c, a, b)

    cases = [
        Case("where", lambda a, b: choose(a > b, a, b), [x, y]),
        Case("where row", lambda a, b: choose(a > 0, a, b), [x, numbers((4,))]),
        Case("where scalar", lambda a: choose(a > 0, a, 0.0), [x]),
        Case("masked_fill", lambda a: a.masked_fill(a > 1, -2.0), [x]),
    ]
    compare(cases, device)


def test_lerp_starts_from_the_nearer_end() -> None:
    start, end = Tensor([1e8, -math.inf]), Tensor([1.0, 0.0])
    for weight in (1.0, Tensor(1.0)):
        assert start.lerp(end, weight).tolist()[0] == 1.0
    for weight in (0.5, Tensor([0.5, 0.5])):
        assert start.lerp(end, weight).tolist()[1] == -math.inf
    assert start.lerp(end, 0.25).tolist()[0] == 75000000.0
