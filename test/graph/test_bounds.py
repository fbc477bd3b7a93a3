"""Bounds of integers that follow from how they are computed."""

import numpy as np
import pytest

from picograd import Tensor
from picograd.graph.bounds import DEPTH, bounds
from picograd.graph.interpret import interpret

x = Tensor(np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32))
small = Tensor([3, 250], dtype="uint8")
unknown = Tensor([5, -5])
CASES = {
    "arange": (lambda: Tensor.arange(8), (0, 7)),
    "arithmetic": (lambda: Tensor.arange(8) * 2 + 1, (1, 15)),
    "difference": (lambda: 3 - Tensor.arange(8), (-4, 3)),
    "argmax": (lambda: x.argmax(1), (0, 5)),
    "argmin of all": (lambda: x.argmin(), (0, 23)),
    "argsort": (lambda: x.argsort(0), (0, 3)),
    "a view of it": (lambda: x.argsort(1)[1:, :2].T.reshape(-1), (0, 5)),
    "clamped": (lambda: unknown.clamp(0, 4), (0, 4)),
    "one side": (lambda: unknown.clamp(min=2), (2, (1 << 63) - 1)),
    "remainder": (lambda: unknown % 7, (0, 6)),
    "quotient": (lambda: Tensor.arange(8) // 3, (0, 2)),
    "narrow": (lambda: small, (0, 255)),
    "a cast": (lambda: small.long() - 5, (-5, 250)),
    "truth": (lambda: (x > 0).long(), (0, 1)),
    "either": (lambda: (x > 0).where(2, 9).long(), (2, 9)),
    "chosen": (lambda: (unknown < 3).where(unknown, 2).clamp(min=-1), (-1, 2)),
    "padded": (lambda: Tensor.arange(8).pad((0, 2)), (0, 7)),
    "largest": (lambda: (x > 0).long().max(), (0, 1)),
    "counted": (lambda: (x > 0).sum(1), (0, 6)),
    "sum of both signs": (lambda: (Tensor.arange(3) - 1).sum(), (-3, 3)),
    "sum of none": (lambda: Tensor.arange(0).sum(), (0, 0)),
    "counted so far": (lambda: (x > 0).long().cumsum(1), (0, 6)),
    "running, of one sign": (lambda: (Tensor.arange(3) - 5).cumsum(0), (-15, -3)),
    "running extreme": (lambda: x.argsort(1).cummax(1).values, (0, 5)),
    "bits in both": (lambda: unknown & 7, (0, 7)),
    "bits of what is counted": (lambda: x.argsort(1) & unknown[0], (0, 5)),
    "drawn": (lambda: Tensor.randint(3, 9, (5,)), (3, 8)),
    "gathered": (lambda: x.argsort(1).gather(1, x.argsort(1)), (0, 5)),
    "size": (lambda: (Tensor.arange(8) - 3).abs(), (0, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold(name: str, cpu_by_default: None) -> None:
    make, wanted = CASES[name]
    tensor = make()
    assert bounds(tensor.node) == wanted
    if name != "drawn":
        values = interpret([tensor.node])[0]
        assert wanted[0] <= values.min() and values.max() <= wanted[1]


def test_what_is_not_known() -> None:
    i = Tensor.arange(8)
    for tensor in (unknown, unknown * 2, unknown.sum(), x, x.long(), i * (1 << 62)):
        assert bounds(tensor.node) is None
    for tensor in (unknown & -1, i.prod(), i.cumprod(0), (i * (1 << 60)).sum()):
        assert bounds(tensor.node) is None
    assert bounds((small + small).node) == (0, 255)  # it may wrap
    deep = i
    for _ in range(DEPTH + 1):
        deep = deep + i * 0
    assert bounds(deep.node) is None


def test_leaves_may_be_known() -> None:
    found = bounds((unknown + 1).node, lambda n: (-5, 5) if n is unknown.node else None)
    assert found == (-4, 6)


def test_a_look_is_short() -> None:
    """What is used twice at every step is not looked at 2 ** 100 times."""
    twice = Tensor.arange(8)
    for _ in range(100):
        twice = twice + twice
    assert bounds(twice.node) is None
