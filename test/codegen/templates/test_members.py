"""Parts that are alike: written once, with the slots and scalars of each."""

import dataclasses

import harness
import pytest
from cases import kernel
from structured import adam, beside, column_sum

from picograd.codegen.pipeline import linearize, tile
from picograd.codegen.templates.members import alike_parts
from picograd.codegen.tile import Member, TileKernel, verify
from picograd.dtype import float32
from picograd.errors import InternalError
from picograd.schedule.loop import Kernel, Slot
from picograd.target import cuda_target

H200 = cuda_target("sm_90a")


def made(sizes: tuple[int, ...], rates: tuple[int, ...]) -> Kernel:
    return adam(sizes, rates).kernel


def test_parts_that_differ_in_slots_and_scalars_alone_are_members() -> None:
    parts = alike_parts(made((8, 9, 8), (0, 0, 2)))
    members = [members for _, members in parts]
    assert members == [(Member((2, 1, 3, 0), (0,)), Member((10, 9, 11, 8), (2,))), ()]


def test_a_slot_of_another_role_or_size_is_not_alike() -> None:
    found = made((8, 8), (0, 0))
    for slot in (Slot(float32, 8, "inout"), Slot(float32, 16, "in")):
        slots = (*found.slots[:5], slot, *found.slots[6:])
        assert len(alike_parts(dataclasses.replace(found, slots=slots))) == 2


def test_one_array_in_two_places_is_not_alike() -> None:
    found = made((8, 8), (0, 0))
    twice = beside(column_sum(4, 8), column_sum(4, 8)).kernel
    assert len(alike_parts(twice)) == 1
    shared = dataclasses.replace(
        found.parts[1], computes=(*found.parts[1].computes[:1], *found.parts[0].computes[1:])
    )
    both = kernel("both", "map", [], found.parts[0], shared, scalars=found.scalars)
    assert len(alike_parts(dataclasses.replace(both, slots=found.slots))) == 2


def test_the_text_does_not_grow_with_members() -> None:
    few, many = (
        linearize(tile(made((64,) * count, (0,) * count), H200), H200) for count in (2, 40)
    )
    added = len(many.instructions) - len(few.instructions)
    assert added == 4 * 38, "a pointer each"
    assert many.tasks == 20 * few.tasks


def test_members_have_workspaces_of_their_own() -> None:
    both = tile(beside(column_sum(5000, 132), column_sum(5000, 132)).kernel, H200)
    program = linearize(both, H200)
    assert len(both.parts) == 1
    assert len(program.workspaces) == 2 * len(both.parts[0].workspaces) > 0


def test_a_cpu_writes_each_part() -> None:
    assert len(tile(made((8, 8), (0, 0)), harness.TARGET).parts) == 2


def test_members_of_different_kinds_are_found() -> None:
    tiles = tile(made((8, 9), (0, 0)), H200)
    members = (Member((0,), ()), Member((4,), ()))
    part = dataclasses.replace(tiles.parts[0], members=members)
    with pytest.raises(InternalError, match="members of a part differ"):
        verify(TileKernel(tiles.kernel, (part,), tiles.threads))
