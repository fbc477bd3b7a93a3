"""Triangular systems, LU, least squares, functions of matrices: as PyTorch."""

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
BOX = (numbers((6, 6)) + 6 * np.eye(6)).reshape(3, 2, 6)


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
        "lu_factor wide": (lin("lu_factor", pick=0), [np.swapaxes(STACK, 0, 1)[:, :2]]),
        "lu L tall": (lin("lu", pick=1), [TALL]),
        "lu U tall": (lin("lu", pick=2), [TALL]),
        "lu U wide": (lin("lu", pick=2), [TALL.T.copy()]),
        "lu_solve": (solved(True, False), [STACK, B]),
        "lu_solve right": (solved(False, False), [STACK, B]),
        "lu_solve adjoint": (solved(True, True), [STACK, B]),
        "lstsq": (lin("lstsq", pick=0), [TALL, numbers((5, 2))]),
        "tensorinv": (lin("tensorinv", ind=1), [STACK[0].reshape(3, 3, 1)]),
        "tensorsolve": (lin("tensorsolve"), [STACK[0].reshape(3, 3, 1), B[0, :, 0]]),
        "tensorsolve dims": (lin("tensorsolve", dims=(0, 2)), [BOX, B[0]]),
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


def test_ranks(device: str) -> None:
    low = STACK.copy()
    low[1, 2] = low[1, 0] + low[1, 1]
    x, t = Tensor(low, device=device), torch.tensor(low)
    limits = np.array([0.5, 1e-6])
    y, u = Tensor(limits, device=device), torch.tensor(limits)
    for ours, theirs in (
        (picograd.linalg.matrix_rank(x), torch.linalg.matrix_rank(t)),
        (picograd.linalg.matrix_rank(x, rtol=y), torch.linalg.matrix_rank(t, rtol=u)),
        (picograd.linalg.matrix_rank(x, atol=y), torch.linalg.matrix_rank(t, atol=u)),
        (picograd.linalg.matrix_rank(x, hermitian=True),
         torch.linalg.matrix_rank(t, hermitian=True)),
        (picograd.linalg.matrix_rank(x[:, :0]), torch.linalg.matrix_rank(t[:, :0])),
    ):  # fmt: skip
        assert ours.tolist() == theirs.tolist()


def test_complex_matrices(device: str) -> None:
    """LU with LAPACK's pivots, adjoint systems, one triangle of Hermitian matrices."""
    a = (STACK + 1j * numbers((2, 3, 3), seed=5)).astype("complex128")
    b = (B + 1j).astype("complex128")

    def results(lib: Any, x: Any, y: Any) -> list[Any]:
        both, pivots = lib.linalg.lu_factor(x)
        return [
            *(both, pivots, lib.linalg.lu(x[:, :2])[2]),
            *(lib.linalg.lu_solve(both, pivots, y, adjoint=flag) for flag in (False, True)),
            lib.linalg.lu_solve(both, pivots, y.mT, left=False, adjoint=True),
            lib.linalg.pinv(x, hermitian=True),
            lib.linalg.lstsq(x[0, :, :2], y[0], driver="gels").residuals,
        ]

    ours = results(picograd, Tensor(a, device=device), Tensor(b, device=device))
    theirs = results(torch, torch.tensor(a), torch.tensor(b))
    for found, want in zip(ours, theirs, strict=True):
        assert f"torch.{found.dtype.name}" == str(want.dtype)
        np.testing.assert_allclose(
            found.numpy(), want.resolve_conj().numpy(), rtol=1e-9, atol=1e-12
        )
    for part in (a[0, :, :2], a[0, :2]):
        x, t = Tensor(part, device=device), torch.tensor(part)
        x.requires_grad = t.requires_grad = True
        weights = numbers(part.shape, seed=3) + 1j
        both = picograd.linalg.lu_factor(x).LU
        (found,) = picograd.autograd.grad(both, x, Tensor(weights, device=device))
        (want,) = torch.autograd.grad(torch.linalg.lu_factor(t).LU, t, torch.tensor(weights))
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-9, atol=1e-12)


def test_norms_of_no_numbers(device: str) -> None:
    x, t = Tensor(np.zeros((0, 0)), device=device), torch.zeros(0, 0)
    for order in (1, 2, "nuc", "fro"):
        assert picograd.linalg.norm(x, order).item() == torch.linalg.norm(t, order).item() == 0


def test_mistakes(device: str) -> None:
    a, b = Tensor(STACK, device=device), Tensor(B, device=device)
    tall = Tensor(TALL, device=device, requires_grad=True)
    for wrong in (
        lambda: picograd.linalg.solve_triangular(tall, b, upper=True),
        lambda: picograd.linalg.solve_triangular(a, b[:, :2], upper=True),
        lambda: picograd.linalg.lu(a, pivot=False),
        lambda: picograd.linalg.lstsq(tall, b[0]),
        lambda: picograd.linalg.tensorinv(a),
        lambda: picograd.linalg.tensorsolve(a, b),
        lambda: picograd.linalg.cross(tall, tall[:, :1]),
        lambda: picograd.linalg.multi_dot([tall]),
        lambda: picograd.linalg.eig(tall),
        lambda: picograd.linalg.matrix_exp(tall),
        lambda: picograd.linalg.qr(a, "full"),
        lambda: picograd.linalg.inv(3.0),
        lambda: picograd.fft.fftn(a, (2,), (0, 1)),
        lambda: picograd.stft(a[0, 0], 8),
    ):
        with pytest.raises(PicogradError):
            wrong()
    with pytest.raises(picograd.linalg.LinAlgError):
        picograd.linalg.inv(a * 0)
    for swaps in ([4, 2, 3], [0, 2, 3]):  # rows that are not there
        with pytest.raises(picograd.linalg.LinAlgError, match=r"not in 1\.\.3"):
            picograd.lu_unpack(picograd.eye(3), Tensor(swaps).int()).P.numpy()
    flat = Tensor([[1.0, 2.0], [2.0, 4.0]])
    assert picograd.linalg.matrix_rank(flat, 0.01, True).item() == 1


def test_older_names_give_the_same() -> None:
    values = np.random.default_rng(1).normal(size=(2, 3, 3))
    values[1, :, 2] = values[1, :, 1]  # singular
    ours, theirs = Tensor(values), torch.tensor(values)
    found, want = picograd.lu(ours, get_infos=True), torch.linalg.lu_factor_ex(theirs)
    for each, other in zip(found[:2], want):
        np.testing.assert_allclose(each.numpy(), other.numpy(), 1e-9, 1e-12)
    assert len(ours.lu()) == 2
    zeros = picograd.linalg.lu_factor_ex(Tensor([[0.0, 1.0], [0.0, 2.0]]))
    assert zeros.info.tolist() == 1
    with pytest.raises(PicogradError, match="a pivot is 0"):
        picograd.linalg.lu_factor_ex(Tensor([[0.0]]), check_errors=True)
    for upper, transpose in ((True, False), (False, True)):
        found = picograd.triangular_solve(ours[:1], ours[:1], upper, transpose)[0]
        want = torch.triangular_solve(theirs[:1], theirs[:1], upper, transpose)[0]
        np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-9, 1e-12)


def test_what_is_not_asked_of_an_unpacked_lu_is_empty() -> None:
    both = picograd.linalg.lu_factor(Tensor([[0.0, 2.0], [4.0, 0.0]]))
    swaps = picograd.lu_unpack(*both, unpack_data=False)
    assert swaps.P.tolist() == [[0.0, 1.0], [1.0, 0.0]] and swaps.L.shape == swaps.U.shape == (0,)
    factors = picograd.lu_unpack(*both, unpack_pivots=False)
    assert factors.P.shape == (0,) and factors.U.tolist() == [[4.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("driver", ["gelsd", "gelss", "gelsy"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_a_negative_cutoff_is_the_precision(driver: str, dtype: str) -> None:
    """Nothing was cut off: the solution of a singular system was of the order of 1e16."""
    rows = np.random.default_rng(0).standard_normal((5, 2)).astype(dtype)
    a = picograd.Tensor(rows @ np.asarray([[1, 2, 3], [4, 5, 7]], dtype))
    b = picograd.Tensor(np.random.default_rng(1).standard_normal((5, 2)).astype(dtype))
    found = picograd.linalg.lstsq(a, b, rcond=-1, driver=driver)
    want = picograd.linalg.pinv(a) @ b
    assert found.rank.item() == 2
    np.testing.assert_allclose(found.solution.numpy(), want.numpy(), rtol=1e-3, atol=1e-3)
