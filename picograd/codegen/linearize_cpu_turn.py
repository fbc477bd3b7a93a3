"""Turning tiles round on a CPU: 16 rows of memory become 16 columns of a tile, or the other way.

    for rows, elements in blocks of 16 x 16 (less, if a vector of the target holds fewer):
      16 vectors of elements -> 4 rounds of interleaving pairs -> 16 vectors of rows

What rows and columns have beyond their last whole vector is masked. Copies that do nothing else go
from memory to memory. Panels of products are packed so, where memory runs along the depth.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from picograd.codegen.emit import Emitter, compute_dtype, is_unit
from picograd.codegen.operands import narrow
from picograd.codegen.tile import Assign, Step, Store, Tile
from picograd.dtype import bool_
from picograd.helpers import row_major
from picograd.schedule.index import Index, axis_index, constant

MOST = 16  # lanes
LEAST = 8  # rows from which on a tile is turned by vectors


class Builder(Protocol):
    """What the CPU linearizer offers to the files that write one kind of step."""

    emitter: Emitter
    tiles: dict[str, Tile]
    memory: dict[str, int]
    vector_bytes: int


def tile_strides(tile: Tile) -> tuple[int, ...]:
    """Strides of a tile in elements, with its row padding."""
    if not tile.shape:
        return ()
    return row_major((*tile.shape[:-1], tile.shape[-1] + tile.row_padding))


def flat_position(tile: Tile, indices: Sequence[Index]) -> Index:
    """Element of a tile at given coordinates."""
    flat = constant(0)
    for index, stride in zip(indices, tile_strides(tile), strict=True):
        flat = flat + index * stride
    return flat


def is_turn(step: Step) -> bool:
    """Tell whether a step copies rows of memory to columns of a tile or memory, or columns to rows.

    Its dims are the rows and their elements.
    """
    if not isinstance(step, Assign | Store) or step.conditions or len(step.dims) != 2:
        return False
    row, element = step.dims
    crossed = axis_index(element), axis_index(row)
    if row.size < LEAST or step.expr.op not in ("load", "tile"):
        return False
    read = step.expr.arg[1]
    if isinstance(step, Assign):
        is_copy = step.expr.op == "load" and step.index == crossed
        return is_copy and is_unit(read, element)
    if step.expr.op == "tile":
        return bool(read == crossed) and is_unit(step.index, element)
    return element.size >= LEAST and is_unit(read, element) and is_unit(step.index, row)


def linearize_turn(builder: Builder, step: Assign | Store) -> None:
    """Append the loops of one turning step."""
    emitter = builder.emitter
    row, element = step.dims
    itemsize = step.expr.dtype.itemsize
    lanes = min(MOST, builder.vector_bytes // itemsize)
    for start, height in strips(builder, row.size, lanes):
        for first, width in strips(builder, element.size, lanes):
            with emitter.scope({row: start, element: first}):
                Turn(builder, step, lanes, height, width).block()
    emitter.forget()


def strips(builder: Builder, size: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Yield where whole vectors begin, inside a loop over them, and where the last one does."""
    emitter = builder.emitter
    left = size % lanes
    whole = emitter.integer(size - left)
    if size >= lanes:
        with emitter.loop(emitter.integer(0), whole, lanes, None) as first:
            yield first, lanes
    if left:
        yield whole, left


class Turn:
    """This class is one block of a turning step: `height` rows of which `width` elements exist."""

    def __init__(
        self, builder: Builder, step: Assign | Store, lanes: int, height: int, width: int
    ) -> None:
        self.builder = builder
        self.emitter = builder.emitter
        self.step = step
        self.lanes = lanes
        self.counts = height, width

    def block(self) -> None:
        """Load vectors, turn them round and store them."""
        step, expr = self.step, narrow(self.step.expr)
        if expr.op == "tile":
            source, place = self.tile(*expr.arg)
            over, along = 1, 0  # vectors of rows, one an element
        else:
            source, place = self.slot(*expr.arg)
            over, along = 0, 1
        vectors = self.load(source, place, over)
        if isinstance(step, Assign):
            target, place = self.tile(step.tile, step.index or ())
        else:
            target, place = self.slot(step.slot, step.index)
        self.store(target, place, along, self.turned(vectors))

    def tile(self, name: str, place: Sequence[Index]) -> tuple[int, Index]:
        """Find the memory of a tile, and an element's position there."""
        return self.builder.memory[name], flat_position(self.builder.tiles[name], place)

    def slot(self, number: int, index: Index) -> tuple[int, Index]:
        """Find the memory of a slot, and an element's position there."""
        return self.emitter.slots[number], index

    def load(self, source: int, index: Index, dim: int) -> list[int]:
        """Load vectors as they are stored: one at each place along a dim."""
        emitter, lanes = self.emitter, self.lanes
        dtype = emitter.dtype(source)
        mask = self.mask(1 - dim)
        found = []
        for at in self.places(index, dim):
            loaded = emitter.add("load", dtype, (source, at, *mask), lanes=lanes)
            found.append(emitter.cast(loaded, compute_dtype(self.step.expr.dtype)))
        return found

    def store(self, target: int, index: Index, dim: int, vectors: Sequence[int]) -> None:
        """Store vectors, rounded to what is stored: one at each place along a dim."""
        emitter = self.emitter
        dtype = emitter.dtype(target)
        mask = self.mask(1 - dim)
        for at, vector in zip(self.places(index, dim), vectors):
            value = emitter.cast(vector, dtype)
            emitter.add("store", dtype, (target, at, value, *mask), lanes=self.lanes)

    def mask(self, dim: int) -> tuple[int, ...]:
        """Tell which lanes of a vector along a dim exist; nothing if all do."""
        count = self.counts[dim]
        if count == self.lanes:
            return ()
        emitter = self.emitter
        tests = [emitter.const(lane < count, bool_) for lane in range(self.lanes)]
        return (emitter.add("pack", bool_, tests, lanes=self.lanes),)

    def places(self, index: Index, dim: int) -> list[int]:
        """List the positions of the vectors along a dim."""
        emitter = self.emitter
        axis = self.step.dims[dim]
        first = emitter.axis_value(axis)
        found = []
        for number in range(self.counts[dim]):
            at = emitter.arithmetic("add", first, emitter.integer(number))
            with emitter.scope({axis: at}):
                found.append(emitter.index(index))
        return found

    def turned(self, vectors: Sequence[int]) -> list[int]:
        """Turn vectors round; those that are missing at the end hold nothing that is read."""
        half = self.lanes // 2
        missing = self.lanes - len(vectors)
        found: list[int | None] = [*vectors, *[None] * missing]
        rounds = self.lanes.bit_length() - 1
        for _ in range(rounds):
            halves = zip(found[:half], found[half:])
            found = []
            for a, b in halves:
                found.append(self.interleaved(a, b, "low"))
                found.append(self.interleaved(a, b, "high"))
        return [each for each in found if each is not None]

    def interleaved(self, a: int | None, b: int | None, half: str) -> int | None:
        """Take the lanes of a half of two vectors in turn."""
        first = b if a is None else a
        second = a if b is None else b
        if first is None or second is None:
            return None
        dtype = self.emitter.dtype(first)
        return self.emitter.add("interleave", dtype, (first, second), half, self.lanes)
