"""Running combinations equal those of a loop, over trees, backwards, with gradients."""

import numpy as np
import pytest

import picograd
from picograd.errors import ShapeError
from picograd.tensor.transforms.associative_scan import associative_scan


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_a_linear_recurrence(size: int, reverse: bool) -> None:
    draw = np.random.default_rng(size).standard_normal((2, size, 3)).astype(np.float32)
    a, b = picograd.tensor(draw), picograd.tensor(draw[::-1].copy(), requires_grad=True)

    def join(earlier, later):
        return earlier[0] * later[0], earlier[1] * later[0] + later[1]

    _, found = associative_scan(join, (a, b), 1, reverse=reverse)
    state, rows = 0.0, {}
    for t in range(size)[:: -1 if reverse else 1]:
        state = rows[t] = draw[:, t] * state + draw[::-1][:, t]
    np.testing.assert_allclose(
        found.detach().numpy(), np.stack([rows[t] for t in range(size)], 1), rtol=1e-4, atol=1e-5
    )
    found.sum().backward()
    assert b.grad is not None and b.grad.shape == b.shape


def test_sizes_must_agree() -> None:
    with pytest.raises(ShapeError, match="axis 0 has sizes"):
        associative_scan(lambda a, b: a, (picograd.ones(2), picograd.ones(3)), 0)
