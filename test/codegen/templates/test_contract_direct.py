"""Convolutions of few results a place: which are computed directly, and what they are."""

import numpy as np
import pytest
from contractions import Case, conv

from picograd.codegen import interpret_tile
from picograd.codegen.linearize_cuda import linearize
from picograd.codegen.operands import Contraction, analyse
from picograd.codegen.templates import contract_cuda, contract_direct
from picograd.codegen.tile import MainLoop, TileKernel, verify
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a", 132)


def contraction(case: Case) -> Contraction:
    """See a case as the template does."""
    kernel = case.kernel
    return contract_cuda.arranged(analyse(kernel, kernel.parts[0]), TARGET)[0]


@pytest.mark.parametrize(
    "case",
    [
        conv((1, 20, 30, 4), 3, 3, padding=1, channels_last=False),
        conv((2, 9, 15, 3), 5, 3, stride=2, padding=1, channels_last=False),  # patches stick out
        conv((1, 8, 12, 4), 6, 3, dilation=2, channels_last=False),  # too small to share elements
        conv((2, 11, 8, 2), 18, 5, padding=2, channels_last=False, groups=2),  # chunks of rows
        conv((3, 6, 8, 8), 8, 1, channels_last=False),  # nothing slides
        conv((1, 6, 9, 80), 13, 5, padding=2, channels_last=False),  # pieces
        conv((1, 6, 9, 3), 17, 3, padding=1, channels_last=False),  # a row beyond the end
        conv((2, 8, 8, 9), 5, 3, padding=2, channels_last=False),  # channels look like rows
    ],
)
def test_values(case: Case) -> None:
    plan = contract_direct.plan_of(contraction(case), TARGET)
    assert plan is not None
    part = contract_direct.write_part(plan)
    tiles = verify(TileKernel(case.kernel, (part,), contract_direct.THREADS))
    out = np.full(case.kernel.slots[-1].size, np.nan, np.float32)
    arrays = [*(np.array(each).ravel() for each in case.inputs), out]
    interpret_tile.interpret(tiles, arrays, [])
    np.testing.assert_allclose(out, case.expected.ravel(), rtol=2e-5, atol=2e-4)


def test_channels_are_not_in_the_way_of_taps() -> None:
    """Results larger than images: what a guard leaves out looks as if channels slid along rows."""
    case = conv((2, 8, 8, 9), 5, 3, padding=2, channels_last=False)
    plan = contract_direct.plan_of(contraction(case), TARGET)
    assert plan is not None and plan.slide is not None and plan.slide.tap.size == 3


def test_one_instruction_multiplies_and_adds() -> None:
    """The compiler is told to join none: apart they took one and a half times as long."""
    case = conv((16, 64, 64, 8), 3, 3, padding=1, channels_last=False)
    program = linearize(contract_cuda.build(case.kernel, TARGET), TARGET)
    assert any(each.op == "fma" for each in program.instructions)


def is_direct(case: Case) -> bool:
    """Tell whether a kernel has no main loop of a tiled product."""
    (part,) = contract_cuda.build(case.kernel, TARGET).parts
    return not any(isinstance(step, MainLoop) for step in part.steps)


def test_what_is_stored_far_from_neighbours_is_in_tiles() -> None:
    """Of one channel pixels are nearest, but results are not: that took 10 times as long."""
    assert not is_direct(conv((256, 28, 28, 1), 32, 3))
    assert is_direct(conv((256, 28, 28, 1), 32, 3, channels_last=False))
    assert is_direct(conv((256, 28, 28, 1), 4, 3))  # those of a thread are a vector


def test_few_channels_of_large_images_are_direct() -> None:
    assert is_direct(conv((16, 64, 64, 8), 3, 3, padding=1, channels_last=False))
    assert not is_direct(conv((16, 64, 64, 8), 3, 3, padding=1))  # channels are nearest
    assert not is_direct(conv((1, 16, 16, 16), 3, 3, padding=1, channels_last=False))  # few places
    assert is_direct(conv((8, 64, 64, 64), 4, 5, padding=2, channels_last=False))  # 64 blocks
    assert not is_direct(conv((4, 64, 64, 64), 4, 5, padding=2, channels_last=False))
