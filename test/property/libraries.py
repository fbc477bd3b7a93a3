"""One small library in two makes, picograd and PyTorch, so that a program's text runs on both."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.nn import functional

torch = pytest.importorskip("torch")
F = torch.nn.functional

FLOATS = {"float64", "float32", "float16", "bfloat16"}


def contents(shape: Sequence[int], seed: int, dtype: str) -> Any:
    """Small whole numbers for every dtype (floats stay exact) or, for odd seeds, fractions."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        whole = random.integers(-4, 5, shape).astype(np.float64)
        return whole if seed % 2 == 0 else random.standard_normal(shape).astype(np.float32) * 1.0
    return random.integers(0 if dtype[0] == "u" else -4, 5, shape).astype(dtype)


class Picograd:
    """Programs on picograd."""

    def __init__(self, device: str, shift: int = 0) -> None:
        self.device, self.shift = device, shift

    def __getattr__(self, name: str) -> Any:
        return getattr(functional if hasattr(functional, name) else picograd, name)

    def leaf(self, shape: Sequence[int], seed: int, dtype: str) -> Tensor:
        values = contents(shape, seed + self.shift, dtype)
        return Tensor(values, dtype=dtype, device=self.device)

    def index(self, shape: Sequence[int], seed: int, bound: int, low: int = 0) -> Tensor:
        values = np.random.default_rng(seed).integers(low, bound, shape)
        return Tensor(values, dtype="int64", device=self.device)

    def order(self, size: int, seed: int) -> Tensor:
        return Tensor(np.random.default_rng(seed).permutation(size), "int64", device=self.device)

    @staticmethod
    def cast(x: Tensor, dtype: str) -> Tensor:
        return x.clone() if x.dtype.name == dtype else x.cast(dtype)

    @staticmethod
    def pad(x: Tensor, padding: Sequence[int], value: float = 0.0) -> Tensor:
        return x.pad(tuple(padding), value=value)

    @staticmethod
    def assign(x: Tensor, value: Tensor) -> Tensor:
        return x.assign(value.cast(x.dtype))

    @staticmethod
    def realize(*tensors: Tensor) -> None:
        tensors[0].realize(*tensors[1:])

    @staticmethod
    def contiguous(x: Tensor) -> Tensor:
        return x.contiguous()


class PyTorch:
    """Programs on PyTorch on the CPU; every float dtype is `float_dtype`, or as named for None."""

    def __init__(self, float_dtype: torch.dtype | None, shift: int = 0) -> None:
        self.float_dtype, self.shift = float_dtype, shift

    def __getattr__(self, name: str) -> Any:
        return getattr(torch if hasattr(torch, name) else F, name)

    def dtype(self, name: str) -> torch.dtype:
        is_wide = name in FLOATS and self.float_dtype is not None
        return self.float_dtype if is_wide else getattr(torch, name)

    def leaf(self, shape: Sequence[int], seed: int, dtype: str) -> torch.Tensor:
        values = np.asarray(contents(shape, seed + self.shift, dtype))
        return torch.from_numpy(values).to(self.dtype(dtype))

    def index(self, shape: Sequence[int], seed: int, bound: int, low: int = 0) -> torch.Tensor:
        return torch.from_numpy(np.asarray(np.random.default_rng(seed).integers(low, bound, shape)))

    def order(self, size: int, seed: int) -> torch.Tensor:
        return torch.from_numpy(np.random.default_rng(seed).permutation(size))

    def cast(self, x: torch.Tensor, dtype: str) -> torch.Tensor:
        return x.to(self.dtype(dtype)).clone()  # to the same dtype it would be no copy

    @staticmethod
    def pad(x: torch.Tensor, padding: Sequence[int], value: float = 0.0) -> torch.Tensor:
        return F.pad(x, tuple(padding), value=value)

    @staticmethod
    def layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> torch.Tensor:
        return F.layer_norm(x, shape, weight, bias, eps)

    @staticmethod
    def assign(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        if x.shape != value.shape:
            raise ValueError("assign never broadcasts")
        return x.copy_(value)

    @staticmethod
    def realize(*tensors: torch.Tensor) -> None:
        """Nothing waits in PyTorch."""

    @staticmethod
    def contiguous(x: torch.Tensor) -> torch.Tensor:
        return x.contiguous()
