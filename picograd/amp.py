"""Mixed precision under torch.amp's names."""

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


def is_autocast_available(device_type: str) -> bool:
    """Tell whether regions of mixed precision are for a kind of device.

    >>> import picograd
    >>> picograd.amp.is_autocast_available("cpu")
    True
    """
    return device_type in ("cpu", "cuda")
