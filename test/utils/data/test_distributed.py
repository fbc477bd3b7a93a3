"""Each process draws its share."""

import pytest

from picograd.errors import ValueRangeError
from picograd.utils.data import DistributedSampler


@pytest.mark.parametrize("size", [0, 1, 5, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_shares_are_those_of_pytorch(size: int, drop_last: bool) -> None:
    torch = pytest.importorskip("torch")
    for rank in range(3):
        options = dict(num_replicas=3, rank=rank, shuffle=False, drop_last=drop_last)
        ours = DistributedSampler(range(size), **options)
        theirs = torch.utils.data.DistributedSampler(range(size), **options)
        assert len(ours) == len(theirs)
        if size:  # PyTorch's asserts fail without samples
            assert list(ours) == list(theirs)


def test_every_epoch_has_an_order_that_all_share() -> None:
    parts = [DistributedSampler(range(9), 3, rank) for rank in range(3)]
    first = [list(part) for part in parts]
    assert sorted(sum(first, [])) == list(range(9))
    parts[0].set_epoch(1)
    assert list(parts[0]) != first[0]
    assert len(DistributedSampler(range(9))) == 9
    with pytest.raises(ValueRangeError, match="rank=3 of 3"):
        DistributedSampler(range(9), 3, 3)
