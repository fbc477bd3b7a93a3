"""Products of bfloat16 by the tile registers of a CPU: what one instruction of a Program means."""

from typing import Any

import numpy as np

from picograd.conversion import from_bits
from picograd.dtype import bfloat16
from picograd.late_methods import dataclass

TILE, STEP = 16, 32  # rows of a tile of results, elements of K that it adds at once
Array = Any


@dataclass(frozen=True, slots=True)
class TileProduct:
    """acc += a b, of `rows` by `columns` tiles and 32 elements of K a step, all of them in memory.

    `acc_row`, `a_row`, `b_row`: elements from one row to the next; a row of b is two of K, whose
    elements stand in turn. `is_first`: acc is set. Subnormal numbers count as 0.
    """

    rows: int
    columns: int
    steps: int
    acc_row: int
    a_row: int
    b_row: int
    is_first: bool

    def add(self, acc: tuple[Array, int], a: tuple[Array, int], b: tuple[Array, int]) -> None:
        """Compute it in flat arrays, of which each begins at a place: float32, and bits."""
        rows = TILE * self.rows
        columns = TILE * self.columns
        depth = STEP * self.steps
        at = places(acc[1], rows, columns, self.acc_row)
        a_at = places(a[1], rows, depth, self.a_row)
        b_at = places(b[1], depth // 2, 2 * columns, self.b_row)
        left = from_bits(a[0][a_at], bfloat16)
        pairs = from_bits(b[0][b_at], bfloat16)
        right = unpaired(pairs, columns)
        made = left.astype(np.float64) @ right.astype(np.float64)
        acc[0][at] = made if self.is_first else acc[0][at] + made


def multiply_tiles(run: Any, instr: Any) -> None:
    """Run the instruction of a Program that adds a product (interpret_program.py)."""
    pointers = instr.args[::2]
    memory = [run.view(pointer)[0] for pointer in pointers]
    indices = [run.values[place] for place in instr.args[1::2]]
    starts = [int(index[0, 0]) for index in indices]
    product: TileProduct = instr.arg
    operands = zip(memory, starts, strict=True)
    product.add(*operands)


def places(start: int, rows: int, columns: int, step: int) -> Array:
    """List where the elements of a block are."""
    first: Array = start + np.arange(rows) * step
    return first[:, None] + np.arange(columns)


def unpaired(pairs: Array, columns: int) -> Array:
    """Give the rows of an operand [k, n] of which pairs stand in turn, [k / 2, n * 2]."""
    apart = pairs.reshape(-1, columns, 2)
    return apart.swapaxes(1, 2).reshape(-1, columns)
