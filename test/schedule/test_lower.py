"""Values of nodes at indices: views vanish, guards appear, windows become computes."""

import plain_nodes
import pytest
from plan_support import check_plan, leaf

from picograd.buffer import RuntimeScalar
from picograd.dtype import DType, bool_, float16, float32, float64, int32, int64
from picograd.graph import build
from picograd.schedule.group import Facts
from picograd.schedule.index import Axis, Dynamic, axis_index, constant
from picograd.schedule.loop import Expr, const
from picograd.schedule.lower import (
    KernelBuilder,
    Location,
    PartBuilder,
    apply,
    as_index,
    as_stored,
    flat_index,
    mentioned_axes,
    scalar_key,
)
from picograd.schedule.plan import PlanSlot

I = Axis("i", 6)  # noqa: E741
AT = axis_index(I)


def builder(*sizes: int) -> KernelBuilder:
    slots = [PlanSlot("input", float32, n, "cpu", (n,), (1,)) for n in sizes]
    return KernelBuilder({n: Location(n, (1,)) for n in range(len(sizes))}, slots, {})


def source(number: int, size: int = 6) -> Facts:
    return Facts(leaf(size), number, is_source=True)


def test_slots_are_numbered_by_first_use() -> None:
    kernel = builder(6, 6, 6)
    part = PartBuilder(kernel, 1)
    assert part.value(source(2), (AT,)) == Expr("load", (), (0, AT), float32)
    assert part.value(source(0), (AT,)).arg[0] == 1
    kernel.stored.add(0)
    assert [slot.role for slot in kernel.finish()] == ["inout", "in"]


def test_runtime_scalars_are_numbered_once() -> None:
    node = build.scalar(RuntimeScalar(1.0), "cpu", float32)
    kernel = builder()
    kernel.scalar_numbers[scalar_key(node)] = 7
    facts = Facts(node, 0)
    assert kernel.scalar(facts) == kernel.scalar(facts) == 0
    assert kernel.scalars == {7: (0, float32)}


def test_a_pad_is_guarded_where_it_matters() -> None:
    node = build.pad(leaf(6), ((1, 0),), 9.0)
    facts = Facts(node, 1, inputs=(source(0),))
    part = PartBuilder(builder(6), 1)
    wide = Axis("p", 7)
    value = part.value(facts, (axis_index(wide),))
    assert value.op == "guard" and value.args[1] == const(9.0, float32)
    assert part.value(facts, (AT + 1,)).op == "load", "always inside"
    assert part.value(facts, (constant(0),)).op == "const", "always outside"


def test_a_test_that_reads_memory_stays_behind_the_test_that_allows_it() -> None:
    """Pad of a gather of a pad: where to look must be known to exist before it is looked up."""
    below = build.pad(leaf(6), ((1, 0),), 0.0)
    found = plain_nodes.gather(below, [leaf(6, dtype=int64)], (0,))
    shifted = build.pad(found, ((1, 0),), 0.0)
    inner = Facts(below, 2, inputs=(source(0),))
    position = Facts(found.inputs[1], 1, is_source=True)
    middle = Facts(found, 3, inputs=(inner, position))
    part = PartBuilder(builder(6, 6), 1)
    value = part.value(Facts(shifted, 4, inputs=(middle,)), (axis_index(Axis("p", 7)),))
    assert value.op == value.args[0].op == "guard"
    assert len(value.arg) == len(value.args[0].arg) == 1


def test_a_small_reduction_becomes_a_compute_before_its_reader() -> None:
    node = plain_nodes.window(leaf(6), ((0, 2, 2, 1),)).reduce("max", (1,))
    window = Facts(node.inputs[0], 1, inputs=(source(0),))
    part = PartBuilder(builder(6), 1)
    o = Axis("o", 3)
    part.bound = (o,)
    value = part.value(Facts(node, 2, inputs=(window,)), (axis_index(o),))
    (compute,) = part.computes
    assert value == Expr("ref", (), 0, float32)
    assert compute.axes == (o,) and compute.monoid == "max" and compute.reduce[0].size == 2


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (const(3, int32), float32, const(3.0, float32)),
        (const(1.5, float32), float64, const(1.5, float64)),
        (const(1.5, float32), float32, const(1.5, float32)),
        (Expr("index", (), AT, int32), int64, Expr("index", (), AT, int64)),
    ],
)
def test_casts_that_need_no_instruction(value: Expr, dtype: DType, wanted: Expr) -> None:
    assert apply("cast", (value,), dtype) == wanted


def test_a_cast_that_rounds_stays() -> None:
    assert apply("cast", (const(0.1, float32),), float16).op == "cast"


def test_what_is_compared_is_rounded_unless_it_is_so() -> None:
    load = Expr("load", (), (0, AT), float16)
    made = Expr("add", (load, load), None, float16)
    guarded = Expr("guard", (load, const(0, float16)), (), float16)
    assert as_stored(made).op == "cast" and as_stored(made).dtype is float16
    for value in (load, guarded, const(1, float16), Expr("neg", (load,), None, float16)):
        assert as_stored(value) is value or value.op == "neg"


def test_a_place_that_is_surely_in_one_part_chooses_it() -> None:
    part, other = const(1.0, float32), Expr("load", (), (0, AT), float32)
    place = Expr("index", (), AT, int64)
    for limit, wanted in ((6, part), (0, other)):
        is_first = apply("less", (place, const(limit, int64)), bool_)
        assert apply("where", (is_first, part, other), float32) is wanted
    assert apply("less", (place, const(5, int64)), bool_).op == "less"


def test_flat_index_and_values_as_indices() -> None:
    assert flat_index((AT, constant(2)), (10, 3)) == AT * 10 + 6
    assert as_index(Expr("index", (), AT, int64), 6) is AT
    assert as_index(const(4, int64), 6) == constant(4)
    loaded = Expr("load", (), (0, AT), int64)
    assert as_index(loaded, 6).terms[0][0] == Dynamic(loaded, 0, 5)
    assert as_index(loaded, 0).hi == 0


def test_mentioned_axes() -> None:
    assert mentioned_axes((AT * 2,), ((AT + 1, 0, 3),)) == {I}
    loaded = as_index(Expr("load", (), (0, AT), int64), 6)
    assert mentioned_axes((loaded,), ()) is None


def test_gather_of_a_view_of_a_pad() -> None:
    index = leaf(5, dtype=int64, below=4)
    padded = build.pad(leaf(3, 2), ((1, 0), (0, 1)), 7.0)
    check_plan([plain_nodes.gather(build.flip(padded, (0,)), (index,), (0,)) * 2.0], 1)


def test_a_constant_first_of_three_arguments_is_no_choice() -> None:
    x = leaf(3, 4)
    check_plan([x.const_like(3.0).multiply_add(x, 2.0), x.const_like(0.0).multiply_add(x, 2.0)], 1)
