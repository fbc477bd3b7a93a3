"""PyTorch's settings of oneDNN, which is not used."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled = False


def is_available() -> bool:
    """Tell that oneDNN is not used."""
    return False


@contextmanager
def flags(*given: Any, **options: Any) -> Iterator[None]:
    """Accept settings for a block."""
    yield
