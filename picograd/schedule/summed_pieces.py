"""summed_pieces: sums over rows of what a map stores in pieces are taken where it is computed.

    t[c, 4 i + a] = f_a(x[c, i])   for a in 0..3                over 64 x 784
    s[c] = sum[k] t[c, k]                                       over 64, 3136 elements each

    t[c, 4 i + a] = f_a(x[c, i]),  s[c] = sum[i] f_0 + f_1 + f_2 + f_3

Statistics of a norm behind a convolution by transformed patches, and sums of its gradients: a
thread of the map computes 16 elements of an image, which the reduction reads by rows of it. The map
walks the rows of the reduction instead, and what is computed of each element of a row, is computed
of each piece. Where patches reach beyond the image nothing is summed nor stored.

So it is with maps of small windows, the gradient of a maximum of pixels say, which are cut where
windows begin.

On a GPU alone: a CPU has the reductions of a convolution's result in its kernel.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from picograd.late_methods import dataclass
from picograd.schedule.arrange import WORD_LIMIT
from picograd.schedule.folding import Pair, groups_of, moved_store, numbered, piece_of, slots_in
from picograd.schedule.in_place import launch_of, lives_of, renumbered
from picograd.schedule.index import (
    Axis,
    Index,
    Mod,
    axes_of,
    axis_index,
    constant,
    substitute,
    unflatten,
)
from picograd.schedule.loop import Compute, Conditions, Expr, Part, binary, const, rewrite, walk_all
from picograd.schedule.monoid import COMBINE, identity
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step
from picograd.target import Target

Axes = tuple[Axis, ...]
Places = Mapping[Axis, Index]
Stored = tuple[int, Mapping[Index, int]]  # a slot, and by its places the computes of a map
WINDOW = 4  # elements of a window that are written one by one
HELD = 32768  # elements of a row that the registers of a block hold, for what is computed of sums


@dataclass(frozen=True, slots=True)
class Cut:
    """How the elements of rows fall into pieces: the axis of points, and where each piece is."""

    point: Axis
    points: Places  # what stands for the axes of the map
    pieces: Sequence[Places]  # what stands for the axes of an element, in each
    slot: int  # that the map stores
    stored: Mapping[Index, int]  # by its place in the slot: the compute of the map


def sum_pieces(
    slots: Sequence[PlanSlot], steps: Sequence[Step], copies: Sequence[Step], target: Target
) -> list[Step]:
    """Let reductions over rows join the maps before them; see the module docstring."""
    if not target.has_blocks:
        return list(steps)
    found: list[Step] = []
    lives: dict[int, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        pair = pair_of(found[-1], step) if found else None
        found.append(step)
        if pair is None:
            continue
        lives = lives or lives_of([*steps, *copies])
        gone: set[int] = set()
        for slot in slots_in(pair.first, "out"):
            _, last = lives[slot]
            if last <= number and slots[slot].kind == "temporary":
                gone.add(pair.numbers[slot])
        made = joined(pair, gone)
        if made is not None:
            found[-2:] = [made]
    return found


def pair_of(first: Step, second: Step) -> Pair | None:
    """Pair a map and reductions over rows of what it stores."""
    if not isinstance(first, KernelLaunch) or not isinstance(second, KernelLaunch):
        return None
    if first.device != second.device or second.kernel.hero != "reduce.row":
        return None
    is_once = len({*first.slots}) == len(first.slots) and not first.scalars
    if first.kernel.hero != "map" or not is_once:
        return None
    if slots_in(first, "out").isdisjoint(slots_in(second, "in")):
        return None
    roles = {slot.role for launch in (first, second) for slot in launch.kernel.slots}
    is_apart = slots_in(second, "out").isdisjoint(first.slots)
    return numbered(first, second) if is_apart and roles <= {"in", "out"} else None


def joined(pair: Pair, gone: set[int]) -> KernelLaunch | None:
    """Compute both in one kernel, which does not store what is `gone`; None if it can not."""
    numbers = pair.slots_of(pair.first), pair.slots_of(pair.second)
    every = [(part, numbers[0]) for part in pair.first.kernel.parts]
    every += [(part, numbers[1]) for part in pair.second.kernel.parts]
    summed: list[Part] = []
    others: list[Part] = []
    for group in groups_of(every):
        own = [renumbered(part, known) for part, known in group]
        kinds = {known is numbers[0] for _, known in group}
        if len(kinds) == 1:
            others += own
            continue
        if len(own) > 2:
            return None
        part = summed_part(own[0], own[1], gone)
        if part is None:
            return None
        summed.append(part)
    slots = dict(pair.every())
    if len(slots) > WORD_LIMIT or not summed:
        return None
    parts = (*summed, *others)
    kernel = replace(pair.second.kernel, slots=tuple(slots.values()), parts=parts)
    return launch_of(replace(pair.second, kernel=kernel, slots=tuple(slots)), parts)


# -- how rows fall into pieces --------------------------------------------------------------------


def cut_of(first: Part, second: Part) -> Cut | None:
    """Find how the rows of a part fall into the pieces that a map stores; None if they do not.

    All that is read of one array lies at one place for each element of a row.
    """
    elements = elements_of(second)
    stores = {each.store[0] for each in first.computes if each.store}
    exprs = walk_all([each.body for each in second.computes])
    loads = {expr.arg for expr in exprs if expr.op == "load"}
    read = [arg for arg in loads if arg[0] in stores]
    if not elements or len(read) != 1:
        return None
    is_flat = not any(each.reduce for each in first.computes)
    if not is_flat or not is_plain(first) or not is_plain(second):
        return None
    ((slot, place),) = read
    stored: dict[Index, int] = {}
    for number, each in enumerate(first.computes):
        own_slot, where = each.store or (None, place)
        if own_slot == slot:
            stored[where] = number
    nearest = min(stored, key=least)
    own = steps_of(nearest, first.rows)
    steps = steps_of(place, (*second.rows, *elements))
    is_wanted = len(stored) > 1
    if waits_for_rows(second):
        is_wanted &= size_of(elements) <= HELD
    if steps is None or own is None or not is_wanted:
        return None
    match = matched(first.rows, own, steps)
    return cut_at(match, steps, elements, place, (slot, stored))


def size_of(axes: Sequence[Axis]) -> int:
    """Count the points along axes."""
    return prod(axis.size for axis in axes)


def without_windows(part: Part) -> Part:
    """Write small windows out, and cut a map where they begin, each so many elements apart.

    Of nine that a gradient of 3 x 3 pixels, two apart, adds up at four places, none is at all.
    """
    windows = [size_of(each.reduce) for each in part.computes if each.reduce]
    if not windows or max(windows) > WINDOW:
        return part
    computes = []
    for each in part.computes:
        places = [range(axis.size) for axis in each.reduce]
        bodies = []
        for spot in product(*places):
            window = dict(zip(each.reduce, map(constant, spot)))
            bodies.append(rewrite(each.body, window))
        body = in_pairs(bodies, COMBINE[each.monoid or "sum"])
        computes.append(replace(each, reduce=(), monoid=None, body=body))
    whole = replace(part, computes=tuple(computes))
    apart = {axis: distance(whole, axis) for axis in part.rows}
    rows = tuple([Axis(axis.name, axis.size // apart[axis]) for axis in part.rows])
    found: list[Compute] = []
    for firsts in product(*[range(count) for count in apart.values()]):
        piece = {}
        for axis, row, first in zip(part.rows, rows, firsts, strict=True):
            piece[axis] = axis_index(row) * apart[axis] + first
        found += piece_of(whole, rows, piece, {}, len(found))
    return Part(rows, tuple(found))


def distance(part: Part, axis: Axis) -> int:
    """Find how far apart windows are along an axis, by the remainders that guards ask for."""
    for expr in walk_all([each.body for each in part.computes]):
        for index, _, _ in expr.arg if expr.op == "guard" else ():
            for atom, _ in index.terms:
                is_own = isinstance(atom, Mod) and axes_of(atom.index) == {axis}
                if is_own and not axis.size % atom.n:
                    return atom.n
    return 1


def is_plain(part: Part) -> bool:
    """Tell whether a part computes all of its values at each point, or of each row."""
    if part.scatter or part.along or part.ends:
        return False
    return not any(each.seen for each in part.computes)


def least(index: Index) -> int:
    """Give where an index begins."""
    return index.lo


def waits_for_rows(part: Part) -> bool:
    """Tell whether elements of rows are computed of what rows are reduced to."""
    late: set[int] = set()
    for number, each in enumerate(part.computes):
        refs = {expr.arg for expr in walk_all([each.body]) if expr.op == "ref"}
        is_element = each.reduce or each.axes != part.rows
        if is_element and not late.isdisjoint(refs):
            return True
        if each.reduce or not is_element:
            late.add(number)
    return False


def elements_of(part: Part) -> Axes:
    """List the axes of the elements of rows, if all reductions are over these."""
    rows, found = set(part.rows), set()
    for each in part.computes:
        points = *each.axes, *each.reduce
        is_window = bool(each.reduce) and each.axes != part.rows
        if is_window or not rows <= set(each.axes):
            return ()
        found.add(tuple([axis for axis in points if axis not in rows]))
    found.discard(())
    return found.pop() if len(found) == 1 else ()


def steps_of(place: Index, axes: Axes) -> dict[Axis, int] | None:
    """Find how far apart the elements along axes are; None if that differs from place to place."""
    found = {axis: 1 for axis in axes if axis.size == 1}
    for atom, step in place.terms:
        if not isinstance(atom, Axis) or step <= 0:
            return None
        found[atom] = step
    return found if all(axis in found for axis in axes) else None


@dataclass(frozen=True, slots=True)
class Match:
    """The axes of a map by those of rows: some stay, and what is left runs within rows."""

    points: Places
    kept: Sequence[Axis]
    left: Sequence[Axis]


def matched(map_rows: Axes, own: Mapping[Axis, int], steps: Mapping[Axis, int]) -> Match:
    """Write the axes of a map by those of rows.

    `own` and `steps` are how far apart elements are in the array along the axes of both. An axis of
    the map is as long as some axes of rows, and what is left of it.
    """
    kept: list[Axis] = []
    left: list[Axis] = []
    points: dict[Axis, Index] = {}
    for axis in map_rows:
        size, index = axis.size, constant(0)
        for each in farthest_first(steps, steps):
            many, rest = divmod(steps[each], own[axis])
            is_digit = many > 0 and not rest and size == many * each.size
            if is_digit and each.size > 1:
                index += axis_index(each) * many
                kept.append(each)
                size = many
        short = Axis("p", size)
        left += [short] * (size > 1)
        points[axis] = index + axis_index(short)
    return Match(points, kept, left)


def farthest_first(axes: Iterable[Axis], steps: Mapping[Axis, int]) -> list[Axis]:
    """Sort axes by how far apart the elements along them are."""
    return sorted(axes, key=lambda axis: -steps[axis])


def cut_at(
    match: Match, steps: Mapping[Axis, int], elements: Axes, place: Index, stored: Stored
) -> Cut | None:
    """Write where elements are in rows by what a point of a map stores, at one axis of points."""
    slot, numbers = stored
    kept = match.kept
    cut = [axis for axis in elements if axis not in kept]
    if any(axis.size > 1 and axis not in (*kept, *cut) for axis in steps):
        return None
    near = [axis for axis in elements if axis in kept]
    several = *near, *match.left
    flat = Axis("p", size_of(several))
    sizes = tuple([axis.size for axis in several])
    there = unflatten(axis_index(flat), sizes)
    within = dict(zip(several, there, strict=True))
    points: dict[Axis, Index] = {}
    for axis, index in match.points.items():
        points[axis] = substitute(index, within)
    base = constant(0)
    for axis in kept:
        base += axis_index(axis) * steps[axis]
    pieces: list[Places] = []
    known: dict[Index, int] = {}
    for where, number in numbers.items():
        rest = substitute(where, match.points) - base
        piece = {axis: within[axis] for axis in near}
        for axis in farthest_first(cut, steps):
            piece[axis] = substitute(rest // steps[axis], within)
            rest = rest % steps[axis]
        here = substitute(where, points)
        is_there = substitute(place, piece) == here
        if not is_there or any(piece[axis].lo < 0 for axis in cut):
            return None
        pieces.append(piece)
        known[here] = number
    wide = 1
    for axis in cut:
        wide *= max(piece[axis].hi for piece in pieces) + 1
    counted = size_of(match.left) * len(known)
    return Cut(flat, points, pieces, slot, known) if counted == wide else None


# -- both in one part -----------------------------------------------------------------------------


def summed_part(first: Part, second: Part, gone: set[int]) -> Part | None:
    """Compute a map for the elements of rows, and in pieces what a part computes of these."""
    first = without_windows(first)
    cut = cut_of(first, second)
    if cut is None:
        return None
    computes, names = map_computes(first, second.rows, cut, gone)
    places: list[list[int]] = []  # of what the second part computes, in each piece
    for each in second.computes:
        count, monoid = len(computes), each.monoid or "sum"
        if not each.reduce and each.axes == second.rows:
            known = [where[0] for where in places]
            body = in_piece(each.body, {}, cut, names, known)
            computes.append(replace(each, body=body))
            places.append([count] * len(cut.pieces))
            continue
        bodies = []
        for number, piece in enumerate(cut.pieces):
            known = [where[number] for where in places]
            body = in_piece(each.body, piece, cut, names, known)
            fill = identity(monoid, body.dtype)
            bodies.append(guarded(body, fill, beyond(piece)))
        if each.reduce:
            body = in_pairs(bodies, COMBINE[monoid])
            computes.append(replace(each, reduce=(cut.point,), body=body))
            places.append([count] * len(bodies))
            continue
        axes = (*second.rows, cut.point)
        for piece, body in zip(cut.pieces, bodies, strict=True):
            store = moved_store(each, piece)
            seen = beyond(piece) if store else ()
            made = replace(each, axes=axes, body=body, store=store)
            computes.append(replace(made, seen=seen))
        places.append([*range(count, len(computes))])
    return Part(second.rows, tuple(computes))


def map_computes(
    part: Part, rows: Axes, cut: Cut, gone: set[int]
) -> tuple[list[Compute], dict[int, int]]:
    """Compute a map at the points of rows; which compute stands for each of those it had.

    What is only another name of a value is stored where that is computed.
    """
    computes: list[Compute] = []
    names: dict[int, int] = {}

    def named(expr: Expr) -> Expr | None:
        if expr.op != "ref":
            return None
        return Expr("ref", (), names[expr.arg], expr.dtype)

    for number, each in enumerate(part.computes):
        body = rewrite(each.body, cut.points, named)
        store = moved_store(each, cut.points)
        if store and store[0] in gone:
            store = None
        is_name = body.op == "ref" and computes[body.arg].store is None
        names[number] = body.arg if is_name else len(computes)
        if is_name:
            computes[body.arg] = replace(computes[body.arg], store=store)
            continue
        own = replace(each, axes=(*rows, cut.point), body=body)
        computes.append(replace(own, store=store))
    return computes, names


def in_piece(
    body: Expr, piece: Places, cut: Cut, names: Mapping[int, int], places: Sequence[int]
) -> Expr:
    """Write what is computed of an element for one piece."""

    def settled(expr: Expr) -> Expr | None:
        if expr.op == "ref":
            return Expr("ref", (), places[expr.arg], expr.dtype)
        if expr.op == "load" and expr.arg[0] == cut.slot:
            return Expr("ref", (), names[cut.stored[expr.arg[1]]], expr.dtype)
        return None

    return rewrite(body, piece, settled)


def beyond(piece: Places) -> Conditions:
    """List the conditions under which an element of a piece is one of a row."""
    found = []
    for axis, index in piece.items():
        last = axis.size - 1
        if index.lo < 0 or index.hi > last:
            found.append((index, 0, last))
    return tuple(found)


def guarded(body: Expr, fill: object, tests: Conditions) -> Expr:
    """Compute something where conditions hold."""
    both = body, const(fill, body.dtype)
    return Expr("guard", both, tests, body.dtype) if tests else body


def in_pairs(exprs: Sequence[Expr], op: str) -> Expr:
    """Combine expressions two by two, then what these give."""
    while len(exprs) > 1:
        rest = exprs[len(exprs) // 2 * 2 :]
        pairs = zip(exprs[::2], exprs[1::2], strict=False)
        exprs = [*(binary(op, a, b) for a, b in pairs), *rest]
    return exprs[0]
