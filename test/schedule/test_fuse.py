"""How many kernels graphs take, which heroes they get, and the reasons printed."""

from dataclasses import replace

import numpy as np
import plain_nodes
import pytest
from plan_support import TARGET, VALUES, check_plan, cnn_step, leaf, linear, run, spread

from picograd import Tensor
from picograd.dtype import float16, float32, int64
from picograd.graph import build
from picograd.graph.composites import join
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.graph.parts import put
from picograd.schedule.loop import walk
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target


def heroes(plan: Plan) -> list[str]:
    return [kernel.hero for kernel in plan.kernels]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("function", [build.softmax, build.log_softmax, build.logsumexp])
def test_softmax_is_one_kernel(function: object, axis: int) -> None:
    plan = check_plan([function(leaf(4, 20), axis)], 1)  # type: ignore[operator]
    assert heroes(plan) == [("reduce.col", "reduce.row")[axis]]


def test_softmax_gradients_are_one_kernel() -> None:
    x = leaf(4, 6)
    for function in (build.softmax, build.log_softmax):
        check_plan([g for g in gradient([(function(x, 1), leaf(4, 6))], [x]) if g], 1)


def test_layer_norm_is_one_kernel_and_its_gradient_two() -> None:
    x, weight, bias = leaf(4, 6), leaf(6), leaf(6)
    y = build.layer_norm(x, 1, weight, bias)
    assert heroes(check_plan([y], 1)) == ["reduce.row"]
    found = [g for g in gradient([(y, leaf(4, 6))], [x, weight, bias]) if g]
    assert heroes(check_plan(found, 2)) == ["reduce.row", "reduce.col"]


def test_mean_and_variance_are_one_kernel() -> None:
    x = leaf(4, 6)
    check_plan([build.mean(x, 1), build.var(x, 1)], 1)


def test_sum_and_difference_are_one_kernel_of_one_part() -> None:
    a, b = leaf(4, 6), leaf(4, 6)
    plan = check_plan([a + b, a - b], 1)
    assert len(plan.kernels[0].parts) == 1


def test_contraction_absorbs_bias_and_gelu() -> None:
    x, weight, bias = leaf(4, 6), leaf(6, 8), leaf(8)
    h = build.matmul(x, weight)
    assert heroes(check_plan([build.gelu(h + spread(bias, h.shape))], 1)) == ["contract"]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_residual_and_its_norm_are_one_kernel(axis: int) -> None:
    x, y = leaf(20, 24), leaf(20, 24)
    total = x + y
    for roots in ([total, build.softmax(total, axis)], [build.softmax(total, axis), total]):
        assert heroes(check_plan(roots, 1)) == [("reduce.col", "reduce.row")[axis]]
    moved = build.softmax(total.permute((1, 0)), axis)
    check_plan([total, moved, moved.reduce("max", (axis,))], 1)


def test_windows_and_writes_are_not_adopted() -> None:
    x = leaf(20, 24)
    pooled = plain_nodes.window(x, ((1, 2, 1, 1),)).reduce("max", (2,)) + 1.0
    check_plan([pooled, pooled.reduce("sum", (1,))])
    written = build.assign(leaf(20, 24), x + 1.0)
    check_plan([written, (x + 1.0).reduce("sum", (1,)), written.reduce("sum", (0,))])


def test_residual_joins_the_epilogue() -> None:
    x = leaf(4, 4)
    y = build.relu(linear(x, leaf(4, 4), leaf(4))) + x
    check_plan([linear(y, leaf(4, 4), leaf(4))], 2)


def test_cross_entropy_with_its_gradient_is_one_kernel() -> None:
    x = leaf(4, 6)
    loss = build.cross_entropy(x, leaf(4, dtype=int64, below=6))
    check_plan([loss], 1)
    found = gradient([(loss, loss.const_like(1.0))], [x])
    check_plan([loss, *(g for g in found if g)], 1)


def test_the_count_of_labels_that_are_not_ignored_shares_the_kernel() -> None:
    x = leaf(4, 6)
    loss = build.cross_entropy(x, leaf(4, dtype=int64, below=6), ignore_index=-100)
    check_plan([loss], 1)
    found = gradient([(loss, loss.const_like(1.0))], [x])
    check_plan([loss, *(g for g in found if g)], 2)


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")])
def test_logits_are_read_by_one_kernel_for_a_mean_and_its_gradient(target: Target) -> None:
    """The count is there before it: gradients wait for no loss."""
    logits, labels = leaf(512, 40), leaf(512, dtype=int64, below=40)
    loss = build.cross_entropy(logits, labels, ignore_index=-100)
    (slope,) = gradient([(loss, leaf())], [logits])
    plan = schedule([loss, slope], target)
    number = plan.inputs.index(logits)
    readers = [step for step in plan.steps if number in step.slots]
    assert [step.kernel.hero for step in readers] == ["reduce.row"]
    assert len(plan.kernels) == 2


def test_gradients_of_long_logits_are_written_over_them() -> None:
    """Logits of 100 MB that the plan makes live beside no other array of their size."""
    x, weight = leaf(512, 64), leaf(64, 50304)
    logits = x.contract(weight, ((0, 1), (1, 2), (0, 2)))
    loss = build.cross_entropy(logits, leaf(512, dtype=int64, below=40), ignore_index=-100)
    (slope,) = gradient([(loss, leaf())], [x])
    plan = schedule([loss, slope], cuda_target("sm_90a"))
    (arena,) = plan.arenas.values()
    assert 1.0 <= arena / (512 * 50304 * 4) < 1.1


def test_adam_is_one_kernel() -> None:
    _, step = cnn_step(2, (2, 3), 8)
    plan = schedule(step, TARGET)
    writers = [kernel for kernel in plan.kernels if any(s.role == "inout" for s in kernel.slots)]
    assert len(writers) == 1
    assert writers[0].name.startswith("map_assign")


def test_results_that_are_read_too_share_the_kernel_of_their_reader() -> None:
    """Moments are outputs, and what the new parameter is made of: both are stored first."""
    p, g, m, v = (leaf(8, 6) for _ in range(4))
    first, second = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    plan = check_plan([p - first / (second.unary("sqrt") + 1e-8), first, second], 1)
    assert len(plan.kernels[0].parts) == 1
    x, y, z = (leaf(8, 6) for _ in range(3))
    several = [x + z, x * y, z * 2.0]  # the last one shares what it reads with the first alone
    check_plan([several[0] + several[1] + several[2], *several], 1)
    apart = leaf(8, 6) * 2.0  # shares nothing with the others
    check_plan([apart, first, apart + first], 2)


def test_batch_statistics_are_one_column_kernel() -> None:
    x = leaf(64, 3, 20, 20)
    plan = schedule(list(build.batch_stats(x)), TARGET)
    assert len(plan.kernels) == 1


def test_heroes_of_reductions() -> None:
    x = leaf(40, 50)
    for axes, hero in (((0,), "reduce.col"), ((1,), "reduce.row"), ((0, 1), "reduce.all")):
        assert heroes(check_plan([x.reduce("sum", axes)], 1, 1e-3)) == [hero]


def test_few_long_rows_are_shared_by_all_threads() -> None:
    x = leaf(2, 4_000_000)
    assert len(schedule([build.softmax(x, 1)], TARGET).kernels) == 1
    plan = schedule([build.softmax(x, 1)], replace(TARGET, threads=8))
    assert len(plan.kernels) == 3
    assert any("2 rows of 4000000 are 2 tasks" in reason for reason in plan.reasons)


def test_columns_are_worked_on_again_by_the_kernel_that_reduced_them() -> None:
    for length in (100, 1024, 1025):
        assert heroes(schedule([build.softmax(leaf(length, 32), 0)], TARGET)) == ["reduce.col"]


def test_reasons_name_the_numbers() -> None:
    x = leaf(600, 600)
    y = x.unary("tanh").unary("exp").unary("sin").unary("erf").unary("log")
    plan = schedule([build.matmul(y, x.unary("neg")), y.reduce("sum", (0,))], TARGET)
    assert any("operand of a product, and others" in reason for reason in plan.reasons)
    plan = schedule([y.reduce("sum", (1,)), y.reduce("sum", (0,))], TARGET)
    stored = "stored log (600, 600): 2 kernels read it, 37 operations and 1 loads: again"
    assert any(reason.startswith(stored) for reason in plan.reasons)


def test_a_value_that_is_widened_is_stored_narrow() -> None:
    x, weight = leaf(4096, 32, dtype=float16), leaf(32, 48, dtype=float16)
    wide = (build.matmul(x, weight) * leaf(4096, 48, dtype=float16)).cast(float32)
    sums = [each.reduce("sum", (0,)).reshape((1, 48)) for each in (wide, wide * wide)]
    roots = [wide * spread(sums[0], wide.shape) - spread(sums[1], wide.shape)]
    plan = schedule(roots, cuda_target("sm_90a"))
    large = [slot.dtype for slot in plan.slots if slot.kind == "temporary" and slot.size > 48]
    assert large == [float16]
    np.testing.assert_allclose(
        run(plan)[0], interpret(roots, values=VALUES)[0], rtol=1e-2, atol=0.5
    )


def test_a_value_that_two_nodes_of_one_kernel_read_is_computed_once() -> None:
    counts = []
    for depth in (100, 200, 400):
        y: Node = leaf(6)
        for _ in range(depth):
            y = y + y * y
        counts.append(len(schedule([y], TARGET).kernels))
    assert counts[0] <= 2 and counts[2] <= 4 * counts[0]


def test_writes_that_read_one_another_are_linear_in_their_number() -> None:
    """What two views show is computed at two places: it is stored before the paths multiply."""

    def length(writes: int) -> int:
        table = leaf(32) * 2
        for n in range(writes):
            before, last = (table.slice(((n + k, n + k + 1, 1),)) for k in (0, 1))
            table = put(table, before.unary("abs") + last, (("slice", ((n + 2, n + 3, 1),)),))
        plan = schedule([table], TARGET)
        return sum(len(str(kernel)) for kernel in plan.kernels)

    assert length(24) <= 2.5 * length(12) and length(12) <= 2.5 * length(6)


def test_a_view_chain_of_any_length_is_cut() -> None:
    y: Node = leaf(6)
    for number in range(700):
        y = build.flip(y, (0,)) if number % 2 else y + 1.0
    check_plan([y])


def test_equal_nodes_are_computed_once() -> None:
    x = leaf(4, 6)
    plan = check_plan([x.unary("exp").reduce("sum", (1,)) + x.unary("exp").reduce("sum", (1,))], 1)
    assert sum(bool(c.reduce) for c in plan.kernels[0].parts[0].computes) == 1


def test_products_without_two_arrays_are_no_contractions() -> None:
    x = leaf(5, 6)
    ones = build.const(1.0, (3, 5), x.dtype, "cpu")
    assert heroes(check_plan([build.matmul(ones, x)], 1)) == ["reduce.col"]
    outer = leaf(4).contract(leaf(3), ((0,), (1,), (0, 1)))
    assert heroes(check_plan([outer + 1.0], 1)) == ["map"]


def test_windows_do_not_enter_contractions_or_scatters() -> None:
    x = leaf(4, 6)
    pooled = plain_nodes.window(x, ((1, 2, 2, 1),)).reduce("max", (2,))
    plan = check_plan([build.matmul(x, leaf(6, 3)) + pooled], 2)
    assert sorted(heroes(plan)) == ["contract", "map"]
    rows = leaf(4, dtype=int64, below=4)
    check_plan([plain_nodes.scatter(leaf(4, 3), pooled, [rows], (0,), "sum")])


@pytest.mark.parametrize("act", [lambda x: x.unary("silu"), lambda x: x + 1.0])
def test_what_windows_multiply_is_computed_once_where_it_is_dear(act: object) -> None:
    """On a GPU, where each row of taps would compute it again; not for largest elements."""
    inputs, taps = leaf(64, 56, 56, 32), leaf(32, 3, 3)
    scale, shift = (spread(leaf(32).reshape((1, 1, 1, 32)), inputs.shape) for _ in range(2))
    value = act(inputs * scale + shift)  # type: ignore[operator]
    windows = plain_nodes.window(value, ((1, 3, 1, 1), (2, 3, 1, 1)))
    weight = spread(taps.reshape((1, 1, 1, 32, 3, 3)), windows.shape)
    sums = (windows * weight).reduce("sum", (4, 5))
    is_dear = value.op == "silu"
    for found, target, is_stored in (
        (sums, cuda_target("sm_90a"), is_dear),
        (sums, TARGET, False),
        (windows.reduce("max", (4, 5)), cuda_target("sm_90a"), False),
    ):
        plan = schedule([found], target)
        assert any("windows of 3 rows" in reason for reason in plan.reasons) is is_stored


def test_what_windows_multiply_is_stored_before_its_readers_are_looked_at() -> None:
    """They would go on to count it as what it was made of: sums over windows, say."""
    image, around = leaf(64, 30, 30, 32), ((1, 3, 1, 1), (2, 3, 1, 1))
    taps = spread(leaf(1, 1, 1, 32, 3, 3), (64, 28, 28, 32, 3, 3))
    pairs = plain_nodes.window(leaf(64, 28, 29, 32), ((2, 2, 1, 1),)).reduce("sum", (4,))
    value = pairs * leaf(64, 28, 28, 32)
    shown = spread(value.reshape((64, 28, 28, 32, 1, 1)), taps.shape)
    by_tap = (plain_nodes.window(image, around) * shown).reduce("sum", (0, 1, 2))
    wide = build.pad(value, ((0, 0), (1, 1), (1, 1), (0, 0)))
    back = (plain_nodes.window(wide, around) * taps).reduce("sum", (4, 5))
    reasons = schedule([by_tap, back], cuda_target("sm_90a")).reasons
    assert reasons[0].startswith("stored mul (64, 28, 28, 32): windows of 3 rows, 2 kernels")


def test_sums_for_taps_are_parts_of_their_own_on_a_gpu() -> None:
    """Two of one domain share nothing, and a thread has registers for the windows of one."""
    images = [leaf(8, 16, 16, 32) for _ in range(2)]
    terms = [plain_nodes.window(x, ((1, 3, 1, 1), (2, 3, 1, 1))) for x in images]
    near = spread(leaf(8, 14, 14, 32, 1, 1), terms[0].shape)
    sums = [(each * near).reduce("sum", (0, 1, 2)) for each in terms]
    for target, count in ((cuda_target("sm_90a"), 2), (TARGET, 1)):
        kernels = schedule(sums, target).kernels
        assert sum(len(kernel.parts) for kernel in kernels) == count


def test_windows_read_shuffled_channels_as_they_lie() -> None:
    x = leaf(64, 56, 56, 32).unary("silu")
    mixed = x.reshape((64, 56, 56, 2, 16)).permute((0, 1, 2, 4, 3)).reshape((64, 56, 56, 32))
    windows = plain_nodes.window(mixed, ((1, 3, 1, 1), (2, 3, 1, 1)))
    sums = (windows * spread(leaf(1, 1, 1, 32, 3, 3), windows.shape)).reduce("sum", (4, 5))
    reasons = schedule([sums], cuda_target("sm_90a")).reasons
    assert any(reason.startswith("stored reshape (64, 56, 56, 32): windows") for reason in reasons)


def test_mixing_reshapes_are_cut() -> None:
    x = Tensor(np.arange(77, dtype=np.float32)).realize()
    wanted = x.numpy()
    for _ in range(40):
        x = x.reshape(7, 11).transpose(0, 1).reshape(77)
        wanted = wanted.reshape(7, 11).T.reshape(77)
    assert np.array_equal(x.numpy(), wanted)


def test_a_loop_over_time_that_is_read_at_each_step_grows_with_its_steps() -> None:
    def expressions(steps: int) -> int:
        decay = build.unary("exp", spread(leaf(16), (4, steps, 64, 16)))
        state, sums = leaf(4, 64, 16), []
        for at in range(steps):
            now = build.slice_(decay, ((0, 4, 1), (at, at + 1, 1), (0, 64, 1), (0, 16, 1)))
            state = build.reshape(now, (4, 64, 16)) * state
            sums.append(plain_nodes.reduce("sum", state, (2,)))
        parts = [part for kernel in schedule(sums, TARGET).kernels for part in kernel.parts]
        return sum(len(walk(compute.body)) for part in parts for compute in part.computes)

    assert expressions(32) < 3 * expressions(16)


def test_single_values_are_finished_by_their_kernels_before_they_stand_beside_others() -> None:
    norms = [leaf(8, 5 + n) for n in range(20)]
    norms = [(x * x).reduce("sum", (0, 1)).unary("sqrt").reshape((1,)) for x in norms]
    beside = join(norms, 0)
    plan = check_plan([(beside * beside).reduce("sum", (0,)).unary("sqrt")])
    first = plan.kernels[0]
    assert len(first.parts) == 20
    assert all(part.computes[-1].body.op == "sqrt" for part in first.parts)


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
def test_rows_are_normed_and_their_halves_turned_in_one_kernel(target: Target) -> None:
    """A row's elements are read at other places of the row; its sum is at hand."""
    x, cos, sin = leaf(6, 5, 8), leaf(5, 4), leaf(5, 4)
    sums = (x * x).reduce("sum", (2,)).reshape((6, 5, 1)) + 1.0
    rows = x / spread(sums, x.shape)
    first, second = (rows.slice(((0, 6, 1), (0, 5, 1), (n, n + 4, 1))) for n in (0, 4))
    by = [spread(each.reshape((1, 5, 4)), (6, 5, 4)) for each in (cos, sin)]
    turned = [first * by[0] - second * by[1], second * by[0] + first * by[1]]
    plan = check_plan(list(expand_composites([join(turned, 2)])), 1, target=target)
    assert heroes(plan) == ["reduce.row"]


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
def test_what_is_gathered_from_memory_is_at_the_places_of_its_indices(target: Target) -> None:
    """The numbers of a row that are chosen, and a softmax of what they show: one kernel."""
    x, places = leaf(6, 40), leaf(6, 3, dtype=int64, below=20)
    found = places + 7
    shown = plain_nodes.gather(x, [found.iota(0), found], (0, 1))
    plan = check_plan([found, build.softmax(shown, 1)], 1, target=target)
    assert heroes(plan) == ["reduce.row"]
