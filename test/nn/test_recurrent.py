"""RNN, LSTM and GRU against PyTorch, and tasks they must learn (ancestors' row M22)."""

import warnings

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError
from picograd.graph.node import toposort

CASES = {
    "rnn": ("RNN", {}),
    "rnn_relu": ("RNN", {"nonlinearity": "relu", "bias": False}),
    "lstm": ("LSTM", {}),
    "lstm_two": ("LSTM", {"num_layers": 2, "batch_first": True, "bias": False}),
    "lstm_both": ("LSTM", {"bidirectional": True, "num_layers": 2}),
    "lstm_projected": ("LSTM", {"proj_size": 2, "num_layers": 2, "bidirectional": True}),
    "gru": ("GRU", {"bias": False}),
    "gru_both": ("GRU", {"bidirectional": True, "batch_first": True}),
}


def pair(name, options, device, sizes=(3, 4)):
    reference = getattr(torch.nn, name)(*sizes, **options)
    ours = getattr(nn, name)(*sizes, **options).to(device)
    copy_state(ours, reference)
    return ours, reference


@pytest.mark.parametrize("case", CASES)
def test_layer_equals_pytorch(case, device):
    """M22: goldens of PyTorch, values and gradients, with its names of the weights."""
    name, options = CASES[case]
    ours, reference = pair(name, options, device)
    assert list(ours.state_dict()) == list(reference.state_dict())
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
    call = lambda layer: lambda x, h, c: layer(x, (h, c))  # noqa: E731
    compare(ours, reference, [array(5, 3)], device)
    compare(call(ours), call(reference), [array(5, 3), array(2, 4), array(2, 4)], device)


def test_one_step_and_no_sequence(device):
    ours, reference = pair("GRU", {}, device)
    compare(ours, reference, [array(1, 2, 3)], device)
    assert ours(Tensor.zeros(5, 0, 3, device=device))[0].numpy().shape == (5, 0, 4)


def test_half_precision_runs(device):
    layer = nn.LSTM(3, 4, dtype="bfloat16").to(device)
    y, _ = layer(Tensor(array(5, 2, 3), device=device).cast("bfloat16"))
    y.sum().backward()
    assert y.dtype.name == "bfloat16" and np.isfinite(layer.weight_hh_l0.grad.numpy()).all()


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_autocast_gives_the_dtype_of_pytorch(name, device):
    kind = device.partition(":")[0]
    layer = getattr(nn, name)(3, 4).to(device)
    with picograd.autocast(kind, dtype="bfloat16"):
        y, _ = layer(Tensor(array(5, 2, 3), device=device))
    y.sum().backward()
    wanted = "float32" if (name, kind) == ("GRU", "cpu") else "bfloat16"
    assert y.dtype.name == wanted and layer.weight_hh_l0.grad.dtype.name == "float32"
    assert np.isfinite(layer.weight_hh_l0.grad.numpy()).all()


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_autocast_equals_pytorchs_on_the_cpu(name):
    """The dtypes of outputs and states, of a batch and of packed sequences, and their values."""
    ours, reference = pair(name, {}, "cpu")
    data = array(5, 2, 3)
    found, wanted = [], []
    with picograd.autocast("cpu"):
        for pack in (False, True):
            x = Tensor(data, device="cpu")
            y, h = ours(nn.utils.rnn.pack_padded_sequence(x, [5, 4]) if pack else x)
            found += [y.data if pack else y, *(h if name == "LSTM" else (h,))]
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        for pack in (False, True):
            x = torch.tensor(data)
            y, h = reference(torch.nn.utils.rnn.pack_padded_sequence(x, [5, 4]) if pack else x)
            wanted += [y.data if pack else y, *(h if name == "LSTM" else (h,))]
    for a, b in zip(found, wanted, strict=True):
        assert f"torch.{a.dtype.name}" == str(b.dtype)
        np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=0.02, atol=0.01)


@pytest.mark.parametrize("lengths", [[5, 3, 2], [2, 5, 3], [4, 4, 4]])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_packed_lengths(name, lengths, device):
    """Outputs, last states and gradients; the first states are given in the unsorted order."""
    ours, reference = pair(name, {"bidirectional": True}, device)

    def run(room, layer):
        def call(x, h):
            packed = room.pack_padded_sequence(x, lengths, enforce_sorted=False)
            y, state = layer(packed, (h, h * 0.5) if name == "LSTM" else h)
            return room.pad_packed_sequence(y)[0], state

        return call

    mine, theirs = run(nn.utils.rnn, ours), run(torch.nn.utils.rnn, reference)
    compare(mine, theirs, [array(5, 3, 3), array(2, 3, 4)], device)


def test_packed_sorted_and_batch_first(device):
    ours, reference = pair("LSTM", {"num_layers": 2, "batch_first": True}, device)

    def run(room, layer):
        def call(x):
            y, state = layer(room.pack_padded_sequence(x, [4, 2], batch_first=True))
            return y.data, y.batch_sizes, room.pad_packed_sequence(y, batch_first=True)[0], state

        return call

    mine, theirs = run(nn.utils.rnn, ours), run(torch.nn.utils.rnn, reference)
    compare(mine, theirs, [array(2, 4, 3)], device)


def test_all_weights_and_reset():
    ours, reference = pair("LSTM", {"num_layers": 2, "proj_size": 2}, "cpu")
    found = [[tuple(w.shape) for w in row] for row in ours.all_weights]
    assert found == [[tuple(w.shape) for w in row] for row in reference.all_weights]
    before = ours.weight_hh_l1.numpy().copy()
    ours.flatten_parameters()
    ours.reset_parameters()
    assert (ours.weight_hh_l1.numpy() != before).any()
    assert repr(ours) == repr(reference)


def test_the_graph_and_the_kernels_do_not_grow_with_the_steps():
    counts = []
    for steps in (10, 500):
        layer = nn.GRU(3, 4, bidirectional=True)
        y, _ = layer(Tensor(array(steps, 2, 3)))
        (gradient,) = picograd.grad(y.sum(), [layer.weight_hh_l0])
        plan = picograd.plan(y, gradient)
        counts.append((len(toposort([gradient.node])), len(plan.kernels)))
    assert counts[0] == counts[1]


def test_dropout_is_between_layers(device):
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5).to(device)
    x = Tensor(array(5, 2, 3), device=device)
    assert (layer(x)[0].numpy() != layer(x)[0].numpy()).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())


def train(model, head, x, target, loss, steps, device):
    """Take Adam steps and return the last loss."""
    optimizer = nn.optim.Adam([*model.parameters(), *head.parameters()], lr=0.02)
    x, target = Tensor(x, device=device), Tensor(target, device=device)

    @picograd.jit
    def step():
        error = loss(head(model(x)[0]), target)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        return error

    for _ in range(steps):
        last = step()
    return last.item()


def test_m22_sine_wave(device):
    """M22: an LSTM predicts the next value of sine waves of several phases."""
    picograd.manual_seed(0)
    times = np.linspace(0, 6, 31)[:, None] + np.linspace(0, 5, 4)
    wave = np.sin(times).astype(np.float32)[..., None]
    model, head = nn.LSTM(1, 8).to(device), nn.Linear(8, 1).to(device)
    loss = lambda y, goal: ((y - goal) ** 2).mean()  # noqa: E731
    assert train(model, head, wave[:-1], wave[1:], loss, 150, device) < 0.01


def test_m22_characters(device):
    """M22: a GRU learns which character follows which, in a text where that needs memory."""
    picograd.manual_seed(0)
    text = "abacabad" * 3
    letters = np.array([ord(c) - ord("a") for c in text])
    x = np.eye(4, dtype=np.float32)[letters[:-1]][:, None]
    model, head = nn.GRU(4, 12).to(device), nn.Linear(12, 4).to(device)

    def loss(y, goal):
        return nn.functional.cross_entropy(y.reshape(-1, 4), goal)

    # the first letter after "ba" and "aba" cannot be told before the pattern is seen once
    assert train(model, head, x, letters[1:], loss, 150, device) < 0.1


def test_wrong_use_is_named():
    with pytest.raises(ShapeError, match=r"LSTM: states of shapes .* wanted"):
        nn.LSTM(3, 4)(Tensor.ones(5, 2, 3), (Tensor.ones(2, 2, 4), Tensor.ones(1, 2, 4)))
    with pytest.raises(ShapeError, match="GRU: input of shape .* 3 features wanted"):
        nn.GRU(3, 4)(Tensor.ones(5, 2, 4))
    with pytest.raises(ShapeError, match="GRU: a sequence of 0 steps"):
        nn.GRU(3, 4)(Tensor.ones(0, 2, 3))
    with pytest.raises(ValueRangeError, match="GRU: proj_size=2. Fix: use it with LSTM only"):
        nn.GRU(3, 4, proj_size=2)
    with pytest.raises(ValueRangeError, match="nonlinearity='elu' is unknown"):
        nn.RNN(3, 4, nonlinearity="elu")


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_dropout_that_acts_nowhere_is_warned_of_as_in_pytorch(kind):
    counts = []
    for package in (nn, torch.nn):
        for layers in (1, 2):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                getattr(package, kind)(3, 4, num_layers=layers, dropout=0.5)
            counts.append(len(found))
    assert counts == [1, 0, 1, 0]


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bias": False}, {"bidirectional": True}])
def test_names_of_weights(options):
    ours, theirs = nn.LSTM(3, 4, **options), torch.nn.LSTM(3, 4, **options)
    assert ours._flat_weights_names == theirs._flat_weights_names
    assert ours._all_weights == theirs._all_weights
    for found, want in zip(ours.all_weights, theirs.all_weights, strict=True):
        assert [tuple(each.shape) for each in found] == [tuple(each.shape) for each in want]
    for name in ours._flat_weights_names:  # as books draw them
        nn.init.constant_(ours._parameters[name], 0.5)
    assert all((each == 0.5).all() for each in ours.parameters())
