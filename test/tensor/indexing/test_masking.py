"""Methods that read and write by index: each beside NumPy's way to say it."""

import numpy as np

from picograd import Tensor

A = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = np.array([2, 0])
PLACES = np.array([[3, 0], [1, 1], [0, 2]])
NEW = np.array([[10.0, 20, 30, 40], [50, 60, 70, 80]], np.float32)


def equal(found, wanted) -> None:
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_reads(device: str) -> None:
    x, rows, places = (Tensor(each, device=device) for each in (A, ROWS, PLACES))
    wanted = np.take_along_axis(A, PLACES, 1)
    equal(x.gather(1, places), wanted)
    equal(x.take_along_dim(places, 1), wanted)
    equal(x.take_along_dim(rows), A.ravel()[ROWS])
    equal(x.index_select(0, rows), A[ROWS])
    equal(x.take(places), A.ravel()[PLACES])
    equal((x > 9).argwhere(), np.argwhere(A > 9))
    equal(rows.one_hot(3), np.eye(3)[ROWS])


def test_writes_of_rows(device: str) -> None:
    x, rows, new = (Tensor(each, device=device) for each in (A, ROWS, NEW))
    copied, added, filled = A.copy(), A.copy(), A.copy()
    copied[ROWS], filled[ROWS] = NEW, 7
    added[ROWS] += NEW
    equal(x.index_copy(0, rows, new), copied)
    equal(x.index_add(0, rows, new), added)
    equal(x.index_fill(0, rows, 7.0), filled)


def test_writes_of_elements(device: str) -> None:
    x, places = Tensor(A, device=device), Tensor(PLACES, device=device)
    ones = np.ones(PLACES.shape, np.float32)
    added, highest = A.copy(), A.copy()
    np.add.at(added, (np.arange(3)[:, None], PLACES), ones)
    np.put_along_axis(highest, PLACES, np.maximum(np.take_along_axis(A, PLACES, 1), 5), 1)
    equal(x.scatter_add(1, places, Tensor(ones, device=device)), added)
    fives = Tensor(ones * 5, device=device)
    equal(x.scatter_reduce(1, places, fives, "amax"), highest)
    alone = np.where(np.isin(np.arange(4), PLACES[0]), 5.0, A[0])
    equal(x.scatter_reduce(1, places, fives, "sum", include_self=False)[0], alone)
    equal(x[0].scatter(0, places[0], fives[0]), alone)
    put = A.copy()
    np.put(put, ROWS, [8.0, 9.0])
    equal(x.put(Tensor(ROWS, device=device), Tensor([8.0, 9.0], device=device)), put)
    mask = A % 5 == 0
    masked = A.copy()
    masked[mask] = [1.5, 2.5, 3.5]
    source = Tensor([1.5, 2.5, 3.5], device=device)
    equal(x.masked_scatter(Tensor(mask, device=device), source), masked)
