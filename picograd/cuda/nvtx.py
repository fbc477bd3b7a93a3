"""Ranges of NVIDIA's tools under torch.cuda.nvtx's names: they mark nothing.

`picograd.profile` and `python -m picograd.view` show where time goes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DEPTH = [0]


def range_push(msg: str) -> int:
    """Open a range, and tell how many are open around it.

    >>> import picograd
    >>> picograd.cuda.nvtx.range_push("forward"), picograd.cuda.nvtx.range_pop()
    (0, 0)
    """
    DEPTH[0] += 1
    return DEPTH[0] - 1


def range_pop() -> int:
    """Close a range, and tell how many are open around it."""
    DEPTH[0] = max(DEPTH[0] - 1, 0)
    return DEPTH[0]


def mark(msg: str) -> None:
    """Mark a moment."""


@contextmanager
def range(msg: str, *parts: Any, **named: Any) -> Iterator[None]:
    """Open a range around a block.

    >>> import picograd
    >>> with picograd.cuda.nvtx.range("batch {}", 3):
    ...     pass
    """
    range_push(msg)
    try:
        yield
    finally:
        range_pop()
