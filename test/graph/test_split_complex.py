"""Graphs with complex numbers run: writes, traces, files, other libraries."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from complex_support import W, Z

import picograd
from picograd import Tensor
from picograd.errors import DTypeError

torch = pytest.importorskip("torch")


def test_writes_in_place() -> None:
    z, expected = Tensor(Z.copy()), Z.copy()
    z[0] = 1j
    z[1, ::2] += 2
    z[z.abs() > 1.5] = 0
    z.mul_(2 - 1j).add_(Tensor(W))
    expected[0], expected[1, ::2] = 1j, expected[1, ::2] + 2
    expected[np.abs(expected) > 1.5] = 0
    np.testing.assert_allclose(z.numpy(), expected * (2 - 1j) + W)
    z.index_add_(0, Tensor([0, 0]), Tensor(W[:2]))
    with pytest.raises(DTypeError):
        Tensor([1.0]).add_(1j)


def test_nothing_has_parts_too() -> None:
    z = picograd.zeros(0, 3, dtype=picograd.complex64, requires_grad=True)
    pairs = picograd.stack([z, z], -1)
    assert pairs.numpy().shape == (0, 3, 2) and pairs.dtype is picograd.complex64
    (gradient,) = picograd.autograd.grad(pairs.sum(), z)
    assert gradient.numpy().shape == (0, 3)


def test_jit_and_vmap() -> None:
    traced = picograd.jit(lambda z, w: (z @ w.conj().T).exp() + z.sum())
    for factor in (1, 2j):
        wanted = np.exp(Z * factor @ W.conj().T) + (Z * factor).sum()
        np.testing.assert_allclose(traced(Tensor(Z * factor), Tensor(W)).numpy(), wanted, 1e-9)
    rows = picograd.vmap(lambda z: (z * z.conj()).real.sum())(Tensor(Z))
    np.testing.assert_allclose(rows.numpy(), (np.abs(Z) ** 2).sum(1))


def test_other_libraries() -> None:
    z = Tensor(Z)
    np.testing.assert_array_equal(np.from_dlpack(z), Z)
    assert torch.equal(torch.from_dlpack(z), torch.tensor(Z))
    np.testing.assert_array_equal(Tensor(torch.tensor(Z)).numpy(), Z)
    np.testing.assert_array_equal(picograd.from_numpy(Z.copy()).numpy(), Z)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_files(tmp_path: Path, dtype: Any) -> None:
    z = Tensor(Z.astype(dtype))
    file = io.BytesIO()
    picograd.save({"z": z}, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=True)["z"], torch.tensor(Z.astype(dtype)))
    torch.save({"z": torch.tensor(Z.astype(dtype))}, tmp_path / "z.pt")
    np.testing.assert_array_equal(picograd.load(tmp_path / "z.pt")["z"].numpy(), z.numpy())
    if dtype is np.complex64:
        picograd.save({"z": z}, tmp_path / "z.safetensors")
        loaded = picograd.load(tmp_path / "z.safetensors")["z"]
        np.testing.assert_array_equal(loaded.numpy(), z.numpy())
