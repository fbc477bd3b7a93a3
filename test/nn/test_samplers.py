from collections import Counter

import pytest

from picograd import Generator, manual_seed, nn
from picograd.errors import DTypeError, ValueRangeError

torch_data = pytest.importorskip("torch.utils.data")


def test_sequential_and_batches_are_pytorchs():
    for drop_last in (False, True):
        ours = nn.BatchSampler(nn.SequentialSampler(range(7)), 3, drop_last)
        theirs = torch_data.BatchSampler(torch_data.SequentialSampler(range(7)), 3, drop_last)
        assert list(ours) == list(theirs) and len(ours) == len(theirs)


def test_random_draws_each_once_and_anew():
    sampler = nn.RandomSampler(range(20), generator=Generator(5))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    assert list(nn.RandomSampler(range(20), generator=Generator(5))) == first


class Long:
    """This class is a data set whose length alone is there."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length


def test_long_orders_are_drawn_as_they_are_asked_for():
    for sampler in (nn.RandomSampler(Long(1 << 40)), nn.RandomSampler(Long(9), True, 1 << 40)):
        order = iter(sampler)
        assert len({next(order) for _ in range(5)}) > 1
    drawn = list(nn.RandomSampler(Long(20_000), generator=Generator(1)))
    assert sorted(drawn) == list(range(20_000))
    assert drawn == list(nn.RandomSampler(Long(20_000), generator=Generator(1)))
    halves = sum(position < 10_000 for position in drawn[:10_000])
    assert abs(halves - 5_000) < 5 * 50  # five standard deviations
    assert len(set(nn.RandomSampler(Long(20_000), num_samples=15_000))) == 15_000


def test_the_default_generator_is_manual_seeds():
    manual_seed(3)
    first = list(nn.RandomSampler(range(20)))
    manual_seed(3)
    assert list(nn.RandomSampler(range(20))) == first


def test_number_of_samples():
    sampler = nn.RandomSampler(range(4), num_samples=10, generator=Generator(0))
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == 10
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]  # whole rounds
    drawn = list(nn.RandomSampler(range(4), True, 1000, Generator(0)))
    counts = Counter(drawn)
    assert len(drawn) == 1000 and min(counts.values()) > 200 and set(counts) == {0, 1, 2, 3}


def test_subset_draws_its_positions():
    sampler = nn.SubsetRandomSampler([7, 3, 9], Generator(1))
    assert sorted(sampler) == [3, 7, 9] and len(sampler) == 3


def test_weights_are_ratios():
    sampler = nn.WeightedRandomSampler([1.0, 0.0, 3.0], 4000, generator=Generator(2))
    counts = Counter(sampler)
    assert len(sampler) == 4000 and counts[1] == 0 and 2850 < counts[2] < 3150
    exact = nn.WeightedRandomSampler([1.0, 0.0, 3.0], 2, False, Generator(2))
    assert sorted(exact) == [0, 2]


@pytest.mark.parametrize("weights", [[], [-1.0, 2.0], [float("nan")], [[1.0]]])
def test_weights_must_be_a_vector(weights):
    with pytest.raises(ValueRangeError, match="weights must be a vector of finite numbers"):
        nn.WeightedRandomSampler(weights, 1)


def test_impossible_numbers_are_refused():
    with pytest.raises(ValueRangeError, match="num_samples=0 is not positive"):
        nn.RandomSampler([])  # as PyTorch
    with pytest.raises(ValueRangeError, match="num_samples=0 is not positive"):
        nn.WeightedRandomSampler([1.0], 0)
    with pytest.raises(ValueRangeError, match="1 weights are above 0, too few to draw 2"):
        nn.WeightedRandomSampler([1.0, 0.0], 2, replacement=False)
    with pytest.raises(ValueRangeError, match="batch_size=True is not positive"):
        nn.BatchSampler(range(3), True, False)
    with pytest.raises(NotImplementedError, match="Sampler has to define __iter__"):
        iter(nn.Sampler())


@pytest.mark.parametrize(
    "made",
    [
        lambda given: nn.RandomSampler(range(3), generator=given),
        lambda given: nn.DataLoader([1, 2], shuffle=True, generator=given),
    ],
)
def test_what_is_no_generator(made):
    with pytest.raises(DTypeError, match=r"generator is an int.*pass a picograd.Generator"):
        list(made(3))
