"""Maps that only put arrays one behind another are left out: arrays are computed where they go."""

import numpy as np
import pytest
from plan_support import VALUES, leaf, run

from picograd.dtype import DType, bfloat16, float32
from picograd.graph import composites
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_80")


def product(rows: int = 8, columns: int = 64, dtype: DType = float32) -> Node:
    """A value that only a kernel of its own computes."""
    x, y = leaf(rows, 16, dtype=dtype), leaf(16, columns, dtype=dtype)
    return x.contract(y, ((0, 1), (1, 2), (0, 2)))


def joined(parts: list[Node], axis: int = 0) -> Node:
    """Put arrays one behind another, as the gradients of slices are added."""
    size, start = sum(part.shape[axis] for part in parts), 0
    padded = []
    for part in parts:
        stop = start + part.shape[axis]
        pads = [(0, 0)] * part.rank
        pads[axis] = start, size - stop
        padded.append(part.pad(tuple(pads)))
        start = stop
    first, *rest = padded
    for each in rest:
        first = first + each
    return first


def reader(x: Node) -> Node:
    """A product reads it, so that it is in memory."""
    return x.contract(leaf(x.shape[1], 5, dtype=x.dtype), ((0, 1), (1, 2), (0, 2)))


def plan_of(roots: list[Node], tolerance: float = 1e-5) -> Plan:
    """Schedule for a GPU, whose products read what is in memory; values are those of the graph."""
    plan = schedule(roots, GPU)
    for found, wanted in zip(run(plan), interpret(roots, values=VALUES), strict=True):
        assert np.linalg.norm(found - wanted) <= tolerance * np.linalg.norm(wanted)
    return plan


def heroes(*roots: Node, tolerance: float = 1e-5) -> list[str]:
    return [kernel.hero for kernel in plan_of(list(roots), tolerance).kernels]


@pytest.mark.parametrize("sizes", [(8, 8, 8), (8, 24, 16, 8)])
def test_arrays_are_computed_where_they_go(sizes: tuple[int, ...]) -> None:
    plan = plan_of([reader(joined([product(n) for n in sizes]))])
    assert "map" not in [kernel.hero for kernel in plan.kernels]
    (*parts, whole) = [slot for slot in plan.slots if slot.kind == "temporary"]
    starts = [slot.offset - whole.offset for slot in parts]
    assert sorted(starts) == [256 * sum(sizes[:n]) for n in range(len(sizes))]


def test_16_bit_floats_too() -> None:
    parts = [product(dtype=bfloat16) for _ in range(3)]
    assert "map" not in heroes(reader(joined(parts)), tolerance=1e-2)


def test_columns_are_put_beside_one_another_by_a_map() -> None:
    assert "map" in heroes(reader(joined([product(), product()], axis=1)))


def test_an_array_that_is_read_again_stays_where_it_is() -> None:
    kept = product()
    first = reader(joined([kept, product()]))
    again = kept.contract(first.contract(first, ((0, 1), (0, 2), (1, 2))), ((0, 1), (2, 3), (0, 3)))
    assert "map" in heroes(first, again)


def test_parts_that_would_begin_off_a_line_are_moved() -> None:
    assert "map" in heroes(reader(joined([product(7, 5), product(9, 5)])))


def test_outputs_are_not_in_the_arena() -> None:
    assert "map" in heroes(joined([product(), product()]))


def test_the_same_array_twice_is_copied() -> None:
    x = product()
    assert "map" in heroes(reader(joined([x, x])))


@pytest.mark.parametrize("starts", [(0, 16), (0, 8), (0, 8, 8)], ids=["between", "behind", "twice"])
def test_gaps_are_filled(starts: tuple[int, ...]) -> None:
    first, *rest = [product().pad(((n, 16 - n), (0, 0))) for n in starts]
    for each in rest:
        first = first + each
    assert "map" in heroes(reader(first))


def test_an_array_in_another_order_is_turned() -> None:
    kept = product(8, 64)
    turned = joined([kept.permute((1, 0)), product(64, 8)])
    assert "map" in heroes(reader(turned))


def test_numbers_are_computed_where_a_join_by_position_has_them() -> None:
    """A join of many is made in groups, which no kernel makes."""
    count = 2 * composites.FEW + composites.TOGETHER
    parts = [leaf(9, 3 + n).reduce("sum", (0, 1)).reshape((1,)) for n in range(count)]
    whole = composites.join(parts, 0)
    (root,) = expand_composites([(whole * whole).reduce("sum", (0,))])
    plan = plan_of([root])
    assert [kernel.hero for kernel in plan.kernels] == ["reduce.all"] * 2
    assert len(plan.joined) == count


def test_arrays_are_computed_where_a_join_by_position_has_them() -> None:
    whole = composites.join([product(8), product(16), product(8)], 0)
    (root,) = expand_composites([reader(whole.composite("contiguous"))])
    assert "map" not in heroes(root)


def test_a_choice_by_position_of_other_places_is_no_join() -> None:
    first, second = product(8), product(8)
    place = first.iota(0)
    choice = place.binary("less", place.const_like(3)).where(first, second)
    assert "map" in heroes(reader(choice.composite("contiguous")))
