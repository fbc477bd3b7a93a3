"""Members: what may be computed by the kernel of what it reads."""

from dataclasses import replace

from plan_support import SAME, TARGET, check_plan, leaf, spread

from picograd.dtype import DType, bfloat16, float32, float64, int64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.group import GROUP_LIMIT
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target


def heroes(*roots: Node, tolerance: float = 1e-3) -> list[str]:
    return [kernel.hero for kernel in check_plan(list(roots), tolerance=tolerance).kernels]


def test_sums_over_the_rows_or_columns_of_a_product_are_part_of_it() -> None:
    y = build.matmul(leaf(20, 6), leaf(6, 30)).unary("exp")
    first = y.reduce("sum", (0,))
    assert heroes(y, first, (y * y).reduce("max", (0,)), first * 2.0) == ["contract"]
    assert heroes(y.reduce("sum", (0,))) == ["contract"]  # the product itself is not stored
    assert heroes(y, first, y.reduce("sum", (1,))) == ["contract", "reduce.row"]
    assert heroes(build.softmax(y, 1)) == ["contract", "reduce.row"]  # rows are worked on again
    assert heroes(y, y.reduce("sum", (0, 1))) == ["contract", "reduce.all"]


def test_on_a_gpu_blocks_add_up_the_results_that_they_have() -> None:
    target = cuda_target("sm_90a")

    def kernels(
        rows: int, columns: int, axis: int = 0, dtype: DType = float32, k: int = 256, **given
    ) -> int:
        x, w = leaf(rows, k, dtype=dtype), leaf(k, columns, dtype=dtype)
        y = build.matmul(x, w).unary("exp")
        total = y.reduce("sum", (axis,))
        plan = schedule([y, total, total * total], replace(target, **given))
        return len(plan.kernels)

    assert kernels(32768, 64) == 1
    assert kernels(32768, 64, dtype=bfloat16) > 1, "tensor cores"
    assert kernels(32768, 64, tf32=True) > 1
    assert kernels(2048, 64) > 1, "blocks share K"
    assert kernels(32768, 64, k=128) > 1, "K is short"
    assert kernels(32768, 64, axis=1) > 1, "rows are short"
    unread = build.matmul(leaf(32768, 256), leaf(256, 64)).reduce("sum", (0,))
    assert len(schedule([unread], target).kernels) == 1


def test_a_convolution_of_a_number_multiplies_an_array_of_it() -> None:
    x, weight = leaf(2, 1, 6, 8, 8), leaf(1, 8, 6, 3, 3)
    y = x.conv(weight, SAME)
    found = [g for g in gradient([(y, y.const_like(1.0))], [x, weight]) if g]
    assert heroes(*found) == ["map", "conv"]  # both, in one launch


def test_a_number_for_few_channels_is_an_array_too_where_windows_are_long() -> None:
    for image, kernel, first in (
        ((2, 8, 1, 20, 20), (8, 1, 1, 3, 3), "map"),
        ((2, 1, 3, 9, 9), (1, 8, 3, 3, 3), "map"),
        ((2, 8, 1, 20, 20), (8, 1, 1, 1, 3), "reduce.row"),
    ):
        x, weight = leaf(*image), leaf(*kernel)
        y = x.conv(weight, SAME)
        (by_image,) = gradient([(y, y.const_like(1.0))], [x])
        assert by_image is not None
        assert heroes(by_image)[0] == first


def test_batch_statistics_are_part_of_a_convolution() -> None:
    y = leaf(2, 1, 3, 8, 8).conv(leaf(1, 4, 3, 3, 3), SAME).reshape((2, 4, 8, 8))
    mean, variance = build.batch_stats(y)
    scale = (variance + 1e-5).unary("rsqrt")
    assert heroes(y, mean, variance, scale) == ["conv"]
    normal = build.batch_norm(y, leaf(4), leaf(4), stats=(mean, variance))
    assert heroes(normal) == ["conv", "map"]  # elements wait for the statistics


def test_several_products_keep_their_sums_apart() -> None:
    y = build.matmul(leaf(3, 20, 6), leaf(3, 6, 30))
    assert heroes(y, y.reduce("sum", (1,))) == ["contract", "reduce.col"]
    outer = build.matmul(leaf(20, 1), leaf(1, 30))
    assert len(heroes(outer, outer.reduce("sum", (0,)))) == 2
    repeated = spread(leaf(6, 1), (6, 30))
    y = build.matmul(leaf(20, 6), repeated)
    check_plan([y, y.reduce("sum", (0,))], tolerance=1e-3)


def test_a_reduction_stores_the_elements_it_reads() -> None:
    x = leaf(50, 40)
    y = x * x + 1.0
    assert heroes(y, y.reduce("sum", (0,)), (y * x).reduce("sum", (0,))) == ["reduce.col"]
    far = y - spread(y.reduce("sum", (0,), keepdim=True), y.shape)
    check_plan([y, far, far.reduce("max", (0,))], tolerance=1e-3)


def test_a_product_packs_elementwise_work_that_it_alone_reads() -> None:
    x, y = leaf(20, 6), leaf(6, 30)
    assert heroes(build.matmul(x * 0.5, y * spread(leaf(1, 30), (6, 30)))) == ["contract"]
    gated = x.unary("silu") * leaf(20, 6)
    assert heroes(build.matmul(gated, y)) == ["contract"]
    assert heroes(build.matmul(y.permute((1, 0)).unary("exp"), leaf(6, 20))) == ["contract"]
    half = (x * 0.5).permute((1, 0))
    assert heroes(build.matmul(half, x), half) == ["map", "contract"]  # it is stored anyway
    assert heroes(build.matmul(half, x), build.matmul(y.permute((1, 0)), half))[0] == "map"
    wide = half.cast(float64)
    both = build.matmul(wide, x.cast(float64)), build.matmul(half, x)
    assert heroes(*both) == ["map", "contract"]  # a cast hides that two products read it
    rounded = x.cast(bfloat16) * spread(leaf(1, 6).cast(bfloat16), (20, 6))
    assert heroes(build.matmul(rounded, y.cast(bfloat16)), tolerance=2e-2)[0] == "map"


def test_a_convolution_packs_elementwise_work_once_for_each_tap() -> None:
    x, weight = leaf(2, 1, 3, 8, 8), leaf(1, 4, 3, 1, 1)
    point = replace(SAME, padding=((0, 0), (0, 0)))
    assert heroes((x * 2.0 + 1.0).conv(weight * 0.5, point)) == ["conv"]
    assert heroes((x * 2.0 + 1.0).conv(leaf(1, 4, 3, 3, 3), SAME)) == ["conv"]  # zeros around it
    plan = schedule([leaf(64, 1, 8, 32, 32).unary("exp").conv(leaf(1, 5, 8, 3, 3), SAME)], TARGET)
    assert [kernel.hero for kernel in plan.kernels] == ["map", "conv"]
    assert any("operand of conv, packed 9 times, 6 operations" in why for why in plan.reasons)


def test_an_operand_that_is_dear_or_packed_often_is_stored() -> None:
    for width, count in ((64, 1), (8192, 2)):
        wide = build.matmul(leaf(512, 64).unary("silu"), leaf(64, width))
        assert len(schedule([wide], TARGET).kernels) == count
    thin = build.matmul(leaf(2, 4096).unary("silu"), leaf(4096, 4096))
    assert len(schedule([thin], TARGET).kernels) == 2  # a vector is read for each column
    assert len(schedule([thin], cuda_target("sm_90a")).kernels) == 2


def test_halves_of_an_array_are_stored_by_one_kernel_that_multiplies_them() -> None:
    whole = leaf(64, 256).binary("maximum", 0.0)
    first, second = (whole.slice(((0, 64, 1), (at, at + 128, 1))) for at in (0, 128))
    value, gate = first.unary("exp"), second.unary("sigmoid")
    made = (value * gate).contract(leaf(128, 32), ((0, 2), (2, 1), (0, 1)))
    plan = schedule([value, gate, made], cuda_target("sm_90a"))
    assert [kernel.hero for kernel in plan.kernels] == ["map", "contract"]


def test_what_is_stored_across_the_order_of_a_kernel_has_one_of_its_own() -> None:
    def is_together(x: Node, *order: int) -> bool:
        y = x * 2.0
        turned = build.contiguous(y.permute(order) + 1.0)
        roots = [y, turned]
        gpu = schedule(roots, cuda_target("sm_90a")).kernels
        here = check_plan(roots).kernels if x.size < 70000 else gpu
        assert x.size >= 70000 or len(gpu) == 1, "a launch more takes longer"
        return len(here) == 1

    assert not is_together(leaf(160, 130), 1, 0)
    assert not is_together(leaf(1600, 1300), 1, 0)
    assert is_together(leaf(90, 130, 2), 1, 0, 2), "memory runs along the last dimension of both"
    assert is_together(leaf(20000, 3), 1, 0), "three columns"
    assert is_together(leaf(40, 30), 1, 0), "few elements"


def test_indices_that_a_scatter_sorts_in_another_order_are_turned_apart_from_their_check() -> None:
    index, base = leaf(65536, 256, dtype=int64), leaf(50, 256)
    is_bad = index.binary("less", index.const_like(0))
    values = is_bad.where(0.0, leaf(65536, 256))
    places = index.binary("maximum", index.const_like(0)), index.iota(1)
    roots = [base.scatter(values, places, (0, 1), "prod"), is_bad.reduce("max", (0, 1))]
    plan = schedule(roots, cuda_target("sm_90a"))
    turned = [kernel.hero for kernel in plan.kernels if "256x65536" in kernel.name]
    assert turned[:2] == ["map", "map"], "indices and values are turned by maps"


def test_a_sum_of_many_products_is_cut_into_kernels_of_few_arrays() -> None:
    labels = (2, 0), (2, 1), (0, 1)
    total = leaf(4, 16).contract(leaf(4, 8), labels)
    for _ in range(700):
        total = total + leaf(4, 16).contract(leaf(4, 8), labels)
    plan = schedule([total], TARGET)
    added = [kernel for kernel in plan.kernels if "add" in kernel.name]
    reads = [len(kernel.slots) for kernel in added]
    assert len(reads) > 1 and max(reads) <= GROUP_LIMIT + 2
