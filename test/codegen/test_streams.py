"""Streams: the parts of an attention kernel, and replacing parts of expressions."""

from attention_forms import causal, plain, with_gradients
from plan_support import TARGET, leaf

from picograd.codegen.streams import analyse, is_tile, read, replaced, unconverted
from picograd.dtype import float32
from picograd.schedule import both_sides
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, binary, const
from picograd.schedule.schedule import schedule

SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 12)


def streams(roots):
    plan = schedule(roots, TARGET)
    kernels = [kernel for kernel in plan.kernels if kernel.hero == "attention"]
    return [analyse(kernel, kernel.parts[0]) for kernel in kernels]


def sizes(axes):
    return [axis.size for axis in axes]


def test_axes_of_a_forward_pass():
    (stream,) = streams([plain(*(leaf(*shape) for shape in SHAPES))])
    assert sizes(stream.batch) == [6] and sizes(stream.rows) == [20] and sizes(stream.over) == [24]
    (score,), (product,) = stream.scores, stream.products
    assert sizes(score.depth) == [8] and sizes(product.columns) == [12]
    assert stream.exponential == "exp" and stream.peak == 1 and stream.sums == (2,)
    assert stream.reductions == (1, 2)
    assert stream.is_repaired(2) and stream.is_repaired(product.number)


def test_gradients_have_two_products_of_scores_and_know_their_totals():
    *_, stream = streams(with_gradients(causal, *SHAPES))
    assert len(stream.products) == 1 and len(stream.across) == 2 and not stream.row_stops
    assert stream.peak is None and not stream.sums and len(stream.scores) == 2


def test_gradients_of_rows_and_of_columns_apart(monkeypatch):
    monkeypatch.setattr(both_sides, "MOST_BYTES", 0)
    *_, first, second = streams(with_gradients(causal, *SHAPES))
    assert {len(first.products), len(second.products)} == {1, 2}
    for stream in (first, second):
        assert stream.peak is None and not stream.sums and len(stream.scores) == 2
        assert not stream.across


def test_the_outermost_part_is_replaced():
    x = Expr("load", (), (0, axis_index(Axis("a", 4))), float32)
    inner = binary("add", x, const(1.0, float32))
    outer = binary("mul", inner, inner)
    zero = const(0.0, float32)
    assert replaced(outer, {inner: x, x: zero}.get) == binary("mul", x, x)
    assert replaced(outer, {outer: zero, x: zero}.get) == zero
    assert replaced(outer, {}.get) is outer


def test_reads_of_tiles():
    value = read("t", (axis_index(Axis("a", 4)),), float32)
    assert is_tile(value) and not is_tile(const(1.0, float32))
    assert unconverted(Expr("cast", (value,), None, float32)) is value
