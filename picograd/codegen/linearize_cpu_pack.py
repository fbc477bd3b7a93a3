"""Turning tiles round on a CPU: 16 rows of memory become 16 columns of a tile, or the other way.

    for rows, elements in blocks of 16 x 16 (less, if a vector of the target holds fewer):
      16 vectors of elements -> 4 rounds of interleaving pairs -> 16 vectors of rows

What rows and columns have beyond their last whole vector is masked. Copies that do nothing else go
from memory to memory. Panels of products are packed so, where memory runs along the depth.

Packing on a CPU: fill a panel from an operand with explicit vectors.

    for outer dims: if guards hold: for vectors of the last dim: panel[...] = expr
                    else:           for vectors of the last dim: panel[...] = 0

A guard is tested in the outermost loop where its axes are known, never per element; a guard on the
last dim itself becomes the bounds of the inner loop. Marked by a `Blocked` layout with a vector.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from picograd.codegen.costs import is_zero
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.lanes import is_unit
from picograd.codegen.operands import narrow
from picograd.codegen.tile import Assign, Step, Store, Tile
from picograd.dtype import bool_, int32
from picograd.helpers import row_major
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Condition, Expr, const, dynamics_of, walk

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
    return row_major((*tile.shape[:-1], tile.shape[-1] + tile.row_padding)) if tile.shape else ()


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
        if step.expr.op == "load":
            return step.index == crossed and is_unit(read, element)
        return (
            step.layout is None and runs_along(step.index or (), row) and runs_along(read, element)
        )
    if step.expr.op == "tile":
        return bool(read == crossed) and is_unit(step.index, element)
    return element.size >= LEAST and is_unit(read, element) and is_unit(step.index, row)


def runs_along(place: Sequence[Index], axis: Axis) -> bool:
    """Tell whether neighbours along an axis are neighbours in a tile."""
    is_elsewhere = any(axis in axes_of(index) for index in place[:-1])
    return bool(place) and is_unit(place[-1], axis) and not is_elsewhere


def linearize_turn(builder: Builder, step: Assign | Store) -> None:
    """Append the loops of one turning step."""
    emitter = builder.emitter
    row, element = step.dims
    lanes = min(MOST, builder.vector_bytes // step.expr.dtype.itemsize)
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


def first_lanes(emitter: Emitter, count: int, lanes: int) -> tuple[int, ...]:
    """Make the mask of the first lanes of a vector; nothing if that is all of them."""
    if count == lanes:
        return ()
    tests = [emitter.const(lane < count, bool_) for lane in range(lanes)]
    return (emitter.add("pack", bool_, tests, lanes=lanes),)


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
        if isinstance(step, Assign):
            to = builder.memory[step.tile]
        else:
            to = self.emitter.slots[step.slot]
        self.stored = self.emitter.dtype(to)

    def block(self) -> None:
        """Load vectors, turn them round and store them."""
        step, expr = self.step, narrow(self.step.expr)
        source, place = (self.tile if expr.op == "tile" else self.slot)(*expr.arg)
        over, along = 0, 1
        if expr.op == "tile" and isinstance(step, Store):
            over, along = 1, 0  # vectors of rows, one an element
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
            is_moved = dtype is self.stored  # its bits are, and are nowhere rounded
            wide = dtype if is_moved else compute_dtype(self.step.expr.dtype)
            found.append(emitter.cast(loaded, wide))
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
        return first_lanes(self.emitter, self.counts[dim], self.lanes)

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


MASKED_BYTES, LEAST_MASKED = 32, 4  # of vectors; elements of a row
LANES = {8: 8, 4: 16, 2: 32, 1: 32}  # elements of a 64-byte vector, by bytes of an element


def without_guards(expr: Expr) -> tuple[Expr, tuple[Condition, ...]]:
    """Take guards with fill 0 off an expression, through casts: 0 stays 0 there."""
    if expr.op == "guard" and is_zero(expr.args[1]):
        inner, conditions = without_guards(expr.args[0])
        return inner, (*expr.arg, *conditions)
    if expr.op == "cast":
        inner, conditions = without_guards(expr.args[0])
        return Expr("cast", (inner,), None, expr.dtype), conditions
    return expr, ()


def linearize_pack(builder: Builder, *steps: Assign) -> None:
    """Append the loops of packing steps that `sharing` counts: of vectors of one width together."""
    (step, *others) = steps
    if is_paired(builder, step):
        linearize_pairs(builder, step)
        return
    expr, conditions = without_guards(step.expr)
    pack = Pack(builder, step, expr)
    for other in others:
        beside = Pack(builder, other, other.expr)
        if beside.lanes == pack.lanes:
            pack.others.append(beside)
        else:
            beside.nest(other.dims, (), False)
            builder.emitter.forget()
    pack.nest(step.dims, conditions, False)
    builder.emitter.forget()


def is_paired(builder: Builder, step: Assign) -> bool:
    """Tell whether a step puts the elements of two rows of a tile in turn, a vector of each."""
    if step.expr.op != "tile" or len(step.dims) < 3:
        return False
    *_, lane, parity = step.dims
    is_vector = lane.size * step.expr.dtype.itemsize == builder.vector_bytes and parity.size == 2
    place = (step.index or (constant(0),))[-1]
    in_turn = axis_index(lane) * 2 + axis_index(parity)
    return is_vector and place == in_turn and is_unit(step.expr.arg[1][-1], lane)


def linearize_pairs(builder: Builder, step: Assign) -> None:
    """Append the loop that puts the elements of two rows in turn."""
    emitter, (*outer, lane, parity) = builder.emitter, step.dims
    name, place = step.expr.arg
    source, target = builder.memory[name], builder.memory[step.tile]
    dtype, lanes = emitter.dtype(source), lane.size
    read = flat_position(builder.tiles[name], place)
    written = flat_position(builder.tiles[step.tile], step.index or ())
    start = emitter.integer(0)
    with ExitStack() as loops:
        for axis in outer:
            loops.enter_context(emitter.axis_loop(axis, None))
        loops.enter_context(emitter.scope({lane: start, parity: start}))
        rows = []
        for number in range(2):
            at = emitter.index(substitute(read, {parity: constant(number)}))
            rows.append(emitter.add("load", dtype, (source, at), lanes=lanes))
        for number, half in enumerate(("low", "high")):
            value = emitter.add("interleave", dtype, rows, half, lanes)
            emitter.store(target, emitter.index(written + number * lanes), value)
    emitter.forget()


def sharing(steps: Sequence[Step], first: int, dims: Sequence[Axis]) -> int:
    """Count the packing steps over dims, from the first on, whose order does not matter.

    They read tiles alone, of which none of them writes one.
    """
    read: set[str] = set()
    written: set[str] = set()
    count = 0
    while first + count < len(steps):
        step = steps[first + count]
        if not isinstance(step, Assign) or step.layout is None or step.dims != dims:
            break
        parts = walk(step.expr)
        read |= {part.arg[0] for part in parts if part.op == "tile"}
        written.add(step.tile)
        is_plain = all(part.op not in ("load", "index", "guard") for part in parts)
        if not is_plain or not read.isdisjoint(written):
            break
        count += 1
    return max(count, 1)


class Pack:
    """One packing step being written."""

    def __init__(self, builder: Builder, step: Assign, expr: Expr) -> None:
        tile = builder.tiles[step.tile]
        self.builder: Builder = builder
        self.step: Assign = step
        self.emitter: Emitter = builder.emitter
        self.memory: int = builder.memory[step.tile]
        self.expr: Expr = expr
        self.zero: Expr = const(0, expr.dtype)
        self.target: Index = flat_position(tile, step.index or ())
        width = LANES[tile.dtype.itemsize]
        self.lanes: int = width if self.is_vector(step.dims) else 1
        self.others: list[Pack] = []  # what is computed at the same points

    def is_vector(self, dims: Sequence[Axis]) -> bool:
        """Tell whether the last dim is contiguous in the panel and regular in every load."""
        if not dims or not is_unit(self.target, dims[-1]):
            return False
        tiles = self.builder.tiles
        indices = [node.arg[1] for node in walk(self.expr) if node.op == "load"]
        reads = [node.arg for node in walk(self.expr) if node.op == "tile"]
        indices += [flat_position(tiles[name], place) for name, place in reads]
        used = [i for i in indices if dims[-1] in self.emitter.index_axes(i)]
        return all(is_unit(index, dims[-1]) for index in used)

    def is_crossed(self, dims: Sequence[Axis]) -> bool:
        """Tell whether rows of memory, as they are or widened, become columns of the panel."""
        inner = narrow(self.expr)
        if len(dims) != 2 or dims[0].size < LEAST or inner.op != "load":
            return False
        return is_unit(self.target, dims[0]) and is_unit(inner.arg[1], dims[1])

    def nest(self, dims: Sequence[Axis], conditions: Sequence[Condition], fills: bool) -> None:
        """Emit the loops over `dims`; `fills`: write zeros."""
        emitter = self.emitter
        ready = [c for c in conditions if emitter.index_axes(c[0]).isdisjoint(dims)]
        holds = emitter.conditions(ready)
        if holds is not None:
            later = [c for c in conditions if c not in ready]
            with emitter.when(holds):
                self.nest(dims, later, False)
            with emitter.when(emitter.raw("not", bool_, holds)):
                self.nest(dims, (), True)
        elif not conditions and not fills and self.is_crossed(dims):
            linearize_turn(self.builder, replace(self.step, dims=tuple(dims), expr=self.expr))
        elif len(dims) > 1:
            with emitter.axis_loop(dims[0], None):
                self.nest(dims[1:], [c for c in conditions if c not in ready], fills)
        elif not dims:
            self.point(fills)
        else:
            self.row(dims[0], [c for c in conditions if c not in ready], fills)

    def row(self, axis: Axis, conditions: Sequence[Condition], fills: bool) -> None:
        """Emit the innermost loop, or two where guards depend on it: zeros, then the valid part."""
        emitter = self.emitter
        zero, size = emitter.integer(0), emitter.integer(axis.size)
        if not conditions:
            self.span(axis, zero, size, fills)
            return
        found = [as_bounds(condition, axis, ()) for condition in conditions]
        bounds = [each for each in found if each is not None]
        if len(bounds) == len(conditions) and self.has_masks(axis):
            self.masked(axis, bounds)
            return
        if len(bounds) < len(conditions):
            with emitter.axis_loop(axis, None):
                holds = emitter.conditions(conditions)
                with emitter.when(holds):
                    self.point(False)
                if holds is not None:
                    with emitter.when(emitter.raw("not", bool_, holds)):
                        self.point(True)
            return
        self.span(axis, zero, size, True)
        self.span(axis, *self.between(axis, bounds), False)

    def between(self, axis: Axis, bounds: Sequence[tuple[Index, Index]]) -> tuple[int, int]:
        """Say where what all bounds allow begins and ends along an axis."""
        emitter = self.emitter
        start, stop = emitter.integer(0), emitter.integer(axis.size)
        for low, high in bounds:
            start = emitter.raw("maximum", emitter.index_dtype, start, emitter.index(low))
            stop = emitter.raw("minimum", emitter.index_dtype, stop, emitter.index(high))
        return start, stop

    def has_masks(self, axis: Axis) -> bool:
        """Tell whether all that is read are wide elements along an axis: machines mask those."""
        if axis.size < LEAST_MASKED or self.lanes == 1 or self.builder.vector_bytes < MASKED_BYTES:
            return False
        leaves = [node for node in walk(self.expr) if node.op in ("load", "index", "guard")]
        return all(self.is_along(leaf, axis) for leaf in leaves)

    def is_along(self, leaf: Expr, axis: Axis) -> bool:
        """Tell whether a leaf reads a wide element of memory, the next one along an axis."""
        if leaf.op != "load" or leaf.dtype.itemsize < 4:
            return False
        index = leaf.arg[1]
        return is_unit(index, axis) and not any(True for _ in dynamics_of(index))

    def masked(self, axis: Axis, bounds: Sequence[tuple[Index, Index]]) -> None:
        """Emit vectors whose lanes between the bounds are read; the others are 0."""
        emitter, lanes = self.emitter, self.lanes
        start, stop = self.between(axis, bounds)
        rest = axis.size % lanes
        whole = emitter.integer(axis.size - rest)
        if axis.size >= lanes:
            with emitter.loop(emitter.integer(0), whole, lanes, None) as at:
                self.some_lanes(axis, at, (start, stop), lanes)
        if rest:
            self.some_lanes(axis, whole, (start, stop), rest)

    def some_lanes(self, axis: Axis, at: int, ends: tuple[int, int], count: int) -> None:
        """Emit a vector of `count` elements, of which those between two ends are read."""
        emitter, lanes = self.emitter, self.lanes
        places = emitter.add(
            "pack", int32, [emitter.const(n, int32) for n in range(lanes)], lanes=lanes
        )
        low, high = (
            emitter.cast(emitter.raw("sub", emitter.index_dtype, end, at), int32) for end in ends
        )
        above = emitter.raw("less_equal", bool_, low, places)
        mask = emitter.raw("and", bool_, above, emitter.raw("less", bool_, places, high))
        with emitter.scope({axis: at}, (axis, lanes)):
            emitter.scopes[-1].mask = mask
            value = emitter.splat(emitter.value(self.expr), lanes)
            if self.expr.op != "load":
                zero = emitter.splat(emitter.value(self.zero), lanes)
                value = emitter.raw("where", emitter.dtype(value), mask, value, zero)
            stored = first_lanes(emitter, count, lanes)
            emitter.store(self.memory, emitter.index(self.target), value, *stored)

    def span(self, axis: Axis, start: int, stop: int, fills: bool) -> None:
        """Emit axis = start..stop-1: whole vectors, then what is left."""
        emitter = self.emitter
        first, last = emitter.instructions[start].arg, emitter.instructions[stop].arg
        is_fixed = isinstance(first, int) and isinstance(last, int)
        lanes = self.lanes
        if lanes == 1 or (is_fixed and last - first < 4):
            self.loop(axis, start, stop, 1, fills)
        elif not is_fixed:
            length = emitter.raw("sub", emitter.index_dtype, stop, start)
            whole = emitter.raw("maximum", emitter.index_dtype, length, emitter.integer(0))
            count = emitter.arithmetic("quotient", whole, emitter.integer(lanes))
            size = emitter.arithmetic("mul", count, emitter.integer(lanes))
            middle = emitter.arithmetic("add", start, size)
            self.loop(axis, start, middle, lanes, fills)
            self.loop(axis, middle, stop, 1, fills)
        else:
            while lanes > 1 and first < last:
                middle = first + (last - first) // lanes * lanes
                self.loop(axis, emitter.integer(first), emitter.integer(middle), lanes, fills)
                first, lanes = middle, lanes // 2
            self.loop(axis, emitter.integer(first), emitter.integer(last), 1, fills)

    def loop(self, axis: Axis, start: int, stop: int, lanes: int, fills: bool) -> None:
        """Emit one loop in steps of `lanes`; nothing if it is known to be empty."""
        emitter = self.emitter
        first, last = emitter.instructions[start], emitter.instructions[stop]
        if first.op == last.op == "const" and first.arg >= last.arg:
            return
        with emitter.loop(start, stop, lanes, None) as variable:
            vector = (axis, lanes) if lanes > 1 else None
            with emitter.scope({axis: variable}, vector):
                self.point(fills, lanes)

    def point(self, fills: bool, lanes: int = 1) -> None:
        """Emit one element, or one vector of elements."""
        emitter = self.emitter
        value = emitter.value(self.zero if fills else self.expr)
        value = emitter.splat(value, lanes) if lanes > 1 else value
        emitter.store(self.memory, emitter.index(self.target), value)
        for other in self.others:
            other.point(fills, lanes)


def as_bounds(
    condition: Condition, axis: Axis, inner: Sequence[Axis]
) -> tuple[Index, Index] | None:
    """Turn lo <= step * axis + rest <= hi into begin <= axis < end; None if it has another form."""
    index, lo, hi = condition
    direct = [c for atom, c in index.terms if atom is axis]
    rest = Index(tuple((a, c) for a, c in index.terms if a is not axis), index.const)
    mentioned = axes_of(rest)
    if len(direct) != 1 or axis in mentioned or not mentioned.isdisjoint(inner):
        return None
    (step,) = direct
    if step < 1:
        return None
    return (rest * -1 + (lo + step - 1)) // step, (rest * -1 + hi) // step + 1
