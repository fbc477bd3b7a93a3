"""Gradients of convolutions by PyTorch's names, beside PyTorch's."""

import numpy as np
import pytest

import picograd
from picograd.errors import ShapeError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("rank", [1, 2])
def test_gradients_are_pytorchs(rank: int) -> None:
    draw = np.random.default_rng(rank).standard_normal
    x, w = (draw((2, 4, *[6] * rank)), draw((6, 2, *[3] * rank)))
    gradient = draw((2, 6, *[3] * rank))
    found = []
    for lib in (picograd, torch):
        to_input = getattr(lib.nn.grad, f"conv{rank}d_input")
        to_weight = getattr(lib.nn.grad, f"conv{rank}d_weight")
        a, b, c = (lib.tensor(each) for each in (x, w, gradient))
        found.append((to_input(x.shape, b, c, 2, 1, 1, 2), to_weight(a, w.shape, c, 2, 1, 1, 2)))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


def test_a_gradient_of_another_shape_is_named() -> None:
    with pytest.raises(ShapeError, match="does not fit the output"):
        picograd.nn.grad.conv2d_input(
            (1, 1, 3, 3), picograd.ones(1, 1, 2, 2), picograd.ones(1, 1, 5, 5)
        )
