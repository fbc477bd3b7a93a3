"""Creation functions: values, shapes and dtypes equal PyTorch's; random ones have their moments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

EXACT: dict[str, Callable[..., Any]] = {
    "zeros": lambda lib, **k: lib.zeros(2, 3, **k),
    "zeros of a tuple": lambda lib, **k: lib.zeros((2, 3), **k),
    "no axes": lambda lib, **k: lib.ones((), **k),
    "no elements": lambda lib, **k: lib.ones((0, 3), **k),
    "ones": lambda lib, **k: lib.ones((4,), **k),
    "full": lambda lib, **k: lib.full((2, 2), 3, **k),
    "arange": lambda lib, **k: lib.arange(5, **k),
    "arange from": lambda lib, **k: lib.arange(2, 9, **k),
    "arange step": lambda lib, **k: lib.arange(1, 12, 3, **k),
    "arange down": lambda lib, **k: lib.arange(9, 1, -2, **k),
    "eye": lambda lib, **k: lib.eye(3, **k),
    "eye wide": lambda lib, **k: lib.eye(2, 4, **k),
    "linspace": lambda lib, **k: lib.linspace(0, 12, 5, **k),
}
DEFAULTS: dict[str, Callable[..., Any]] = {
    **EXACT,
    "full float": lambda lib, **k: lib.full((2,), 2.5, **k),
    "full bool": lambda lib, **k: lib.full((2,), True, **k),
    "arange float": lambda lib, **k: lib.arange(0.0, 2.0, 0.5, **k),
}
LIKE = ("zeros_like", "ones_like", "rand_like", "randn_like", "empty_like")
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool")


def same(name: str, found: Tensor, want: torch.Tensor) -> None:
    assert found.dtype.name == str(want.dtype).split(".")[1], name
    assert tuple(found.shape) == tuple(want.shape), name
    values = want.float() if want.dtype in (torch.bfloat16, torch.float16) else want
    np.testing.assert_allclose(found.numpy().astype(values.numpy().dtype), values.numpy(), 1e-6)


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_dtype(name: str, device: str) -> None:
    function = DEFAULTS[name]
    same(name, function(picograd, device=device), function(torch))


@pytest.mark.parametrize("name", EXACT)
def test_dtypes(name: str, device: str) -> None:
    for dtype in DTYPES:
        if dtype == "bool" and ("arange" in name or name == "linspace"):
            continue
        found = EXACT[name](picograd, dtype=dtype, device=device)
        same(f"{name} {dtype}", found, EXACT[name](torch, dtype=getattr(torch, dtype)))


@pytest.mark.parametrize("name", LIKE)
def test_like(name: str, device: str) -> None:
    for dtype in ("float32", "float64", "float16"):
        x = Tensor(np.ones((3, 2)), dtype=dtype, device=device)
        found = getattr(picograd, name)(x)
        assert found.shape == (3, 2)
        assert found.dtype is x.dtype
        assert found.device == x.device
        assert np.isfinite(found.numpy().astype(np.float64)).all() or name == "empty_like"
    full = picograd.full_like(Tensor([1, 2], device=device), 7)
    assert full.tolist() == [7, 7]
    assert full.dtype is picograd.int64


def test_from_data(device: str) -> None:
    cases: list[Any] = [3, 2.5, True, [1, 2], [1.0, 2], [[True], [False]], [], [[], []]]
    for data in cases:
        same(repr(data), picograd.tensor(data, device=device), torch.tensor(data))
    for kind in ("float32", "float64", "int32", "uint8", "bool"):
        array = np.arange(6).reshape(2, 3).astype(kind)
        for view in (array, array.T, array[:, ::2], array[::-1].copy()):
            same(kind, Tensor(view, device=device), torch.from_numpy(view.copy()))


def moments(x: Tensor) -> tuple[float, float]:
    values = x.numpy().astype(np.float64)
    return float(values.mean()), float(values.std())


def test_random_moments(device: str) -> None:
    picograd.manual_seed(3)
    draws = {
        "rand": (picograd.rand(20000, device=device), 0.5, 12**-0.5),
        "randn": (picograd.randn(200, 100, device=device), 0, 1),
        "uniform": (Tensor.uniform(20000, low=-1, high=3, device=device), 1, 4 * 12**-0.5),
        "normal": (Tensor.normal(20000, mean=2, std=0.5, device=device), 2, 0.5),
        "randint": (picograd.randint(0, 4, (20000,), device=device), 1.5, 1.25**0.5),
    }
    for name, (x, mean, deviation) in draws.items():
        found = moments(x)
        np.testing.assert_allclose(found, (mean, deviation), atol=0.04, err_msg=name)
    assert draws["randint"][0].dtype is picograd.int64
    assert set(np.unique(draws["randint"][0].numpy())) == {0, 1, 2, 3}
    assert sorted(picograd.randperm(50, device=device).tolist()) == list(range(50))


def test_seed_repeats(device: str) -> None:
    def draw() -> list[Any]:
        picograd.manual_seed(7)
        tensors = [picograd.rand(5, device=device), picograd.randn(5, device=device)]
        return [tensor.tolist() for tensor in tensors]

    first = draw()
    assert first == draw()
    assert picograd.rand(5, device=device).tolist() != first[0]
