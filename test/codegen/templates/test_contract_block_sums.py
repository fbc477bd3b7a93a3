"""Reductions of a product's result by the blocks of a GPU: values at both levels, in any order."""

import ctypes
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from contractions import conv
from cuda_tools import H200, compile_host, matmul_kernel, run_host
from plan_support import leaf
from summed_products import statistics, with_statistics

from picograd.codegen import interpret_tile
from picograd.codegen.operands import analyse
from picograd.codegen.templates import contract_cuda
from picograd.codegen.templates.contract_block_sums import is_kept, reductions
from picograd.codegen.tile import Accumulate, Assign, LastBlock, MainLoop, TileKernel, verify
from picograd.dtype import float32
from picograd.graph import build
from picograd.schedule.index import constant, substitute
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

FEW = cuda_target("sm_90a", 2)  # processors
IMAGES = {
    "direct": (conv((4, 16, 20, 8), 16, 3, padding=1, channels_last=False), True),
    "direct, chunks of channels, no whole block": (
        conv((3, 15, 17, 5), 20, 3, stride=2, padding=1, channels_last=False),
        True,
    ),
    "direct, groups of blocks": (
        conv((16, 16, 16, 4), 20, 3, padding=1, channels_last=False),
        True,
    ),
    "channels are columns": (conv((4, 16, 20, 8), 40, 3, padding=1), False),
    "channels are rows": (conv((2, 12, 12, 30), 70, 5, channels_last=False), False),
}
MATRICES = {
    "columns": (dict(m=130, n=70, k=40, b="nk"), False),
    "rows": (dict(m=130, n=70, k=40, b="nk"), True),
    "few columns": (dict(m=600, n=33, k=64), False),
}


class Case:
    """A kernel, what it reads and what it stores of its result."""

    def __init__(
        self, kernel: Kernel, inputs: list[np.ndarray], matrix: np.ndarray, of_rows: bool
    ) -> None:
        self.kernel, self.inputs = with_statistics(kernel, of_rows), inputs
        self.tiles = verify(contract_cuda.build(self.kernel, FEW))
        self.wanted = statistics(matrix, of_rows)

    def check(self, found: dict[int, np.ndarray]) -> None:
        for number, want in enumerate(self.wanted, 3):
            assert np.abs(found[number] - want).max() < 1e-6 * np.abs(want).max()


def image_case(name: str) -> Case:
    made, _ = IMAGES[name]
    is_last = name == "channels are columns"
    found = made.expected if is_last else np.moveaxis(made.expected, 2, -1)
    matrix = found.reshape(-1, found.shape[-1])
    kernel = replace(made.kernel, name=f"conv{list(IMAGES).index(name)}")
    return Case(kernel, [each.ravel() for each in made.inputs], matrix, False)


def matrix_case(name: str) -> Case:
    given, of_rows = MATRICES[name]
    generator = np.random.default_rng(0)
    x = generator.standard_normal((given["m"], given["k"])).astype("f")
    w = generator.standard_normal((given["k"], given["n"])).astype("f")
    stored = w.T if given.get("b") == "nk" else w
    kernel = replace(matmul_kernel(**given, dtype=float32), name=f"matrix{of_rows}{given['n']}")
    inputs = [x.ravel(), np.ascontiguousarray(stored).ravel()]
    return Case(kernel, inputs, x.astype(float) @ w.astype(float), of_rows)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    images = {name: image_case(name) for name in IMAGES}
    return images | {name: matrix_case(name) for name in MATRICES}


@pytest.fixture(scope="module")
def library(cases: dict[str, Case]) -> ctypes.CDLL:
    return compile_host([case.tiles for case in cases.values()])


@pytest.mark.parametrize("name", [*IMAGES, *MATRICES])
def test_values(name: str, cases: dict[str, Case], library: ctypes.CDLL) -> None:
    case = cases[name]
    for is_reversed in (False, True):
        inputs = dict(enumerate(case.inputs))
        found = run_host(library, case.tiles, inputs, is_reversed=is_reversed)
        case.check(found)
    slots = case.kernel.slots
    arrays = [each.copy() for each in case.inputs]
    arrays += [np.full(slot.size, np.nan, slot.dtype.numpy) for slot in slots[2:]]
    interpret_tile.interpret(case.tiles, arrays, [])
    case.check(dict(enumerate(arrays)))


@pytest.mark.parametrize("name", IMAGES)
def test_which_form_reduces(name: str, cases: dict[str, Case]) -> None:
    part = cases[name].tiles.parts[0]
    _, is_direct = IMAGES[name]
    assert isinstance(part.steps[-1], LastBlock)
    assert isinstance(part.steps[0], MainLoop) != is_direct


@pytest.mark.parametrize("name", [*IMAGES, *MATRICES])
def test_each_group_counts_its_own_blocks(name: str, cases: dict[str, Case]) -> None:
    """Blocks run one after the other here: a cell that two groups share would not be seen."""
    part = cases[name].tiles.parts[0]
    last = part.steps[-1]
    assert isinstance(last, LastBlock)
    counts: Counter[int] = Counter()
    for place in np.ndindex(*part.shape):
        values = dict(zip(part.grid, map(constant, place), strict=True))
        counts[substitute(last.cell, values).const] += 1
    assert set(counts.values()) == {last.total}


def test_no_part_of_k_is_apart() -> None:
    """Sums of a part of K are no sums of results."""

    def splits(kernel: Kernel) -> int:
        tiles: TileKernel = contract_cuda.build(kernel, cuda_target("sm_90a"))
        return next(axis.size for axis in tiles.parts[0].grid if axis.name in ("split", "piece"))

    kernel = matmul_kernel(256, 256, 4096, float32)
    assert splits(kernel) > 1
    assert splits(with_statistics(kernel)) == 1


def test_results_need_not_be_stored() -> None:
    x, w = leaf(32768, 256), leaf(256, 64)
    plan = schedule([build.matmul(x, w).reduce("sum", (0,))], H200)
    (part,) = verify(contract_cuda.build(plan.kernels[0], H200)).parts
    reducing = part.steps[1:]
    assert [type(step) for step in reducing] == [Accumulate, Assign, LastBlock]


def test_what_is_reduced_and_kept() -> None:
    kernel = with_statistics(matmul_kernel(40, 30, 20, float32), True)
    c = analyse(kernel)
    assert [number for number, _ in reductions(c)] == [2, 3]
    assert is_kept(c, c.rows) and not is_kept(c, c.columns)
