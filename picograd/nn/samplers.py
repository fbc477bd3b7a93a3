"""Samplers: in which order, and how often, the samples of a data set are drawn.

Orders are drawn on the host by Philox (Salmon et al., SC 2011) from the seed and the offset of a
picograd `Generator`: the same generator state gives the same order on every machine.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from picograd.engine.tracing import check_not_tracing
from picograd.errors import ValueRangeError
from picograd.tensor.making.random import DEFAULT, Generator

PIECE = 1 << 13  # positions drawn at a time


def host_random(generator: Generator | None) -> np.random.Generator:
    """Start a stream for an order that programs read: not while `jit` traces."""
    check_not_tracing("DataLoader")
    return host_stream(generator)


def host_stream(generator: Generator | None) -> np.random.Generator:
    """Start a stream of host random numbers at a generator's state, which moves on by one."""
    source = DEFAULT if generator is None else generator
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
            return with_replacement(random, count, self.num_samples)
        rounds = -(-self.num_samples // count)
        orders = (shuffled(random, count) for _ in range(rounds))
        return itertools.islice(itertools.chain.from_iterable(orders), self.num_samples)


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
        return (self.indices[position] for position in order.tolist())

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
        return iter(drawn.tolist())

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
