"""Functions of operands of two dtypes: what they compute, and in which dtype, is PyTorch's.

Values lie near the ends of their ranges, so that computing in the narrower dtype would show. The
graph is interpreted: these are statements about what is recorded.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.errors import PicogradError
from picograd.graph.interpret import interpret

torch = pytest.importorskip("torch")

WHOLE = {
    "bool": [1, 0, 1, 1, 0, 1],
    "uint8": [200, 255, 3, 1, 0, 100],
    "int8": [100, -128, 3, 127, 0, -1],
    "int16": [30000, -32768, 3, 255, 0, -1],
    "int32": [2**30, -(2**31), 3, 2**31 - 1, 0, -7],
    "int64": [2**40, -(2**62), 3, 2**53 + 1, 0, -7],
}
FLOATS = [1.5, -2.25, 3.0, 300.0, 0.5, -0.125]
PAIRS = [
    ["float32", "uint8"], ["uint8", "float32"], ["uint8", "int8"], ["int16", "uint8"],
    ["int8", "int64"], ["uint8", "bool"], ["float16", "int32"], ["bfloat16", "float16"],
    ["float32", "float64"], ["int32", "float16"], ["uint8", "uint8"], ["bool", "bool"],
    ["int64", "int64"], ["float16", "float16"], ["int32", "bool"],
]  # fmt: skip
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 4e-6, "float64": 1e-9}
Function = Callable[..., Any]


pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def square(x: Any) -> Any:
    return x[:4].reshape(2, 2)


FUNCTIONS: dict[str, Function] = {
    "add alpha": lambda lib, a, b: lib.add(a, b, alpha=2),
    "sub alpha": lambda lib, a, b: lib.sub(a, b, alpha=2),
    "rsub alpha": lambda lib, a, b: lib.rsub(a, b, alpha=2),
    "rsub": lambda lib, a, b: lib.rsub(a, b),
    "add_ alpha": lambda lib, a, b: a.clone().add_(b, alpha=2),
    "sub_ alpha": lambda lib, a, b: a.clone().sub_(b, alpha=2),
    "alpha 1.5": lambda lib, a, b: lib.add(a, b, alpha=1.5),
    "alpha True": lambda lib, a, b: lib.add(a, b, alpha=True),
    "addcmul": lambda lib, a, b: lib.addcmul(a, b, b, value=3),
    "addcmul mixed": lambda lib, a, b: lib.addcmul(a, a, b),
    "addcmul_": lambda lib, a, b: a.clone().addcmul_(b, b, value=2),
    "addcdiv": lambda lib, a, b: lib.addcdiv(a, b, b + 1, value=2),
    "addr": lambda lib, a, b: lib.addr(a.reshape(2, 3), b[:2], b[:3], beta=2, alpha=3),
    "addr mixed": lambda lib, a, b: lib.addr(a.reshape(2, 3), a[:2], b[:3]),
    "addmm": lambda lib, a, b: lib.addmm(square(a), square(b), square(b), beta=2, alpha=3),
    "addbmm": lambda lib, a, b: lib.addbmm(square(a), square(b)[None], square(b)[None], alpha=3),
    "trapezoid": lambda lib, a, b: lib.trapezoid(a),
    "trapezoid x": lambda lib, a, b: lib.trapezoid(a, b),
    "cumulative x": lambda lib, a, b: lib.cumulative_trapezoid(a, b),
    "cumulative": lambda lib, a, b: lib.cumulative_trapezoid(a, dx=2),
    "ldexp": lambda lib, a, b: lib.ldexp(a, b % 5 if b.dtype != lib.bool else b),
    "float_power": lambda lib, a, b: lib.float_power(a, b),
    "where": lambda lib, a, b: lib.where(a > 1, a, b),
    "maximum": lambda lib, a, b: lib.maximum(a, b),
    "outer": lambda lib, a, b: lib.outer(a, b),
    "kron": lambda lib, a, b: lib.kron(a, b),
    "clamp": lambda lib, a, b: lib.clamp(a, min=b),
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "diff": lambda lib, a, b: lib.diff(a, append=b),
    "zero-dim": lambda lib, a, b: a * b[1] + b[0],
    "cosine": lambda lib, a, b: lib.nn.functional.cosine_similarity(a, b, dim=0),
    "distance": lambda lib, a, b: lib.nn.functional.pairwise_distance(a, b),
    "dist": lambda lib, a, b: lib.dist(a, b),
    "searchsorted": lambda lib, a, b: lib.searchsorted(lib.sort(a)[0], b),
    "norm": lambda lib, a, b: (a * b.float()).to(a.dtype).norm() if a.dtype.itemsize == 2 else a,
}


def made(lib: Any, name: str, shift: int) -> Any:
    values = np.roll(WHOLE.get(name, FLOATS), -shift)
    return lib.tensor(values.tolist(), dtype=getattr(lib, name))


def answer(function: Function, lib: Any, pair: list[str]) -> Any:
    try:
        return function(lib, made(lib, pair[0], 0), made(lib, pair[1], 2))
    except (RuntimeError, TypeError, PicogradError) as error:
        return error


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pairs(name: str) -> None:
    for pair in PAIRS:
        theirs = answer(FUNCTIONS[name], torch, pair)
        ours = answer(FUNCTIONS[name], picograd, pair)
        if isinstance(theirs, Exception):
            continue  # products of two dtypes promote here
        assert not isinstance(ours, Exception), (pair, ours)
        wanted = str(theirs.dtype).removeprefix("torch.")
        assert ours.dtype.name == wanted, pair
        found = interpret([ours._node])[0]
        loose = max(TOLERANCE.get(each, 0.0) for each in (*pair, wanted))
        loose = loose if wanted in TOLERANCE else 0.0
        expected = theirs.double().numpy() if theirs.dtype.is_floating_point else theirs.numpy()
        np.testing.assert_allclose(found, expected, loose, loose, err_msg=str(pair))


@pytest.mark.parametrize("name", ["alpha 1.5", "alpha True", "rsub", "sub alpha", "addcdiv"])
def test_what_pytorch_refuses(name: str) -> None:
    for pair in PAIRS:
        theirs = answer(FUNCTIONS[name], torch, pair)
        ours = answer(FUNCTIONS[name], picograd, pair)
        assert isinstance(ours, RuntimeError) == isinstance(theirs, RuntimeError), (pair, ours)


def test_kernels_agree() -> None:
    byte = picograd.tensor([200], dtype="uint8")
    assert picograd.Tensor([1.0]).add(byte, alpha=2).item() == 401.0
    assert picograd.Tensor([1.0]).sub(byte, alpha=2).item() == -399.0
    assert picograd.addcmul(picograd.Tensor([1.0]), byte, byte).item() == 40001.0


def test_large_vectors_have_an_angle() -> None:
    x = picograd.full((2,), 1e12)
    assert picograd.nn.functional.cosine_similarity(x, x, dim=0).item() == pytest.approx(1.0)
