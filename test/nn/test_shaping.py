"""Layers that rearrange, pad, enlarge and cut windows against PyTorch."""

import pytest
from nn_support import compare_layer

from picograd import Tensor, nn
from picograd.errors import ShapeError

CASES = {
    "reflection_pad3d": ("ReflectionPad3d", (1,), {}, (1, 1, 2, 3, 2)),
    "replication_pad3d": ("ReplicationPad3d", ((1, 0, 0, 2, 1, 1),), {}, (1, 1, 2, 3, 2)),
    "circular_pad3d": ("CircularPad3d", (1,), {}, (1, 1, 2, 3, 2)),
    "unfold": ("Unfold", (2,), {"stride": 2, "padding": 1}, (2, 3, 4, 4)),
    "fold": ("Fold", ((4, 5), 2), {}, (2, 12, 12)),
    "pixel_shuffle": ("PixelShuffle", (2,), {}, (2, 8, 3, 4)),
    "pixel_unshuffle": ("PixelUnshuffle", (2,), {}, (2, 3, 4, 6)),
    "channel_shuffle": ("ChannelShuffle", (3,), {}, (2, 6, 3, 4)),
    "unflatten": ("Unflatten", (1, (2, 3)), {}, (4, 6)),
    "identity": ("Identity", (54,), {"unused": 1}, (4, 6)),
    "reflection_pad": ("ReflectionPad2d", ((1, 2, 2, 1),), {}, (1, 2, 4, 4)),
    "replication_pad": ("ReplicationPad1d", (3,), {}, (1, 2, 4)),
    "circular_pad": ("CircularPad2d", (2,), {}, (1, 2, 4, 4)),
    "zero_pad": ("ZeroPad2d", ((1, 0, 2, 1),), {}, (1, 2, 4, 4)),
    "constant_pad": ("ConstantPad1d", (2, 3.5), {}, (1, 2, 4)),
    "nearest": ("Upsample", (), {"scale_factor": 2}, (2, 3, 4, 5)),
    "nearest_uneven": ("Upsample", ((7, 5),), {}, (2, 3, 4, 3)),
    "bilinear": ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, (1, 2, 4, 5)),
    "bilinear_corners": (
        "Upsample",
        ((7, 3),),
        {"mode": "bilinear", "align_corners": True},
        (1, 2, 4, 5),
    ),
    "linear": ("Upsample", (), {"scale_factor": 1.7, "mode": "linear"}, (1, 2, 7)),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    compare_layer(CASES[case], device)


def test_modules_describe_themselves_as_pytorch():
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert repr(nn.ConstantPad1d(2, 3.5)) == "ConstantPad1d(padding=(2, 2), value=3.5)"
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"


def test_upsampling_names_its_mode():
    x = Tensor([[[[0.0, 3.0]]]])
    assert nn.UpsamplingNearest2d((1, 4))(x).tolist() == [[[[0.0, 0.0, 3.0, 3.0]]]]
    assert nn.UpsamplingBilinear2d((1, 4))(x).tolist() == [[[[0.0, 1.0, 2.0, 3.0]]]]


def test_sizes_that_do_not_divide_are_named():
    with pytest.raises(ShapeError, match="pixel_shuffle: 3 channels do not divide by 2 \\* 2"):
        nn.PixelShuffle(2)(Tensor.ones(1, 3, 2, 2))
    with pytest.raises(ShapeError, match="pixel_unshuffle: image 3 x 2 does not divide by 2"):
        nn.PixelUnshuffle(2)(Tensor.ones(1, 1, 3, 2))
    with pytest.raises(ShapeError, match="channel_shuffle: 3 channels do not divide into 2"):
        nn.ChannelShuffle(2)(Tensor.ones(1, 3, 2))
