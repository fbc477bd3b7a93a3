"""Fourier transforms of the array API."""

from picograd import array_api as xp


def test_fft() -> None:
    assert all(callable(getattr(xp.fft, name)) for name in xp.fft.__all__)
    assert xp.fft.fftfreq(4).tolist() == [0, 0.25, -0.5, -0.25]
    assert xp.fft.fftshift(xp.fft.fftfreq(4)).tolist() == [-0.5, -0.25, 0, 0.25]
