"""Reductions on nodes against NumPy."""

import numpy as np
import pytest
from graph_support import leaf, value

import picograd
from picograd import Tensor
from picograd.dtype import int8, uint8
from picograd.errors import AxisError, PicogradError
from picograd.tensor.reductions import reduce as r

A = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
X = leaf(A)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (r.total("sum", X, None, False, None), A.sum()),
        (r.total("prod", X, (0, -1), True, None), A.prod((0, 2), keepdims=True)),
        (r.mean(X, 1, False), A.mean(1)),
        (r.max(X, 1)[0], A.max(1)),
        (r.max(X, 1)[1], A.argmax(1)),
        (r.amax(X, 0), A.max(0)),
        (r.amin(X, None, True), A.min(keepdims=True)),
        (r.argmax(X, 2), A.argmax(2)),
        (r.argmin(X), A.argmin()),
        (r.variance("var", X, 1, False, 1), A.var(1, ddof=1)),
        (r.std(X, correction=0), A.std()),
        (r.var(X, 1, False), A.var(1)),
        (r.var(X, False), A.var()),
        (r.var(X, None, correction=None), A.var(ddof=1)),
        (r.std(X, 1, True, True), A.std(1, ddof=1, keepdims=True)),
        (r.var_mean(X, 1, False, True)[0], A.var(1, keepdims=True)),
        (r.std_mean(X, False)[1], A.mean()),
        (r.norm(X, "nuc", (0, 2)), np.linalg.norm(A, "nuc", (0, 2))),
        (r.norm(X, "nuc", (1, 2), True), np.linalg.norm(A, "nuc", (1, 2), True)),
        (r.any(leaf(A > 2), 0), (A > 2).any(0)),
        (r.all(leaf(A > -2), 0), (A > -2).all(0)),
        (r.norm(X, 2, 1, False), np.linalg.norm(A, 2, 1)),
        (r.norm(X, np.inf, 1, False), np.abs(A).max(1)),
        (r.norm(X, 1, 1, False), np.abs(A).sum(1)),
        (r.logsumexp(X, (0, 1), False), np.log(np.exp(A).sum((0, 1)))),
    ],
)
def test_equals_numpy(found, wanted) -> None:
    np.testing.assert_allclose(value(found), wanted, rtol=2e-5, atol=1e-6)


def test_integers_add_up_in_int64() -> None:
    small = leaf(np.full(1000, 100, np.int8))
    assert value(r.total("sum", small, None, False, None)) == 100_000


def test_nothing_has_no_extreme() -> None:
    empty = leaf(np.zeros((0, 3), np.float32))
    assert value(r.amax(empty, 1)).shape == (0,)
    with pytest.raises(AxisError):
        r.amax(empty, 0)
    with pytest.raises(AxisError, match="over 3 axes"):
        r.norm(X, "nuc")
    with pytest.raises(PicogradError):
        r.total("sum", X, 3, False, None)


def test_truth_of_bytes_is_a_byte() -> None:
    bytes_ = leaf(np.array([0, 2], np.uint8))
    assert r.any(bytes_, 0).dtype is uint8 and value(r.any(bytes_, 0)) == 1
    assert r.all(bytes_, 0).dtype is uint8 and value(r.all(bytes_, 0)) == 0


def test_no_axes_are_all_axes_in_sums_and_averages() -> None:
    for reduction in (r.sum, r.mean, r.nansum, r.nanmean, r.amax, r.amin, r.std, r.var):
        np.testing.assert_array_equal(value(reduction(X, ())), value(reduction(X)))
        assert reduction(X, [], keepdim=True).shape == (1, 1, 1)
    assert value(r.norm(X, 2, ())) == value(r.norm(X)) and r.count_nonzero(X, ()).shape == ()
    assert r.any(X, ()).shape == r.all(X, ()).shape == X.shape
    small = r.nansum(leaf(np.array([100, 100], np.int8)), dtype=int8)
    assert small.dtype is int8 and value(small) == -56


@pytest.mark.parametrize("count", [5000, 300_000])  # rows of one worker, and of several
def test_long_sums_of_numbers_that_round_alike(count: int) -> None:
    """A sum of 20,000 equal numbers, one after the other, was off by 3 in 10,000."""
    rows = Tensor(np.ones((count, 3), np.float32))
    labels = Tensor(np.zeros(count, np.int64))
    number = Tensor(np.full(count, 1.1, np.float32))
    assert rows.logsumexp(1).mean().item() == pytest.approx(1 + np.log(3), rel=3e-6)
    loss = picograd.nn.functional.cross_entropy(rows, labels)
    assert loss.item() == pytest.approx(np.log(3), rel=3e-6)
    assert number.log().mean().item() == pytest.approx(np.log(1.1), rel=3e-6)
    assert (number @ number).item() == pytest.approx(1.21 * count, rel=3e-6)
