"""Panels that turn in registers: which eliminations they are, and their kernels as compiled.

What they compute is tested beside the other eliminations, in test_elimination.py.
"""

import re
from pathlib import Path

import pytest
from cuda_tools import H200, compile_cuda, disassemble, source_of
from rowwise_cases import leaf

from picograd.codegen.pipeline import tile
from picograd.codegen.templates import panels
from picograd.codegen.tile import For, TileKernel
from picograd.dtype import float32
from picograd.graph.elimination import eliminate
from picograd.schedule.loop import Kernel
from picograd.schedule.schedule import schedule


def kernel_of(kind: str, count: int, shape: tuple[int, int, int]) -> Kernel:
    node = eliminate(leaf(shape, float32, "cuda:0"), kind, count)
    kernel: Kernel = schedule([node], H200).steps[-1].kernel  # type: ignore[union-attr]
    return kernel


def tiles_of(kind: str, count: int, shape: tuple[int, int, int]) -> TileKernel:
    return tile(kernel_of(kind, count, shape), H200)


@pytest.mark.parametrize(
    ("kind", "count", "shape", "expected"),
    [
        ("panel", 32, (1, 1024, 32), True),
        ("below", 32, (8, 64, 32), True),
        ("cholesky", 32, (8, 32, 32), True),
        ("below", 64, (8, 128, 64), True),
        ("cholesky", 33, (8, 33, 33), True),
        ("cholesky", 128, (8, 128, 128), True),
        ("cholesky", 129, (8, 129, 129), False),
        ("lower", 32, (8, 32, 96), True),
        ("unit_lower", 8, (8, 8, 24), True),
        ("lower", 32, (8, 32, 33), False),  # one column leaves no thread work of its own
        ("upper", 32, (8, 32, 96), False),
        ("lu", 32, (8, 32, 32), False),
        ("solve", 8, (8, 8, 24), False),
    ],
)
def test_what_turns(kind: str, count: int, shape: tuple[int, int, int], expected: bool) -> None:
    step = kernel_of(kind, count, shape).parts[0].along
    assert panels.turns(step) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "count", "shape"),
    [
        ("panel", 32, (1, 1024, 32)),
        ("panel", 8, (1, 4096, 8)),
        ("below", 32, (8, 64, 32)),
        ("below", 64, (8, 128, 64)),
        ("cholesky", 128, (8, 128, 128)),
        ("lower", 32, (1, 32, 96)),
    ],
)
def test_steps_are_a_loop_in_registers(
    kind: str, count: int, shape: tuple[int, int, int], tmp_path: Path
) -> None:
    """Nothing spills, and what is read from memory for a step is short, as steps are a loop."""
    made = tiles_of(kind, count, shape)
    _, *loops = [step for step in made.parts[0].steps if isinstance(step, For)]
    assert [step.axis.size for step in loops] == [count]
    cubin, _ = compile_cuda(source_of(made)[0], "sm_90a")
    text = disassemble(cubin, tmp_path)
    assert "STL" not in text and "LDL" not in text
    assert text.count(";") < 2000


def test_others_skip_what_one_thread_shows() -> None:
    """The row of the pivot is written in one branch, not under a mask for each of its elements."""
    text = source_of(tiles_of("panel", 32, (1, 1024, 32)))[0]
    branch = r"if \(v\d+\) \{\n#pragma unroll\n +for \(int v\d+ = 0; v\d+ < (\d+)"
    assert re.findall(branch, text) == ["32"]


@pytest.mark.parametrize(("rows", "parts"), [(1024, 2), (512, 1), (256, 1)])
def test_a_matrix_is_read_many_elements_at_a_time(rows: int, parts: int) -> None:
    made = tiles_of("panel", 32, (1, rows, 32))
    first = made.parts[0].steps[0]
    assert isinstance(first, For) and first.axis.size == parts
