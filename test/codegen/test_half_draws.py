"""Draws of 16 bits in programs: blocks that lanes share, and what was drawn ahead."""

from picograd.codegen.decompose import CUDA
from picograd.codegen.emit import Emitter
from picograd.codegen.half_draws import half
from picograd.dtype import uint16, uint32, uint64
from picograd.schedule.draws import half_drawn
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Kernel, Part, const

THREAD, LANE = Axis("thread", 64), Axis("lane", 8)


def emitter_of() -> Emitter:
    kernel = Kernel("draw", "map", (), (), (Part((), ()),))
    emitter = Emitter(kernel, CUDA, lambda emitter, expr: 0)
    emitter.bind(THREAD, emitter.add("thread", emitter.index_dtype))
    return emitter


def products_of(emitter: Emitter) -> int:
    return sum(i.op == "mul" and i.dtype is uint64 for i in emitter.instructions)


def test_lanes_of_a_vector_share_blocks() -> None:
    """Eight neighbours are in four blocks, of 20 products each."""
    emitter = emitter_of()
    draw = half_drawn(const(3, uint64), const(0, uint64), axis_index(THREAD) * 8 + axis_index(LANE))
    with emitter.scope({LANE: emitter.integer(0)}, (LANE, LANE.size)):
        value = emitter.value(draw)
    packed = emitter.instructions[value]
    assert packed.op == "pack" and len(set(packed.args)) == 8
    assert products_of(emitter) <= 4 * 20


def test_what_was_drawn_ahead_is_read() -> None:
    emitter = emitter_of()
    draw = half_drawn(const(3, uint64), const(0, uint64), axis_index(THREAD))
    emitter.drawn[draw] = emitter.add("array", uint16, arg=64), axis_index(THREAD) + 1
    value = half(emitter, draw)
    assert emitter.dtype(value) is uint32
    assert emitter.instructions[emitter.instructions[value].args[0]].op == "get"
    assert not products_of(emitter)
