"""More convolutions, embeddings and dropout against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare, compare_layer, compare_state, copy_state, torch

from picograd import Tensor, nn

CASES = {
    "batch_norm3d": ("BatchNorm3d", (2,), {}, (2, 2, 3, 4, 3)),
    "conv1d": ("Conv1d", (2, 4, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 2, 9)),
    "conv1d_reflect": ("Conv1d", (2, 3, 3), {"padding": 2, "padding_mode": "reflect"}, (2, 2, 9)),
    "conv2d_circular": (
        "Conv2d",
        (2, 3, 3),
        {"padding": (1, 2), "padding_mode": "circular"},
        (2, 2, 5, 6),
    ),
    "conv3d": ("Conv3d", (2, 3, 2), {"padding": 1}, (1, 2, 3, 4, 3)),
    "conv1d_same": ("Conv1d", (2, 3, 4), {"padding": "same", "dilation": 3}, (2, 2, 12)),
    "conv2d_same_circular": (
        "Conv2d",
        (2, 3, (3, 2)),
        {"padding": "same", "padding_mode": "circular"},
        (1, 2, 4, 5),
    ),
    "conv1d_valid": ("Conv1d", (2, 3, 3), {"padding": "valid", "stride": 2}, (2, 2, 9)),
    "batch_norm_no_bias": ("BatchNorm1d", (4,), {"bias": False}, (6, 4)),
    "softmax_none": ("Softmax", (), {}, (2, 3, 4)),
    "log_softmax_none": ("LogSoftmax", (), {}, (3, 4)),
    "softmin_none": ("Softmin", (), {}, (3,)),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    compare_layer(CASES[case], device)


def test_bilinear(device):
    compare_state("Bilinear", 2, 3, 4)
    ours, reference = nn.Bilinear(3, 4, 5).to(device), torch.nn.Bilinear(3, 4, 5)
    copy_state(ours, reference)
    compare(ours, reference, [array(2, 6, 3), array(2, 6, 4)], device)


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
