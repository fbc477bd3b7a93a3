"""Parts that differ in their size: the largest is written, and each knows where it ends."""

import dataclasses

import pytest
from cases import kernel, load, op
from structured import adam

from picograd.codegen.pipeline import linearize, tile
from picograd.codegen.templates.grid import merge_part
from picograd.codegen.templates.members import only_axis
from picograd.codegen.tile import Member, TileKernel
from picograd.dtype import float32, int32
from picograd.schedule.index import Axis, Index, axis_index, constant
from picograd.schedule.loop import Compute, Expr, Kernel, Part, const
from picograd.target import cuda_target

H200 = cuda_target("sm_90a")


def made(*sizes: int) -> TileKernel:
    return tile(adam(sizes, (0,) * len(sizes)).kernel, H200)


def filled(*sizes: int, step: int = 1) -> Kernel:
    """Each array holds its own positions, every `step` of them."""
    parts, slots = [], []
    for number, size in enumerate(sizes):
        place = axis_index(Axis("i", size)) * step
        body = Expr("cast", (Expr("index", (), place, int32),), None, float32)
        axis = place.terms[0][0]
        assert isinstance(axis, Axis)
        parts.append(Part((axis,), (Compute((axis,), (), None, body, float32, (number, place)),)))
        slots.append((float32, size * step, "out"))
    return kernel("filled", "map", slots, *parts)


def test_parts_of_several_sizes_are_one_text() -> None:
    (part,) = made(64, 4096, 64, 1200).parts
    found = [(each.slots[0], each.size, each.blocks) for each in part.members]
    assert found == [(6, 1024, 4), (14, 300, 2), (2, 16, 1), (10, 16, 1)]
    assert part.blocks == 8 and part.extent is not None and part.extent.size == 1025


def test_large_sizes_are_a_text_of_their_own() -> None:
    half = 1 << 19
    (part,) = made(half, 64, half, 128).parts
    assert [each.size for each in part.members] == [half // 4, half // 4, 32, 16]
    large, small = made(half, 64, half, 128, half).parts
    assert len(large.members) == 3 and large.extent is None
    assert [each.size for each in small.members] == [32, 16]


def test_sizes_that_no_vector_fits_in_are_a_text_of_their_own() -> None:
    parts = made(64, 9, 128, 7).parts
    assert [[each.size for each in part.members] for part in parts] == [[32, 16], [9, 7]]


def test_parts_of_one_size_do_not_look_for_theirs() -> None:
    (part,) = made(64, 64).parts
    assert part.extent is None and part.members == (
        Member((2, 1, 3, 0), (0,)),
        Member((6, 5, 7, 4), (0,)),
    )
    (alone,) = made(64).parts
    assert alone.extent is None and not alone.members


def test_the_text_does_not_grow_with_sizes() -> None:
    few, many = (linearize(made(*range(4, 4 * count, 4)), H200) for count in (4, 40))
    assert len(many.instructions) - len(few.instructions) < 36 * (4 + 8)


def test_an_array_of_fixed_size_tells_parts_apart() -> None:
    found = filled(8, 16)
    for size in (1, 2):
        slots = [*found.slots, *(dataclasses.replace(found.slots[0], size=n) for n in (1, size))]
        parts = []
        for number, part in enumerate(found.parts):
            (compute,) = part.computes
            scale = load(2 + number, float32, constant(0))
            body = op("mul", compute.body, scale)
            parts.append(Part(part.rows, (dataclasses.replace(compute, body=body),)))
        both = dataclasses.replace(found, slots=tuple(slots), parts=tuple(parts))
        assert len(tile(both, H200).parts) == size


def test_only_maps_along_one_axis_are_joined() -> None:
    assert len(tile(filled(8, 16), H200).parts) == 1
    assert len(tile(filled(8, 16, step=3), H200).parts) == 1
    rows, columns = Axis("i", 4), Axis("j", 6)
    turned = axis_index(columns) * 4 + axis_index(rows)
    two = Compute((rows, columns), (), None, const(0.0, float32), float32, (0, turned))
    assert only_axis(merge_part(Part((rows, columns), (two,)))) is None
    halved = dataclasses.replace(two, axes=(rows,), store=(0, axis_index(rows) // 2))
    assert only_axis(Part((rows,), (halved,))) is None
    assert (
        only_axis(Part((), (dataclasses.replace(two, axes=(), store=(0, Index((), 0))),))) is None
    )
    plain = Part((rows,), (dataclasses.replace(two, axes=(rows,), store=(0, axis_index(rows))),))
    assert only_axis(plain) is rows
    ended = dataclasses.replace(plain, ends=((axis_index(rows), 0, 2),))
    assert only_axis(ended) is None


@pytest.mark.parametrize("sizes", [(8, 9), (4096, 4), (1, 1)])
def test_sizes_are_printed(sizes: tuple[int, ...]) -> None:
    text = repr(made(*sizes))
    assert ("size" in text) == (sizes == (4096, 4))
