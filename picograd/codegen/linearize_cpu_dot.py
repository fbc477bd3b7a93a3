"""Dot on a CPU: the register micro-kernel.

    for k in depth:  b[0..vectors] = vector loads of one row of the panel
                     for i in rows: acc[i][*] = fma(splat(a[i, k]), b[*], acc[i][*])

The accumulators are a register array that is only indexed with constants, so LLVM keeps every
element in a register of its own; `a` is loaded one scalar at a time and repeated in all lanes.
"""

from collections.abc import Iterator, Sequence

from picograd.codegen.dot import Digit, Dot, InPlace, Runs
from picograd.codegen.emit import Emitter
from picograd.codegen.linearize_cpu_pack import Builder, flat_position, tile_strides
from picograd.codegen.tile_products import STEP, TILE, TileProduct
from picograd.dtype import DType
from picograd.errors import check
from picograd.helpers import product
from picograd.schedule.index import Index

VECTOR_BYTES = 64  # LLVM splits wider vectors than the machine's; blocks are chosen for its own


def block_lanes(columns: int, dtype: DType) -> int:
    """Vector width for a block: the widest that divides its columns."""
    lanes = VECTOR_BYTES // dtype.itemsize
    while columns % lanes:
        lanes //= 2
    return lanes


class Block:
    """One register block being written."""

    def __init__(self, builder: Builder, dot: Dot) -> None:
        is_block = dot.block and not dot.b_is_nk
        check(is_block, "a CPU dot has a register block and a [k, n] tile b", dot)
        self.emitter, self.dot = builder.emitter, dot
        self.rows, columns = dot.block or (0, 0)
        acc = builder.tiles[dot.acc]
        self.acc = builder.memory[dot.acc]
        self.dtype = acc.dtype
        self.lanes = block_lanes(columns, acc.dtype)
        self.vectors = columns // self.lanes
        self.acc_row = tile_strides(acc)[-2]
        if dot.runs.times > 1:
            self.rows, self.acc_row = dot.runs.times, dot.runs.apart  # of accumulators
        self.acc_at = self.emitter.index(flat_position(acc, dot.acc_origin or ()))
        self.a, self.a_at, a_steps = self.operand(builder, dot.a, dot.a_origin, dot.a_place)
        self.b, self.b_at, (self.b_depth, _) = self.operand(
            builder, dot.b, dot.b_origin, dot.b_place
        )
        self.a_row, self.a_depth = a_steps[::-1] if dot.a_is_km else a_steps
        size = self.rows * self.vectors
        self.array = self.emitter.add("array", acc.dtype, arg=size, lanes=self.lanes)

    def operand(
        self, builder: Builder, name: str, origin: tuple[Index, ...] | None, place: InPlace | None
    ) -> tuple[int, int, tuple[int, ...]]:
        """Find the memory of an operand, where it begins there, and the steps of its dimensions."""
        if place is not None:
            at = self.emitter.index(place.index)
            return self.emitter.slots[place.slot], at, (place.step, 1)
        tile = builder.tiles[name]
        at = self.emitter.index(flat_position(tile, origin or ()))
        return builder.memory[name], at, tile_strides(tile)[-2:]

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield every accumulator: its number and its place in the tile."""
        for number in range(self.rows * self.vectors):
            row = number // self.vectors
            vector = number % self.vectors
            at = row * self.acc_row + vector * self.lanes
            yield number, plus(self.emitter, self.acc_at, at)

    def get(self, number: int) -> int:
        """Read an accumulator."""
        args = self.array, self.emitter.integer(number)
        return self.emitter.add("get", self.dtype, args, lanes=self.lanes)

    def set(self, number: int, value: int) -> None:
        """Write an accumulator."""
        place = self.emitter.integer(number)
        self.emitter.put(self.array, place, value)

    def begin(self) -> None:
        """Start from zero."""
        zero = self.emitter.const(0, self.dtype)
        for number in range(self.rows * self.vectors):
            self.set(number, self.emitter.splat(zero, self.lanes))

    def one_depth(self, position: int, b_at: int) -> None:
        """Multiply one column of a with the row of b that begins at a place."""
        emitter, lanes = self.emitter, self.lanes
        panel = [
            emitter.load(self.b, plus(emitter, b_at, v * lanes), lanes=lanes)
            for v in range(self.vectors)
        ]
        a_at = at_depth(emitter, self.a_at, position, self.a_depth)
        for row in range(self.rows):
            scalar = emitter.load(self.a, plus(emitter, a_at, row * self.a_row))
            factor = emitter.splat(scalar, lanes)
            for vector in range(self.vectors):
                number = row * self.vectors + vector
                total = self.get(number)
                total = multiply_add(emitter, factor, panel[vector], total)
                self.set(number, total)

    def each_run(self, digit: Digit, inner: int, position: int, b_at: int) -> None:
        """Multiply one place of all taps of a digit: runs read the same places for some of them."""
        emitter, lanes = self.emitter, self.lanes
        factors: list[int] = []
        for number in range(digit.size):
            further = emitter.arithmetic("add", position, emitter.integer(number * inner))
            at = at_depth(emitter, self.a_at, further, self.a_depth)
            factors.append(emitter.splat(emitter.load(self.a, at), lanes))
        for place, readers in readers_of(digit, self.dot.runs):
            for vector in range(self.vectors):
                at = plus(emitter, b_at, place + vector * lanes)
                seen = emitter.load(self.b, at, lanes=lanes)
                for run, number in readers:
                    total = run * self.vectors + vector
                    added = multiply_add(emitter, factors[number], seen, self.get(total))
                    self.set(total, added)

    def each_tap(
        self,
        taps: Sequence[Digit],
        position: int,
        b_at: int,
        shared: tuple[Digit, int] | None = None,
    ) -> None:
        """Walk the depth as its digits count it, the last fastest, that of runs within them."""
        if not taps and shared is not None:
            self.each_run(*shared, position, b_at)
            return
        if not taps:
            self.one_depth(position, b_at)
            return
        emitter = self.emitter
        digit, *others = taps
        inner = product(each.size for each in others)
        runs = self.dot.runs
        if runs.times > 1 and len(self.dot.taps) - len(taps) == runs.digit:
            self.each_tap(others, position, b_at, (digit, inner))
            return
        with emitter.loop(emitter.integer(0), emitter.integer(digit.size), 1, None) as number:
            deeper = at_depth(emitter, position, number, inner)
            self.each_tap(others, deeper, at_digit(emitter, b_at, number, digit), shared)

    def finish(self) -> None:
        """Leave the sums in the tile, or add them to what it holds.

        A long product is a sum of the sums of its blocks: in one sum each step would round a large
        total.
        """
        for number, place in self.places():
            value = self.get(number)
            if not self.dot.is_first:
                before = self.emitter.load(self.acc, place, lanes=self.lanes)
                value = self.emitter.raw("add", self.dtype, before, value)
            self.emitter.store(self.acc, place, value)


def readers_of(digit: Digit, runs: Runs) -> list[tuple[int, list[tuple[int, int]]]]:
    """List the places that runs read for the taps of a digit, and which run reads for which tap."""
    found: dict[int, list[tuple[int, int]]] = {}
    for run in range(runs.times):
        for number in range(digit.size):
            place = digit.place(number) + run * runs.apart
            found.setdefault(place, []).append((run, number))
    return sorted(found.items())


def linearize_tiles(builder: Builder, dot: Dot) -> None:
    """Append the product of one block by tile registers."""
    emitter = builder.emitter
    args: list[int] = []
    steps: list[int] = []
    operands = (dot.acc, dot.acc_origin), (dot.a, dot.a_origin), (dot.b, dot.b_origin)
    for name, origin in operands:
        tile = builder.tiles[name]
        args += [builder.memory[name], emitter.index(flat_position(tile, origin or ()))]
        steps.append(tile_strides(tile)[-2])
    rows, columns = dot.block or (0, 0)
    acc, a, b = steps
    tiles = rows // TILE, columns // TILE
    whole = TileProduct(*tiles, dot.depth // STEP, acc, a, b, dot.is_first)
    emitter.add("multiply_tiles", None, args, whole)
    emitter.forget()


def linearize_dot(builder: Builder, dot: Dot) -> None:
    """Append the instructions of one register block."""
    if dot.unit == "tiles":
        linearize_tiles(builder, dot)
        return
    block, emitter = Block(builder, dot), builder.emitter
    block.begin()
    start, stop = emitter.integer(0), emitter.integer(dot.depth)
    if dot.stop is not None:
        most = emitter.index(dot.stop)
        stop = emitter.raw("minimum", emitter.index_dtype, stop, most)
    if dot.taps:
        block.each_tap(dot.taps, emitter.integer(0), block.b_at)
    else:
        # One depth an iteration: unrolling gains nothing (measured) and costs compile time.
        with emitter.loop(start, stop, 1, None) as position:
            place = at_depth(emitter, block.b_at, position, block.b_depth)
            block.one_depth(position, place)
    block.finish()
    emitter.forget()


def plus(emitter: Emitter, value: int, offset: int) -> int:
    """Append value + constant."""
    return emitter.arithmetic("add", value, emitter.integer(offset))


def at_depth(emitter: Emitter, start: int, position: int, step: int) -> int:
    """Append start + position * step."""
    moved = emitter.arithmetic("mul", position, emitter.integer(step))
    return emitter.arithmetic("add", start, moved)


def at_digit(emitter: Emitter, start: int, number: int, digit: Digit) -> int:
    """Append start + the place of a row of a digit."""
    if digit.phases == 1:
        return at_depth(emitter, start, number, digit.step)
    phases = emitter.integer(digit.phases)
    whole = emitter.arithmetic("quotient", number, phases)
    phase = emitter.arithmetic("remainder", number, phases)
    return at_depth(emitter, at_depth(emitter, start, whole, digit.step), phase, digit.apart)


def multiply_add(emitter: Emitter, a: int, b: int, c: int) -> int:
    """Append a * b + c, fused for floats."""
    dtype = emitter.dtype(c)
    if dtype.is_float:
        return emitter.raw("fma", dtype, a, b, c)
    return emitter.raw("add", dtype, emitter.raw("mul", dtype, a, b), c)
