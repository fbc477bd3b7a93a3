"""RNN, LSTM, GRU and their cells against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

CASES = {
    "rnn": ("RNN", {}),
    "rnn_relu": ("RNN", {"nonlinearity": "relu", "bias": False}),
    "lstm": ("LSTM", {}),
    "lstm_two": ("LSTM", {"num_layers": 2, "batch_first": True}),
    "lstm_both": ("LSTM", {"bidirectional": True, "num_layers": 2}),
    "lstm_projected": ("LSTM", {"proj_size": 2, "num_layers": 2}),
    "gru": ("GRU", {}),
    "gru_both": ("GRU", {"bidirectional": True, "batch_first": True}),
}


def pair(name, options, device):
    reference = getattr(torch.nn, name)(3, 4, **options)
    ours = getattr(nn, name)(3, 4, **options).to(device)
    copy_state(ours, reference)
    return ours, reference


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    name, options = CASES[case]
    ours, reference = pair(name, options, device)
    compare(ours, reference, [array(5, 2, 3)], device)


@pytest.mark.parametrize("name", ["RNN", "GRU"])
def test_given_first_state(name, device):
    ours, reference = pair(name, {"num_layers": 2}, device)
    compare(ours, reference, [array(5, 2, 3), array(2, 2, 4)], device)


def test_given_first_states_of_lstm(device):
    ours, reference = pair("LSTM", {"proj_size": 2}, device)
    call = lambda layer: lambda x, h, c: layer(x, (h, c))  # noqa: E731
    data = [array(5, 2, 3), array(1, 2, 2), array(1, 2, 4)]
    compare(call(ours), call(reference), data, device)


def test_no_batch(device):
    ours, reference = pair("LSTM", {"bidirectional": True}, device)
    compare(ours, reference, [array(5, 3)], device)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name, device):
    ours, reference = pair(name, {}, device)
    compare(ours, reference, [array(2, 3)], device)
    state = (array(2, 4), array(2, 4))
    call = lambda cell: lambda x, h, c: cell(x, (h, c) if name == "LSTMCell" else h)  # noqa: E731
    ours.zero_grad()
    reference.zero_grad()
    compare(call(ours), call(reference), [array(2, 3), *state], device)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_packed_lengths(name, device):
    ours, reference = pair(name, {"bidirectional": True}, device)
    lengths = [5, 2, 3]

    def run(room, layer):
        def call(x):
            packed = room.pack_padded_sequence(x, lengths, enforce_sorted=False)
            y, state = layer(packed)
            return room.pad_packed_sequence(y)[0], state

        return call

    mine, theirs = run(nn.utils, ours), run(torch.nn.utils.rnn, reference)
    compare(mine, theirs, [array(5, 3, 3)], device)


def test_equal_steps_share_a_kernel(device):
    """50 time steps compile as many different kernels as 10."""
    counts = []
    for steps in (10, 50):
        layer = nn.GRU(3, 4).to(device)
        plan = picograd.plan(layer(Tensor(array(steps, 2, 3), device=device))[1])
        names = [kernel.name for kernel in plan.kernels]
        counts.append(len(set(names)))
        assert len(names) >= steps
    assert counts[0] == counts[1]


def test_dropout_is_between_layers(device):
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5).to(device)
    x = Tensor(array(5, 2, 3), device=device)
    assert (layer(x)[0].numpy() != layer(x)[0].numpy()).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())


def test_wrong_use_is_named():
    with pytest.raises(ShapeError, match=r"LSTM: states of shapes .* wanted"):
        nn.LSTM(3, 4)(Tensor.ones(5, 2, 3), (Tensor.ones(2, 2, 4), Tensor.ones(1, 2, 4)))
    with pytest.raises(ShapeError, match="GRU: input of shape .* 3 features wanted"):
        nn.GRU(3, 4)(Tensor.ones(5, 2, 4))
    with pytest.raises(ValueRangeError, match="nonlinearity='elu' is unknown"):
        nn.RNN(3, 4, nonlinearity="elu")
