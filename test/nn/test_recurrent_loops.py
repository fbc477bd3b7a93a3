"""Layers of a stack in one loop, each a step behind the one before, against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

import picograd
from picograd import Tensor, nn
from picograd.nn import recurrent_loops


@pytest.fixture
def beside(monkeypatch):
    """Run layers beside one another as on a GPU, in float32 too."""
    monkeypatch.setattr(recurrent_loops, "is_gpu", lambda kind: True)
    monkeypatch.setattr(recurrent_loops, "WIDEST", 4)


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_layers_beside_one_another(name, device):
    """Values and gradients are PyTorch's, from given states, of few steps too."""
    options = {"num_layers": 3, "bias": name != "RNN"}
    reference = getattr(torch.nn, name)(3, 4, **options)
    ours = getattr(nn, name)(3, 4, **options).to(device)
    copy_state(ours, reference)
    states = [array(3, 2, 4), array(3, 2, 4)][: 1 + (name == "LSTM")]
    call = lambda layer: lambda x, *h: layer(x, h if len(h) > 1 else h[0])  # noqa: E731
    for steps in (5, 4, 3):
        compare(call(ours), call(reference), [array(steps, 2, 3), *states], device)


def test_dropout_between_layers_beside_one_another(device, request):
    """It draws what it draws where a layer runs after the other."""
    layer = nn.GRU(3, 4, num_layers=3, dropout=0.5).to(device)
    x = Tensor(array(5, 2, 3), device=device)
    picograd.manual_seed(0)
    found = layer(x)[0].numpy()
    request.getfixturevalue("beside")
    picograd.manual_seed(0)
    np.testing.assert_allclose(layer(x)[0].numpy(), found, atol=1e-6)
