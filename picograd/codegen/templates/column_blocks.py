"""Column blocks: how the blocks of a GPU share the columns of a reduction that is cut over them.

    block (tile of columns, chunk of rows):  leaves its partial results
    the last block of a tile of columns:     combines those of all chunks, in order

So a tile should be narrow enough for what its last block reads, and a chunk long enough for what
that takes.
"""

from picograd.codegen.templates.grid import Cut, cut
from picograd.codegen.templates.map import vector_lanes
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Kernel, Part
from picograd.target import Target

CUDA_COLUMN_THREADS = 32
LEAST_WIDE, LAST_READ = 32, 2048  # columns of a block; partial results that the last block reads
LEAST_OF_BLOCK, LEAST_OF_COLUMNS = 4096, 8192  # elements, the second if BUSY blocks are left
BUSY = 64
BLOCKS_OF_COLUMNS = 4  # whose threads read several rows ahead, and leave longer partial results
BLOCKS_OF_SUMS = 3  # the same, of several sums: all of them are there at once


def piece_count(part: Part, length: int, target: Target) -> int:
    """Choose into how many pieces the `length` rows of columns are cut."""
    columns = product(axis.size for axis in part.rows)
    blocks = blocks_of_columns(part, target)
    width = split_width(columns, blocks)
    tiles = ceil_div(columns, width)
    wanted = ceil_div(blocks, tiles)
    # A block should reduce as many elements, or the combination costs more than it saves.
    elements = length * min(columns, width)
    pieces = elements // LEAST_OF_BLOCK
    if pieces * tiles > BUSY:  # the last block reads what all left, column by column
        pieces = max(elements // LEAST_OF_COLUMNS, BUSY // tiles)
    return max(1, min(wanted, pieces))


def blocks_of_columns(part: Part, target: Target) -> int:
    """Count the blocks that share columns: as many as run at once."""
    each = blocks_together(part) or BLOCKS_OF_COLUMNS
    return each * target.multiprocessors


def blocks_together(part: Part) -> int:
    """Count the blocks that a multiprocessor has to hold, if each has several sums; else 0.

    Several sums take registers: a kernel has to be told to leave some to the other blocks.
    """
    reductions = [compute for compute in part.computes if compute.reduce]
    return BLOCKS_OF_SUMS if len(reductions) > 1 else 0


def cut_columns(kernel: Kernel, part: Part, target: Target) -> Cut:
    """Cut columns that blocks share in tiles of whole vectors."""
    *outer, last = part.rows
    columns = product(axis.size for axis in part.rows)
    width = split_width(columns, blocks_of_columns(part, target))
    return cut((last,), width, vector_lanes(kernel, part, last)).with_grid(outer)


def split_width(columns: int, blocks: int) -> int:
    """Choose how many columns a block has a share of, of so many that `blocks` share.

    The last block of each tile of columns reads what the others left, alone: that of a narrow tile
    has fewer columns, of fewer blocks.
    """
    width = CUDA_COLUMN_THREADS * 4
    while width > LEAST_WIDE and blocks * width > LAST_READ * ceil_div(columns, width):
        width //= 2
    return width


def even_chunk(size: int, chunk: int, step: int) -> int:
    """Cut `size` rows evenly, in whole steps of a block, if chunks up to twice as long do.

    Nothing is guarded then, so that several loads are under way.
    """
    first = round_up(chunk, step)
    for found in range(first, 2 * first, step):
        if size % found == 0:
            return found
    return chunk


def side_by_side(split: Axis, within: Axis, step: int) -> Index:
    """Let blocks read `step` rows each beside one another, from the last ones to the first.

    The kernel before has left the last rows in the cache, and the next one begins with the first.
    """
    row = axis_index(within)
    last = within.size // step - 1
    turn = row // step * -1 + last
    block = turn * split.size + axis_index(split)
    return block * step + row % step
