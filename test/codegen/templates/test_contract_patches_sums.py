"""Gradients of weights by transformed patches on a CPU: values in every layout and share."""

import numpy as np
import pytest
from contractions import Case, conv_weight_gradient
from run_cpu import TARGET, computed

from picograd.codegen import interpret_tile
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract, patches_sums_plan
from picograd.codegen.tile import TileKernel
from picograd.target import Target

ONE, EIGHT = (Target("llvm", "generic", 64, threads=n, registers=32) for n in (1, 8))
AVX2 = Target("llvm", "haswell", 32, threads=2, registers=16)
SHAPES = [  # images, height, width, channels; outputs, padding
    ((2, 20, 30, 32), 32, 1),  # rows of a block end within a patch
    ((3, 13, 13, 48), 40, 0),  # outputs fill no panel, patches reach beyond the image
    ((1, 61, 18, 16), 64, 1),  # blocks of rows, the last one shorter
    ((7, 6, 7, 80), 130, 2),  # images in blocks
    ((9, 14, 14, 32), 16, 1),
    ((40, 16, 15, 64), 33, 1),
]
FIRST, LAST = (0, 1, 2, 3, 4), (0, 3, 4, 2, 1)  # where outputs lie


def is_planned(case: Case, target: Target = ONE) -> bool:
    """Tell whether a case is planned so."""
    return patches_sums_plan.choose(analyse(case.kernel), target) is not None


def built(case: Case, target: Target = ONE) -> TileKernel:
    return contract.build(case.kernel, target)


@pytest.fixture(params=["whole", "walked"])
def always(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Take patches for small convolutions too."""
    monkeypatch.setattr(patches_sums_plan, "is_faster", lambda *args: True)
    if request.param == "walked":
        monkeypatch.setattr(patches_sums_plan, "WHOLE_BYTES", 1 << 14)
        monkeypatch.setattr(patches_sums_plan, "SEEN_BYTES", 1 << 14)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("order, is_last, target", [
    (order, is_last, target)
    for order in (FIRST, LAST)
    for is_last in (False, True)
    for target in (TARGET, ONE, EIGHT, AVX2)
    if target is TARGET or is_last == (order is LAST)  # others one way of each
])  # fmt: skip
@pytest.mark.parametrize("shape, channels, padding", SHAPES)
def test_values(
    shape: tuple[int, int, int, int],
    channels: int,
    padding: int,
    order: tuple[int, ...],
    is_last: bool,
    target: Target,
) -> None:
    case = conv_weight_gradient(shape, channels, 3, padding, is_last, 1 + is_last, order)
    assert is_planned(case, target)
    got = computed(case, target)
    assert np.abs(got - case.expected).max() < 4e-6 * np.abs(case.expected).max()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("is_last", [False, True], ids=["planar", "last"])
@pytest.mark.parametrize("shape", [(1, 13, 11, 32), (7, 13, 13, 16)])
def test_the_interpreter_goes_the_same_way(shape: tuple[int, int, int, int], is_last: bool) -> None:
    """What a block did not write is not a number there, and no place is beyond an array."""
    case = conv_weight_gradient(shape, 24, 3, 1, is_last)
    assert is_planned(case)
    out = case.interpreted(interpret_tile.interpret, built(case))
    assert np.allclose(out, case.expected.reshape(-1), atol=2e-4, rtol=0)
