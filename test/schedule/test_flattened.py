"""Products of flat images sum over what lies next to one another: the weight is in their order."""

import numpy as np
import pytest
from test_channels_last import H100, convolve, total

from picograd import Tensor
from picograd.dtype import bfloat16, float32
from picograd.engine.realize import buffer_to_numpy
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule


def leaf(*shape: int, dtype=bfloat16) -> Node:
    numbers = np.random.default_rng(len(shape)).integers(-2, 3, shape)
    return Tensor(numbers.astype(np.float32), device="cpu").to(dtype).realize().node


def memory(node: Node):
    """Contents of a leaf, flat."""
    buffer = node.realized if node.realized is not None else node.arg.buffer
    return buffer_to_numpy(buffer, node.shape).reshape(-1)


def flat_product(weight: Node, labels, dtype=bfloat16) -> Node:
    """Multiply the flat rows of what a convolution gives: 8 channels of 4 x 5."""
    image = convolve(leaf(2, 8, 4, 5, dtype=dtype), leaf(8, 8, 3, 3, dtype=dtype))
    return image.binary("maximum", 0).reshape((2, 160)).contract(weight, labels)


CASES = {
    "rows of a weight": ((1, 160), ((0, 1), (2, 1), (0, 2))),
    "its columns": ((160, 1), ((0, 1), (1, 2), (0, 2))),
    "a weight larger than the images": ((5, 160), ((0, 1), (2, 1), (0, 2))),
}


@pytest.mark.parametrize("dtype", [bfloat16, float32])
@pytest.mark.parametrize("name", CASES)
def test_both_operands_are_in_the_order_of_the_images(name, dtype):
    shape, labels = CASES[name]
    made = flat_product(leaf(*shape, dtype=dtype), labels, dtype)
    plan = schedule([made], H100)
    (product,) = (each for each in plan.kernels if each.hero == "contract")
    (axis,) = product.parts[0].computes[0].reduce
    assert axis.size == 160, "one axis, along which both are next to one another"
    sizes = [slot.size for slot in plan.slots if slot.kind == "temporary"]
    is_copied = dtype is bfloat16 and 1 in shape  # without tensor cores channels are not nearest
    assert 800 not in sizes and (160 in sizes) == is_copied, "the smaller one is copied"
    (found,) = interpret_plan(plan, [memory(node) for node in plan.inputs])
    (wanted,) = interpret([made])
    np.testing.assert_array_equal(found.reshape(made.shape), wanted)


@pytest.mark.parametrize("rows, is_copied", [(1, False), (9, True)])
def test_gradients_of_a_weight_are_stored_along_its_rows(rows, is_copied):
    """In the order of the images each element would have a line of memory of its own."""
    image = convolve(leaf(2, 8, 4, 5), leaf(8, 8, 3, 3)).binary("maximum", 0)
    made = leaf(2, rows).contract(image.reshape((2, 160)), ((2, 0), (2, 1), (0, 1)))
    plan = schedule([made], H100)
    assert ((2, 160) in [slot.shape for slot in plan.slots]) == is_copied
    (found,) = interpret_plan(plan, [memory(node) for node in plan.inputs])
    (wanted,) = interpret([made])
    np.testing.assert_array_equal(found.reshape(made.shape), wanted)


def test_images_of_which_nothing_is_left_to_sum():
    image = convolve(leaf(2, 8, 4, 5), leaf(8, 8, 3, 3))
    outer = image.reshape((320,)).contract(leaf(3), ((0,), (1,), (0, 1)))
    dot = image.reshape((320,)).contract(leaf(320), ((0,), (0,), ()))
    assert schedule([outer, dot], H100).kernels


def test_what_is_multiplied_with_images_or_not_summed_is_left_alone():
    made = flat_product(leaf(2, 5), ((0, 1), (0, 2), (1, 2)))
    plan = schedule([total(made)], H100)
    (product,) = (each for each in plan.kernels if each.hero == "contract")
    assert not any(slot.shape == (5, 2) for slot in plan.slots) and product
    image = convolve(leaf(2, 8, 1, 1), leaf(8, 8, 3, 3)).binary("maximum", 0)
    flat = image.reshape((2, 8)).contract(leaf(1, 8), CASES["rows of a weight"][1])
    temporary = [slot.size for slot in schedule([flat], H100).slots if slot.kind == "temporary"]
    assert 8 not in temporary, "images of one place are in one order"
