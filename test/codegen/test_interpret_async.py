"""Races that the interpreter of programs finds in a pipeline that lacks one instruction."""

import dataclasses

import numpy as np
import pytest
from box_products import results

from picograd.codegen.interpret_async import ARRIVED, READ, SEEN, Traffic
from picograd.codegen.program import Instr
from picograd.dtype import bfloat16
from picograd.errors import InternalError

CASE = dict(m=256, n=256, k=640, dtype=bfloat16, b="nk")


def numbers_of(program, op):
    return [n for n, instr in enumerate(program.instructions) if instr.op == op]


def without(op, which=0):
    """Replace an instruction by one that does nothing."""

    def change(program):
        instructions = list(program.instructions)
        instructions[numbers_of(program, op)[which]] = Instr("barrier_publish", None)
        return dataclasses.replace(program, instructions=tuple(instructions))

    return change


def altered(op, which=0, **facts):
    """Change an instruction."""

    def change(program):
        instructions = list(program.instructions)
        number = numbers_of(program, op)[which]
        instructions[number] = dataclasses.replace(instructions[number], **facts)
        return dataclasses.replace(program, instructions=tuple(instructions))

    return change


def everybody(program):
    """Let all lanes of the first warp copy."""
    instructions = list(program.instructions)
    (elect,) = numbers_of(program, "elect")
    both = next(n for n, instr in enumerate(instructions) if elect in instr.args)
    is_first_warp = instructions[both].args[0]
    args = (is_first_warp, is_first_warp)
    instructions[both] = dataclasses.replace(instructions[both], args=args)
    return dataclasses.replace(program, instructions=tuple(instructions))


BROKEN = {
    "nobody waits for a free stage": (without("barrier_wait", 0), "overwritten before it was read"),
    "nobody waits for a full stage": (without("barrier_wait", 2), "read before it arrived"),
    "stages are never released": (without("barrier_arrive", 0), "wait for one another"),
    "a barrier expects too few bytes": (altered("barrier_expect", arg=64), "more bytes"),
    "a barrier expects too many bytes": (
        altered("barrier_expect", arg=1 << 20),
        "wait for one another",
    ),
    "barriers are not initialised": (without("barrier_init", 3), "not initialised"),
    "products are not waited for": (without("wgmma_wait", 1), "under way is read"),
    "products are in no group": (without("wgmma_commit"), "in no group"),
    "a slot is filled while it leaves": (without("store_box_wait", 2), "before it left"),
    "the last boxes are not waited for": (without("store_box_wait", -1), "never waited for"),
    "a box is stored without a barrier": (without("warp_barrier", 1), "without a barrier"),
    "the copy engine does not see stores": (without("async_fence"), "without a fence"),
    "many threads copy": (everybody, "more arrivals"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_races_are_found(name):
    change, problem = BROKEN[name]
    with pytest.raises(InternalError, match=problem):
        results(CASE, change=change)


def test_a_whole_program_has_none():
    want, _, found = results(CASE)
    assert abs(found - want).max() < 8e-3 * abs(want).max()


def test_elements_of_a_box_are_read_once_it_may_be():
    traffic = Traffic(None, 8)
    traffic.state[:] = ARRIVED
    with pytest.raises(InternalError, match="read before it arrived"):
        traffic.read(np.array([0]), 2)
    traffic.state[:] = SEEN
    traffic.read(np.array([0, 4]), 2)
    assert traffic.state.tolist() == [READ, READ, SEEN, SEEN] * 2
