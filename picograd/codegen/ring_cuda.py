"""Rings of stages on Hopper: their barriers in shared memory, and which rows no box fills."""

from collections.abc import Sequence
from dataclasses import dataclass

from picograd.codegen.block_cuda import Block
from picograd.codegen.products_cuda import add
from picograd.codegen.tile import Assign, Step, Tile
from picograd.codegen.tile_pipeline import CopyBox
from picograd.dtype import uint64
from picograd.errors import check
from picograd.helpers import product


@dataclass(frozen=True, slots=True)
class Ring:
    """Stages that the first warpgroup fills, and the barriers that guard them.

    Boxes are copied, `values` are computed by a warp of its own.
    """

    boxes: tuple[CopyBox, ...]
    values: tuple[Assign, ...]
    stages: int
    bytes: int  # of the boxes of one stage
    full: int
    empty: int
    together: int = 1  # blocks that bring boxes to one another
    rank: int = -1  # the number of this one among them


def fillers(ring: Ring) -> int:
    """Count who says that a stage is full: who copies boxes, and who computes values."""
    return 2 if ring.values else 1


def pointer(block: Block, count: int) -> int:
    """Reserve barriers."""
    return block.emitter.add("shared", uint64, arg=block.reserve(8 * count))


def make_ring(block: Block, steps: Sequence[Step]) -> Ring:
    """Reserve the barriers of what some steps fill; without steps there is no ring."""
    boxes = tuple(each for each in steps if isinstance(each, CopyBox))
    values = tuple(each for each in steps if isinstance(each, Assign))
    check(len(boxes) + len(values) == len(steps), "a ring is filled with boxes and values", steps)
    tiles = [block.tiles[each.tile] for each in boxes]
    stages = tiles[0].stages if tiles else 0
    full, empty = (pointer(block, stages) if stages else -1 for _ in range(2))
    size = sum(bytes_of(*each) for each in zip(boxes, tiles, strict=True))
    together = [each.together for each in boxes]
    return Ring(boxes, values, stages, size, full, empty, max(together, default=1))


def bytes_of(step: CopyBox, tile: Tile) -> int:
    """Count what boxes bring to a stage."""
    return product(step.tensor.box) * step.slab.size * tile.dtype.itemsize


def leave_unfilled(block: Block, ring: Ring) -> None:
    """Say which rows of stages no box fills."""
    for each in ring.boxes:
        tile = block.tiles[each.tile]
        itemsize = tile.dtype.itemsize
        count = product(tile.shape)
        filled = bytes_of(each, tile) // itemsize
        for stage in range(ring.stages if filled < count else 0):
            place = block.emitter.integer(stage * count + filled)
            left = (count - filled) * itemsize
            where = block.places[each.tile], place
            add(block, "unfilled", where, left)
