"""PyTorch's settings of oneDNN, MKL, OpenMP and `opt_einsum`, which are not used."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = False
strategy: str | None = None


def set_flags(*given: Any, **options: Any) -> None:
    """Accept settings."""


def is_available() -> bool:
    """Tell that such a library is not used."""
    return False


@contextmanager
def flags(*given: Any, **options: Any) -> Iterator[None]:
    """Accept settings for a block."""
    yield
