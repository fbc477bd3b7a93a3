"""Complex samples, and how results are compared with PyTorch's."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

RNG = np.random.default_rng(0)
Z = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex128)
W = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype(np.complex128)


def both(name: str, *arrays: Any, dim: tuple[Any, ...] = ()) -> tuple[Any, Any]:
    """Call a function of both libraries."""
    torch = pytest.importorskip("torch")
    given = [Tensor(x) if isinstance(x, np.ndarray) else x for x in arrays]
    wanted = [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in arrays]
    return getattr(picograd, name)(*given, *dim), getattr(torch, name)(*wanted, *dim)


def check(found: Any, wanted: Any, rtol: float = 1e-9) -> None:
    if isinstance(found, tuple):
        for each, other in zip(found, wanted, strict=True):
            check(each, other, rtol)
        return
    expected = wanted.detach().resolve_conj().numpy()
    assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol, rtol)
