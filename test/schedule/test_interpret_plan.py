"""Plans run by the interpreter: arenas are shared, assignments write the arrays given."""

import numpy as np
from plan_support import TARGET, leaf, spread

from picograd.dtype import bfloat16
from picograd.graph import build
from picograd.schedule.interpret_plan import allocate, interpret_plan
from picograd.schedule.schedule import schedule


def test_outputs_have_the_shapes_of_the_roots() -> None:
    x = leaf(2, 3)
    plan = schedule([x + 1.0, x.reshape((3, 2))], TARGET)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    one, two = interpret_plan(plan, [values])
    np.testing.assert_array_equal(one, values + 1)
    np.testing.assert_array_equal(two, values.reshape(3, 2))


def test_an_assignment_writes_the_array_given() -> None:
    x = leaf(4)
    plan = schedule([build.assign(x, x * 2.0)], TARGET)
    values = np.ones(4, np.float32)
    interpret_plan(plan, [values])
    np.testing.assert_array_equal(values, 2)


def test_temporaries_are_views_of_one_arena() -> None:
    x, w = leaf(8, 8), leaf(8, 8)
    y = x
    for _ in range(4):
        y = build.matmul(build.relu(y) + spread(y.reduce("sum", (0,)), (8, 8)), w)
    plan = schedule([y], TARGET)
    memory = allocate(plan, [np.zeros(n.shape, np.float32) for n in plan.inputs])
    pairs = zip(plan.slots, memory, strict=True)
    temporary = [array for slot, array in pairs if slot.kind == "temporary"]
    assert len(temporary) > 2 and len({id(a.base) for a in temporary}) == 1
    assert sum(a.nbytes for a in temporary) > sum(plan.arenas.values()), "memory is used again"


def test_bfloat16_is_held_in_float32() -> None:
    x = leaf(4, dtype=bfloat16)
    (found,) = interpret_plan(schedule([x + 1.0], TARGET), [np.zeros(4, np.float32)])
    assert found.dtype == np.float32 and (found == 1).all()
