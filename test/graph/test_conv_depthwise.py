"""Convolutions of one channel a group: the same values, and none left that is a product."""

import dataclasses

import pytest
from conv_support import leaf, plain_spec, same_value

from picograd.buffer import RuntimeScalar
from picograd.graph import conv_forms
from picograd.graph.bounded import End, ended
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.node import toposort
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

A100, H100 = cuda_target("sm_80", 108), cuda_target("sm_90a")
CASES = {
    "three by three": ((2, 4, 1, 6, 5), (3, 3), dict(padding=((1, 1), (1, 1)))),
    "a stride": ((2, 4, 1, 7, 6), (3, 2), dict(stride=(2, 3), padding=((1, 0), (1, 1)))),
    "gaps, and an end cut off": (
        (2, 4, 1, 9, 8),
        (3, 3),
        dict(kernel_dilation=(2, 1), padding=((1, -1), (0, 2))),
    ),
    "many taps": ((2, 4, 1, 9, 9), (5, 5), dict(padding=((2, 2), (2, 2)))),
    "one image": ((1, 4, 1, 9, 8), (3, 3), dict(padding=((1, 1), (1, 1)))),
    "as many taps as windows": ((2, 4, 1, 5, 5), (3, 3), {}),
    "one axis": ((3, 4, 1, 12), (4,), dict(padding=((2, 1),))),
    "three axes": ((2, 3, 1, 5, 4, 4), (2, 3, 1), dict(padding=((0, 1), (1, 1), (0, 0)))),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_of_windows(name):
    shape, kernel, changes = CASES[name]
    x, weight = leaf(*shape), leaf(shape[1], 1, 1, *kernel, seed=1)
    node = x.conv(weight, plain_spec(len(kernel), **changes))
    assert same_value(node, A100) == []
    for found in gradient([(node, leaf(*node.shape, seed=2))], [x, weight]):
        assert same_value(found, A100) == []


def test_no_zeros_are_multiplied_under_a_stride():
    """Each phase of the gradient meets every second tap; what lies along them slides."""
    x, weight = leaf(2, 4, 1, 8, 8), leaf(4, 1, 1, 5, 5, seed=1)
    node = x.conv(weight, plain_spec(2, stride=(2, 2), padding=((2, 2), (2, 2))))
    (found,) = gradient([(node, leaf(*node.shape, seed=2))], [x])
    last = schedule([found], A100).kernels[-1].parts[0].computes[0]
    assert [axis.size for axis in last.reduce] == [3, 3]


def test_other_groups_and_targets_keep_their_products():
    x, wide = leaf(2, 4, 1, 6, 6), leaf(4, 3, 1, 3, 3)
    assert len(same_value(x.conv(wide, plain_spec(2)), A100)) == 1, "several outputs a group"
    lone = x.conv(leaf(4, 1, 1, 3, 3), plain_spec(2))
    host = dataclasses.replace(A100, shared_bytes=0)
    assert conv_forms.expand_depthwise(lone, host) is None
    deep = leaf(1, 4, 2, 14, 14).conv(leaf(4, 1, 2, 3, 3), plain_spec(2))
    assert conv_forms.expand_depthwise(deep, A100) is None, "144 results are no taps"
    single = leaf(2, 1, 16, 6, 6).conv(leaf(1, 1, 16, 3, 3), plain_spec(2))
    assert conv_forms.expand_depthwise(single, H100) is None, "one group is no depthwise one"


def test_as_many_parts_of_images_as_run_at_once():
    x = leaf(6, 16, 1, 28, 28)
    counts = conv_forms.count_bands
    assert counts(x, 6, 28, A100) == (6, 28)
    assert counts(x, 216, 28, A100) == (216, 1)
    assert counts(leaf(6, 768, 1, 7, 7), 6, 7, A100) == (6, 1), "channels fill the processors"


def test_images_that_end_are_left_out():
    """The gradient of a weight sums images: in another form it would sum those beyond the last."""
    x, weight = leaf(3, 4, 1, 6, 6), leaf(4, 1, 1, 3, 3, seed=1)
    node = x.conv(weight, plain_spec(2))
    (found,) = gradient([(node, leaf(*node.shape, seed=2))], [weight])
    summed = next(each for each in toposort([found]) if each.op == "conv")
    images = End(2, 1, 0, RuntimeScalar(2))  # both inputs have them where channels are
    kept = ended(summed, (), ((images,), (images,)))
    assert expand_composites([kept], target=A100) == [kept]
    assert expand_composites([summed], target=A100) != [summed]
