import numpy as np
import pytest

import picograd
from picograd import Generator, Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data")


def test_tensors_are_paired_row_by_row(device):
    x, y = Tensor(np.arange(6.0).reshape(3, 2), device=device), Tensor([7, 8, 9], device=device)
    data = nn.TensorDataset(x, y)
    row, label = data[-1]
    assert len(data) == 3 and row.tolist() == [4.0, 5.0] and label.item() == 9
    batch = data.gather(np.array([2, 0]))
    assert [part.tolist() for part in batch] == [[[4.0, 5.0], [0.0, 1.0]], [9, 7]]


@pytest.mark.parametrize("make", [lambda t: t.cast("bfloat16"), lambda t: t.requires_grad_()])
def test_what_numpy_cannot_hold_is_gathered_by_a_kernel(make, device):
    rows = make(Tensor([[1.0, 2.0], [3.0, 4.0]], device=device))
    (batch,) = nn.TensorDataset(rows).gather(np.array([1, 0, 1]))
    assert batch.tolist() == [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    assert (batch.dtype, batch.requires_grad) == (rows.dtype, rows.requires_grad)


def test_a_batch_has_memory_of_its_own(device):
    rows = Tensor([1.0, 2.0], device=device)
    (batch,) = nn.TensorDataset(rows).gather(np.array([1, 0]))
    batch += 1
    assert rows.tolist() == [1.0, 2.0] and batch.tolist() == [3.0, 2.0]
    rows += 5  # a batch drawn later sees the new values
    assert nn.TensorDataset(rows).gather(np.array([0]))[0].tolist() == [6.0]


def test_arrays_stay_on_the_host():
    data = nn.ArrayDataset(np.arange(3), np.array([4.0, 5.0, 6.0], np.float32))
    assert [type(part) for part in data.gather(np.array([0, 2]))] == [np.ndarray] * 2
    with pytest.raises(DTypeError, match="must be a NumPy array, not Tensor"):
        nn.ArrayDataset(Tensor([1.0]))
    with pytest.raises(ShapeError, match=r"shapes \[\(3,\), \(2,\)\] do not share"):
        nn.ArrayDataset(np.ones(3), np.ones(2))
    with pytest.raises(ShapeError, match=r"shapes \[\(\)\]"):
        nn.ArrayDataset(np.ones(()))


def test_combinations_are_pytorchs():
    parts = [["a", "b"], [], ["c", "d", "e"]]
    ours, theirs = nn.ConcatDataset(parts), torch_data.ConcatDataset(parts)
    positions = range(-len(theirs), len(theirs))
    assert [ours[i] for i in positions] == [theirs[i] for i in positions]
    assert len(ours) == len(theirs) and len(nn.Subset(ours, [4, 0])) == 2
    assert [nn.Subset(ours, [4, 0])[i] for i in (0, 1)] == ["e", "a"]
    for index, kind in ((5, IndexError), (-6, ValueError)):
        with pytest.raises(kind, match=f"index {index} is outside 5 samples"):
            ours[index]
    with pytest.raises(ValueRangeError, match="no data set given"):
        nn.ConcatDataset([])
    assert list(nn.ChainDataset(parts)) == ["a", "b", "c", "d", "e"]


def test_sums_of_data_sets():
    class Letters(nn.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return "xy"[index]

    class Stream(nn.IterableDataset):
        def __iter__(self):
            return iter("pq")

    both = Letters() + Letters()
    assert isinstance(both, nn.ConcatDataset) and [both[i] for i in range(4)] == list("xyxy")
    assert list(Stream() + Stream()) == list("pqpq")
    with pytest.raises(DTypeError, match="an IterableDataset has no index. Fix: use ChainDataset"):
        nn.ConcatDataset([Letters(), Stream()])
    with pytest.raises(TypeError, match="Dataset has no length. Fix: define __len__"):
        len(nn.Dataset())


@pytest.mark.parametrize("lengths", [[3, 5, 2], [0.3, 0.3, 0.4], [0.33, 0.33, 0.34], [10], [1.0]])
def test_random_split_has_pytorchs_lengths(lengths):
    parts = nn.random_split(range(10), lengths, Generator(1))
    theirs = torch_data.random_split(range(10), lengths)
    assert [len(part) for part in parts] == [len(part) for part in theirs]
    assert sorted(value for part in parts for value in part) == list(range(10))
    again = nn.random_split(range(10), lengths, Generator(1))
    assert [list(part) for part in again] == [list(part) for part in parts]


@pytest.mark.parametrize("lengths", [[3, 5], [0.5, 0.6], [12, -2], []])
def test_random_split_refuses_other_lengths(lengths):
    with pytest.raises(ValueRangeError, match="do not sum to the 10 samples"):
        nn.random_split(range(10), lengths)


def test_a_data_set_does_not_share_the_memory_of_its_tensors():
    """What is computed from them stays lazy."""
    rows = Tensor(np.arange(6.0, dtype=np.float32).reshape(3, 2), device="cpu")
    (batch,) = nn.TensorDataset(rows).gather(np.array([2, 0]))
    assert batch.tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert (rows + 1).node.realized is None


@pytest.mark.parametrize(
    "sampler",
    [
        nn.RandomSampler(range(9)),
        nn.RandomSampler(range(9), replacement=True),
        nn.WeightedRandomSampler([1.0] * 9, 9),
        nn.SubsetRandomSampler(range(9)),
    ],
)
def test_orders_are_drawn_when_the_first_sample_is_asked_for(sampler):
    walks, orders = [iter(sampler), iter(sampler)], []
    for walk in walks:
        picograd.manual_seed(0)
        orders.append(list(walk))
    assert orders[0] == orders[1]
    with pytest.raises(TypeError, match="replacement=0 is an int"):
        nn.RandomSampler(range(9), replacement=0)


@pytest.mark.parametrize("part", [
    np.s_[2:6], np.s_[::2], np.s_[::-1], np.s_[:, 1:], np.s_[3:4],
])  # fmt: skip
def test_parts_of_numpys_memory_are_gathered(part, cpu_by_default):
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    whole = picograd.from_numpy(rows)
    chosen = whole.flip(0) if part == np.s_[::-1] else whole[part]
    loader = nn.DataLoader(nn.TensorDataset(chosen, chosen.T.T), 3, shuffle=False)
    rows[4] = -1  # the memory is shared
    for column in (0, 1):
        found = np.concatenate([batch[column].numpy() for batch in loader])
        wanted = np.arange(24, dtype=np.float32).reshape(8, 3)
        wanted[4] = wanted[4] if part == np.s_[::-1] else -1  # what is flipped is a copy
        np.testing.assert_array_equal(found, wanted[part])
