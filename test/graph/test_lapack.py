"""Functions of LAPACK, for all dtypes and for stacks of any size."""

import numpy as np
import pytest

from picograd.graph import lapack
from picograd.graph.host_lu import eliminated

SHAPES = [(4, 4), (3, 5, 4), (2, 3, 4, 6), (0, 3, 3), (3, 0), (0, 3), (70, 70), (2, 1, 1)]


def numbers(shape, dtype):
    random = np.random.default_rng(len(shape))
    real, imag = random.standard_normal((2, *shape))
    return (real + 1j * imag if dtype[0] == "c" else real).astype(dtype)


@pytest.mark.parametrize("dtype", lapack.LETTERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_are_numpys(shape, dtype):
    x, eps = numbers(shape, dtype), np.finfo(dtype).eps * 1000
    for mode in ("reduced", "complete"):
        for found, want in zip(lapack.orthogonal(x, mode == "complete"), np.linalg.qr(x, mode)):
            assert found.dtype == x.dtype and found.shape == want.shape
            np.testing.assert_allclose(found, want, atol=eps)
    both, swaps = lapack.factored(x)
    for found, want in zip((both, swaps), eliminated(x)):
        np.testing.assert_allclose(found, want, atol=10 * eps)


@pytest.mark.parametrize("dtype", lapack.LETTERS)
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_triangles(columns, dtype):
    for shape in SHAPES:
        a = (numbers(shape, dtype) / 8 + 2 * np.eye(*shape[-2:])).astype(dtype)
        b = numbers((*shape[:-1], columns), dtype)
        if shape[-1] != shape[-2]:
            continue
        for keep, place in ((np.tril, -1), (np.triu, 1)):
            found = lapack.substituted(a, b, keep is np.triu, False)
            np.testing.assert_allclose(keep(a) @ found, b, atol=1e-4)
            found = lapack.substituted(a, b, keep is np.triu, True)
            unit = keep(a, place) + np.eye(shape[-1])
            np.testing.assert_allclose(unit @ found, b, atol=1e-4)


@pytest.mark.parametrize("dtype", lapack.LETTERS)
def test_inverses(dtype):
    for shape in [(4, 4), (2, 3, 5, 5), (0, 3, 3), (0, 0), (70, 70), (2, 1, 1)]:
        x = (numbers(shape, dtype) / 8 + 2 * np.eye(shape[-1])).astype(dtype)
        found = lapack.inverted(x)
        assert found.dtype == x.dtype and found.shape == x.shape
        np.testing.assert_allclose(found @ x, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-4)
    x = np.stack([np.eye(3), np.ones((3, 3))]).astype(dtype)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        lapack.inverted(x)


def test_other_dtypes_and_builds_have_none(monkeypatch):
    assert lapack.function("getrf", np.dtype("int32")) is None
    assert lapack.function("no_such", np.dtype("float32")) is None
    assert lapack.factored(np.ones((2, 2), np.float16)) is None
    assert lapack.inverted(np.ones((2, 2), np.float16)) is None
