"""einops takes tensors: the real package."""

import subprocess
import sys

import numpy as np
import pytest

from picograd import Tensor, nn

einops = pytest.importorskip("einops")
X = np.random.default_rng(0).standard_normal((2, 6, 4, 4)).astype(np.float32)

CALLS = [
    lambda x: einops.rearrange(x, "b (h d) i j -> b h (i j) d", h=2),
    lambda x: einops.rearrange([x, x], "n b c i j -> b (n c) i j"),
    lambda x: einops.reduce(x, "b c (i p) (j q) -> b c i j", "max", p=2, q=2),
    lambda x: einops.reduce(x, "b c i j -> b c", "mean"),
    lambda x: einops.reduce(x, "b c i j -> c", "sum"),
    lambda x: einops.reduce(x, "b c i j -> () c () ()", "min"),
    lambda x: einops.reduce(x, "b c i j -> i", "prod"),
    lambda x: einops.repeat(x, "b c i j -> b c (i 2) (j 3)"),
    lambda x: einops.einsum(x, x, "b c i j, b d i j -> b c d"),
    lambda x: einops.pack([x, x[:, 0]], "b * i j")[0],
    lambda x: einops.unpack(x, [[2], [4]], "b * i j")[1],
]


@pytest.mark.parametrize("call", CALLS)
def test_values_are_those_of_numpy(call) -> None:
    np.testing.assert_allclose(call(Tensor(X)).numpy(), call(X), rtol=1e-5, atol=1e-6)


def test_gradients_flow() -> None:
    x = Tensor(X, requires_grad=True)
    einops.reduce(x, "b c i j -> b c", "mean").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full(X.shape, 1 / 16), rtol=1e-6)


def test_parsing_shapes() -> None:
    assert einops.parse_shape(Tensor(X), "b c _ _") == {"b": 2, "c": 6}
    assert einops.asnumpy(Tensor(X)).shape == X.shape


@pytest.mark.parametrize("first", ["einops", "picograd"])
def test_either_may_be_imported_first(first: str) -> None:
    second = {"einops": "picograd", "picograd": "einops"}[first]
    code = f"import {first}, {second}; x = picograd.ones(2, 3)\n"
    code += "print(einops.rearrange(x, 'a b -> b a').shape)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == "(3, 2)\n", found.stderr


def test_a_layer_is_a_module() -> None:
    from einops.layers.picograd import Rearrange  # type: ignore

    model = nn.Sequential(Rearrange("b c i j -> b (c i j)"), nn.Linear(96, 3))
    assert model(Tensor(X)).shape == (2, 3)
