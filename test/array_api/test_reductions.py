"""Reductions of the array API."""

from picograd import array_api as xp


def test_sums_of_unsigned_integers_are_unsigned() -> None:
    x = xp.asarray([200, 100], dtype=xp.uint8)
    for function in (xp.sum, xp.prod, xp.cumulative_sum, xp.cumulative_prod):
        assert function(x).dtype is xp.uint64
    assert xp.sum(x).item() == 300 and xp.linalg.trace(xp.stack([x, x])).dtype is xp.uint64
    assert xp.cumulative_sum(x, include_initial=True).tolist() == [0, 200, 300]


def test_no_axes_reduce_nothing() -> None:
    x = xp.asarray([[1.0, 2.0], [0.0, 4.0]])
    for name in ("sum", "max", "min", "mean"):
        assert getattr(xp, name)(x, axis=(), keepdims=True).tolist() == x.tolist()
    assert xp.var(x, axis=()).tolist() == xp.std(x, axis=()).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert xp.count_nonzero(x, axis=()).tolist() == [[1, 1], [0, 1]]
