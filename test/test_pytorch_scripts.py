"""Idioms of programs written for PyTorch, whose imports alone were changed."""

import math

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.version import RELEASE

torch = pytest.importorskip("torch")


def test_initial_values() -> None:
    for shape in ((3, 5), (5, 3), (4, 2, 2)):
        w = nn.init.orthogonal_(Tensor.zeros(shape), gain=2.0).flatten(1)
        gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram.numpy(), 4 * np.eye(len(gram)), atol=1e-4)
    sparse = nn.init.sparse_(Tensor.ones(10, 4), 0.3, std=1.0).numpy()
    assert ((sparse == 0).sum(0) == 3).all()
    for name in ("linear", "conv_transpose2d", "relu", "tanh", "selu", "leaky_relu"):
        assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert math.isclose(nn.init.calculate_gain("leaky_relu", 0.2), math.sqrt(2 / 1.04))
    seeded = [nn.init.uniform_(Tensor.zeros(3), a=1, b=2, generator=g) for g in generators(2)]
    assert seeded[0].tolist() == seeded[1].tolist() and bool((seeded[0] >= 1).all())


def generators(count: int) -> list[picograd.Generator]:
    return [picograd.Generator().manual_seed(5) for _ in range(count)]


def test_layers_draw_again() -> None:
    made = [nn.Linear(3, 2), nn.Conv2d(2, 2, 2), nn.Embedding(4, 2, padding_idx=1), nn.LSTM(2, 2)]
    for layer in made:
        first = next(layer.parameters())
        before = first.tolist()
        layer.reset_parameters()
        assert first.tolist() != before and first is next(layer.parameters())
    assert made[2].weight[1].tolist() == [0.0, 0.0]
    norm = nn.BatchNorm1d(2)
    norm(picograd.rand(4, 2))
    norm.reset_parameters()
    assert norm.running_var.tolist() == [1.0, 1.0] and norm.num_batches_tracked.item() == 0

    class Ones(nn.Linear):
        def reset_parameters(self) -> None:
            nn.init.ones_(self.weight)

    assert Ones(2, 1).weight.tolist() == [[1.0, 1.0]]


def test_version() -> None:
    assert picograd.__version__ >= "1.9" and not picograd.__version__ < "2.2"
    assert picograd.__version__ > (1, 13) and picograd.__version__.endswith(RELEASE)
