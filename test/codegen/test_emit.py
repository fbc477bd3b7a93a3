"""The emitter: values are made once per scope, constants folded, masks combined, loops closed."""

from picograd.codegen.decompose import LLVM
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.lanes import is_unit
from picograd.codegen.program import Program, verify
from picograd.dtype import bfloat16, bool_, float16, float32, float64, int32, int64
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index
from picograd.schedule.loop import Expr, Kernel, Slot

I, J = Axis("i", 8), Axis("j", 4)  # noqa: E741
SLOTS = (Slot(float16, 64, "in"), Slot(float32, 64, "out"))


def emitter() -> Emitter:
    return Emitter(Kernel("k", "map", SLOTS, (), ()), {}, lambda e, x: 0)


def ops(found: Emitter) -> list[str]:
    return [instr.op for instr in found.instructions]


def test_16_bit_floats_are_carried_in_float32() -> None:
    assert compute_dtype(bfloat16) is compute_dtype(float16) is float32
    assert compute_dtype(float64) is float64 and compute_dtype(bool_) is bool_
    made = emitter()
    value = made.load(made.slots[0], made.integer(0))
    assert made.dtype(value) is float32
    made.store(made.slots[0], made.integer(0), value)
    assert made.instructions[-1].dtype is float16 and "cast" in ops(made)


def test_constants_are_made_once_and_fold() -> None:
    made = emitter()
    assert made.const(0.0, float32) == made.const(0.0, float32) != made.const(-0.0, float32)
    three = made.arithmetic("add", made.integer(1), made.integer(2))
    assert made.instructions[three].op == "const" and made.instructions[three].arg == 3


def test_an_index_is_computed_once_in_a_scope_and_again_outside() -> None:
    made = emitter()
    with made.axis_loop(I):
        first = made.index(axis_index(I) * 3 + 1)
        assert made.index(axis_index(I) * 3 + 1) == first
    with made.axis_loop(I):
        assert made.index(axis_index(I) * 3 + 1) != first
    verify(Program("k", tuple(made.instructions), ((float16, "in"), (float32, "out"))))


def test_loops_and_branches_are_closed() -> None:
    made = emitter()
    with made.axis_loop(I), made.when(made.const(True, bool_)):
        made.index(axis_index(I))
    assert ops(made).count("end") == ops(made).count("loop") + ops(made).count("if")


def test_masks() -> None:
    made = emitter()
    a = made.apply("less", made.integer(1), made.integer(2))
    assert made.both(None, None) is None and made.both(a, None) == made.both(None, a) == a
    assert made.instructions[made.both(a, a)].op == "and"


def test_splat_only_widens_scalars() -> None:
    made = emitter()
    wide = made.splat(made.const(1.0, float32), 4)
    assert made.lanes(wide) == 4 and made.splat(wide, 4) == wide
    total = made.apply("add", wide, made.const(2.0, float32))
    assert made.lanes(total) == 4


def test_axes_of_an_expression_include_those_of_run_time_indices() -> None:
    row = Expr("load", (), (0, axis_index(J)), int32)
    load = Expr("load", (), (0, atom_index(Dynamic(row, 0, 3)) + axis_index(I)), float16)
    made = emitter()
    assert made.axes(load) == {I, J}


def test_an_expression_that_an_index_is_read_from_is_walked_once() -> None:
    value = Expr("index", (), axis_index(I), int64)
    for _ in range(60):  # 2 ** 60 paths
        value = Expr("add", (value, value), None, int64)
    drawn = atom_index(Dynamic(value, 0, 9))
    assert is_unit(axis_index(J) + drawn, J) and not is_unit(axis_index(I) + drawn, I)


def test_reads_that_go_by_what_was_read_are_written_once_for_each_lane() -> None:
    made = emitter()
    test = (axis_index(I), 0, 6)
    with made.axis_loop(I), made.scope({J: made.integer(0)}, (J, J.size)):
        place = Expr("index", (), axis_index(J) + axis_index(I) * 4, int64)
        for _ in range(10):
            at = atom_index(Dynamic(place, 0, 63))
            read = Expr("load", (), (1, at), float32)
            step = Expr("cast", (read,), None, int64)
            step = Expr("guard", (step, Expr("const", (), 0, int64)), (test,), int64)
            place = Expr("add", (step, place), None, int64)
        made.value(place)
    assert ops(made).count("load") == 10 * J.size
    assert ops(made).count("less_equal") == 1


def test_the_number_that_a_value_is_in_every_lane() -> None:
    made = emitter()
    five = made.const(5, int64)
    assert made.constant_of(five) == made.constant_of(made.splat(five, 4)) == 5
    assert made.constant_of(made.load(made.slots[1], five)) is None


def test_a_shift_by_a_constant_is_one_instruction() -> None:
    made = Emitter(Kernel("k", "map", SLOTS, (), ()), LLVM, lambda e, x: 0)
    x = made.load(made.slots[1], made.integer(0))
    bits = made.add("bitcast", int32, (x,))
    before = len(made.instructions)
    inside, outside = made.const(31, int32), made.const(32, int32)
    made.apply("shift_left", bits, inside)
    assert ops(made)[before:] == ["const", "const", "shift_left"]
    made.apply("shift_left", bits, outside)
    assert "where" in ops(made)


def test_places_that_lanes_read_beside_one_another_are_loaded_as_a_vector() -> None:
    """On a GPU; where a vector would not begin at a multiple of its length they are not."""
    for first, loads in ((4, 1), (2, J.size)):
        made = emitter()
        made.is_gathering = True
        with made.axis_loop(I), made.scope({J: made.integer(0)}, (J, J.size)):
            place = Expr("load", (), (0, axis_index(J) + axis_index(I) * 4 + first), int64)
            at = atom_index(Dynamic(place, 0, 63))
            made.value(Expr("load", (), (1, at), float32))
        assert ops(made).count("load") == loads + J.size


def test_a_lane_whose_guard_is_its_own_loads_alone() -> None:
    """The vector has places beyond the end of what is read: the guard of a lane is not theirs."""
    made = emitter()
    made.is_gathering = True
    with made.axis_loop(I), made.scope({J: made.integer(0)}, (J, J.size)):
        place = axis_index(J) + axis_index(I) * 4
        read = Expr("load", (), (1, place), float32)
        ends = (place, 0, 2 * J.size)
        made.value(Expr("guard", (read, Expr("const", (), 0.0, float32)), (ends,), float32))
    loads = [each for each in made.instructions if each.op == "load"]
    assert len(loads) == J.size
    assert all(len(each.args) == 3 for each in loads)
