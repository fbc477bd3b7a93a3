"""Convolution layers: shapes follow PyTorch's rule; arguments are checked. Values: test_layers."""

import numpy as np
import pytest

from picograd import Tensor, nn
from picograd.errors import PicogradError

X = Tensor(np.ones((2, 4, 9, 8), np.float32))


@pytest.mark.parametrize(
    ("options", "shape"),
    [({}, (2, 6, 7, 6)), ({"stride": 2}, (2, 6, 4, 3)), ({"padding": "same"}, (2, 6, 9, 8)),
     ({"padding": (2, 0), "dilation": (1, 2)}, (2, 6, 11, 4)), ({"groups": 2}, (2, 6, 7, 6))],
)  # fmt: skip
def test_shape(options, shape) -> None:
    layer = nn.Conv2d(4, 6, 3, **options)
    assert layer(X).shape == shape and layer.weight.shape[1] == 4 // options.get("groups", 1)


def test_a_kernel_of_ones_counts() -> None:
    layer = nn.Conv1d(1, 1, 3, bias=False)
    layer.load_state_dict({"weight": np.ones((1, 1, 3), np.float32)})
    assert layer(Tensor(np.ones((1, 1, 5), np.float32))).tolist() == [[[3, 3, 3]]]


@pytest.mark.parametrize(
    "make",
    [lambda: nn.Conv2d(4, 6, 0), lambda: nn.Conv2d(4, 6, 3, groups=4),
     lambda: nn.Conv2d(4, 6, (3, 3, 3)),
     lambda: nn.Conv2d(4, 6, 3, stride=2, padding="same"), lambda: nn.Conv2d(3, 6, 3)(X)],
)  # fmt: skip
def test_mistakes(make) -> None:
    with pytest.raises(PicogradError):
        make()


def test_printed_form_is_that_of_pytorch() -> None:
    plain = nn.Conv2d(4, 4, 3, 2, 1, 2, 2, False, "reflect")
    start = "(4, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), "
    assert repr(plain) == f"Conv2d{start}groups=2, bias=False, padding_mode=reflect)"
    adjoint = nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, 2, False, 2)
    end = "output_padding=(1, 1), groups=2, bias=False)"
    assert repr(adjoint) == f"ConvTranspose2d{start}{end}"


def test_subclasses_convolve_with_weights_of_their_own() -> None:
    class Standardized(nn.Conv2d):
        def forward(self, input: Tensor) -> Tensor:
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(input, weight, self.bias)

    class Doubled(nn.Conv2d):
        def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            return super()._conv_forward(x, weight * 2, bias)

    layer, own = Standardized(4, 6, 3), Doubled(4, 6, 3, bias=False)
    weight = layer.weight - layer.weight.mean((1, 2, 3), keepdim=True)
    wanted = nn.functional.conv2d(X, weight, layer.bias)
    np.testing.assert_array_equal(layer(X).numpy(), wanted.numpy())
    wanted = nn.functional.conv2d(X, own.weight) * 2
    np.testing.assert_allclose(own(X).numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
