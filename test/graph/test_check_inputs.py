"""Checks of operands: each raises under the name of the op, and is silent where all fits."""

import numpy as np
import pytest
from graph_support import leaf

from picograd.dtype import float32, float64
from picograd.errors import DeviceError, DTypeError, ShapeError
from picograd.graph import build
from picograd.graph.build_composite import check_device, check_dtype, check_same
from picograd.graph.row import ANY, FLOAT

X = leaf(np.zeros((2, 3), np.float32))


def test_what_fits_passes() -> None:
    check_device("add", (X, X))
    check_dtype("add", FLOAT, (X, X))
    check_same("add", (X, X))


def test_devices() -> None:
    other = build.const(1.0, (2, 3), float32, "cuda:0")
    for run in (check_device, check_same):
        with pytest.raises(DeviceError, match=r"^add: .* different devices: cpu and cuda:0.*\.to"):
            run("add", (X, other))


def test_dtypes() -> None:
    with pytest.raises(DTypeError, match=r"^exp: takes a float dtype, not int64"):
        check_dtype("exp", FLOAT, (leaf(np.zeros(3, np.int64)),))
    with pytest.raises(DTypeError, match=r"^add: operands are float32 and float64"):
        check_dtype("add", ANY, (X, build.const(1.0, (2, 3), float64, "cpu")))


def test_shapes() -> None:
    with pytest.raises(ShapeError, match=r"^add: shapes differ: \(2, 3\) and \(3,\)"):
        check_same("add", (X, leaf(np.zeros(3, np.float32))))
