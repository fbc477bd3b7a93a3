"""PyTorch's settings of cuDNN; kernels here are generated, and the same at every run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """Tell that cuDNN is not used."""
    return False


def version() -> int | None:
    """Tell the version of cuDNN: it is not used."""
    return None


@contextmanager
def flags(*given: Any, **options: Any) -> Iterator[None]:
    """Accept settings for a block."""
    yield
