"""8-bit floats: stored, moved, compared, multiplied by matmul, and refused elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.dtype import DType, float8_e4m3fn, float8_e5m2
from picograd.errors import DTypeError
from picograd.nn import state

torch = pytest.importorskip("torch")

DTYPES = [float8_e4m3fn, float8_e5m2]
VALUES = [[1.3, -2.0, 0.01], [300.0, 400.0, -0.0]]
both = pytest.mark.parametrize("dtype", DTYPES, ids=repr)


def pair(dtype: DType, device: str, values: Any = VALUES) -> tuple[Tensor, torch.Tensor]:
    theirs = torch.tensor(values).to(getattr(torch, dtype.name))
    return Tensor(values, dtype=dtype, device=device), theirs


def bits(x: Any) -> list[Any]:
    raw = x.bitcast("uint8") if isinstance(x, Tensor) else x.view(torch.uint8)
    return list(raw.tolist())


@both
def test_values_leave_as_float32(dtype: DType, device: str) -> None:
    ours, theirs = pair(dtype, device)
    assert bits(ours) == bits(theirs)
    assert ours.tolist() == theirs.tolist()
    assert ours[0, 0].item() == theirs[0, 0].item()
    assert ours.numpy().dtype == np.float32
    assert dtype.name in repr(ours) and "1.25" in repr(ours)
    assert ours.itemsize == 1 and ours.is_floating_point()
    assert bits(picograd.full((2,), 1.3, dtype=dtype)) == bits(theirs[0, :1].expand(2).contiguous())
    assert ours.float().to(dtype).tolist() == ours.tolist()


def test_names() -> None:
    assert picograd.float8_e4m3 is picograd.float8_e4m3fn
    assert Tensor([1.0], dtype="float8_e4m3").dtype is float8_e4m3fn
    assert str(float8_e5m2) == "picograd.float8_e5m2"


MOVES: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: x.T.contiguous(),
    "reshape": lambda x: x.reshape(3, 2),
    "index": lambda x: x[1, 1:],
    "rows": lambda x: x[[1, 0, 1]],
    "repeat": lambda x: x.repeat(2, 1),
    "roll": lambda x: x.roll(1, 1),
    "expand": lambda x: x[:1].expand(4, 3).contiguous(),
    "diagonal": lambda x: x.diagonal().contiguous(),
    "clone": lambda x: x.clone(),
    "zero": lambda x: x.clone().zero_(),
    "fill": lambda x: x.clone().fill_(1.3),
    "copy": lambda x: x.clone().copy_(x.float() * 0.5),
}


@both
def test_moving(dtype: DType, device: str) -> None:
    ours, theirs = pair(dtype, device)
    found = {name: move(ours) for name, move in MOVES.items()}
    for name, move in MOVES.items():
        assert bits(found[name]) == bits(move(theirs)), name
    joined = bits(picograd.cat([ours, ours]))
    assert joined == bits(torch.cat([theirs, theirs]))
    chosen = picograd.where(ours.float() > 1, ours, ours[:1])
    assert bits(chosen) == bits(torch.where(theirs.float() > 1, theirs, theirs[:1]))
    mask = ours.masked_select(ours.float() > 1)
    assert bits(mask) == bits(theirs.masked_select(theirs.float() > 1))


@both
def test_comparing(dtype: DType, device: str) -> None:
    ours, theirs = pair(dtype, device, [1.0, float("nan"), -0.0, 0.0])
    assert (ours == ours).tolist() == (theirs == theirs).tolist()
    assert (ours != ours).tolist() == (theirs != theirs).tolist()
    assert (ours == 1.0).tolist() == [True, False, False, False]
    assert ours.isnan().tolist() == theirs.isnan().tolist()
    assert ours.any().item() is True


@both
def test_matmul_adds_in_float32(dtype: DType, device: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, shape) / 2 for shape in ((5, 7), (7, 4)))
    (x, s), (y, t) = pair(dtype, device, a), pair(dtype, device, b)
    assert bits(x @ y) == bits((s.float() @ t.float()).to(s.dtype))
    assert bits(x[0] @ y) == bits((s[0].float() @ t.float()).to(s.dtype))


REFUSED: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + x,
    "mul": lambda x: x * 2.0,
    "neg": lambda x: -x,
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "amax": lambda x: x.amax(),
    "less": lambda x: x < x,
    "maximum": lambda x: x.maximum(x),
    "sort": lambda x: x.sort(),
    "argmax": lambda x: x.argmax(),
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(0),
    "std": lambda x: x.std(),
    "atan2": lambda x: x.atan2(x),
    "unique": lambda x: x.unique(),
    "add of float32": lambda x: x + x.float(),
    "cat of float32": lambda x: picograd.cat([x, x.float()]),
    "random": lambda x: picograd.rand(3, dtype=x.dtype),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    with pytest.raises(DTypeError):
        REFUSED[name](Tensor(VALUES, dtype=float8_e4m3fn))


def test_the_text_of_a_refusal() -> None:
    x = Tensor(VALUES, dtype=float8_e5m2)
    with pytest.raises(DTypeError) as found:
        x + x
    text = "add: takes an integer or float dtype, not float8_e5m2. Fix: call .float() first."
    assert str(found.value) == text
    with pytest.raises(DTypeError, match="no common dtype for float8_e5m2 and float32"):
        x + x.float()


@both
def test_gradients_pass_casts(dtype: DType, device: str) -> None:
    x = Tensor([1.3, -2.6, 0.7], device=device, requires_grad=True)
    t = torch.tensor([1.3, -2.6, 0.7], requires_grad=True)
    ((x * 2).to(dtype).float() * 3).sum().backward()
    ((t * 2).to(getattr(torch, dtype.name)).float() * 3).sum().backward()
    assert x.grad.tolist() == t.grad.tolist()  # type: ignore[union-attr]
    y = Tensor([1.0, 2.0], dtype=dtype, device=device, requires_grad=True)
    (y.float() + y.float() * 2).sum().backward()
    assert y.grad is not None and y.grad.dtype is dtype and y.grad.tolist() == [3, 3]


@both
def test_state_files_keep_the_bits(dtype: DType, device: str, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    codes = Tensor(np.arange(256).astype(np.uint8), device=device)
    state.save({"x": codes.bitcast(dtype)}, path)
    found = state.load(path, device)["x"]
    assert found.dtype is dtype
    assert bits(found) == list(range(256))
    theirs = pytest.importorskip("safetensors.torch").load_file(path)["x"]
    assert str(theirs.dtype) == f"torch.{dtype.name}" and bits(theirs) == list(range(256))
