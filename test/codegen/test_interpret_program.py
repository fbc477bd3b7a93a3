"""The program interpreter equals the Loop-IR interpreter, for CPU and CUDA programs."""

import numpy as np
import pytest
from cases import BINARY, INTEGER, UNARY, Case, binary, unary
from compare import check_arrays
from harness import TARGET
from structured import STRUCTURED

from picograd import dtype as dtypes
from picograd.codegen.interpret_program import interpret
from picograd.codegen.pipeline import linearize, tile
from picograd.codegen.program import format_program, verify
from picograd.target import Target, cuda_target

TARGETS = {"llvm": TARGET, "cuda": cuda_target("sm_90a")}
SLOW = {"column_sum", "column_max", "total", "total_shape", "adam", "transpose", "transpose_batch"}


def compare(case: Case, target: Target) -> None:
    program = verify(linearize(tile(case.kernel, target), target))
    assert case.kernel.name in format_program(program)
    arrays = [np.copy(a) for a in case.arrays]
    interpret(program, arrays, case.scalars)
    check_arrays(case, arrays)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("name", [n for n in STRUCTURED if n not in SLOW])
def test_structured(name: str, target: Target) -> None:
    compare(STRUCTURED[name](), target)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    compare(unary(name, dtypes.float32, 60), TARGET)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    compare(binary(name, dtypes.float32, 60), TARGET)


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8], ids=lambda d: d.name)
def test_integer(name: str, dtype: dtypes.DType) -> None:
    compare(binary(name, dtype, 60), TARGET)
