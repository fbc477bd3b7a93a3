"""Names of PyTorch's `nn.modules` that begin with an underscore."""

import pytest

from picograd import nn
from picograd.nn import torch_names

KINDS = [
    (nn.BatchNorm1d(2), "_BatchNorm"),
    (nn.InstanceNorm2d(2), "_InstanceNorm"),
    (nn.Conv2d(1, 1, 1), "_ConvNd"),
    (nn.ConvTranspose2d(1, 1, 1), "_ConvTransposeNd"),
    (nn.ConvTranspose2d(1, 1, 1), "_ConvNd"),
    (nn.MSELoss(), "_Loss"),
    (nn.Dropout2d(), "_DropoutNd"),
    (nn.MaxPool2d(2), "_MaxPoolNd"),
    (nn.AdaptiveAvgPool2d(1), "_AdaptiveAvgPoolNd"),
    (nn.LSTM(1, 1), "RNNBase"),
    (nn.GRUCell(1, 1), "RNNCellBase"),
]


@pytest.mark.parametrize(("layer", "name"), KINDS, ids=[name for _, name in KINDS])
def test_layers_are_of_the_kinds_of_pytorch(layer: nn.Module, name: str) -> None:
    assert isinstance(layer, getattr(torch_names, name))


def test_a_prefix_is_cut() -> None:
    state = {"module.a": 1, "module.b.c": 2, "d": 3}
    torch_names.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b.c": 2, "d": 3}
