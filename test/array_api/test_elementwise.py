"""Elementwise functions of the array API: promotion."""

from picograd import array_api as xp


def test_axes_do_not_count_in_promotion() -> None:
    wide, zero_dim = xp.asarray([1.0], dtype=xp.float32), xp.asarray(1.0, dtype=xp.float64)
    assert xp.add(wide, zero_dim).dtype is xp.float64
    assert xp.where(xp.asarray([True]), wide, zero_dim).dtype is xp.float64
    assert xp.multiply(wide, 2.0).dtype is xp.float32
    assert xp.result_type(xp.uint16, xp.int8) is xp.int32
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
