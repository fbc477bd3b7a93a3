"""Pure functions used by three rooms or more. Capped at 150 lines."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, TypeVar

T = TypeVar("T")


def on_demand(module: str, name: str) -> Callable[..., Any]:
    """Make a function that stands for one of a module, which is imported at the first call.

    For what most programs do not need at once: with the kernels and plans of an earlier process,
    that is everything that makes new ones.
    """

    def call(*args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **options)

    call.__module__ = module
    return call


def shown(name: str) -> str:
    """Write a name below the package's, below `torch` where a program knows us as that."""
    is_lent = sys.modules.get("torch") is sys.modules["picograd"]
    return f"torch.{name}" if is_lent else f"picograd.{name}"


def product(sizes: Iterable[int]) -> int:
    """Multiply sizes; 1 for none."""
    return prod(sizes)


def reached(stack: list[T]) -> Iterator[T]:
    """Yield what lies on a stack, each once; the loop puts on it what is reached from there."""
    seen: set[T] = set()
    while stack:
        each = stack.pop()
        if each not in seen:
            seen.add(each)
            yield each


def ceil_div(a: int, b: int) -> int:
    """Divide rounding up."""
    return -(-a // b)


def round_up(a: int, multiple: int) -> int:
    """Round up to the next multiple."""
    return ceil_div(a, multiple) * multiple


def divisors(size: int, most: int) -> list[int]:
    """List the numbers up to a limit that divide a size, 1 the first of them."""
    return [n for n in range(1, max(min(size, most), 1) + 1) if size % n == 0]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major array of this shape; sizes of 0 count as 1."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        size = shape[axis + 1]
        strides[axis] = strides[axis + 1] * (1 if type(size) is int and not size else size)
    return tuple(strides)


def lying_along(axis: int, rank: int) -> tuple[int, ...]:
    """Give the shape that lays a vector along one of some axes: (1, -1, 1)."""
    return tuple([-1 if place == axis % rank else 1 for place in range(rank)])


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause Python's collector: its passes over a growing graph would make a walk quadratic."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Key:
    """A structural key, hashed once: a cache asks for the hash again and again."""

    __slots__ = ("hash", "rows")

    def __init__(self, rows: tuple[Any, ...]) -> None:
        self.rows, self.hash = rows, hash(rows)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key) or self.hash != other.hash:
            return False
        return self.rows == other.rows

    def __repr__(self) -> str:
        return repr(self.rows)


def direct(waits: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    """Leave out what is waited for by way of another: [(), (0,), (0, 1)] -> [(), (0,), (1,)].

    Number n waits for smaller ones only. Sets of numbers are the bits of integers.
    """
    before: list[int] = []  # all that come before each
    found = []
    for waited in waits:
        covered, kept = 0, []
        for number in sorted({*waited}, reverse=True):
            if not covered >> number & 1:
                kept.append(number)
                covered |= before[number] | 1 << number
        before.append(covered)
        found.append(tuple(reversed(kept)))
    return found
