"""Columns that are turned in blocks: what one kernel does of few of them."""

from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.graph import turned_blocks
from picograd.graph.node import toposort
from picograd.graph.turned_blocks import BLOCK, SWEEPS, turn_in_blocks

RANDOM = np.random.default_rng(5)
BASIS = np.linalg.qr(RANDOM.normal(size=(24, 24)))[0]
CASES: dict[str, tuple[Any, int]] = {  # columns, and how many of their rows count
    "one pair": (RANDOM.normal(size=(1, 8, 8)), 8),
    "pairs": (RANDOM.normal(size=(2, 24, 24)), 24),
    "odd blocks": (RANDOM.normal(size=(1, 20, 20)), 20),
    "some are added": (RANDOM.normal(size=(2, 30, 27)), 30),
    "tall": (RANDOM.normal(size=(1, 48, 17)), 31),
    "equal": ((BASIS * np.repeat([1.0, 2, 3], 8)) @ BASIS.T, 24),
    "one direction": (np.ones((24, 24)), 24),
    "zeros": (np.zeros((2, 21, 21)), 21),
    "diagonal": (np.diag(np.arange(22.0)), 22),
    "far apart": (RANDOM.normal(size=(1, 20, 20)) * 10.0 ** -np.repeat([0, 3], 10), 20),
}


@pytest.mark.parametrize("name", CASES)
def test_columns_are_at_right_angles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turned_blocks, "BLOCK", 4)
    x, count = CASES[name]
    x = x.reshape(-1, *x.shape[-2:])
    squares, found = map(value, turn_in_blocks(leaf(x), count))
    assert squares.shape == (len(x), x.shape[2]) and found.shape == x.shape
    lengths = np.linalg.svd(x[:, :count], compute_uv=False)
    scale = lengths.max() or 1.0
    np.testing.assert_allclose(np.sqrt(squares) / scale, lengths / scale, atol=1e-13)
    assert (np.diff(squares) <= 0).all()
    top = found[:, :count] / scale
    products = top.swapaxes(1, 2) @ top
    wanted = np.eye(x.shape[2]) * (squares / scale**2)[:, None]
    np.testing.assert_allclose(products, wanted, atol=1e-13)
    turned = found @ found.swapaxes(1, 2)  # columns are multiplied by rotations
    np.testing.assert_allclose(turned / scale, x @ x.swapaxes(1, 2) / scale, atol=1e-12)


@pytest.mark.parametrize("columns", [129, 256, 300])
def test_all_blocks_meet_once_in_a_sweep(columns: int) -> None:
    squares, _ = turn_in_blocks(leaf(np.eye(columns)[None]), columns)
    (loop,) = [each for each in toposort([squares]) if each.op == "recur"]
    blocks = -(-columns // (2 * BLOCK)) * 2
    assert loop.arg.length * 2 == blocks * SWEEPS
    turns = [each for each in loop.arg.body.order if each.op == "rotate"]
    assert [each.shape[0] for each in turns] == [blocks // 2, blocks // 2 - 1]
