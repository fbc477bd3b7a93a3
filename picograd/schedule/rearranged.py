"""rearranged: a product whose result is only copied in another order is stored in that order.

    contract: a, b -> t        map: t[i, j, k] -> out[j, i, k]
    contract: a, b -> out      where t[p] would be, out[place of p]

Phases of a gradient under a stride are put between one another so, and heads of attention beside
one another, without a kernel that reads and writes all of it. A copy in whole pieces of a line of
the cache is followed; axes of the product are split where the copy's begin, so that its store is
as regular as before. Zeros that a copy puts in between are columns of the product for which its
right operand is 0: tiles of them have no steps (codegen/templates/contract_steps.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from picograd.graph.conv_forms import multiplies
from picograd.late_methods import dataclass
from picograd.schedule.cost import LINE_BYTES
from picograd.schedule.group import PRODUCTS
from picograd.schedule.in_place import is_zero, slots_of
from picograd.schedule.index import Axis, Index, axes_of, axis_index, substitute
from picograd.schedule.loop import Compute, Condition, Expr, Part, const, indices_of, rewrite, walk
from picograd.schedule.plan import CopyStep, KernelLaunch, PlanSlot, Step
from picograd.target import Target


@dataclass(frozen=True, slots=True)
class Copy:
    """A kernel that copies all of one array to another: `axes` from the nearest in the source.

    Each moves `steps` elements in the source, and the copy lies at `target`. Where `tests` of the
    `between` axes, which are no axes of the source, do not hold it is 0.
    """

    source: int
    target: int
    axes: tuple[Axis, ...]
    steps: tuple[int, ...]
    index: Index
    between: tuple[Axis, ...] = ()
    tests: tuple[Condition, ...] = ()


def rearrange(
    slots: Sequence[PlanSlot], steps: Sequence[Step], copies: Sequence[CopyStep], target: Target
) -> list[Step]:
    """Leave out copies of what products give, where these can store it as they would.

    What `copies` read, after all steps, is stored as it is; so is everything without boxes.
    """
    if not target.copies_boxes:
        return list(steps)
    read = {each.source for each in copies}
    touched: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for slot in set(slots_of(step)):
            touched.setdefault(slot, []).append(number)
    found: dict[int, Step | None] = {}
    for number, step in enumerate(steps):
        copy = copy_of(step, slots)
        if copy is None:
            continue
        has_boxes = multiplies(slots[copy.target].dtype, target)
        if copy.between and not has_boxes:  # it would multiply the zeros
            continue
        first, *others = touched[copy.source]
        is_lone = others == [number] and touched[copy.target][0] == number
        is_lone = is_lone and copy.source not in read
        product = found.get(first, steps[first])
        if is_lone and isinstance(product, KernelLaunch):
            made = stored_so(product, copy, slots[copy.target])
            if made is not None:
                found[first], found[number] = made, None
    every = [found.get(number, step) for number, step in enumerate(steps)]
    return [step for step in every if step is not None]


def copy_of(step: Step, slots: Sequence[PlanSlot]) -> Copy | None:
    """See a step as a copy of a temporary in another order; None if it is none."""
    if not isinstance(step, KernelLaunch) or len(step.kernel.parts) != 1:
        return None
    (part,) = step.kernel.parts
    is_plain = part.scatter is None and part.along is None and not part.ends
    if not is_plain or len(part.computes) != 1 or len(step.slots) != 2:
        return None
    (compute,) = part.computes
    body = compute.body
    tests: tuple[Condition, ...] = ()
    if body.op == "guard" and is_zero(body.args[1]):
        body, tests = body.args[0], body.arg
    if body.op != "load" or compute.store is None or compute.reduce:
        return None
    number, index = body.arg
    target, place = compute.store
    source, copied = slots[step.slots[number]], slots[step.slots[target]]
    if copied.kind == "input":  # what is assigned waits for host calls, which may raise
        return None
    axes = in_order(index, source.size)
    is_same = source.dtype is copied.dtype
    if axes is None or source.kind != "temporary" or not is_same:
        return None
    near = axes[0]
    is_beside = dict(place.terms).get(near) == 1
    if not is_beside or near.size * source.dtype.itemsize % LINE_BYTES:
        return None
    steps = tuple(dict(index.terms)[axis] for axis in axes)
    between = tuple(axis for axis in compute.axes if axis not in axes)
    tested = [axes_of(test[0]) <= set(between) for test in tests]
    if not all(tested) or (between and not tests):
        return None
    from_slot = step.slots[number]
    to_slot = step.slots[target]
    copy = Copy(from_slot, to_slot, axes, steps, place)
    return with_between(copy, between, tests)


def with_between(copy: Copy, between: tuple[Axis, ...], tests: tuple[Condition, ...]) -> Copy:
    """Give a copy the axes of zeros between its elements, by names that no product has."""
    fresh: list[Axis] = []
    moved = {}
    for axis in between:
        other = Axis(f"between_{len(fresh)}", axis.size)
        fresh.append(other)
        moved[axis] = axis_index(other)
    renamed: list[Condition] = []
    for index, low, high in tests:
        place = substitute(index, moved)
        test = place, low, high
        renamed.append(test)
    place = substitute(copy.index, moved)
    return replace(copy, index=place, between=tuple(fresh), tests=tuple(renamed))


def in_order(index: Index, size: int) -> tuple[Axis, ...] | None:
    """List axes from the nearest on, if they number all elements of an array once."""
    if index.const:
        return None
    place, found = 1, []
    for atom, step in sorted(index.terms, key=lambda term: term[1]):
        if not isinstance(atom, Axis) or step != place:
            return None
        place *= atom.size
        found.append(atom)
    return tuple(found) if found and place == size else None


def stored_so(launch: KernelLaunch, copy: Copy, target: PlanSlot) -> KernelLaunch | None:
    """Let a product store what a copy would have made of it; None if it cannot."""
    kernel = launch.kernel
    if kernel.hero not in PRODUCTS or len(kernel.parts) != 1:
        return None
    slot = launch.slots.index(copy.source)
    (part,) = kernel.parts
    stores = [each.store[1] for each in part.computes if each.store and each.store[0] == slot]
    if len(stores) != 1 or part.ends or kernel.slots[slot].role != "out":
        return None
    values = split_axes(stores[0], copy)
    if values is None:
        return None
    moved = split_part(part, values)
    if copy.between:
        wider = with_zeros(moved, copy)
        if wider is None:
            return None
        moved = wider
    computes = []
    for each in moved.computes:
        if each.store and each.store[0] == slot:
            place = place_of(each.store[1], copy)
            if any(not isinstance(atom, Axis) for atom, _ in place.terms):
                return None
            each = replace(each, store=(slot, place))
        computes.append(each)
    parts = (replace(moved, computes=tuple(computes)),)
    kernel_slots = list(kernel.slots)
    kernel_slots[slot] = replace(kernel_slots[slot], size=target.size)
    made = replace(kernel, slots=tuple(kernel_slots), parts=parts)
    numbers = tuple(copy.target if each == copy.source else each for each in launch.slots)
    return replace(launch, kernel=made, slots=numbers)


def with_zeros(part: Part, copy: Copy) -> Part | None:
    """Add columns of zeros to a product that is only rounded, for what a copy has in between."""
    hero, *others = part.computes
    if part.rows != hero.axes or not all(map(is_rounding, others)):
        return None
    if len(hero.body.args) != 2 or hero.body.op == "guard":
        return None
    a, b = hero.body.args
    guard = Expr("guard", (b, const(0, b.dtype)), copy.tests, b.dtype)
    body = Expr("mul", (a, guard), None, hero.body.dtype)
    left: set[Axis] = set()
    for node in walk(a):
        left = left.union(*map(axes_of, indices_of(node)))
    columns = [n for n, axis in enumerate(hero.axes) if axis not in left]
    place = min(columns, default=len(hero.axes))
    before, after = hero.axes[:place], hero.axes[place:]
    axes = (*before, *copy.between, *after)
    made = [replace(each, axes=axes) for each in others]
    return replace(part, rows=axes, computes=(replace(hero, axes=axes, body=body), *made))


def is_rounding(compute: Compute) -> bool:
    """Tell whether a compute is an earlier one in another dtype."""
    body = compute.body
    is_cast = body == Expr("cast", body.args, None, body.dtype)
    return is_cast and body.args[0].op == "ref"


def place_of(index: Index, copy: Copy) -> Index:
    """Find where the copy of an element lies."""
    values = {}
    for axis, step in zip(copy.axes, copy.steps, strict=True):
        values[axis] = index // step % axis.size
    return substitute(copy.index, values)


def split_axes(index: Index, copy: Copy) -> dict[Axis, tuple[Axis, ...]] | None:
    """Split axes of an index where those of a copy begin: from the farthest on; None if amid."""
    found: dict[Axis, tuple[Axis, ...]] = {}
    for atom, step in index.terms:
        if not isinstance(atom, Axis):
            return None
        end = step * atom.size
        inside = [each for each in copy.steps if step < each < end]
        if not inside:
            continue
        places = [step, *inside, end]
        sizes = []
        for before, after in pairwise(places):
            if after % before:
                return None
            sizes.append(after // before)
        names = enumerate(reversed(sizes))
        found[atom] = tuple(Axis(f"{atom.name}_{number}", size) for number, size in names)
    return found


def split_part(part: Part, values: Mapping[Axis, tuple[Axis, ...]]) -> Part:
    """Put several axes in the place of some."""
    moved: dict[Axis, Index] = {}
    for axis, pieces in values.items():
        index = axis_index(pieces[0])
        for piece in pieces[1:]:
            index = index * piece.size + axis_index(piece)
        moved[axis] = index

    def pieces_of(axes: Sequence[Axis]) -> tuple[Axis, ...]:
        return tuple(piece for axis in axes for piece in values.get(axis, (axis,)))

    def split(compute: Compute) -> Compute:
        store = compute.store
        if store is not None:
            store = store[0], substitute(store[1], moved)
        body = rewrite(compute.body, moved)
        return replace(compute, axes=pieces_of(compute.axes), body=body, store=store)

    computes = tuple(split(each) for each in part.computes)
    return replace(part, rows=pieces_of(part.rows), computes=computes)
