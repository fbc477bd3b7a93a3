"""score_ranges: which places rows see through masks of numbers in memory, found before a stream.

    where((j <= i) & (doc[i] == doc[j]), score, -inf)

    first[r] = min over j of where(rows r*64 ... r*64 + 63 may see j, j // 64, none)
    stop[r]  = max over j of where(rows r*64 ... r*64 + 63 may see j, j // 64 + 1, 0)

Small reductions find them, in the kernel of the stream or before it, and the stream leaves out what
lies before or behind: a guard around what it sums, true wherever anything is seen. They also find
the places around the middle of these that all rows of a grain see, where masks hold without a look
at their numbers. Rows are compared by the least and the most of their numbers; where a mask is no
comparison of what rows have with what places have, it is looked at whole, and each of its blocks is
known: whether it shows anything, and whether all.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from picograd.dtype import bool_, int32, int64
from picograd.graph.ops import OPS
from picograd.helpers import product
from picograd.schedule.in_place import renumbered
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, axis_index, constant, flatten
from picograd.schedule.loop import (
    Compute,
    Condition,
    Expr,
    Kernel,
    Part,
    Slot,
    const,
    dynamics_of,
    rewrite,
    walk,
)
from picograd.schedule.monoid import identity
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.schedule.range_kernels import CELLS, GRAIN, Finder, Mask, Ranges, axes_in, both
from picograd.schedule.recompute import written_by
from picograd.schedule.score_masks import (
    LOWEST,
    conjuncts,
    filled,
    hiding,
    is_of_numbers,
    seen_where,
    weighing,
)
from picograd.target import Target

ADDED = 16  # streams that have added numbers in common, at least, which are looked at whole
LEAST = 512  # rows, and places: of fewer it is not worth a kernel
OPERATIONS = 64  # of a mask
COMPUTED = ("ref", "element")  # by the same kernel
Key = tuple[str, tuple[int, ...], tuple[int, ...]]  # a kernel, and the slots and scalars it reads
Added = frozenset[tuple[int, int]]  # numbers that are added: slots of a plan, and where they begin


def find_ranges(slots: list[PlanSlot], steps: Sequence[Step], target: Target) -> list[Step]:
    """Let streams see where masks of numbers in memory begin and end; adds to the slots.

    Streams with the same mask share what is found, until somebody writes what it was found in. On
    a GPU the first of them finds it in parts of its own, else small kernels before it do.
    """
    made = Made(slots)
    done: list[Step] = []
    shared = shared_rows(steps)
    for step in steps:
        written = set(written_by(step))
        if isinstance(step, KernelLaunch):
            step = made.ranged(step, shared)
            before, made.launches = made.launches, []
            if target.has_blocks and before:
                step = finding(step, before)
            else:
                done += before
        done.append(step)
        made.forget(written)
    return done


def finding(stream: KernelLaunch, before: Sequence[KernelLaunch]) -> KernelLaunch:
    """Let the kernel of a stream find its ranges: by the parts of launches before it."""
    numbers, slots = list(stream.slots), list(stream.kernel.slots)
    parts: list[Part] = []
    for launch in before:
        places = []
        for number, slot in zip(launch.slots, launch.kernel.slots, strict=True):
            if number not in numbers:
                numbers.append(number)
                slots.append(slot)
            place = numbers.index(number)
            places.append(place)
            if slot.role == "out":
                slots[place] = slot
        moved = dict(enumerate(places))
        parts += [renumbered(part, moved) for part in launch.kernel.parts]
    parts += stream.kernel.parts
    name = f"{stream.kernel.name}_ranges"
    kernel = replace(stream.kernel, name=name, slots=tuple(slots), parts=tuple(parts))
    return replace(stream, kernel=kernel, slots=tuple(numbers))


class Made:
    """This class makes launches of kernels that find ranges, once each."""

    def __init__(self, slots: list[PlanSlot]) -> None:
        self.slots = slots
        self.launches: list[KernelLaunch] = []  # for the next stream
        self.known: dict[Key, tuple[int, ...]] = {}

    def ranged(self, stream: KernelLaunch, shared: Mapping[Added, int]) -> KernelLaunch:
        """Let a stream leave out what its mask hides, if that is worth finding."""
        mask = mask_of(stream, shared)
        ranges = None if mask is None else Finder(stream.kernel, mask).ranges()
        if mask is None or ranges is None:
            return stream
        added = self.find(ranges, stream)
        kernel = guarded(stream.kernel, mask, ranges)
        return replace(stream, kernel=kernel, slots=(*stream.slots, *added))

    def find(self, ranges: Ranges, stream: KernelLaunch) -> tuple[int, ...]:
        """Launch a kernel before a stream, unless what it finds is there; tells in which slots."""
        reads = tuple([stream.slots[number] for number in ranges.reads])
        if ranges.before is not None:
            reads = self.find(ranges.before, stream)
        kernel = ranges.kernel
        scalars = stream.scalars if kernel.scalars else ()
        key = repr(kernel), reads, scalars
        if key not in self.known:
            self.known[key] = made = tuple(self.add_slots(kernel, stream.device))
            self.launches.append(KernelLaunch(kernel, (*reads, *made), scalars, stream.device))
        return self.known[key]

    def add_slots(self, kernel: Kernel, device: str) -> Iterator[int]:
        """Add temporaries for what a kernel finds; yields their numbers."""
        for slot in kernel.slots:
            if slot.role == "out":
                yield len(self.slots)
                shape = (slot.size,)
                added = PlanSlot("temporary", slot.dtype, slot.size, device, shape, (1,))
                self.slots.append(added)

    def forget(self, written: set[int]) -> None:
        """Forget what was found in slots that are written now."""
        for key in list(self.known):
            if not written.isdisjoint(key[1]):
                del self.known[key]


def shared_rows(steps: Sequence[Step]) -> Counter[Added]:
    """Count the rows of all streams that have added numbers in common.

    Layers have, and gradients: one look serves them all.
    """
    found: Counter[Added] = Counter()
    for step in steps:
        seen = conditions_of(step) if isinstance(step, KernelLaunch) else None
        if seen is not None and isinstance(step, KernelLaunch):
            rows = product(axis.size for axis in step.kernel.parts[0].rows)
            for numbers in {added_by(x, step) for x in seen.conditions if is_of_numbers(x)}:
                found[numbers] += rows
    return found


def added_by(condition: Expr, step: KernelLaunch) -> Added:
    """Tell which numbers a condition reads."""
    loads = [expr.arg for expr in walk(condition) if expr.op == "load"]
    return frozenset([(step.slots[slot], index.const) for slot, index in loads])


def conditions_of(step: KernelLaunch) -> Mask | None:
    """Find the conditions of a stream that are known before its scores are."""
    if step.kernel.hero != "attention":
        return None
    part = step.kernel.parts[0]
    found = [compute for compute in part.computes if compute.reduce]
    over = found[-1].reduce
    sinks = [x for x in found if x.reduce == over or set(x.reduce) <= set(part.rows)]
    factors = [each for compute in found if compute not in sinks for each in compute.body.args]
    streamed = [axes for axes in map(axes_in, factors) if not axes.isdisjoint(over)]
    shared = set().union(*streamed)
    rows = [axis for axis in part.rows if axis not in shared]
    if len(over) != 1 or not rows:
        return None
    row, place = rows[-1], over[0]
    if min(row.size, place.size) < LEAST:
        return None
    kept = [each for each in part.computes if place in each.axes and not each.reduce]
    known = filter(is_known, common_conditions([*sinks, *kept]))
    return Mask(tuple(known), (), row, place)


def mask_of(step: KernelLaunch, shared: Mapping[Added, int]) -> Mask | None:
    """Find the conditions of a stream that compare numbers in memory; None if there are none."""
    seen = conditions_of(step)
    if seen is None:
        return None
    moving = {seen.row, seen.place}
    around = step.kernel.parts[0].rows
    rows = product(axis.size for axis in around)
    conditions = []
    for each in seen.conditions:
        axes = axes_in(each)
        is_common = is_of_numbers(each) and axes <= moving
        if may_hide(each, seen, shared[added_by(each, step)] if is_common else rows):
            conditions.append(each)
    if all(is_by_position(each, moving) for each in conditions):
        return None
    axes = set().union(*map(axes_in, conditions)) - moving
    if not axes <= set(around):
        return None
    batch = tuple([axis for axis in around if axis in axes])
    return replace(seen, conditions=tuple(conditions), batch=batch)


def may_hide(condition: Expr, seen: Mask, rows: int) -> bool:
    """Tell whether to look at a condition: biases, which hide nothing, differ between streams."""
    axes = axes_in(condition)
    own = product(axis.size for axis in axes if axis is not seen.place)
    is_worth = own * ADDED <= rows or not {seen.row, seen.place} <= axes
    return is_worth or not is_of_numbers(condition)


def common_conditions(sinks: Sequence[Compute]) -> list[Expr]:
    """List the conditions where which fail no sum of a stream gets anything, and 0 is kept."""
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


def guarded(kernel: Kernel, mask: Mask, ranges: Ranges) -> Kernel:
    """Let the sums of a stream leave out what more slots say that rows do not see.

    Where they see all of it, masks hold without a look at their numbers. Of a mask that was looked
    at whole, each block is known.
    """
    (part,) = kernel.parts
    reach, is_whole, found = seen_of(mask, len(kernel.slots), ranges)
    known = set(mask.conditions)

    def looked_at(expr: Expr) -> Expr | None:
        return with_whole(expr, is_whole, known)

    computes = []
    for compute in part.computes:
        if compute.reduce == (mask.place,):
            fill = const(identity(str(compute.monoid), compute.dtype), compute.dtype)
            args = rewrite(compute.body, {}, looked_at), fill
            compute = replace(compute, body=Expr("guard", args, reach, compute.dtype))
        elif compute.reduce == (mask.row,):
            compute = replace(compute, body=rewrite(compute.body, {}, looked_at))
        computes.append(compute)
    part = replace(part, computes=tuple(computes))
    return replace(kernel, slots=(*kernel.slots, *found), parts=(part,))


def seen_of(
    mask: Mask, count: int, ranges: Ranges
) -> tuple[tuple[Condition, ...], Expr, list[Slot]]:
    """Write where anything is seen, and where all is, by what slots from `count` on say."""
    rows, places = mask.grains
    sizes = [axis.size for axis in mask.batch]
    before = [axis_index(axis) for axis in mask.batch]
    grain = axis_index(mask.row) // GRAIN
    at = flatten([*before, grain], [*sizes, rows])
    first, stop = (read(number, at, places) for number in (count, count + 1))
    place = axis_index(mask.place)
    is_behind = place - first * GRAIN, 0, mask.place.size - 1
    is_before = stop * GRAIN - place - 1, 0, places * GRAIN - 1
    size = product(sizes) * rows
    ranged = [Slot(int32, size, "in")] * 2
    if ranges.before is None:
        begin, end = (read(number, at, mask.place.size) for number in (count + 2, count + 3))
        is_whole = both(compared_indices(begin, place), compared_indices(place + 1, end))
        return (is_behind, is_before), is_whole, ranged * 2
    block = flatten([*before, grain, place // GRAIN], [*sizes, rows, places])
    cell = read(count + 2, block, CELLS)
    is_any = cell - 1, 0, CELLS - 1
    is_whole = compared_indices(constant(CELLS), cell)
    cells = Slot(int32, size * places, "in")
    reach = is_behind, is_before, is_any
    return reach, is_whole, [*ranged, cells]


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
    return atom_index(Dynamic(Expr("load", (), (slot, at), int32), 0, most))
