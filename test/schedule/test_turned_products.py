"""Products of weights in the order that somebody wants."""

import numpy as np
from attention_forms import plain
from plan_support import TARGET as CPU
from plan_support import VALUES, leaf, run, schedule

from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import toposort
from picograd.schedule import turned_products as subject
from picograd.schedule.repack import permutation_of
from picograd.schedule.turned_products import axes_of, edit_weights, inverse, turned_results
from picograd.target import cuda_target

H100 = cuda_target("sm_90a")


def results(shape=(2, 3, 24, 8)):
    output = plain(*(leaf(*shape) for _ in range(3)))
    turned = output.permute((0, 2, 1, 3))
    return output, turned


def test_the_product_is_stored_as_it_is_read():
    output, turned = results()
    roots = [turned, output * 2.0]
    roots = expand_composites(roots, target=CPU, order=toposort(roots))
    (first, second) = edit_weights(roots, toposort(roots), CPU)
    assert first.op == "contract" and first.shape == turned.shape
    assert [node.op for node in second.inputs[:1]] == ["permute"]


def test_nothing_is_copied_and_values_stay():
    np.random.seed(0)
    output, turned = results()
    copied = build.contiguous(turned).reshape((2, 24, 24))  # it lies there as it is asked for
    for roots in ([turned], [turned, output * 2.0], [turned.reshape((2, 24, 24))], [copied]):
        plan = schedule(roots, CPU)
        assert len(plan.kernels) <= len(roots)
        for found, wanted in zip(run(plan), interpret(roots, values=VALUES), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_dimensions_of_one_position_come_first():
    product = leaf(1, 3, 24, 8)
    seen = product.reshape((3, 24, 8))
    assert permutation_of(seen.permute((1, 0, 2))) == (1, 0, 2)
    assert axes_of(product, seen, (1, 0, 2)) == (0, 2, 1, 3)
    assert inverse((2, 0, 1)) == (1, 2, 0)


def test_other_products_are_left_alone():
    a, b = leaf(8, 4), leaf(4, 8)
    roots = [a.contract(b, ((0, 1), (1, 2), (0, 2))).permute((1, 0))]
    assert edit_weights(roots, toposort(roots), CPU) == roots


def product(a, b):
    return a.contract(b, ((0, 2), (2, 1), (0, 1)))


def test_results_that_are_only_read_turned_are_stored_so(monkeypatch):
    np.random.seed(0)
    turned = product(leaf(32, 24), leaf(24, 48)).permute((1, 0))
    root = turned + turned.reduce("sum", (1,)).reshape((48, 1)).expand((48, 32))
    for shape in [(48, 32), (32, 48)]:
        plan = schedule([root], H100)
        assert shape in [slot.shape for slot in plan.slots if slot.kind == "temporary"]
        (found,), (wanted,) = run(plan), interpret([root], values=VALUES)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        monkeypatch.setattr(subject, "turned_results", lambda roots, order: {})


def test_results_that_others_read_or_whose_rows_stay_rows_are_not_turned():
    made = product(leaf(32, 24), leaf(24, 48))
    turned, moved = made.permute((1, 0)), made.reshape((1, 32, 48)).permute((1, 0, 2))
    thin = product(leaf(8, 24), leaf(24, 48)).permute((1, 0))
    for roots, count in [([turned], 1), ([moved], 0), ([made, turned], 0), ([thin], 0)]:
        assert len(turned_results(roots, toposort(roots))) == count
