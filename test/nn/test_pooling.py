"""Pooling layers against PyTorch; test_layers.py has the plain ones."""

import pytest
from nn_support import array, compare, compare_layer, torch

from picograd import nn

CASES = {
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
    "max_pool1d_places": ("MaxPool1d", (2,), {"return_indices": True}, (2, 3, 9)),
    "adaptive_max1d_places": ("AdaptiveMaxPool1d", (2,), {"return_indices": True}, (2, 3, 5)),
    "lp_pool3d": ("LPPool3d", (2, 2), {}, (1, 2, 2, 4, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    compare_layer(CASES[case], device)


def test_unpooling(device):
    pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    pools = (torch.nn.MaxPool2d(2, return_indices=True), torch.nn.MaxUnpool2d(2))
    ours = lambda x: unpool(*pool(x), output_size=(5, 4))  # noqa: E731
    compare(ours, lambda x: pools[1](*pools[0](x), output_size=(5, 4)), [array(1, 2, 5, 4)], device)
