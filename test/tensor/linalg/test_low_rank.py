"""Largest singular values: those of all of them, exactly."""

import numpy as np

import picograd


def test_products_are_the_best_of_their_rank() -> None:
    x = np.random.default_rng(0).standard_normal((2, 6, 4)).astype(np.float32)
    u, s, v = picograd.svd_lowrank(picograd.tensor(x), q=2)
    full = np.linalg.svd(x, full_matrices=False)
    wanted = (full[0][..., :2] * full[1][..., None, :2]) @ full[2][..., :2, :]
    np.testing.assert_allclose(((u * s.unsqueeze(-2)) @ v.mT).numpy(), wanted, atol=1e-5)


def test_axes_are_those_of_centred_rows() -> None:
    x = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32) + 3
    found = picograd.pca_lowrank(picograd.tensor(x), q=3)[1].numpy()
    wanted = np.linalg.svd(x - x.mean(0), compute_uv=False)[:3]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_eigenvalues_are_the_largest_and_solve_both_forms() -> None:
    x = np.random.default_rng(2).standard_normal((2, 6, 6))
    a, b = x + x.swapaxes(1, 2), x @ x.swapaxes(1, 2) + np.eye(6)
    for matrix in (None, b):
        given = None if matrix is None else picograd.tensor(matrix)
        values, vectors = (y.numpy() for y in picograd.lobpcg(picograd.tensor(a), 2, given))
        right = vectors if matrix is None else matrix @ vectors
        np.testing.assert_allclose(a @ vectors, right * values[:, None], atol=1e-8)
        reduced = a if matrix is None else np.linalg.solve(matrix, a)
        wanted = np.sort(np.linalg.eigvals(reduced).real)[:, :-3:-1]
        np.testing.assert_allclose(values, wanted, rtol=1e-8)
