"""Layers of the real einops."""

import numpy as np
import pytest

from picograd import Tensor

pytest.importorskip("einops")
from picograd.einops_layers import EinMix, Rearrange, Reduce

X = np.random.default_rng(0).standard_normal((2, 5, 6)).astype(np.float32)


def test_rearranging_and_reducing() -> None:
    x = Tensor(X)
    assert Rearrange("b n (h d) -> b h n d", h=2)(x).shape == (2, 2, 5, 3)
    np.testing.assert_allclose(Reduce("b n d -> b d", "max")(x).numpy(), X.max(1))


@pytest.mark.parametrize("bias", ["o", None])
def test_mixing(bias: str | None) -> None:
    layer = EinMix("b n d -> b n o", weight_shape="d o", bias_shape=bias, d=6, o=4)
    wanted = X @ layer.weight.detach().numpy()
    if layer.bias is not None:
        wanted = wanted + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(Tensor(X)).numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert len(list(layer.parameters())) == (2 if bias else 1)


def test_mixing_with_axes_that_are_joined() -> None:
    layer = EinMix("b n (h d) -> b h (n o)", weight_shape="h d o", h=2, d=3, o=4)
    weight = layer.weight.detach().numpy()
    wanted = np.einsum("bnhd,hdo->bhno", X.reshape(2, 5, 2, 3), weight).reshape(2, 2, 20)
    np.testing.assert_allclose(layer(Tensor(X)).numpy(), wanted, rtol=1e-5, atol=1e-6)
