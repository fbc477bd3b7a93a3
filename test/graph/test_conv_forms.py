"""Convolutions in other forms: the same values, in forms that boxes can feed."""

import dataclasses

import pytest
from conv_support import leaf, plain_spec, same_value

from picograd.dtype import bfloat16, float32, float64
from picograd.graph import conv_forms
from picograd.graph.gradient import gradient
from picograd.graph.node import Node, toposort
from picograd.helpers import ceil_div
from picograd.target import Target, cuda_target

CPU = Target("llvm", "test", 64)
H100 = cuda_target("sm_90a")
NO_BOXES = cuda_target("sm_80", 108)
FOUR = cuda_target("sm_90a", 4)  # processors: few parts of the images keep them busy


def test_parts_of_float32_have_the_same_value():
    x, rows = (leaf(*shape).cast(float32) for shape in ((8, 1, 64, 4, 4), (1, 16, 64, 4, 4)))
    node = x.conv(rows, plain_spec(2, padding=((1, 1), (1, 1))))
    (conv,) = same_value(node, dataclasses.replace(H100, tf32=True))
    assert conv.shape == (8, 8, 16, 3, 3)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("low", [0, 1, 2, 4])
@pytest.mark.parametrize("wanted", [7, 8, 9])
def test_gradients_of_inputs_under_a_stride(kernel, stride, low, wanted):
    size = 4
    high = wanted + kernel - 1 - ((size - 1) * stride + 1) - low
    spec = plain_spec(1, input_dilation=(stride,), padding=((low, high),))
    node = leaf(2, 1, 16, size).conv(leaf(1, 3, 16, kernel, seed=1), spec)
    assert node.shape[3] == wanted
    (conv,) = same_value(node, H100)
    assert conv.arg.input_dilation == (1,)
    assert conv.shape[2] == 3 * (1 if kernel == 1 else stride), "phases are channels"
    assert conv.inputs[1].shape[3] == ceil_div(kernel, stride), "phases begin where taps are fewest"


@pytest.mark.parametrize("kernel", [(3, 3), (1, 3), (3, 1), (2, 5)])
def test_axes_of_other_strides(kernel):
    spec = plain_spec(2, input_dilation=(2, 1), padding=((1, 2), (2, 1)))
    same_value(leaf(2, 1, 16, 3, 5).conv(leaf(1, 5, 16, *kernel, seed=1), spec), H100)


def test_two_axes_of_phases():
    spec = plain_spec(2, input_dilation=(2, 2), padding=((1, 2), (1, 1)))
    node = leaf(2, 1, 16, 3, 4).conv(leaf(1, 5, 16, 3, 3, seed=1), spec)
    (conv,) = same_value(node, H100)
    assert conv.inputs[1].shape == (1, 20, 16, 2, 2)


def test_phases_of_channels_that_are_alone_are_groups():
    spec = plain_spec(2, input_dilation=(2, 2), padding=((1, 2), (1, 2)))
    node = leaf(2, 5, 1, 4, 4).conv(leaf(5, 1, 1, 3, 3, seed=1), spec)
    (conv,) = same_value(node, CPU)
    assert conv.shape == (2, 4 * 5, 1, 4, 4)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("padding", [0, 1])
def test_gradients_of_a_convolution(stride, kernel, padding):
    spec = plain_spec(2, stride=(stride, stride), padding=((padding, padding),) * 2)
    x, weight = leaf(4, 1, 16, 8, 8), leaf(1, 8, 16, kernel, kernel, seed=1)
    made = x.conv(weight, spec)
    seed = leaf(*made.shape, seed=2)
    for found in gradient([(made, seed)], [x, weight]):
        same_value(found, H100)


def test_images_in_parts_are_summed_in_float32(monkeypatch):
    monkeypatch.setattr(conv_forms, "count_parts", lambda *_: 8)
    x, rows = leaf(64, 1, 64, 4, 4), leaf(1, 16, 64, 4, 4, seed=1)
    node = x.conv(rows, plain_spec(2, padding=((1, 1), (1, 1))))
    (conv,) = same_value(node, H100)
    assert conv.dtype.name == "float32" and conv.shape == (64, 8, 16, 3, 3)


def test_parts_are_whole_steps():
    assert conv_forms.count_parts((64, 576), 256, 56 * 56, 132) == 128, "384 tiles are three waves"
    assert conv_forms.count_parts((256, 256), 32, 49, 132) == 1, (
        "32 images of 49 are no whole steps in parts"
    )
    assert conv_forms.count_parts((1280, 12800), 256, 64, 132) < 4


@pytest.mark.parametrize(("wide", "parts"), [(64, 64), (1, 256), (640, None)])
def test_tf32_has_as_many_parts_as_blocks_at_once(wide, parts):
    """6 tiles of 64 x 96 in 64 parts of 512 images, one of 32 x 32 in 256; 60 tiles are enough."""
    outputs, side = (32, 14) if wide == 1 else (64, 7)
    shapes = (wide, 1, 512, side, side), (1, outputs, 512, side, side)
    x, rows = (Node("buffer", (), None, shape, float32, "cuda:0") for shape in shapes)
    node = x.conv(rows, plain_spec(2, padding=((1, 1), (1, 1))))
    made = conv_forms.expand_conv(node, dataclasses.replace(H100, tf32=True))
    found = [each.shape[1] for each in toposort([made] if made else []) if each.op == "conv"]
    assert found == ([parts] if parts else [])


@pytest.mark.parametrize(("groups", "parts"), [(1, 64), (2, 32)])
def test_tf32_is_in_parts_once(groups, parts):
    """What is in parts is left as it is, and groups are summed apart."""
    few = dataclasses.replace(H100, tf32=True, multiprocessors=24)
    shapes = (2, groups, 64, 8, 16), (groups, 3, 64, 8, 16)
    x, rows = (leaf(*shape).cast(float32) for shape in shapes)
    node = x.conv(rows, plain_spec(2, padding=((1, 1), (1, 1))))
    (conv,) = same_value(node, few)
    assert conv.inputs[0].shape[:3] == (2, groups * parts, 64 // parts)


@pytest.mark.parametrize(("side", "wide", "parts"), [(28, 1, 256), (14, 1, None), (28, 16, None)])
def test_float32_is_in_long_parts_where_it_is_one_tile(side, wide, parts):
    """As many as processors, of 1,024 windows each: else blocks that share K are as fast."""
    shapes = (wide, 1, 512, side, side), (1, 32, 512, side, side)
    x, rows = (Node("buffer", (), None, shape, float32, "cuda:0") for shape in shapes)
    node = x.conv(rows, plain_spec(2, padding=((1, 1), (1, 1))))
    made = conv_forms.expand_conv(node, H100)
    found = [each.shape[1] for each in toposort([made] if made else []) if each.op == "conv"]
    assert found == ([parts] if parts else [])
    wide_node = x.cast(float64).conv(rows.cast(float64), node.arg)
    assert conv_forms.expand_conv(wide_node, H100) is None


def test_blocks_share_tiles_rather_than_parts_where_those_are_few():
    assert conv_forms.count_parts((512, 4608), 256, 49, 132) == 1, "96 tiles for 132 processors"
    assert conv_forms.count_parts((256, 2304), 256, 14 * 14, 132) == 16, "24 tiles are too few"
    assert conv_forms.count_parts((256, 2304), 32, 14 * 14, 132) == 1, "72 of 64 x 128 are not"


@pytest.mark.parametrize(("dtype", "target"), [(bfloat16, NO_BOXES), (float32, H100)])
def test_other_targets_multiply_no_zeros_either(dtype, target):
    spec = plain_spec(1, input_dilation=(2,))
    x, weight = leaf(2, 1, 16, 4).cast(dtype), leaf(1, 3, 16, 3, seed=1).cast(dtype)
    (conv,) = same_value(x.conv(weight, spec), target)
    assert conv.arg.input_dilation == (1,)
    few = leaf(2, 1, 3, 4).cast(dtype).conv(leaf(1, 3, 3, 3).cast(dtype), spec)
    assert conv_forms.expand_conv(few, target) is None


@pytest.mark.parametrize("channels, outputs", [(32, 32), (16, 32), (8, 4)])
@pytest.mark.parametrize("stride", [1, 2])
def test_groups_together(channels, outputs, stride):
    count = 64 // min(channels, outputs)
    x = leaf(2, 2 * count, channels, 8, 7)
    weight = leaf(2 * count, outputs, channels, 3, 3, seed=1)
    spec = plain_spec(2, padding=((1, 1),) * 2, stride=(stride,) * 2)
    node = x.conv(weight, spec)
    (conv,) = same_value(node, FOUR)
    assert conv.inputs[1].shape[:3] == (2, count * outputs, count * channels)
    for found in gradient([(node, leaf(*node.shape, seed=2))], [x, weight]):
        (conv,) = same_value(found, FOUR)
        assert conv.inputs[0].shape[1] in (2, 4), "groups, in parts of the images"


def test_how_many_fill_a_slab():
    assert conv_forms.count_together(32, 4, 4) == 16
    assert conv_forms.count_together(32, 16, 32) == 4
    assert conv_forms.count_together(6, 16, 16) == 1, "the rest would be another convolution"
    assert conv_forms.count_together(32, 24, 24) == 1, "no whole number of them"
    assert conv_forms.count_together(64, 1, 2) == 1, "nearly all of 64 x 64 would be zeros"
    assert conv_forms.count_together(4, 64, 128) == 1, "each is a slab"


def test_weights_on_a_diagonal_lie_with_channels_nearest():
    found = conv_forms.diagonal(leaf(4, 16, 16, 3, 3), 4)
    (stored,) = (node for node in toposort([found]) if node.op == "contiguous")
    assert found.shape == (1, 64, 64, 3, 3) and stored.shape == (1, 64, 3, 3, 64)
