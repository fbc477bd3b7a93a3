"""einops on tensors: `rearrange(x, "b (h d) -> b h d", h=4)`. Imported when einops is."""

import importlib
from collections.abc import Sequence
from typing import Any

from picograd.errors import DTypeError
from picograd.tensor.making.from_data import tensor
from picograd.tensor.public import einsum
from picograd.tensor.tensor import Tensor

AbstractBackend: Any = importlib.import_module("einops._backends").AbstractBackend
REDUCTIONS = {"min": "amin", "max": "amax"}  # over several axes; others have the same name


class Backend(AbstractBackend):  # type: ignore[misc]
    """This class tells einops how our tensors are turned, reduced and joined."""

    framework_name = "picograd"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Tell whether something is a tensor of ours."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Tensor:
        """Make a tensor."""
        return tensor(x)

    def to_numpy(self, x: Tensor) -> Any:
        """Read a tensor."""
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """Count."""
        return Tensor.arange(start, stop)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        """Reduce axes."""
        function = getattr(x, REDUCTIONS.get(operation, operation), None)
        if function is None:
            raise DTypeError("reduce", f"there is no reduction {operation!r}", "use a name of ours")
        return function(tuple(axes))

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """Put the axes into another order."""
        return x.permute(*axes)

    def stack_on_zeroth_dimension(self, tensors: Sequence[Tensor]) -> Tensor:
        """Stack tensors along a new first axis."""
        return Tensor.stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """Add an axis of size 1."""
        return x.unsqueeze(new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
        """Add axes, along which the tensor is repeated."""
        sizes = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = length
        return x.expand(*sizes)

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        """Repeat a tensor along its axes."""
        return x.repeat(*repeats)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join tensors along an axis."""
        return Tensor.cat(tensors, axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Tell whether means exist."""
        return x.dtype.is_float

    def layers(self) -> Any:
        """Give the module of einops' layers."""
        return importlib.import_module("einops.layers.picograd")

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """Multiply and sum."""
        return einsum(pattern, *x)
