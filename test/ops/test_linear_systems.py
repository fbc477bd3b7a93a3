"""Triangular systems, LU, least squares, functions of matrices, more transforms: as PyTorch."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, library, lin, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")

STACK = numbers((2, 3, 3)) + 6 * np.eye(3)
B = numbers((2, 3, 2), seed=2)
TALL = numbers((5, 3)) + np.eye(5, 3) * 4
SPD = STACK @ np.swapaxes(STACK, 1, 2)
LOWER = np.linalg.cholesky(SPD)


def test_values_and_gradients(device: str) -> None:
    def wide_u(x: Any) -> Any:
        u, s, vh = library(x).linalg.svd(x)
        return (u[..., :3] * s) @ vh

    def solved(left: bool, adjoint: bool) -> Any:
        def call(a: Any, b: Any) -> Any:
            both, pivots = library(a).linalg.lu_factor(a)
            right = b if left else b.mT
            return library(a).linalg.lu_solve(both, pivots, right, left=left, adjoint=adjoint)

        return call

    chain = [numbers((4, 2)), numbers((2, 5)), numbers((5, 3))]
    calls: dict[str, tuple[Any, list[Any]]] = {
        "upper": (lin("solve_triangular", upper=True), [STACK, B]),
        "unit": (lin("solve_triangular", upper=False, unitriangular=True), [STACK, B]),
        "right": (lin("solve_triangular", upper=True, left=False), [STACK, np.swapaxes(B, 1, 2)]),
        "square": (lin("solve_triangular", upper=True), [STACK[0], STACK[1]]),
        "cholesky_solve": (lambda b, f: library(b).cholesky_solve(b, f.tril()),
                           [B, LOWER]),
        "cholesky_inverse": (lambda f: library(f).cholesky_inverse(f.tril()), [LOWER[0]]),
        "lu L": (lin("lu", pick=1), [STACK]),
        "lu U": (lin("lu", pick=2), [STACK]),
        "lu_factor": (lin("lu_factor", pick=0), [STACK]),
        "lu_solve": (solved(True, False), [STACK, B]),
        "lu_solve right": (solved(False, False), [STACK, B]),
        "lu_solve adjoint": (solved(True, True), [STACK, B]),
        "lstsq": (lin("lstsq", pick=0), [TALL, numbers((5, 2))]),
        "tensorinv": (lin("tensorinv", ind=1), [STACK[0].reshape(3, 3, 1)]),
        "tensorsolve": (lin("tensorsolve"), [STACK[0].reshape(3, 3, 1), B[0, :, 0]]),
        "matrix_exp": (lin("matrix_exp"), [STACK / 3]),
        "multi_dot": (lambda *x: library(x[0]).linalg.multi_dot(list(x)), chain),
        "multi_dot vectors": (lambda *x: library(x[0]).linalg.multi_dot(list(x)),
                              [chain[0][:, 0], numbers((4, 2)), numbers((2,))]),
        "solve right": (lin("solve", left=False), [STACK, np.swapaxes(B, 1, 2)]),
        "svd": (wide_u, [TALL]),
        "eigvalsh": (lin("eigvalsh", "U"), [SPD]),
        "cond -2": (lin("cond", -2), [TALL]),
        "vecdot": (lin("vecdot", dim=0), [TALL, TALL * 2]),
        "cross": (lin("cross"), [TALL, TALL[:1]]),
        "diagonal": (lin("diagonal", offset=-1), [STACK]),
        "norm -1": (lin("vector_norm", -1, 1), [TALL]),
        "norm 0.5": (lin("vector_norm", 0.5, (0, 1), True), [TALL]),
        "matrix_norm -2": (lin("matrix_norm", -2, (0, 1), True), [TALL]),
        "logdet": (lambda x: library(x).logdet(x), [STACK]),
        "addbmm": (lambda c, x, y: library(x).addbmm(c, x, y, beta=2, alpha=0.5),
                   [B[0], STACK, B]),
    }  # fmt: skip
    compare([Case(n, f, x, dtype="float64", scale=10) for n, (f, x) in calls.items()], device)


def test_without_gradients(device: str) -> None:
    calls: dict[str, tuple[Any, list[Any]]] = {
        "cond 1": (lin("cond", 1), [STACK[0]]),
        "cond fro": (lin("cond", "fro"), [STACK]),
        "P": (lin("lu", pick=0), [numbers((2, 4, 4))]),
        "wide": (lin("lu", pick=2), [TALL.T.copy()]),
        "tall": (lin("lu", pick=1), [TALL]),
        "pivots": (lin("lu_factor", pick=1), [numbers((2, 4, 4))]),
        "complete": (lambda x: library(x).linalg.qr(x, "complete")[0].abs(), [TALL]),
        "r": (lambda x: library(x).linalg.qr(x, "r")[1].abs(), [TALL]),
        "wide qr": (lambda x: library(x).linalg.qr(x)[1].abs(), [TALL.T.copy()]),
        "rank": (lin("matrix_rank"), [np.ones((2, 3, 3))]),
        "rank atol": (lin("matrix_rank", atol=3.0), [TALL]),
        "pinv atol": (lin("pinv", atol=3.0), [TALL]),
        "residuals": (lin("lstsq", pick=1, driver="gelsd"), [TALL, numbers((5, 2))]),
        "vander": (lin("vander", N=3), [B[0]]),
        "singular values": (lin("lstsq", pick=3, driver="gelss"), [TALL, numbers((5, 2))]),
    }
    cases = [Case(n, f, x, has_gradient=False, dtype="float64") for n, (f, x) in calls.items()]
    compare([c for c in cases if c.name != "pivots"], device)
    found = picograd.linalg.lu_factor(Tensor(numbers((2, 4, 4)), device=device)).pivots
    assert found.numpy().dtype == np.int32
    u, s, vh = picograd.linalg.svd(Tensor(TALL.T, device=device))
    assert u.shape == (3, 3) and vh.shape == (5, 5)
    np.testing.assert_allclose((vh @ vh.mT).numpy(), np.eye(5), atol=1e-12)
    np.testing.assert_allclose(((u * s) @ vh[:3]).numpy(), TALL.T, atol=1e-12)


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


def test_mistakes(device: str) -> None:
    a, b = Tensor(STACK, device=device), Tensor(B, device=device)
    tall = Tensor(TALL, device=device, requires_grad=True)
    for wrong in (
        lambda: picograd.linalg.solve_triangular(tall, b, upper=True),
        lambda: picograd.linalg.solve_triangular(a, b[:, :2], upper=True),
        lambda: picograd.linalg.lu(a, pivot=False),
        lambda: picograd.linalg.lu(tall).L.sum().backward(),
        lambda: picograd.linalg.lstsq(tall, b[0]),
        lambda: picograd.linalg.tensorinv(a),
        lambda: picograd.linalg.tensorsolve(a, b),
        lambda: picograd.linalg.multi_dot([tall]),
        lambda: picograd.linalg.eig(a),
        lambda: picograd.linalg.matrix_exp(tall),
        lambda: picograd.linalg.qr(a, "full"),
        lambda: picograd.linalg.inv(3.0),
        lambda: picograd.fft.fftn(a[..., :2], (2,), (0, 1)),
        lambda: picograd.stft(a[0, 0], 8),
    ):
        with pytest.raises(PicogradError):
            wrong()
    with pytest.raises(picograd.linalg.LinAlgError):
        picograd.linalg.inv(a * 0)
