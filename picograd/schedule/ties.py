"""Ties: which groups belong together, one tie after the other."""

from collections.abc import Iterable


class Ties:
    """Numbers that belong together."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.above = {number: number for number in numbers}

    def head(self, number: int) -> int:
        """Find the number that stands for those it belongs to."""
        above = self.above
        while above[number] != number:
            farther = above[above[number]]
            above[number] = farther
            number = farther
        return number

    def tie(self, one: int, other: int) -> None:
        """Let two numbers belong together."""
        heads = self.head(one), self.head(other)
        first, second = sorted(heads)
        self.above[second] = first
