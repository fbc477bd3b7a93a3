"""Sobol points are PyTorch's; scrambled ones fill the cube as evenly."""

import sys

import numpy as np
import pytest

import picograd
from picograd.quasirandom import SobolEngine

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")


def test_points_are_those_of_pytorch() -> None:
    ours, theirs = (each.quasirandom.SobolEngine(7) for each in (picograd, torch))
    for count in (1, 4, 3):
        assert ours.draw(count).tolist() == theirs.draw(count).tolist()
    for engine in (ours, theirs):
        engine.fast_forward(5)
    wide = ours.draw(2, dtype=picograd.float64)
    assert wide.dtype is picograd.float64
    assert wide.tolist() == theirs.draw(2, dtype=torch.float64).tolist()
    assert ours.num_generated == theirs.num_generated == 15
    assert repr(ours.reset()) == repr(theirs.reset()) == "SobolEngine(dimension=7)"
    assert ours.draw_base2(2).tolist() == theirs.draw_base2(2).tolist()


def test_scrambled_points_are_even() -> None:
    points = SobolEngine(3, scramble=True, seed=5).draw(64).numpy()
    assert points.dtype == np.float32 and ((points * 64).astype(int).sum(0) == 63 * 32).all()
    picograd.manual_seed(0)
    first = SobolEngine(3, scramble=True).draw(2).tolist()
    picograd.manual_seed(0)
    assert SobolEngine(3, scramble=True).draw(2).tolist() == first != points[:2].tolist()


def test_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="3 points and 2"):
        engine.draw_base2(2)
    with pytest.raises(ValueError, match="not in 1 to 21201"):
        SobolEngine(0)
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(RuntimeError, match="pip install scipy"):
        SobolEngine(1)
