"""Mean and variance of data that is hard to average: outliers, large means, constant channels."""

from typing import Any

import numpy as np
import pytest

import picograd

SHAPE = (8, 2, 64, 64)
COUNT = SHAPE[0] * SHAPE[2] * SHAPE[3]


def channels(kind: str, size: float) -> Any:
    """Draw two channels; `kind` says where outliers of a size are, or that it is the mean."""
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    rows = np.moveaxis(x, 1, 0).reshape(2, COUNT).copy()
    places = {"first": [0], "last": [-1], "random": [COUNT // 3 + 17], "ends": [0, -1]}
    if kind == "mean":
        rows += np.float32(size)
    elif kind == "constant":
        rows[:] = size
    else:
        rows[:, places[kind]] = size
    return np.ascontiguousarray(np.moveaxis(rows.reshape(2, 8, 64, 64), 0, 1))


CASES = [
    (kind, size) for kind in ("first", "last", "random", "ends") for size in (10, 1e3, 1e4)
] + [("mean", 100.0), ("mean", 1e4), ("constant", 3.1), ("constant", -1e4)]


@pytest.mark.parametrize("kind,size", CASES)
def test_batch_norm(kind: str, size: float) -> None:
    x = channels(kind, size)
    exact = x.astype(np.float64)
    mean, var = exact.mean((0, 2, 3)), exact.var((0, 2, 3))
    layer = picograd.nn.BatchNorm2d(2, momentum=1.0)
    found = layer(picograd.tensor(x)).detach().numpy()
    wanted = (exact - mean.reshape(1, 2, 1, 1)) / np.sqrt(var + 1e-5).reshape(1, 2, 1, 1)
    # the mean is rounded to float32: of 1e4 deviations, that moves every result by 1e-3
    step = 4 * np.abs(mean).max() * 2.0**-23 / np.sqrt(var.min() + 1e-5)
    np.testing.assert_allclose(found, wanted, 3e-6, 3e-6 + step)
    assert layer.running_var is not None
    unbiased = var * COUNT / (COUNT - 1)
    np.testing.assert_allclose(layer.running_var.numpy(), unbiased, 1e-5, 1e-8)


@pytest.mark.parametrize("kind,size", CASES)
def test_other_statistics(kind: str, size: float) -> None:
    x = channels(kind, size)
    exact = x.astype(np.float64)
    t = picograd.tensor(x)
    axes = (0, 2, 3)
    scale = float(np.abs(exact).max()) * 2.0**-20
    np.testing.assert_allclose(t.var(axes).numpy(), exact.var(axes, ddof=1), 1e-5, scale**2)
    np.testing.assert_allclose(t.std(axes).numpy(), exact.std(axes, ddof=1), 1e-5, scale)
    rows = x.reshape(16, -1)
    wanted = np.cov(rows[:3].astype(np.float64))
    found = picograd.cov(picograd.tensor(rows[:3])).numpy()
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5 * np.abs(wanted).max() + scale**2)


@pytest.mark.parametrize("size", [3.1, -1e4, 12345.678])
def test_constant_rows_have_no_spread(size: float) -> None:
    x = picograd.full((4, 6, 1000), size).contiguous()
    functional = picograd.nn.functional
    for found in (
        functional.layer_norm(x, (1000,)),
        functional.group_norm(x, 2),
        functional.instance_norm(x),
        functional.batch_norm(x, None, None, training=True),
    ):
        assert np.abs(found.numpy()).max() < 1e-3 * abs(size) * 2.0**-10
    assert float(x.var(-1).max().item()) <= (abs(size) * 2.0**-24) ** 2
