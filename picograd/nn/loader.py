"""DataLoader: batches of tensors that already live on the device.

Only the shuffled positions travel: every batch is one gather on the device.
"""

from collections.abc import Iterator

import numpy as np

from picograd.dtype import int64
from picograd.errors import ShapeError, ValueRangeError
from picograd.nn.parameter import check_tensor, realize
from picograd.tensor.tensor import Tensor


class DataLoader:
    """This class yields tuples of batches of tensors that share their first size.

    With `shuffle`, epoch k draws its order from (seed, k): every run sees the same batches, and
    every epoch another order. `drop_last` leaves out a last batch that is not full.
    """

    def __init__(
        self,
        *tensors: Tensor,
        batch_size: int = 128,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        check_tensor("DataLoader", *tensors)
        sizes = [tuple(tensor.shape) for tensor in tensors]
        if not sizes or any(not shape or shape[0] != sizes[0][0] for shape in sizes):
            problem = f"tensors of shapes {sizes} do not share their first size"
            raise ShapeError("DataLoader", problem, "pass tensors with one row per sample")
        if batch_size < 1:
            problem = f"batch_size={batch_size} is not positive"
            raise ValueRangeError("DataLoader", problem, "use 1 or more")
        self.tensors, self.count = tensors, sizes[0][0]
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.drop_last, self.epoch = drop_last, 0

    def __len__(self) -> int:
        extra = 0 if self.drop_last else self.batch_size - 1
        return (self.count + extra) // self.batch_size

    def positions(self) -> np.ndarray:
        """Return the order of the samples in the current epoch."""
        if not self.shuffle:
            return np.arange(self.count)
        return np.random.default_rng((self.seed, self.epoch)).permutation(self.count)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        order = self.positions()
        self.epoch += 1
        device = self.tensors[0].device
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            rows = order[start : start + self.batch_size]
            index = Tensor(rows, device=device, dtype=int64)
            batch = tuple(tensor[index] for tensor in self.tensors)
            realize(batch)
            yield batch
