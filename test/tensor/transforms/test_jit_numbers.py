"""Numbers among the arguments of a jitted function: one trace serves all values, and is right."""

import math
from dataclasses import dataclass
from math import cos as cosine
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.engine.realize import PLANS
from picograd.tensor.transforms import jit_variables

VALUES = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
X = picograd.tensor(VALUES)
F = nn.functional
FLOATS = [0.05, 0.35, 1.0, 0.0, 2.0, 0.5, -0.0]


def read(result: Any) -> Any:
    return np.asarray(result.tolist() if isinstance(result, Tensor) else result)


def traces_of(function: Any, values: Any, *, most: int) -> Any:
    """Call a function jitted and plain; returns the jitted one."""
    f = picograd.jit(function)
    for value in values:
        found, wanted = read(f(X, value)), read(function(X, value))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=f"{value!r}")
        assert found.shape == wanted.shape
    assert f.count <= most
    return f


def written(x: Tensor, at: Any) -> Tensor:
    y = x * 1
    y[:, at] = at
    y[0, at // 2 : at // 2 + 2] = 0.5
    return y


FLOAT_PROGRAMS = {
    "arithmetic": lambda x, v: x * v + (1 - v) * 2 - v / 4 + (x + 1) / (v + 3),
    "turned": lambda x, v: v - x + v / (x + 9) + divmod(v, 0.25)[1],
    "where": lambda x, v: picograd.where(x > v, x, v) + x.masked_fill(x < 0, v),
    "full": lambda x, v: picograd.full((4, 8), v) + picograd.tensor(v) + picograd.full_like(x, v),
    "norm": lambda x, v: F.layer_norm(x, (8,), eps=abs(v) + 1e-5),
    "leaky": lambda x, v: F.leaky_relu(x, v) + F.pad(x, (1, 1), value=v)[:, 1:-1],
    "half": lambda x, v: (x.half() * v).float() + picograd.where(x.half() > 0, v, x.half()).float(),
    "clamp": lambda x, v: x.clamp(min=v - 1, max=v + 1),
    "rounded": lambda x, v: x * round(v, 1) + math.floor(v * 8),
    "numpy": lambda x, v: x * (np.float64(2) * v) + np.cos(v),
    "gradient": lambda x, v: picograd.func.grad(lambda y: (y * v).square().sum())(x),
    "math": lambda x, v: x * (1 - math.exp(-v)) + math.sqrt(v) * math.pow(v, 2) * cosine(v),
    "returned": lambda x, v: v * 2,
    "vmap": lambda x, v: picograd.func.vmap(lambda row: row * v)(x),
    "in place": lambda x, v: (x * 1).mul_(v).add_(v),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT_PROGRAMS)
def test_a_float_is_traced_once(name: str) -> None:
    traces_of(FLOAT_PROGRAMS[name], FLOATS, most=1)


@pytest.mark.parametrize("name", ["arithmetic", "clamp", "full", "half"])
def test_nobody_is_asked_for_numbers_that_graphs_alone_have(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A look at all objects of a process takes 0.1 s."""
    monkeypatch.setattr(jit_variables, "holders_of", lambda values: pytest.fail("looked"))
    traces_of(FLOAT_PROGRAMS[name], FLOATS[:2], most=1)


INT_PROGRAMS = {
    "factor": lambda x, n: x * n + n,
    "integers": lambda x, n: (x * 10).long() * n + (x * 10).long() // 3,
    "compared": lambda x, n: (x * 10).long() > n,
    "position": lambda x, n: x[:, n],
    "both": lambda x, n: x[n // 2, n] * n,
    "range": lambda x, n: x[:, n % 6:n % 6 + 2],
    "narrow": lambda x, n: x.narrow(1, n % 7, 2) + x.select(0, n // 2).narrow(0, 1, 2),
    "written": written,
    "vmap": lambda x, n: picograd.func.vmap(lambda row: row[n])(x),
    "gradient": lambda x, n: picograd.func.grad(lambda y: (y[:, n] * n).sum())(x),
}  # fmt: skip


@pytest.mark.parametrize("name", INT_PROGRAMS)
def test_an_int_is_traced_at_most_twice(name: str) -> None:
    traces_of(INT_PROGRAMS[name], [3, 0, 1, 7, 2, 6, 5, 4], most=2)


def test_functions_of_math_are_what_they_were_after_a_trace() -> None:
    """Also after an error; and what they refuse is an error of the call that passes it."""
    before = math.exp, math.log, cosine
    f = picograd.jit(lambda x, v: x * math.log(v) * cosine(v))
    assert f(X, 2.0).shape == X.shape
    with pytest.raises(ValueError, match="math|positive|expected"):
        f(X, -1.0)
    np.testing.assert_allclose(read(f(X, 3.0)), read(f.function(X, 3.0)), rtol=1e-6)
    assert (math.exp, math.log, cosine) == before


READ_PROGRAMS = {
    "compared": (lambda x, v: x * v if v < 0.4 else x - v, 2),
    "min": (lambda x, v: x * min(v, 0.6), 2),
    "truth": (lambda x, v: x * v if v else x, 2),
    "int": (lambda x, v: x * int(v * 2), 5),
    "power": (lambda x, v: x.abs() ** v, 4),
    "text": (lambda x, v: x * float(f"{v:.2f}"), 7),
    "numpy": (lambda x, v: x * float(np.sin(v)), 7),
    "array": (lambda x, v: x * picograd.tensor(np.array([v, 1.0]), dtype=picograd.float32)[0], 7),
    "key": (lambda x, v: x * {0.05: 2.0}.get(v, 1.0), 7),
    "class": (lambda x, v: x * v if type(v) is float else x, 7),
    "identity of class": (lambda x, v: x * v if isinstance(v, float) else x, 1),
    "error": (lambda x, v: x * guarded(v), 7),
}


def guarded(value: Any) -> Any:
    try:
        return 1 / value
    except ZeroDivisionError:
        return 5.0


@pytest.mark.parametrize("name", READ_PROGRAMS)
def test_what_reads_a_float_is_a_guard(name: str) -> None:
    function, most = READ_PROGRAMS[name]
    f = traces_of(function, FLOATS, most=most)
    np.testing.assert_allclose(read(f(X, 0.21)), read(function(X, 0.21)), rtol=1e-6)


STRUCTURE = {
    "range": lambda x, n: sum([x * k for k in range(n)], x),
    "length": lambda x, n: x[:, :n],
    "reshape": lambda x, n: x.reshape(-1, 2 * (n % 2) + 2),
    "list": lambda x, n: [x, x * 2, x * 3, x * 4][n],
    "axis": lambda x, n: x.sum(n % 2, keepdim=bool(n % 3)),
    "repeated": lambda x, n: x * len([0] * n),
    "power": lambda x, n: x ** n,
    "divisor": lambda x, n: (x * 10).long() // (n + 1),
    "sizes": lambda x, n: picograd.zeros(n, 2) + picograd.arange(2),
    "scan": lambda x, n: picograd.scan(lambda c, row: (c + row[n] * n, c), x[0, 0], x)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURE)
def test_an_int_that_makes_structure_is_fixed(name: str) -> None:
    traces_of(STRUCTURE[name], [3, 0, 2, 1, 3, 2, 0], most=6)


@dataclass
class Settings:
    rate: float
    weight: Tensor
    place: int = 3


def test_numbers_in_containers_methods_and_inner_functions() -> None:
    inner = picograd.jit(lambda x, b: x * b)
    outer = picograd.jit(lambda s, *, more: inner(s.weight, s.rate * 2) + more["b"][0] * s.place)
    for k in range(4):
        found = outer(Settings(0.3 * k, X, k + 2), more={"b": (k * 0.5, None)})
        np.testing.assert_allclose(read(found), VALUES * 0.6 * k + k * 0.5 * (k + 2), rtol=1e-5)
    assert outer.count == 1


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.float16])
def test_numbers_of_numpy(kind: type) -> None:
    traces_of(lambda x, v: x * v + v / 3, [kind(k) for k in (3, 0, 1, 5)], most=1)


def test_classes_of_numbers_have_traces_of_their_own() -> None:
    f = picograd.jit(lambda x, v: x.long() * v)
    found = [f(X, v).dtype.name for v in (2, 2.0, True, 3, 3.0)]
    assert found == ["int64", "float32", "int64", "int64", "float32"] and f.count == 3


def test_a_thousand_values_make_one_trace_and_one_plan() -> None:
    f = picograd.jit(lambda x, v: (x * v).sum())
    f(X, 0.5)
    plans = len(PLANS)
    for k in range(1000):
        f(X, k / 7)
    assert f.count == 1 and len(PLANS) == plans and len(f.fixed) == 0


def test_values_that_no_kernel_takes_are_code() -> None:
    f = picograd.jit(lambda x, v: x * v)
    for value in (0.5, math.inf, math.nan, -math.inf, 1e300, 0.25):
        wanted = (X * value).numpy()
        assert np.array_equal(f(X, value).numpy(), wanted, equal_nan=True)


def test_gradients_outside_take_the_number_of_their_call() -> None:
    w = picograd.tensor(VALUES[0], requires_grad=True)
    f = picograd.jit(lambda x, b, n: (x * w * b)[n])
    for b, n in ((0.5, 1), (0.7, 1), (0.9, 2), (0.2, 3)):
        w.grad = None
        f(X[0], b, n).backward()
        wanted = np.zeros(8)
        wanted[n] = VALUES[0, n] * b
        np.testing.assert_allclose(w.grad.numpy(), wanted, rtol=1e-6)


def test_positions_outside_the_axis_raise() -> None:
    f = picograd.jit(lambda x, n: x[n])
    for n in (1, 2, -1, 3):
        assert f(X, n).tolist() == X[n].tolist()
    for n in (4, -5):
        with pytest.raises(IndexError):
            f(X, n)


def test_what_a_function_stores_acts_as_the_number() -> None:
    kept: list[Any] = []
    f = picograd.jit(lambda x, v: (kept.append(v * 2), x * v)[1])
    f(X, 0.5)
    assert kept[0] == 1.0 and float(kept[0]) + 1 == 2.0 and f"{kept[0]:.1f}" == "1.0"
    g = picograd.jit(lambda x, v: x * v * (kept[0] == v))
    assert [read(g(X, v)).any() for v in (1.0, 0.5, 1.0)] == [True, False, True]


def test_reasons_name_the_argument_and_the_line(capfd: Any) -> None:
    f = picograd.jit(lambda x, rate, n: x * rate if rate < 4 else x * len(range(n)))
    with config.override(debug=1):
        for rate, n in ((1.0, 1), (5.0, 1), (5.0, 2)):
            f(X, rate, n)
    text = "".join(capfd.readouterr())
    assert "argument rate: " in text and "test_jit_numbers.py" in text
    assert "argument n changed from 1 to 2" in text


def test_a_seed_set_inside_is_set_at_every_call() -> None:
    f = picograd.jit(lambda n: (picograd.manual_seed(n), picograd.rand(3))[1])
    found = [f(n).tolist() for n in (1, 2, 1, 2)]
    assert found[:2] == found[2:] and found[0] != found[1]


def test_a_position_is_followed_where_gradients_are_taken_outside() -> None:
    """Of slices, their gradients and writes; each backward is that of its own call."""
    table = Tensor(np.arange(15, dtype=np.float32).reshape(5, 3) / 8, requires_grad=True)

    def step(rows: Any, at: Any) -> Any:
        picked = rows * 2.0
        picked[at] = rows[at + 1] * 3.0
        return picked[at : at + 2] * rows[at]

    f, kept = picograd.jit(step), []
    for at in (0, 3, 1, 2, 0):
        kept.append((at, f(table, at)))
    for at, out in reversed(kept):
        table.grad = None
        out.sum().backward()
        found = table.grad.numpy()
        table.grad = None
        step(table, at).sum().backward()
        np.testing.assert_allclose(found, table.grad.numpy(), rtol=1e-6)
    assert f.count <= 2
