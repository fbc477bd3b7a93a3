"""Convolutions of few channels in other forms: the same values, and which form is chosen."""

import pytest
from conv_support import leaf, plain_spec, same_value

from picograd.dtype import bfloat16, float32
from picograd.graph import conv_few
from picograd.graph.gradient import gradient
from picograd.graph.shape import ConvSpec
from picograd.helpers import round_up
from picograd.target import cuda_target

H100 = cuda_target("sm_90a")


def test_few_channels_are_written_out():
    """Taps with gaps are never packed."""
    spec = ConvSpec((1, 1), ((3, 2), (3, 2)), (1, 1), (1, 2))
    x, weight = leaf(2, 1, 3, 16, 24), leaf(1, 8, 3, 7, 7, seed=1)
    node = x.conv(weight, spec)
    (conv,) = same_value(node, H100)
    assert conv.inputs[0].shape[2] == 24 and conv.inputs[1].shape == (1, 8, 24, 7, 1)
    (found,) = gradient([(node, leaf(*node.shape, seed=2))], [weight])
    same_value(found, H100)


def test_one_channel_is_written_out_along_both_axes():
    x, weight = leaf(2, 1, 1, 9, 9), leaf(1, 8, 1, 3, 3, seed=1)
    node = x.conv(weight, plain_spec(2, padding=((1, 1), (1, 1))))
    (conv,) = same_value(node, H100)
    assert conv.inputs[1].shape == (1, 8, 16, 1, 1)
    (found,) = gradient([(node, leaf(*node.shape, seed=2))], [weight])
    same_value(found, H100)


@pytest.mark.parametrize("kernel", [(2, 1), (1, 1), (1, 5)])
def test_few_channels_and_few_taps_end_as_one_convolution(kernel):
    x, weight = leaf(2, 1, 1, 6, 7), leaf(1, 8, 1, *kernel, seed=1)
    node = x.conv(weight, plain_spec(2))
    same_value(node, H100)
    (found,) = gradient([(node, leaf(*node.shape, seed=2))], [weight])
    assert len(same_value(found, H100)) == 1


PACKED = {
    "a stem": ((2, 1, 3, 16, 15), (7, 7), (2, 2), ((3, 3), (3, 2)), (64, 4, 1)),
    "patches of a picture": ((1, 1, 3, 73, 72), (8, 8), (8, 8), ((0, 0),) * 2, (192, 1, 1)),
    "cut off at an end": ((2, 1, 3, 20, 19), (5, 5), (2, 3), ((1, -3), (2, 0)), (48, 3, 1)),
    "one axis": ((3, 1, 12, 61), (9,), (4,), ((2, 0),), (144, 1)),
    "three axes": ((1, 1, 3, 7, 10, 9), (2, 5, 5), (1, 2, 2), ((1, 1),) * 3, (48, 2, 3, 1)),
}


@pytest.mark.parametrize("name", PACKED)
def test_elements_of_one_stride_lie_together(name):
    shape, kernel, stride, padding, wanted = PACKED[name]
    x, weight = leaf(*shape), leaf(1, 8, shape[2], *kernel, seed=1)
    node = x.conv(weight, plain_spec(len(kernel), stride=stride, padding=padding))
    (conv,) = same_value(node, H100)
    assert conv.inputs[1].shape == (1, 8, *wanted)
    (found,) = gradient([(node, leaf(*node.shape, seed=2))], [weight])
    (conv,) = same_value(found, H100)
    assert conv.shape[0] in (wanted[0], round_up(wanted[0], 64)) and conv.shape[3:] == wanted[1:]


def test_what_is_packed_has_fewer_boxes_and_16_bits():
    def rows(kernel, stride, gap=1):
        return [conv_few.Reach(8, kernel, stride, gap, 0)] * 2

    assert conv_few.is_packed(3, rows(7, 2), bfloat16), "4 boxes, where rows have 7"
    assert not conv_few.is_packed(3, rows(3, 2), bfloat16), "2 boxes, where all windows are one"
    assert conv_few.is_packed(3, rows(7, 1), bfloat16), "as many, but 8 channels are written, no 21"
    assert not conv_few.is_packed(3, rows(7, 2, gap=2), bfloat16)
    assert not conv_few.is_packed(3, rows(7, 2), float32), "TF32 is summed along K alone"
