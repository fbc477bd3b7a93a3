"""picograd.utils: torch.utils's names, and checkpoints."""

import importlib
from importlib.util import find_spec

import numpy as np
import pytest

import picograd
from picograd import nn


def test_checkpoints() -> None:
    from picograd.utils.checkpoint import checkpoint_sequential

    layers = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])
    x = picograd.rand(1, 2, requires_grad=True)
    checkpoint_sequential(layers, 2, x).sum().backward()
    first, x.grad = x.grad, None
    layers(x).sum().backward()
    np.testing.assert_allclose(first.numpy(), x.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("data", "DataLoader"),
        ("data.dataset", "TensorDataset"),
        ("data.dataloader", "default_collate"),
        ("data.sampler", "RandomSampler"),
    ],
)
def test_names_of_data(path: str, name: str) -> None:
    """PyTorch's modules give the one definition there is."""
    assert getattr(importlib.import_module(f"picograd.utils.{path}"), name) is getattr(nn, name)


@pytest.mark.skipif(bool(find_spec("tensorboardX")), reason="tensorboardX is installed")
def test_tensorboard_says_what_to_install() -> None:
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        importlib.import_module("picograd.utils.tensorboard")
