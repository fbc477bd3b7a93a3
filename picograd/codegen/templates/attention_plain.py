"""Attention on CUDA cores: what the kernels for Hopper mean, with threads that do it all.

The steps of a block are those of `attention_cuda` and `attention_gradient_cuda`, said otherwise:

    persistent loop    a grid of its points
    pipeline           a loop over the blocks that a mask shows
    boxes              loads of the elements that there are, 0 elsewhere
    fragments          patches of rows and columns, spread over 8 x 16 threads
    left operands      shared tiles, with barriers between who writes and who multiplies

Float32 runs like this: its products are exact to the last bits, and scores are nowhere in memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from picograd.codegen.boxes import CopyBox, Persistent, Pipeline
from picograd.codegen.dot import Dot
from picograd.codegen.layout import Blocked, Layout, WgmmaOperand
from picograd.codegen.operands import guarded
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    For,
    LastBlock,
    Step,
    Store,
    Tile,
    TilePart,
    When,
)
from picograd.errors import internal
from picograd.helpers import product
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Expr

THREADS = (8, 16)  # along rows and columns of a tile
COUNT = product(THREADS)
LANES = 4  # columns of a thread, next to one another
WIDE = LANES * THREADS[1]


def plain(part: TilePart) -> TilePart:
    """Write a part without roles, rings, boxes and fragments."""
    (loop,) = part.steps
    if not isinstance(loop, Persistent):
        internal("attention is a persistent loop", part)
    packed = {tile.name for tile in part.tiles if isinstance(tile.layout, WgmmaOperand)}
    tiles = {tile.name: plain_tile(tile) for tile in part.tiles}
    steps = tuple(Plain(tiles, packed).every(loop.body))
    return TilePart(loop.points, tuple(tiles.values()), steps, part.workspaces)


def shared_bytes(part: TilePart) -> int:
    """Count the bytes of the shared tiles of a part."""
    total = 0
    for tile in part.tiles:
        if tile.space == "shared":
            *above, columns = tile.shape
            row = columns + tile.row_padding
            total += product(above) * row * tile.dtype.itemsize
    return total


def plain_tile(tile: Tile) -> Tile:
    """Lay a tile out for all threads: in patches, or in shared memory."""
    is_packed = isinstance(tile.layout, WgmmaOperand)
    if tile.space == "shared" or is_packed:
        padding = LANES if len(tile.shape) > 1 else 0  # rows begin in different banks
        return Tile(tile.name, tile.shape, tile.dtype, "shared", row_padding=padding)
    if tile.space == "register" and not isinstance(tile.layout, Blocked):
        return replace(tile, layout=patches(tile.shape))
    return tile


def patches(shape: Sequence[int]) -> Blocked:
    """Spread rows, or rows and columns, over the threads."""
    lanes = LANES if len(shape) > 1 and shape[1] % WIDE == 0 else 1
    count = len(shape)
    return Blocked(tuple(shape), THREADS[:count], (1, lanes)[:count])


class Plain:
    """This class rewrites steps; `packed` are the left operands that threads write."""

    def __init__(self, tiles: dict[str, Tile], packed: set[str]) -> None:
        self.tiles, self.packed = tiles, packed
        self.is_written = False  # a shared tile, since the last barrier
        self.known: dict[Axis, Index] = {}  # of a position

    def every(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Rewrite steps in order."""
        for step in steps:
            yield from self.one(step)

    def one(self, step: Step) -> Iterator[Step]:
        """Rewrite one step."""
        if isinstance(step, CopyBox):
            yield self.copy(step)
        elif isinstance(step, Pipeline):
            yield self.loop(step)
        elif isinstance(step, Dot):
            if self.is_written:
                yield Barrier()
                self.is_written = False
            yield replace(step, unit="fma")
        elif isinstance(step, When):
            tests = [(substitute(i, self.known), lo, hi) for i, lo, hi in step.conditions]
            yield When(tuple(tests), tuple(self.every(step.body)))
        elif isinstance(step, For):
            yield replace(step, body=tuple(self.every(step.body)))
        elif isinstance(step, LastBlock):
            yield step
        elif isinstance(step, Assign | Accumulate | Store):
            yield self.laid_out(step)
        else:
            yield step

    def laid_out(self, step: Assign | Accumulate | Store) -> Step:
        """Let the threads of a step walk in patches."""
        over = step.over if isinstance(step, Accumulate) else ()
        layout: Layout | None = patches([axis.size for axis in (*step.dims, *over)])
        if isinstance(step, Assign):
            self.is_written |= self.tiles[step.tile].space == "shared"
            is_values = self.tiles[step.tile].space == "shared" and step.tile not in self.packed
            layout = None if is_values else layout
        return replace(step, layout=layout)

    def copy(self, step: CopyBox) -> Step:
        """Load the elements of a box that are in the array."""
        self.is_written = True
        tensor = step.tensor
        span, rows, *_ = tensor.box
        shape = rows, self.tiles[step.tile].shape[1]
        far, near = Axis("far", shape[0]), Axis("near", shape[1])
        inside = axis_index(far) + step.start // span, axis_index(near)
        begin = {step.slab: constant(0), **self.known}
        start, first, *rest = (substitute(index, begin) for index in step.at)
        column = start + axis_index(near)
        row = first + axis_index(far)
        index = constant(tensor.offset) + column
        places: list[Index] = [row, *rest]
        for place, stride in zip(places, tensor.strides, strict=True):
            index = index + place * stride
        width, height, *_ = tensor.sizes
        bounds: list[Condition] = [(column, 0, width - 1), (row, 0, height - 1)]
        load = Expr("load", (), (tensor.slot, index), tensor.dtype)
        layout = Blocked(shape, THREADS, (1, LANES))
        return Assign(step.tile, (far, near), guarded(load, bounds), inside, layout)

    def loop(self, step: Pipeline) -> Step:
        """Write a main loop over the blocks that a mask shows."""
        self.known = dict(step.known)
        body = (*self.every(step.produce), *self.every(step.consume), Barrier())
        self.is_written = False
        here, conditions = axis_index(step.axis), []
        if step.first is not None:
            index = here - step.first
            conditions.append((index, 0, max(index.hi, 0)))
        if step.stop is not None:
            index = step.stop - here
            conditions.append((index, 1, max(index.hi, 1)))
        if step.seen is not None:
            seen = substitute(step.seen, self.known)
            conditions.append((seen, 0, max(seen.hi, 0)))
        return For(step.axis, (When(tuple(conditions), body),) if conditions else body)
