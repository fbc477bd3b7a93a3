"""Norms, adjoint convolutions, pooling, shaping, embeddings and dropout against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

CASES = {
    "group_norm": ("GroupNorm", (2, 4), {}, (3, 4, 5)),
    "group_norm_plain": ("GroupNorm", (1, 4), {"affine": False}, (3, 4)),
    "instance_norm1d": ("InstanceNorm1d", (4,), {}, (3, 4, 5)),
    "instance_norm2d": ("InstanceNorm2d", (2,), {"affine": True}, (3, 2, 4, 5)),
    "instance_norm_track": ("InstanceNorm2d", (2,), {"track_running_stats": True}, (3, 2, 4, 5)),
    "rms_norm": ("RMSNorm", (6,), {}, (4, 6)),
    "rms_norm_two": ("RMSNorm", ((3, 4),), {"eps": 1e-3}, (2, 3, 4)),
    "batch_norm3d": ("BatchNorm3d", (2,), {}, (2, 2, 3, 4, 3)),
    "local_response": ("LocalResponseNorm", (3,), {"alpha": 0.5}, (2, 5, 4)),
    "conv1d": ("Conv1d", (2, 4, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 2, 9)),
    "conv1d_reflect": ("Conv1d", (2, 3, 3), {"padding": 2, "padding_mode": "reflect"}, (2, 2, 9)),
    "conv2d_circular": (
        "Conv2d",
        (2, 3, 3),
        {"padding": (1, 2), "padding_mode": "circular"},
        (2, 2, 5, 6),
    ),
    "conv3d": ("Conv3d", (2, 3, 2), {"padding": 1}, (1, 2, 3, 4, 3)),
    "transpose1d": ("ConvTranspose1d", (2, 3, 3), {"stride": 2, "padding": 1}, (2, 2, 5)),
    "transpose2d": (
        "ConvTranspose2d",
        (4, 6, 3),
        {"stride": 2, "groups": 2, "output_padding": 1, "dilation": 2},
        (2, 4, 4, 5),
    ),
    "transpose2d_single": ("ConvTranspose2d", (2, 3, 2), {"bias": False}, (2, 4, 5)),
    "transpose3d": ("ConvTranspose3d", (2, 2, 2), {"stride": 2}, (1, 2, 2, 3, 2)),
    "max_pool1d": ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, (2, 3, 9)),
    "max_pool2d_ceil": ("MaxPool2d", (2,), {"ceil_mode": True}, (2, 3, 5, 7)),
    "max_pool3d": ("MaxPool3d", (2,), {}, (1, 2, 4, 4, 4)),
    "avg_pool1d": ("AvgPool1d", (3,), {"stride": 2, "padding": 1}, (2, 3, 9)),
    "avg_pool2d_count": (
        "AvgPool2d",
        (3,),
        {"stride": 2, "padding": 1, "count_include_pad": False},
        (2, 3, 7, 7),
    ),
    "avg_pool2d_divisor": ("AvgPool2d", (2,), {"divisor_override": 3}, (2, 3, 4, 6)),
    "avg_pool3d": ("AvgPool3d", (2,), {}, (1, 2, 4, 4, 4)),
    "lp_pool": ("LPPool2d", (2, 2), {}, (2, 3, 4, 4)),
    "adaptive_avg1d": ("AdaptiveAvgPool1d", (3,), {}, (2, 3, 7)),
    "adaptive_avg2d": ("AdaptiveAvgPool2d", ((2, None),), {}, (2, 3, 5, 4)),
    "adaptive_avg3d": ("AdaptiveAvgPool3d", (1,), {}, (2, 3, 3, 4, 3)),
    "adaptive_max2d": ("AdaptiveMaxPool2d", ((2, 3),), {}, (2, 3, 5, 6)),
    "conv1d_same": ("Conv1d", (2, 3, 4), {"padding": "same", "dilation": 3}, (2, 2, 12)),
    "conv2d_same_circular": (
        "Conv2d",
        (2, 3, (3, 2)),
        {"padding": "same", "padding_mode": "circular"},
        (1, 2, 4, 5),
    ),
    "conv1d_valid": ("Conv1d", (2, 3, 3), {"padding": "valid", "stride": 2}, (2, 2, 9)),
    "max_pool1d_places": ("MaxPool1d", (2,), {"return_indices": True}, (2, 3, 9)),
    "adaptive_max1d_places": ("AdaptiveMaxPool1d", (2,), {"return_indices": True}, (2, 3, 5)),
    "lp_pool3d": ("LPPool3d", (2, 2), {}, (1, 2, 2, 4, 2)),
    "reflection_pad3d": ("ReflectionPad3d", (1,), {}, (1, 1, 2, 3, 2)),
    "replication_pad3d": ("ReplicationPad3d", ((1, 0, 0, 2, 1, 1),), {}, (1, 1, 2, 3, 2)),
    "circular_pad3d": ("CircularPad3d", (1,), {}, (1, 1, 2, 3, 2)),
    "unfold": ("Unfold", (2,), {"stride": 2, "padding": 1}, (2, 3, 4, 4)),
    "fold": ("Fold", ((4, 5), 2), {}, (2, 12, 12)),
    "batch_norm_no_bias": ("BatchNorm1d", (4,), {"bias": False}, (6, 4)),
    "softmax_none": ("Softmax", (), {}, (2, 3, 4)),
    "log_softmax_none": ("LogSoftmax", (), {}, (3, 4)),
    "softmin_none": ("Softmin", (), {}, (3,)),
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
    name, args, options, shape = CASES[case]
    reference = getattr(torch.nn, name)(*args, **options)
    ours = getattr(nn, name)(*args, **options).to(device)
    copy_state(ours, reference)
    compare(ours, reference, [array(*shape)], device)
    for label, value in reference.state_dict().items():
        found = ours.state_dict()[label].numpy()
        np.testing.assert_allclose(found, value.numpy(), rtol=1e-4, atol=1e-5, err_msg=label)


@pytest.mark.parametrize("name", ["GroupNorm", "ConvTranspose2d", "RMSNorm", "Bilinear"])
def test_names_and_shapes_of_the_state_are_pytorchs(name):
    args = {"GroupNorm": (2, 4), "ConvTranspose2d": (2, 3, 3), "RMSNorm": (5,)}
    args = args.get(name, (2, 3, 4))
    ours, reference = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    shapes = {key: tuple(value.shape) for key, value in reference.state_dict().items()}
    assert {key: tuple(value.shape) for key, value in ours.state_dict().items()} == shapes


def test_bilinear(device):
    ours, reference = nn.Bilinear(3, 4, 5).to(device), torch.nn.Bilinear(3, 4, 5)
    copy_state(ours, reference)
    compare(ours, reference, [array(2, 6, 3), array(2, 6, 4)], device)


def test_output_size_of_an_adjoint_convolution(device):
    ours = nn.ConvTranspose2d(2, 3, 3, 2).to(device)
    reference = torch.nn.ConvTranspose2d(2, 3, 3, 2)
    copy_state(ours, reference)
    compare(ours, reference, [array(1, 2, 4, 4)], device, output_size=(10, 9))
    with pytest.raises(ShapeError, match="cannot come from"):
        ours(Tensor.ones(1, 2, 4, 4, device=device), output_size=(20, 9))


def test_unpooling(device):
    pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    pools = (torch.nn.MaxPool2d(2, return_indices=True), torch.nn.MaxUnpool2d(2))
    ours = lambda x: unpool(*pool(x), output_size=(5, 4))  # noqa: E731
    compare(ours, lambda x: pools[1](*pools[0](x), output_size=(5, 4)), [array(1, 2, 5, 4)], device)


def test_embedding_padding_gets_no_gradient(device):
    ours, reference = nn.Embedding(7, 4, 2).to(device), torch.nn.Embedding(7, 4, 2)
    assert not ours.weight.numpy()[2].any()
    copy_state(ours, reference)
    compare(ours, reference, [np.array([[1, 2, 1], [6, 0, 2]])], device)
    assert not ours.weight.grad.numpy()[2].any()
    frozen = nn.Embedding.from_pretrained(Tensor.ones(3, 2))
    assert not frozen.weight.requires_grad


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag(mode, padding, device):
    options = dict(mode=mode, padding_idx=padding)
    ours = nn.EmbeddingBag(7, 4, **options).to(device)
    reference = torch.nn.EmbeddingBag(7, 4, **options)
    copy_state(ours, reference)
    compare(ours, reference, [np.array([[1, 2, 1], [6, 0, 2]])], device)
    ours.zero_grad()
    reference.zero_grad()
    data = [np.array([1, 2, 1, 6, 0]), np.array([0, 2, 2])]
    compare(ours, reference, data, device)


def test_channel_dropout_zeroes_whole_channels(device):
    x = Tensor.ones(50, 40, 3, 3, device=device)
    y = nn.Dropout2d(0.5)(x).numpy()
    assert set(np.unique(y)) == {0.0, 2.0} and (y.std((2, 3)) == 0).all()
    assert abs((y[:, :, 0, 0] > 0).mean() - 0.5) < 0.05  # 2000 draws: 4.5 standard deviations
    assert nn.Dropout2d(0.5).eval()(x) is x


def test_alpha_dropout_keeps_mean_and_variance(device):
    x = Tensor(array(400, 400), device=device)
    y = nn.AlphaDropout(0.3)(x).numpy()
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1.0) < 0.02


def test_unsupported_options_are_named():
    with pytest.raises(ValueRangeError, match=r"Embedding: max_norm=1.0 is not supported"):
        nn.Embedding(3, 2, max_norm=1.0)
    with pytest.raises(ShapeError, match="pixel_shuffle: 3 channels do not divide by 2 \\* 2"):
        nn.PixelShuffle(2)(Tensor.ones(1, 3, 2, 2))
