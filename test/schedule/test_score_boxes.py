"""Which streams a GPU has a kernel for."""

import pytest
from attention_forms import by_hand, causal, plain, repeated, with_gradients
from plan_support import TARGET, leaf

from picograd.dtype import bfloat16, float16, float32, float64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import toposort
from picograd.number import GivenInt
from picograd.schedule import score_boxes
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")
SHAPE = (2, 3, 40, 64)


@pytest.fixture(autouse=True)
def gradients_of_float32(monkeypatch):
    """What the schedule leaves to products, the kernels here are written for."""
    monkeypatch.setattr(score_boxes, "FEW_BYTES", 0)


def heroes(roots, target=HOPPER):
    plan = schedule(roots, target)
    return [kernel.hero for kernel in plan.kernels], plan.reasons


def operands(shape=SHAPE, dtype=bfloat16):
    return [leaf(*shape, dtype=dtype) for _ in range(3)]


def test_only_where_a_product_has_the_size_of_an_exponential_scores_are_looked_for():
    product = leaf(32, 64).contract(leaf(64, 10), ((0, 1), (1, 2), (0, 2)))  # too few on a CPU
    asked = [by_hand(*operands()), product.unary("exp"), product.reduce("sum", (1,)).unary("exp")]
    orders = [toposort([each]) for each in asked]
    assert [score_boxes.has_scores(order, TARGET) for order in orders] == [True, False, False]
    assert [score_boxes.has_scores(order, HOPPER) for order in orders] == [True, True, False]


@pytest.mark.parametrize("dtype", [bfloat16, float16])
@pytest.mark.parametrize("form", [plain, causal, by_hand])
def test_attention_of_16_bit_floats_is_one_kernel(form, dtype):
    found, _ = heroes([form(*operands(dtype=dtype))])
    assert found == ["attention"]


def test_views_that_boxes_can_have():
    q, k, v = (x.permute((0, 2, 1, 3)) for x in operands((2, 40, 3, 64)))
    assert heroes([plain(q, k, v)])[0] == ["attention"]


@pytest.mark.parametrize(
    "shape, dtype, target",
    [
        (SHAPE, float64, HOPPER),
        ((2, 3, 40, 36), bfloat16, HOPPER),  # rows of 72 bytes
        (SHAPE, bfloat16, cuda_target("sm_80")),
    ],
    ids=["float64", "rows", "sm_80"],
)
def test_others_are_in_memory_and_the_plan_says_why(shape, dtype, target):
    found, reasons = heroes([plain(*operands(shape, dtype))], target)
    assert "attention" not in found
    assert any("kept scores" in reason for reason in reasons)


@pytest.mark.parametrize(
    "begin, copies", [((0, 0, 8, 0), 0), ((0, 0, 0, 8), 1), ((0, 0, 8, 8), 1), ((1, 2, 3, 0), 1)]
)
def test_slices_that_begin_at_numbers_of_the_plan(begin, copies):
    """They begin anywhere: columns at no multiple of 16 bytes, and each is a dimension of boxes."""
    q, k, v = operands()
    sizes = [size + 8 for size in SHAPE]
    starts = [GivenInt(start) if start else 0 for start in begin]
    ranges = tuple((s, s + n, 1) for s, n in zip(starts, SHAPE, strict=True))
    for place in range(2):
        own = [q, k, v]
        own[place + 1] = leaf(*sizes, dtype=bfloat16).slice(ranges)
        plan = schedule([plain(*own)], HOPPER)
        assert [kernel.hero for kernel in plan.kernels] == ["map"] * copies + ["attention"]


def test_values_of_more_columns_than_registers_hold_are_in_memory():
    q, k, _ = operands()
    found, reasons = heroes([plain(q, k, leaf(2, 3, 40, 264, dtype=bfloat16))])
    assert "attention" not in found and any("up to 256" in reason for reason in reasons)


@pytest.mark.parametrize("target", [HOPPER, cuda_target("sm_80")], ids=["sm_90a", "sm_80"])
def test_float32_streams_on_every_gpu(target):
    assert heroes([causal(*operands(dtype=float32))], target)[0] == ["attention"]
    found = heroes(with_gradients(plain, SHAPE, SHAPE, SHAPE), target)[0]
    assert found.count("attention") == 3


def test_of_operands_of_two_dtypes_one_is_copied():
    q, k, v = operands(dtype=float32)
    half = k.cast(bfloat16).cast(float32)
    assert heroes([plain(q, half, v)])[0] == ["map", "attention"]


def test_an_operand_larger_than_scores_is_stored():
    q, k, v = (leaf(2, 3, size, 64, dtype=bfloat16) for size in (16, 128, 128))
    assert heroes([plain(q, k.unary("tanh"), v)])[0] == ["map", "attention"]


@pytest.mark.parametrize("rows, columns, count", [(1, 40, 1), (40, 1, 0), (1, 1, 0)])
def test_few_rows_stream_and_few_columns_do_not(rows, columns, count):
    q, k, v = (leaf(2, 3, size, 64, dtype=bfloat16) for size in (rows, columns, columns))
    assert heroes([plain(q, k, v)])[0].count("attention") == count


def test_heads_may_be_repeated_in_one_way():
    q, k, v = (leaf(2, heads, 40, 64, dtype=bfloat16) for heads in (6, 3, 3))
    assert heroes([plain(q, repeated(k, 2), repeated(v, 2))])[0] == ["attention"]
    fewer = leaf(2, 2, 40, 64, dtype=bfloat16)
    found = heroes([plain(q, repeated(k, 2), repeated(fewer, 3))])[0]
    assert found == ["map", "attention"]  # one of them is copied


def test_gradients_of_wide_heads_are_parts_of_one_kernel():
    shape = 2, 3, 40, 192
    found = heroes(with_gradients(plain, shape, shape, shape))[0]
    assert found.count("attention") == 3


def gradients(dtype, target):
    def form(q, k, v):
        return plain(q.cast(dtype), k.cast(dtype), v.cast(dtype)).cast(float32)

    return heroes(with_gradients(form, SHAPE, SHAPE, SHAPE), target)[0]


def test_gradients_of_16_bit_floats_stream():
    """The result with its cast, dq with sums of rows, and dk with dv; others are cast apart."""
    found = gradients(bfloat16, HOPPER)
    assert found == ["map", "attention", "attention", "attention", "map"]


def test_gradients_of_others_are_in_memory_on_a_gpu():
    assert "attention" not in gradients(float64, HOPPER)
    assert gradients(float32, TARGET).count("attention") == 2


def test_gradients_of_float32_are_products_while_scores_are_small(monkeypatch):
    scores = 2 * 3 * 40 * 40 * 4
    for limit, count in ((scores, 0), (scores - 1, 3)):
        monkeypatch.setattr(score_boxes, "FEW_BYTES", limit)
        assert gradients(float32, HOPPER).count("attention") == count


def test_an_operand_that_is_detached_and_wanted():
    """A name that is asked for is a step on the way to memory."""
    q, k, v = operands()
    named = build.detach(k + 1.0)
    assert "attention" in heroes([plain(q, named, v), named])[0]


def two_layers(x, first, second, act):
    labels = (0, 1, 2), (0, 2, 3), (0, 1, 3)
    return act(x.contract(first, labels)).contract(second, labels)


def squared(x):
    positive = x.binary("maximum", 0.0)
    return positive * positive


def dear(x):
    """Many operations, more with the gradient."""
    for _ in range(3):
        x = x * (x.unary("tanh") + 1.0)
    return x


@pytest.mark.parametrize("act, size, count", [
    (squared, 64, (1, 2)), (squared, 128, (1, 2)), (squared, 256, (1, 0)), (dear, 64, (1, 0)),
])  # fmt: skip
def test_two_products_in_turn_stream_where_that_is_faster(act, size, count):
    """As of experts: forward, and with gradients."""
    shapes = (2, 1024, size), (2, size, 512), (2, 512, size)
    leaves = [leaf(*shape, dtype=bfloat16) for shape in shapes]
    output = two_layers(*leaves, act)
    found = gradient([(output, leaf(*output.shape, dtype=bfloat16))], leaves)
    plans = [schedule(roots, HOPPER).kernels for roots in ([output], [output, *found])]
    kinds = [[kernel.hero for kernel in kernels].count("attention") for kernels in plans]
    assert tuple(kinds) == count


def test_what_is_dear_streams_where_the_cache_has_no_room(monkeypatch):
    shapes = (2, 1024, 64), (2, 64, 512), (2, 512, 64)
    leaves = [leaf(*shape, dtype=bfloat16) for shape in shapes]
    output = two_layers(*leaves, dear)
    found = gradient([(output, leaf(*output.shape, dtype=bfloat16))], leaves)
    monkeypatch.setattr(score_boxes, "CACHED_BYTES", 1 << 20)
    kernels = schedule([output, *found], HOPPER).kernels
    assert [kernel.hero for kernel in kernels].count("attention") == 2
