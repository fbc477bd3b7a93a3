"""Making tensors in PyTorch's other spellings, and facts about tensors and dtypes."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")


def same(found: Any, want: Any, rtol: float = 1e-6) -> None:
    assert found.shape == tuple(want.shape) and found.numpy().dtype == want.numpy().dtype
    np.testing.assert_allclose(found.numpy(), want.numpy(), rtol, 1e-7)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_windows_and_ranges(count: int) -> None:
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for periodic in (True, False):
            found = getattr(picograd, f"{name}_window")(count, periodic)
            same(found, getattr(torch, f"{name}_window")(count, periodic), 1e-5)
    same(picograd.logspace(-1, 2, count), torch.logspace(-1, 2, count), 1e-5)
    same(picograd.logspace(0, 3, count, 2.0), torch.logspace(0, 3, count, 2.0), 1e-5)


@pytest.mark.filterwarnings("ignore:torch.range")
def test_old_range() -> None:
    same(picograd.range(1, 4), torch.range(1, 4))
    same(picograd.range(0, 1, 0.25), torch.range(0, 1, 0.25))


def test_like_another(device: str) -> None:
    x, t = Tensor([1.5, 2.0], dtype="float64", device=device), torch.tensor([1.5, 2.0]).double()
    for name in ("new_zeros", "new_ones"):
        same(getattr(x, name)(2, 3), getattr(t, name)(2, 3))
        whole = getattr(t, name)((3,), dtype=torch.int32)
        same(getattr(x, name)((3,), dtype=picograd.int32), whole)
    same(x.new_full((2,), 7), t.new_full((2,), 7))
    same(x.new_tensor([1, 2]), t.new_tensor([1, 2]))
    assert x.new_empty(3).shape == (3,) and x.new_zeros(1).device == x.device
    same(Tensor([1], device=device).type_as(x), torch.tensor([1]).type_as(t))
    assert picograd.as_tensor(x) is x and picograd.asarray(x, copy=True) is not x
    assert picograd.asarray([1.0], requires_grad=True).requires_grad
    same(
        picograd.frombuffer(b"\x00\x01\x02\x03", dtype="int16", count=1, offset=2),
        torch.frombuffer(bytearray(b"\x00\x01\x02\x03"), dtype=torch.int16, count=1, offset=2),
    )
    assert picograd.frombuffer(b"\x80\x3f", dtype=picograd.bfloat16).item() == 1.0
    same(picograd.scalar_tensor(3), torch.scalar_tensor(3))


def test_facts(device: str) -> None:
    x = Tensor([[1.0, 2.0]], device=device)
    assert picograd.numel(x) == x.nelement() == 2 and x.ndimension() == 2
    assert picograd.is_tensor(x) and not picograd.is_tensor(1)
    assert picograd.is_floating_point(x) and not picograd.is_complex(x) and x.is_signed()
    assert x.is_contiguous() and x.is_cuda == (device != "cpu") and x.is_cpu != x.is_cuda
    assert x.get_device() == (-1 if device == "cpu" else 0)
    assert x.char().dtype is picograd.int8 and x.short().byte().dtype is picograd.uint8
    assert not x.is_sparse and not x.is_meta and not x.is_quantized and x.real is x
    assert x.H.shape == (2, 1) and x.mH.shape == (2, 1)
    x.data = Tensor([[3.0, 4.0]], device=x.device)
    assert x.tolist() == [[3.0, 4.0]] and x.data.tolist() == x.tolist()


def test_mistakes() -> None:
    for wrong in (
        lambda: picograd.hann_window(-1),
        lambda: picograd.hann_window(4, dtype="int64"),
        lambda: Tensor([1.0]).flip(),
        lambda: picograd.searchsorted(Tensor([1.0]), 1.0, right=True, side="left"),
        lambda: picograd.logspace(0, 1, -1),
        lambda: picograd.range(1, 0),
        lambda: picograd.frombuffer(b"1", dtype="float32"),
        lambda: picograd.numel([1]),
        lambda: Tensor([1.0]).H,
    ):
        with pytest.raises(PicogradError):
            wrong()


RANGES = [
    ("linspace", (0, 10, 5)), ("linspace", (5, 10, 3)), ("linspace", (5, -5, 8)),
    ("linspace", (0.5, 9.7, 6)), ("linspace", (0, 1, 1)), ("linspace", (0, 1, 0)),
    ("linspace", (3, 3, 4)), ("linspace", (0, 100, 7)), ("linspace", (0.1, 0.7, 7)),
    ("logspace", (0, 2, 5)), ("logspace", (0.5, 1.5, 4)),
    ("arange", (5,)), ("arange", (10, 0, -3)), ("arange", (0.5, 5)), ("arange", (0.5, 5.5, 1.5)),
    ("arange", (-1.7, 1.3)), ("arange", (-0.5, 2.5)), ("arange", (0, 9, 3.5)),
    ("arange", (2, 5.0)), ("arange", (1.5, 1.5)), ("arange", (0, 100.5, 7)),
    ("range", (0.5, 5.5, 1.5)), ("range", (-1.7, 1.3)), ("range", (0, 5, 1.9)),
]  # fmt: skip


def test_lines_of_complex_numbers_and_of_short_floats() -> None:
    for ends in ((0, 10j, 3), (1 + 2j, 5, 4)):
        same(picograd.linspace(*ends), torch.linspace(*ends))
    found = picograd.linspace(-100, 100, 401, dtype=picograd.bfloat16)
    want = torch.linspace(-100, 100, 401, dtype=torch.bfloat16)
    assert found.tolist() == want.tolist()  # positions beyond 256 were rounded


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "float32", "float64"])
def test_ranges_in_every_dtype(dtype: str) -> None:
    for name, ends in RANGES:
        found = getattr(picograd, name)(*ends, dtype=dtype)
        same(found, getattr(torch, name)(*ends, dtype=getattr(torch, dtype)))


def test_ranges_end_exactly() -> None:
    for count in (3, 10, 49, 1000):
        for dtype in ("float32", "float64"):
            x = picograd.linspace(0.1, 0.7, count, dtype=dtype)
            assert x[-1].item() == picograd.tensor(0.7, dtype=dtype).item()
    with pytest.raises(PicogradError, match=r"step 0.5 is 0 in int64"):
        picograd.arange(0, 3, 0.5, dtype="int64")
    with pytest.raises(PicogradError, match="300 cannot be converted to uint8"):
        picograd.linspace(0, 300, 5, dtype="uint8")


def test_new_floats_are_of_the_default_float() -> None:
    picograd.set_default_dtype(picograd.float64)
    try:
        made = [
            picograd.scalar_tensor(3), picograd.logspace(0, 1, 3), picograd.range(0, 2),
            picograd.hann_window(4), picograd.kaiser_window(3, dtype=None),
            picograd.signal.windows.gaussian(3), picograd.fft.fftfreq(4), picograd.fft.rfftfreq(4),
        ]  # fmt: skip
        assert [each.dtype for each in made] == [picograd.float64] * len(made)
        assert picograd.hann_window(4, dtype="float32").dtype is picograd.float32
    finally:
        picograd.set_default_dtype(picograd.float32)


def test_sizes_of_new_tensors_may_be_named() -> None:
    """`new_ones(size=...)` is `new_ones(...)`."""
    x = Tensor([1.0])
    for name in ("new", "new_ones", "new_zeros", "new_empty"):
        assert getattr(x, name)(size=(2, 3)).shape == (2, 3)
        assert getattr(x, name)(size=[2]).shape == (2,)
