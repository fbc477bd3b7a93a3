"""Functions that refuse some matrices where kernels tell what went wrong, and nobody raises."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine.backends import get_device
from picograd.errors import LinAlgError
from picograd.tensor.linalg import refusals

RANDOM = np.random.default_rng(5)
REGULAR = RANDOM.normal(size=(3, 4, 4)) + 3 * np.eye(4)
SINGULAR = REGULAR.copy()
SINGULAR[1, :, 2] = 0
DEFINITE = REGULAR @ REGULAR.transpose(0, 2, 1)
INDEFINITE = DEFINITE - 100 * np.eye(4)
Function = Callable[[Tensor], Any]
FUNCTIONS: dict[str, tuple[Function, Any, Any]] = {
    "inv": (picograd.linalg.inv, REGULAR, SINGULAR),
    "solve": (lambda A: picograd.linalg.solve(A, A.mT), REGULAR, SINGULAR),
    "lu_factor": (lambda A: picograd.linalg.lu_factor(A)[0], REGULAR, SINGULAR),
    "cholesky": (picograd.linalg.cholesky, DEFINITE, INDEFINITE),
    "eigh": (lambda A: picograd.linalg.eigh(A).eigenvalues, DEFINITE, DEFINITE * np.nan),
    "svd": (lambda A: picograd.linalg.svd(A).S, REGULAR, REGULAR * np.nan),
    "pinv": (picograd.linalg.pinv, REGULAR, REGULAR * np.nan),
}


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the way of a GPU, whose kernels are the host's calls here."""
    monkeypatch.setattr(refusals, "is_gpu", lambda device: True)
    yield


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, matrices, _ = FUNCTIONS[name]
    found = []
    for is_told in (True, False):
        monkeypatch.setattr(refusals, "is_gpu", lambda device, answer=is_told: answer)
        x = Tensor(matrices, requires_grad=True)
        y = function(x)
        y.sin().sum().backward()
        found.append((y.numpy(), x.grad.numpy()))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_raises_at_the_call(name: str) -> None:
    function, _, bad = FUNCTIONS[name]
    with pytest.raises(LinAlgError, match=f"^linalg.{name}: .* Fix: check the matrix"):
        function(Tensor(bad))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_trace_raises_when_it_runs(name: str) -> None:
    function, good, bad = FUNCTIONS[name]
    traced = picograd.jit(function)
    for _ in range(3):
        traced(Tensor(good))
    with pytest.raises(LinAlgError, match=f"linalg.{name}"):
        traced(Tensor(bad)).numpy()  # a GPU tells at the next look


@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples_raise_together(name: str) -> None:
    function, good, bad = FUNCTIONS[name]
    wanted = np.stack([function(Tensor(x)).numpy() for x in good])
    np.testing.assert_allclose(picograd.vmap(function)(Tensor(good)).numpy(), wanted, rtol=1e-10)
    with pytest.raises(LinAlgError, match=f"linalg.{name}"):
        picograd.vmap(function)(Tensor(bad)).numpy()


def test_those_that_tell_by_themselves() -> None:
    inverse, info = picograd.linalg.inv_ex(Tensor(SINGULAR))
    assert info.tolist() == [0, 3, 0] and inverse[1].isnan().all().item()
    np.testing.assert_allclose(inverse[0].numpy(), np.linalg.inv(REGULAR[0]))
    assert picograd.linalg.cholesky_ex(Tensor(INDEFINITE)).info.tolist() == [1, 1, 1]


def test_no_matrices() -> None:
    empty = Tensor(np.zeros((0, 3, 3)))
    assert picograd.linalg.inv(empty).shape == picograd.linalg.cholesky(empty).shape == (0, 3, 3)
    assert picograd.linalg.cholesky(Tensor(np.zeros((2, 0, 0)))).shape == (2, 0, 0)


@pytest.mark.parametrize("name", [*FUNCTIONS, "det", "slogdet", "qr", "eigvals", "eigvalsh"])
def test_complex_matrices_have_no_kernels(name: str) -> None:
    """They are pairs of numbers by then, which kernels took for matrices of two columns."""
    pairs = DEFINITE + 1j * (REGULAR - REGULAR.transpose(0, 2, 1))
    function = FUNCTIONS[name][0] if name in FUNCTIONS else getattr(picograd.linalg, name)
    null = get_device("null")
    before = null.host_calls
    found = function(Tensor(pairs, device="null"))
    for each in found if isinstance(found, tuple) else (found,):
        assert each.numpy().shape == each.shape
    assert null.host_calls > before


def test_values_say_how_often_an_exponential_is_squared(monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of powers of two, where values are known: a trace takes as many as are useful."""
    for size, count in ((0.2, 0), (1.5, 1), (100.0, 8), (1e5, 32), (np.inf, 0), (np.nan, 0)):
        assert refusals.squarings(Tensor([[0.0, size], [0.0, 0.0]])) == (count,)
    assert refusals.squarings(Tensor([[1j]])) == refusals.squarings(picograd.zeros(0, 2, 2)) == ()
    traced: list[Any] = []
    picograd.jit(lambda x: traced.append(refusals.squarings(x)) or x * 2)(Tensor(REGULAR))
    assert traced == [()]
    found = []
    for is_told in (True, False):
        monkeypatch.setattr(refusals, "is_gpu", lambda device, answer=is_told: answer)
        x = Tensor(REGULAR, requires_grad=True)
        y = picograd.linalg.matrix_exp(x)
        (y.sin() * 1000).sum().backward()
        found.append((y.numpy(), x.grad.numpy()))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
