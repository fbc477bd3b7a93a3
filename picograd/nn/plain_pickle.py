"""What plain `pickle` calls for tensors that PyTorch pickled, where picograd is called `torch`.

A tensor is a view of a storage, and a storage the bytes of a file that `torch.save` wrote.
"""

from io import BytesIO
from typing import Any

from picograd.nn.parameter import Parameter
from picograd.nn.torch_file import read_torch
from picograd.nn.torch_pickle import shown
from picograd.tensor.tensor import Tensor


def _load_from_bytes(content: bytes) -> Tensor:
    """Read a storage: a flat tensor."""
    found: Tensor = read_torch(BytesIO(content), len(content), "the pickled storage", "cpu")
    return found


def _rebuild_tensor_v2(
    storage: Tensor,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """Make the tensor that looks at a storage through an offset, sizes and strides."""
    made = shown(storage, storage_offset, tuple(size), tuple(stride))
    return made.requires_grad_(requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """Make a parameter of a tensor."""
    return Parameter(data, requires_grad)
