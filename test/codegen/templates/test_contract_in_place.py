"""Operands of products that are read where they lie: which, and to what values."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from contractions import Case, matmul
from run_cpu import TARGET, Loaded

from picograd.codegen import interpret_tile
from picograd.codegen.dot import Dot
from picograd.codegen.templates import contract
from picograd.codegen.tile import For, Step, TileKernel, When, format_tiles
from picograd.dtype import bfloat16, float64
from picograd.target import Target

ONE = Target("llvm", "generic", 64, threads=1, registers=32)
TURNED = (0, 2, 1)
CASES = {  # batch, M, N, K: what is read in place
    "few columns": (matmul((1, 96, 40, 70)), "a"),
    "weights of a layer": (matmul((1, 16, 384, 200), order_b=TURNED), "a"),
    "few rows": (matmul((1, 12, 512, 192)), "b"),
    "batches": (matmul((3, 16, 320, 96)), "b"),
    "several blocks": (matmul((1, 16, 768, 384), with_bias=True), "b"),
    "both": (matmul((1, 24, 144, 96)), "ab"),
    "float64": (matmul((1, 24, 96, 64), dtype=float64), "ab"),
    "ragged depth": (matmul((1, 96, 40, 211)), ""),
    "ragged rows": (matmul((1, 97, 40, 70)), ""),
    "ragged columns": (matmul((1, 16, 333, 70)), ""),
    "16-bit floats": (matmul((1, 96, 48, 64), dtype=bfloat16), ""),
    "along M": (matmul((1, 96, 333, 64), order_a=TURNED), ""),
}


def dots(steps: Sequence[Step]) -> Iterator[Dot]:
    for step in steps:
        if isinstance(step, Dot):
            yield step
        if isinstance(step, For | When):
            yield from dots(step.body)


def in_place(tiles: TileKernel) -> str:
    found = {dot for part in tiles.parts for dot in dots(part.steps)}
    sides = (("a", all(dot.a_place for dot in found)), ("b", all(dot.b_place for dot in found)))
    return "".join(name for name, lies in sides if lies)


@pytest.mark.parametrize("name", CASES)
def test_which(name: str) -> None:
    case, sides = CASES[name]
    tiles = contract.build(case.kernel, ONE)
    assert in_place(tiles) == sides
    names = {tile.name for part in tiles.parts for tile in part.tiles}
    assert names.isdisjoint(sides)
    for side in sides:
        assert f"{side} lies in s" in format_tiles(tiles)


@pytest.mark.parametrize("target", [TARGET, ONE], ids=["own", "1"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, target: Target) -> None:
    case, _ = CASES[name]
    loaded = Loaded(case.kernel, case.inputs, target)
    loaded.run_backwards()
    close(loaded.result(), case)


@pytest.mark.parametrize("name", [name for name, (_, sides) in CASES.items() if sides])
def test_nothing_is_read_beyond_an_array(name: str) -> None:
    case, _ = CASES[name]
    out = case.interpreted(interpret_tile.interpret, contract.build(case.kernel, ONE))
    close(out, case)


def close(found: np.ndarray, case: Case) -> None:
    if case.kernel.slots[-1].dtype is bfloat16:
        return
    wanted = case.expected.reshape(-1)
    assert np.allclose(found.reshape(-1), wanted, atol=1e-5 * np.abs(wanted).max(), rtol=0)
