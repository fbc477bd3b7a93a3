import numpy as np
import pytest

from picograd import Tensor
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.nn import transforms as T

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 4), np.uint8)
IMAGES = (PIXELS / 255).astype(np.float32)
GREY = np.tensordot(np.array([0.2989, 0.587, 0.114]), IMAGES, (0, 1))[:, None]


def check(transform, wanted, device, given=IMAGES, atol=1e-6):
    out = transform(Tensor(given, device=device))
    np.testing.assert_allclose(out.numpy(), wanted, atol=atol)
    assert out.dtype.name == "float32" and out.shape == wanted.shape


def test_pixels_become_floats(device):
    check(T.ToFloat(), IMAGES, device, PIXELS)
    check(T.ToFloat(), IMAGES, device)
    check(T.ToTensor(), IMAGES, device, PIXELS.transpose(0, 2, 3, 1))
    check(T.ToTensor(), IMAGES[:1], device, PIXELS[0].transpose(1, 2, 0))
    check(T.ToTensor(), IMAGES[:1, :1], device, PIXELS[0, 0])  # one grey image
    assert T.ToTensor(device)(PIXELS.transpose(0, 2, 3, 1)).shape == (2, 3, 4, 4)
    with pytest.raises(DTypeError, match="images are int64"):
        T.ToFloat()(Tensor(PIXELS.astype(np.int64)))
    with pytest.raises(ShapeError, match=r"pixels of shape \(5,\) are no image"):
        T.ToTensor()(np.zeros(5, np.uint8))


def test_normalize(device):
    mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    columns = [np.array(each)[:, None, None] for each in (mean, std)]
    check(T.Normalize(mean, std), (IMAGES - columns[0]) / columns[1], device)
    check(T.Normalize([0.5], [0.5]), (IMAGES - 0.5) / 0.5, device)
    with pytest.raises(ShapeError, match="2 values for images of 3 channels"):
        T.Normalize([0.0, 0.0], [1.0])(Tensor(IMAGES))
    with pytest.raises(ValueRangeError, match="has a zero"):
        T.Normalize([0.0], [0.0])
    with pytest.raises(DTypeError, match=r"Normalize: images are uint8. Fix: put ToFloat\(\)"):
        T.Normalize([0.0], [1.0])(Tensor(PIXELS))


def test_grayscale(device):
    check(T.Grayscale(), GREY, device)
    check(T.Grayscale(3), np.repeat(GREY, 3, 1), device)
    with pytest.raises(ShapeError, match="images have 2 channels"):
        T.Grayscale()(Tensor(IMAGES[:, :2]))
    with pytest.raises(ValueRangeError, match="num_output_channels=2"):
        T.Grayscale(2)


def test_colours_with_given_factors(device):
    mean = GREY.mean((1, 2, 3), keepdims=True)
    wanted = {
        "brightness": np.clip(IMAGES * 1.5, 0, 1),
        "contrast": np.clip(1.5 * IMAGES - 0.5 * mean, 0, 1),
        "saturation": np.clip(1.5 * IMAGES - 0.5 * GREY, 0, 1),
    }
    for name, expected in wanted.items():
        check(T.ColorJitter(**{name: (1.5, 1.5)}), expected, device)
    assert T.ColorJitter()(images := Tensor(IMAGES)) is images


def test_colours_are_drawn_per_image(device):
    given = np.full((64, 1, 4, 4), 0.25, np.float32)
    out = T.ColorJitter(brightness=0.4)(Tensor(given, device=device)).numpy()
    factors = out[:, 0, 0, 0] / 0.25
    assert 0.6 <= factors.min() < 0.7 and 1.3 < factors.max() <= 1.4
    np.testing.assert_allclose(out, given * factors[:, None, None, None], atol=1e-6)
    with pytest.raises(ValueRangeError, match="contrast=-1 is negative"):
        T.ColorJitter(contrast=-1)
