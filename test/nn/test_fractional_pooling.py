"""Pooling over windows at random places equals PyTorch's at the same places."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    "axes, shape, kernel, count",
    [
        (2, (2, 3, 7, 9), 2, (3, 4)),
        (2, (3, 7, 9), (3, 2), (1, 5)),
        (3, (2, 3, 6, 7, 9), 2, (3, 4, 2)),
    ],
)
def test_values_places_and_gradients(
    axes: int, shape: Any, kernel: Any, count: Any, device: str
) -> None:
    x = RANDOM.normal(size=shape).astype(np.float32)
    lead = shape[:-axes] if len(shape) == axes + 2 else (1, *shape[:-axes])
    samples = RANDOM.uniform(size=(*lead, axes)).astype(np.float32)
    found, want = [], []
    for library, results in ((picograd, found), (torch, want)):
        room: Any = library
        given = room.tensor(x, requires_grad=True, device=device if library is picograd else None)
        places = room.tensor(samples, device=given.device)
        function = getattr(room.nn.functional, f"fractional_max_pool{axes}d")
        options = dict(output_size=count, return_indices=True, _random_samples=places)
        values, indices = function(given, kernel, **options)
        (values * values).sum().backward()
        results += [values.detach().cpu(), indices.cpu(), given.grad.cpu()]
    for ours, theirs in zip(found, want):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-6)


def test_places_are_drawn(device: str) -> None:
    picograd.manual_seed(0)
    x = picograd.arange(64, device=device).float().reshape(1, 8, 8)
    pool = nn.FractionalMaxPool2d(2, output_ratio=0.7)
    drawn = {tuple(pool(x).flatten().tolist()) for _ in range(8)}
    assert len(drawn) > 1 and all(max(each) == 63 for each in drawn)
    unpooled = nn.functional.max_unpool2d(
        *nn.FractionalMaxPool2d(2, 4, return_indices=True)(x), 2, output_size=(8, 8)
    )
    assert unpooled.shape == (1, 8, 8)


def test_mistakes() -> None:
    with pytest.raises(ShapeError, match="one of output_size and output_ratio"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ShapeError, match="4 windows of 3 do not fit into 5"):
        nn.FractionalMaxPool3d(3, output_size=4)(Tensor.ones(1, 5, 5, 5))


def test_given_places_are_part_of_the_state() -> None:
    places = picograd.rand(1, 2, 2)
    assert list(nn.FractionalMaxPool2d(2, 3, _random_samples=places).state_dict()) == [
        "_random_samples"
    ]
    assert not nn.FractionalMaxPool2d(2, 3).state_dict()


def test_an_image_alone_takes_the_first_samples() -> None:
    x, samples = RANDOM.random((3, 7, 9)), RANDOM.random((2, 3, 2))
    pool = nn.FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=Tensor(samples))
    theirs = torch.nn.FractionalMaxPool2d(
        2, output_size=(3, 4), _random_samples=torch.tensor(samples)
    )
    np.testing.assert_array_equal(pool(Tensor(x)).numpy(), theirs(torch.tensor(x)).numpy())
