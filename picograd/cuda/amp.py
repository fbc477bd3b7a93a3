"""Mixed precision under torch.cuda.amp's names: that of `picograd.amp` on "cuda"."""

from typing import Any

from picograd.nn import grad_scaler
from picograd.tensor.core import autocast as regions
from picograd.tensor.core.annotations import DTypeLike
from picograd.tensor.core.autocast import custom_bwd as custom_bwd
from picograd.tensor.core.autocast import custom_fwd as custom_fwd


class autocast(regions.autocast):
    """This class opens a region of mixed precision on GPUs; float16 unless told otherwise.

    >>> import picograd
    >>> with picograd.cuda.amp.autocast(enabled=False):
    ...     picograd.is_autocast_enabled("cuda")
    False
    """

    def __init__(
        self, enabled: bool = True, dtype: DTypeLike | None = None, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled)


class GradScaler(grad_scaler.GradScaler):
    """This class scales losses on a GPU; without one it changes nothing."""

    def __init__(self, init_scale: float = 65536.0, *given: Any, **options: Any) -> None:
        super().__init__("cuda", init_scale, *given, **options)
