"""score_ranges: which places rows see through masks of numbers in memory, found before a stream.

    where((j <= i) & (doc[i] == doc[j]), score, -inf)

    first[r] = min over j of where(rows r*64 ... r*64 + 63 may see j, j // 64, none)
    stop[r]  = max over j of where(rows r*64 ... r*64 + 63 may see j, j // 64 + 1, 0)

A small kernel finds them, and the stream leaves out what lies before or behind: a guard around
what it sums, true wherever anything is seen. It also finds the places around the middle of these
that all rows of a grain see, where masks hold without a look at their numbers. Rows are compared
by the least and the most of their numbers; where a mask is no comparison of what rows have with
what places have, it is looked at whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from picograd.dtype import DType, bool_, int32, int64
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.helpers import ceil_div, product
from picograd.schedule.assemble import hero_of
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axes_of,
    axis_index,
    constant,
    flatten,
    position_over,
)
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
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.recompute import written_by
from picograd.schedule.score_masks import (
    LOWEST,
    affine,
    conjuncts,
    filled,
    hiding,
    negated,
    seen_where,
    weighing,
)

GRAIN = 64  # rows, and places, that share a range
LEAST = 512  # rows, and places: of fewer it is not worth a kernel
OPERATIONS = 64  # of a mask
FOUND = 4  # arrays
COMPUTED = ("ref", "element")  # by the same kernel
SHARED = 4  # streams that have a mask in common, at least, which is looked at whole
Range = tuple[Expr, Expr]  # the least and the most that a value is
Key = tuple[str, tuple[int, ...], tuple[int, ...]]  # a kernel, and what it reads


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


@dataclass(frozen=True, slots=True)
class Ranges:
    """A kernel that finds ranges: slots of the stream that it reads; it writes two more."""

    kernel: Kernel
    reads: tuple[int, ...]


def find_ranges(slots: list[PlanSlot], steps: Sequence[Step]) -> list[Step]:
    """Let streams see where masks of numbers in memory begin and end; adds to the slots.

    Streams with the same mask share what is found, until somebody writes what it was found in.
    """
    found: list[Step] = []
    known: dict[Key, tuple[int, ...]] = {}
    for step in steps:
        ranges = ranges_of(step)
        if ranges is not None and isinstance(step, KernelLaunch):
            reads = tuple([step.slots[number] for number in ranges.reads])
            key = repr(ranges.kernel), reads, step.scalars
            if key not in known:
                known[key] = add_slots(slots, ranges.kernel, step.device)
                places = *reads, *known[key]
                found.append(KernelLaunch(ranges.kernel, places, step.scalars, step.device))
            step = replace(step, kernel=guarded(step.kernel), slots=(*step.slots, *known[key]))
        found.append(step)
        written = set(written_by(step))
        known = {key: made for key, made in known.items() if written.isdisjoint(key[1])}
    return found


def add_slots(slots: list[PlanSlot], kernel: Kernel, device: str) -> tuple[int, ...]:
    """Add temporaries for what a kernel finds."""
    count = len(slots)
    for slot in kernel.slots[-FOUND:]:
        shape = (slot.size,)
        added = PlanSlot("temporary", slot.dtype, slot.size, device, shape, (1,))
        slots.append(added)
    return tuple(range(count, count + FOUND))


def ranges_of(step: Step) -> Ranges | None:
    """Write the kernel that finds the ranges of a stream; None if nobody needs it."""
    if not isinstance(step, KernelLaunch) or step.kernel.hero != "attention":
        return None
    mask = mask_of(step.kernel.parts[0])
    if mask is None:
        return None
    return Finder(step.kernel, mask).ranges()


def mask_of(part: Part) -> Mask | None:
    """Find the conditions of a stream that compare numbers in memory; None if there are none."""
    found = [compute for compute in part.computes if compute.reduce]
    over = found[-1].reduce
    sinks = [compute for compute in found if compute.reduce == over]
    factors = [each for compute in found if compute not in sinks for each in compute.body.args]
    streamed = [axes for axes in map(axes_in, factors) if not axes.isdisjoint(over)]
    shared = set().union(*streamed)
    rows = [axis for axis in part.rows if axis not in shared]
    if len(over) != 1 or not rows:
        return None
    row, place = rows[-1], over[0]
    if min(row.size, place.size) < LEAST:
        return None
    moving = {row, place}
    conditions = tuple(filter(is_known, common_conditions(sinks)))
    is_plain = [is_by_position(each, moving) for each in conditions]
    if all(is_plain):
        return None
    axes = set().union(*map(axes_in, conditions)) - moving
    if not axes <= set(part.rows):
        return None
    batch = tuple([axis for axis in part.rows if axis in axes])
    return Mask(conditions, batch, row, place)


def common_conditions(sinks: Sequence[Compute]) -> list[Expr]:
    """List the conditions where which fail no sum of a stream gets anything."""
    peaks = [compute for compute in sinks if compute.monoid == "max"]
    needed = hiding if peaks else weighing
    every = []
    for compute in peaks or sinks:
        found = needed(unguarded(compute.body))
        every.append([part for each in found for part in conjuncts(each)])
    first, *others = every
    return [x for x in dict.fromkeys(first) if all(x in each for each in others)]


def unguarded(body: Expr) -> Expr:
    """Take guards off a whole body."""
    while body.op == "guard":
        body = body.args[0]
    return body


def axes_in(expr: Expr) -> set[Axis]:
    """Find every axis that an expression depends on."""
    indices = [index for part in walk(expr) for index in indices_of(part)]
    return set().union(*map(axes_of, indices))


def is_known(condition: Expr) -> bool:
    """Tell whether a condition is known before scores are, and cheap."""
    parts = walk(condition)
    is_cheap = len(parts) <= OPERATIONS
    return is_cheap and all(part.op not in COMPUTED for part in parts)


def is_by_position(condition: Expr, moving: set[Axis]) -> bool:
    """Tell whether a condition compares positions, and numbers that are the same for all rows."""
    found = seen_where(condition)
    if found is None:
        return False
    values = [atom.expr for index in found for atom in dynamics_of(index)]
    return all(moving.isdisjoint(axes) for axes in map(axes_in, values))


def guarded(kernel: Kernel) -> Kernel:
    """Let the sums of a stream leave out what more slots say that rows do not see.

    Where they see all of it, masks hold without a look at their numbers.
    """
    (part,) = kernel.parts
    mask = mask_of(part) or internal("a stream has no mask", kernel)
    rows, places = mask.grains
    count = len(kernel.slots)
    sizes = [axis.size for axis in mask.batch]
    before = map(axis_index, mask.batch)
    grain = axis_index(mask.row) // GRAIN
    at = flatten([*before, grain], [*sizes, rows])
    first, stop = (read(number, at, places) for number in (count, count + 1))
    begin, end = (read(number, at, mask.place.size) for number in (count + 2, count + 3))
    place = axis_index(mask.place)
    is_whole = both(compared_indices(begin, place), compared_indices(place + 1, end))
    known = set(mask.conditions)

    def looked_at(expr: Expr) -> Expr | None:
        return with_whole(expr, is_whole, known)

    is_behind = place - first * GRAIN, 0, mask.place.size - 1
    is_before = stop * GRAIN - place - 1, 0, places * GRAIN - 1
    computes = []
    for compute in part.computes:
        if compute.reduce == (mask.place,):
            fill = const(identity(str(compute.monoid), compute.dtype), compute.dtype)
            args = rewrite(compute.body, {}, looked_at), fill
            tests = is_behind, is_before
            body = Expr("guard", args, tests, compute.dtype)
            compute = replace(compute, body=body)
        computes.append(compute)
    part = replace(part, computes=tuple(computes))
    slot = Slot(int32, product(sizes) * rows, "in")
    slots = *kernel.slots, *[slot] * FOUND
    return replace(kernel, slots=slots, parts=(part,))


def compared_indices(low: Index, high: Index) -> Expr:
    """Write that an index is at most another."""
    args = Expr("index", (), low, int64), Expr("index", (), high, int64)
    return Expr("less_equal", args, None, bool_)


def with_whole(choice: Expr, is_whole: Expr, known: set[Expr]) -> Expr | None:
    """Let a `where` hold where all is seen, if its condition is one of those that are known."""
    row = OPS.get(choice.op)
    if row is None or row.linear != (1, 2):
        return None
    for fill in (LOWEST, 0.0):
        needed, shown = filled(choice, fill)
        if shown is None or not known.issuperset(conjuncts(*needed)):
            continue
        seen = Expr("logical_or", (is_whole, *needed), None, bool_)
        others = [each for each in choice.args[1:] if each is not shown]
        args = seen, shown, *others
        return Expr(choice.op, args, None, choice.dtype)
    return None


def read(slot: int, at: Index, most: int) -> Index:
    """Use an element of what was found as an index."""
    value = Expr("load", (), (slot, at), int32)
    return atom_index(Dynamic(value, 0, most))


class Finder:
    """This class writes the kernel that finds ranges."""

    def __init__(self, kernel: Kernel, mask: Mask) -> None:
        self.stream, self.mask = kernel, mask
        rows, _ = mask.grains
        self.grain, self.within = Axis("r", rows), Axis("t", GRAIN)
        self.over = Axis("k", mask.place.size)
        self.axes = (*mask.batch, self.grain)
        self.computes: list[Compute] = []
        self.known: dict[Expr, Range] = {}
        self.slots: dict[int, int] = {}  # of the stream
        self.found = 0  # arrays

    def ranges(self) -> Ranges | None:
        """Write the kernel; None if it would take too long."""
        mask = self.mask
        over: tuple[Axis, ...] = (self.over,)
        every = list(map(self.range_of, mask.conditions))
        known = [each for each in every if each is not None]
        if len(known) < len(every):
            if not self.is_shared():
                return None
            over = self.within, self.over
            within = axis_index(self.within)
            self.computes, self.slots = [], {}
            known = [
                (value, value) for value in [self.moved(each, within) for each in mask.conditions]
            ]
        must, may = (reduce(both, each) for each in zip(*known, strict=True))
        self.add_ends(must, may, over)
        computes = tuple(self.computes)
        part = normalize_part(Part(self.axes, computes))
        size = product(axis.size for axis in self.axes)
        reads = tuple(self.slots)
        slots = [replace(self.stream.slots[number], role="in") for number in reads]
        slots += [Slot(int32, size, "out")] * FOUND
        name = f"reduce_score_ranges_{mask.row.size}x{mask.place.size}"
        hero = hero_of("reduce", part)
        kernel = Kernel(name, hero, tuple(slots), self.stream.scalars, (part,))
        return Ranges(kernel, reads)

    def is_shared(self) -> bool:
        """Tell whether many streams have the mask in common."""
        (part,) = self.stream.parts
        axes = *self.mask.batch, self.mask.row
        own = product(axis.size for axis in axes)
        rows = product(axis.size for axis in part.rows)
        return own * SHARED <= rows

    def add_ends(self, must: Expr, may: Expr, over: tuple[Axis, ...]) -> None:
        """Find the grains of places that are seen, and the places around their middle that all
        rows see."""
        _, places = self.mask.grains
        own = axis_index(self.over)
        first = self.add_end("min", may, own // GRAIN, places, over)
        stop = self.add_end("max", may, own // GRAIN + 1, 0, over)
        half = const(GRAIN // 2, int32)
        total = Expr("add", (first, stop), None, int32)
        middle = Expr("mul", (total, half), None, int32)
        is_before = test("less", Expr("index", (), own, int32), middle)
        is_hidden = negated(must)
        before = both(is_hidden, is_before)
        behind = both(is_hidden, negated(is_before))
        self.add_end("max", before, own + 1, 0, over)
        self.add_end("min", behind, own, self.over.size, over)

    def add_end(
        self, monoid: str, seen: Expr, index: Index, none: int, over: tuple[Axis, ...]
    ) -> Expr:
        """Find the least or the most of an index where a condition holds."""
        fill = const(none, int32)
        value = Expr("index", (), index, int32)
        value = Expr("where", (seen, value, fill), None, int32)
        if self.within in over:
            value = self.guarded(value, fill, axis_index(self.within))
        store = len(self.slots) + self.found, position_over(self.axes)
        self.found += 1
        return self.add(Compute(self.axes, over, monoid, value, int32, store))

    def add(self, compute: Compute) -> Expr:
        """Add a compute, and refer to it."""
        number = len(self.computes)
        self.computes.append(compute)
        return Expr("ref", (), number, compute.dtype)

    # -- expressions ------------------------------------------------------------------------------

    def rows_at(self, within: Index) -> Index:
        """Number a row of a grain."""
        return axis_index(self.grain) * GRAIN + within

    def guarded(self, value: Expr, fill: Expr, within: Index) -> Expr:
        """Leave out what is behind the last row, if the last grain is no whole one."""
        size = self.mask.row.size
        if size % GRAIN == 0:
            return value
        is_there = self.rows_at(within), 0, size - 1
        return Expr("guard", (value, fill), (is_there,), value.dtype)

    def moved(self, expr: Expr, within: Index) -> Expr:
        """Write an expression for a row of a grain, and a place."""
        values = {self.mask.row: self.rows_at(within), self.mask.place: axis_index(self.over)}
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
        ends = constant(0), constant(GRAIN - 1)
        value = Expr("index", (), index, dtype)
        first, last = (self.moved(value, within) for within in ends)
        return (first, last) if factor > 0 else (last, first)

    def range_of_rows(self, expr: Expr) -> Range:
        """Reduce what has one value a row: that of each row counts more than once."""
        within = axis_index(self.over) % GRAIN
        value = self.moved(expr, within)
        if value not in self.known:
            low, high = (self.reduced(monoid, value, within) for monoid in ("min", "max"))
            self.known[value] = low, high
        return self.known[value]

    def reduced(self, monoid: str, value: Expr, within: Index) -> Expr:
        """Reduce a value over the rows of a grain."""
        own = as_number(value)
        fill = const(identity(monoid, own.dtype), own.dtype)
        body = self.guarded(own, fill, within)
        found = self.add(Compute(self.axes, (self.over,), monoid, body, own.dtype))
        return found if own is value else Expr("cast", (found,), None, bool_)


def as_number(value: Expr) -> Expr:
    """Write a truth value as a number."""
    return Expr("cast", (value,), None, int32) if value.dtype is bool_ else value


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
        fails = test(opposite, other_high, low)
        return must, negated(fails)
    is_less = test("less", high, other_low)
    is_more = test("less", other_high, low)
    is_one = both(test("equal", low, high), test("equal", other_low, other_high))
    must = both(is_one, test("equal", low, other_low))
    may = both(negated(is_less), negated(is_more))
    return (must, may) if row.logic == "same" else (negated(may), negated(must))
