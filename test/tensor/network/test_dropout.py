"""Dropout of channels, and that for self-normalising networks."""

import numpy as np
import pytest
from nn_support import array, torch

from picograd import Tensor, manual_seed
from picograd.errors import ShapeError, ValueRangeError
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
