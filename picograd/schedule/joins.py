"""joins: arrays that a map would only put one behind another are computed where they go.

    dq -> t0   dk -> t1   dv -> t2     t3[a, b] = (t0[b] if a = 0) + (t1[b] if a = 1) + ...
    dq -> t3[0]   dk -> t3[1]   dv -> t3[2]                       no map, and less memory

The gradients of slices of an array are such a sum: each is 0 but where its slice is. Temporaries
that nobody touches after the map are given the bytes of their place in its result. A zero keeps its
sign, which the sum would lose.
"""

from collections.abc import Iterator, Sequence

from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.in_place import lives_of
from picograd.schedule.index import Axis, Index, constant, substitute
from picograd.schedule.loop import Expr, Kernel
from picograd.schedule.memory import ALIGNMENT
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step

Box = dict[Axis, range]
Place = tuple[int, int]  # a slot, and where it begins in the result, in elements


@dataclass(frozen=True, slots=True)
class Join:
    """A launch that is not needed where its inputs, of which each has a place, lie in `whole`."""

    step: int
    whole: int
    places: tuple[Place, ...]


def find_joins(slots: Sequence[PlanSlot], steps: Sequence[Step]) -> list[Join]:
    """List the launches that only put temporaries one behind another: none of them is in two."""
    lives = lives_of(steps)
    taken: set[int] = set()
    found: list[Join] = []
    for number, step in enumerate(steps):
        if not isinstance(step, KernelLaunch) or step.kernel.hero != "map":
            continue
        joined = join_of(step.kernel)
        if joined is None:
            continue
        whole, places = joined
        join = Join(number, step.slots[whole], tuple((step.slots[n], at) for n, at in places))
        touched = {join.whole, *(slot for slot, _ in join.places)}
        is_free = taken.isdisjoint(touched) and lives[join.whole][0] == number
        is_last = all(lives[slot][1] == number for slot, _ in join.places)
        if is_free and is_last and all(map(is_plain, places_of(slots, join))):
            taken |= touched
            found.append(join)
    return found


def places_of(slots: Sequence[PlanSlot], join: Join) -> Iterator[tuple[PlanSlot, int]]:
    """Yield what a join touches, and where it begins in the result."""
    yield slots[join.whole], 0
    for slot, at in join.places:
        yield slots[slot], at


def is_plain(place: tuple[PlanSlot, int]) -> bool:
    """Tell whether a slot is a temporary that may begin there."""
    slot, at = place
    return slot.kind == "temporary" and at * slot.dtype.itemsize % ALIGNMENT == 0


def join_of(kernel: Kernel) -> tuple[int, list[Place]] | None:
    """Read a map as a join: the slot that it writes, and the place of each that it reads."""
    if len(kernel.parts) != 1 or len(kernel.parts[0].computes) != 1:
        return None
    (compute,) = kernel.parts[0].computes
    if compute.store is None or compute.reduce or kernel.parts[0].along is not None:
        return None
    whole, index = compute.store
    if kernel.slots[whole].dtype is not compute.body.dtype:
        return None
    terms = list(terms_of(compute.body))
    boxed = [(each, box_of(compute.axes, each)) for each in terms]
    places = [place_of(kernel, index, each, box) for each, box in boxed if box is not None]
    found = sorted((each for each in places if each is not None), key=lambda place: place[1])
    stop = 0
    for slot, at in found:
        if at != stop:
            return None
        stop += kernel.slots[slot].size
    is_whole = len(found) == len(terms) == len({slot for slot, _ in found})
    return (whole, found) if is_whole and stop == kernel.slots[whole].size else None


def terms_of(expr: Expr) -> Iterator[Expr]:
    """Yield what a sum adds."""
    row = OPS.get(expr.op)
    if row is not None and row.factors == (1, 1):
        for each in expr.args:
            yield from terms_of(each)
    else:
        yield expr


def place_of(kernel: Kernel, index: Index, term: Expr, box: Box) -> Place | None:
    """Find where the array that a term reads, all of it, lies in the result; None if it does not.

    The result is written once, so that elements that are a fixed distance away are read once.
    """
    load, fill = term.args
    if load.op != "load" or not is_zero(fill) or load.dtype is not kernel.slots[load.arg[0]].dtype:
        return None
    slot, read = load.arg
    fixed = {axis: constant(each[0]) for axis, each in box.items() if len(each) == 1}
    away = substitute(index - read, fixed)
    is_all = product(map(len, box.values())) == kernel.slots[slot].size
    return (slot, away.const) if is_all and not away.terms else None


def is_zero(expr: Expr) -> bool:
    """Tell whether an expression is the number 0."""
    row = OPS.get(expr.op)
    return row is not None and row.role is Role.NUMBER and expr.arg == 0


def box_of(axes: Sequence[Axis], term: Expr) -> Box | None:
    """Find the values of axes where a term is no fill; None if it asks for more than ranges."""
    if term.op != "guard":
        return None
    box = {axis: range(axis.size) for axis in axes}
    for index, lo, hi in term.arg:
        (axis, factor), *rest = index.terms or ((None, 0),)
        if rest or factor != 1 or axis not in box:
            return None
        held = box[axis]
        first, last = max(held.start, lo - index.const), min(held.stop - 1, hi - index.const)
        box[axis] = range(first, last + 1)
    return box
