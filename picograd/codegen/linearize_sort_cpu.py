"""SortStep -> Program of a CPU task: counting for short rows, a radix sort for the others.

Both are free of branches that depend on the data. Counting: the place of an element is the number
of smaller elements, and of equal ones before it. Radix: all bytes are counted in one walk; then for
each byte, least significant first, every element goes to the next place of its byte value.
"""

from picograd.codegen.emit import Emitter
from picograd.codegen.linearize_cpu_pack import Builder
from picograd.codegen.tile import SortStep
from picograd.codegen.value import Value, goes_before
from picograd.dtype import int32, int64
from picograd.errors import check

BYTE = 256


def sort_cpu(builder: Builder, step: SortStep) -> None:
    """Write a sort with the method of the step."""
    check(step.method in ("rank", "radix"), f"the CPU has no {step.method} sort", step)
    if step.method == "rank":
        sort_by_counting(builder, step)
    else:
        RadixSort(builder, step).write()


def count_of(emitter: Emitter, step: SortStep) -> int:
    """Count the elements of a row that somebody sees."""
    count = emitter.integer(step.count)
    if step.stop is None:
        return count
    return emitter.raw("minimum", emitter.index_dtype, count, emitter.index(step.stop))


def store_position(emitter: Emitter, step: SortStep, place: int, position: int) -> None:
    """Store which element of the row comes at a place."""
    with emitter.scope({step.axis: place}):
        target = emitter.index(step.target)
        emitter.store(emitter.slots[step.slot], target, emitter.cast(position, int64))


def sort_by_counting(builder: Builder, step: SortStep) -> None:
    """Place each element by the number of elements that go before it."""
    emitter = builder.emitter
    keys, zero = builder.memory[step.tiles[0]], emitter.integer(0)
    count = count_of(emitter, step)
    before = emitter.add("array", int32, arg=1)
    with emitter.loop(zero, count) as place:
        emitter.bind(step.axis, place)
        emitter.put(keys, place, emitter.value(step.expr))
    with emitter.loop(zero, count) as own:
        key = emitter.get(keys, own)
        emitter.put(before, zero, emitter.const(0, int32))
        with emitter.loop(zero, count) as other:
            pairs = (Value(emitter, each) for each in (emitter.get(keys, other), key, other, own))
            is_before = goes_before(*pairs).position
            old = emitter.get(before, zero)
            new = emitter.raw("add", int32, old, emitter.cast(is_before, int32))
            emitter.put(before, zero, new)
        total = emitter.get(before, zero)
        store_position(emitter, step, emitter.cast(total, emitter.index_dtype), own)


class RadixSort:
    """This class writes the loops of one radix sort."""

    def __init__(self, builder: Builder, step: SortStep) -> None:
        self.emitter: Emitter = builder.emitter
        self.step: SortStep = step
        self.dtype = step.expr.dtype
        first, second, positions, others, counts = (builder.memory[n] for n in step.tiles)
        self.keys: tuple[int, int] = (first, second)
        self.positions: tuple[int, int] = (positions, others)
        self.counts: int = counts
        self.passes: int = self.dtype.itemsize
        self.zero: int = self.emitter.integer(0)
        self.count: int = count_of(self.emitter, step)

    def write(self) -> None:
        """Write the walk that counts, then a pass for each byte."""
        self.count_bytes()
        for number in range(self.passes):
            self.sum_counts(number)
            self.distribute(number)

    def at(self, place: int) -> int:
        """Position in the memory of this row."""
        emitter = self.emitter
        return emitter.arithmetic("add", emitter.index(self.step.base), place)

    def cell(self, key: int, number: int) -> int:
        """Counter of a byte of a key."""
        emitter, dtype = self.emitter, self.dtype
        if number:
            key = emitter.raw("shift_right", dtype, key, emitter.const(8 * number, dtype))
        if dtype.bits > 8:
            key = emitter.raw("bitwise_and", dtype, key, emitter.const(BYTE - 1, dtype))
        place = emitter.cast(key, emitter.index_dtype)
        return emitter.arithmetic("add", place, emitter.integer(number * BYTE))

    def take(self, cell: int, step: int) -> int:
        """Read a counter and raise it by `step`."""
        emitter = self.emitter
        old = emitter.get(self.counts, cell)
        new = emitter.raw("add", int32, old, step)
        emitter.put(self.counts, cell, new)
        return old

    def count_bytes(self) -> None:
        """Compute the keys, and count the values of all their bytes."""
        emitter, one = self.emitter, self.emitter.const(1, int32)
        with emitter.loop(self.zero, emitter.integer(self.passes * BYTE)) as cell:
            emitter.put(self.counts, cell, emitter.const(0, int32))
        with emitter.loop(self.zero, self.count) as place:
            emitter.bind(self.step.axis, place)
            key = emitter.value(self.step.expr)
            emitter.store(self.keys[0], self.at(place), key)
        with emitter.loop(self.zero, self.count) as place:
            key = emitter.load(self.keys[0], self.at(place))
            for number in range(self.passes):
                self.take(self.cell(key, number), one)

    def sum_counts(self, number: int) -> None:
        """Turn the counts of a byte into first places."""
        emitter = self.emitter
        first, last = (emitter.integer(n * BYTE) for n in (number, number + 1))
        total = emitter.add("array", int32, arg=1)
        emitter.put(total, self.zero, emitter.const(0, int32))
        with emitter.loop(first, last) as cell:
            before = emitter.get(total, self.zero)
            count = emitter.get(self.counts, cell)
            emitter.put(self.counts, cell, before)
            after = emitter.raw("add", int32, before, count)
            emitter.put(total, self.zero, after)

    def distribute(self, number: int) -> None:
        """Send every element to the next place of its byte value."""
        emitter, one = self.emitter, self.emitter.const(1, int32)
        here, there = number % 2, (number + 1) % 2
        with emitter.loop(self.zero, self.count) as place:
            key = emitter.load(self.keys[here], self.at(place))
            position = emitter.cast(place, int32)
            if number:
                position = emitter.load(self.positions[here], self.at(place))
            target = self.take(self.cell(key, number), one)
            target = emitter.cast(target, emitter.index_dtype)
            if number == self.passes - 1:
                store_position(emitter, self.step, target, position)
            else:
                emitter.store(self.keys[there], self.at(target), key)
                emitter.store(self.positions[there], self.at(target), position)
