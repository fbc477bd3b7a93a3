"""Turning tiles round on a CPU: 16 rows of memory become 16 columns of a tile, or the other way.

    for rows, elements in blocks of 16 x 16 (less, if a vector of the target holds fewer):
      16 vectors of elements -> 4 rounds of interleaving pairs -> 16 vectors of rows

What a row has beyond its last whole vector of elements is masked.
"""

from collections.abc import Sequence

from picograd.codegen.emit import is_unit
from picograd.codegen.linearize_cpu_pack import Builder, flat_position
from picograd.codegen.tile import Assign, Step, Store
from picograd.dtype import bool_
from picograd.schedule.index import axis_index

MOST = 16  # lanes


def is_turn(step: Step) -> bool:
    """Tell whether a step copies rows of memory to columns of a tile, or columns to rows."""
    if not isinstance(step, Assign | Store):
        return False
    if step.conditions or len(step.dims) != 2:
        return False
    row, element = step.dims
    crossed = axis_index(element), axis_index(row)
    if row.size % MOST or step.expr.op not in ("load", "tile"):
        return False
    read = step.expr.arg[1]
    if isinstance(step, Assign):
        is_copy = step.expr.op == "load"
        memory, place = read, step.index
    else:
        is_copy = step.expr.op == "tile"
        memory, place = step.index, read
    return is_copy and place == crossed and is_unit(memory, element)


def linearize_turn(builder: Builder, step: Assign | Store) -> None:
    """Append the loops of one turning step."""
    emitter = builder.emitter
    row, element = step.dims
    itemsize = step.expr.dtype.itemsize
    lanes = min(MOST, builder.vector_bytes // itemsize)
    left = element.size % lanes
    zero = emitter.integer(0)
    whole = emitter.integer(element.size - left)
    stop = emitter.integer(row.size)

    def block(first: int, width: int) -> None:
        with emitter.scope({element: first}):
            Turn(builder, step, lanes, width).block()

    with emitter.loop(zero, stop, lanes, None) as start:
        emitter.bind(row, start)
        if element.size >= lanes:
            with emitter.loop(zero, whole, lanes, None) as first:
                block(first, lanes)
        if left:
            block(whole, left)
    emitter.forget()


class Turn:
    """This class is one block of a turning step, of which `width` elements a row exist."""

    def __init__(self, builder: Builder, step: Assign | Store, lanes: int, width: int) -> None:
        self.emitter, self.step = builder.emitter, step
        self.lanes, self.width = lanes, width
        if isinstance(step, Assign):
            name = step.tile
            slot, self.index = step.expr.arg
        else:
            name = step.expr.arg[0]
            slot, self.index = step.slot, step.index
        self.tile = builder.tiles[name]
        self.column = builder.memory[name]
        self.memory = self.emitter.slots[slot]

    def block(self) -> None:
        """Load vectors, turn them round and store them."""
        rows = self.places(0, self.lanes)
        columns = self.places(1, self.width)
        mask = self.mask()
        if isinstance(self.step, Assign):
            vectors = self.load(self.memory, rows, mask)
            self.store(self.column, columns, self.turned(vectors), ())
        else:
            vectors = self.load(self.column, columns, ())
            self.store(self.memory, rows, self.turned(vectors), mask)

    def mask(self) -> tuple[int, ...]:
        """Tell which lanes of a row exist; nothing if all do."""
        if self.width == self.lanes:
            return ()
        emitter = self.emitter
        tests = [emitter.const(lane < self.width, bool_) for lane in range(self.lanes)]
        return (emitter.add("pack", bool_, tests, lanes=self.lanes),)

    def load(self, source: int, places: Sequence[int], mask: tuple[int, ...]) -> list[int]:
        """Load vectors as they are stored."""
        emitter, lanes = self.emitter, self.lanes
        dtype = emitter.dtype(source)
        return [emitter.add("load", dtype, (source, at, *mask), lanes=lanes) for at in places]

    def store(
        self, target: int, places: Sequence[int], vectors: Sequence[int], mask: tuple[int, ...]
    ) -> None:
        """Store vectors, rounded to what is stored."""
        emitter = self.emitter
        dtype = emitter.dtype(target)
        for at, vector in zip(places, vectors):
            value = emitter.cast(vector, dtype)
            emitter.add("store", dtype, (target, at, value, *mask), lanes=self.lanes)

    def places(self, dim: int, count: int) -> list[int]:
        """List the positions of the first vectors along a dim: in memory, or in the tile."""
        emitter = self.emitter
        row, element = self.step.dims
        here = axis_index(element), axis_index(row)
        index = flat_position(self.tile, here) if dim else self.index
        axis = self.step.dims[dim]
        first, found = emitter.axis_value(axis), []
        for number in range(count):
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
