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
    "is_autocast_enabled",
]  # fmt: skip
