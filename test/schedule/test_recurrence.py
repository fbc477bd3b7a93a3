"""Loops in plans: the body once, rows bound to slots, dead carries left out, memory shared."""

import numpy as np
import pytest
from plan_support import TARGET, VALUES, check_plan, leaf

from picograd.dtype import float32
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.graph.recurrence import make_body, outcome, placeholder, recur, stacked
from picograd.schedule.plan import Binding, KernelLaunch, LoopStep, Plan, format_plan
from picograd.schedule.schedule import schedule


def elman(
    length: int, is_reverse: bool = False, h: Node | None = None, w: Node | None = None
) -> tuple[Node, int, list[Node]]:
    """h' = tanh(x + h w), y = h' * x, and a count nothing else depends on."""
    state, x = (placeholder(kind, (2, 3), float32, "cpu") for kind in ("carry", "x"))
    count, weight = (placeholder(*each, float32, "cpu") for each in
                     (("carry", ()), ("constant", (3, 3))))  # fmt: skip
    after = (x + state.contract(weight, ((0, 1), (1, 2), (0, 2)))).unary("tanh")
    y = after * x
    body, numbers = make_body(([state, count], [x], [weight]), [after, count + 1.0], [y])
    inputs = [h or leaf(2, 3), leaf(), leaf(length, 2, 3), w or leaf(3, 3)]
    return recur(body, length, is_reverse, inputs), numbers[id(y)], inputs


def loop_of(plan: Plan) -> LoopStep:
    (step,) = [step for step in plan.steps if isinstance(step, LoopStep)]
    return step


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("length", [1, 4, 5])
def test_outcomes_equal_the_interpreter(length: int, is_reverse: bool) -> None:
    node, y, _ = elman(length, is_reverse)
    check_plan([outcome(node, "carry", 0), stacked(node, y)])
    check_plan([outcome(node, "history", 0), outcome(node, "carry", 1)])
    check_plan([outcome(node, "history", 0), outcome(node, "carry", 0), stacked(node, y)])


@pytest.mark.parametrize("is_reverse", [False, True])
def test_gradients_equal_the_interpreter(is_reverse: bool) -> None:
    node, y, inputs = elman(4, is_reverse)
    total = stacked(node, y) + stacked(node, 0)
    last = outcome(node, "carry", 0)
    found = gradient([(total, total), (last, last)], inputs)
    plan = check_plan([total, *(g for g in found if g is not None)])
    assert sum(isinstance(step, LoopStep) for step in plan.steps) == 2


def test_what_a_step_leaves_is_stored_once() -> None:
    """What reads it in the same step does so in its place."""
    node, y, _ = elman(4)
    body = loop_of(check_plan([outcome(node, "history", 0), stacked(node, y)])).body
    stored = [slot for each in body.kernels for slot in each.slots if slot.role == "out"]
    assert len(stored) == len(body.outputs) == 2
    assert not any(slot.kind == "temporary" for slot in body.slots)


def test_dead_carries_are_left_out() -> None:
    node, y, _ = elman(4)
    step = loop_of(check_plan([stacked(node, y)]))
    assert len(step.before) == 1 and len(step.body.outputs) == 2  # h and y, no count
    step = loop_of(check_plan([outcome(node, "carry", 1)]))
    assert [kernel.hero for kernel in step.body.kernels] == ["map"]  # no h, no x, no weight


def test_carries_alternate_or_walk_along_their_history() -> None:
    node, _, _ = elman(4)
    both = dict(loop_of(schedule([outcome(node, "carry", 0)], TARGET)).bindings).values()
    assert [b.row(t) for b in both if b.mask == 1 and not b.shift for t in range(4)] == [0, 1, 0, 1]
    plan = schedule([outcome(node, "history", 0)], TARGET)
    rows = [b for _, b in loop_of(plan).bindings if b.slot == plan.outputs[0]]
    assert [[b.row(t) for t in range(4)] for b in rows] == [[0, 1, 2, 3], [1, 2, 3, 4]]


def test_rows_of_a_reverse_binding() -> None:
    assert [Binding(0, 3, -1).row(t) for t in range(4)] == [3, 2, 1, 0]
    assert [Binding(0, 7, 0).row(t) for t in range(2)] == [7, 7]


def test_inputs_are_read_where_they_lie() -> None:
    """Rows cut from an array, and views of a constant, need no kernel of their own."""
    stack, wide = leaf(6, 2, 3), leaf(3, 3)
    rows = stack.slice(((1, 5, 1), (0, 2, 1), (0, 3, 1)))
    node, y, inputs = elman(4, w=wide.permute((1, 0)))
    node = recur(node.arg.body, 4, False, [*inputs[:2], rows, inputs[3]])
    plan = check_plan([stacked(node, y)])
    assert all(isinstance(step, LoopStep) for step in plan.steps[:1])
    first = {b.slot: b.first for _, b in loop_of(plan).bindings}
    assert first[next(i for i, n in enumerate(plan.inputs) if n is stack)] == 1


def test_other_views_and_constants_of_inputs() -> None:
    node, y, inputs = elman(4)
    flipped = inputs[2].flip((0,)) * 2.0
    turned = leaf(2, 4, 3).permute((1, 0, 2))
    ones = inputs[2].const_like(1.0)
    for x in (flipped, turned, ones):
        other = recur(node.arg.body, 4, False, [inputs[0].const_like(0.5), inputs[1], x, inputs[3]])
        check_plan([stacked(other, y), outcome(other, "carry", 0)])


def test_equal_loops_run_once() -> None:
    first, y, inputs = elman(4)
    second = recur(first.arg.body, 4, False, inputs)
    plan = check_plan([stacked(first, y), outcome(second, "carry", 0)])
    loop_of(plan)


def test_loops_in_loops() -> None:
    inner, y, inputs = elman(3)
    state = placeholder("carry", (2, 3), float32, "cpu")
    shapes = ((), (3, 2, 3), (3, 3))
    count, x, w = (placeholder("constant", shape, float32, "cpu") for shape in shapes)
    node = recur(inner.arg.body, 3, False, [state, count, x, w])
    body, numbers = make_body(
        ([state], [], [count, x, w]), [outcome(node, "carry", 0)], [made := stacked(node, y)]
    )
    outer = recur(body, 2, False, inputs)
    plan = check_plan([outcome(outer, "carry", 0), stacked(outer, numbers[id(made)])])
    (step,) = [step for step in loop_of(plan).body.steps if isinstance(step, LoopStep)]
    assert isinstance(step.body.steps[0], KernelLaunch)


def test_temporaries_of_the_body_lie_in_the_arena() -> None:
    state, w = placeholder("carry", (64, 64), float32, "cpu"), leaf(64, 64)
    held = placeholder("constant", (64, 64), float32, "cpu")
    once = state.contract(held, ((0, 1), (1, 2), (0, 2)))
    after = once.contract(held, ((0, 1), (1, 2), (0, 2)))
    body, _ = make_body(([state], [], [held]), [after], [])
    node = outcome(recur(body, 3, False, [leaf(64, 64), w]), "carry", 0)
    VALUES[w] *= np.float32(0.1)
    plan = check_plan([node])
    step = loop_of(plan)
    assert plan.slots[step.space].nbytes == step.body.arenas["cpu"] == 64 * 64 * 4
    assert plan.arenas["cpu"] == 3 * 64 * 64 * 4  # two rows of the carry, and that


def test_the_body_is_printed_once_whatever_the_length() -> None:
    lengths = []
    for length in (4, 400):
        node, y, _ = elman(length)
        text = format_plan(schedule([stacked(node, y)], TARGET))
        assert f"loop of {length} steps" in text
        lengths.append(len(text.splitlines()))
    assert lengths[0] == lengths[1]
