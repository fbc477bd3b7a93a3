"""How long memory takes for a product: operands read once, results stored once; boxes brought.

Where a tile has less than a row of the results, several tiles store pieces of it at other times,
which memory takes longer for than for whole rows.
"""

from collections.abc import Sequence

from picograd.code import TensorMap
from picograd.codegen.boxes import ROW_BYTES, Side
from picograd.codegen.operands import Contraction, step_of, stores, sums_in
from picograd.helpers import product
from picograd.schedule.cost import ALIGNED, MISALIGNED
from picograd.schedule.index import Axis, Index

# Measured on an H100 (docs/records/0014-convolutions): bytes of a piece of a row that memory takes
# as fast as a whole one, and how much longer shorter ones take, alone or beside one another.
PIECE, SHORT, BESIDE = 512, 1.25, 1.06
WINDOWED = 2  # times as long as rows: boxes of windows


def elements_stored(c: Contraction, columns: int, is_together: bool = False) -> float:
    """Count elements of results, where tiles have so many columns; pieces as more.

    `is_together`: those of the same rows are stored at the same time.
    """
    longer = BESIDE if is_together else SHORT
    total: float = 0
    count = product(c.sizes[:3]) // c.sums
    for out in stores(c, {}, sums_in(c, ())):
        row = run_of(out.index, c.columns)
        is_piece = columns < row and columns * out.expr.dtype.itemsize < PIECE
        total += count * (longer if is_piece else 1)
    return total


def elements_of(tensor: TensorMap) -> int:
    """Count the elements of an operand: dimensions may overlap."""
    last = [size - 1 for size in tensor.sizes]
    far = [n * stride for n, stride in zip(last, (1, *tensor.strides), strict=True)]
    return min(product(tensor.sizes), sum(far) + 1)


def run_of(index: Index, columns: Sequence[Axis]) -> int:
    """Count the columns that lie next to one another."""
    count = 1
    for axis in reversed(columns):
        if axis.size == 1:
            continue
        if step_of(index, axis) != count:
            break
        count *= axis.size
    return count


def line_cost(side: Side) -> int:
    """Estimate how long an element takes to bring."""
    line = ALIGNED if is_aligned(side) else MISALIGNED
    return WINDOWED * line if side.copy.tensor.windows else line


def is_aligned(side: Side) -> bool:
    """Tell whether the rows of boxes begin where lines of the cache do.

    Along a dimension of one position there is nowhere else to begin.
    """
    tensor = side.copy.tensor
    wide = zip(tensor.sizes[1:], tensor.strides, strict=True)
    places = tensor.offset, *(stride for size, stride in wide if size > 1)
    return all(place * tensor.dtype.itemsize % ROW_BYTES == 0 for place in places)
