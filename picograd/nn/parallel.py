"""Modules on several devices under torch.nn.parallel's names: they run on the one they are on."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from picograd.nn.module import Module
from picograd.tensor.public import cat
from picograd.tensor.tensor import Tensor

__path__: list[str] = []  # so that Python asks for PyTorch's modules below


class DataParallel(Module):
    """This class holds a module, and calls it: one device computes the whole batch.

    >>> from picograd import Tensor, nn
    >>> model = nn.DataParallel(nn.ReLU())
    >>> model(Tensor([-1.0, 2.0])).tolist(), model.module
    ([0.0, 2.0], ReLU())
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        self.module, self.device_ids, self.dim = module, device_ids, dim

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **options)


class DistributedDataParallel(DataParallel):
    """This class holds a module that trains in one process."""

    def __init__(self, module: Module, device_ids: Any = None, *given: Any, **options: Any) -> None:
        super().__init__(module, device_ids)

    def no_sync(self) -> AbstractContextManager[None]:
        """Let gradients add up in a block: one process exchanges none."""
        return nullcontext()

    join = no_sync

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Take what would exchange gradients: one process exchanges none."""


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module: one device computes the whole batch."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Share inputs among devices: one device has all of them."""
    return (inputs,) if isinstance(inputs, Tensor) else [inputs]


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Join outputs of devices."""
    return cat(list(outputs), dim)
