"""Fourier transforms of several axes, and of short times: values and gradients as PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

import picograd
from picograd import Tensor
from picograd.errors import DTypeError

torch = pytest.importorskip("torch")


def test_transforms(device: str) -> None:
    x, pairs = numbers((3, 4, 6)), numbers((3, 4, 6, 2))

    def both(name: str, is_real_in: bool, is_real_out: bool, *args: Any, **more: Any) -> Case:
        def of(lib: Any, t: Any) -> Any:
            given = t if is_real_in else lib.view_as_complex(t)
            found = getattr(lib.fft, name)(given, *args, **more)
            return found if is_real_out else lib.view_as_real(found.resolve_conj())

        def theirs(t: Any) -> Any:
            return of(torch, t)

        def ours(t: Any) -> Any:
            return of(picograd, t)

        return Case(name, ours, [x if is_real_in else pairs], theirs, dtype="float64")

    compare([
        both("fftn", False, False), both("ifftn", False, False, (3, 8), (0, -1)),
        both("rfftn", True, False, norm="ortho"), both("irfftn", False, True, (4, 9), (1, 2)),
        both("fft2", False, False, (3, 4)), both("irfft2", False, True, None, (0, 1)),
        both("hfft", False, True), both("ihfft", True, False, norm="forward"),
        both("hfft", False, True, 7, 1), both("hfftn", False, True, (4, 9), (1, 2)),
        both("ihfftn", True, False, norm="ortho"), both("hfft2", False, True, norm="ortho"),
        both("ihfft2", True, False, (4, 5)), both("fft", True, False), both("irfft", True, True),
        both("ifftn", True, False, None, (2, 0)), both("fftn", False, False, 3, 0),
        both("fftshift", True, True), both("ifftshift", True, True, (0, 2)),
    ], device)  # fmt: skip
    for n in (4, 5):
        for name in ("fftfreq", "rfftfreq"):
            found, want = getattr(picograd.fft, name)(n, 0.5), getattr(torch.fft, name)(n, 0.5)
            np.testing.assert_allclose(found.numpy(), want.numpy())


def test_short_time_transforms(device: str) -> None:
    x = numbers((2, 40))
    options = dict(hop_length=3, win_length=6, normalized=True)
    window = torch.hann_window(6, dtype=torch.float64)
    ours = dict(options, window=Tensor(window.numpy(), device=device))
    case = Case(
        "stft", lambda t: picograd.stft(t, 8, return_complex=False, **ours), [x],
        lambda t: torch.view_as_real(torch.stft(t, 8, window=window, return_complex=True,
                                                **options)), dtype="float64")  # fmt: skip
    compare([case], device)
    y = picograd.stft(Tensor(x, device=device), 8, **ours)
    found = picograd.istft(y, 8, length=38, **ours)
    want = torch.istft(torch.tensor(y.numpy()), 8, window=window, length=38, **options)
    np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-9)
    two = picograd.stft(Tensor(x, device=device), 8, onesided=False)
    ones = torch.ones(8, dtype=torch.float64)
    want = torch.stft(torch.tensor(x), 8, window=ones, onesided=False, return_complex=True)
    np.testing.assert_allclose(two.numpy(), want.numpy(), 1e-9, 1e-9)
    back = picograd.istft(two, 8, length=38)  # of all frequencies: the whole is read
    wanted = torch.istft(want, 8, window=ones, length=38)
    np.testing.assert_allclose(back.numpy(), wanted.numpy(), 1e-9, 1e-9)
    z, squared = np.exp(1j * x), ones[:6] * 2
    two = picograd.stft(Tensor(z, device=device), 6, window=Tensor(squared.numpy(), device=device))
    want = torch.stft(torch.tensor(z), 6, window=squared, return_complex=True)
    np.testing.assert_allclose(two.numpy(), want.numpy(), 1e-9, 1e-9)
    back = picograd.istft(two, 6, onesided=False, return_complex=True, length=40)
    wanted = torch.istft(want, 6, window=ones[:6], onesided=False, return_complex=True, length=40)
    np.testing.assert_allclose(back.numpy(), wanted.numpy(), 1e-9, 1e-9)
    for given in ({"onesided": False}, {"return_complex": True}):  # of no signal: half is read
        back = picograd.istft(two, 6, length=40, **given)
        wanted = torch.istft(want, 6, window=ones[:6], length=40, **given)
        np.testing.assert_allclose(back.numpy(), wanted.numpy(), 1e-9, 1e-9)


def test_what_is_not_transformed(device: str) -> None:
    z = Tensor([1j, 2.0], device=device)
    with pytest.raises(DTypeError, match="rfft: takes real numbers, not complex64"):
        picograd.fft.rfft(z)
    with pytest.raises(DTypeError, match="istft: takes a complex dtype, not float32"):
        picograd.istft(picograd.ones(2, 5, 9, device=device), 8)
    with pytest.raises(DTypeError, match="stft: half of a complex signal"):
        picograd.stft(picograd.ones(16, device=device) * 1j, 8, onesided=True)


def test_a_complex_window_gives_all_frequencies() -> None:
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(0).standard_normal
    window, x = draw(8) + 1j * draw(8), draw(40)
    options: dict[str, Any] = dict(hop_length=4, return_complex=True)
    found = picograd.stft(Tensor(x), 8, window=Tensor(window), **options)
    want = torch.stft(torch.tensor(x), 8, window=torch.tensor(window), **options)
    np.testing.assert_allclose(found.numpy(), want.numpy(), atol=1e-9)
    with pytest.raises(DTypeError, match="half of a complex signal"):
        picograd.stft(Tensor(x), 8, window=Tensor(window), onesided=True, **options)
