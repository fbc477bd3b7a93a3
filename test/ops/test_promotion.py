"""Result dtypes equal PyTorch's: every pair of dtypes, tensors with axes and without, scalars."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

import picograd
from picograd import Tensor
from picograd.dtype import ALL, DType
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")

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
    "minimum": lambda a, b: a.minimum(b),
    "less_equal": operator.le,
    "not_equal": operator.ne,
    "or": operator.or_,
    "xor": operator.xor,
    "shift left": operator.lshift,
    "shift right": operator.rshift,
    "logical_and": lambda a, b: a.logical_and(b),
    "fmod": lambda a, b: a.fmod(b),
    "atan2": lambda a, b: a.atan2(b),
    "floor division": lambda a, b: a.div(b, rounding_mode="floor"),
    "truncating division": lambda a, b: a.div(b, rounding_mode="trunc"),
    "xlogy": lambda a, b: a.xlogy(b),
    "clamp": lambda a, b: a.clamp(b, b),
    "isclose": lambda a, b: a.isclose(b),
    "matmul": lambda a, b: a.reshape(1, 1) @ b.reshape(1, 1),
    "outer": lambda a, b: a.reshape(1).outer(b.reshape(1)),
    "masked_fill": lambda a, b: a.masked_fill(a == a, b.reshape(())),
    "in place": lambda a, b: a.clone().add_(b),
    "bincount": lambda a, b: a.reshape(1).bincount(b.reshape(1)),
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
    for a in ALL:
        for b in ALL:
            for shapes in (((1,), (1,)), ((1,), ()), ((), (1,)), ((), ())):
                both = [pair(d, s, device) for d, s in zip((a, b), shapes)]
                ours, theirs = zip(*both)
                problems += compare(f"{name} {shapes}", BINARY[name], ours, theirs)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", WITH_SCALARS)
def test_python_scalars(name: str, device: str) -> None:
    problems = []
    for dtype in ALL:
        for shape in ((1,), ()):
            ours, theirs = pair(dtype, shape, device)
            for scalar in SCALARS:
                if name == "pow" and scalar is True and dtype.kind in ("bool", "float8"):
                    continue  # picograd has no power of bools, nor of 8-bit floats
                problems += compare(name, BINARY[name], (ours, scalar), (theirs, scalar))
                problems += compare(name, BINARY[name], (scalar, ours), (scalar, theirs))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, device: str) -> None:
    problems = []
    for dtype in ALL:
        ours, theirs = pair(dtype, (2,), device)
        problems += compare(name, UNARY[name], (ours,), (theirs,))
    assert not problems, "\n".join(problems)


def test_integers_that_pytorch_does_not_add(device: str) -> None:
    for name in ("uint16", "uint32", "uint64"):
        x = Tensor([1, 2], dtype=name, device=device)
        assert (x + x).dtype.name == name
        assert (x + 1).dtype.name == name
