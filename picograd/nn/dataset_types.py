"""Data sets as objects: what has `len` and an index, what can only be walked, and combinations.

Nobody has to inherit: any object with `__len__` and `__getitem__` is a data set to the loader. The
classes over arrays can also `gather`: give a whole batch in one indexing operation.

Samplers: in which order, and how often, the samples of a data set are drawn.

Orders are drawn on the host by Philox (Salmon et al., SC 2011) from the seed and the offset of a
picograd `Generator`: the same generator state gives the same order on every machine.
"""

import bisect
import itertools
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine.tracing import check_not_tracing
from picograd.errors import AssertedError, AxisError, DTypeError, ValueRangeError, internal
from picograd.target import is_host
from picograd.tensor.core.arguments import need_tensor
from picograd.tensor.core.exchange import memory_of
from picograd.tensor.making.random import Generator, default
from picograd.tensor.tensor import Tensor

PIECE = 1 << 13  # positions drawn at a time


def host_random(generator: Generator | None) -> np.random.Generator:
    """Start a stream for an order that programs read: not while `jit` traces."""
    check_not_tracing("DataLoader")
    return host_stream(generator)


def host_stream(generator: Generator | None) -> np.random.Generator:
    """Start a stream of host random numbers at a generator's state, which moves on by one."""
    source = default() if generator is None else generator
    if not isinstance(source, Generator):
        text = f"generator is a {type(source).__name__}"
        raise DTypeError("generator", text, "pass a picograd.Generator, or leave it out")
    key = np.array([source.key, source.advance(1)], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


class OfSamples:
    """This class is the base of what has samples: `Dataset[Tensor]` tells readers their type."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class Sampler(OfSamples):
    """This class is the base of samplers: an iterable of positions.

    >>> from picograd import Tensor, nn
    >>> class Backwards(nn.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(nn.DataLoader(Tensor([5, 6, 7]), sampler=Backwards(), batch_size=3))[0].tolist()
    [7, 6, 5]
    """

    def __init__(self, data_source: Any = None) -> None:
        """Take the data, as older programs give it."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has to define __iter__")


class SequentialSampler(Sampler):
    """This class draws every sample once, in order.

    >>> from picograd import nn
    >>> list(nn.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """This class draws samples in a new random order each time it is walked.

    Without `replacement` every sample comes once before any comes again; `num_samples` is the
    number drawn, by default all. Positions are drawn as they are asked for, so that the first of a
    huge data set come at once.

    >>> from picograd import Generator, nn
    >>> sampler = nn.RandomSampler("abc", generator=Generator(0))
    >>> sorted(sampler), len(sampler)
    ([0, 1, 2], 3)
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self.wanted = num_samples
        if not isinstance(replacement, bool):
            problem = f"replacement={replacement!r} is a {type(replacement).__name__}"
            raise DTypeError("RandomSampler", problem, "pass True or False")
        _check_positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """Count the samples drawn."""
        return len(self.data_source) if self.wanted is None else self.wanted

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        random, count = host_random(self.generator), len(self.data_source)
        if self.replacement:
            yield from with_replacement(random, count, self.num_samples)
            return
        rounds = -(-self.num_samples // count)
        orders = (shuffled(random, count) for _ in range(rounds))
        yield from itertools.islice(itertools.chain.from_iterable(orders), self.num_samples)


def with_replacement(random: np.random.Generator, count: int, total: int) -> Iterator[int]:
    """Draw positions below `count`, a piece at a time."""
    for start in range(0, total, PIECE):
        yield from random.integers(0, count, min(PIECE, total - start)).tolist()


def shuffled(random: np.random.Generator, count: int) -> Iterator[int]:
    """Shuffle range(count); of many positions, one at a time as they are asked for.

    Fisher and Yates (1938), with a table of the positions that moved: what is never asked for is
    neither drawn nor stored.
    """
    if count <= PIECE:
        yield from random.permutation(count).tolist()
        return
    moved: dict[int, int] = {}
    for start in range(0, count, PIECE):
        stop = min(start + PIECE, count)
        draws = random.integers(np.arange(start, stop), count).tolist()
        for place, other in enumerate(draws, start):
            kept = moved.pop(place, place)
            if other == place:
                yield kept
                continue
            chosen = moved.get(other, other)
            moved[other] = kept
            yield chosen


class SubsetRandomSampler(Sampler):
    """This class draws the given positions once each, in a random order.

    >>> from picograd import nn
    >>> sorted(nn.SubsetRandomSampler([5, 7]))
    [5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = host_random(self.generator).permutation(len(self.indices))
        yield from (self.indices[position] for position in order.tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """This class draws positions with probabilities in the ratio of the weights.

    >>> from picograd import nn
    >>> list(nn.WeightedRandomSampler([0.0, 1.0, 0.0], num_samples=4))
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_positive("WeightedRandomSampler", "num_samples", num_samples)
        self.weights = np.asarray(weights, np.float64)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        is_vector = self.weights.ndim == 1 and self.weights.size > 0
        if not is_vector or not np.isfinite(self.weights).all() or self.weights.min() < 0:
            problem = "weights must be a vector of finite numbers of at least 0"
            raise ValueRangeError("WeightedRandomSampler", problem, "give each sample one")
        drawable = np.count_nonzero(self.weights)
        if drawable < (1 if replacement else num_samples):
            problem = f"{drawable} weights are above 0, too few to draw {num_samples} samples"
            raise ValueRangeError("WeightedRandomSampler", problem, "draw fewer, or again")

    def __iter__(self) -> Iterator[int]:
        chances = self.weights / self.weights.sum()
        random = host_random(self.generator)
        drawn = random.choice(len(chances), self.num_samples, self.replacement, chances)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """This class cuts what a sampler draws into lists; the last may be short, or left out.

    >>> from picograd import nn
    >>> list(nn.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive("BatchSampler", "batch_size", batch_size)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        return batches_of(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return (count + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


def batches_of(values: Iterable[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Cut a stream into lists of `size`; the last may be short, or left out."""
    stream = iter(values)
    while batch := list(itertools.islice(stream, size)):
        if len(batch) == size or not drop_last:
            yield batch


def _check_positive(op: str, name: str, value: Any) -> None:
    """Raise unless a number is a positive integer."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        problem = f"{name}={value!r} is not positive"
        raise ValueRangeError(op, problem, "use 1 or more")


Array = np.ndarray


class Dataset(OfSamples):
    """This class is the base of data sets with an index; `a + b` is one after the other.

    >>> from picograd import nn
    >>> class Squares(nn.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index * index
    >>> [Squares()[i] for i in range(3)]
    [0, 1, 4]
    """

    def __len__(self) -> int:
        problem = f"{type(self).__name__} has no length"
        raise DTypeError("len()", problem, "define __len__, as return len(self.samples)")

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has to define __getitem__")

    def __add__(self, other: Any) -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(OfSamples):
    """This class is the base of data sets that are walked: streams, logs, generated samples.

    With workers, each walks the whole stream; `get_worker_info()` tells a worker its share.

    >>> from picograd import nn
    >>> class Countdown(nn.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> list(Countdown())
    [3, 2, 1]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has to define __iter__")

    def __add__(self, other: Any) -> "ChainDataset":
        return ChainDataset([self, other])


class GatheringDataset(Dataset):
    """This class is the base of data sets that give a batch in one go."""

    is_host = False  # its rows are NumPy arrays, so that any thread may gather them

    @abstractmethod
    def gather(self, positions: Array) -> Any:
        """Return the batch of the samples at these positions."""


class TensorDataset(GatheringDataset):
    """This class pairs the rows of tensors that share their first size: one gather per batch.

    Raises ShapeError when the first sizes differ, DTypeError for anything that is no tensor.

    >>> from picograd import Tensor, nn
    >>> pairs = nn.TensorDataset(Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0]))
    >>> len(pairs), [value.item() for value in pairs[2]]
    (3, [3.0, 6.0])
    """

    def __init__(self, *tensors: Tensor) -> None:
        need_tensor("TensorDataset", *tensors)
        self.tensors = tensors
        self.count: int = _shared_length("TensorDataset", tensors)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def gather(self, positions: Array) -> list[Tensor]:
        """Gather the rows of every tensor on its device, into memory of their own."""
        if all(is_host_memory(tensor) for tensor in self.tensors):
            # Whole rows are copied: that is NumPy's case, 3 times faster than a kernel per element.
            rows = [host_rows(tensor, positions) for tensor in self.tensors]
            return [Tensor.of(array, device="cpu") for array in rows]
        index = Tensor(positions, device=self.tensors[0].device, dtype=int64)
        batch = [tensor[index.to(tensor.device)] for tensor in self.tensors]
        if len({tensor.device for tensor in batch}) == 1:
            batch[0].realize(*batch[1:])
        return batch


def is_host_memory(tensor: Tensor) -> bool:
    """Tell whether NumPy can read the rows of a tensor where they are, and no gradient is lost."""
    is_known = tensor.dtype.numpy == tensor.dtype.storage
    return is_host(tensor.device) and is_known and not tensor.requires_grad


def host_rows(tensor: Tensor, positions: Array) -> Array:
    """Copy rows of a tensor in host memory, of which nobody else gets to know."""
    array = memory_of(tensor)
    if array is None:
        internal("a realized tensor has no memory", tensor)
    return array[positions]


class ArrayDataset(GatheringDataset):
    """This class pairs the rows of NumPy arrays: data that stays in host memory, or on disk.

    Arrays mapped from a file (`numpy.load(..., mmap_mode="r")`) are read batch by batch.

    >>> import numpy as np
    >>> from picograd import nn
    >>> pairs = nn.ArrayDataset(np.arange(3), np.array([4.0, 5.0, 6.0]))
    >>> [value.item() for value in pairs[1]]
    [1, 5.0]
    """

    is_host = True

    def __init__(self, *arrays: Array) -> None:
        for array in arrays:
            if not isinstance(array, np.ndarray):
                problem = f"the input must be a NumPy array, not {type(array).__name__}"
                raise DTypeError("ArrayDataset", problem, "use TensorDataset for tensors")
        self.arrays = arrays
        self.count: int = _shared_length("ArrayDataset", arrays)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def gather(self, positions: Array) -> list[Array]:
        """Copy the rows of every array into a batch."""
        return [array[positions] for array in self.arrays]


class Rows(GatheringDataset):
    """This class is one tensor or array as a data set whose samples are its rows."""

    whole: ArrayDataset | TensorDataset

    def __init__(self, values: Any) -> None:
        self.values: Any = values
        self.is_host: bool = isinstance(values, np.ndarray)
        self.count: int = _shared_length("DataLoader", [values])
        self.whole = ArrayDataset(values) if self.is_host else TensorDataset(values)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def gather(self, positions: Array) -> Any:
        """Gather rows."""
        return self.whole.gather(positions)[0]


def _shared_length(op: str, values: Sequence[Any]) -> int:
    """Check that tensors or arrays share their first size, and return it."""
    sizes = [tuple(value.shape) for value in values]
    if not sizes or any(not shape or shape[0] != sizes[0][0] for shape in sizes):
        problem = f"inputs of shapes {sizes} do not share their first size"
        raise AssertedError(op, problem, "pass tensors with one row per sample")
    return int(sizes[0][0])


class Subset(Dataset):
    """This class is the part of a data set at some positions.

    >>> from picograd import nn
    >>> part = nn.Subset(["a", "b", "c"], [2, 0])
    >>> len(part), part[0]
    (2, 'c')
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Give the samples of a batch, in one go where the data set can."""
        chosen = [self.indices[each] for each in indices]
        load = getattr(self.dataset, "__getitems__", None)
        return load(chosen) if load else [self.dataset[each] for each in chosen]


class StackDataset(Dataset):
    """This class puts data sets of equal length side by side: samples are tuples, or dicts by name.

    >>> from picograd import nn
    >>> nn.StackDataset(["a", "b"], [5, 6])[1], nn.StackDataset(x="ab", y=[5, 6])[0]
    (('b', 6), {'x': 'a', 'y': 5})
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = args or kwargs
        self.parts = list(args) or list(kwargs.values())
        if not self.parts or any(len(each) != len(self.parts[0]) for each in self.parts):
            problem = f"{len(self.parts)} data sets that are not equally long"
            raise ValueRangeError("StackDataset", problem, "pass some of one length")

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, index: Any) -> Any:
        found = tuple(each[index] for each in self.parts)
        return dict(zip(self.datasets, found)) if isinstance(self.datasets, dict) else found


class ConcatDataset(Dataset):
    """This class is several data sets, one after the other.

    >>> from picograd import nn
    >>> both = nn.ConcatDataset([["a", "b"], ["c"]])
    >>> len(both), both[2], both[-3]
    (3, 'c', 'a')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            problem = "no data set given"
            raise AssertedError("ConcatDataset", problem, "pass at least one")
        if any(isinstance(each, IterableDataset) for each in self.datasets):
            problem = "an IterableDataset has no index"
            raise DTypeError("ConcatDataset", problem, "use ChainDataset")
        lengths = map(len, self.datasets)
        self.cumulative_sizes: list[int] = list(itertools.accumulate(lengths))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            problem = f"index {index} is outside {len(self)} samples"
            kind = ValueRangeError if index < 0 else AxisError
            raise kind("ConcatDataset", problem, "use an index below the length")
        position = index % len(self)
        number = bisect.bisect_right(self.cumulative_sizes, position)
        start = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][position - start]


class ChainDataset(IterableDataset):
    """This class walks several data sets, one after the other.

    >>> from picograd import nn
    >>> list(nn.ChainDataset([[1, 2], [3]]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets: list[Any] = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


def random_split(
    dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset]:
    """Split a data set at random into parts of these lengths, or of these shares that sum to 1.

    Shares are rounded down, and what is left over goes to the parts in turn. Raises ValueRangeError
    when the lengths do not sum to the data set's.

    >>> from picograd import Generator, nn
    >>> train, test = nn.random_split(range(10), [0.8, 0.2], Generator(0))
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    count = len(dataset)
    sizes = [int(length) for length in lengths]
    if abs(sum(lengths) - 1.0) < 1e-6 and max(lengths) <= 1:
        if min(lengths) < 0:
            problem = f"share {min(lengths)} is negative"
            raise ValueRangeError("random_split", problem, "use shares from 0 to 1")
        sizes = [int(count * length) for length in lengths]
        for position in range(count - sum(sizes)):
            sizes[position % len(sizes)] += 1
    if sum(sizes) != count or min(sizes, default=0) < 0:
        problem = f"lengths {list(lengths)} do not sum to the {count} samples"
        raise ValueRangeError("random_split", problem, "use lengths that do, or shares of 1")
    order = host_random(generator).permutation(count).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends)]
