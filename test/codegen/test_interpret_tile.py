"""The tile interpreter equals the Loop-IR interpreter, for the tiles of both languages."""

import pytest
from compare import check_arrays, inputs
from harness import TARGET
from structured import STRUCTURED

from picograd.codegen.interpret_tile import interpret
from picograd.codegen.pipeline import tile
from picograd.codegen.tile import format_tiles, verify
from picograd.target import Target, cuda_target

TARGETS = {"llvm": TARGET, "cuda": cuda_target("sm_90a")}


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("name", STRUCTURED)
def test_equals_loop_interpreter(name: str, target: Target) -> None:
    case = STRUCTURED[name]()
    tiles = verify(tile(case.kernel, target))
    assert case.kernel.name in format_tiles(tiles)
    for is_reversed in (False, True):
        arrays = inputs(case)
        interpret(tiles, arrays, case.scalars, is_reversed)
        check_arrays(case, arrays)
