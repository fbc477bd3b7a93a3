"""Sums of weights times their gradient."""

import numpy as np
import pytest
from attention_forms import FORMS, causal_twice, merged_batch, plain, product, weigh
from plan_support import TARGET as CPU
from plan_support import VALUES, leaf, run, schedule

from picograd.buffer import RuntimeScalar
from picograd.dtype import bfloat16, float32
from picograd.graph import build
from picograd.graph.bounded import End, ended, sources_of
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import toposort
from picograd.schedule import weighted_sums
from picograd.schedule.weighted_sums import replaced, shorter_sums, unshifted

SHAPES = (1, 2, 40, 8), (1, 2, 45, 8), (1, 2, 45, 12)


def gradients_of(form, shapes=SHAPES):
    leaves = [leaf(*shape) for shape in shapes]
    output = form(*leaves)
    return [output, *gradient([(output, leaf(*output.shape))], leaves)]


def sums_of(roots):
    """Sizes of what sums read."""
    nodes = toposort(roots)
    return sorted(n.inputs[0].size for n in nodes if n.op == "reduce" and n.arg[0] == "sum")


def expanded(roots):
    return expand_composites(roots, target=CPU, order=toposort(roots))


def shortened(roots):
    order = toposort(roots)
    return replaced(roots, order, shorter_sums(order))


@pytest.mark.parametrize("form", [plain, causal_twice])
def test_a_sum_of_scores_becomes_one_of_rows(form):
    roots = expanded(gradients_of(form))
    shorter = shortened(roots)
    assert sums_of(roots) == [2 * 40 * 45] * 2
    assert sums_of(shorter) == [2 * 40 * 12, 2 * 40 * 45]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_values_stay(form):
    np.random.seed(0)
    roots = gradients_of(form)
    plan = schedule(roots, CPU)
    for found, wanted in zip(run(plan), interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_sum_without_the_product_of_its_weights_stays():
    roots = expanded(gradients_of(plain)[1:2])  # dq alone does not read the result
    before = sums_of(roots)
    shorter = shortened(roots)
    assert sums_of(shorter) == before


def test_other_graphs_are_left_alone():
    x = leaf(8, 8)
    roots = [(x * x).reduce("sum", (0,)), build.softmax(x, 1)]
    assert shortened(roots) == roots


def test_dimensions_of_one_position_do_not_matter():
    roots = expanded(gradients_of(merged_batch, [(1, 1, 24, 8)] * 3))
    shorter = shortened(roots)
    assert len(sums_of(shorter)) == len(sums_of(roots))


def test_columns_that_end_are_left_out_of_rows_too():
    """The gradient of the weights sums the columns of values: so does what stands for its sum."""
    columns = End(3, 1, 0, RuntimeScalar(9))
    roots = expanded(gradients_of(plain)[:2])
    order = toposort(roots)
    products = [node for node in order if node.op == "contract" and node.shape[3] == 45]
    (short,) = shorter_sums(order).values()
    assert sources_of(short) == ()
    new = {id(each): ended(each, (), ((columns,), (columns,))) for each in products}
    order = toposort(replaced(roots, order, new))
    (short,) = shorter_sums(order).values()
    *_, reduced = (node for node in toposort([short]) if node.op == "reduce")
    assert sources_of(reduced) == ((columns,),)


def test_a_logarithm_of_sums_beside_a_softmax_streams_with_it():
    np.random.seed(1)
    q, k, v = leaves = [leaf(*shape) for shape in SHAPES]
    scores = product(q, k)
    outputs = weigh(build.softmax(scores, -1), v), build.logsumexp(scores, -1)
    roots = [*outputs, *gradient([(each, leaf(*each.shape)) for each in outputs], leaves)]
    plan = schedule(roots, CPU)
    heroes = [kernel.hero for kernel in plan.kernels]
    assert (heroes.count("attention"), len(heroes)) == (2, 3)  # one adds m and log(l)
    for found, wanted in zip(run(plan), interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_exponentials_less_the_logarithm_of_another_row_are_no_softmax():
    np.random.seed(2)
    x = leaf(6, 6)
    total = build.logsumexp(x, 1)
    across, along = total.reshape((1, 6)).expand((6, 6)), total.reshape((6, 1)).expand((6, 6))
    weights = build.softmax(x, 1)
    read = weights.contract(leaf(6, 4), ((0, 1), (1, 2), (0, 2)))
    roots = [weights, *((x - each).unary("exp") for each in (across, along)), read]
    found = run(schedule(roots, CPU))
    for value, wanted in zip(found, interpret(roots, values=VALUES), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
    np.testing.assert_array_equal(found[0], found[2])


def of_logarithms(x, op="exp"):
    return (x - build.logsumexp(x, 3).reshape((*x.shape[:3], 1)).expand(x.shape)).unary(op)


@pytest.mark.parametrize("power", [of_logarithms, lambda x: build.log_softmax(x, 3).unary("exp")])
@pytest.mark.parametrize("dtype", [float32, bfloat16])
def test_weights_by_a_logarithm_are_a_softmax(power, dtype):
    """With gradients, and where the logarithm was made of what was widened."""
    np.random.seed(3)
    leaves = [leaf(*shape) for shape in SHAPES]

    def form(q, k, v):
        scores = product(q, k).cast(dtype)
        weights = power(scores.cast(float32)).cast(dtype) if dtype is bfloat16 else power(scores)
        return weigh(weights.cast(float32), v)

    output = form(*leaves)
    roots = [output, *gradient([(output, leaf(*output.shape))], leaves)]
    plan = schedule(roots[:1], CPU)
    assert [kernel.hero for kernel in plan.kernels] == ["attention"]
    tolerance = 1e-5 if dtype is float32 else 3e-2
    for found, wanted in zip(
        run(schedule(roots, CPU)), interpret(roots, values=VALUES), strict=True
    ):
        assert np.linalg.norm(found - wanted) < tolerance * np.linalg.norm(wanted)


def test_powers_of_two_less_a_logarithm_are_no_softmax():
    np.random.seed(4)
    q, k, v = (leaf(*shape) for shape in SHAPES)
    scores = product(q, k)
    roots = [weigh(build.softmax(scores, 3), v), weigh(of_logarithms(scores, "exp2"), v)]
    for found, wanted in zip(
        run(schedule(roots, CPU)), interpret(roots, values=VALUES), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def less_maximum(x, axis, top):
    return build.softmax(x - top.expand(x.shape), axis)


def test_a_softmax_of_values_less_their_maximum_subtracts_one():
    np.random.seed(3)
    x = leaf(6, 8)
    top = x.reduce("max", (1,), True)
    softmax = less_maximum(x, 1, top)
    (plain,) = unshifted(toposort([softmax])).values()
    assert plain.op == softmax.op and plain.inputs == (x,)
    output, found = gradient_of_leaf(softmax, x)
    assert not [n for n in toposort([found]) if n.op == "equal"]  # the places of the maximum
    for value, wanted in zip(run(schedule([output, found], CPU)), wanted_of(x), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


def gradient_of_leaf(output, x):
    VALUES[UPPER] = np.linspace(-1, 1, 48).reshape(6, 8).astype(np.float32)
    return output, *gradient([(output, UPPER)], [x])


UPPER = leaf(6, 8)


def wanted_of(x):
    values = VALUES[x].astype(np.float64)
    power = np.exp(values - values.max(1, keepdims=True))
    weights = power / power.sum(1, keepdims=True)
    upper = VALUES[UPPER]
    yield weights
    yield weights * (upper - (weights * upper).sum(1, keepdims=True))


def test_other_numbers_that_a_softmax_subtracts():
    """Of other rows, of another array, or the least: they are subtracted, and cancel as well."""
    x, y = leaf(6, 6), leaf(6, 6)
    across = x.reduce("max", (0,), True)
    others = y.reduce("max", (1,), True), x.reduce("min", (1,), True)
    for top in (across, *others):
        softmax = less_maximum(x, 1, top)
        assert not unshifted(toposort([softmax]))
        VALUES[x] = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
        (found,) = run(schedule([softmax], CPU))
        (wanted,) = interpret([softmax], values=VALUES)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_matrix_that_each_step_multiplies_is_looked_at_in_linear_time(monkeypatch):
    asked = []
    short_sum = weighted_sums.short_sum

    def counted(*arguments):
        asked.append(arguments)
        return short_sum(*arguments)

    monkeypatch.setattr(weighted_sums, "short_sum", counted)
    weight, state = leaf(16, 16), leaf(4, 16)
    labels = (0, 1), (2, 1), (0, 2)
    states = [state]
    for _ in range(40):
        states.append(states[-1].contract(weight, labels).unary("tanh"))
    roots = expanded([*gradient([(states[-1], leaf(4, 16))], [weight, state])])
    sums = [(leaf(4, 16).contract(weight, ((0, 1), (1, 2), (0, 2))) * x) for x in states]
    roots += [each.reduce("sum", (1,)) for each in sums]
    shorter = shortened(roots)
    assert len(shorter) == len(roots) and len(asked) <= 2 * len(states)
