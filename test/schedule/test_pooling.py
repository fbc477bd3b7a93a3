"""Windows of a product's result are reduced by the kernel that computes it."""

from dataclasses import replace

import numpy as np
import pytest
from plan_support import POOL, SAME, TARGET, check_plan, leaf

from picograd.dtype import float16
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import Window
from picograd.schedule.group import Group, Windowed
from picograd.schedule.index import Axis, axes_of, axis_index
from picograd.schedule.plan import Plan
from picograd.schedule.pooling import computed_sizes, inside_windows, pooled_domain
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target


def image(height: int = 8, width: int = 6) -> Node:
    """A convolution, and relu."""
    x, weight = leaf(2, 1, 3, height, width), leaf(1, 5, 3, 3, 3)
    return build.conv(x, weight, SAME).reshape((2, 5, height, width)).binary("maximum", 0)


def pool(x: Node, windows: Window = POOL, monoid: str = "max") -> Node:
    """Reduce windows."""
    cut = x.window(windows)
    return cut.reduce(monoid, tuple(range(len(x.shape), len(cut.shape))))


def stored(plan: Plan) -> list[int]:
    """Sizes of what the first kernel stores."""
    return sorted(slot.size for slot in plan.kernels[0].slots if slot.role == "out")


@pytest.mark.parametrize("monoid", ["max", "min", "sum", "prod"])
def test_pooling_is_part_of_the_convolution(monoid: str) -> None:
    plan = check_plan([pool(image(), monoid=monoid)], 1)
    assert stored(plan) == [2 * 5 * 4 * 3], "the image is nowhere in memory"


@pytest.mark.parametrize(
    "windows",
    [
        ((2, 4, 4, 1), (3, 3, 3, 1)),
        ((2, 1, 1, 1), (3, 2, 2, 1)),
        ((2, 8, 8, 1), (3, 2, 2, 1)),
        ((3, 2, 2, 1), (2, 4, 4, 1)),
        ((2, 2, 2, 1),),
        ((2, 3, 3, 1), (3, 2, 2, 1)),
        ((2, 5, 5, 1), (3, 3, 3, 1)),
        ((2, 2, 3, 1), (3, 1, 2, 1)),
        ((2, 2, 4, 2), (3, 2, 2, 1)),
    ],
)
def test_windows_of_any_size_that_lie_side_by_side(windows: Window) -> None:
    check_plan([pool(image(), windows)], 1)


def test_what_follows_a_pooling_joins_it() -> None:
    pooled = pool(image())
    plan = check_plan([pooled * leaf(2, 5, 4, 3) + pooled], 1)
    assert stored(plan) == [2 * 5 * 4 * 3]


def test_the_image_is_stored_beside_its_windows_for_those_who_read_it() -> None:
    x = image()
    plan = check_plan([pool(x), x], 1)
    assert stored(plan) == [2 * 5 * 4 * 3, 2 * 5 * 8 * 6]


@pytest.mark.parametrize(
    "windows",
    [((1, 5, 5, 1), (3, 2, 2, 1)), ((2, 8, 8, 1), (3, 6, 6, 1))],
    ids=["channels", "large"],
)
def test_other_windows_are_read_from_memory(windows: Window) -> None:
    check_plan([pool(image(), windows)], 2)


def test_statistics_of_the_image_come_first() -> None:
    x = image()
    mean = x.reduce("sum", (0, 2, 3))
    check_plan([mean, pool(x)], 2)


def test_floats_of_16_bits_are_rounded_in_memory() -> None:
    x, weight = leaf(2, 1, 3, 8, 6, dtype=float16), leaf(1, 5, 3, 3, 3, dtype=float16)
    narrow = build.conv(x, weight, SAME).reshape((2, 5, 8, 6))
    check_plan([pool(narrow)], 2, tolerance=1e-2)


GPU = cuda_target("sm_90a")


@pytest.mark.parametrize("windows", [POOL, ((2, 4, 4, 1),), ((2, 1, 1, 1), (3, 2, 2, 1))], ids=str)
def test_a_thread_of_a_gpu_holds_whole_windows(windows: Window) -> None:
    x = image()
    plan = schedule([pool(x, windows)], GPU)
    assert len(plan.kernels) == 1 and len(stored(plan)) == 1
    assert len(stored(schedule([pool(x, windows), x], GPU))) == 2


@pytest.mark.parametrize(
    "windows",
    [
        ((2, 3, 2, 1), (3, 3, 2, 1)),
        ((2, 2, 3, 1), (3, 1, 1, 1)),
        ((2, 8, 8, 1),),
        ((3, 2, 4, 1),),
        ((2, 2, 4, 2),),
    ],
    ids=str,
)
def test_other_windows_of_a_gpu_are_read_from_memory(windows: Window) -> None:
    assert len(schedule([pool(image(), windows)], GPU).kernels) == 2


def test_tensor_cores_spread_windows_over_threads() -> None:
    assert len(schedule([pool(image())], replace(GPU, tf32=True)).kernels) > 1


def test_an_image_whose_rows_no_cache_keeps_is_stored() -> None:
    x, weight = leaf(1, 1, 64, 32, 512), leaf(1, 16, 64, 3, 3)
    wide = build.conv(x, weight, SAME).reshape((1, 16, 32, 512))
    plan = schedule([pool(wide)], replace(TARGET, threads=8))
    assert len(plan.kernels) == 2 and any("windows are of 1024 rows" in r for r in plan.reasons)


def test_elements_of_no_window_are_computed_if_they_are_stored() -> None:
    x = image(9, 7)
    windows = pool(x)
    assert shape_computed(check_plan([windows], 1)) == {2, 5, 8, 6}
    assert shape_computed(check_plan([windows, x], 1)) == {2, 5, 9, 7}


def shape_computed(plan: Plan) -> set[int]:
    """Sizes of the axes of the first kernel's result."""
    return {axis.size for axis in plan.kernels[0].parts[0].computes[0].axes}


def test_a_dimension_with_windows_counts_them_afterwards() -> None:
    group = Group(0, "conv", 1, (4, 7), (), "cpu", pooled=(Windowed(1, 2, 3, 3, 1, 0, 7),))
    domain = {0: axis_index(Axis("a", 4)), 1: axis_index(Axis("b", 6))}
    assert computed_sizes(group) == (4, 6)
    assert [axis.size for axis in axes_of(pooled_domain(group, domain)[1])] == [2]
    assert [axis.size for axis in axes_of(inside_windows(group)[1])] == [3]
    assert pooled_domain(group, domain)[0] == domain[0]


def test_windows_lie_side_by_side_unless_they_share_elements() -> None:
    assert Windowed(0, 3, 2, 2, 1, 0, 6).is_beside and Windowed(0, 3, 2, 3, 2, 0, 9).is_beside
    assert not Windowed(0, 3, 2, 2, 2, 0, 7).is_beside
    assert not Windowed(0, 4, 2, 2, 1, 1, 7).is_beside, "the first begins on padding"
    assert not Windowed(0, 4, 2, 2, 1, 0, 7).is_beside, "the last ends on padding"
    assert Windowed(0, 3, 2, 3, 2, 0, 9).covered == 9
    assert Windowed(0, 4, 2, 2, 1, 0, 7).covered == 7


SHARING = [
    ((2, 3, 2, 1), (3, 3, 2, 1)),
    ((2, 2, 2, 2), (3, 2, 2, 1)),
    ((2, 3, 1, 1), (3, 2, 2, 1)),
    ((2, 2, 2, 1), (3, 3, 1, 1)),
]


@pytest.mark.parametrize("edges", [(0, 0), (1, 1), (0, 1)], ids=str)
@pytest.mark.parametrize("windows", SHARING, ids=str)
def test_windows_that_share_elements_or_take_in_padding(
    windows: Window, edges: tuple[int, int]
) -> None:
    x = image(9, 7)
    pads = (0, 0), (0, 0), edges, edges
    padded = build.pad(x, pads, -np.inf) if any(edges) else x
    check_plan([pool(padded, windows)], 1)
    check_plan([pool(padded, windows), x], 1)


def test_windows_of_one_element_and_padding() -> None:
    x = image(4, 4).slice(((0, 2, 1), (0, 5, 1), (0, 3, 1), (0, 3, 1)))
    check_plan([pool(build.pad(x, ((0, 0), (0, 0), (1, 0), (1, 0)), -1.0), POOL)])
    whole = build.pad(image(4, 4), ((0, 0), (0, 0), (1, 0), (1, 0)), -1.0)
    check_plan([pool(whole, ((2, 2, 4, 1), (3, 2, 4, 1)))], 1)


def test_dear_elements_of_windows_that_share_them_are_stored() -> None:
    dear = image()
    for _ in range(10):
        dear = dear + dear.unary("exp")
    check_plan([pool(dear, ((2, 3, 2, 1), (3, 3, 2, 1)))], 2)


def test_workers_without_images_store_the_image() -> None:
    windows = ((2, 3, 2, 1), (3, 3, 2, 1))
    x, weight = leaf(1, 1, 64, 64, 64), leaf(1, 64, 64, 3, 3)
    single = pool(build.conv(x, weight, SAME).reshape((1, 64, 64, 64)), windows)
    assert len(schedule([single], replace(TARGET, threads=1)).kernels) == 1
    plan = schedule([single], replace(TARGET, threads=8))
    assert len(plan.kernels) == 2 and any("rows of 1 images" in r for r in plan.reasons)


@pytest.mark.parametrize("window", [(0, 3, 1, 1), (0, 2, 2, 1), (0, 3, 4, 1)])
def test_windows_of_a_matrix_product_read_its_result(window: tuple[int, int, int, int]) -> None:
    rows = build.matmul(leaf(28, 8), leaf(8, 5))
    check_plan([pool(rows, (window,), "sum")], 1)
    bias = leaf(5).reshape((1, 5)).expand((28, 5))
    check_plan([pool(rows + bias, (window,))], 1)
    batches = build.matmul(leaf(4, 7, 8), leaf(8, 8))
    check_plan([pool(batches, ((1, *window[1:]),), "sum").reduce("max", (1,))])
