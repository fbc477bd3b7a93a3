"""Members: what may be computed by the kernel of what it reads."""

from plan_support import SAME, check_plan, leaf, spread

from picograd.graph import build
from picograd.graph.node import Node


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
