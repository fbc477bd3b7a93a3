"""Decompositions whose results have no gradient, or no sign: as PyTorch's."""

from typing import Any

import numpy as np
from op_support import Case, compare, library, lin, numbers

import picograd
from picograd import Tensor

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
