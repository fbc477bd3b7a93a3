"""The tensor room: the class `Tensor` and the functions on nodes behind its methods.

PyTorch's `torch.tensor(data)` is this package called: `picograd.tensor(data)`.
"""

import importlib
import sys
import types
from typing import Any


class TensorRoom(types.ModuleType):
    """This class is the package as a function: it makes a leaf tensor of data."""

    def __call__(
        self, data: Any, *, dtype: Any = None, device: Any = None,
        requires_grad: bool | None = None, pin_memory: Any = False,
    ) -> Any:  # fmt: skip
        """Make a tensor of data: numbers, nested lists, an array, a Tensor.

        Host memory is what the device's library gives: `pin_memory` changes nothing.

        >>> import picograd
        >>> picograd.tensor([1, 2]).dtype
        picograd.int64
        """
        room = importlib.import_module("picograd.tensor.tensor")
        return room.Tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


sys.modules[__name__].__class__ = TensorRoom
