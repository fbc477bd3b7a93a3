"""Mixed precision under torch.amp's names."""

import enum

from picograd.dtype import DType
from picograd.nn.grad_scaler import GradScaler
from picograd.tensor.core.autocast import (
    autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_enabled,
)

__all__ = [
    "GradScaler", "autocast", "custom_bwd", "custom_fwd", "get_autocast_dtype",
    "is_autocast_available", "is_autocast_enabled",
]  # fmt: skip
__path__: list[str] = []  # so that Python asks for PyTorch's modules below


class OptState(enum.Enum):
    """This class names what a GradScaler did to the gradients of an optimizer since its step."""

    READY, UNSCALED, STEPPED = 0, 1, 2


def get_autocast_gpu_dtype() -> DType:
    """Give the 16-bit dtype of regions on GPUs: checkpoints of programs open them again.

    >>> import picograd
    >>> picograd.get_autocast_gpu_dtype()
    picograd.float16
    """
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> DType:
    """Give the 16-bit dtype of regions on CPUs.

    >>> import picograd
    >>> picograd.get_autocast_cpu_dtype()
    picograd.bfloat16
    """
    return get_autocast_dtype("cpu")


def is_autocast_cpu_enabled() -> bool:
    """Tell whether a region of mixed precision is open on CPUs.

    >>> import picograd
    >>> picograd.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def clear_autocast_cache() -> None:
    """Accept PyTorch's wish: a weight that is cast is one node, and computed once."""


def is_autocast_cache_enabled() -> bool:
    """Tell that a weight is cast once."""
    return True


def is_autocast_available(device_type: str) -> bool:
    """Tell whether regions of mixed precision are for a kind of device.

    >>> import picograd
    >>> picograd.amp.is_autocast_available("cpu")
    True
    """
    return device_type in ("cpu", "cuda")
