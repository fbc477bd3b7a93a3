"""Reductions of the array API."""

from picograd import array_api as xp


def test_sums_of_unsigned_integers_are_unsigned() -> None:
    x = xp.asarray([200, 100], dtype=xp.uint8)
    for function in (xp.sum, xp.prod, xp.cumulative_sum, xp.cumulative_prod):
        assert function(x).dtype is xp.uint64
    assert xp.sum(x).item() == 300 and xp.linalg.trace(xp.stack([x, x])).dtype is xp.uint64
    assert xp.cumulative_sum(x, include_initial=True).tolist() == [0, 200, 300]
