"""Products of bfloat16 by tile registers: which, and to what values in every interpreter."""

from dataclasses import replace

import numpy as np
import pytest
from contractions import Case, matmul, widen
from run_cpu import TARGET, Loaded

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.program import verify as verify_program
from picograd.codegen.render.llvm import render
from picograd.codegen.templates import contract, contract_tiles
from picograd.codegen.tile import verify as verify_tiles
from picograd.conversion import from_bits
from picograd.dtype import bfloat16, float16, float32
from picograd.runtime.cpu import may_use_tiles
from picograd.runtime.llvm import host

TILES = replace(TARGET, features="+amx-bf16,+avx512f")
TURNED = (0, 2, 1)
HAS_TILES = "+amx-bf16" in host().features.split(",") and may_use_tiles()
CASES = {  # batch, M, N, K
    "whole": matmul((1, 64, 96, 64), bfloat16),
    "weights of a layer": matmul((1, 40, 96, 70), bfloat16, order_b=TURNED),
    "one row of tiles": matmul((1, 16, 50, 33), bfloat16),
    "columns lie together": matmul((1, 65, 33, 40), bfloat16, order_a=TURNED),
    "both, bias": matmul((2, 33, 47, 129), bfloat16, TURNED, TURNED, with_bias=True),
    "several depths": matmul((1, 17, 16, 1100), bfloat16),
    "written across": matmul((1, 48, 70, 64), bfloat16, order_c=TURNED),
}
PLAIN = {
    "few rows": matmul((1, 12, 96, 64), bfloat16),
    "few columns": matmul((1, 96, 12, 64), bfloat16),
    "short sums": matmul((1, 96, 64, 20), bfloat16),
    "float32": matmul((1, 64, 64, 64), float32),
    "float16": matmul((1, 64, 64, 64), float16),
}


def close(found: np.ndarray, case: Case) -> None:
    got = from_bits(found, bfloat16) if found.dtype == np.uint16 else found
    wanted = case.expected.reshape(-1)
    error = np.abs(got.reshape(-1) - wanted)
    assert (error <= 2**-8 * np.abs(wanted) + 1e-4 * np.abs(wanted).max()).all()


def text_of(case: Case, target: object = TILES) -> str:
    return render(linearize(contract.build(case.kernel, target), target))


@pytest.mark.parametrize("name", CASES)
def test_interpreters(name: str) -> None:
    case = CASES[name]
    tiles = contract.build(case.kernel, TILES)
    verify_tiles(tiles)
    size = case.kernel.slots[-1].size
    out = np.zeros(size, np.float32)
    interpret_tile.interpret(tiles, [*(widen(x, bfloat16).ravel() for x in case.inputs), out])
    close(out, case)
    program = linearize(tiles, TILES)
    verify_program(program)
    assert any(instr.op == "multiply_tiles" for instr in program.instructions)
    bits = np.zeros(size, np.uint16)
    interpret_program.interpret(program, [*(x.ravel() for x in case.inputs), bits])
    close(bits, case)


@pytest.mark.skipif(not HAS_TILES, reason="no tile registers here")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, threads: int) -> None:
    case = CASES[name]
    loaded = Loaded(case.kernel, case.inputs, replace(TILES, threads=threads))
    loaded.run_backwards()
    close(loaded.result(), case)


@pytest.mark.skipif(not HAS_TILES, reason="no tile registers here")
def test_infinities_and_nothing_behind_the_end_of_sums() -> None:
    """What is packed behind K is 0 in both operands: scratch memory may hold anything."""
    case = matmul((1, 32, 32, 33), bfloat16)
    case.inputs[0].reshape(32, 33)[3, 5] = 0x7F80  # infinity
    loaded = Loaded(case.kernel, case.inputs, TILES)
    loaded.run_backwards()
    found = from_bits(loaded.result().reshape(-1), bfloat16).reshape(32, 32)
    assert np.isinf(found[3]).all()
    assert np.isfinite(np.delete(found, 3, 0)).all()


@pytest.mark.parametrize("name", PLAIN)
def test_others_are_no_tiles(name: str) -> None:
    assert "tdpbf16ps" not in text_of(PLAIN[name])


def test_a_machine_without_tiles_uses_none() -> None:
    assert not TARGET.multiplies_tiles
    assert "tdpbf16ps" not in text_of(CASES["whole"], TARGET)
    assert "tdpbf16ps" in text_of(CASES["whole"])


def test_a_block_of_sums_is_at_most_so_deep() -> None:
    case = CASES["several depths"]
    (part,) = contract.build(case.kernel, TILES).parts
    panel = next(tile for tile in part.tiles if tile.name == contract_tiles.PANEL)
    assert panel.shape[0] <= contract_tiles.DEPTH
    assert panel.shape[0] % contract_tiles.STEP == 0
