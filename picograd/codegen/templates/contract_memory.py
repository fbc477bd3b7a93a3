"""How long memory takes for a product: operands read once, results stored once; boxes brought.

Where a tile has less than a row of the results, several tiles store pieces of it at other times,
which memory takes longer for than for whole rows.
"""

from collections.abc import Sequence

from picograd.code import TensorMap
from picograd.codegen.boxes import ROW_BYTES, Side
from picograd.codegen.operands import Contraction, step_of, stores
from picograd.helpers import product
from picograd.schedule.cost import ALIGNED, MISALIGNED
from picograd.schedule.index import Axis, Index
from picograd.schedule.loop import Expr

# Measured on an H100 and an H200 (docs/records/0014-convolutions): products of two elements that a
# processor computes while memory passes a byte; bytes of a piece of a row that is as fast as a
# whole one; how much longer shorter ones take.
BYTE, PIECE, SHORT = 100, 512, 1.25
WINDOWED = 2  # times as long as rows: boxes of windows


def pass_time(c: Contraction, tensors: Sequence[TensorMap], columns: int, blocks: int) -> float:
    """Estimate the time of all bytes, where tiles have so many columns."""
    total: float = sum(bytes_of(each) for each in tensors)
    acc = Expr("tile", (), ("acc", ()), c.dtype)
    count = product(c.sizes[:3])
    for out in stores(c, {}, {c.number: acc}):
        itemsize = out.expr.dtype.itemsize
        row = run_of(out.index, c.columns)
        is_piece = columns < row and columns * itemsize < PIECE
        total += count * itemsize * (SHORT if is_piece else 1)
    return total * BYTE / blocks


def bytes_of(tensor: TensorMap) -> int:
    """Count the bytes of an operand: dimensions may overlap."""
    last = [size - 1 for size in tensor.sizes]
    far = [n * stride for n, stride in zip(last, (1, *tensor.strides), strict=True)]
    count = min(product(tensor.sizes), sum(far) + 1)
    return count * tensor.dtype.itemsize


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
    """Tell whether the rows of boxes begin where lines of the cache do."""
    tensor = side.copy.tensor
    places = tensor.offset, *tensor.strides
    return all(place * tensor.dtype.itemsize % ROW_BYTES == 0 for place in places)
