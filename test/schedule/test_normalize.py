"""Axes after normalisation: split at divisors, ordered by stride, merged where contiguous."""

from plan_support import TARGET, check_plan, leaf

from picograd.dtype import float32
from picograd.graph import build
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.index import Axis, Div, Mod, position_over
from picograd.schedule.loop import Compute, Expr, Kernel, Part, indices_of, walk
from picograd.schedule.normalize import normalize_part
from picograd.schedule.schedule import schedule


def only_kernel(node: Node) -> Kernel:
    (kernel,) = check_plan([node], 1).kernels
    return kernel


def axes(kernel: Kernel) -> list[int]:
    return [axis.size for axis in kernel.parts[0].rows]


def has_division(kernel: Kernel) -> bool:
    bodies = [c.body for part in kernel.parts for c in part.computes]
    indices = [x for body in bodies for expr in walk(body) for x in indices_of(expr)]
    return any(isinstance(atom, (Div, Mod)) for index in indices for atom, _ in index.terms)


def test_contiguous_axes_merge() -> None:
    assert axes(only_kernel(leaf(2, 3, 4) + leaf(2, 3, 4))) == [24]
    x = leaf(2, 3, 4)
    assert axes(only_kernel(x + build.expand(leaf(1, 3, 4), (2, 3, 4)))) == [2, 12]


def test_reshapes_split_axes() -> None:
    x = build.permute(leaf(6, 4), (1, 0))
    kernel = only_kernel(build.reshape(x, (24,)) * leaf(24))
    assert axes(kernel) == [4, 6]
    assert not has_division(kernel)


def test_reductions_over_split_rows_are_affine() -> None:
    x = build.permute(leaf(4, 3, 5), (0, 2, 1))
    kernel = only_kernel(build.reshape(x, (4, 15)).reduce("sum", (1,)))
    assert not has_division(kernel)
    assert [axis.size for axis in kernel.parts[0].computes[0].reduce] == [15]


def test_the_store_is_contiguous_innermost() -> None:
    kernel = only_kernel(build.contiguous(build.permute(leaf(3, 4, 5), (2, 0, 1))))
    compute = kernel.parts[0].computes[0]
    assert compute.store is not None
    assert dict(compute.store[1].terms)[compute.axes[-1]] == 1
    assert axes(kernel) == [5, 12]


def test_odd_divisions_stay() -> None:
    x = build.reshape(build.permute(leaf(4, 5), (1, 0)), (4, 5))
    assert has_division(only_kernel(x * 2.0))


def test_non_overlapping_folds_are_affine() -> None:
    x = build.fold(build.permute(leaf(2, 4, 3), (2, 1, 0)), ((1, 2, 2, 1),), (8,))
    assert not has_division(schedule([x], TARGET).kernels[0])


def test_windows_lie_along_axes_of_an_image() -> None:
    """A convolution of one tap reads rows and columns as one; windows of its result do not."""
    spec = ConvSpec((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    for windows in (((3, 2, 2, 1), (4, 2, 2, 1)), ((3, 3, 1, 1), (4, 1, 1, 1))):
        product = build.conv(leaf(2, 1, 4, 8, 8), leaf(1, 8, 4, 1, 1), spec)
        only_kernel(build.max_pool(build.relu(product), windows))


def test_axes_that_one_compute_tells_apart_stay() -> None:
    """The first sums over both, as all indices would have it over one; the next ones in turn."""
    row, outer, inner = Axis("r", 4), Axis("a", 5), Axis("b", 6)
    load = Expr("load", (), (0, position_over((row, outer, inner))), float32)
    found = Expr("ref", (), 1, float32)
    places = [(number, position_over((row,))) for number in (1, 2)]
    computes = (
        Compute((row,), (outer, inner), "sum", load, float32, places[0]),
        Compute((row, outer), (inner,), "max", load, float32),
        Compute((row,), (outer,), "sum", found, float32, places[1]),
    )
    wanted = [[[4], [5, 6]], [[4, 5], [6]], [[4], [5]]]
    for count in (2, 3):
        part = normalize_part(Part((row,), computes[:count]))
        sizes = [[[x.size for x in each] for each in (c.axes, c.reduce)] for c in part.computes]
        assert sizes == wanted[:count]
