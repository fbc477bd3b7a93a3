"""Launches that become one: products of one depth, and small work beside other work."""

from dataclasses import replace

import pytest
from plan_support import TARGET, check_plan, copies, leaf, spread

from picograd.dtype import float16, float32
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule import heroes
from picograd.schedule.merge import PRODUCT_WAIT, TILE
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def shape_of(plan: Plan) -> list[tuple[str, int]]:
    return [(kernel.hero, len(kernel.parts)) for kernel in plan.kernels]


def test_products_that_do_not_wait_for_each_other_are_one_launch() -> None:
    x = leaf(20, 6)
    roots = [build.matmul(x, leaf(6, n)) for n in (5, 7)]
    assert shape_of(check_plan(roots, 1)) == [("contract", 2)]
    assert shape_of(schedule(roots, GPU)) == [("contract", 2)]
    narrow = [build.matmul(leaf(20, 6).cast(float16), leaf(6, n).cast(float16)) for n in (5, 7)]
    plan = schedule(narrow, GPU)
    assert [parts for hero, parts in shape_of(plan) if hero == "contract"] == [1, 1], "two shapes"
    after = build.matmul(roots[0], leaf(5, 4))
    assert shape_of(check_plan([*roots, after])) == [("contract", 2), ("contract", 1)]
    outer = build.matmul(leaf(20, 1), leaf(1, 5))  # no sum: a map
    assert sorted(shape_of(check_plan([roots[0], outer]))) == [("contract", 1), ("map", 1)]


def test_convolutions_share_a_launch_on_a_gpu() -> None:
    """Those of few channels, too, that are computed without tiles: others have as many threads."""
    spec = ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))

    def parts(images: int, channels: int) -> list[int]:
        x = leaf(images, 1, 8, 32, 32)
        both = [build.conv(x, leaf(1, n, 8, 3, 3), spec) for n in (channels, channels + 64)]
        return [count for _, count in shape_of(schedule(both, GPU))]

    assert parts(64, 32) == [2], "what has no tiles beside tiles"
    assert parts(64, 64) == [2], "tiles beside tiles"
    assert parts(4, 32) == [2], "too few places for anything but tiles"


def test_the_larger_result_comes_first_on_a_gpu_in_whatever_order_they_are_asked_for() -> None:
    """Its blocks begin first, and are short: those of few elements with long sums run beside."""
    x, y, weight = leaf(40, 20), leaf(40, 10), leaf(10, 20)
    roots = [build.matmul(y.permute((1, 0)), x), build.matmul(y, weight)]
    for listed in (roots, roots[::-1]):
        (kernel,) = schedule(listed, GPU).kernels
        assert "_40x20_2parts" in kernel.name


def test_small_reductions_of_any_domain_are_one_launch() -> None:
    x, y = leaf(40, 5), leaf(7, 30)
    roots = [x.reduce("sum", (0,)), y.reduce("max", (1,)), y.reduce("sum", (0, 1)), leaf(9) + 1.0]
    assert [parts for _, parts in shape_of(check_plan(roots, 1))] == [4]


def test_small_work_waits_for_a_launch_that_comes_later() -> None:
    late = leaf(6, 5).reduce("sum", (1,))
    late = build.matmul(build.contiguous(late.reshape((1, 6)) * 2.0), leaf(6, 4))
    late = late.reduce("max", (1,))
    early = leaf(3, 4).reduce("sum", (1,))
    plan = check_plan([late, early])
    assert [parts for _, parts in shape_of(plan)].count(2) == 1


def test_large_reductions_stay_where_their_input_is_in_cache() -> None:
    x, y = leaf(3000, 40), leaf(2000, 50)
    late = build.contiguous(y.reduce("sum", (0,)) * 2.0).reduce("max", (0,))
    plan = schedule([x.reduce("sum", (0,)), late], replace(TARGET, threads=1))
    assert ("reduce.col", 2) not in shape_of(plan)


def test_large_reductions_that_nothing_reads_wait_for_others_on_a_gpu() -> None:
    x, y = leaf(40_000, 768), leaf(40_000, 1000)
    bias, row = x.reduce("sum", (0,)), y.reduce("sum", (1,)) * 2.0
    after = build.matmul(row.reshape((200, 200)), leaf(200, 300))
    assert shape_of(schedule([bias, after], GPU))[0] == ("reduce.row", 2)
    assert ("reduce.col", 1) in shape_of(schedule([bias, after], TARGET))
    apart = replace(GPU, tf32=True)  # sums over a product are a kernel of their own
    late = build.matmul(y, leaf(1000, 768)).reduce("sum", (0,))
    assert ("reduce.col", 2) in shape_of(schedule([bias, late], apart)), "a depth later"
    deep = y
    for _ in range(4):
        deep = build.matmul(deep, leaf(1000, 1000))
    plan = schedule([bias, deep.reduce("sum", (0,))], apart)
    assert ("reduce.col", 2) not in shape_of(plan), "what it reads would stay in memory"


def test_memory_written_in_place_is_read_before() -> None:
    x, y = leaf(30), leaf(30)
    total = x.reduce("sum", (0,))
    writes: list[Node] = [build.assign(x, x * 2.0), build.assign(y, y + spread(total, (30,)))]
    plan = check_plan([*writes, total + 1.0])
    assert copies(plan) == 0


def test_long_products_of_a_cpu_run_by_themselves_the_smaller_result_first() -> None:
    """Else what both read and make, and operands packed for both, would be in memory at once."""
    x, y, few = leaf(512, 4096), leaf(4096, 512), replace(TARGET, threads=1)
    roots = [build.matmul(y, x), build.matmul(x, y)]
    plan = schedule(roots, few)
    assert [kernel.parts[0].computes[0].axes[0].size for kernel in plan.kernels] == [512, 4096]
    assert shape_of(schedule(roots, replace(few, threads=4096))) == [("contract", 2)]


@pytest.mark.parametrize(("rows", "kernels"), [(256, 1), (4096, 2)])
def test_long_products_of_a_gpu_have_a_launch_and_tiles_of_their_own(
    rows: int, kernels: int
) -> None:
    x, g, w = leaf(rows, 784), leaf(rows, 256), leaf(784, 256)
    roots = [build.matmul(g, w.permute((1, 0))), build.matmul(x.permute((1, 0)), g)]
    assert len(schedule(roots, GPU).kernels) == kernels


@pytest.mark.parametrize(("count", "rows", "kernels"), [(7, 512, 2), (8, 512, 1), (36, 64, 2)])
def test_long_products_of_several_matrices_share_a_launch_on_a_gpu(
    count: int, rows: int, kernels: int
) -> None:
    """Gradients of transformed patches: tiles of many small matrices are alike. Of few tiles the
    sums of each are shared among blocks, which take longer beside others."""
    depth = 1024 if rows > TILE else 4608
    x, g, w = leaf(count, depth, rows), leaf(count, depth, rows), leaf(count, rows, rows)
    turned = x.permute((0, 2, 1))
    roots = [build.matmul(g, w.permute((0, 2, 1))), build.matmul(turned, g)]
    assert len(schedule(roots, GPU).kernels) == kernels
    labels = (0, 1, 2), (0, 2, 3), (0, 1, 3)
    assert heroes.count_matrices(build.contract(x, w, labels)) == count


def after(x: Node, steps: int) -> Node:
    """Multiply an array by so many others: products of 16-bit floats share no launch."""
    x = x.cast(float16)
    for _ in range(steps):
        x = build.matmul(x, leaf(20, 20).cast(float16))
    return x.cast(float32)


@pytest.mark.parametrize(("steps", "kernels"), [(2, 1), (PRODUCT_WAIT + 2, 2)])
def test_products_of_a_gpu_wait_for_others_of_their_kind(steps: int, kernels: int) -> None:
    """A shortcut's gradients wait for those of the convolutions that it goes past, not for long."""
    first = build.matmul(leaf(20, 20), leaf(20, 20))
    second = build.matmul(after(leaf(20, 20), steps), leaf(20, 20))
    plan = check_plan([first, second], target=GPU)
    assert shape_of(plan).count(("contract", 2)) == 2 - kernels, shape_of(plan)


def test_products_that_others_read_do_not_wait_behind_them() -> None:
    """Nor where what they read is written meanwhile."""
    x, weight = leaf(20, 20), leaf(20, 20)
    first = build.matmul(x, weight)
    second = build.matmul(after(first, 1), leaf(20, 20))
    plan = check_plan([second], target=GPU)
    assert ("contract", 2) not in shape_of(plan)
    third = build.matmul(after(leaf(20, 20), 2), leaf(20, 20))
    made = build.matmul(leaf(20, 20), weight)
    check_plan([made, build.assign(weight, weight * 2.0), third], target=GPU)
