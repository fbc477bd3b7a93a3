import numpy as np
import pytest

from picograd import Generator, Tensor, manual_seed
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.nn import transforms as T
from picograd.nn.transforms.base import read_range, read_size

IMAGES = np.arange(32, dtype=np.float32).reshape(2, 1, 4, 4) / 32


def test_compose_applies_in_order(device):
    both = T.Compose([T.Normalize([0.5], [0.5]), T.RandomHorizontalFlip(1.0)])
    wanted = (IMAGES[..., ::-1] - 0.5) / 0.5
    np.testing.assert_allclose(both(Tensor(IMAGES, device=device)).numpy(), wanted, atol=1e-6)
    with pytest.raises(DTypeError, match="int is no function of a batch"):
        T.Compose([3])


def test_draws_are_per_image_and_reproducible(device):
    flip, images = T.RandomHorizontalFlip(0.5), Tensor(np.ones((64, 1, 1, 1)), device=device)
    manual_seed(5)
    first, second = flip.draw(images).numpy(), flip.draw(images).numpy()
    manual_seed(5)
    np.testing.assert_array_equal(flip.draw(images).numpy(), first)
    assert first.shape == (64, 1, 1, 1) and len(np.unique(first)) > 60 and (first != second).any()
    flip.generator = Generator(5)
    np.testing.assert_array_equal(flip.draw(images).numpy(), first)
    below = flip.draw_below(images, 3).numpy()
    assert set(below.flatten()) == {0, 1, 2} and below.dtype == np.int64


def test_wrong_batches_are_named():
    with pytest.raises(ShapeError, match=r"CenterCrop: images of shape \(1, 4, 4\) are no batch"):
        T.CenterCrop(2)(Tensor(IMAGES[0]))
    with pytest.raises(DTypeError, match="Pad: the input must be a Tensor"):
        T.Pad(1)(IMAGES)
    with pytest.raises(NotImplementedError, match="Transform has to define apply"):
        T.Transform()(Tensor(IMAGES))


def test_options_are_read():
    assert read_size("x", 3) == (3, 3) and read_size("x", [1, 2]) == (1, 2)
    assert read_range("x", "y", 0.25, 1.0) == (0.75, 1.25)
    assert read_range("x", "y", (2, 3), 1.0) == (2.0, 3.0)
    for wrong in (0, (2, -1)):
        with pytest.raises(ValueRangeError, match="is not positive"):
            read_size("x", wrong)
    with pytest.raises(ValueRangeError, match="y=-1 is negative"):
        read_range("x", "y", -1, 0.0)
    with pytest.raises(ValueRangeError, match=r"y=\(3, 2\) is empty"):
        read_range("x", "y", (3, 2), 0.0)
    with pytest.raises(ValueRangeError, match="p=2 is no probability"):
        T.RandomHorizontalFlip(2)
