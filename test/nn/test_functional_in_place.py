"""Activations in place beside PyTorch's: the tensor itself changes, and gradients flow through."""

from typing import Any

import numpy as np
import pytest
from nn_support import torch

from picograd import Tensor
from picograd.errors import GradientError
from picograd.nn import functional

CASES: dict[str, tuple[Any, ...]] = {
    "relu_": (),
    "leaky_relu_": (0.1,),
    "rrelu_": (0.1, 0.3),
    "elu_": (0.5,),
    "celu_": (0.5,),
    "selu_": (),
    "hardtanh_": (-0.5, 0.5),
    "threshold_": (0.3, -2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_input_changes(name: str, device: str) -> None:
    data = np.array([[-2.0, -0.0, 0.3], [1.5, np.nan, np.inf]], np.float32)
    a = Tensor(data, device=device, requires_grad=True)
    b = torch.tensor(data, requires_grad=True)
    mine, theirs = a * 1.0, b * 1.0
    assert getattr(functional, name)(mine, *CASES[name]) is mine
    getattr(torch.nn.functional, name)(theirs, *CASES[name])
    np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol=1e-6)
    mine.sum().backward()
    theirs.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-6)


def test_a_leaf_with_a_gradient_is_refused() -> None:
    with pytest.raises(GradientError, match="elu_: a leaf that requires gradients"):
        functional.elu_(Tensor([1.0], requires_grad=True))
