"""The program interpreter equals the Loop-IR interpreter, for CPU and CUDA programs."""

import numpy as np
import pytest
from cases import BINARY, INTEGER, UNARY, Case, binary, unary
from compare import check_arrays
from harness import TARGET
from structured import STRUCTURED

from picograd.codegen.interpret_program import interpret
from picograd.codegen.pipeline import linearize, tile
from picograd.codegen.program import Instr, Program, format_program, verify
from picograd.dtype import DType, bool_, float32, int8, int32, uint8, uint64
from picograd.errors import InternalError
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
    compare(unary(name, float32, 60), TARGET)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    compare(binary(name, float32, 60), TARGET)


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", [int32, uint8], ids=lambda d: d.name)
def test_integer(name: str, dtype: DType) -> None:
    compare(binary(name, dtype, 60), TARGET)


@pytest.mark.parametrize("dtype, a", [(int8, 100), (uint64, (1 << 63) + 1)])
def test_integers_are_multiplied_and_added_as_such(dtype: DType, a: int) -> None:
    """What does not fit is cut off; floats would limit it, and know 53 bits of it."""
    instructions = [
        Instr("param", dtype, arg=0),
        Instr("param", dtype, arg=1),
        Instr("thread", int32),
        Instr("load", dtype, (0, 2)),
        Instr("fma", dtype, (3, 3, 3)),
        Instr("store", dtype, (1, 2, 4)),
    ]
    program = Program("f", tuple(instructions), ((dtype, "in"), (dtype, "out")), threads=1)
    x, out = np.array([a], dtype.numpy), np.zeros(1, dtype.numpy)
    interpret(program, [x, out], ())
    assert out[0] == (x * x + x)[0]


def shifted(by: int, has_barrier: bool = True) -> Program:
    """Two blocks, side by side, pass numbers to the thread `by` places up through shared memory."""
    instructions = [
        Instr("param", float32, arg=0),
        Instr("param", float32, arg=1),
        Instr("shared", float32, arg=0),
        Instr("thread", int32),
        Instr("task", int32),
        Instr("const", int32, arg=32),
        Instr("mul", int32, (4, 5)),
        Instr("add", int32, (6, 3)),
        Instr("load", float32, (0, 7)),
        Instr("const", int32, arg=by),
        Instr("add", int32, (3, 9)),
        Instr("store", float32, (2, 10, 8)),
        *[Instr("barrier", None)] * has_barrier,
    ]
    instructions += [
        Instr("load", float32, (2, 3)),
        Instr("store", float32, (1, 7, len(instructions))),
    ]
    params = (float32, "in"), (float32, "out")
    return Program("s", tuple(instructions), params, threads=32, tasks=2, shared_bytes=132)


def test_blocks_side_by_side_have_their_own_shared_memory() -> None:
    given, made = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    interpret(verify(shifted(1)), [given, made])
    assert made.tolist() == [0, *range(31), 0, *range(32, 63)]


def counted(*barriers: bool) -> Program:
    """Count the threads of a block by their lowest bit; the first two store what was counted."""
    instructions = [
        Instr("param", int32, arg=0),
        Instr("shared", int32, arg=0),
        Instr("thread", int32),
        Instr("const", int32, arg=2),
        Instr("const", int32, arg=0),
        Instr("remainder", int32, (2, 3)),
        Instr("less", bool_, (2, 3)),
        Instr("store", int32, (1, 2, 4, 6)),
    ]
    instructions += [Instr("barrier", None)] * barriers[0] + [Instr("count", None, (1, 5))]
    instructions += [Instr("barrier", None)] * barriers[1]
    at = len(instructions)
    instructions += [Instr("load", int32, (1, 5)), Instr("store", int32, (0, 2, at, 6))]
    return Program("c", tuple(instructions), ((int32, "out"),), threads=37, shared_bytes=8)


def test_threads_count_in_any_order_between_barriers() -> None:
    made = np.zeros(2, np.int32)
    interpret(verify(counted(True, True)), [made])
    assert made.tolist() == [19, 18]
    for barriers in ((False, True), (True, False)):
        with pytest.raises(InternalError, match="without a barrier"):
            interpret(verify(counted(*barriers)), [made])


def told(is_waited: bool) -> Program:
    """Blocks of a cluster of two tell one another their numbers, and store that of the second."""
    instructions = [
        Instr("param", float32, arg=0),
        Instr("shared", float32, arg=0),
        Instr("task", int32),
        Instr("const", int32, arg=2),
        Instr("remainder", int32, (2, 3)),
        Instr("cast", float32, (2,)),
        Instr("store_near", None, (1, 4, 5), 2),
        Instr("cluster_wait" if is_waited else "cluster_arrive", None, arg=2),
        Instr("const", int32, arg=1),
        Instr("load", float32, (1, 8)),
        Instr("store", float32, (0, 2, 9)),
    ]
    params = ((float32, "out"),)
    return Program("t", tuple(instructions), params, threads=32, tasks=4, shared_bytes=8)


def test_blocks_of_a_cluster_read_what_they_were_told() -> None:
    made = np.zeros(4, np.float32)
    interpret(verify(told(True)), [made])
    assert made.tolist() == [1, 1, 3, 3]


def test_what_was_not_waited_for_is_a_race() -> None:
    with pytest.raises(InternalError, match="without a barrier"):
        interpret(verify(told(False)), [np.zeros(4, np.float32)])


@pytest.mark.parametrize(
    "program, problem",
    [(shifted(2), "outside its memory"), (shifted(1, False), "without a barrier")],
    ids=["too far", "race"],
)
def test_faults_of_blocks_side_by_side_are_found(program: Program, problem: str) -> None:
    with pytest.raises(InternalError, match=problem):
        interpret(verify(program), [np.zeros(64, np.float32)] * 2)
