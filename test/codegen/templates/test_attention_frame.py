"""What kernels on Hopper that stream over scores share."""

import plain_nodes
from attention_forms import causal, plain

from picograd.buffer import Buffer, Storage
from picograd.codegen.streams import analyse
from picograd.codegen.templates.attention_frame import Frame, Schedule
from picograd.dtype import bfloat16
from picograd.helpers import product
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

TARGET = cuda_target("sm_90a")


def stream_of(form, *shape):
    memory = [Storage(Buffer("cpu", bfloat16, product(shape), 0)) for _ in range(3)]
    plan = schedule([form(*(plain_nodes.buffer(each, shape) for each in memory))], TARGET)
    (kernel,) = plan.kernels
    return analyse(kernel, kernel.parts[0])


def test_a_mask_says_where_the_stream_stops():
    frame = Frame(stream_of(causal, 1, 2, 512, 64), Schedule(2, 128, (40, 232)), TARGET)
    first, stop = frame.shown()
    assert first is None and stop is not None


def test_what_is_held_has_two_stages_where_it_is_small():
    stream = stream_of(plain, 1, 2, 512, 64)
    frame = Frame(stream, Schedule(2, 128, (40, 232)), TARGET)
    (score,) = stream.scores
    held, ring = frame.hold(score.row, score.depth), frame.streamed(score.streamed, score.depth)
    frame.fill_memory(())
    assert (frame.tiles[held].stages, frame.tiles[ring].stages) == (2, 4)
    assert frame.hold(score.row, score.depth) == held, "it is copied once"
