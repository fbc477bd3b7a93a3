"""Decompositions whose results have no gradient, or no sign: as PyTorch's."""

import math
from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, library, lin, numbers

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

STACK = numbers((2, 3, 3)) + 6 * np.eye(3)
B = numbers((2, 3, 2), seed=2)
TALL = numbers((5, 3)) + np.eye(5, 3) * 4


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
        "pinv of a lower triangle": (lin("pinv", hermitian=True), [STACK[0]]),
        "vander of a number": (lin("vander", N=3), [np.array(2.0)]),
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


def complex_numbers(*shape: int) -> Any:
    random = np.random.default_rng(sum(shape))
    return random.normal(size=shape) + 1j * random.normal(size=shape)


SQUARES = complex_numbers(2, 3, 3) + 3 * np.eye(3)
TALLER, WIDER, RIGHT = complex_numbers(2, 4, 3), complex_numbers(2, 3, 4), complex_numbers(2, 3, 2)
HERMITIAN = SQUARES @ SQUARES.conj().swapaxes(-1, -2)
COMPLEX: dict[str, tuple[Any, list[Any]]] = {  # of one library: (x, ...) -> numbers without a phase
    "inv": (lambda lib, x: lib.linalg.inv(x), [SQUARES]),
    "solve": (lambda lib, x, b: lib.linalg.solve(x, b), [SQUARES, RIGHT]),
    "solve_triangular": (lambda lib, x, b: lib.linalg.solve_triangular(x, b, upper=True),
                         [SQUARES, RIGHT]),
    "cholesky_solve": (lambda lib, x, b: lib.cholesky_solve(b, lib.linalg.cholesky(x @ x.mH)),
                       [SQUARES, RIGHT]),
    "det": (lambda lib, x: lib.linalg.det(x), [SQUARES]),
    "slogdet": (lambda lib, x: lib.linalg.slogdet(x)[0] * lib.linalg.slogdet(x)[1], [SQUARES]),
    "cholesky": (lambda lib, x: lib.linalg.cholesky(x @ x.mH), [SQUARES]),
    "pinv": (lambda lib, x: lib.linalg.pinv(x), [TALLER]),
    "pinv limit": (lambda lib, x: lib.linalg.pinv(x, rtol=lib.tensor(1e-3)), [TALLER]),
    "pinv wide": (lambda lib, x: lib.linalg.pinv(x), [WIDER]),
    "svdvals": (lambda lib, x: lib.linalg.svdvals(x), [TALLER]),
    "svd": (lambda lib, x: u_and_v(*lib.linalg.svd(x, full_matrices=False)), [TALLER]),
    "svd wide": (lambda lib, x: u_and_v(*lib.linalg.svd(x, full_matrices=False)), [WIDER]),
    "eigvalsh": (lambda lib, x: lib.linalg.eigvalsh(x), [HERMITIAN]),
    "eigh": (lambda lib, x: sizes(*lib.linalg.eigh(x)), [HERMITIAN]),
    "eigh upper": (lambda lib, x: sizes(*lib.linalg.eigh(x, UPLO="U")), [HERMITIAN]),
    "eigvals": (lambda lib, x: (lib.linalg.eigvals(x) ** 2).sum(-1), [SQUARES]),
    "eig": (lambda lib, x: sizes(*lib.linalg.eig(x)).sum(-1), [SQUARES]),
    "eig of real": (lambda lib, x: sizes(*lib.linalg.eig(x)).abs().sum(-1), [SQUARES.real.copy()]),
    "qr": (lambda lib, x: (lib.linalg.qr(x)[0] * 2).abs() ** 3, [TALLER]),
    "qr square": (lambda lib, x: lib.linalg.qr(x)[0] @ lib.linalg.qr(x)[1] ** 2, [SQUARES]),
    "qr wide": (lambda lib, x: lib.linalg.qr(x)[1].abs() ** 3, [WIDER]),
    "matrix_exp": (lambda lib, x: lib.linalg.matrix_exp(x / 3), [SQUARES]),
    "matrix_power": (lambda lib, x: lib.linalg.matrix_power(x, -2), [SQUARES]),
    "nuclear norm": (lambda lib, x: lib.linalg.matrix_norm(x, "nuc"), [TALLER]),
    "cond": (lambda lib, x: lib.linalg.cond(x), [SQUARES]),
    "vector_norm": (lambda lib, x: lib.linalg.vector_norm(x, 3, dim=1), [TALLER]),
    "lstsq": (lambda lib, x, b: lib.linalg.lstsq(x, b)[0], [TALLER, TALLER * TALLER]),
    "multi_dot": (lambda lib, x, b: lib.linalg.multi_dot([x[0], b[0]]), [TALLER, SQUARES]),
}  # fmt: skip


def u_and_v(u: Any, s: Any, vh: Any) -> Any:
    """Numbers of U and V that no choice of phases changes."""
    return (u * s[..., None, :] ** 2) @ vh + (vh.abs() ** 4).sum()


def sizes(values: Any, vectors: Any) -> Any:
    return vectors.abs() ** 4 * values[..., None, :]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_matrices(name: str, device: str) -> None:
    function, arrays = COMPLEX[name]
    given = [Tensor(each, device=device, requires_grad=True) for each in arrays]
    theirs = [torch.tensor(each, requires_grad=True) for each in arrays]
    found, wanted = function(picograd, *given), function(torch, *theirs)
    assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), 1e-8, 1e-8)
    start = complex_numbers(*wanted.shape) if wanted.is_complex() else wanted.detach().numpy()
    slopes = picograd.grad(found, given, Tensor(start, device=device))
    for slope, other in zip(slopes, torch.autograd.grad(wanted, theirs, torch.tensor(start))):
        np.testing.assert_allclose(slope.numpy(), other.resolve_conj().numpy(), 1e-7, 1e-7)


def test_complex_matrices_in_traces(device: str) -> None:
    x = Tensor(SQUARES, device=device)
    wanted = np.linalg.inv(SQUARES) @ SQUARES * 2
    np.testing.assert_allclose(picograd.jit(linalg_twice)(x).numpy(), wanted, 1e-9, 1e-9)
    np.testing.assert_allclose(picograd.vmap(linalg_twice)(x).numpy(), wanted, 1e-9, 1e-9)


def linalg_twice(x: Tensor) -> Tensor:
    return picograd.linalg.inv(x) @ x * 2


def curvature(m: Any, of: Any, x: Any, direction: Any) -> Any:
    """Differentiate twice: the gradient along a direction, with respect to the matrix."""
    t = m.tensor(x).requires_grad_()
    (slope,) = m.autograd.grad(of(m, t), t, create_graph=True)
    along = slope * m.tensor(direction)
    if np.iscomplexobj(x):
        along = m.view_as_real(along)[..., 0]
    (found,) = m.autograd.grad(along.sum(), t)
    return found.resolve_conj().numpy()


def test_second_derivatives_of_singular_values_and_vectors() -> None:
    # The gradient of values alone multiplies by zeros, beside products whose results are summed.
    real, other = numbers((3, 3)), complex_numbers(3, 3)
    weights = np.arange(1.0, 10).reshape(3, 3)
    cases: list[tuple[Any, Any]] = [
        (lambda m, t: (m.linalg.svdvals(t) ** 2 * m.tensor(weights[0])).sum(), real),
        (lambda m, t: m.linalg.cond(t), real),
        (lambda m, t: m.linalg.norm(t, "nuc") ** 2, other),
        (lambda m, t: (m.linalg.svd(t)[0].abs() * m.tensor(weights)).sum(), other),
    ]
    for of, x in cases:
        direction = complex_numbers(3, 3) if np.iscomplexobj(x) else weights
        found, wanted = (curvature(m, of, x, direction) for m in (picograd, torch))
        np.testing.assert_allclose(found, wanted, 1e-7, 1e-9)


@pytest.mark.parametrize(("name", "whole"), [("eigvalsh", "eigh"), ("svdvals", "svd")])
def test_values_alone_are_found_without_vectors(
    name: str, whole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = Tensor(STACK[0] + STACK[0].T)
    values, calls = getattr(picograd.linalg, name), []
    original = getattr(np.linalg, whole)

    def noted(*args: Any, **options: Any) -> Any:
        calls.append(options)
        return original(*args, **options)

    monkeypatch.setattr(np.linalg, whole, noted)
    alone = values(x)
    assert calls in ([], [{"compute_uv": False}])
    found = picograd.func.grad(lambda x: values(x)[0])(x)
    x.requires_grad = True
    with_vectors = values(x)
    with_vectors[0].backward()
    np.testing.assert_allclose(alone.numpy(), with_vectors.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(found.numpy(), x.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_matrices_without_an_inverse_have_an_infinite_condition_number() -> None:
    """Of a stack only those without one do."""
    x = Tensor([[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert picograd.linalg.cond(x, 1).tolist() == [math.inf, 1.0]
    assert picograd.linalg.cond(x[0], "fro").item() == math.inf


def test_eigh_names_its_triangle_in_either_case():
    x = Tensor([[2.0, 9.0], [1.0, 2.0]])
    found = [picograd.linalg.eigh(x, each).eigenvalues.tolist() for each in ("u", "U")]
    assert found[0] == found[1]
