"""PyTorch's weights load unchanged; outputs and one training step agree."""

import numpy as np
import pytest
from nn_support import array, copy_state, torch

from picograd import Tensor, nn


def lstm(room):
    return room.LSTM(3, 4, num_layers=2)


def encoder(room):
    layer = room.TransformerEncoderLayer(8, 2, 12, 0.0)
    return room.TransformerEncoder(layer, 2, room.LayerNorm(8))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("make, width", [(lstm, 3), (encoder, 8)])
def test_one_training_step(make, width, device):
    ours, reference = make(nn).to(device), make(torch.nn)
    assert list(ours.state_dict()) == list(reference.state_dict())
    copy_state(ours, reference)
    mine = nn.optim.SGD(ours.parameters(), lr=0.1)
    theirs = torch.optim.SGD(reference.parameters(), lr=0.1)
    data = array(5, 2, width)
    losses = []
    for model, optimizer, x in (
        (ours, mine, Tensor(data, device=device)),
        (reference, theirs, torch.tensor(data)),
    ):
        y = model(x)
        loss = ((y[0] if isinstance(y, tuple) else y) ** 3).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for name, value in reference.state_dict().items():
        found = ours.state_dict()[name].numpy()
        np.testing.assert_allclose(found, value.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
