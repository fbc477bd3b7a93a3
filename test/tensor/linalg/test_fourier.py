"""Fourier transforms of several axes, and of short times: values and gradients as PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, numbers

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")


def test_transforms(device: str) -> None:
    x, pairs = numbers((3, 4, 6)), numbers((3, 4, 6, 2))

    def both(name: str, is_real_in: bool, is_real_out: bool, *args: Any, **more: Any) -> Case:
        def theirs(t: Any) -> Any:
            found = getattr(torch.fft, name)(
                t if is_real_in else torch.view_as_complex(t), *args, **more
            )
            return found if is_real_out else torch.view_as_real(found.resolve_conj())

        def ours(t: Any) -> Any:
            return getattr(picograd.fft, name)(t, *args, **more)

        return Case(name, ours, [x if is_real_in else pairs], theirs, dtype="float64")

    compare([
        both("fftn", False, False), both("ifftn", False, False, (3, 8), (0, -1)),
        both("rfftn", True, False, norm="ortho"), both("irfftn", False, True, (4, 9), (1, 2)),
        both("fft2", False, False, (3, 4)), both("irfft2", False, True, None, (0, 1)),
        both("hfft", False, True), both("ihfft", True, False, norm="forward"),
        both("hfft", False, True, 7, 1),
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
        "stft", lambda t: picograd.stft(t, 8, **ours), [x],
        lambda t: torch.view_as_real(torch.stft(t, 8, window=window, return_complex=True,
                                                **options)), dtype="float64")  # fmt: skip
    compare([case], device)
    y = picograd.stft(Tensor(x, device=device), 8, **ours)
    found = picograd.istft(y, 8, length=38, **ours)
    want = torch.istft(torch.view_as_complex(torch.tensor(y.numpy())), 8, window=window,
                       length=38, **options)  # fmt: skip
    np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-9)
    two = picograd.stft(Tensor(x, device=device), 8, onesided=False)
    ones = torch.ones(8, dtype=torch.float64)
    want = torch.stft(torch.tensor(x), 8, window=ones, onesided=False, return_complex=True)
    np.testing.assert_allclose(two.numpy(), torch.view_as_real(want).numpy(), 1e-9, 1e-9)
