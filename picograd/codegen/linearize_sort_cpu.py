"""SortStep -> Program of a CPU task: counting for short rows, a radix sort for the others.

Both are free of branches that depend on the data. Counting: the place of an element is the number
of smaller elements, and of equal ones before it. Radix: for each byte that is not the same in all
keys, least significant first, every element goes to the next place of its byte value.
"""

from collections.abc import Callable

from picograd.codegen.emit import Emitter
from picograd.codegen.linearize_cpu_pack import Builder
from picograd.codegen.tile import SortStep
from picograd.codegen.value import Value, goes_before
from picograd.dtype import DType, int32, int64, uint64
from picograd.errors import check

BYTE = 256
LOW = (1 << 32) - 1  # the position in a word
HIGH = LOW << 32
FEW_TIES = 4  # walks over nearly sorted keys that take less time than passes by the lower half


def sort_cpu(builder: Builder, step: SortStep) -> None:
    """Write a sort with the method of the step."""
    check(step.method in ("rank", "radix"), f"the CPU has no {step.method} sort", step)
    if step.method == "rank":
        sort_by_counting(builder, step)
    else:
        RadixSort(builder, step).write()


def count_of(emitter: Emitter, step: SortStep) -> int:
    """Count the elements of a row that somebody sees."""
    count = emitter.integer(step.sort.run)
    if step.stop is None:
        return count
    return emitter.raw("minimum", emitter.index_dtype, count, emitter.index(step.stop))


def store_position(emitter: Emitter, step: SortStep, place: int, position: int) -> None:
    """Store which element of the row comes at a place."""
    sort = step.sort
    with emitter.scope({sort.axis: place}):
        target = emitter.index(sort.target)
        emitter.store(emitter.slots[sort.slot], target, emitter.cast(position, int64))


def sort_by_counting(builder: Builder, step: SortStep) -> None:
    """Place each element by the number of elements that go before it."""
    emitter = builder.emitter
    keys, zero = builder.memory["keys"], emitter.integer(0)
    count = count_of(emitter, step)
    before = emitter.add("array", int32, arg=1)
    with emitter.loop(zero, count) as place:
        emitter.bind(step.sort.axis, place)
        emitter.put(keys, place, emitter.value(step.sort.body))
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
    """This class writes the loops of one radix sort.

    What is sorted are words of 64 bits: 32 of a key over its position. They have two halves of
    memory: a pass reads one and writes the other.
    """

    def __init__(self, builder: Builder, step: SortStep) -> None:
        self.emitter: Emitter = builder.emitter
        self.step: SortStep = step
        self.words, self.counts = builder.memory["words"], builder.memory["counts"]
        self.keys: int | None = builder.memory.get("keys")
        self.bytes: int = min(step.sort.body.dtype.itemsize, 4)  # of a key in a word
        self.zero: int = self.emitter.integer(0)
        self.count: int = count_of(self.emitter, step)
        self.base: int = self.emitter.index(step.base)
        self.half: int = self.register(self.emitter.index_dtype)  # where what is sorted begins
        self.varying: int = self.register(uint64)  # bits that are not the same in all words

    def register(self, dtype: DType) -> int:
        """Make a variable, which is 0."""
        made = self.emitter.add("array", dtype, arg=1)
        self.emitter.put(made, self.zero, self.emitter.const(0, dtype))
        return made

    def get(self, register: int) -> int:
        """Read a variable."""
        return self.emitter.get(register, self.zero)

    def set(self, register: int, value: int) -> None:
        """Write a variable."""
        self.emitter.put(register, self.zero, value)

    def plus(self, a: int, b: int) -> int:
        """Add places in memory."""
        return self.emitter.arithmetic("add", a, b)

    def bits(self, op: str, word: int, other: int) -> int:
        """Compute with a word and a constant."""
        return self.emitter.raw(op, uint64, word, self.emitter.const(other, uint64))

    def write(self) -> None:
        """Write the walk that makes words, and the passes over them."""
        emitter = self.emitter
        if self.keys is None:
            self.fill(lambda place: self.bits("shift_left", self.key(place), 32))
            self.sort_words()
        else:
            self.sort_wide(self.keys)
        with emitter.loop(self.zero, self.count) as place:
            position = emitter.cast(self.position(self.word(place)), int32)
            store_position(emitter, self.step, place, position)

    def key(self, place: int) -> int:
        """Compute the key of an element."""
        sort = self.step.sort
        with self.emitter.scope({sort.axis: place}):
            return self.emitter.cast(self.emitter.value(sort.body), uint64)

    def fill(self, half_of: Callable[[int], int]) -> None:
        """Make words of halves of keys, which lie in the upper bits; find which of them vary."""
        emitter = self.emitter
        self.set(self.half, self.base)
        self.set(self.varying, emitter.const(0, uint64))
        first = half_of(self.zero)
        with emitter.loop(self.zero, self.count) as place:
            half = half_of(place)
            word = emitter.raw("bitwise_or", uint64, half, emitter.cast(place, uint64))
            emitter.store(self.words, self.plus(self.base, place), word)
            self.differ(self.varying, half, first)

    def differ(self, register: int, key: int, first: int) -> None:
        """Collect the bits in which keys are not the first."""
        emitter = self.emitter
        bits = emitter.raw("bitwise_xor", uint64, key, first)
        self.set(register, emitter.raw("bitwise_or", uint64, self.get(register), bits))

    def word(self, place: int) -> int:
        """Read the word at a place of what is sorted."""
        return self.emitter.load(self.words, self.plus(self.get(self.half), place))

    def position(self, word: int) -> int:
        """Take the position of a word."""
        return self.emitter.cast(self.bits("bitwise_and", word, LOW), self.emitter.index_dtype)

    def byte(self, word: int, shift: int) -> int:
        """Take the byte of a word that begins at a bit."""
        word = self.emitter.raw("shift_right", uint64, word, shift)
        return self.emitter.cast(self.bits("bitwise_and", word, BYTE - 1), self.emitter.index_dtype)

    def sort_words(self) -> None:
        """Sort by bytes, the least significant first; one that all keys share is left out."""
        emitter = self.emitter
        first, stop = emitter.integer(4), emitter.integer(4 + self.bytes)
        with emitter.loop(first, stop, 1, None) as number:
            shift = emitter.cast(emitter.arithmetic("mul", number, emitter.integer(8)), uint64)
            bits = self.byte(self.get(self.varying), shift)
            with emitter.when(emitter.apply("less", self.zero, bits)):
                self.count_byte(shift)
                self.distribute(shift)

    def take(self, cell: int) -> int:
        """Read a counter and raise it by 1."""
        emitter = self.emitter
        old = emitter.get(self.counts, cell)
        emitter.put(self.counts, cell, emitter.raw("add", int32, old, emitter.const(1, int32)))
        return old

    def count_byte(self, shift: int) -> None:
        """Count the values of a byte, and turn the counts into first places."""
        emitter, none = self.emitter, self.emitter.const(0, int32)
        cells = emitter.integer(BYTE)
        with emitter.loop(self.zero, cells) as cell:
            emitter.put(self.counts, cell, none)
        with emitter.loop(self.zero, self.count) as place:
            self.take(self.byte(self.word(place), shift))
        total = self.register(int32)
        with emitter.loop(self.zero, cells) as cell:
            before, count = self.get(total), emitter.get(self.counts, cell)
            emitter.put(self.counts, cell, before)
            self.set(total, emitter.raw("add", int32, before, count))

    def distribute(self, shift: int) -> None:
        """Send every word to the next place of its byte value, in the other half."""
        emitter, index = self.emitter, self.emitter.index_dtype
        both = self.plus(self.plus(self.base, self.base), emitter.integer(self.step.sort.run))
        other = emitter.raw("sub", index, both, self.get(self.half))
        with emitter.loop(self.zero, self.count) as place:
            word = self.word(place)
            target = emitter.cast(self.take(self.byte(word, shift)), index)
            emitter.store(self.words, self.plus(other, target), word)
        self.set(self.half, other)

    def sort_wide(self, keys: int) -> None:
        """Sort keys of 64 bits by their upper halves, then put right the few that are equal there.

        Where more than a few in a row have one upper half, all are sorted by the lower half first.
        """
        emitter = self.emitter
        ties, lower = self.register(int32), self.register(uint64)

        def keep(place: int) -> int:
            key = self.key(place)
            emitter.store(keys, self.place_of_key(place), key)
            return self.bits("bitwise_and", key, HIGH)

        self.fill(keep)
        first = emitter.load(keys, self.place_of_key(self.zero))
        with emitter.loop(self.zero, self.count) as place:
            self.differ(lower, emitter.load(keys, self.place_of_key(place)), first)
        upper = self.get(self.varying)
        self.sort_words()
        varying = self.bits("bitwise_and", self.get(lower), LOW)
        with emitter.when(emitter.apply("less", emitter.const(0, uint64), varying)):
            self.find_ties(ties)
        most = emitter.const(FEW_TIES, int32)
        with emitter.when(emitter.apply("less", most, self.get(ties))):
            self.sort_by_halves(keys, upper)
            self.set(ties, emitter.const(0, int32))
        rounds = emitter.cast(self.get(ties), emitter.index_dtype)
        with emitter.loop(self.zero, rounds, 1, None):
            self.exchange(keys)

    def place_of_key(self, place: int) -> int:
        """Where in memory the key of an element is: there is one for two words."""
        arithmetic = self.emitter.arithmetic
        return self.plus(arithmetic("quotient", self.base, self.emitter.integer(2)), place)

    def key_of(self, keys: int, word: int) -> int:
        """Read the whole key of a word."""
        return self.emitter.load(keys, self.place_of_key(self.position(word)))

    def sort_by_halves(self, keys: int, upper: int) -> None:
        """Sort by the lower halves, then by the upper ones, of which some bits vary."""
        emitter = self.emitter

        def half_of(place: int) -> int:
            return self.bits("shift_left", emitter.load(keys, self.place_of_key(place)), 32)

        self.fill(half_of)
        self.sort_words()
        half = self.get(self.half)
        with emitter.loop(self.zero, self.count) as place:
            word = self.word(place)
            high = self.bits("bitwise_and", self.key_of(keys, word), HIGH)
            low = self.bits("bitwise_and", word, LOW)
            word = emitter.raw("bitwise_or", uint64, high, low)
            emitter.store(self.words, self.plus(half, place), word)
        self.set(self.varying, upper)
        self.sort_words()

    def is_tied(self, word: int, other: int) -> int:
        """Tell whether the halves of two words are equal."""
        apart = self.emitter.raw("bitwise_xor", uint64, word, other)
        apart = self.bits("shift_right", apart, 32)
        return self.emitter.apply("equal", apart, self.emitter.const(0, uint64))

    def find_ties(self, ties: int) -> None:
        """Find the most words in a row that follow one of the same half."""
        emitter, none = self.emitter, self.emitter.const(0, int32)
        run, last = self.register(int32), self.register(uint64)
        self.set(last, self.word(self.zero))
        with emitter.loop(emitter.integer(1), self.count) as place:
            word = self.word(place)
            more = emitter.raw("add", int32, self.get(run), emitter.const(1, int32))
            more = emitter.apply("where", self.is_tied(word, self.get(last)), more, none)
            self.set(run, more)
            self.set(last, word)
            self.set(ties, emitter.raw("maximum", int32, self.get(ties), more))

    def exchange(self, keys: int) -> None:
        """Let each word pass the next one if its key is greater; equal ones stay."""
        emitter = self.emitter
        held, first = self.register(uint64), self.register(uint64)
        half = self.get(self.half)
        before = self.plus(half, emitter.integer(-1))
        self.set(held, self.word(self.zero))
        with emitter.loop(emitter.integer(1), self.count) as place:
            word, mine = self.word(place), self.get(held)
            self.set(first, mine)
            self.set(held, word)
            with emitter.when(self.is_tied(word, mine)):
                is_less = emitter.apply("less", self.key_of(keys, word), self.key_of(keys, mine))
                self.set(first, emitter.apply("where", is_less, word, mine))
                self.set(held, emitter.apply("where", is_less, mine, word))
            emitter.store(self.words, self.plus(before, place), self.get(first))
        emitter.store(self.words, self.plus(before, self.count), self.get(held))
