"""What `verify` finds in programs with roles, barriers and products under way."""

import pytest

from picograd.code import TensorMap
from picograd.codegen.program import Instr, Mma, Program, Role, Wgmma, verify
from picograd.dtype import bfloat16, float32, int32, uint64
from picograd.errors import InternalError

MAP = TensorMap(0, bfloat16, 0, (64, 64), (64,), (64, 64))
SPEC = Wgmma(64, (bfloat16, bfloat16), 32, 0, 0, 0, True, True)
START = [
    Instr("param", bfloat16, arg=0),
    Instr("shared", bfloat16, arg=0),
    Instr("shared", uint64, arg=8192),
    Instr("const", int32, arg=0),
    Instr("tensor", None, arg=0),
    Instr("array", float32, arg=32),
]
EXPECT = Instr("barrier_expect", None, (2, 3), 8192)
WAIT = Instr("barrier_wait", None, (2, 3, 3))
PARITY, LATER = Instr("get", int32, (5, 3)), Instr("barrier_wait", None, (2, 3, 6))
COPY = Instr("copy_box", None, (4, 1, 3, 2, 3, 3, 3))
DESCRIBE = Instr("descriptor", uint64, (1, 3), 16)
MULTIPLY = Instr("wgmma", None, (5, 7, 7), SPEC)
COMMIT = Instr("wgmma_commit", None)
NOTHING = Instr("barrier_publish", None)
AT_ONCE = Instr("mma_packed", None, (5, 5, 1, 3), Mma(64, 16, 64, False))


def made(*instructions):
    whole = (*START, *instructions)
    return Program("p", whole, ((bfloat16, "in"),), threads=256, tensors=(MAP,))


def test_a_whole_pipeline_is_right():
    role = Instr("role", None, (), Role(0, 128))
    done = Instr("wgmma_wait", None, (5,), 0)
    get = Instr("get", float32, (5, 3))
    program = made(
        role, DESCRIBE, EXPECT, WAIT, COPY, MULTIPLY, COMMIT, done, get, Instr("end", None)
    )
    assert verify(program) is program and "role" in repr(program)


def test_stages_that_are_filled_once_wait_for_nobody():
    assert verify(made(EXPECT, COPY, WAIT))


@pytest.mark.parametrize(
    ("instructions", "problem"),
    [
        ((WAIT,), "waits, and nothing arrives"),
        ((EXPECT, COPY), "fills a stage without waiting"),
        ((PARITY, LATER, EXPECT, Instr("role", None, (), Role(0, 128)), COPY), "without waiting"),
        ((NOTHING, DESCRIBE, MULTIPLY, COMMIT), "never waited for"),
        (
            (NOTHING, DESCRIBE, MULTIPLY, COMMIT, Instr("get", float32, (5, 3))),
            "reads a product under way",
        ),
        ((NOTHING, DESCRIBE, MULTIPLY, COMMIT, AT_ONCE), "beside a product under way"),
        ((AT_ONCE, Instr("barrier_arrive", None, (2, 3))), "reads of boxes are not fenced"),
    ],
)
def test_what_is_missing_is_named(instructions, problem):
    closing = [Instr("end", None)] * sum(i.op == "role" for i in instructions)
    with pytest.raises(InternalError, match=problem):
        verify(made(*instructions, *closing))


def test_a_map_that_the_launch_has_not_is_refused():
    with pytest.raises(InternalError, match="names tensor 1 of 1"):
        verify(made(Instr("tensor", None, arg=1)))
