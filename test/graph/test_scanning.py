"""Scans: meaning, chunks, gradients."""

import numpy as np
import pytest
from graph_support import check_gradients, leaf, second_order, value

from picograd.dtype import bfloat16, float16
from picograd.graph import scanning
from picograd.graph.expand import expand_composites
from picograd.graph.node import toposort
from picograd.graph.scanning import SCANS, chunk_of, reversed_scan, scan
from picograd.target import SERIAL, cuda_target

SHAPES = [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 7, 3), 1)]
ZEROS = np.array([[1.0, 2, 0, 3, 4], [0, 1, 0, 2, 3], [1, 2, 3, 4, 5]])


@pytest.mark.parametrize("monoid", SCANS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_equals_numpy(monoid: str, shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    wanted = SCANS[monoid].accumulate(x, axis=axis)
    np.testing.assert_allclose(value(scan(leaf(x), monoid, axis)), wanted, rtol=1e-12)
    wanted = np.flip(SCANS[monoid].accumulate(np.flip(x, axis), axis=axis), axis)
    np.testing.assert_allclose(value(reversed_scan(leaf(x), monoid, axis)), wanted, rtol=1e-12)


@pytest.mark.parametrize("monoid", SCANS)
@pytest.mark.parametrize(("shape", "axis"), [((23,), 0), ((2, 23), 1), ((24, 2), 0)])
def test_a_long_axis_is_scanned_in_chunks(
    monkeypatch: pytest.MonkeyPatch, monoid: str, shape: tuple[int, ...], axis: int
) -> None:
    monkeypatch.setattr(scanning, "CPU_CHUNKS", (4, 4, 100))
    x = np.random.default_rng(0).normal(size=shape)
    node = scan(leaf(x), monoid, axis)
    steps = [n for n in toposort(expand_composites([node])) if n.op == "scan_chunks"]
    assert len(steps) > 1 and len(steps[-1].inputs) == 2
    wanted = SCANS[monoid].accumulate(x, axis=axis)
    np.testing.assert_allclose(value(node), wanted, rtol=1e-10)


def test_rows_enough_are_not_cut() -> None:
    assert chunk_of((100, 10**6), 1, SERIAL) == 10**6
    assert chunk_of((10**7,), 0, SERIAL) < 10**5
    assert chunk_of((1000,), 0, SERIAL) == 1000
    assert chunk_of((10**7,), 0, cuda_target("sm_90a")) <= 8192
    assert chunk_of((10**6,), 0, cuda_target("sm_90a")) < 2000, "work for all processors"
    assert chunk_of((10**5,), 0, cuda_target("sm_90a")) == 1024, "whole lines"
    assert chunk_of((12_000,), 0, cuda_target("sm_90a")) == 12_000
    assert chunk_of((8, 1024, 1024), 1, cuda_target("sm_90a")) == 64, "few columns: a thread each"
    assert chunk_of((8, 40, 1024), 1, cuda_target("sm_90a")) == 40
    assert chunk_of((64, 1024, 4096), 1, cuda_target("sm_90a")) == 1024, "columns enough"


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_16_bit_floats_accumulate_in_float32(dtype: object) -> None:
    ones = leaf(np.ones(3000), dtype)  # type: ignore[arg-type]
    assert value(scan(ones, "sum", 0))[-1] == pytest.approx(3000, rel=2**-8)


@pytest.mark.parametrize("monoid", SCANS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gradients(monoid: str, shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    check_gradients(lambda node: scan(node, monoid, axis), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_product_gradient_with_zeros(axis: int) -> None:
    check_gradients(lambda node: scan(node, "prod", axis), ZEROS)


@pytest.mark.parametrize("monoid", ["sum", "prod", "logaddexp"])
def test_second_order(monoid: str) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, size=(2, 5))
    function = second_order(lambda node: scan(node, monoid, 1))
    check_gradients(function, x, np.random.default_rng(1).normal(size=(2, 5)), tolerance=1e-4)


def test_empty_and_single_elements_are_left_alone() -> None:
    empty, single = leaf(np.zeros((0, 3))), leaf(np.ones((3, 1)))
    assert scan(empty, "sum", 0) is empty and scan(single, "prod", 1) is single
