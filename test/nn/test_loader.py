"""DataLoader: ancestor rows M47 (a batch loader) and M52 (prefetch, double buffering)."""

import numpy as np
import pytest

from picograd import Generator, Tensor, manual_seed, nn
from picograd.errors import ValueRangeError

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data")


class Squares(nn.Dataset):
    """Samples (i, i * i as an array)."""

    def __init__(self, count=7):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index, np.array([index * index], np.float32)


class Stream(nn.IterableDataset):
    """0, 1, ..., each worker its share."""

    def __init__(self, count=7, shared=True):
        self.count, self.shared = count, shared

    def __iter__(self):
        info = nn.get_worker_info()
        if info is None or not self.shared:
            return iter(range(self.count))
        return iter(range(info.id, self.count, info.num_workers))


def rows(loader):
    return [batch.tolist() for batch in loader]


def flat(loader):
    return sum(rows(loader), [])


@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"batch_size": 7}, {"batch_size": 9}])
def test_batches_are_pytorchs(options):
    """M47: the same batches in the same order as PyTorch's loader."""
    options = {"batch_size": 3, **options}
    ours, theirs = nn.DataLoader(Squares(), **options), torch_data.DataLoader(Squares(), **options)
    assert len(ours) == len(theirs)
    for mine, other in zip(list(ours), list(theirs), strict=True):
        assert type(mine) is type(other) is list
        for a, b in zip(mine, other, strict=True):
            assert a.dtype.name == str(b.dtype).removeprefix("torch.")
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_tensor_or_an_array_is_a_data_set(device):
    values = np.arange(5)
    for data in (Tensor(values, device=device), values):
        loader = nn.DataLoader(data, batch_size=2, device=device)
        assert rows(loader) == [[0, 1], [2, 3], [4]] and len(loader) == 3
    assert len(nn.DataLoader(values, 2, drop_last=True)) == 2
    assert rows(nn.DataLoader([5, 6, 7], 2)) == [[5, 6], [7]]  # so is a list


def test_tensors_stay_aligned(device):
    images = Tensor(np.arange(24, dtype=np.float32).reshape(6, 2, 2), device=device)
    labels = Tensor(np.arange(6), device=device)
    for x, y in nn.DataLoader(nn.TensorDataset(images, labels), 4, shuffle=True):
        np.testing.assert_array_equal(x.numpy()[:, 0, 0], y.numpy() * 4)
        assert x.device == images.device


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffle_covers_all_and_changes_by_epoch_and_seed(workers):
    def loader(seed):
        return nn.DataLoader(np.arange(20), 8, shuffle=True, seed=seed, num_workers=workers)

    three = loader(3)
    first, second = flat(three), flat(three)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    assert flat(loader(3)) == first == flat(nn.DataLoader(np.arange(20), 8, True, seed=3))
    assert flat(loader(4)) != first


def test_the_seed_may_be_a_generator_or_the_default_one():
    data = np.arange(20)
    first = flat(nn.DataLoader(data, 8, shuffle=True, generator=Generator(9)))
    assert first == flat(nn.DataLoader(data, 8, shuffle=True, seed=9))
    manual_seed(9)
    assert first == flat(nn.DataLoader(data, 8, shuffle=True))


def test_samplers_choose(device):
    data = Tensor(np.arange(5) * 10, device=device)
    assert rows(nn.DataLoader(data, 2, sampler=[4, 0, 3])) == [[40, 0], [30]]
    assert rows(nn.DataLoader(data, batch_sampler=[[4, 4], [1, 2]])) == [[40, 40], [10, 20]]
    ends = nn.DataLoader(nn.Subset(data, [1, 4]), 2, sampler=nn.SubsetRandomSampler([1]))
    assert rows(ends) == [[40]]


def test_subsets_of_arrays_are_gathered_too(monkeypatch):
    data = nn.TensorDataset(Tensor(np.arange(6.0)))
    monkeypatch.setattr(nn.TensorDataset, "__getitem__", None)
    part = nn.Subset(nn.Subset(data, [5, 4, 3]), [0, 2])
    assert [x.tolist() for (x,) in nn.DataLoader(part, 2)] == [[5.0, 3.0]]


def test_a_subclass_may_change_its_samples():
    class Doubled(nn.TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)[0] * 2

    assert rows(nn.DataLoader(Doubled(Tensor([1.0, 2.0, 3.0])), 2)) == [[2.0, 4.0], [6.0]]


@pytest.mark.parametrize("workers", [0, 2])
def test_no_batch_size_yields_samples(workers):
    loader = nn.DataLoader(Squares(3), batch_size=None, num_workers=workers)
    assert [(i, x.tolist()) for i, x in loader] == [(0, [0.0]), (1, [1.0]), (2, [4.0])]
    assert len(loader) == 3
    stream = nn.DataLoader(Stream(3), batch_size=None, num_workers=workers)
    assert list(stream) == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_collate_fn_sees_the_samples(workers):
    """It may make tensors: it runs in the caller's thread, with workers too."""

    def join(samples):
        return Tensor([float(x.sum()) for _, x in samples])

    loader = nn.DataLoader(Squares(3), 2, collate_fn=join, num_workers=workers)
    assert rows(loader) == [[0.0, 1.0], [4.0]]


def test_streams_are_batched():
    for drop_last in (False, True):
        ours = nn.DataLoader(Stream(7), 3, drop_last=drop_last)
        theirs = torch_data.DataLoader(torch_stream(7), 3, drop_last=drop_last)
        assert rows(ours) == rows(theirs)
    with pytest.raises(TypeError, match="has no len"):
        len(nn.DataLoader(Stream(7), 3))
    assert len(nn.DataLoader(nn.ChainDataset([[1, 2], [3]]), 2)) == 2


def torch_stream(count):
    class Numbers(torch_data.IterableDataset):
        def __iter__(self):
            return iter(range(count))

    return Numbers()


def test_streams_are_shared_by_workers():
    """Each worker batches its own walk, and they are taken in turn, as in PyTorch."""
    assert rows(nn.DataLoader(Stream(7), 2, num_workers=2)) == [[0, 2], [1, 3], [4, 6], [5]]
    twice = rows(nn.DataLoader(Stream(3, shared=False), 2, num_workers=2))
    assert twice == [[0, 1], [0, 1], [2], [2]]
    uneven = nn.DataLoader(Stream(9), 1, num_workers=5)
    assert flat(uneven) == list(range(9))


def test_batches_go_to_the_device(device):
    for workers in (0, 2):
        loader = nn.DataLoader(Squares(3), 2, num_workers=workers, device=device)
        assert all(x.device == Tensor(0.0, device=device).device for _, x in loader)


def test_wrong_use_is_named():
    data, stream = Squares(), Stream()
    cases = [
        (dict(num_workers=-1), "num_workers=-1 is no count"),
        (dict(timeout=-1), "timeout=-1 is negative"),
        (dict(prefetch_factor=2), "prefetch_factor=2 with 0 workers"),
        (dict(shuffle=True, sampler=[1]), "shuffle and sampler are given"),
        (dict(batch_sampler=[[1]], batch_size=2), "batch_sampler excludes batch_size"),
        (dict(batch_sampler=[[1]], shuffle=True), "batch_sampler excludes shuffle"),
        (dict(batch_sampler=[[1]], drop_last=True), "batch_sampler excludes drop_last"),
        (dict(batch_size=None, drop_last=True), "batch_size=None with drop_last"),
        (dict(multiprocessing_context="fork"), "workers are threads"),
        (dict(seed=1, generator=Generator(1)), "seed and generator are given"),
    ]
    for options, problem in cases:
        with pytest.raises(ValueRangeError, match=problem):
            nn.DataLoader(data, **options)
    with pytest.raises(ValueRangeError, match="a stream has no order to choose: shuffle"):
        nn.DataLoader(stream, shuffle=True)
    with pytest.raises(ValueRangeError, match="num_samples=0 is not positive"):
        nn.DataLoader([], shuffle=True)
    assert list(nn.DataLoader([])) == []


def test_workers_may_make_tensors():
    samples = [(Tensor([float(i)]) * 2, Tensor.of(i)) for i in range(5)]
    here = [(x.tolist(), y.tolist()) for x, y in nn.DataLoader(samples, batch_size=2)]
    there = nn.DataLoader(samples, batch_size=2, num_workers=2)
    assert [(x.tolist(), y.tolist()) for x, y in there] == here
    pairs = nn.DataLoader(samples, batch_size=2, num_workers=1, collate_fn=lambda batch: batch)
    assert [x.item() for batch in pairs for x, _ in batch] == [0, 2, 4, 6, 8]


def test_options_are_attributes() -> None:
    """Trainers make a loader again of what another has."""
    loader = nn.DataLoader([1, 2, 3], batch_size=2, pin_memory=True, persistent_workers=False)
    assert loader.pin_memory and not loader.persistent_workers and loader.in_order
    assert loader.multiprocessing_context is loader.prefetch_factor is None
    assert loader.collate_fn([4, 5]).tolist() == [4, 5]
    names = ("dataset", "batch_sampler", "num_workers", "collate_fn", "prefetch_factor")
    again = nn.DataLoader(**{name: getattr(loader, name) for name in names})
    assert [x.tolist() for x in again] == [[1, 2], [3]]
    # pytorch-ignite makes a loader anew of all that it shows
    chosen = {"batch_size", "sampler", "drop_last"}
    public = {name for name in vars(loader) if not name.startswith("_")} - chosen
    again = nn.DataLoader(**{name: getattr(loader, name) for name in public})
    assert [x.tolist() for x in again] == [[1, 2], [3]]
    again.collate_fn = sum
    assert list(again) == [3, 3]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_loads_batches_is_asked_for_them(workers: int) -> None:
    class Squares(nn.Dataset):
        def __len__(self) -> int:
            return 5

        def __getitems__(self, positions: list[int]) -> list[int]:
            return [place**2 for place in positions]

    part = nn.Subset(nn.Subset(Squares(), [4, 3, 1]), [2, 0])
    for dataset, expected in ((Squares(), [[0, 1, 4], [9, 16]]), (part, [[1, 16]])):
        loader = nn.DataLoader(dataset, batch_size=3, num_workers=workers)
        assert [batch.tolist() for batch in loader] == expected


def test_what_samplers_were_made_of_stays():
    loader = nn.DataLoader(list(range(4)), batch_size=2)
    with pytest.raises(ValueError, match="batch_size of a loader that is made"):
        loader.batch_size = 3
    loader.dataset = [7, 8]


@pytest.mark.parametrize("dataset", [list(range(9)), Tensor.arange(9)], ids=["list", "tensor"])
def test_workers_have_their_order_when_a_walk_begins(dataset) -> None:
    """A seed that is set afterwards, as trainers that resume do, changes nothing."""
    loader = nn.DataLoader(dataset, batch_size=2, shuffle=True, num_workers=1)
    manual_seed(3)
    expected = [batch.tolist() for batch in loader]
    manual_seed(3)
    batches = iter(loader)
    manual_seed(4)
    assert [batch.tolist() for batch in batches] == expected


class Whole:
    """A data set that makes a batch of the numbers of its samples."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, indices: list[int]) -> Tensor:
        return Tensor(indices) * 2


def of_batches(kind: type) -> type:
    """Derive a loader that hands a data set whole batches of numbers, as packages do."""
    members = {
        "_auto_collation": property(lambda loader: False),
        "_index_sampler": property(lambda loader: loader.batch_sampler),
    }
    return type("OfBatches", (kind,), members)


def test_a_class_of_ones_own_says_what_is_walked() -> None:
    loader = of_batches(nn.DataLoader)(Whole(), batch_size=2, collate_fn=lambda batch: batch)
    assert rows(loader) == [[0, 2], [4, 6], [8]] and len(loader) == 3
    theirs = of_batches(torch_data.DataLoader)(range(5), 2, collate_fn=lambda batch: batch)
    assert list(theirs._index_sampler) == list(loader._index_sampler)
    assert nn.DataLoader(Whole())._auto_collation
    assert not nn.DataLoader(Whole(), batch_size=None)._auto_collation
