"""Fourier transforms of few points in registers: values, and one kernel for all of a step."""

import numpy as np
import pytest
from graph_support import leaf

from picograd import Tensor
from picograd.graph.butterflies import FIRST, cosine, sine, step
from picograd.graph.interpret import interpret
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target


@pytest.mark.parametrize("size", FIRST)
@pytest.mark.parametrize("given", [1, 2])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_step_transforms_and_turns(size: int, given: int, sign: int) -> None:
    random = np.random.default_rng(size)
    parts, turns = random.normal(size=(2, size, 3, 5, given)), random.normal(size=(3, size, 2))
    turns[:, 0] = 1, 0
    node = step(leaf(parts), leaf(turns), sign, size, 2)
    x = parts[..., 0] + 1j * parts[..., 1] if given == 2 else parts[..., 0]
    wanted = np.fft.fft(x, axis=1) if sign < 0 else np.fft.ifft(x, axis=1) * size
    table = turns[..., 0] + 1j * turns[..., 1]
    wanted = wanted.transpose(0, 2, 1, 3) * table[None, :, :, None]
    (found,) = interpret([node])
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, atol=1e-12)


@pytest.mark.parametrize("size", FIRST)
def test_a_step_is_one_kernel(size: int) -> None:
    x, turns = (Tensor.ones(*shape).realize() for shape in ((64, size, 16, 8, 2), (16, size, 2)))
    plan = schedule([step(x.node, turns.node, -1, size, 2)], cuda_target("sm_90a"))
    assert len(plan.steps) == 1


@pytest.mark.parametrize("dtype, limit", [(np.float32, 1e-7), (np.float64, 1e-15)])
def test_sines_and_cosines_of_an_eighth_of_a_turn(dtype: type, limit: float) -> None:
    angles = np.linspace(-np.pi / 4, np.pi / 4, 1001).astype(dtype)
    x = leaf(angles)
    sines, cosines = interpret([sine(x), cosine(x)])
    exact = angles.astype(np.float64)
    assert np.abs(sines - np.sin(exact)).max() < limit
    assert np.abs(cosines - np.cos(exact)).max() < limit
