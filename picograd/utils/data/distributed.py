"""The sampler of programs that train in several processes: each draws its share."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from picograd.distributed import get_rank, get_world_size
from picograd.errors import ValueRangeError
from picograd.nn.dataset_types import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """This class draws every `num_replicas`-th sample, the same order in every process.

    The order is drawn from `seed` and the epoch that `set_epoch` tells. What does not divide is
    filled up from the beginning, or left out with `drop_last`.

    >>> sampler = DistributedSampler("abcde", num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler), len(sampler)
    ([1, 3, 0], 3)
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        count = get_world_size() if num_replicas is None else num_replicas
        place = get_rank() if rank is None else rank
        if not 0 <= place < count:
            problem = f"rank={place} of {count} processes"
            raise ValueRangeError("DistributedSampler", problem, "count from 0")
        self.dataset, self.num_replicas, self.rank = dataset, count, place
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        size = len(dataset)
        self.num_samples = size // count if drop_last else math.ceil(size / count)
        self.total_size = self.num_samples * count

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes, so that its order is another."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = np.arange(size)
        if self.shuffle:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(size)
        filled: np.ndarray[Any, Any] = np.resize(
            order, self.total_size
        )  # repeats from the beginning, or cuts
        return iter(filled[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples
