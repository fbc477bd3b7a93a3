"""Parts of formulas that have one value a row, or one a place of the stream."""

import math

from attention_forms import is_seen, product, weigh
from plan_support import leaf

from picograd.codegen.boxes import Pipeline
from picograd.codegen.templates import attention_cuda, attention_vectors
from picograd.dtype import bfloat16, bool_, int64
from picograd.graph import build
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, const
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")


def documents(q, k, v, numbers):
    """Rows see what is before them in their own document."""
    s = product(q, k) * 0.3
    rows, columns = (numbers.reshape(x).expand(s.shape) for x in ((1, 1, 300, 1), (1, 1, 1, 300)))
    seen = is_seen(s).binary("bitwise_and", rows.binary("equal", columns))
    return weigh(build.softmax(seen.where(s, -math.inf), 3), v)


def loop_of(form, rows, *others):
    q, k, v = (leaf(1, 2, count, 64, dtype=bfloat16) for count in (rows, 300, 300))
    (kernel,) = schedule([form(q, k, v, *others)], HOPPER).kernels
    (loop,) = attention_cuda.build(kernel, HOPPER).parts[0].steps
    (pipeline,) = (step for step in loop.body if isinstance(step, Pipeline))
    return loop, pipeline


def test_numbers_of_rows_and_places_are_read_once():
    loop, pipeline = loop_of(documents, 300, leaf(300, dtype=int64))
    assert "row0" in [getattr(step, "tile", "") for step in loop.body]
    assert [step.tile for step in pipeline.produce] == ["boxes1", "boxes2", "place0"]
    assert "s0[" not in str(pipeline.consume)


def test_positions_in_a_mask_of_both_still_say_where_the_stream_stops():
    _, pipeline = loop_of(documents, 300, leaf(300, dtype=int64))
    assert pipeline.stop is not None


def test_scores_of_one_row_are_no_vector():
    """Where there is one row, and one head, all that has a place has one value a place."""

    def form(q, k, v, count):
        s = product(q, k) * 0.3
        seen = s.iota(3).binary("less", count.reshape((1, 1, 1, 1)).expand(s.shape))
        return weigh(build.softmax(seen.where(s, -math.inf), 3), v)

    q, k, v = (leaf(1, 1, count, 64, dtype=bfloat16) for count in (1, 300, 300))
    (kernel,) = schedule([form(q, k, v, leaf(1, dtype=int64))], HOPPER).kernels
    (loop,) = attention_cuda.build(kernel, HOPPER).parts[0].steps
    (pipeline,) = (step for step in loop.body if isinstance(step, Pipeline))
    assert [step.tile for step in pipeline.produce] == ["boxes1", "boxes2"]


def test_what_reads_is_not_drawn():
    """It is known where its tile is filled; places alone are known in each round."""

    def compared(first):
        for number in range(attention_vectors.DEAR):
            first = Expr("add", (first, const(number, int64)), None, int64)
        return Expr("less", (first, const(3, int64)), None, bool_)

    place = axis_index(Axis("place", 8))
    drawn = compared(Expr("index", (), place, int64))
    read = compared(Expr("load", (), (0, place), int64))
    assert attention_vectors.drawn_in([read, drawn]) == [drawn]
