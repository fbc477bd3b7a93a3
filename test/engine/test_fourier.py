"""Transforms by machine code against NumPy's of float64: shapes, widths, and what it is not for."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from op_support import numbers

import picograd
from picograd.engine import fourier
from picograd.graph import host_call

NEAR = {"complex64": 6e-7, "complex128": 2e-15}
SHAPES = [
    ((40, 16), 1), ((17, 60), 1), ((33, 1024), 1), ((5, 105), 1), ((3, 1000), 1), ((1, 4096), 1),
    ((2, 7, 20), 1), ((64, 33), 0), ((3, 8, 40), 1), ((300, 17), 0), ((1, 16 * 35), 1),
]  # fmt: skip


@pytest.fixture(params=[2, 4, 8, 16])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Vectors of other processors."""
    made = fourier.lanes_of
    monkeypatch.setattr(fourier, "lanes_of", lambda is_double: request.param)
    forget()
    yield request.param
    monkeypatch.setattr(fourier, "lanes_of", made)
    forget()


def forget() -> None:
    for each in (fourier.entry, fourier.ways):
        each.cache_clear()


def near(found: Any, wanted: Any, kind: str) -> bool:
    return bool(np.abs(found - wanted).max() <= NEAR[kind] * np.abs(wanted).max())


@pytest.mark.parametrize("kind", NEAR)
def test_complex_signals(lanes: int, kind: str) -> None:
    computed = 0
    for shape, at in SHAPES:
        x = numbers((*shape, 2)).view("D")[..., 0].astype(kind)
        for name in ("fft", "ifft"):
            size = shape[at]
            scale = 1 / size if name == "ifft" else 1.0
            found = fourier.transformed(name, x, at, size, scale)
            if found is not None:
                computed += 1
                wanted = getattr(np.fft, name)(x.astype("D"), axis=at)
                assert found.dtype == kind
                assert near(found, wanted, kind), (shape, at, name)
    assert computed >= 10


@pytest.mark.parametrize("kind", NEAR)
@pytest.mark.parametrize("size", [32, 60, 200, 1024])
def test_real_signals(lanes: int, kind: str, size: int) -> None:
    x = numbers((21, size))
    real = np.zeros(0, kind).real.dtype
    found = fourier.transformed("rfft", x.astype(real), 1, size, 1.0)
    wanted = np.fft.rfft(x.astype(real).astype("d"))
    assert found.shape == wanted.shape
    assert near(found, wanted, kind)
    spectrum = wanted.astype(kind)
    spectrum += 3j  # the parts of the first and last that no real signal has do not count
    back = fourier.transformed("irfft", spectrum, 1, size, 1 / size)
    assert back.dtype == real
    assert near(back, np.fft.irfft(spectrum.astype("D"), size), kind)


def test_equal_rows_have_equal_bits(lanes: int) -> None:
    x = np.tile(numbers((1, 96)).astype("F"), (37, 1))
    found = fourier.transformed("fft", x, 1, 96, 1.0)
    assert (found == found[:1]).all()


def test_what_is_left_to_numpy() -> None:
    for name, shape, at, size in (
        ("fft", (64, 11 * 13), 1, 143),  # other primes
        ("rfft", (64, 1001), 1, 1001),  # odd
        ("rfft", (64, 64, 64), 1, 64),  # not the last axis
        ("fft", (2, 20, 3), 1, 20),  # few signals
    ):
        x = np.ones(shape, "f" if name == "rfft" else "F")
        assert fourier.transformed(name, x, at, size, 1.0) is None


def test_calls_of_many_points_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(name: str, x: Any, at: int, size: int, scale: float) -> Any:
        seen.append((name, x.shape))
        return fourier.transformed(name, x, at, size, scale)

    monkeypatch.setattr(host_call, "BY_CODE", [watched])
    x = numbers((64, 128)).astype("f")
    t = picograd.tensor(x, requires_grad=True)
    found = picograd.fft.irfft(picograd.fft.rfft(t, norm="ortho"), norm="ortho")
    assert np.allclose(found.detach().numpy(), x, 1e-5, 1e-5)
    (found * found).sum().backward()
    assert np.allclose(t.grad.numpy(), 2 * x, 1e-4, 1e-4)
    assert {name for name, _ in seen} == {"rfft", "irfft"}
    picograd.fft.fft(t.detach()[:2]).realize()
    assert all(name != "fft" for name, _ in seen)
