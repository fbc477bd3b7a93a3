"""Draws with a seed, the run of many programs, and the shortening of one that fails.

A program is a function of its number alone. (hypothesis repeats and simplifies what it has drawn:
of fifty programs of thirty lines seven were repetitions, and many ended in twenty trivial lines.
Shortening needs no library either: a line can go if what is left is legal and still fails.)
"""

import random
from collections.abc import Callable, Sequence
from typing import Any


class Draw:
    """Random choices, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """Draw a whole number; both ends are possible."""
        return self.random.randint(low, high)

    def integers(self, count: int, low: int, high: int) -> list[int]:
        return [self.random.randint(low, high) for _ in range(count)]

    def boolean(self) -> bool:
        return self.random.random() < 0.5

    def choose(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def permutation(self, values: Sequence[Any]) -> list[Any]:
        return self.random.sample(list(values), len(values))


def shortened(
    lines: list[str], fails: Callable[[list[str]], str | None], reason: str
) -> tuple[list[str], str]:
    """Drop lines, long runs first, as long as the rest still fails; returns it and its reason."""
    size = len(lines) // 2
    while size:
        at = 0
        while at < len(lines):
            fewer = lines[:at] + lines[at + size :]
            found = fails(fewer)
            lines, reason = (lines, reason) if found is None else (fewer, found)
            at += size if found is None else 0
        size //= 2
    return lines, reason
