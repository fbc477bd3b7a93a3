"""What others read of scores is stored by a stream: gradients of a bias of every place."""

import pytest
from attention_forms import biased, plain, product, spread, weigh, with_gradients
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import bfloat16, float16, float32
from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.node import toposort
from picograd.schedule import score_boxes
from picograd.schedule.kept_scores import fit_scores
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

HOPPER = cuda_target("sm_90a")
SHAPES = (2, 3, 20, 8), (2, 3, 24, 8), (2, 3, 24, 8)


@pytest.fixture(autouse=True)
def gradients_of_float32(monkeypatch):
    """Let them stream: a GPU leaves them to products while there is memory."""
    monkeypatch.setattr(score_boxes, "FEW_BYTES", 0)


def heroes(roots, target=HOPPER):
    return [kernel.hero for kernel in schedule(roots, target).kernels]


@pytest.mark.parametrize("axes", [(2, 3, 20, 24), (3, 20, 24), (1, 1, 20, 24), (2, 1, 20, 24)])
def test_gradients_of_a_bias_are_stored_beside_those_of_queries(axes):
    is_whole = axes[0] * axes[-3] == 6
    roots = with_gradients(biased, *SHAPES, axes)
    plan = check_plan(roots, 3 if is_whole else 4, 1e-4, HOPPER)
    assert [kernel.hero for kernel in plan.kernels].count("attention") == 3
    assert "attention" not in heroes(roots, TARGET)  # where rows are in lanes they lie across


@pytest.mark.parametrize("axes", [(2, 3, 40, 40), (3, 40, 40)])
def test_of_16_bit_floats(axes):
    leaves = [leaf(2, 3, 40, 64, dtype=bfloat16) for _ in range(3)] + [leaf(*axes, dtype=bfloat16)]
    output = biased(*leaves)
    found = gradient([(output, leaf(*output.shape, dtype=bfloat16))], leaves)
    count = 3 if len(axes) == 4 else 4
    assert len(heroes([output, *found])) == count


@pytest.mark.parametrize(
    ("axes", "dtype", "expected"),
    [
        ((3, 40, 40), bfloat16, bfloat16),
        ((2, 1, 40, 40), bfloat16, bfloat16),
        ((3, 40, 40), float32, float32),
        ((3, 40, 40), float16, float32),  # small ones would be lost before they are summed
    ],
)
def test_what_is_summed_to_bfloat16_is_stored_so(axes, dtype, expected):
    leaves = [leaf(2, 3, 40, 64, dtype=bfloat16) for _ in range(3)]
    bias = leaf(*axes, dtype=dtype)
    scores = product(*leaves[:2]).cast(float32)
    scores = scores + spread(bias.cast(float32), scores.shape)
    output = weigh(build.softmax(scores, 3).cast(bfloat16), leaves[2])
    found = gradient([(output, leaf(*output.shape, dtype=bfloat16))], [*leaves, bias])
    kernels = schedule([output, *found], HOPPER).kernels
    (last,) = (each for each in kernels if each.hero != "attention")
    assert [slot.dtype for slot in last.slots] == [expected, dtype]


def test_weights_that_are_wanted_beside_the_result_stay_in_memory():
    """No stream could store them: it has their maximum at its end."""
    q, k, v = (leaf(*shape) for shape in SHAPES)
    weights = build.softmax(product(q, k), 3)
    roots = [weigh(weights, v), weights]
    assert "attention" not in heroes(roots)
    roots = expand_composites(roots, target=HOPPER)
    assert fit_scores(roots, toposort(roots), HOPPER) == roots
    q, v = (leaf(2, 3, 40, 64, dtype=bfloat16) for _ in range(2))
    k = leaf(2, 3, 64, 40, dtype=bfloat16).permute((0, 1, 3, 2))  # what a stream would copy
    weights = build.softmax(product(q, k), 3)
    assert "map" not in heroes([weigh(weights, v), weights])


def test_scores_that_a_later_stream_reads_changed_are_not_stored_by_it():
    """Their sum over the batch would be there only behind the stream that waits for it."""
    q, k, v = (leaf(*shape) for shape in SHAPES)
    s = product(q, k)
    shift = s.reduce("sum", (0,), True).expand(s.shape)
    output = weigh(build.softmax(s + shift, 3), v)
    found = gradient([(output, leaf(*output.shape))], [q, k, v])
    check_plan([output, *found], None, 1e-4, HOPPER)


def test_one_of_two_attentions_stays_in_memory():
    """What keeps the weights of one says nothing of the other."""
    q, k, v = (leaf(*shape) for shape in SHAPES)
    weights = build.softmax(product(q, k), 3)
    roots = with_gradients(biased, *SHAPES, (2, 3, 20, 24))
    assert heroes([weigh(weights, v), weights, *roots]).count("attention") == 3


def test_a_plain_attention_is_as_it_was():
    assert heroes(with_gradients(plain, *SHAPES)).count("attention") == 3
