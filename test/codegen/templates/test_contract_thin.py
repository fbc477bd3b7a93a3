"""Few vectors and a matrix on a CPU: nothing is packed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from contractions import Case, matmul
from run_cpu import TARGET

from picograd import Tensor, einsum
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.dot import Dot
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract
from picograd.codegen.templates.contract_thin import AT_ONCE, build_part
from picograd.codegen.tile import For, Step, When
from picograd.dtype import float64

CASES = {  # batch, M, N, K
    "row": matmul((1, 1, 300, 37)),
    "columns": matmul((1, 3, 600, 19), with_bias=True),
    "eight": matmul((1, 8, 2080, 11)),
    "eight dots": matmul((1, 8, 50, 64), order_b=(0, 2, 1)),
    "shallow": matmul((1, 4, 45, AT_ONCE - 3)),
    "batch": matmul((3, 2, 70, 24)),
    "float64": matmul((1, 2, 70, 40), dtype=float64),
    "dots": matmul((1, 1, 50, 64), order_b=(0, 2, 1)),
}


def every(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, For | When):
            yield from every(step.body)


@pytest.mark.parametrize("name", CASES)
def test_it_means_the_same_at_every_stage(name: str) -> None:
    case = CASES[name]
    tiles = contract.build(case.kernel, TARGET)
    assert not any(isinstance(s, Dot) for part in tiles.parts for s in every(part.steps))
    for interpret, stage in (
        (interpret_tile.interpret, tiles),
        (interpret_program.interpret, linearize(tiles, TARGET)),
    ):
        out = np.zeros(case.expected.size, case.kernel.slots[-1].dtype.numpy)
        slots = [*(each.ravel().copy() for each in case.inputs), out]
        interpret(stage, slots)
        np.testing.assert_allclose(slots[-1], case.expected.ravel(), rtol=1e-4, atol=1e-4)


def is_thin(case: Case, threads: int = 1) -> bool:
    target = replace(TARGET, threads=threads)
    return build_part(analyse(case.kernel), target) is not None


def test_more_vectors_short_axes_and_matrices_that_lie_otherwise_are_packed() -> None:
    assert not is_thin(matmul((1, 9, 300, 37)))
    assert is_thin(matmul((1, 8, 300, 37)))
    assert not is_thin(matmul((1, 2, 24, 37)))
    assert not is_thin(matmul((1, 2, 300, 12), order_b=(0, 2, 1)))
    assert is_thin(matmul((1, 300, 2, 37), order_a=(0, 2, 1)))  # a matrix and few vectors


def test_whole_panels_in_the_cache_are_read_by_register_blocks() -> None:
    assert not is_thin(matmul((1, 4, 128, 64))) and is_thin(matmul((1, 4, 130, 64)))
    assert is_thin(matmul((1, 1, 1 << 20, 8))), "memory gives whole rows faster"
    wide = matmul((1, 4, 512, 64))
    assert is_thin(wide, 8) and not is_thin(wide), "workers share columns"


def test_a_depth_of_several_axes_is_packed() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 3, 40)), random.normal(size=(3, 50, 64))
    found = einsum("mab,abn->mn", Tensor(a), Tensor(b).realize()[:, :40])
    np.testing.assert_allclose(found.numpy(), np.einsum("mab,abn->mn", a, b[:, :40]), atol=1e-12)
