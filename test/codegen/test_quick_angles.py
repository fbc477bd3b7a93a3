"""Circular functions of float32 for GPUs: their CUDA text, compiled as host C++."""

import numpy as np
import pytest
from cases import unary
from cuda_tools import compile_host, run_host, source_of

from picograd.codegen.quick_angles import ANGLES, FAR
from picograd.codegen.templates import map as map_template
from picograd.dtype import float32
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")
MOST = {"sin": 1.0, "cos": 1.0, "tan": 1.3}  # units in the last place


def computed(name, x):
    """Compute a function by the CUDA text; also gives the text."""
    tiles = map_template.build(unary(name, float32, len(x)).kernel, TARGET)
    return run_host(compile_host([tiles]), tiles, {0: x})[1], source_of(tiles)[0]


def points():
    """Draw points of all sizes, and those next to multiples of a quarter of a turn."""
    generator = np.random.default_rng(0)
    quarters = np.arange(-41_000, 41_000) * (np.pi / 2)
    spread = [generator.uniform(-most, most, 20_000) for most in (FAR, 100, 4)]
    small = np.exp(generator.uniform(-80, 0, 5_000)) * generator.choice((-1, 1), 5_000)
    x = np.concatenate([quarters, *spread, small]).astype(np.float32)
    return np.concatenate([x, np.nextafter(x, np.float32(np.inf))])


@pytest.mark.parametrize("name", ANGLES)
def test_errors(name):
    x = points()
    found, text = computed(name, x)
    want = getattr(np, name)(x.astype(np.longdouble))
    unit = np.spacing(np.abs(want).astype(np.float32))
    assert (np.abs(found - want) / unit).max() < MOST[name]
    assert "double" not in text.split("__global__")[1]


@pytest.mark.parametrize("name", ANGLES)
def test_edges(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, FAR, 1e9, -3e38], np.float32)
    found, _ = computed(name, x)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(found, want, rtol=1.2e-7, atol=0)
    np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(want[:2]))
