"""Dropout of channels, and that for self-normalising networks."""

import numpy as np
import pytest
from nn_support import array, torch

from picograd import Tensor, manual_seed
from picograd.errors import ShapeError, ValueRangeError
from picograd.graph.random import random_halves
from picograd.nn import functional


def test_whole_channels_are_dropped(device):
    for rank in (1, 2, 3):
        x = Tensor.ones(20, 10, *(2,) * rank, device=device)
        y = getattr(functional, f"dropout{rank}d")(x, 0.5).numpy().reshape(200, -1)
        assert set(np.unique(y)) == {0.0, 2.0} and (y == y[:, :1]).all()
        assert getattr(functional, f"dropout{rank}d")(x, 0.5, training=False) is x


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:dropout")
def test_what_is_drawn_for_is_pytorchs(kind, rank):
    """Every number of axes: the same slices live and die together, or both refuse."""
    name = f"dropout{kind}d"
    theirs, ours = getattr(torch.nn.functional, name), getattr(functional, name)
    torch.manual_seed(0), manual_seed(0)
    try:
        wanted = theirs(torch.ones([6] * rank), 0.5).numpy()
    except RuntimeError:
        with pytest.raises(RuntimeError):
            ours(Tensor.ones(*[6] * rank), 0.5)
        return
    found = ours(Tensor.ones(*[6] * rank), 0.5).numpy()

    def leading(y):
        return next(n for n in range(rank + 1) if not np.ptp(y.reshape(6**n, -1), axis=1).any())

    assert leading(found) == leading(wanted)


@pytest.mark.parametrize("p", [0.001, 0.02, 0.1, 0.5, 0.9, 0.999])
def test_the_share_that_is_dropped(p, device):
    """Rare outcomes are drawn with more bits: of 2 ** 18 draws within five deviations."""
    manual_seed(3)
    y = functional.dropout(Tensor.ones(1 << 9, 1 << 9, device=device), p).numpy()
    assert abs((y == 0).mean() - p) < 5 * (p * (1 - p) / y.size) ** 0.5
    np.testing.assert_allclose(y[y != 0], 1 / (1 - p), rtol=1e-6)


def test_what_is_rarer_than_16_bits_tell_is_dropped_too(device):
    y = functional.dropout(Tensor.ones(1 << 12, 1 << 12, device=device), 2.0**-18)
    assert 24 <= int((y == 0).sum().item()) <= 104, "64 are expected"


@pytest.mark.parametrize("shape", [(33,), (5, 64), (7, 50), (3, 40, 31), (2, 3, 96, 64)])
def test_what_is_kept_is_a_function_of_the_place(shape, device):
    """In order, in another order, in a sum, in rows that are normalised: the same elements."""
    kept = random_halves(np.array(5), np.array(0), shape) < 65536 - round(0.3 * 65536)

    def dropped(x):
        manual_seed(5)
        return functional.dropout(x, 0.3)

    x = Tensor(1 + array(*shape) ** 2, device=device)
    assert ((dropped(x).numpy() != 0) == kept).all()
    turned = dropped(x).permute(*reversed(range(len(shape)))).contiguous()
    assert ((turned.numpy() != 0) == kept.T).all()
    ones = Tensor.ones(*shape, device=device)
    np.testing.assert_allclose(dropped(ones).sum(-1).numpy() * 0.7, kept.sum(-1), rtol=1e-5)
    np.testing.assert_allclose(dropped(ones).sum(0).numpy() * 0.7, kept.sum(0), rtol=1e-5)
    rows = functional.layer_norm(dropped(x) + x, shape[-1:]).numpy()
    wanted = np.where(kept, 1 / 0.7, 0) * x.numpy() + x.numpy()
    wanted = (wanted - wanted.mean(-1, keepdims=True)) / wanted.std(-1, keepdims=True)
    np.testing.assert_allclose(rows, wanted, rtol=2e-3, atol=2e-3)


def test_alpha_dropout_keeps_mean_and_variance(device):
    x = Tensor(array(300, 300), device=device)
    y = functional.alpha_dropout(x, 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1.0) < 0.02
    assert functional.alpha_dropout(x, 0.3) is x
    assert not functional.alpha_dropout(x, 1.0, training=True).numpy().any()
    z = functional.feature_alpha_dropout(Tensor.ones(8, 9, 4, device=device), 0.5, True).numpy()
    assert (z == z[:, :, :1]).all() and len(np.unique(z)) == 2


def test_wrong_arguments_are_named():
    with pytest.raises(ShapeError, match=r"dropout1d: input of shape \(2,\) has 1 axes"):
        functional.dropout1d(Tensor.ones(2))
    with pytest.raises(ShapeError, match="has no channels"), pytest.warns(UserWarning):
        functional.dropout2d(Tensor.ones(2))
    with pytest.raises(ShapeError, match="has no channels"):
        functional.feature_alpha_dropout(Tensor.ones(2), 0.5, True)
    with pytest.raises(ValueRangeError, match="p=-1 is not"):
        functional.dropout1d(Tensor.ones(2, 3), -1, False)
    with pytest.raises(ValueRangeError, match="alpha_dropout: p=2 is not a probability"):
        functional.alpha_dropout(Tensor.ones(2), 2, True)
