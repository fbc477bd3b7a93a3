"""What the ancestors' gradients got wrong, as named tests."""

import time

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.nn import functional as F

EPSILON = 1e-6
SHAPES = (
    ((3,), (1,)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), ()), ((2, 1, 3), (4, 1)),
    ((1, 1), (2, 3)), ((4, 1, 2), (1, 3, 1)), ((5,), (2, 1)), ((1,), (1, 1, 1)), ((2, 2), (2, 2)),
)  # fmt: skip
OPERATIONS = ("+", "-", "*", "/")


def leaf(shape, seed, device):
    values = np.random.default_rng(seed).uniform(0.5, 2.0, shape)
    return Tensor(values, dtype="float64", device=device, requires_grad=True)


def check_gradients(function, tensors):
    """Compare gradients of a scalar function with central differences."""
    found = picograd.grad(function(*tensors), list(tensors))
    for tensor, gradient in zip(tensors, found, strict=True):
        values = tensor.numpy()
        wanted = np.zeros_like(values)
        for place in np.ndindex(*values.shape):
            ends = []
            for step in (EPSILON, -EPSILON):
                moved = values.copy()
                moved[place] += step
                given = [Tensor(moved, device=t.device) if t is tensor else t for t in tensors]
                ends.append(function(*given).item())
            wanted[place] = (ends[0] - ends[1]) / (2 * EPSILON)
        assert gradient.shape == tensor.shape
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_broadcasting(operation, device):
    """M7: all binary operations broadcast, forty pairs in all; operands stay as given."""
    values = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[operation]
    for number, shapes in enumerate(SHAPES):
        a, b = (leaf(shape, number + at, device) for at, shape in enumerate(shapes))
        before = a.numpy().copy(), b.numpy().copy()

        def function(a, b):
            return eval(f"(a {operation} b)").square().sum()

        found = eval(f"a {operation} b").numpy()
        np.testing.assert_allclose(found, values(*before), rtol=1e-14)
        gradients = picograd.grad(function(a, b), [a, b])
        expected = wanted_gradients(operation, *before)
        for gradient, wanted, tensor in zip(gradients, expected, (a, b), strict=True):
            np.testing.assert_allclose(gradient.numpy(), unbroadcast(wanted, tensor.shape), 1e-10)
        np.testing.assert_array_equal(a.numpy(), before[0])
        np.testing.assert_array_equal(b.numpy(), before[1])


def wanted_gradients(operation, a, b):
    """d sum((a op b)^2) by hand, before the sum over broadcast axes."""
    if operation in "+-":
        sign = 1.0 if operation == "+" else -1.0
        y = a + sign * b
        return 2 * y, 2 * y * sign
    if operation == "*":
        return 2 * a * b * b, 2 * a * b * a
    return 2 * a / b / b, -2 * a * a / b**3


def unbroadcast(gradient, shape):
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    wide = tuple(d for d, n in enumerate(shape) if n == 1 and gradient.shape[d] != 1)
    return gradient.sum(axis=wide, keepdims=True)


def test_cases_that_were_wrong(device):
    """M7: the four programs whose gradients cudagrad gets wrong, and micrograd-cuda's two."""
    a = Tensor([[2.0], [3.0]], device=device, requires_grad=True)
    w = Tensor([[1.0], [2.0]], device=device)
    b = Tensor([[30.0], [40.0]], device=device)
    assert picograd.grad((a * b * w).sum(), a)[0].flatten().tolist() == [30, 80]
    assert picograd.grad(((a - b) * w).sum(), a)[0].flatten().tolist() == [1, 2]
    x = Tensor(3.0, device=device, requires_grad=True)
    square = x * x
    assert picograd.grad(square * square, x)[0].item() == 108
    y = x.exp()
    slope = picograd.grad((y + y) * y, x)[0].item()
    assert slope == pytest.approx(4 * np.exp(6.0), rel=1e-5)
    assert picograd.grad(x + x, x)[0].item() == 2
    assert picograd.grad(a.T.sum(), a)[0].flatten().tolist() == [1, 1]


def test_a_diamond_of_thirty_levels(device):
    """M7: a graph walked as a tree has 2^30 paths here."""
    x = Tensor(1.0, device=device, requires_grad=True)
    y = x
    start = time.perf_counter()
    for _ in range(30):
        y = y * 0.5 + y * 0.5
    gradient = picograd.grad(y, x)[0]
    assert time.perf_counter() - start < 1.0
    assert gradient.item() == 1.0


def test_a_residual_connection(device):
    """M20: gradients through a skip, by finite differences; the addition joins its neighbour."""
    x, w = leaf((2, 4), 0, device), leaf((4, 4), 1, device)

    def block(x, w):
        return (x + (x @ w - 4.0).relu()).square().sum()

    check_gradients(block, (x, w))
    plan = picograd.plan(x.detach() + (x.detach() @ w.detach()).relu())
    assert len(plan.kernels) == 1


def test_second_order(device):
    """M25: backward records the same graph, so that a gradient has gradients."""
    x = Tensor([1.0, -2.0, 3.0], dtype="float64", device=device, requires_grad=True)
    (first,) = picograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = picograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), 6 * x.numpy(), rtol=1e-12)
    x, w, v = leaf((2, 3), 0, device), leaf((3, 4), 1, device), leaf((4, 1), 2, device)

    def penalty(x, w, v):
        loss = ((x @ w).tanh() @ v).sum()
        (slope,) = picograd.grad(loss, x, create_graph=True)
        return slope.square().sum()

    x.requires_grad_()
    gradients = picograd.grad(penalty(x, w, v), [w, v])
    for tensor, gradient in zip((w, v), gradients, strict=True):
        values, wanted = tensor.numpy(), np.zeros(tensor.shape)
        for place in np.ndindex(*values.shape):
            ends = []
            for step in (EPSILON, -EPSILON):
                moved = values.copy()
                moved[place] += step
                other = Tensor(moved, device=device)
                given = (x, other, v) if tensor is w else (x, w, other)
                ends.append(penalty(*given).item())
            wanted[place] = (ends[0] - ends[1]) / (2 * EPSILON)
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-4, atol=1e-7)


def test_concatenation_and_slices(device):
    """M56: any axis, negative ones too, slices with steps; all have gradients."""
    a, b = leaf((2, 3), 0, device), leaf((2, 3), 1, device)
    for axis in (0, 1, -1):
        joined = picograd.cat([a, b, a], axis)
        np.testing.assert_array_equal(
            joined.numpy(), np.concatenate([a.numpy(), b.numpy(), a.numpy()], axis)
        )

    def function(a, b):
        joined = picograd.cat([a, b.flip(0), a], -1)
        return (joined[:, 1::2] * joined[:, ::2][:, :4]).sum() + joined[1, ..., None].square().sum()

    check_gradients(function, (a, b))


def test_losses(device):
    """M16, M35: the values and gradients of the cases that cudagrad skipped."""
    logits = (2.0991, -0.3244, -1.4904, -0.9129, -0.1676, 0.9251, 0.1822, -0.0762, 0.3743, -0.6091)
    wanted = (0.4799, 0.0425, 0.0133, 0.0236, 0.0497, -0.8516, 0.0706, 0.0545, 0.0855, 0.0320)
    x = Tensor([logits], device=device, requires_grad=True)
    loss = F.cross_entropy(x, Tensor([5], device=device))
    assert loss.item() == pytest.approx(1.9081, abs=1e-3)
    np.testing.assert_allclose(picograd.grad(loss, x)[0].numpy()[0], wanted, atol=1e-3)
    x = Tensor([[0.1782, 0.2920]], device=device, requires_grad=True)
    loss = F.nll_loss(x.log_softmax(1), Tensor([0], device=device))
    assert loss.item() == pytest.approx(0.7517, abs=1e-3)
    np.testing.assert_allclose(picograd.grad(loss, x)[0].numpy()[0], (-0.5284, 0.5284), atol=1e-3)
    plan = picograd.plan(F.cross_entropy(x.detach(), Tensor([0], device=device)))
    assert len(plan.kernels) == 1


def test_softmax_of_large_numbers(device):
    """M16: softmax is along an axis and does not overflow."""
    x = Tensor([[0.0, 1000.0, 2000.0, 4000.0], [1.0, 1.0, 1.0, 1.0]], device=device)
    assert x.softmax(-1).tolist() == [[0, 0, 0, 1], [0.25] * 4]


def test_a_ramp_through_convolutions(device):
    """M37, M49: the later tests of the toy ancestor, padding and an even kernel as well."""
    ramp = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), device=device)
    ones = picograd.ones(1, 1, 3, 3, device=device)
    assert F.conv2d(ramp, ones).flatten().tolist() == [45, 54, 81, 90]
    padded = F.conv2d(ramp, ones, padding=1).reshape(4, 4).tolist()
    assert padded == [[10, 18, 24, 18], [27, 45, 54, 39], [51, 81, 90, 63], [42, 66, 72, 50]]
    even = F.conv2d(ramp, picograd.ones(1, 1, 2, 2, device=device))
    assert even.flatten().tolist() == [10, 14, 18, 26, 30, 34, 42, 46, 50]
    line = F.conv1d(ramp.reshape(1, 1, 16), picograd.ones(1, 1, 3, device=device), stride=5)
    assert line.flatten().tolist() == [3, 18, 33]
    assert nn.Flatten(start_dim=1)(ramp).shape == (1, 16)


def test_sums_beside_other_uses(device):
    """M37: gradients of a tensor that is reduced and used besides add up."""
    x = leaf((3, 4), 0, device)
    check_gradients(lambda x: (x.sum(0) * x[0]).sum() + x.max(), (x,))
    check_gradients(lambda x: (x.mean(1, keepdim=True) * x).sum(), (x,))
    check_gradients(lambda x: (x.softmax(1) * x.std(0)).sum(), (x,))


def test_overlapping_pools(device):
    """M18: windows that overlap add up their gradients; ties go to the first."""
    x = leaf((1, 1, 4, 4), 3, device)
    check_gradients(lambda x: F.max_pool2d(x, 3, stride=1).square().sum(), (x,))
    check_gradients(lambda x: F.avg_pool2d(x, 3, stride=1, padding=1).square().sum(), (x,))
    tied = picograd.ones(1, 1, 2, 2, device=device).requires_grad_()
    (gradient,) = picograd.grad(F.max_pool2d(tied, 2).sum(), tied)
    assert gradient.flatten().tolist() == [1, 0, 0, 0]


def test_normalisations(device):
    """M19: deviation, not its root; running statistics the right way round, no growing graph."""
    x = leaf((8, 3), 0, device)
    layer = nn.BatchNorm1d(3).to(device)
    y = layer((x * 20).float())
    np.testing.assert_allclose(y.numpy().std(0), 1.0, rtol=1e-3)
    wanted = 0.1 * (x.numpy() * 20).mean(0)
    np.testing.assert_allclose(layer.running_mean.numpy(), wanted, rtol=1e-4)
    assert not layer.running_mean.requires_grad
    weight = leaf((3,), 1, device)
    check_gradients(lambda x, w: (F.layer_norm(x, (3,), w) ** 3).sum(), (x[:3].detach(), weight))
