"""Every layer against PyTorch: same weights, same input, same output and gradients."""

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import DTypeError, ShapeError, ValueRangeError

torch = pytest.importorskip("torch")

CASES = {
    "linear": ("Linear", (5, 3), {}, (4, 5)),
    "linear_3d": ("Linear", (5, 3), {"bias": False}, (2, 4, 5)),
    "conv2d": ("Conv2d", (2, 3, 3), {"padding": 1}, (2, 2, 5, 6)),
    "conv2d_options": (
        "Conv2d",
        (4, 6, 3),
        {"stride": 2, "groups": 2, "dilation": 2},
        (2, 4, 9, 9),
    ),
    "conv2d_same": ("Conv2d", (2, 3, 5), {"padding": "same", "bias": False}, (1, 2, 6, 6)),
    "conv1d": ("Conv1d", (2, 3, 3), {"stride": 2, "padding": 1}, (2, 2, 9)),
    "max_pool": ("MaxPool2d", (2,), {}, (2, 3, 6, 7)),
    "max_pool_options": ("MaxPool2d", (3,), {"stride": 2, "padding": 1}, (2, 3, 7, 7)),
    "avg_pool": ("AvgPool2d", (2,), {}, (2, 3, 6, 6)),
    "avg_pool_options": ("AvgPool2d", (3,), {"stride": 2, "padding": 1}, (2, 3, 7, 7)),
    "batch_norm1d": ("BatchNorm1d", (4,), {}, (6, 4)),
    "batch_norm1d_3d": ("BatchNorm1d", (4,), {"momentum": None}, (6, 4, 3)),
    "batch_norm2d": ("BatchNorm2d", (3,), {}, (4, 3, 5, 5)),
    "batch_norm_plain": ("BatchNorm2d", (3,), {"affine": False}, (4, 3, 5, 5)),
    "layer_norm": ("LayerNorm", (6,), {}, (4, 6)),
    "layer_norm_two_axes": ("LayerNorm", ((3, 4),), {}, (5, 3, 4)),
    "layer_norm_plain": ("LayerNorm", (6,), {"elementwise_affine": False}, (4, 6)),
    "relu": ("ReLU", (), {}, (3, 4)),
    "gelu": ("GELU", (), {}, (3, 4)),
    "gelu_tanh": ("GELU", (), {"approximate": "tanh"}, (3, 4)),
    "silu": ("SiLU", (), {}, (3, 4)),
    "tanh": ("Tanh", (), {}, (3, 4)),
    "sigmoid": ("Sigmoid", (), {}, (3, 4)),
    "softmax": ("Softmax", (-1,), {}, (3, 4)),
    "log_softmax": ("LogSoftmax", (1,), {}, (3, 4)),
    "flatten": ("Flatten", (), {}, (3, 4, 2)),
}


def pair(name, args, options, device):
    """Make our layer and PyTorch's with the same random state."""
    reference = getattr(torch.nn, name)(*args, **options)
    ours = getattr(nn, name)(*args, **options).to(device)
    for value in reference.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.1)
    state = {name: value.numpy().copy() for name, value in reference.state_dict().items()}
    ours.load_state_dict(state)
    return ours, reference


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layer_equals_pytorch(case, device):
    name, args, options, shape = CASES[case]
    torch.manual_seed(0)
    ours, reference = pair(name, args, options, device)
    data = np.random.randn(*shape).astype(np.float32)
    theirs = torch.tensor(data, requires_grad=True)
    expected = reference(theirs)
    direction = torch.randn_like(expected)
    expected.backward(direction)
    x = Tensor(data, device=device, requires_grad=True)
    result = ours(x)
    result.backward(Tensor(direction.numpy(), device=device))
    tolerance = dict(rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(result.numpy(), expected.detach().numpy(), **tolerance)
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), **tolerance)
    for (label, a), b in zip(ours.named_parameters(), reference.parameters()):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), err_msg=label, **tolerance)
    for label, value in reference.state_dict().items():
        mine = ours.state_dict()[label].numpy()
        np.testing.assert_allclose(mine, value.numpy(), err_msg=label, **tolerance)


def test_batch_norm_uses_running_statistics_in_eval_mode(device):
    ours, reference = pair("BatchNorm2d", (3,), {}, device)
    data = np.random.randn(4, 3, 5, 5).astype(np.float32)
    theirs = torch.tensor(data, requires_grad=True)
    reference.eval()(theirs).sum().backward()
    x = Tensor(data, device=device, requires_grad=True)
    result = ours.eval()(x)
    result.sum().backward()
    expected = reference(torch.tensor(data)).detach().numpy()
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-5)
    assert ours.num_batches_tracked.item() == 0


def test_embedding_and_its_gradient(device):
    ours, reference = pair("Embedding", (7, 4), {}, device)
    index = np.array([[1, 2, 1], [6, 0, 1]])
    expected = reference(torch.tensor(index))
    expected.sum().backward()
    result = ours(Tensor(index, device=device))
    result.sum().backward()
    np.testing.assert_array_equal(result.numpy(), expected.detach().numpy())
    np.testing.assert_allclose(ours.weight.grad.numpy(), reference.weight.grad.numpy())


def test_dropout_scales_what_it_keeps(device):
    layer = nn.Dropout(0.25)
    result = layer(Tensor.ones(200, 200, device=device)).numpy()
    assert set(np.unique(result)) == {np.float32(0), np.float32(1 / 0.75)}
    # 40,000 draws: four standard deviations are 0.0087
    assert abs((result > 0).mean() - 0.75) < 0.0087
    x = Tensor.ones(3, device=device)
    assert layer.eval()(x) is x


def test_dropout_gradient_uses_the_same_mask(device):
    x = Tensor.ones(50, device=device, requires_grad=True)
    y = nn.functional.dropout(x, 0.5)
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), x.grad.numpy())


def test_default_initial_values_are_pytorchs(device):
    layer = nn.Linear(100, 200, device=device)
    weight = layer.weight.numpy()
    assert abs(weight).max() <= 0.1 and abs(weight).max() > 0.0999
    assert abs(weight.std() - 0.1 / np.sqrt(3)) < 5e-4
    assert abs(layer.bias.numpy()).max() <= 0.1
    assert abs(nn.Conv2d(4, 8, 5, device=device).weight.numpy()).max() <= 0.1


def test_wrong_inputs_are_named():
    with pytest.raises(ShapeError, match=r"BatchNorm2d: input of shape \(2, 4, 3, 3\) has 4 chann"):
        nn.BatchNorm2d(3)(Tensor.ones(2, 4, 3, 3))
    with pytest.raises(ShapeError, match=r"input of shape \(2, 3\) has 2 axes, 4 wanted"):
        nn.BatchNorm2d(3)(Tensor.ones(2, 3))
    with pytest.raises(ValueRangeError, match="one value per channel"):
        nn.BatchNorm1d(3)(Tensor.ones(1, 3))
    with pytest.raises(ShapeError, match=r"layer_norm: input .* does not end in \(4,\)"):
        nn.LayerNorm(4)(Tensor.ones(2, 3))
    with pytest.raises(DTypeError, match="embedding: the indices are float32"):
        nn.Embedding(3, 2)(Tensor([1.0]))
    with pytest.raises(ValueRangeError, match=r"p=1.5 is not a probability"):
        nn.Dropout(1.5)
    with pytest.raises(ShapeError, match="do not divide into 2 groups"):
        nn.Conv2d(3, 4, 3, groups=2)
    with pytest.raises(ValueRangeError, match="padding='same' needs stride 1"):
        nn.Conv2d(3, 4, 3, stride=2, padding="same")
