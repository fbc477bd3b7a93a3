"""Sets: distinct elements, slices and runs, as PyTorch finds them."""

import numpy as np
import pytest
from op_support import same

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")


def test_sets(device: str) -> None:
    rows = np.array([[2, 1], [0, 3], [2, 1], [2, 1], [0, 3]])
    x, t = Tensor(rows, device=device), torch.tensor(rows)
    more = dict(return_inverse=True, return_counts=True)
    same(x.unique(dim=0, **more), t.unique(dim=0, **more))
    same([picograd.unique(x.T, dim=-1)], [torch.unique(t.T, dim=-1)])
    same(x.unique_consecutive(**more), t.unique_consecutive(**more))
    same(x.unique_consecutive(dim=0, **more), t.unique_consecutive(dim=0, **more))
    empty, nothing = x[:0, 0], t[:0, 0]
    same(empty.unique_consecutive(**more), nothing.unique_consecutive(**more))
    for value in (rows, rows.astype(np.float32), rows[:0]):
        for others in ([1, 3], [2.5], []):
            given = torch.tensor(others, dtype=torch.float64 if 2.5 in others else torch.int64)
            found = picograd.isin(Tensor(value, device=device), Tensor(given, device=device))
            same([found], [torch.isin(torch.tensor(value), given)])
    same([picograd.isin(x, 2, invert=True)], [torch.isin(t, 2, invert=True)])
