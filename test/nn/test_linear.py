"""Linear: shapes, initial range, and inputs that do not fit."""

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import PicogradError


def test_linear_is_a_product_and_a_bias() -> None:
    layer, x = nn.Linear(3, 5), Tensor(np.ones((2, 4, 3), np.float32))
    wanted = x.numpy() @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), wanted, rtol=1e-5)
    assert nn.Linear(3, 5, bias=False).bias is None and "in_features=3" in repr(layer)


def test_initial_weights_lie_within_one_over_root_of_inputs() -> None:
    weight = nn.Linear(100, 50).weight.numpy()
    assert np.abs(weight).max() <= 0.1 and weight.std() > 0.04


def test_wrong_inputs() -> None:
    with pytest.raises(PicogradError):
        nn.Linear(3, 5)(Tensor(np.ones((2, 4), np.float32)))
