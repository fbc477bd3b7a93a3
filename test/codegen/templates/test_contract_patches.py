"""Convolutions by transformed patches on a CPU: values in every layout, what is left to others."""

from typing import Any

import numpy as np
import pytest
from contractions import Case, conv
from run_cpu import TARGET, computed

import picograd
from picograd.codegen import interpret_tile
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, patches_plan
from picograd.codegen.tile import TileKernel
from picograd.target import Target

torch = pytest.importorskip("torch")

ONE, EIGHT = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 8))
AVX2 = Target("llvm", "haswell", 32, threads=2, registers=16)
SHAPES = [  # images, height, width, channels; outputs, padding
    ((2, 20, 30, 32), 32, 1),  # rows of a block end within a patch
    ((3, 13, 13, 48), 40, 0),  # outputs fill no panel, patches reach beyond the image
    ((1, 61, 18, 16), 64, 1),  # blocks of rows, the last one shorter
    ((7, 6, 7, 80), 130, 2),  # channels in blocks of 16, images in blocks
    ((9, 14, 14, 32), 16, 1),
]


def has_patches(case: Case, target: Target = ONE) -> bool:
    """Tell whether a case is planned so."""
    return patches_plan.choose(analyse(case.kernel), target) is not None


def built(case: Case, target: Target = ONE) -> TileKernel:
    return contract.build(case.kernel, target)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take patches for small convolutions too."""
    monkeypatch.setattr(patches_plan, "is_faster", lambda conv, transformed: True)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("is_last", [False, True], ids=["planar", "last"])
@pytest.mark.parametrize("target", [TARGET, ONE, EIGHT, AVX2], ids=["own", "1", "8", "avx2"])
@pytest.mark.parametrize("shape, channels, padding", SHAPES)
def test_values(
    shape: tuple[int, int, int, int], channels: int, padding: int, target: Target, is_last: bool
) -> None:
    case = conv(shape, channels, 3, 1, padding, channels_last=is_last)
    assert has_patches(case, target)
    got = computed(case, target)
    assert np.abs(got - case.expected).max() < 4e-6 * np.abs(case.expected).max()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("is_last", [False, True], ids=["planar", "last"])
@pytest.mark.parametrize("shape", [(1, 13, 11, 32), (7, 13, 13, 16)])  # images in two blocks
def test_the_interpreter_goes_the_same_way(shape: tuple[int, int, int, int], is_last: bool) -> None:
    """What a block did not write is not a number there, and no place is beyond an array."""
    case = conv(shape, 24, 3, padding=1, channels_last=is_last)
    assert has_patches(case)
    out = case.interpreted(interpret_tile.interpret, built(case))
    assert np.allclose(out, case.expected.reshape(-1), atol=2e-4, rtol=0)


@pytest.mark.usefixtures("always", "cpu_by_default")
@pytest.mark.parametrize("groups, along", [(1, (0, 2, 3)), (2, (0, 2, 3)), (1, (1,))])
@pytest.mark.parametrize("is_last", [False, True], ids=["planar", "last"])
def test_in_networks(
    is_last: bool, groups: int, along: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights of an image's gradient are turned; norms and activations are of the same kernel."""
    taken = []

    def noted(*args: Any) -> Any:
        taken.append(choose(*args))
        return taken[-1]

    choose = patches_plan.choose
    monkeypatch.setattr(patches_plan, "choose", noted)
    random = np.random.default_rng(groups)
    images = 2 + len(along) + is_last  # kernels of their own
    image = random.normal(size=(images, 16 * groups, 9, 13)).astype(np.float32)
    weight = (random.normal(size=(32 * groups, 16, 3, 3)) / 12).astype(np.float32)
    found = []
    for library in (picograd, torch):
        x, w = (library.tensor(each).requires_grad_() for each in (image, weight))
        if library is torch:
            x, w = (each.detach().double().requires_grad_() for each in (x, w))
        seen = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2) if is_last else x
        y = library.nn.functional.conv2d(seen.tanh(), w, padding=(1, 2), groups=groups)
        y = (y - y.mean(along, keepdim=True)) / y.var(along, keepdim=True).sqrt()
        y = library.relu(y)
        (y.square() * y.detach().sin()).sum().backward()
        found.append([each.detach().numpy() for each in (y, x.grad, w.grad)])
    assert sum(plan is not None for plan in taken) >= 2
    for mine, theirs in zip(*found, strict=True):
        assert np.abs(mine - theirs).max() < 2e-5 * np.abs(theirs).max()
