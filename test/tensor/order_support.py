"""Comparing functions of one tensor, which may give several results, with PyTorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from picograd import Tensor

torch = pytest.importorskip("torch")

DEVICE = ["cpu"]


@pytest.fixture(autouse=True)
def chosen_device(device: str) -> None:
    """Run the tests of the files that import it on the chosen device."""
    DEVICE[0] = device


def listed(result: Any) -> list[Any]:
    """Give one result or several as a list."""
    return [result] if isinstance(result, (Tensor, torch.Tensor)) else list(result)


def compare(function: Callable[[Any], Any], array: Any, tolerance: float = 1e-9) -> None:
    found = listed(function(Tensor(array, device=DEVICE[0])))
    wanted = listed(function(torch.from_numpy(array)))
    for ours, theirs in zip(found, wanted, strict=True):
        got, expected = ours.numpy(), theirs.numpy()
        assert got.shape == expected.shape and got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def compare_gradients(function: Callable[[Any], Any], array: Any, tolerance: float = 1e-9) -> None:
    x = Tensor(array, requires_grad=True, device=DEVICE[0])
    y = torch.from_numpy(array).requires_grad_()
    found, wanted = listed(function(x))[0], listed(function(y))[0]
    weights = np.asarray(np.random.default_rng(1).normal(size=wanted.shape))
    (found * Tensor(weights, device=DEVICE[0])).sum().backward()
    (wanted * torch.from_numpy(weights)).sum().backward()
    assert x.grad is not None and y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=tolerance, atol=tolerance)
