"""The register block of a product on a CPU: how many rows and vectors are summed at once."""

from collections.abc import Iterator
from itertools import islice

from picograd.helpers import ceil_div, round_up


def register_block(
    m: int, n: int, lanes: int, registers: int, divides: bool = False
) -> tuple[int, int]:
    """Rows and vectors of the register block: three quarters of the registers accumulate.

    The block that wastes least at the edges; wide ones first, as they load less: per depth, rows +
    vectors loads feed rows * vectors multiply-adds. 6 x 4 beats 8 x 3 and 12 x 2 (Zen 4, 1024^3).
    """
    best, found = 0.0, (1, 1)
    for vectors in range(1, min(4, ceil_div(n, lanes)) + 1):
        accumulating = registers * 3 // 4
        most = min(accumulating // vectors, 14)
        if vectors * (most + 1) >= registers:
            continue
        for height in heights(m, most, divides):
            rows = round_up(m, height)
            columns = round_up(n, vectors * lanes)
            loads = (height + vectors) / (height * vectors)
            cost = rows * columns * (1 + 0.2 * loads)
            if not best or cost < best:
                best, found = cost, (height, vectors)
    return found


def heights(m: int, most: int, divides: bool) -> Iterator[int]:
    """List heights worth trying: the tallest and, if wanted, one that divides the rows."""
    groups = ceil_div(m, most)
    yield ceil_div(m, groups) if groups <= 8 else most
    lowest = most // 2 if divides else most
    divisors = (height for height in range(most, lowest, -1) if m % height == 0)
    yield from islice(divisors, 1)
