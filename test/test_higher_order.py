"""Loops and branches under the names of torch._higher_order_ops."""

import importlib

import numpy as np
import pytest

import picograd
from picograd.errors import DTypeError
from picograd.higher_order import map as mapped
from picograd.higher_order import scan, while_loop


@pytest.mark.parametrize("name", ["associative_scan", "cond", "map", "scan", "while_loop"])
def test_programs_find_them_where_pytorch_has_them(name: str) -> None:
    room = importlib.import_module("picograd._higher_order_ops")
    file = importlib.import_module(f"picograd._higher_order_ops.{name}")
    assert getattr(file, name) is getattr(room, name)


def test_scan_equals_pytorchs() -> None:
    pytest.importorskip("torch")
    import torch
    from torch._higher_order_ops.scan import scan as theirs

    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    for reverse in (False, True):
        found = []
        for library, run in ((picograd, scan), (torch, theirs)):
            start, rows = library.ones(2, 2), library.tensor(x)
            made = run(lambda c, r: (c * 0.5 + r, c * r), start, rows, dim=1, reverse=reverse)
            found.append([each.numpy() for each in made])
        for ours, each in zip(*found):
            np.testing.assert_allclose(ours, each, rtol=1e-6)


def test_loops_have_gradients() -> None:
    x = picograd.tensor([1.0, 2.0], requires_grad=True)
    _, y = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * x), (picograd.tensor(0), x))
    (y.sum() + mapped(lambda row, z: row * z.sum(), x, x).sum()).backward()
    assert x.grad.tolist() == [8 + 6, 8 * 2.0**7 + 6]


def test_mistakes() -> None:
    x = picograd.ones(2)
    with pytest.raises(DTypeError, match="while_loop: Tensor where 1 values are carried"):
        while_loop(lambda x: x.sum() < 9, lambda x: x * 2, (x,))
    with pytest.raises(DTypeError, match="while_loop: cond_fn gave no flag"):
        while_loop(lambda x: x < 9, lambda x: (x,), (x,))
