import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError


def rows(loader):
    return [batch.tolist() for (batch,) in loader]


def test_batches_in_order():
    data = Tensor(np.arange(5))
    assert rows(nn.DataLoader(data, batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert rows(nn.DataLoader(data, batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(nn.DataLoader(data, batch_size=2)) == 3
    assert len(nn.DataLoader(data, batch_size=2, drop_last=True)) == 2


def test_shuffle_covers_all_and_changes_by_epoch_and_seed():
    data = Tensor(np.arange(20))
    loader = nn.DataLoader(data, batch_size=8, shuffle=True, seed=3)
    first, second = sum(rows(loader), []), sum(rows(loader), [])
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    again = nn.DataLoader(data, batch_size=8, shuffle=True, seed=3)
    assert sum(rows(again), []) == first
    other = nn.DataLoader(data, batch_size=8, shuffle=True, seed=4)
    assert sum(rows(other), []) != first


def test_tensors_stay_aligned(device):
    images = Tensor(np.arange(24, dtype=np.float32).reshape(6, 2, 2), device=device)
    labels = Tensor(np.arange(6), device=device)
    for x, y in nn.DataLoader(images, labels, batch_size=4, shuffle=True):
        np.testing.assert_array_equal(x.numpy()[:, 0, 0], y.numpy() * 4)
        assert x.device == images.device


def test_wrong_use_is_named():
    with pytest.raises(ShapeError, match=r"shapes \[\(3,\), \(2,\)\] do not share"):
        nn.DataLoader(Tensor.zeros(3), Tensor.zeros(2))
    with pytest.raises(ValueRangeError, match="batch_size=0 is not positive"):
        nn.DataLoader(Tensor.zeros(3), batch_size=0)
