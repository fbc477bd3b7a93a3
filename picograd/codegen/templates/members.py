"""members: parts of a kernel that differ only in the slots and scalars they name are written once.

    part [a0:768]  s1[a0] = s0[a0] * scalar0        part [a0:768]  s0[a0] * scalar0, members
    part [a0:768]  s3[a0] = s2[a0] * scalar1   ->   (s0, s1; scalar0) and (s2, s3; scalar1)

An optimizer's step over a hundred parameters is one text then, and compiles as fast.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from picograd.codegen.templates.grid import merge_part
from picograd.codegen.tile import Member, TilePart
from picograd.schedule.canonical import Numbering
from picograd.schedule.loop import Kernel, Part
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
