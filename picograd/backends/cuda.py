"""PyTorch's settings of CUDA's libraries; products of float32 are computed in float32 here."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from picograd.engine.backends import is_usable

allow_tf32 = "allow_tf32"
matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=False,
    allow_bf16_reduced_precision_reduction=False,
    fp32_precision="ieee",
)


def is_built() -> bool:
    """Tell whether CUDA can be used."""
    return is_usable("cuda:0")


def accept(enabled: bool = True) -> None:
    """Accept a setting of attention: one kernel computes it."""


enable_flash_sdp = enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = accept


def flash_sdp_enabled() -> bool:
    """Tell that attention is one kernel."""
    return True


mem_efficient_sdp_enabled = math_sdp_enabled = flash_sdp_enabled


@contextmanager
def sdp_kernel(*given: Any, **options: Any) -> Iterator[None]:
    """Accept a choice of kernels for a block."""
    yield
