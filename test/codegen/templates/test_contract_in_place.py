"""Operands of products that are read where they lie: which, and to what values."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from contractions import Case, matmul
from run_cpu import TARGET, Loaded

from picograd.codegen import interpret_tile
from picograd.codegen.dot import Dot
from picograd.codegen.templates import contract
from picograd.codegen.tile import For, Step, TileKernel, When, format_tiles
from picograd.dtype import bfloat16, float64, int64
from picograd.schedule.index import Dynamic, atom_index
from picograd.schedule.loop import Expr, rewrite, walk
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


def test_where_an_operand_lies_may_follow_from_a_number() -> None:
    case, _ = CASES["few columns"]
    (a, b), (part,) = case.inputs, case.kernel.parts
    later = atom_index(Dynamic(Expr("scalar", (), 0, int64), 0, 1)) * a.size
    body = part.computes[0].body
    load = next(e for e in walk(body) if e.op == "load" and e.arg[0] == 0)
    moved = Expr("load", (), (0, load.arg[1] + later), load.dtype)
    computes = (replace(part.computes[0], body=rewrite(body, {}, {load: moved}.get)),)
    slots = (replace(case.kernel.slots[0], size=2 * a.size), *case.kernel.slots[1:])
    parts = (replace(part, computes=(*computes, *part.computes[1:])),)
    kernel = replace(case.kernel, slots=slots, parts=parts, scalars=(int64,))
    tiles = contract.build(kernel, ONE)
    assert in_place(tiles) == "a"
    out = np.zeros(case.expected.size, np.float32)
    both = np.concatenate([np.zeros_like(a.reshape(-1)), a.reshape(-1)])
    interpret_tile.interpret(tiles, [both, b.reshape(-1), out], [1])
    close(out, case)
