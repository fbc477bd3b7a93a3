"""Phases of products on a CPU: which are apart, the terms that they have, and values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.codegen.templates import contract_phases

torch = pytest.importorskip("torch")

CASES = [  # channels, outputs, size, taps, stride, padding, taps apart, groups
    (8, 24, (11, 8), 3, 2, 1, 1, 1),
    (16, 16, (9, 9), 3, 3, 1, 1, 1),
    (8, 16, (12, 13), 5, 2, 2, 1, 2),
    (32, 16, (10, 7), 4, 2, 1, 1, 1),
    (16, 32, (8, 8), 3, 2, 0, 2, 1),
    (16, 8, (16, 5), (7, 1), (3, 1), (3, 0), 1, 1),
]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[Any]]:
    """List what products are split to, where no kernel is known from before."""
    monkeypatch.setattr(picograd.config, "cache", str(tmp_path))
    found: list[list[Any]] = []
    split = contract_phases.parts_of

    def noted(part: Any) -> list[Any]:
        found.append(split(part))
        return found[-1]

    monkeypatch.setattr(contract_phases, "parts_of", noted)
    return found


def gradients(case: tuple[Any, ...], seed: int, is_last: bool, library: Any) -> list[np.ndarray]:
    """Compute a convolution and both of its gradients."""
    channels, outputs, size, taps, stride, padding, apart, groups = case
    random = np.random.default_rng(seed)
    taps = taps if isinstance(taps, tuple) else (taps, taps)
    image = random.normal(size=(2 + seed, channels, *size)).astype(np.float32)
    weight = random.normal(size=(outputs, channels // groups, *taps)).astype(np.float32)
    if is_last:
        image = image.transpose(0, 2, 3, 1).copy()
    x, w = (library.tensor(each) for each in (image, weight))
    if library is torch:
        x, w = x.double(), w.double()
    x, w = x.requires_grad_(), w.requires_grad_()
    planes = x.permute(0, 3, 1, 2) if is_last else x
    y = library.nn.functional.conv2d(
        planes, w, stride=stride, padding=padding, dilation=apart, groups=groups
    )
    (y.tanh() * y.detach().sin()).sum().backward()
    return [each.detach().numpy() for each in (y, x.grad, w.grad)]


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("is_last", [False, True], ids=["planar", "last"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_values(number: int, is_last: bool, seen: list[list[Any]]) -> None:
    case = CASES[number]
    found = [
        gradients(case, number + 10 * is_last, is_last, library) for library in (picograd, torch)
    ]
    for mine, theirs in zip(*found, strict=True):
        assert np.abs(mine - theirs).max() < 1e-5 * np.abs(theirs).max()
    if case[6] == 1 and number not in (1, 3):  # there all phases have as many taps
        assert max(map(len, seen)) > 1


@pytest.mark.usefixtures("cpu_by_default")
def test_phases_have_their_own_taps(seen: list[list[Any]]) -> None:
    """Nine of sixteen products are left of 3 x 3 taps and a stride of 2."""
    gradients((8, 24, (19, 21), 3, 2, 1, 1, 1), 3, True, picograd)
    parts = max(seen, key=len)
    sizes = [sorted(axis.size for axis in part.computes[0].reduce) for part in parts]
    assert sorted(sizes) == [[1, 1, 24], [1, 2, 24], [1, 2, 24], [2, 2, 24]]
