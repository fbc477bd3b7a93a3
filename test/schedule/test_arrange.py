"""Launches: what shares a kernel, and that everything is computed before it is read."""

import plain_nodes
import pytest
from plan_support import TARGET, check_plan, leaf, spread

from picograd.dtype import float16, float32, int64
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule import arrange as module
from picograd.schedule.arrange import LARGE, arrange, is_sink, reads_of
from picograd.schedule.fuse import Fuser
from picograd.schedule.group import Group
from picograd.schedule.loop import Kernel, Slot
from picograd.schedule.schedule import Draft, fuse, number_inputs
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def fused(*roots: Node) -> list[Group]:
    draft = Draft(list(roots), TARGET, True, Fuser(TARGET))
    number_inputs(draft)
    fuse(draft)
    return draft.fuser.groups


def group(number: int, operations: int) -> Group:
    return Group(number, "map", 1, (4,), (), "cpu", operations=operations)


def test_a_group_runs_after_what_it_reads() -> None:
    x = leaf(4, 5)
    total = x.reduce("sum", (0,))
    groups = fused(build.contiguous(total) + 1.0, total.reduce("max", (0,)))
    position = {}
    for number, launch in enumerate(arrange(groups, TARGET)):
        for part in launch.parts:
            position.update((id(g), number) for g in part)
    assert len(position) == len(groups)
    for reader in groups:
        for facts in reads_of(reader):
            if facts.group:
                assert position[id(facts.group)] < position[id(reader)] and facts.is_stored


def test_a_long_array_is_filled_just_before_it_is_scattered_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = leaf(3, dtype=int64, below=9)
    late = build.matmul(build.matmul(leaf(3, 4), leaf(4, 4)), leaf(4, 4))
    zeros = build.const(0.0, (9, 4), float32, "cpu")
    sums = plain_nodes.scatter(zeros, late, [places], (0,), "sum")
    for least, depth in ((1 << 20, 1), (1, 2)):
        monkeypatch.setattr(module, "LONG_FILL", least)
        groups = fused(sums)
        arrange(groups, TARGET)
        fills = [each for each in groups if any(m.group is not each for m in each.members)]
        assert [each.depth for each in fills] == [depth]


def test_reductions_over_one_domain_share_a_launch() -> None:
    x = leaf(4, 5)
    launches = arrange(
        fused(x.reduce("sum", (1,)), x.reduce("max", (1,)), x.reduce("sum", (0,))), TARGET
    )
    assert sorted(len(launch.parts) for launch in launches) == [1, 1]


def test_sums_of_whole_arrays_share_a_launch() -> None:
    sums = [leaf(4, 5 + n).reduce("sum", (0, 1)) for n in range(3)]
    launches = arrange(fused(*sums, leaf(4, 5).reduce("sum", (1,))), TARGET)
    assert [len(launch.parts) for launch in launches] == [3, 1]


def test_maps_nobody_reads_sink_to_one_launch() -> None:
    x, y = leaf(4), leaf(7)
    rows = [build.contiguous(x * 2.0), build.contiguous(y * 3.0)]
    late = spread(x.reduce("sum", (0,)), (4,)) + 1.0
    groups = fused(*rows, late)
    last = arrange(groups, TARGET)[-1]
    assert sum(is_sink(g) for g in groups) == 2
    assert last.kind == "map" and sum(len(part) for part in last.parts) >= 2


def test_launches_are_bounded() -> None:
    (launch,) = arrange([group(number, operations=LARGE) for number in range(40)], TARGET)
    assert len(launch.parts) == 4, "too long for one part"
    launches = arrange([group(number, operations=LARGE) for number in range(70 * 13)], TARGET)
    assert [len(launch.parts) for launch in launches] == [64, 6]
    launches = arrange([group(number, operations=300) for number in range(3)], TARGET)
    assert [len(launch.parts) for launch in launches] == [1, 1, 1], "equal ones compile once"


def test_maps_without_a_common_array_are_parts_of_their_own_on_a_gpu() -> None:
    shared, other = leaf(4), leaf(4)
    roots = [build.contiguous(shared * 2.0), build.contiguous(shared * 3.0), other * 4.0]
    for target, parts in ((TARGET, 1), (cuda_target("sm_90a"), 2)):
        (launch,) = arrange(fused(*roots), target)
        assert len(launch.parts) == parts


def test_updates_of_what_another_kernel_reads_together_are_parts_of_their_own() -> None:
    weight, bias = leaf(4), leaf(4)
    first = build.contiguous(leaf(3, 4) * spread(weight, (3, 4)) + spread(bias, (3, 4)))
    groups = fused(build.matmul(leaf(5, 3), first), weight * 2.0, bias * 3.0)
    last = arrange(groups, cuda_target("sm_90a"))[-1]
    assert [len(part) for part in last.parts] == [1, 1]


def test_groups_that_are_alike_add_no_text_on_a_gpu() -> None:
    groups = [group(number, operations=300) for number in range(100)]
    assert [len(each.parts) for each in arrange(groups, TARGET)] == [1] * 100
    assert [len(each.parts) for each in arrange(groups, cuda_target("sm_90a"))] == [100]


def norm_gradients(reads_again: bool) -> list[Node]:
    """Sums of a gradient `g`, of which one waits for the statistics of `x`, and what reads them."""
    x, g = leaf(4000, 16), leaf(4000, 16)
    mean = x.reduce("sum", (0,)) / 4000.0
    total = g.reduce("sum", (0,))
    slope = (g * (x - spread(mean, x.shape))).reduce("sum", (0,))
    read = spread(total, (8, 16)).reduce("sum", (1,)) if reads_again else total.cast(float16)
    return [mean, read, slope]


def test_long_maps_share_a_launch_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones beside a long one, too; not short ones alone, nor on a CPU."""
    monkeypatch.setattr(module, "outline_of", lambda group: (group.number,))
    for target, operations, parts in (
        (GPU, (300, 300, LARGE + 1), [3]),
        (GPU, (LARGE + 1,) * 20, [400 // (LARGE + 1), 20 - 400 // (LARGE + 1)]),
        (GPU, (1500, 1500), [1, 1]),
        (TARGET, (300, 300), [1, 1]),
    ):
        groups = [group(number, count) for number, count in enumerate(operations)]
        assert [len(each.parts) for each in arrange(groups, target)] == parts


def test_a_sum_moves_to_the_kernel_that_reads_its_array_anyway() -> None:
    plan = check_plan(norm_gradients(False), 2, 1e-2, GPU)
    assert [len(reads(kernel)) for kernel in plan.kernels] == [1, 3], "x; g, x and its mean"


def test_a_sum_that_others_wait_for_stays() -> None:
    plan = check_plan(norm_gradients(True), 2, 1e-2, GPU)
    assert len(reads(plan.kernels[0])) == 2, "x and g"


def test_sums_that_share_an_array_stay_together() -> None:
    x, g = leaf(4000, 16), leaf(4000, 16)
    mean, both = x.reduce("sum", (0,)), (x * g).reduce("sum", (0,))
    later = (g * (x - spread(mean, x.shape))).reduce("sum", (0,))
    plan = check_plan([mean, both, later], 2, 1e-2, GPU)
    assert [sum(bool(c.reduce) for c in k.parts[0].computes) for k in plan.kernels] == [2, 1]


def reads(kernel: Kernel) -> list[Slot]:
    return [slot for slot in kernel.slots if slot.role == "in"]


def test_sums_of_arrays_that_share_nothing_are_parts_of_their_own_on_a_gpu() -> None:
    """Norms of gradients of one shape; what is made of two of them keeps them together."""
    arrays = [leaf(7, 9) for _ in range(50)]
    norms = [(x * x).reduce("sum", (0, 1)).unary("sqrt") for x in arrays]
    (kernel,) = check_plan(norms, 1, target=GPU).kernels
    assert [len(part.computes) for part in kernel.parts] == [2] * 50
    pair = norms[0] * norms[1]
    (kernel,) = check_plan([pair, *norms[2:4]], 1, target=GPU).kernels
    assert sorted(len(part.computes) for part in kernel.parts) == [2, 2, 3]
    (kernel,) = check_plan([arrays[0].reduce(kind, (0, 1)) for kind in ("sum", "max")], 1).kernels
    assert len(kernel.parts) == 1


def test_long_launches_of_maps_keep_to_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they are passed: 50 arrays, and what is written of each."""
    arrays = [leaf(4, 5 + number) for number in range(50)]
    monkeypatch.setattr(module, "LONG_WORDS", 60)
    for long, count in ((module.LONG_LAUNCH, 1), (100, 2)):
        monkeypatch.setattr(module, "LONG_LAUNCH", long)
        check_plan([build.assign(x, x * 2.0) for x in arrays], count, target=GPU)


def test_a_family_is_not_parted_where_a_kernel_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two maps of each array take five words, and the first of them three."""
    monkeypatch.setattr(module, "WORD_LIMIT", 13)
    roots = []
    for size in range(4, 7):
        shared = leaf(size)
        roots += [shared * leaf(size), spread(shared, (2, size)) + leaf(2, size)]
    launches = arrange(fused(*roots), TARGET)
    assert [sum(map(len, each.parts)) for each in launches] == [4, 2]
