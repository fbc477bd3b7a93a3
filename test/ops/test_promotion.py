"""Result dtypes equal PyTorch's: every pair of dtypes, tensors with axes and without, scalars."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import picograd
from picograd import Tensor
from picograd.dtype import ALL, DType, bool_
from picograd.errors import PicogradError

BINARY: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "less": operator.lt,
    "equal": operator.eq,
    "and": operator.and_,
    "maximum": lambda a, b: a.maximum(b),
    "where": lambda a, b: library(a, b).where(library(a, b).ones((1,)) > 0, a, b),
    "cat": lambda a, b: library(a, b).cat([a.reshape(1), b.reshape(1)]),
    "stack": lambda a, b: library(a, b).stack([a.reshape(1), b.reshape(1)]),
}
SCALARS = (True, 2, 2.5)
WITH_SCALARS = ("add", "sub", "mul", "div", "floordiv", "mod", "pow", "less", "equal", "where")
UNARY: dict[str, Callable[..., Any]] = {
    "neg": lambda x: -x,
    "exp": lambda x: x.exp(),
    "sqrt": lambda x: x.sqrt(),
    "sigmoid": lambda x: x.sigmoid(),
    "abs": lambda x: x.abs(),
    "relu": lambda x: x.relu(),
    "floor": lambda x: x.floor(),
    "sign": lambda x: x.sign(),
    "sum": lambda x: x.sum(),
    "prod": lambda x: x.prod(),
    "cumsum": lambda x: x.cumsum(0),
    "mean": lambda x: x.mean(),
    "amax": lambda x: x.amax(),
    "argmax": lambda x: x.argmax(),
    "softmax": lambda x: x.softmax(0),
    "square": lambda x: x.square(),
    "clamp": lambda x: x.clamp(0, 1),
    "clamp float": lambda x: x.clamp(0.5, 1.5),
    "reciprocal": lambda x: x.reciprocal(),
    "isnan": lambda x: x.isnan(),
    "power of": lambda x: 2**x,
    "over": lambda x: 1 / x,
}
# PyTorch cannot add these on the CPU, or answers what picograd deliberately refuses.
EXOTIC = ("uint16", "uint32", "uint64")


def library(*values: Any) -> Any:
    return torch if any(isinstance(value, torch.Tensor) for value in values) else picograd


def dtype_of(function: Callable[..., Any], *arguments: Any) -> str | None:
    """Name of the result's dtype; None where the library refuses."""
    try:
        return str(function(*arguments).dtype).split(".")[-1]
    except (RuntimeError, TypeError, NotImplementedError, PicogradError):
        return None


def pair(dtype: DType, shape: tuple[int, ...], device: str) -> tuple[Any, Any]:
    ours = picograd.ones(shape, dtype=dtype, device=device)
    return ours, torch.ones(shape, dtype=getattr(torch, dtype.name))


def compare(name: str, function: Callable[..., Any], ours: Any, theirs: Any) -> list[str]:
    wanted = dtype_of(function, *theirs)
    found = dtype_of(function, *ours)
    text = f"{name} of {[getattr(x, 'dtype', x) for x in theirs]}: {found}, PyTorch {wanted}"
    return [] if wanted is None or found == wanted else [text]


@pytest.mark.parametrize("name", BINARY)
def test_pairs(name: str, device: str) -> None:
    problems = []
    usual = [dtype for dtype in ALL if dtype.name not in EXOTIC]
    for a in usual:
        for b in usual:
            for shapes in (((1,), (1,)), ((1,), ()), ((), (1,)), ((), ())):
                both = [pair(d, s, device) for d, s in zip((a, b), shapes)]
                ours, theirs = zip(*both)
                problems += compare(f"{name} {shapes}", BINARY[name], ours, theirs)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", WITH_SCALARS)
def test_python_scalars(name: str, device: str) -> None:
    problems = []
    for dtype in (d for d in ALL if d.name not in EXOTIC):
        for shape in ((1,), ()):
            ours, theirs = pair(dtype, shape, device)
            for scalar in SCALARS:
                if name == "pow" and dtype is bool_ and scalar is True:
                    continue  # picograd has no power of two bools
                problems += compare(name, BINARY[name], (ours, scalar), (theirs, scalar))
                problems += compare(name, BINARY[name], (scalar, ours), (scalar, theirs))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, device: str) -> None:
    problems = []
    for dtype in (d for d in ALL if d.name not in EXOTIC):
        ours, theirs = pair(dtype, (2,), device)
        problems += compare(name, UNARY[name], (ours,), (theirs,))
    assert not problems, "\n".join(problems)


def test_one_dtype_of_exotic_integers(device: str) -> None:
    for name in EXOTIC:
        x = Tensor([1, 2], dtype=name, device=device)
        assert (x + x).dtype.name == name
        assert (x + 1).dtype.name == name
