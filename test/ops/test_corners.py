"""Gradients at corners: zeros, ties, infinities and empty parts give what PyTorch gives."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.graph.interpret import interpret

torch = pytest.importorskip("torch")

INF = math.inf
EDGES = [0.0, 1.0, 2.0, -2.0, -1.0, INF, -INF, 0.5, 3.0]
Function = Callable[..., Any]


pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def slopes(lib: Any, function: Function, values: tuple[Any, ...]) -> list[Any]:
    leaves = [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in values]
    function(lib, *leaves).sum().backward()
    return [leaf.grad for leaf in leaves]


def check(function: Function, *values: Any) -> None:
    theirs = slopes(torch, function, values)
    ours = interpret([each._node for each in slopes(picograd, function, values)])
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b.numpy(), 1e-9, 1e-12, err_msg=str(values))


ONE: dict[str, tuple[Function, Any]] = {
    "0.0 ** y": (lambda lib, y: 0.0**y, [-2.0, -1.0, 0.0, 0.5, 1.0, INF]),
    "x ** 0": (lambda lib, x: x**0, EDGES),
    "x ** 2": (lambda lib, x: x**2, EDGES),
    "x ** -1": (lambda lib, x: x**-1, EDGES),
    "norm": (lambda lib, x: x.norm(), [0.0, 0.0]),
    "norm 3": (lambda lib, x: x.norm(3), [0.0, 0.0]),
    "norm 1.5": (lambda lib, x: x.norm(1.5), [0.0, 0.0]),
    "norm 0.5": (lambda lib, x: x.norm(0.5), [0.0, 3.0]),
    "norm -1": (lambda lib, x: x.norm(-1), [0.0, 3.0]),
    "std": (lambda lib, x: x.std(), [1.0, 1.0]),
    "prod": (lambda lib, x: x.prod(0), [0.0, 3.0, 0.0]),
    "prod of one zero": (lambda lib, x: x.prod(0), [0.0, 3.0, 2.0]),
    "cumprod": (lambda lib, x: x.cumprod(0), [2.0, 0.0, 3.0, 0.0]),
    "amax": (lambda lib, x: x.amax(0), [1.0, 1.0, 0.0]),
    "abs": (lambda lib, x: x.abs(), [0.0, -0.0, 1.0]),
    "logsumexp": (lambda lib, x: lib.logsumexp(x, 0), [-INF, 1.0]),
    "logit": (lambda lib, x: lib.logit(x), [0.5, 1.0, 2.0, -1.0]),
    "acosh": (lambda lib, x: lib.acosh(x), [2.0, 1.5]),
    "max_pool": (
        lambda lib, x: lib.nn.functional.max_pool1d(x.reshape(1, 1, -1), 2), [1.0, 1.0, 0.0, 0.0]
    ),
}  # fmt: skip
PAIRS = {
    "pow": lambda lib, a, b: a**b,
    "atan2": lambda lib, a, b: lib.atan2(a, b),
    "hypot": lambda lib, a, b: lib.hypot(a, b),
    "fmod": lambda lib, a, b: lib.fmod(a, b),
    "remainder": lambda lib, a, b: lib.remainder(a, b),
    "xlogy": lambda lib, a, b: lib.xlogy(a, b),
    "xlog1py": lambda lib, a, b: lib.special.xlog1py(a, b),
    "maximum": lambda lib, a, b: lib.maximum(a, b),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one(name: str) -> None:
    function, values = ONE[name]
    check(function, values)


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two(name: str) -> None:
    pairs = [(a, b) for a in EDGES for b in EDGES]
    check(PAIRS[name], [a for a, _ in pairs], [b for _, b in pairs])


def test_copysign_has_a_gradient_of_both() -> None:
    values = [0.0, 1.0, -2.0, 3.0, 0.0]
    check(lambda lib, a, b: lib.copysign(a, b), values, [-1.0, -1.0, -1.0, 1.0, 0.0])


def test_empty_parts_get_empty_gradients() -> None:
    for shape in ((0, 2), (0,)):
        x = picograd.zeros(shape, requires_grad=True)
        y = picograd.ones(1, 2, requires_grad=True)
        picograd.cat([x, y]).sum().backward()
        assert x.grad is not None and x.grad.shape == shape
        assert y.grad is not None and y.grad.tolist() == [[1.0, 1.0]]


def test_what_is_chosen_from_nothing_has_gradients() -> None:
    for function in (
        lambda x: x.sort(1)[0],
        lambda x: x.msort(),
        lambda x: x.topk(0, 1)[0],
        lambda x: x.gather(1, picograd.zeros(2, 0, dtype=picograd.int64)),
    ):
        for shape in ((2, 0), (2, 3)):
            x = picograd.ones(shape, requires_grad=True)
            (function(x)[:, :0].sum() * 2).backward()
            assert x.grad is not None and x.grad.tolist() == picograd.zeros(shape).tolist()


def test_second_derivatives_of_powers_of_zero() -> None:
    grad = picograd.func.grad
    flat = grad(grad(lambda y: 0.0**y))
    assert flat(picograd.tensor(2.0)).item() == 0.0


def test_acosh_below_1_is_nan() -> None:
    x = picograd.tensor([0.5, -1e4, -1e6, -1e8, -INF])
    assert bool(picograd.acosh(x).isnan().all().item())
