"""Bits read as another dtype: every pair of dtypes beside PyTorch."""

import numpy as np
import pytest
from interpreted_cuda import interpreted_cuda

import picograd
from picograd import Tensor
from picograd.engine.realize import realize
from picograd.errors import ShapeError

torch = pytest.importorskip("torch")

NAMES = (
    "bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32",
    "float32", "uint64", "int64", "float64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def raw(name: str, device: str) -> tuple[Tensor, "torch.Tensor"]:
    """A (3, 8) tensor of a dtype with the same bits in both libraries."""
    wanted = getattr(torch, name)
    size = torch.empty(0, dtype=wanted).element_size()
    data = np.random.default_rng(0).integers(0, 256, (3, 8 * size), np.uint8)
    if name == "bool":
        data &= 1
    theirs = torch.tensor(data).view(wanted)
    ours = Tensor(data, device=device)
    return (ours.cast("bool") if name == "bool" else ours.view(name)), theirs


def as_bytes(ours: Tensor) -> "np.ndarray":
    return ours.view("uint8").numpy()


@pytest.mark.parametrize("name", NAMES)
def test_every_pair(name: str, device: str) -> None:
    ours, theirs = raw(name, device)
    for other in NAMES:
        found, wanted = ours.view(getattr(picograd, other)), theirs.view(getattr(torch, other))
        assert found.shape == tuple(wanted.shape) and found.dtype.name == other, other
        if other != "bool":
            np.testing.assert_array_equal(as_bytes(found), wanted.view(torch.uint8).numpy(), other)
        else:
            np.testing.assert_array_equal(found.numpy(), wanted.view(torch.uint8).numpy() != 0)
        assert ours.bitcast(other).shape == found.shape


CALLS = [
    ("float32", (2, 3), "int16"), ("float32", (), "int16"), ("int16", (2, 3), "float32"),
    ("uint8", (), "int32"), ("uint8", (0,), "int32"), ("float32", (), "int32"),
    ("float32", (3,), "float64"), ("bool", (3,), "int32"), ("int64", (2, 0), "uint8"),
    ("bfloat16", (2, 1), "float32"), ("bfloat16", (1, 2, 4), "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "other"), CALLS)
def test_shapes_and_refusals(name: str, shape: tuple[int, ...], other: str) -> None:
    ours = picograd.zeros(*shape, dtype=name)
    theirs = torch.zeros(shape, dtype=getattr(torch, name))
    try:
        wanted = theirs.view(getattr(torch, other))
    except RuntimeError:
        for method in (ours.view, ours.bitcast):
            with pytest.raises(ShapeError):
                method(other)
        return
    assert ours.view(dtype=other).shape == tuple(wanted.shape)
    assert ours.view(other).tolist() == wanted.tolist()


def test_views_of_sizes_stay() -> None:
    x = Tensor([1.0, 2.0])
    assert x.view(2, 1).shape == x.view((2, 1)).shape == x.view(size=(2, 1)).shape == (2, 1)
    same = x.view("float32")  # without gradients, as bits of any other dtype
    assert same is not x and not x.requires_grad_().view("float32").requires_grad
    same[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_no_gradient_passes() -> None:
    for name in ("int32", "bfloat16", "float64"):
        x = Tensor([1.0, 2.0], requires_grad=True)
        assert not x.view(name).requires_grad


@pytest.mark.parametrize(
    "names",
    [
        "float32 complex64",
        "complex64 float32",
        "complex64 int16",
        "complex128 complex64",
        "int32 complex128",
        "float64 complex128",
        "complex64 complex64",
    ],
)
def test_complex_numbers_are_pairs(names: str) -> None:  # fmt: skip
    before, after = names.split()
    values = np.arange(8, dtype=before).reshape(2, 4) * (1 + 1j if "complex" in before else 1)
    found = Tensor(values).view(getattr(picograd, after))
    np.testing.assert_array_equal(found.numpy(), values.astype(before).view(after))


def test_complex_numbers_of_no_axis() -> None:
    assert Tensor.of(1.5 + 0j, dtype="complex64").view(picograd.int64).item() == 0x3FC00000
    with pytest.raises(ShapeError, match="3 numbers of float32 are no whole complex64"):
        Tensor([1.0, 2.0, 3.0]).view(picograd.complex64)


@pytest.mark.usefixtures("on_host")
def test_numbers_that_are_none_keep_their_bits_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a kernel stores 8-bit floats and computes with them, and reads them in pairs."""
    data = np.arange(256, dtype=np.uint8).reshape(2, 128)
    with interpreted_cuda(monkeypatch):
        ours = Tensor(data, device="cuda:0").view("float8_e5m2")
        wide = ours.float()
        realize([ours.node, wide.node])
        assert np.isnan(wide.numpy()).sum() == 6
        assert ours.view("bool").numpy().sum() == 255  # -0.0 has a bit
        np.testing.assert_array_equal(as_bytes(ours), data)
        np.testing.assert_array_equal(as_bytes(ours.view("uint16")), data)
