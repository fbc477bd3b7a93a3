"""folding: what a map puts one behind another is computed where the map before it works.

    t0[a, b] = f(x[a, b])                  t1[a, b] = g(x[a, b])              over 32 x 512
    y[a, c] = (t0[a, c] if c < 512) + (t1[a, c - 512] if c >= 512)            over 32 x 1024

    y[a, b] = f(x[a, b])                   y[a, b + 512] = g(x[a, b])         over 32 x 512

The gradients of slices of an array are such a sum: those of the gates of a recurrent network, of
which a step has one product. Where the guards of a map begin and end at multiples of one size, each
point computes an element of every piece, and of each sum what is not 0. If the map before it has as
many points, and stores what is read at its own, one kernel does both, and stores what others read.

On a GPU alone: a CPU works on pieces one after the other, in loops without guards.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, product
from math import gcd, prod
from typing import Any

from picograd.graph.ops import OPS
from picograd.late_methods import dataclass
from picograd.schedule.arrange import WORD_LIMIT
from picograd.schedule.group import GROUP_LIMIT, MEMBER_LIMIT
from picograd.schedule.in_place import (
    is_zero,
    launch_of,
    lives_of,
    renumbered,
    slots_of,
    slots_touched,
)
from picograd.schedule.index import Axis, Index, axis_index, position_over, substitute, unflatten
from picograd.schedule.loop import (
    Compute,
    Expr,
    Part,
    Slot,
    chosen,
    count_operations,
    rewrite_all,
    walk,
    walk_all,
)
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.target import Target

Axes = Mapping[Axis, Index]
Numbers = Mapping[int, int] | Sequence[int]  # of a kernel's slots
# What was made of kernels before: what keeps these, the slots of their launch, and launches.
Known = dict[tuple[Any, ...], tuple[Any, Sequence[int], Sequence[KernelLaunch]]]
MOST_PIECES = 16  # of a result of which a thread computes an element each
BETWEEN = 3  # steps that may stand between two maps of one kernel


@dataclass(frozen=True, slots=True)
class Pair:
    """Two maps in turn, and for each slot of the plan that they touch its number in one kernel."""

    first: KernelLaunch
    second: KernelLaunch
    numbers: Mapping[int, int]

    def slots_of(self, launch: KernelLaunch) -> dict[int, int]:
        """Number the slots of a launch as those of both."""
        return {place: self.numbers[slot] for place, slot in enumerate(launch.slots)}

    def every(self) -> Iterator[tuple[int, Slot]]:
        """Yield the slots of both as `numbers` has them; what both have as the first has it."""
        yield from zip(self.first.slots, self.first.kernel.slots, strict=True)
        for slot, own in zip(self.second.slots, self.second.kernel.slots, strict=True):
            if slot not in self.first.slots:
                yield slot, own


def fold_maps(
    slots: Sequence[PlanSlot], steps: Sequence[Step], copies: Sequence[Step], target: Target
) -> list[Step]:
    """Let maps compute what those after them put one behind another; see the module docstring."""
    if not target.has_blocks:
        return list(steps)
    found: list[Step] = []
    lives: dict[int, tuple[int, int]] = {}
    known: Known = {}
    for number, step in enumerate(steps):
        later, own, others = steps_between(found, step, known)
        found.append(own)
        is_folded = False
        behind: list[Step] = []
        needed = set(chain.from_iterable(map(slots_of, (*later, *others))))
        while len(found) > 1:
            pair = pair_of(*found[-2:])
            if pair is None:
                break
            lives = lives or lives_of([*steps, *copies])
            gone = {
                slot
                for slot in pair.numbers.keys() - needed
                if lives[slot][1] <= number and slots[slot].kind == "temporary"
            }
            launch = folded(pair, gone, is_folded, known)
            rest: list[Step] = []
            if launch is None and (halves := halves_of(pair, known)):
                rest += halves[1:]
                launch = folded(numbered(pair.first, halves[0]), gone, is_folded, known)
            if launch is None:
                break
            if rest:
                behind = [launch, *behind]
            found[-2:] = rest or [launch]
            is_folded = not rest
        is_moved = bool(behind) or found[-1] is not own
        if not is_moved:
            found.pop()
        found += [*behind, *later, *others] if is_moved else [*later, step]
    return found


def steps_between(
    found: list[Step], step: Step, known: Known
) -> tuple[list[Step], Step, list[Step]]:
    """Take off the steps between a map and one that reads what it stores, which need not wait.

    Of the reader there is what need not, and the rest.
    """
    for place in range(len(found) - 2, max(len(found) - 2 - BETWEEN, -1), -1):
        pair = pair_of(found[place], step)
        if pair is None:
            continue
        later = found[place + 1 :]
        own, *rest = halves_of(pair, known) or (pair.second,)
        if not all(is_free(each, own) for each in later):
            break
        del found[place + 1 :]
        return later, own if rest else step, [*rest]
    return [], step, []


def is_free(before: Step, step: Step) -> bool:
    """Tell whether a launch may run before one that stands before it."""
    if not isinstance(before, KernelLaunch) or not isinstance(step, KernelLaunch):
        return False
    written = [{*each.slots} - slots_in(each, "in") for each in (before, step)]
    return written[0].isdisjoint(step.slots) and written[1].isdisjoint(before.slots)


def pair_of(first: Step, second: Step) -> Pair | None:
    """Pair two maps of which the second reads what the first stores, and writes nothing else of it.

    Their points are told by the arrays alone: the second has several for each of the first.
    """
    if not isinstance(first, KernelLaunch) or not isinstance(second, KernelLaunch):
        return None
    stored = slots_in(first, "out")
    read = slots_in(second, "in")
    if first.device != second.device or stored.isdisjoint(read):
        return None
    if not is_plain(first) or not is_plain(second) or (first.scalars and second.scalars):
        return None
    if not slots_in(second, "out").isdisjoint(first.slots):
        return None
    return numbered(first, second)


def numbered(first: KernelLaunch, second: KernelLaunch) -> Pair:
    """Number the slots of both."""
    every = dict.fromkeys((*first.slots, *second.slots))
    numbers = {slot: number for number, slot in enumerate(every)}
    return Pair(first, second, numbers)


def halves_of(pair: Pair, known: Known) -> Sequence[KernelLaunch]:
    """Part the second map: what touches what the first stores, and what shares its launch alone."""
    stored = slots_in(pair.first, "out")
    second = pair.second
    read = frozenset(place for place, slot in enumerate(second.slots) if slot in stored)
    key = id(second.kernel), read
    if key not in known:
        known[key] = second, second.slots, parted(second, read)
    _, slots, halves = known[key]
    return [moved(half, second, slots, second.slots) for half in halves]


def parted(launch: KernelLaunch, read: Set[int]) -> Sequence[KernelLaunch]:
    """Part a launch in what touches some of its slots and what does not, if both are there."""
    own: list[Part] = []
    rest: list[Part] = []
    numbers = range(len(launch.slots))
    for group in groups_of([(part, numbers) for part in launch.kernel.parts]):
        parts = [part for part, _ in group]
        half = rest if read.isdisjoint(slots_touched(parts)) else own
        half += parts
    if not own or not rest or launch.scalars:
        return ()
    return launch_of(launch, own), launch_of(launch, rest)


def moved(
    launch: KernelLaunch, given: KernelLaunch, slots: Sequence[int], others: Sequence[int]
) -> KernelLaunch:
    """Launch a kernel on other slots, in the order of those it was made for, as `given` is."""
    there = dict(zip(slots, others, strict=True))
    return replace(given, kernel=launch.kernel, slots=tuple([there[n] for n in launch.slots]))


def slots_in(launch: KernelLaunch, role: str) -> set[int]:
    """List the slots of a plan that a launch has in a role."""
    both = zip(launch.slots, launch.kernel.slots)
    return {slot for slot, own in both if own.role == role}


def is_plain(launch: KernelLaunch) -> bool:
    """Tell whether a launch is a map that has all values of each of its parts at every point."""
    kernel = launch.kernel
    if kernel.hero != "map" or len({*launch.slots}) < len(launch.slots):
        return False
    if any(slot.role == "inout" for slot in kernel.slots):
        return False
    for part in kernel.parts:
        if part.scatter or part.along or part.ends:
            return False
        for each in part.computes:
            if each.reduce or each.seen or each.axes != part.rows:
                return False
    return True


def folded(pair: Pair, gone: set[int], is_again: bool, known: Known) -> KernelLaunch | None:
    """Compute both maps in one kernel, which does not store what is `gone`; None if it can not.

    Kernels that were folded so before, in another layer of a network, are `known`.
    """
    first, second = pair.first, pair.second
    own = tuple(pair.numbers)
    read = tuple([pair.numbers[slot] for slot in second.slots])
    left = frozenset(pair.numbers[slot] for slot in gone if slot in pair.numbers)
    key = id(first.kernel), id(second.kernel), read, left, is_again
    if key not in known:
        made = in_one(pair, gone, is_again)
        known[key] = pair, own, [] if made is None else [made]
    _, slots, found = known[key]
    given = second if second.scalars else first
    return moved(found[0], given, slots, own) if found else None


def in_one(pair: Pair, gone: set[int], is_again: bool) -> KernelLaunch | None:
    """Compute both maps in one kernel, if it can.

    One of them is in pieces, or was before one that it `is_again` folded with.
    """
    numbers = pair.slots_of(pair.first), pair.slots_of(pair.second)
    own = [(part, numbers[0]) for part in pair.first.kernel.parts]
    own += [(part, numbers[1]) for part in pair.second.kernel.parts]
    parts = []
    every: set[int] = set()
    for group in groups_of(own):
        earlier = [part for part, known in group if known is numbers[0]]
        readers = [part for part, known in group if known is numbers[1]]
        if not readers:
            parts += [renumbered(part, numbers[0]) for part in earlier]
            continue
        made = folded_parts(earlier, readers, numbers, is_again) if earlier else None
        if made is None:
            return None
        part, stored = made
        parts.append(part)
        every |= stored
    return kernel_of(pair, parts, every, gone)


def folded_parts(
    earlier: Sequence[Part],
    readers: Sequence[Part],
    numbers: tuple[Numbers, Numbers],
    is_again: bool,
) -> tuple[Part, set[int]] | None:
    """Compute parts of the first map, and of the second that read them, at the same points.

    Slots get other `numbers`, those of both; what the first stores are some of them.
    """
    before = [in_rows_of(part, readers) for part in earlier]
    rows = rows_of(before, readers, is_again)
    is_cut = rows is not None
    if rows is None:
        rows, *others = {part.rows: None for part in before}
        points = prod(axis.size for axis in rows)
        counts = [prod(sizes_of(part)) // max(points, 1) for part in readers]
        if others or not all(1 < count <= MOST_PIECES for count in counts):
            return None
    before = [renumbered(part, numbers[0]) for part in before]
    readers = [renumbered(part, numbers[1]) for part in readers]
    computes: list[Compute] = []
    stored: dict[tuple[int, Index], int] = {}
    for part in before:
        for piece in pieces_of(part, rows):
            computes += piece_of(part, rows, piece, stored, len(computes))
        stored |= {each.store: n for n, each in enumerate(computes) if each.store}
    for part in readers:
        pieces = [*pieces_of(part, rows)] if is_cut else stored_pieces(part, rows, stored)
        for piece in pieces:
            computes += piece_of(part, rows, piece, stored, len(computes))
        if not pieces:
            return None
    return Part(rows, tuple(computes)), {slot for slot, _ in stored}


def stored_pieces(
    part: Part, rows: tuple[Axis, ...], stored: Mapping[tuple[int, Index], int]
) -> list[Axes]:
    """Find what stands for the axes of a map at each element that is stored of what it reads.

    It reads one array, each element where it has one; of each point of `rows` several are stored.
    """
    here = position_over(part.rows)
    slots = {slot for slot, _ in stored}
    exprs = walk_all([each.body for each in part.computes])
    read = {expr.arg for expr in exprs if expr.op == "load" and expr.arg[0] in slots}
    places = [place for slot, place in stored if (slot, here) in read]
    sizes = sizes_of(part)
    is_whole = len(places) * prod(axis.size for axis in rows) == prod(sizes)
    if len(read) > 1 or not is_whole or not 1 < len(places) <= MOST_PIECES:
        return []
    return [dict(zip(part.rows, unflatten(place, sizes), strict=True)) for place in places]


def in_rows_of(part: Part, readers: Sequence[Part]) -> Part:
    """Give a part of one axis rows of several elements for each of a part that reads them."""
    points = prod(sizes_of(part))
    for reader in readers:
        *rows, size = sizes_of(reader) or (1,)
        count = prod(rows)
        is_flat = len(part.rows) == 1
        if rows and is_flat and size and not points % (count * size):
            sizes = *rows, points // count
            axes = tuple(Axis("i", n) for n in sizes)
            there = {part.rows[0]: position_over(axes)}
            computes = piece_of(part, axes, there, {}, 0)
            return Part(axes, tuple(computes))
    return part


def rows_of(
    before: Sequence[Part], after: Sequence[Part], is_again: bool
) -> tuple[Axis, ...] | None:
    """Find the axes of a kernel of all parts, of which some are in pieces; None if there are none.

    Guards tell where what the second map puts together is in pieces, shorter parts what it reads.
    """
    points = min(prod(sizes_of(part)) for part in (*before, *after))
    known = {sizes_of(part): part.rows for part in (*before, *after) if is_of(part, points)}
    shapes = [shapes_of(part, points) for part in after if not is_of(part, points)]
    cut = [cuts_of(part, points) for part in before if not is_of(part, points)]
    if cut:
        shapes += [*cut, [*known]]
    shapes = shapes or [[*known]] * is_again
    common = [shape for shape in chain(*shapes) if all(shape in each for each in shapes)]
    for shape in common:
        if shape in known:
            return known[shape]
    return tuple(Axis("i", size) for size in common[0]) if common else None


def is_of(part: Part, points: int) -> bool:
    """Tell whether a part has so many points."""
    return prod(sizes_of(part)) == points


def groups_of(parts: Sequence[tuple[Part, Numbers]]) -> list[list[tuple[Part, Numbers]]]:
    """Put parts that touch memory in common, by `Numbers`, together, each group in their order."""
    groups: list[tuple[set[int], list[tuple[Part, Numbers]]]] = []
    for part in parts:
        touched = {part[1][slot] for slot in slots_touched([part[0]])}
        shared = [each for each in groups if not touched.isdisjoint(each[0])]
        groups = [each for each in groups if touched.isdisjoint(each[0])]
        together = [*chain.from_iterable(own for _, own in shared), part]
        groups.append((touched.union(*(own for own, _ in shared)), together))
    return [own for _, own in groups]


def sizes_of(part: Part) -> tuple[int, ...]:
    """List the sizes of the axes of a part."""
    return tuple(axis.size for axis in part.rows)


def cuts_of(part: Part, points: int) -> list[tuple[int, ...]]:
    """Find the shapes of so many points that a map has where one of its axes is in pieces."""
    count, rest = divmod(prod(sizes_of(part)), max(points, 1))
    if rest or not 2 <= count <= MOST_PIECES:
        return []
    sizes = sizes_of(part)
    return [
        (*sizes[:place], size // count, *sizes[place + 1 :])
        for place, size in enumerate(sizes)
        if size % count == 0
    ]


def shapes_of(part: Part, points: int) -> list[tuple[int, ...]]:
    """Find those of its shapes where guards begin and end with the pieces.

    If it is not in pieces along one axis, it may be along several, as short as guards allow.
    """
    found = []
    for sizes in cuts_of(part, points):
        (place,) = (n for n, axis in enumerate(part.rows) if axis.size != sizes[n])
        ends = ends_along(part, part.rows[place])
        if ends and not any(end % sizes[place] for end in ends):
            found.append(sizes)
    least = tuple([gcd(axis.size, *ends_along(part, axis)) for axis in part.rows])
    if not found and prod(least) == points and prod(sizes_of(part)) <= MOST_PIECES * points:
        found.append(least)
    return found


def ends_along(part: Part, axis: Axis) -> list[int]:
    """List where guards on an axis alone begin and end."""
    found = []
    for compute in part.computes:
        for expr in walk(compute.body):
            for index, lo, hi in expr.arg if expr.op == "guard" else ():
                if index.terms == ((axis, 1),):
                    found += [lo - index.const, hi + 1 - index.const]
    return found


def axes_over(part: Part, rows: tuple[Axis, ...]) -> dict[Axis, Index]:
    """Say what stands for the axes of a part of as many points as other axes have."""
    places = [axis_index(axis) for axis in rows]
    sizes = sizes_of(part)
    if sizes != tuple(axis.size for axis in rows):
        position = position_over(rows)
        places = list(unflatten(position, sizes))
    return dict(zip(part.rows, places, strict=True))


def pieces_of(part: Part, rows: tuple[Axis, ...]) -> Iterator[Axes]:
    """Yield for each piece of a part what stands for its axes."""
    if prod(sizes_of(part)) == prod(axis.size for axis in rows):
        yield axes_over(part, rows)
        return
    pairs = list(zip(part.rows, rows, strict=True))
    for firsts in product(*[range(0, axis.size, row.size) for axis, row in pairs]):
        yield {axis: axis_index(row) + first for (axis, row), first in zip(pairs, firsts)}


def moved_store(compute: Compute, there: Axes) -> tuple[int, Index] | None:
    """Store a value, if it is stored, at a place over other axes."""
    if compute.store is None:
        return None
    slot, place = compute.store
    return slot, substitute(place, there)


def piece_of(
    part: Part,
    rows: tuple[Axis, ...],
    piece: Axes,
    stored: Mapping[tuple[int, Index], int],
    count: int,
) -> list[Compute]:
    """Compute a piece of the second map behind `count` other values, of which some are `stored`."""

    def settled(expr: Expr) -> Expr | None:
        row = OPS.get(expr.op)
        if expr.op == "ref":
            return Expr("ref", (), expr.arg + count, expr.dtype)
        if expr.op == "load" and expr.arg in stored:
            return Expr("ref", (), stored[expr.arg], expr.dtype)
        if expr.op == "guard":
            return settled_guard(expr)
        if row is not None and row.factors == (1, 1):
            left, right = expr.args
            return right if is_zero(left) else left if is_zero(right) else None
        return chosen(expr.op, expr.args) if row is not None and expr.args else None

    found = []
    bodies = rewrite_all([each.body for each in part.computes], piece, settled)
    for each, body in zip(part.computes, bodies, strict=True):
        store = moved_store(each, piece)
        found.append(replace(each, axes=rows, body=body, store=store))
    return found


def settled_guard(expr: Expr) -> Expr | None:
    """Find what a guard gives at all points of a piece; None if that differs."""
    inside, outside = expr.args
    if any(index.hi < lo or index.lo > hi for index, lo, hi in expr.arg):
        return outside
    is_sure = all(lo <= index.lo and index.hi <= hi for index, lo, hi in expr.arg)
    return inside if is_sure else None


def kernel_of(
    pair: Pair, parts: Sequence[Part], stored: set[int], gone: set[int]
) -> KernelLaunch | None:
    """Launch one kernel for both maps; None if it reads what it stores, or is too long."""
    touched: set[int] = set()
    for part in parts:
        count = len(part.computes)
        exprs = {*walk_all([each.body for each in part.computes])}
        touched |= {e.arg[0] for e in exprs if e.op == "load"}
        operations = count_operations(exprs)
        if operations > GROUP_LIMIT or count > MEMBER_LIMIT:
            return None
    if not touched.isdisjoint(stored):
        return None
    left_out = {pair.numbers.get(slot) for slot in gone} & stored
    kept = []
    for part in parts:
        computes = [
            replace(each, store=None) if each.store and each.store[0] in left_out else each
            for each in part.computes
        ]
        kept.append(replace(part, computes=tuple(computes)))
        touched |= {each.store[0] for each in computes if each.store}
    slots = dict(pair.every())
    if len(slots) > WORD_LIMIT:
        return None
    given = pair.second if pair.second.scalars else pair.first
    kernel = replace(given.kernel, slots=tuple(slots.values()), parts=tuple(kept))
    return launch_of(replace(given, kernel=kernel, slots=tuple(slots)), kept)
