"""range_kernels: kernels that find which places rows see through a mask of numbers in memory.

Rows are compared by the least and the most of their numbers, places one by one. Where a mask is no
comparison of what rows have with what places have, a kernel before looks at all of it, and finds
which of its blocks show anything, and which all: it counts the two for each block (`CELLS`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from picograd.dtype import DType, bool_, int32
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.assemble import hero_of
from picograd.schedule.canonical import SCALAR
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, position_over
from picograd.schedule.loop import (
    Compute,
    Expr,
    Kernel,
    Part,
    Slot,
    const,
    dynamics_of,
    indices_of,
    rewrite,
    walk,
)
from picograd.schedule.monoid import identity
from picograd.schedule.normalize import normalize_part
from picograd.schedule.score_masks import affine, negated

GRAIN = 64  # rows, and places, that share a range
CELLS = 2  # most that is counted of a block: 1 where it shows anything, 2 where all
SHARED = 4  # streams that have a mask in common, at least, which is looked at whole
Range = tuple[Expr, Expr]  # the least and the most that a value is


@dataclass(frozen=True, slots=True)
class Mask:
    """What rows see: where all conditions hold. `batch` are other axes that they depend on."""

    conditions: tuple[Expr, ...]
    batch: tuple[Axis, ...]
    row: Axis
    place: Axis

    @property
    def grains(self) -> tuple[int, int]:
        """Count the grains of rows, and of places."""
        return ceil_div(self.row.size, GRAIN), ceil_div(self.place.size, GRAIN)

    @property
    def is_turned(self) -> bool:
        """Tell whether places are farther apart in memory than rows: where rows are the keys."""
        loads = [part for each in self.conditions for part in walk(each) if part.op == "load"]
        steps = [dict(part.arg[1].terms) for part in loads]
        return any(step.get(self.place, 0) > step.get(self.row, 0) for step in steps)


@dataclass(frozen=True, slots=True)
class Ranges:
    """A kernel that finds ranges, or what they are found in: it reads slots of the stream, or what
    the kernel `before` it wrote, and writes arrays of its own."""

    kernel: Kernel
    reads: tuple[int, ...]
    before: "Ranges | None" = None


def axes_in(expr: Expr) -> set[Axis]:
    """Find every axis that an expression depends on."""
    indices = [index for part in walk(expr) for index in indices_of(part)]
    return set().union(*map(axes_of, indices))


class Finder:
    """This class writes the kernel that finds ranges."""

    def __init__(self, kernel: Kernel, mask: Mask) -> None:
        self.stream, self.mask = kernel, mask
        rows, _ = mask.grains
        self.grain = Axis("r", rows)
        self.over = Axis("k", mask.place.size)
        self.axes = (*mask.batch, self.grain)
        self.computes: list[Compute] = []
        self.known: dict[Expr, Range] = {}
        self.slots: dict[int, int] = {}  # of the stream
        self.stores = 0

    def ranges(self) -> Ranges | None:
        """Write the kernel; None if it would take too long."""
        every = list(map(self.range_of, self.mask.conditions))
        known = [each for each in every if each is not None]
        if len(known) < len(every):
            if not self.is_shared():
                return None
            return self.ranges_of_blocks()
        must, may = (reduce(both, each) for each in zip(*known, strict=True))
        self.add_ends(must, may)
        return self.finish("ranges")

    def ranges_of_blocks(self) -> Ranges:
        """Look at the whole mask, one block of it after the other, and find ranges of blocks."""
        before = Finder(self.stream, self.mask).look_at_blocks()
        _, places = self.mask.grains
        self.over = Axis("k", places)
        self.computes = []
        self.slots = {}
        self.stores = 2
        sides = (self.over, self.grain) if self.mask.is_turned else (self.grain, self.over)
        at = position_over((*self.mask.batch, *sides))
        may, must = (Expr("load", (), (number, at), int32) for number in range(2))
        self.add_reach(as_truth(may), axis_index(self.over))
        cell = Expr("add", (may, must), None, int32)
        axes = *self.axes, self.over
        self.store(Compute(axes, (), None, cell, int32))
        return self.finish("ranges", before)

    def look_at_blocks(self) -> Ranges:
        """Write the kernel that finds which blocks show anything, and which all.

        It is the same whichever side streams: its sides are as far and near as the mask has them.
        """
        mask = self.mask
        sides = (mask.row, mask.place)
        if mask.is_turned:
            sides = (mask.place, mask.row)
        grains = []
        over = Axis("t", GRAIN), Axis("u", GRAIN)
        values: dict[Axis, Index] = {}
        for name, side, own in zip("rc", sides, over, strict=True):
            grain = Axis(name, ceil_div(side.size, GRAIN))
            grains.append(grain)
            values[side] = axis_index(grain) * GRAIN + axis_index(own)
        parts = [rewrite(each, values, self.own) for each in mask.conditions]
        value = as_number(reduce(both, parts))
        self.stores = len(self.slots)
        self.axes = (*mask.batch, *grains)
        for monoid, none in (("max", 0), ("min", 1)):
            fill = const(none, int32)
            body = value
            for each in reversed(sides):
                body = guard(body, fill, values[each], each.size)
            self.store(Compute(self.axes, over, monoid, body, int32))
        return self.finish("blocks", sides=sides)

    def finish(self, name: str, before: Ranges | None = None, sides: Sequence[Axis] = ()) -> Ranges:
        """Make a kernel of what was written; it reads what the one before it wrote, if any."""
        rows, places = sides or (self.mask.row, self.mask.place)
        computes = tuple(self.computes)
        part = normalize_part(Part(self.axes, computes))
        reads = tuple(self.slots)
        read = [self.stream.slots[number] for number in reads]
        if before is not None:
            read = [slot for slot in before.kernel.slots if slot.role == "out"]
        slots = [replace(slot, role="in") for slot in read]
        for compute in self.computes:
            if compute.store is not None:
                size = product(axis.size for axis in compute.axes)
                slots.append(Slot(int32, size, "out"))
        name = f"reduce_score_{name}_{rows.size}x{places.size}"
        hero = hero_of("reduce", part)
        is_scaled = any(reads_scalar(compute.body) for compute in computes)
        scalars = self.stream.scalars if is_scaled else ()
        kernel = Kernel(name, hero, tuple(slots), scalars, (part,))
        return Ranges(kernel, reads, before)

    def is_shared(self) -> bool:
        """Tell whether many streams have the mask in common."""
        (part,) = self.stream.parts
        axes = *self.mask.batch, self.mask.row
        own = product(axis.size for axis in axes)
        return own * SHARED <= product(axis.size for axis in part.rows)

    def add_ends(self, must: Expr, may: Expr) -> None:
        """Find the grains of places that are seen, and the places around their middle that all
        rows see."""
        self.stores = self.stores or len(self.slots)
        own = axis_index(self.over)
        first, stop = self.add_reach(may, own // GRAIN)
        half = const(GRAIN // 2, int32)
        total = Expr("add", (first, stop), None, int32)
        middle = Expr("mul", (total, half), None, int32)
        is_before = test("less", position(own), middle)
        is_hidden = negated(must)
        before = both(is_hidden, is_before)
        behind = both(is_hidden, negated(is_before))
        self.add_end("max", before, own + 1, 0)
        self.add_end("min", behind, own, self.mask.place.size)

    def add_reach(self, may: Expr, grain: Index) -> tuple[Expr, Expr]:
        """Find the first grain of places that is seen, and what is behind the last."""
        _, places = self.mask.grains
        first = self.add_end("min", may, grain, places)
        return first, self.add_end("max", may, grain + 1, 0)

    def add_end(self, monoid: str, seen: Expr, index: Index, none: int) -> Expr:
        """Find the least or the most of an index where a condition holds."""
        args = seen, position(index), const(none, int32)
        value = Expr("where", args, None, int32)
        over = (self.over,)
        return self.store(Compute(self.axes, over, monoid, value, int32))

    def store(self, compute: Compute) -> Expr:
        """Add a compute that is stored, and refer to it."""
        place = self.stores, position_over(compute.axes)
        self.stores += 1
        return self.add(replace(compute, store=place))

    def add(self, compute: Compute) -> Expr:
        """Add a compute, and refer to it."""
        number = len(self.computes)
        self.computes.append(compute)
        return Expr("ref", (), number, compute.dtype)

    # -- expressions ------------------------------------------------------------------------------

    def rows_at(self, within: Index) -> Index:
        """Number a row of a grain."""
        return axis_index(self.grain) * GRAIN + within

    def moved(self, expr: Expr, within: Index, place: Index | None = None) -> Expr:
        """Write an expression for a row of a grain, and a place."""
        if place is None:
            place = axis_index(self.over)
        values = {self.mask.row: self.rows_at(within), self.mask.place: place}
        return rewrite(expr, values, self.own)

    def own(self, expr: Expr) -> Expr | None:
        """Let a load be one of the kernel."""
        if expr.op != "load":
            return None
        slot, index = expr.arg
        number = self.slots.setdefault(slot, len(self.slots))
        return Expr("load", (), (number, index), expr.dtype)

    def range_of(self, expr: Expr) -> Range | None:
        """Find the least and the most of an expression over the rows of a grain, at a place.

        None where that is not known.
        """
        axes = axes_in(expr)
        if self.mask.row not in axes:
            value = self.moved(expr, constant(0))
            return value, value
        index = affine(expr)
        if index is not None and not any(dynamics_of(index)):
            return self.range_of_positions(index, expr.dtype)
        if self.mask.place not in axes:
            return self.range_of_rows(expr)
        row = OPS.get(expr.op)
        if row is None or (not row.logic and row.least is None):
            return None
        parts = list(map(self.range_of, expr.args))
        known = [each for each in parts if each is not None]
        if len(known) < len(parts):
            return None
        return compared(expr, known)

    def range_of_positions(self, index: Index, dtype: DType) -> Range | None:
        """Find the least and the most of a sum of positions."""
        row = self.mask.row
        factor = dict(index.terms).get(row, 0)
        if row in axes_of(index - axis_index(row) * factor):
            return None
        value = Expr("index", (), index, dtype)
        first = self.moved(value, constant(0))
        last = self.moved(value, constant(GRAIN - 1))
        return (first, last) if factor > 0 else (last, first)

    def range_of_rows(self, expr: Expr) -> Range:
        """Reduce what has one value a row: that of each row counts more than once."""
        within = axis_index(self.over) % GRAIN
        value = self.moved(expr, within)
        if value not in self.known:
            low = self.reduced("min", value, within)
            high = self.reduced("max", value, within)
            self.known[value] = low, high
        return self.known[value]

    def reduced(self, monoid: str, value: Expr, within: Index) -> Expr:
        """Reduce a value over the rows of a grain."""
        own = as_number(value)
        dtype = own.dtype
        fill = const(identity(monoid, dtype), dtype)
        body = guard(own, fill, self.rows_at(within), self.mask.row.size)
        over = (self.over,)
        found = self.add(Compute(self.axes, over, monoid, body, dtype))
        return found if own is value else as_truth(found)


def guard(value: Expr, fill: Expr, at: Index, size: int) -> Expr:
    """Leave out what is behind the end, if anything is."""
    if at.hi < size:
        return value
    is_there = at, 0, size - 1
    return Expr("guard", (value, fill), (is_there,), value.dtype)


def reads_scalar(expr: Expr) -> bool:
    """Tell whether an expression, or a place where it reads, is made of numbers of the launch."""
    for part in walk(expr):
        if part.op == SCALAR:
            return True
        for index in indices_of(part):
            for atom in dynamics_of(index):
                if reads_scalar(atom.expr):
                    return True
    return False


def position(index: Index) -> Expr:
    """Write an index as a number."""
    return Expr("index", (), index, int32)


def as_truth(value: Expr) -> Expr:
    """Write a number as a truth value."""
    return Expr("cast", (value,), None, bool_)


def as_number(value: Expr) -> Expr:
    """Write a truth value as a number."""
    return value if value.dtype is not bool_ else Expr("cast", (value,), None, int32)


def both(first: Expr, second: Expr) -> Expr:
    """Write that two conditions hold."""
    return Expr("logical_and", (first, second), None, bool_)


def test(op: str, a: Expr, b: Expr) -> Expr:
    """Compare two values."""
    return Expr(op, (as_number(a), as_number(b)), None, bool_)


def compared(expr: Expr, parts: Sequence[Range]) -> Range:
    """Find whether a comparison, or conditions together, must hold, and whether they may.

    What is NaN is not known to be less than anything: it may be equal.
    """
    row = OPS[expr.op]
    (low, high), *rest = parts
    if row.logic == "not":
        return negated(high), negated(low)
    ((other_low, other_high),) = rest
    if row.logic in ("both", "either"):
        must = Expr(expr.op, (low, other_low), None, bool_)
        may = Expr(expr.op, (high, other_high), None, bool_)
        return must, may
    if row.least is not None:
        opposite = "less" if row.least == 0 else "less_equal"
        must = test(expr.op, high, other_low)
        return must, negated(test(opposite, other_high, low))
    is_less = test("less", high, other_low)
    is_more = test("less", other_high, low)
    may = both(negated(is_less), negated(is_more))
    is_one = test("equal", low, high)
    is_other = test("equal", other_low, other_high)
    is_same = test("equal", low, other_low)
    must = both(both(is_one, is_other), is_same)
    return (must, may) if row.logic == "same" else (negated(may), negated(must))
