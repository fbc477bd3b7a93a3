"""Linear algebra of the array API."""

from picograd import array_api as xp


def test_linalg() -> None:
    assert xp.linalg.pinv(xp.ones((2, 1, 1)), rtol=xp.zeros(2)).tolist() == [[[1.0]], [[1.0]]]
    assert xp.linalg.matrix_rank(xp.eye(3)).item() == 3
    x = xp.asarray([[2.0, 0.0], [0.0, 4.0]])
    assert xp.linalg.solve(x, xp.asarray([2.0, 4.0])).tolist() == [1, 1]
    assert xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3])).tolist() == [[3], [6]]


def test_eigenvalues_of_any_matrix() -> None:
    values, vectors = xp.linalg.eig(xp.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    assert sorted(values.imag.tolist()) == [-1, 1] and vectors.dtype is xp.complex64
    assert sorted(xp.linalg.eigvals(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).real.tolist()) == [1, 2]
