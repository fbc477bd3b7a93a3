"""Interpolation equals PyTorch's in every mode, with gradients."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError
from picograd.tensor.network.interpolation import interpolate, neighbours

torch = pytest.importorskip("torch")

IMAGE, ROW, CUBE = numbers((1, 2, 4, 5)), numbers((2, 1, 5)), numbers((1, 1, 3, 2, 4))
CALLS: list[tuple[Any, str, dict[str, Any]]] = [
    (IMAGE, "nearest", dict(size=(7, 3))),
    (IMAGE, "nearest", dict(scale_factor=2)),
    (IMAGE, "nearest", dict(scale_factor=(2, 0.5), recompute_scale_factor=True)),
    (IMAGE, "nearest-exact", dict(size=(7, 3))),
    (IMAGE, "nearest-exact", dict(scale_factor=1.7)),
    (IMAGE, "nearest", dict(size=(40, 33))),
    (IMAGE, "bilinear", dict(size=(40, 33))),
    (IMAGE, "bicubic", dict(scale_factor=2)),
    (IMAGE, "area", dict(size=(3, 2))),
    (ROW, "linear", dict(size=8)),
    (ROW, "linear", dict(size=3, align_corners=True)),
    (ROW, "linear", dict(size=1, align_corners=True)),
    (IMAGE, "bilinear", dict(size=(7, 3))),
    (IMAGE, "bilinear", dict(scale_factor=1.7)),
    (IMAGE, "bilinear", dict(scale_factor=1.7, recompute_scale_factor=True, align_corners=True)),
    (IMAGE, "bilinear", dict(size=(7, 3), antialias=True)),
    (IMAGE, "bilinear", dict(size=(2, 3), antialias=True, align_corners=True)),
    (IMAGE, "bicubic", dict(size=(7, 3))),
    (IMAGE, "bicubic", dict(scale_factor=1.7, align_corners=True)),
    (IMAGE, "bicubic", dict(size=(2, 3), antialias=True)),
    (numbers((1, 1, 40, 9)), "bilinear", dict(size=(3, 30), antialias=True)),
    (CUBE, "trilinear", dict(size=(2, 5, 3))),
    (CUBE, "trilinear", dict(scale_factor=2, align_corners=True)),
]


def test_every_mode(device: str) -> None:
    compare([both(x, {**given, "mode": mode}) for x, mode, given in CALLS], device)


def both(x: Any, options: dict[str, Any]) -> Case:
    def theirs(t: Any) -> Any:
        return torch.nn.functional.interpolate(t, **options)

    return Case(str(options), lambda t: interpolate(t, **options), [x], theirs)


def test_16_bit_floats_and_exports(device: str) -> None:
    x = Tensor(IMAGE, dtype="bfloat16", device=device)
    found = picograd.nn.functional.interpolate(x, (8, 10), mode="bilinear")
    assert found.dtype is picograd.bfloat16
    want = torch.nn.functional.interpolate(torch.tensor(IMAGE), (8, 10), mode="bilinear")
    assert abs(found.float().numpy() - want.numpy()).max() < 0.02


def test_mistakes(device: str) -> None:
    x = Tensor(IMAGE, device=device)
    for options in (
        dict(),
        dict(size=3, scale_factor=2),
        dict(size=(1, 2, 3)),
        dict(size=0),
        dict(scale_factor=-1.0),
        dict(size=3, mode="linear"),
        dict(size=3, mode="cubic"),
        dict(size=3, align_corners=True),
        dict(size=3, antialias=True),
    ):
        with pytest.raises(PicogradError):
            interpolate(x, **options)
    with pytest.raises(PicogradError):
        interpolate(x[:, :, :0], 2)


BYTES = [
    (mode, size, more)
    for mode in ("bilinear", "bicubic")
    for size in ((4, 4), (3, 11), (13, 2))
    for more in ({}, {"align_corners": True}, {"antialias": True})
]


@pytest.mark.parametrize("mode,size,more", BYTES)
def test_bytes_round_as_pytorch_rounds(mode: str, size: Any, more: Any) -> None:
    source = np.random.default_rng(0)
    for x in (np.arange(64), source.integers(0, 256, 64), (source.random(64) > 0.5) * 255):
        image = x.astype(np.uint8).reshape(1, 1, 8, 8)
        found = interpolate(Tensor(image), size, mode=mode, **more)
        want = torch.nn.functional.interpolate(torch.tensor(image), size, mode=mode, **more)
        assert found.dtype is picograd.uint8
        assert found.tolist() == want.tolist()


def test_bytes_by_factor() -> None:
    image = np.random.default_rng(1).integers(0, 256, (2, 3, 7, 5)).astype(np.uint8)
    for recompute in (None, True):
        options = dict(scale_factor=1.7, mode="bilinear", recompute_scale_factor=recompute)
        found = interpolate(Tensor(image), **options)
        want = torch.nn.functional.interpolate(torch.tensor(image), **options)
        assert found.tolist() == want.tolist()


def test_other_integers_have_no_averages() -> None:
    with pytest.raises(PicogradError, match="needs floats or uint8, got int32"):
        interpolate(picograd.ones(1, 1, 2, 2).int(), 4, mode="bilinear")


def test_old_names(device: str) -> None:
    x, t = Tensor(IMAGE, device=device), torch.tensor(IMAGE)
    for name, size in (("upsample_nearest", 7), ("upsample_bilinear", (7, 3))):
        ours = getattr(picograd.nn.functional, name)(x, size)
        theirs = getattr(torch.nn.functional, name)(t, size)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_sizes_may_be_tensors_of_one_element() -> None:
    x = Tensor(IMAGE)
    sizes = [picograd.tensor([7]), picograd.tensor(3)]
    found = interpolate(x, size=sizes, mode="bilinear")
    assert found.tolist() == interpolate(x, size=(7, 3), mode="bilinear").tolist()


def test_a_batch_may_be_empty() -> None:
    for mode in ("nearest", "bilinear", "area"):
        assert interpolate(Tensor.zeros(0, 3, 4, 4), size=(2, 6), mode=mode).shape == (0, 3, 2, 6)
    with pytest.raises(PicogradError, match="no elements"):
        interpolate(Tensor.zeros(2, 3, 0, 4), size=(2, 6))


def test_positions_and_weights_are_brought_to_a_device_once() -> None:
    """A second call makes nothing on the host, and its kernel looks at no negative positions."""
    x = Tensor(IMAGE)
    for mode in ("bilinear", "bicubic"):
        neighbours.cache_clear()
        text, again = (str(picograd.explain(interpolate(x, (7, 3), mode=mode))) for _ in range(2))
        assert text == again and neighbours.cache_info().hits == 2  # one for each axis
        assert "where" not in text.split("== Plan")[0]


def test_an_infinite_gradient_reaches_no_other_elements(device: str) -> None:
    x, seed = Tensor(IMAGE, device=device), np.ones((1, 2, 9, 11), np.float32)
    x.requires_grad_()
    seed[0, 0, 0, 0] = np.inf
    found = interpolate(x, (9, 11), mode="bilinear")
    (gradient,) = picograd.autograd.grad(found, x, Tensor(seed, device=device))
    assert np.argwhere(~np.isfinite(gradient.numpy())).tolist() == [[0, 0, 0, 0]]


def test_an_infinite_element_reaches_what_it_is_beside(device: str) -> None:
    x = IMAGE.copy()
    x[0, 0, 0, 0] = np.inf
    found = interpolate(Tensor(x, device=device), (3, 2), mode="bilinear", antialias=True)
    assert np.argwhere(~np.isfinite(found.numpy())).tolist() == [[0, 0, 0, 0]]


def test_second_derivatives(device: str) -> None:
    x, seed = Tensor(IMAGE, device=device), Tensor(numbers((1, 2, 7, 3)), device=device)
    seed.requires_grad_()
    x.requires_grad_()
    y = interpolate(x * x, (7, 3), mode="bicubic")
    (first,) = picograd.autograd.grad(y, x, seed, create_graph=True)
    (twice,) = picograd.autograd.grad(first.sum(), seed)
    t = torch.tensor(2 * IMAGE)
    want = torch.nn.functional.interpolate(t, (7, 3), mode="bicubic")
    np.testing.assert_allclose(twice.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_gradients_scatter_nothing(mode: str) -> None:
    x = Tensor(IMAGE, requires_grad=True)
    interpolate(x, (9, 11), mode=mode).sum().backward()
    assert "scatter" not in picograd.explain(x.grad)


def test_gradients_of_16_bits_add_up_in_32() -> None:
    x = picograd.ones((1, 1, 1, 3), dtype="bfloat16", requires_grad=True)
    interpolate(x, (300, 4)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[[[600.0, 300.0, 300.0]]]]
