"""members: parts of a kernel that differ only in the slots and scalars they name are written once.

    part [a0:768]  s1[a0] = s0[a0] * scalar0        part [a0:768]  s0[a0] * scalar0, members
    part [a0:768]  s3[a0] = s2[a0] * scalar1   ->   (s0, s1; scalar0) and (s2, s3; scalar1)

An optimizer's step over a hundred parameters is one text then, and compiles as fast.

Parts that differ in their size too are written once, where they are maps along one axis.

    part [a0:768]  s1[a0] = s0[a0] * 2        part [a0:1024]  s3[a0] = s2[a0] * 2 if a0 < extent,
    part [a0:1024] s3[a0] = s2[a0] * 2   ->   members (s2, s3) of size 1024, (s0, s1) of size 768

The largest is written, with a test of the extent. The parameters of a network have a dozen sizes,
and an optimizer's step over them is two texts then: for sizes that vectors fit in, and others.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from picograd.codegen.templates.grid import merge_part, part_indices
from picograd.codegen.tile import Member, TilePart
from picograd.helpers import ceil_div
from picograd.schedule.canonical import Numbering
from picograd.schedule.index import Axis, axes_of
from picograd.schedule.loop import Kernel, Part, walk
from picograd.target import Target


class Naming(Numbering):
    """This class names slots and scalars by when they appear, and says of what kind each is."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel
        self.slots: dict[int, int] = {}
        self.scalars: dict[int, int] = {}

    def slot(self, number: int) -> int:
        """Name a slot by when it appears."""
        return self.slots.setdefault(number, len(self.slots))

    def scalar(self, number: int) -> int:
        """Name a runtime scalar by when it appears."""
        return self.scalars.setdefault(number, len(self.scalars))

    def key(self, part: Part) -> tuple[object, ...]:
        """Tell what a part does, whatever the slots and scalars it names."""
        rows = tuple([self.axis(axis) for axis in part.rows])
        computes = tuple([self.compute(compute) for compute in part.computes])
        ends = self.tests(part.ends)
        expressions = tuple(self.rows)
        found = [self.kernel.slots[number] for number in self.slots]
        slots = tuple([(slot.dtype.name, slot.size, slot.role) for slot in found])
        scalars = tuple([self.kernel.scalars[number].name for number in self.scalars])
        return rows, computes, ends, expressions, slots, scalars


def alike_parts(kernel: Kernel) -> list[tuple[Part, tuple[Member, ...]]]:
    """List the parts that differ, each with the parts that are like it (none: it is alone)."""
    found: dict[tuple[object, ...], list[tuple[Part, Member]]] = {}
    for part in kernel.parts:
        naming = Naming(kernel)
        key = naming.key(part)
        found.setdefault(key, []).append((part, Member(tuple(naming.slots), tuple(naming.scalars))))
    return [(same[0][0], members_of(same)) for same in found.values()]


def members_of(same: Sequence[tuple[Part, Member]]) -> tuple[Member, ...]:
    """List the members of several parts; none of one."""
    return tuple([member for _, member in same]) if len(same) > 1 else ()


def build_parts(
    kernel: Kernel, target: Target, build: Callable[[Kernel, Part, Target], TilePart]
) -> tuple[TilePart, ...]:
    """Write the parts of a kernel, on a GPU those that are alike once."""
    if not target.has_blocks:
        return tuple([build(kernel, merge_part(part), target) for part in kernel.parts])
    return tuple(
        [
            replace(build(kernel, merge_part(part), target), members=members)
            for part, members in alike_parts(kernel)
        ]
    )


# Elements of one size from which a text of its own is worth it: to find its size and test it takes
# a block of an Adam step 7 % longer (124 million parameters, an H100).
LARGE = 1 << 20
Lanes = Callable[[Kernel, Part, Axis], int]
Alike = tuple[Part, tuple[Member, ...]]
Sized = tuple[int, Part, tuple[Member, ...]]  # vectors of a member first


class SizelessNaming(Naming):
    """This class leaves out how long an axis is, and the arrays along it."""

    def __init__(self, kernel: Kernel, hidden: Axis) -> None:
        super().__init__(kernel)
        self.hidden = hidden

    def axis(self, axis: Axis) -> tuple[int, int]:
        """Number of an axis, and its size if that matters."""
        number, size = super().axis(axis)
        return number, 0 if axis is self.hidden else size

    def sizeless_key(self, part: Part) -> tuple[object, ...]:
        """Tell what a part does, whatever its size."""
        *rest, _, scalars = self.key(part)
        fixed = self.slots_elsewhere(part)
        kinds = []
        for number in self.slots:
            slot = self.kernel.slots[number]
            size = slot.size if number in fixed else 0
            kinds.append((slot.dtype.name, slot.role, size))
        return (*rest, tuple(kinds), scalars)

    def slots_elsewhere(self, part: Part) -> set[int]:
        """List the slots that are not read or written along the axis."""
        places = [compute.store for compute in part.computes if compute.store]
        for compute in part.computes:
            for expr in walk(compute.body):
                if expr.op == "load":
                    places.append(expr.arg[:2])
        return {slot for slot, index in places if self.hidden not in axes_of(index)}


def only_axis(part: Part) -> Axis | None:
    """Find the one axis of a map whose places are multiples along it."""
    first = part.computes[0].axes if part.computes else ()
    if part.ends or part.scatter or part.along or len(first) != 1:
        return None
    if part.rows and part.rows != first:
        return None
    for compute in part.computes:
        if compute.axes != first or compute.reduce:
            return None
    atoms = set()
    for index in part_indices(part):
        atoms |= {atom for atom, _ in index.terms}
    return first[0] if atoms <= {first[0]} else None


def join_sizes(
    kernel: Kernel, alike: Sequence[Alike], lanes_of: Lanes, threads: int
) -> list[Alike]:
    """Join parts that differ in their size; merged, and members of several sizes know theirs."""
    found: dict[object, list[Sized]] = {}
    for number, (part, members) in enumerate(alike):
        merged = merge_part(part)
        axis = only_axis(merged)
        if axis is None or axis.size * max(len(members), 1) > LARGE:
            found[number] = [(0, merged, members)]
            continue
        lanes = lanes_of(kernel, merged, axis)
        vectors = axis.size // lanes
        naming = SizelessNaming(kernel, axis)
        key: object = lanes, naming.sizeless_key(merged)
        first = Member(tuple(naming.slots), tuple(naming.scalars))
        if members and members[0] != first:
            key = number
        blocks = ceil_div(vectors, threads)
        every = [replace(each, size=vectors, blocks=blocks) for each in members or (first,)]
        found.setdefault(key, []).append((vectors, merged, tuple(every)))
    return [joined(same) for same in found.values()]


def joined(same: list[Sized]) -> Alike:
    """Put the largest first; of one size members need not know it."""
    if len(same) == 1:
        _, part, members = same[0]
        plain = [replace(each, size=0, blocks=0) for each in members]
        return part, tuple(plain) if len(plain) > 1 else ()
    ordered = sorted(same, key=lambda each: -each[0])
    every = [member for _, _, members in ordered for member in members]
    return ordered[0][1], tuple(every)
