"""The functions of `safetensors.torch` for our tensors: `safetensors.picograd` has them.

Files lie as those of the package: each reads what the other wrote.
"""

import io
import os
from collections.abc import Mapping
from typing import Any

from picograd.nn import state
from picograd.nn.module import Module
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.tensor import Tensor

__all__ = ["load", "load_file", "load_model", "save", "save_file", "save_model"]

File = str | os.PathLike[str]
Text = Mapping[str, str]


def save(tensors: Mapping[str, Tensor], metadata: Text | None = None) -> bytes:
    """Write tensors by name as the bytes of a file.

    >>> from picograd.nn.safetensors_names import load, save
    >>> load(save({"a": Tensor([1.0, 2.0])}))["a"].tolist()
    [1.0, 2.0]
    """
    file = io.BytesIO()
    header, checked = state.prepared(tensors, metadata)
    state.write(file, header, checked)
    return file.getvalue()


def save_file(tensors: Mapping[str, Tensor], filename: File, metadata: Text | None = None) -> None:
    """Write tensors by name, and text about them, to a file."""
    state.save(tensors, filename, metadata)


def load(data: bytes) -> dict[str, Tensor]:
    """Read the bytes of a file."""
    file, size = io.BytesIO(data), len(data)
    tensors: dict[str, Tensor] = state.read(file, size, "the bytes")
    return tensors


def load_file(filename: File, device: DeviceLike = "cpu", **reading: Any) -> dict[str, Tensor]:
    """Read the tensors of a file by name."""
    tensors: dict[str, Tensor] = state.load(filename, device)
    return tensors


def save_model(model: Module, filename: File, metadata: Text | None = None, **how: Any) -> None:
    """Write the state of a module."""
    save_file(model.state_dict(), filename, metadata)


def load_model(
    model: Module, filename: File, strict: bool = True, device: DeviceLike = "cpu", **reading: Any
) -> tuple[list[str], list[str]]:
    """Read the state of a module; give the names that were missing, and those not expected."""
    tensors = load_file(filename, device)
    missing, unexpected = model.load_state_dict(tensors, strict=strict)
    return missing, unexpected


def storage_ptr(tensor: Tensor) -> int:
    """Give the address of the memory a tensor is in."""
    address: int = tensor.data_ptr()
    return address


def storage_size(tensor: Tensor) -> int:
    """Count the bytes of the memory a tensor is in."""
    return tensor.nbytes
