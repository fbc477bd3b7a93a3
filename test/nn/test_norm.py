"""Normalisation: the statistics of its result, running statistics, and ranks that do not fit."""

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import PicogradError, ShapeError

X = np.random.default_rng(0).normal(3, 2, (16, 4, 5, 5)).astype(np.float32)


def test_batch_norm_standardises_each_channel() -> None:
    layer = nn.BatchNorm2d(4)
    found = layer(Tensor(X)).numpy()
    np.testing.assert_allclose(found.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(found.std((0, 2, 3)), 1, atol=1e-3)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.1 * X.mean((0, 2, 3)), rtol=1e-4)
    unbiased = X.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.9 + 0.1 * unbiased, rtol=1e-4)
    assert layer.num_batches_tracked.item() == 1


def test_evaluation_uses_running_statistics() -> None:
    layer = nn.BatchNorm2d(4).eval()
    np.testing.assert_allclose(layer(Tensor(X)).numpy(), X / np.sqrt(1 + 1e-5), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 0


def test_layer_norm_standardises_each_row() -> None:
    found = nn.LayerNorm((5, 5))(Tensor(X)).numpy()
    np.testing.assert_allclose(found.mean((2, 3)), 0, atol=1e-5)


def test_wrong_ranks_and_sizes() -> None:
    with pytest.raises(PicogradError):
        nn.BatchNorm2d(4)(Tensor(X[0, 0]))
    with pytest.raises(PicogradError):
        nn.BatchNorm2d(3)(Tensor(X))
    with pytest.raises(PicogradError):
        nn.LayerNorm(4)(Tensor(X))


@pytest.mark.parametrize("affine", [True, False])
def test_statistics_are_the_same_apart_from_the_result(affine: bool) -> None:
    """Statistics that ask for gradients are recorded by operations of their own."""
    found = []
    for is_apart in (False, True):
        layer = nn.BatchNorm2d(4, eps=1e-3, momentum=0.3, affine=affine)
        layer.running_mean.requires_grad_(is_apart)
        x = Tensor(X, requires_grad=True)
        for number in range(4):
            (layer(x * (number + 1)) ** 3).sum().backward()
        values = [x.grad, layer.running_mean, layer.running_var, layer.num_batches_tracked]
        found.append([each.detach().numpy() for each in values])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert found[0][-1] == 4


def test_an_empty_batch_leaves_the_statistics() -> None:
    layer = nn.BatchNorm2d(3)
    found = layer(Tensor.zeros(0, 3, 2, 2))
    found.sum().backward()
    assert found.shape == (0, 3, 2, 2)
    assert layer.weight.grad.tolist() == [0.0] * 3 and layer.running_var.tolist() == [1.0] * 3


def test_statistics_that_are_not_kept_are_none() -> None:
    """Programs ask a layer for them whatever its options, as PyTorch's has them."""
    for layer in (nn.BatchNorm1d(2, track_running_stats=False), nn.InstanceNorm2d(2)):
        assert layer.running_mean is layer.running_var is layer.num_batches_tracked is None
        assert "running_mean" in layer._buffers and not list(layer.buffers())
        assert "running_mean" not in layer.state_dict()


def test_a_norm_without_parameters_takes_any_channels() -> None:
    x = Tensor.rand(2, 3, 4)
    for name in ("BatchNorm1d", "InstanceNorm1d"):
        kind = getattr(nn, name)
        free = kind(5, affine=False, track_running_stats=False)
        assert free(x).equal(kind(3, affine=False, track_running_stats=False)(x))
        with pytest.raises(ShapeError, match="has 3 channels, 5 wanted"):
            kind(5, affine=True)(x)


@pytest.mark.parametrize("name", ["BatchNorm1d", "InstanceNorm1d"])
def test_statistics_that_are_followed_no_more_or_gone(name: str) -> None:
    """What is set later decides, as in PyTorch: evaluation uses those there are."""
    torch = pytest.importorskip("torch")
    x = X[:, :, 0]
    found = []
    for library in (torch, nn):
        of = library.nn if library is torch else library
        layer = getattr(of, name)(4, track_running_stats=True)
        x_there = torch.tensor(x) if library is torch else Tensor(x)
        results = [layer(x_there)]
        layer.track_running_stats = False
        results += [layer(x_there * 2), layer.running_mean.clone(), layer.eval()(x_there)]
        results += [layer.running_var.clone(), layer.num_batches_tracked]
        layer.running_mean = layer.running_var = None
        results += [layer(x_there * 3), layer.train()(x_there)]
        found.append([each.detach().numpy() for each in results])
    for theirs, mine in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
