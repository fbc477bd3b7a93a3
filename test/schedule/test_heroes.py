"""Index maps of contractions, convolutions and scatters."""

import numpy as np
import plain_nodes
import pytest
from plan_support import leaf

from picograd.dtype import int64
from picograd.graph import build
from picograd.graph.shape import ConvSpec
from picograd.schedule.heroes import contract_operands, conv_operands, scatter_places
from picograd.schedule.index import Axis, axis_index, constant, evaluate
from picograd.schedule.loop import Expr


def outputs(shape: tuple[int, ...]) -> tuple[list[Axis], tuple]:
    axes = [Axis(f"o{d}", n) for d, n in enumerate(shape)]
    return axes, tuple(axis_index(axis) for axis in axes)


def test_contract_sums_the_labels_that_are_not_kept() -> None:
    node = build.contract(leaf(2, 3, 4), leaf(4, 5, 2), ((0, 1, 2), (2, 3, 0), (0, 1, 3)))
    _, own = outputs(node.shape)
    (a, tests), b, over = contract_operands(node, own)
    assert [axis.size for axis in over] == [4] and not tests
    k = axis_index(over[0])
    assert a == (own[0], own[1], k) and b == (k, own[2], own[0])


def test_labels_of_size_one_need_no_axis() -> None:
    node = build.contract(leaf(2, 1), leaf(1, 5), ((0, 1), (1, 2), (0, 2)))
    _, _, over = contract_operands(node, outputs(node.shape)[1])
    assert over == ()


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("input_dilation", [1, 2])
@pytest.mark.parametrize("kernel_dilation", [1, 2])
def test_conv_reads_the_dilated_padded_input(
    stride: int, input_dilation: int, kernel_dilation: int
) -> None:
    spec = ConvSpec((stride,), ((2, 1),), (input_dilation,), (kernel_dilation,))
    x, w = leaf(1, 1, 3, 7), leaf(1, 2, 3, 3)
    node = build.conv(x, w, spec)
    axes, own = outputs(node.shape)
    (a, tests), b, over = conv_operands(node, own)
    assert [axis.size for axis in over] == [3, 3], "taps first, then channels"
    values = dict(zip([*axes, *over], np.indices([a.size for a in (*axes, *over)]), strict=True))
    place = evaluate(a[3], values, lambda e: None)
    dilated = (
        values[axes[3]] * stride + evaluate(b[3], values, lambda e: None) * kernel_dilation - 2
    )
    held = np.ones(place.shape, bool)
    for index, low, high in tests:
        found = evaluate(index, values, lambda e: None)
        held = held & (found >= low) & (found <= high)
    is_element = (dilated >= 0) & (dilated <= 6 * input_dilation) & (dilated % input_dilation == 0)
    np.testing.assert_array_equal(np.broadcast_to(held, is_element.shape), is_element)
    np.testing.assert_array_equal(place[is_element], dilated[is_element] // input_dilation)


def test_scatter_goes_to_the_row_that_is_read() -> None:
    index = leaf(4, dtype=int64, below=3)
    node = plain_nodes.scatter(leaf(3, 5), leaf(4, 5), (index,), (0,), "sum")
    column, update = Axis("c", 5), Axis("u", 4)
    row = Expr("load", (), (1, axis_index(update)), int64)
    places = scatter_places(node.shape, (0,), [row], (axis_index(column),))
    values = {column: np.arange(5)}
    found = [evaluate(place, values, lambda e: np.asarray(2)) for place in places]
    assert found[0] == 2 and (places[0].lo, places[0].hi) == (0, 2)
    np.testing.assert_array_equal(found[1], np.arange(5))
    fixed = [Expr("const", (), 1, int64)]
    assert scatter_places(node.shape, (0,), fixed, (constant(3),)) == (constant(1), constant(3))
