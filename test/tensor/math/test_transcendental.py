"""Special functions: values and gradients equal PyTorch's, far out too."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

from picograd import Tensor

torch = pytest.importorskip("torch")

UNARY: dict[str, tuple[float, float]] = {
    "tan": (-1.4, 1.4),
    "sinh": (-4, 4),
    "cosh": (-4, 4),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "atan": (-9, 9),
    "asinh": (-9, 9),
    "acosh": (1.1, 9),
    "atanh": (-0.9, 0.9),
    "sinc": (-3, 3),
    "expm1": (-3, 2),
    "log1p": (-0.7, 5),
    "erfc": (-3, 5),
    "erfinv": (-0.9, 0.9),
    "lgamma": (0.2, 20),
    "digamma": (0.2, 20),
}
BINARY = {
    "atan2": lambda a, b: a.atan2(b),
    "hypot": lambda a, b: a.hypot(b),
    "copysign": lambda a, b: a.copysign(b),
    "fmod": lambda a, b: a.fmod(b),
    "logaddexp": lambda a, b: a.logaddexp(b),
    "xlogy": lambda a, b: a.xlogy(b),
}
INPUTS: dict[str, Any] = {
    "plain": lambda low, high: numbers((3, 5), low, high),
    "zero-dim": lambda low, high: numbers((), low, high),
    "empty": lambda low, high: numbers((0, 3), low, high),
}


def call(name: str) -> Any:
    return lambda x: getattr(x, name)()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_unary(dtype: str, device: str) -> None:
    cases = []
    for name, (low, high) in UNARY.items():
        scale = 8.0 if dtype == "float32" else 4.0 if dtype != "float64" else 1.0
        for make in INPUTS.values():
            cases.append(Case(name, call(name), [make(low, high)], dtype=dtype, scale=scale))
        x = numbers((4, 3), low, high)
        cases.append(Case(f"{name} of view", lambda t, n=name: getattr(t.T, n)(), [x],
                          dtype=dtype, scale=scale))  # fmt: skip
    compare(cases, device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binary(dtype: str, device: str) -> None:
    a, b = numbers((3, 4), 0.3, 3), numbers((3, 4), 0.3, 3, seed=4)
    sign = np.where(np.arange(12).reshape(3, 4) % 3 > 0, 1.0, -1.0)
    turn = np.where(np.arange(12).reshape(3, 4) % 2 > 0, 1.0, -1.0)
    cases = []
    for name, function in BINARY.items():
        x = a if name == "xlogy" else a * sign
        y = b if name == "xlogy" else b * turn
        cases.append(Case(name, function, [x, y], dtype=dtype, scale=4))
        cases.append(Case(name, function, [x, y[:1]], dtype=dtype, scale=4))
    compare(cases, device)


def test_extreme_values(device: str) -> None:
    far = np.array([0.0, -0.0, 1.0, -1.0, 1e-6, 30.0, -30.0, 1e5, np.inf, -np.inf, np.nan])
    near = np.array([0.0, -0.0, 1.0, -1.0, 1e-6, 0.999, -0.999, 2.0, -2.0, np.nan])
    cases = []
    names = ["sinh", "cosh", "atan", "asinh", "acosh", "erfc", "lgamma", "expm1", "log1p"]
    for dtype in ("float32", "float64"):
        for name in names:
            x = far if name not in ("sinh", "cosh") else np.delete(far, 7)
            cases.append(Case(name, call(name), [x], dtype=dtype, has_gradient=False, scale=8))
        for name in ("asin", "acos", "atanh", "erfinv"):
            cases.append(Case(name, call(name), [near], dtype=dtype, has_gradient=False, scale=8))
    compare(cases, device)


def test_relative_accuracy(device: str) -> None:
    x = np.array([1e-20, -1e-7, 3e-4, 0.01, 0.3, 2.0])
    for name in ("sinh", "asinh", "atan", "asin", "atanh", "expm1", "log1p", "erfinv"):
        small = x[:5] if name in ("asin", "atanh", "erfinv") else x
        for dtype, limit in (("float32", 1e-6), ("float64", 2e-13)):
            tensor = Tensor(small, dtype=dtype, device=device)
            want = getattr(torch.from_numpy(tensor.numpy()).double(), name)().numpy()
            found = getattr(tensor, name)().numpy().astype(np.float64)
            error = np.abs(found / want - 1).max()
            assert error < limit, (name, dtype, error)


def test_atan2_signs(device: str) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 2.5, np.nan])
    y, x = np.repeat(values, 8), np.tile(values, 8)
    compare([Case("atan2", lambda a, b: a.atan2(b), [y, x], has_gradient=False)], device)


def test_reflection_of_gamma_functions(device: str) -> None:
    x = np.array([-0.5, -1.25, -2.75, -7.5, 0.0, 0.1])
    cases = [
        Case(name, call(name), [x], dtype=dtype, scale=10)
        for name in ("lgamma", "digamma")
        for dtype in ("float32", "float64")
    ]
    compare(cases, device)
