"""Constructors of composites: shapes and dtypes are known when recorded, mistakes are refused.

Values and gradients are in test_composites.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.dtype import float16, float32, int64
from picograd.errors import AxisError, DTypeError, PicogradError
from picograd.graph import build

X = leaf(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))
LABELS = leaf(np.array([0, 4, 2, 2]))


@pytest.mark.parametrize(
    ("made", "shape", "dtype"),
    [
        (build.softmax(X, -1), (4, 5), float32),
        (build.logsumexp(X, (0, 1), True), (1, 1), float32),
        (build.argmax(X, 1), (4,), int64),
        (build.argmin(X, 0, True), (1, 5), int64),
        (build.mean(X), (), float32),
        (build.var(X, 0), (5,), float32),
        (build.relu(build.cast(X, float16)), (4, 5), float16),
        (build.cross_entropy(X, LABELS), (), float32),
        (build.cross_entropy(X, LABELS, "none"), (4,), float32),
        (build.max_pool(X, ((1, 2, 2, 1),)), (4, 2), float32),
    ],
)
def test_shape_and_dtype(made: Any, shape: tuple[int, ...], dtype: Any) -> None:
    assert made.shape == shape and made.dtype is dtype
    assert value(made).shape == shape


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: build.softmax(X, 2), AxisError),
        (lambda: build.softmax(LABELS, 0), DTypeError),
        (lambda: build.gelu(X, "sine"), PicogradError),
        (lambda: build.argmax(leaf(np.zeros((0, 2))), 0), PicogradError),
        (lambda: build.cross_entropy(X, leaf(np.zeros(3, np.int64))), PicogradError),
        (lambda: build.cross_entropy(X, LABELS, "median"), PicogradError),
    ],
)
def test_mistakes_are_refused(make: Callable[[], Any], error: type[PicogradError]) -> None:
    with pytest.raises(error):
        make()


def test_ignored_labels_do_not_count() -> None:
    labels = leaf(np.array([0, -100, 2, -100]))
    found = value(build.cross_entropy(X, labels, ignore_index=-100))
    logs = value(build.log_softmax(X, 1))
    np.testing.assert_allclose(found, -(logs[0, 0] + logs[2, 2]) / 2, rtol=1e-5)
