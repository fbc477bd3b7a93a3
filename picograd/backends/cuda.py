"""PyTorch's settings of CUDA's libraries; of them `matmul` alone says how kernels compute."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from picograd.config import config
from picograd.engine.backends import is_usable
from picograd.errors import ValueRangeError

allow_tf32 = "allow_tf32"


class Products:
    """How products are computed; the two settings of float32 are one, that of convolutions too.

    See `picograd.set_float32_matmul_precision`.
    """

    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False

    @property
    def allow_tf32(self) -> bool:
        """Whether GPUs may read 10 of the 23 bits of a float32's mantissa."""
        return bool(config.tf32)

    @allow_tf32.setter
    def allow_tf32(self, is_allowed: bool) -> None:
        config.tf32 = int(is_allowed)

    @property
    def fp32_precision(self) -> str:
        """The same as a word: "tf32", or "ieee" for float32 as it is."""
        return "tf32" if config.tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("tf32", "ieee", "none"):
            fix = 'use "tf32" or "ieee"'
            raise ValueRangeError("fp32_precision", f"{precision!r} is unknown", fix)
        self.allow_tf32 = precision == "tf32"


matmul = Products()


def is_built() -> bool:
    """Tell whether CUDA can be used."""
    return is_usable("cuda:0")


def accept(enabled: Any = True) -> None:
    """Accept a setting of attention or of linear algebra: one kernel computes it."""


preferred_linalg_library = preferred_blas_library = accept
enable_flash_sdp = enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = accept


def flash_sdp_enabled() -> bool:
    """Tell that attention is one kernel."""
    return True


mem_efficient_sdp_enabled = math_sdp_enabled = flash_sdp_enabled


@contextmanager
def sdp_kernel(*given: Any, **options: Any) -> Iterator[None]:
    """Accept a choice of kernels for a block."""
    yield
