"""The cells of RNN, LSTM and GRU against PyTorch's."""

import pytest
from nn_support import array, compare, copy_state, torch

from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

CASES = {
    "rnn": ("RNNCell", {}),
    "rnn_relu": ("RNNCell", {"nonlinearity": "relu", "bias": False}),
    "lstm": ("LSTMCell", {}),
    "gru": ("GRUCell", {}),
    "gru_bare": ("GRUCell", {"bias": False}),
}


@pytest.mark.parametrize("case", CASES)
def test_cells(case, device):
    name, options = CASES[case]
    reference = getattr(torch.nn, name)(3, 4, **options)
    ours = getattr(nn, name)(3, 4, **options).to(device)
    copy_state(ours, reference)
    compare(ours, reference, [array(2, 3)], device)
    call = lambda cell: lambda x, h, c: cell(x, (h, c) if name == "LSTMCell" else h)  # noqa: E731
    compare(call(ours), call(reference), [array(2, 3), array(2, 4), array(2, 4)], device)
    compare(call(ours), call(reference), [array(3), array(4), array(4)], device)


def test_reset_draws_anew():
    cell = nn.GRUCell(3, 4)
    before = cell.weight_hh.numpy().copy()
    cell.reset_parameters()
    assert (cell.weight_hh.numpy() != before).any() and abs(cell.weight_hh.numpy()).max() <= 0.5


def test_wrong_use_is_named():
    with pytest.raises(ShapeError, match="LSTMCell: input of shape .* 3 features wanted"):
        nn.LSTMCell(3, 4)(Tensor.ones(2, 4))
    with pytest.raises(ShapeError, match=r"GRUCell: a state of shape \(1, 4\) for an input"):
        nn.GRUCell(3, 4)(Tensor.ones(2, 3), Tensor.ones(1, 4))
    with pytest.raises(ValueRangeError, match="nonlinearity='elu' is unknown"):
        nn.RNNCell(3, 4, nonlinearity="elu")


def test_a_cell_tells_its_nonlinearity():
    assert repr(nn.RNNCell(3, 4, nonlinearity="relu")) == "RNNCell(3, 4, nonlinearity=relu)"
