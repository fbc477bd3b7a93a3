"""Numbers that scale operands of scores, or products of weights: they scale scores and weights."""

import numpy as np
import pytest
from attention_forms import causal_twice, plain, product, scale_before, weigh
from plan_support import TARGET as CPU
from plan_support import VALUES, check_plan, leaf, run, schedule

from picograd.dtype import bfloat16, float16
from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.number import Given
from picograd.schedule.moved_factors import fit_numbers, move_factors, scale_results
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def both_scaled(q, k, v):
    return weigh(build.softmax(product(q * 0.5, k.permute((0, 1, 2, 3)) * 0.6), 3), v)


def values_scaled(q, k, v):
    return weigh(build.softmax(product(q, k) * 0.3, 3), v * 3.0)


def result_scaled(q, k, v):
    return causal_twice(q, k, v) * 0.5


def with_gradients(form, length=1024, dtype=bfloat16):
    leaves = [leaf(1, 2, length, 64, dtype=dtype) for _ in range(3)]
    output = form(*leaves)
    return [output, *gradient([(output, leaf(*output.shape, dtype=dtype))], leaves)]


@pytest.mark.parametrize("form", [scale_before, both_scaled, values_scaled, result_scaled])
def test_as_many_kernels_as_without(form):
    roots = with_gradients(form)
    assert len(schedule(roots[:1], GPU).kernels) == 1
    count = 4 if form is both_scaled else 3  # one stores what both read scaled
    assert len(schedule(roots, GPU).kernels) == count


@pytest.mark.parametrize("form", [scale_before, both_scaled, values_scaled, result_scaled])
def test_values_stay(form):
    np.random.seed(0)
    leaves = [leaf(1, 2, n, 8) for n in (40, 45, 45)]
    output = form(*leaves)
    roots = [output, *gradient([(output, leaf(*output.shape))], leaves)]
    for found, wanted in zip(
        run(schedule(roots, CPU)), interpret(roots, values=VALUES), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def is_moved(roots):
    """Whether the graph that the schedule shows is changed: composites are written out."""
    shown = expand_composites(roots, target=GPU)
    return move_factors(shown, toposort(shown), GPU) != list(shown)


def test_other_products_are_left_alone():
    """Those that do not stream, such as logits; and those of float16."""
    x, w = leaf(32, 64), leaf(64, 100)
    logits = (x * 0.5).contract(w, ((0, 1), (1, 2), (0, 2)))
    loss = build.log_softmax(logits, 1).reduce("sum", (0, 1))
    roots = [loss, *gradient([(loss, loss.const_like(1.0))], [x, w])]
    half = with_gradients(scale_before, 256, float16)
    whole = with_gradients(plain, 256)
    for each in (roots, half, half[:1], whole):
        assert not is_moved(each)
    assert is_moved(with_gradients(scale_before, 256))


PLAIN_PRODUCT = ((0, 1), (1, 2), (0, 2))


def number(value, node):
    """A number that a plan takes at run time, as one that a user gave."""
    return Node("scalar", (), Given(value), (), node.dtype, "cpu").broadcast_to(node.shape)


def scaled_forms(a, b, scale):
    """Products of operands that are scaled, in several ways, and gradients of them."""
    square = a.permute((1, 0))
    forms = [(a * 0.5, b), (a, b / 3.0), (a * 0.5, b * 0.25), (a * number(scale, a), b)]
    forms += [((square * -2.0).permute((1, 0)), b), (a / number(scale, a), b * 4.0)]
    made = [x.contract(y, PLAIN_PRODUCT) for x, y in forms]
    return made + gradient([(node, node.const_like(1.0)) for node in made], [a, b])


def test_products_are_scaled_on_a_gpu_and_not_what_they_read():
    a, b = leaf(40, 24), leaf(24, 32)
    for roots in ([x] for x in scaled_forms(a, b, 0.125)[:6]):
        found = check_plan(roots, 1, target=GPU)
        assert [kernel.hero for kernel in found.kernels] == ["contract"]
    check_plan(scaled_forms(a, b, 0.125), target=GPU)


def test_operands_stay_scaled_where_that_is_needed_or_free():
    a, b = leaf(40, 24), leaf(24, 32)
    product, scaled = lambda x: x.contract(b, PLAIN_PRODUCT), a * 0.5
    roots = [product(scaled), scaled]  # the user wants it
    assert scale_results(roots, toposort(roots), GPU) == roots
    check_plan([product(scaled), scaled.reduce("sum", (0,))], 2, target=GPU)
    check_plan([product(a * 1e30 * 1e-30)], 2, tolerance=1e-3, target=GPU)
    check_plan([product(a * number(1e-30, a))], 2, target=GPU)
    made = product((a.unary("exp") + 1.0) * 0.5)
    assert scale_results([made], toposort([made]), GPU) == [made]  # one kernel makes it anyway
    half = leaf(40, 24, dtype=float16), leaf(24, 32, dtype=float16)
    made = (half[0] * 64.0).contract(half[1], PLAIN_PRODUCT)
    assert scale_results([made], toposort([made]), GPU) == [made]
    made = product(scaled)
    assert fit_numbers([made], toposort([made]), CPU) == [made]  # computed while it is packed
