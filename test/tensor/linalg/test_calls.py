"""Host functions of memory at hand are computed where they are called."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, linalg
from picograd.engine import host_calls
from picograd.errors import LinAlgError
from picograd.tensor.linalg import host
from picograd.tensor.linalg.calls import called

MATRIX = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the tables of what waits."""
    found, compute = [], host_calls.compute
    monkeypatch.setattr(host_calls, "compute", lambda *a: (found.append(1), compute(*a))[1])
    return found


def test_memory_at_hand_passes_no_tables(on_host, asked):
    x = Tensor(MATRIX).realize()
    results = [linalg.inv(x), linalg.det(x), *linalg.qr(x), *linalg.svd(x), picograd.fft.rfft(x)]
    assert all(each._node.op == "buffer" for each in results) and not asked
    np.testing.assert_allclose(results[0].numpy(), np.linalg.inv(MATRIX), rtol=1e-5)
    with pytest.raises(LinAlgError, match=r"^linalg.inv: Singular matrix"):
        linalg.inv(Tensor(MATRIX * 0).realize())


def test_gradients_and_writes_that_wait_take_the_long_way(on_host, asked):
    x = Tensor(MATRIX, requires_grad=True).realize()
    linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[3.0, -2.0], [-1.0, 4.0]], rtol=1e-5)
    y, other = Tensor(MATRIX).realize(), Tensor(MATRIX).realize()
    other += 1
    found = linalg.inv(y)
    assert asked or found._node.op != "buffer"
    np.testing.assert_allclose((found @ y).numpy(), np.eye(2), atol=1e-6)
    np.testing.assert_array_equal(other.numpy(), MATRIX + 1)


def test_what_is_recorded_is_found_once_for_memory_of_one_kind(on_host):
    def inverse(node):
        seen.append(node)
        return host.inverse(node)

    seen, x = [], Tensor(MATRIX).realize()
    for number in (1, 2):
        found = called(inverse, x)
        np.testing.assert_allclose((found @ x).numpy(), np.eye(2), atol=1e-6)
        x = Tensor(MATRIX + number).realize()
    assert len(seen) == 1 and seen[0] is not x._node
    called(inverse, x.double().realize())
    assert len(seen) == 2


def test_inside_of_traces_nothing_is_computed(on_host, asked):
    x = Tensor(np.stack([MATRIX, MATRIX + 1])).realize()
    found = picograd.func.vmap(linalg.inv)(x)
    np.testing.assert_allclose(found.numpy(), np.linalg.inv(x.numpy()), rtol=1e-4)
    twice = picograd.jit(lambda t: linalg.inv(t) * 2)
    for _ in range(3):
        np.testing.assert_allclose(twice(x).numpy(), 2 * np.linalg.inv(x.numpy()), rtol=1e-4)


def test_numbers_of_single_matrices_stay(on_host):
    found = [each for number in range(1, 9) for each in linalg.slogdet(Tensor(MATRIX * -number))]
    want = [each for number in range(1, 9) for each in np.linalg.slogdet(MATRIX * -number)]
    np.testing.assert_allclose([each.item() for each in found], want, rtol=1e-5)
    assert linalg.pinv(Tensor(np.zeros((2, 0, 3), np.float32))).shape == (2, 3, 0)


def test_what_has_no_factors_is_refused():
    for x in (Tensor([[1.0, 2.0], [2.0, 4.0]]), Tensor(MATRIX, requires_grad=True) * 0):
        with pytest.raises(LinAlgError, match=r"^linalg.lu_factor: Singular matrix"):
            linalg.lu_factor(x)
        assert linalg.lu_factor_ex(x).info.item() > 0
    for bad in (
        [[np.nan, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [np.nan, 1.0]],
        [[1.0, 0.0], [0.0, -1.0]],
    ):
        with pytest.raises(LinAlgError, match=r"^linalg.cholesky: Matrix is not positive definite"):
            linalg.cholesky(Tensor(bad))
        assert linalg.cholesky_ex(Tensor(bad)).info.item() > 0
    assert linalg.lu_factor_ex(Tensor(np.zeros((2, 0, 0), np.float32))).info.tolist() == [0, 0]


def test_integers_become_the_default_dtype_of_the_moment():
    x = picograd.arange(8).realize()
    try:
        picograd.set_default_dtype(picograd.float64)
        wide = picograd.fft.fft(x).dtype
    finally:
        picograd.set_default_dtype(picograd.float32)
    assert (picograd.fft.fft(x).dtype, wide) == (picograd.complex64, picograd.complex128)


def test_memory_of_numpys_is_read_when_a_function_is_called(on_host: None) -> None:
    array = np.diag([2.0, 4.0])
    x = picograd.from_numpy(array)
    first = picograd.linalg.inv(x)
    array[:] = np.eye(2)
    second = picograd.linalg.inv(x)
    assert first.tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert second.tolist() == [[1.0, 0.0], [0.0, 1.0]]
