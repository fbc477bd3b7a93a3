"""Joins of scores with others: taken apart where nobody reads them whole, with the same values."""

import math

import numpy as np
import pytest
from attention_forms import is_seen, product, spread, weigh, with_gradients
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import bool_
from picograd.graph import build
from picograd.graph.build_composite import softmax
from picograd.graph.composites import join
from picograd.schedule.parted_joins import find_joins, part_joins

SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 12)
SINK = (1, 3, 1, 1)


def heroes(plan):
    return [kernel.hero for kernel in plan.kernels]


def scores(q, k):
    s = product(q, k) * 0.3
    return is_seen(s).where(s, -math.inf)


def cut(x, first, last):
    ranges = [(0, size, 1) for size in x.shape]
    ranges[-1] = (first, last, 1)
    return x.slice(tuple(ranges))


def logits(c, s, count=1):
    return spread(c, (*s.shape[:-1], count))


def sink_last(q, k, v, c):
    s = scores(q, k)
    return weigh(cut(softmax(join([s, logits(c, s)], 3), 3), 0, s.shape[3]), v)


def sink_first(q, k, v, c):
    s = scores(q, k)
    return weigh(cut(softmax(join([logits(c, s), s], 3), 3), 1, s.shape[3] + 1), v)


def shifted(q, k, v, c):
    """The maximum of the join is subtracted before the softmax, which subtracts it again."""
    s = scores(q, k)
    every = join([s, logits(c, s)], 3)
    top = every.reduce("max", (3,), True).expand(every.shape)
    return weigh(cut(softmax(every - top, 3), 0, s.shape[3]), v)


def masked_together(q, k, v, c):
    """A mask is joined, too."""
    s = product(q, k) * 0.3
    mask = spread(leaf(2, 1, 1, 24, dtype=bool_, below=2), s.shape)
    shown = join([build.const(True, (*s.shape[:-1], 1), bool_, "cpu"), mask], 3)
    every = shown.where(join([logits(c, s), s], 3), -math.inf)
    return weigh(cut(softmax(every, 3), 1, s.shape[3] + 1), v)


def value_of_sink(q, k, v, c):
    """The weight of the sink is read, too."""
    s = scores(q, k)
    w = softmax(join([s, logits(c, s)], 3), 3)
    rest = cut(w, s.shape[3], s.shape[3] + 1)
    out = weigh(cut(w, 0, s.shape[3]), v)
    return out + rest.expand(out.shape) * 2.0


def masked_by_places(q, k, v, c):
    """Places are counted along the join, which begins with the sink."""
    s = product(q, k) * 0.3
    every = join([logits(c, s), s], 3)
    shown = every.iota(3).binary("less", every.iota(2) + 2)
    return weigh(cut(softmax(shown.where(every, -math.inf), 3), 1, s.shape[3] + 1), v)


def last_places(q, k, v, c):
    """Some of the scores are read alone, behind the sink."""
    s = scores(q, k)
    w = softmax(join([logits(c, s), s], 3), 3)
    rows = v.slice(tuple((8 * (axis == 2), size, 1) for axis, size in enumerate(v.shape)))
    return weigh(cut(w, 9, s.shape[3] + 1), rows)


def zero_last(q, k, v):
    """A logit of 0, by padding."""
    s = scores(q, k)
    return weigh(cut(softmax(s.pad(((0, 0), (0, 0), (0, 0), (0, 1)), 0.0), 3), 0, s.shape[3]), v)


@pytest.mark.parametrize("form", [sink_last, sink_first, shifted, masked_together])
def test_sinks_stream(form):
    np.random.seed(0)
    shapes = *SHAPES, SINK
    plan = check_plan([form(*(leaf(*shape) for shape in shapes))], 1, 1e-5)
    assert heroes(plan) == ["attention"]
    plan = check_plan(with_gradients(form, *shapes), 3, 1e-4)
    assert heroes(plan).count("attention") == 2


@pytest.mark.parametrize("form, is_stream", [(masked_by_places, True), (last_places, False)])
def test_places_of_pieces(form, is_stream):
    np.random.seed(0)
    plan = check_plan([form(*(leaf(*shape) for shape in (*SHAPES, SINK)))], tolerance=1e-5)
    assert ("attention" in heroes(plan)) is is_stream
    check_plan(with_gradients(form, *SHAPES, SINK), tolerance=1e-4)


def test_a_logit_of_padding():
    np.random.seed(0)
    check_plan([zero_last(*(leaf(*shape) for shape in SHAPES))], 1, 1e-5)
    check_plan(with_gradients(zero_last, *SHAPES), 2, 1e-4)


def test_pieces_that_others_read():
    np.random.seed(0)
    plan = check_plan(with_gradients(value_of_sink, *SHAPES, SINK), tolerance=1e-4)
    assert "contract" not in heroes(plan)


def whole(q, k, v, c):
    """The joined weights are a result."""
    s = scores(q, k)
    return softmax(join([s, logits(c, s)], 3), 3)


def two_products(q, k, v, c):
    """Both pieces are products."""
    s = scores(q, k)
    w = softmax(join([s, product(q, k * 0.5) + logits(c, s, 24)], 3), 3)
    return weigh(cut(w, 0, 24), v) + weigh(cut(w, 24, 48), v)


def straddling(q, k, v, c):
    """What is cut out has elements of both pieces."""
    s = scores(q, k)
    w = softmax(join([logits(c, s), s], 3), 3)
    return weigh(cut(w, 0, s.shape[3]), v)


@pytest.mark.parametrize("form", [whole, two_products, straddling])
def test_others_stay(form):
    np.random.seed(0)
    leaves = [leaf(*shape) for shape in (*SHAPES, SINK)]
    plan = check_plan([form(*leaves)], tolerance=1e-5)
    assert "attention" not in heroes(plan)


def test_what_is_no_join():
    """Choices by value, pads on both sides, arrays that no product makes."""
    x, y = leaf(2, 16), leaf(2, 16)
    low, high = x.pad(((0, 0), (0, 4)), 0.0), y.pad(((0, 0), (0, 4)), 0.0)
    others = [
        low.binary("less", 0.5).where(low, high),
        low.iota(1)
        .binary("less", low.const_like(3).cast(build.iota((1,), 0, "cpu").dtype))
        .where(low, high),
        join([x, y], 1),
        x.pad(((0, 0), (2, 2)), 0.0),
    ]
    for each in others:
        assert find_joins([x, y, low, high, each]) == []
        assert part_joins([each], [x, y, low, high, each], TARGET) == [each]
