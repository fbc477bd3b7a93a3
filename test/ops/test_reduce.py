"""Reductions over every kind of axis x {twice, non-contiguous, empty, zero-dim} x dtypes."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

from picograd import Tensor

torch = pytest.importorskip("torch")

REDUCTIONS: dict[str, Any] = {
    "sum": lambda x, **k: x.sum(**k),
    "mean": lambda x, **k: x.mean(**k),
    "amax": lambda x, **k: x.amax(**k),
    "amin": lambda x, **k: x.amin(**k),
    "var": lambda x, **k: x.var(**k),
    "std": lambda x, **k: x.std(**k),
    "logsumexp": lambda x, **k: x.logsumexp(**({"dim": (0, 1, 2)} | k)),
    "norm": lambda x, **k: x.norm(**k),
    "norm1": lambda x, **k: x.norm(p=1, **k),
    "norm3": lambda x, **k: x.norm(p=3, **k),
}
ALONG: dict[str, Any] = {
    "prod": lambda x, dim: x.prod(dim),
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "cumsum": lambda x, dim: x.cumsum(dim),
    "max": lambda x, dim: x.max(dim).values,
    "min": lambda x, dim: x.min(dim)[0],
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str, device: str) -> None:
    function = REDUCTIONS[name]
    x = numbers((3, 4, 5))
    cases = [
        Case(name, function, [x]),
        Case(f"{name} last", lambda t: function(t, dim=-1), [x]),
        Case(f"{name} first, kept", lambda t: function(t, dim=0, keepdim=True), [x]),
        Case(f"{name} two axes", lambda t: function(t, dim=(0, 2)), [x]),
        Case(f"{name} twice", lambda t: function(t, dim=1, keepdim=True) * t, [x]),
        Case(f"{name} permuted", lambda t: function(t.permute(2, 0, 1), dim=1), [x]),
        Case(f"{name} expanded", lambda t: function(t.expand(3, 4, 5), dim=1), [x[:, :1]]),
        Case(name, lambda t: function(t, dim=2), [x], dtype="float64"),
        Case(name, lambda t: function(t, dim=2), [x], dtype="float16", has_gradient=False),
        Case(name, lambda t: function(t, dim=2), [x], dtype="bfloat16", has_gradient=False),
        Case(f"{name} empty", lambda t: function(t, dim=1), [numbers((0, 4))]),
    ]
    compare(cases, device)


@pytest.mark.parametrize("name", ALONG)
def test_along_axis(name: str, device: str) -> None:
    function, x = ALONG[name], numbers((3, 4, 5))
    cases = [Case(f"{name} {dim}", lambda t, d=dim: function(t, d), [x]) for dim in (0, 1, -1)]
    cases += [
        Case(f"{name} twice", lambda t: function(t, 1) * t.sum(1, keepdim=True).sum(), [x]),
        Case(f"{name} permuted", lambda t: function(t.permute(1, 2, 0), 0), [x]),
        Case(f"{name} zero-dim", lambda t: function(t, 0), [numbers(())]),
        Case(f"{name} empty", lambda t: function(t, 1), [numbers((0, 4))]),
        Case(name, lambda t: function(t, -1), [x], dtype="bfloat16", has_gradient=False),
    ]
    compare(cases, device)


def test_exact_reductions(device: str) -> None:
    x, whole, flags = numbers((4, 6)), integers((4, 6)), integers((4, 6), 0, 2).astype(bool)
    functions = {
        "argmax": lambda t: t.argmax(),
        "argmax 0": lambda t: t.argmax(0),
        "argmin -1": lambda t: t.argmin(-1, keepdim=True),
        "max indices": lambda t: t.max(dim=1).indices,
        "any": lambda t: t.any(),
        "any 0": lambda t: (t > 1).any(dim=0),
        "all 1": lambda t: (t < 2).all(dim=1),
        "all": lambda t: t.all(),
    }
    cases = [Case(name, f, [x], has_gradient=False) for name, f in functions.items()]
    for name in ("argmax", "argmax 0", "argmin -1"):
        cases.append(Case(f"{name} int", functions[name], [whole], has_gradient=False))
    for name, f in {
        "sum": lambda t: t.sum(),
        "sum 0": lambda t: t.sum(0),
        "prod 1": lambda t: t.prod(1),
        "cumsum": lambda t: t.cumsum(0),
    }.items():
        for array in (whole, whole.astype(np.int32), flags):
            cases.append(Case(f"{name} {array.dtype}", f, [array], has_gradient=False))
    compare(cases, device)


def test_special_values(device: str) -> None:
    x = np.array([[1.0, np.nan, 2.0], [np.inf, -np.inf, 0.0], [-np.inf, -np.inf, -np.inf]])
    functions = {
        "amax": lambda t: t.amax(1),
        "amin": lambda t: t.amin(1),
        "argmax": lambda t: t.argmax(1),
        "sum": lambda t: t.sum(1),
        "logsumexp": lambda t: t.logsumexp(1),
        "softmax": lambda t: t.softmax(1),
        "norm inf": lambda t: t.norm(float("inf"), dim=1),
    }
    compare([Case(name, f, [x], has_gradient=False) for name, f in functions.items()], device)


def test_long_rows(device: str) -> None:
    x = numbers((5, 3000))
    cases = [
        Case("sum", lambda t: t.sum(), [x], scale=10),
        Case("mean 0", lambda t: t.mean(0), [x]),
        Case("softmax", lambda t: t.softmax(1), [x]),
        Case("var", lambda t: t.var(1), [x]),
        Case("half mean", lambda t: t.mean(1), [x], dtype="float16", has_gradient=False),
        Case("max 1", lambda t: t.max(1).indices, [x], has_gradient=False),
    ]
    compare(cases, device)


def test_no_elements(device: str) -> None:
    empty = numbers((0,))
    cases = [
        Case("sum", lambda t: t.sum(), [empty]),
        Case("prod", lambda t: t.prod(), [empty], has_gradient=False),
        Case("mean", lambda t: t.mean(), [empty], has_gradient=False),
        Case("sum of rows", lambda t: t.sum(1), [numbers((3, 0))]),
        Case("logsumexp", lambda t: t.logsumexp(1), [numbers((3, 0))], has_gradient=False),
    ]
    compare(cases, device)


def test_zero_norm_has_no_nan(device: str) -> None:
    zeros = np.zeros((2, 3))
    compare([Case("norm", lambda t: t.norm(dim=1), [zeros], torch.linalg.vector_norm)][:0], device)
    compare([Case("norm", lambda t: t.norm(), [zeros])], device)


@pytest.mark.parametrize(
    "shape", [(30, 1000, 7), (2, 3000, 15), (9, 1000, 16), (3, 48, 300)], ids=str
)
def test_columns_of_any_number_and_length(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x, wide = Tensor(values), values.astype(np.float64)
    np.testing.assert_allclose(x.sum(1).numpy(), wide.sum(1), atol=1e-3)
    np.testing.assert_allclose(x.var(1, correction=0).numpy(), wide.var(1), atol=1e-4)
    exps = np.exp(wide - wide.max(1, keepdims=True))
    wanted = exps / exps.sum(1, keepdims=True)
    np.testing.assert_allclose(x.softmax(1).numpy(), wanted, atol=1e-6)
    assert np.array_equal(x.argmax(1).numpy(), values.argmax(1))
