"""What a softmax by hand subtracts: it has no gradient where it cancels, and one elsewhere."""

import numpy as np
import pytest
from graph_support import leaf

from picograd.graph.gradient import HOOKS, cancelled, gradient
from picograd.graph.node import toposort

ROWS = (3, 3, 5)
VALUES = np.random.standard_normal((3, 5, 4))
LABELS = ((0, 1, 2), (0, 2, 3), (0, 1, 3))


def powers(axes=(2,)):
    s = leaf(np.random.standard_normal(ROWS))
    m = s.reduce("max", axes, True)
    return s, m, (s - m.expand(s.shape)).unary("exp")


def total(e, axes=(2,)):
    return e.reduce("sum", axes, True)


def divided(e, v):
    return (e / total(e).expand(e.shape)).contract(v, LABELS)


def divided_last(e, v):
    o = e.contract(v, LABELS)
    return o / total(e).expand(o.shape)


def masked(e, v):
    seen = e.iota(2).binary("less", e.iota(1) + 2)
    return divided(seen.where(e, 0), v)


def turned(e, v):
    return divided_last(e.permute((0, 2, 1)).permute((0, 2, 1)) * 2.0, v)


@pytest.mark.parametrize("make", [divided, divided_last, masked, turned])
def test_what_cancels(make):
    s, m, e = powers()
    out = make(e, leaf(VALUES))
    assert cancelled(toposort([out]), [out]) == {id(m.inputs[0])}
    (found,) = gradient([(out, out.const_like(1.0))], [s])
    assert not any(node.op == "equal" for node in toposort([found]))
    (own,) = gradient([(out, out.const_like(1.0))], [m.inputs[0]])
    assert own is not None  # who asks for it gets it


def test_a_hook_elsewhere_changes_nothing():
    s, m, e = powers()
    out = divided(e, leaf(VALUES))
    elsewhere = leaf(VALUES)
    HOOKS[elsewhere] = hooked = lambda flowing: flowing
    (found,) = gradient([(out, out.const_like(1.0))], [s])
    assert hooked and not any(node.op == "equal" for node in toposort([found]))
    HOOKS[m] = hooked
    (found,) = gradient([(out, out.const_like(1.0))], [s])
    assert any(node.op == "equal" for node in toposort([found]))


def alone(e, v):
    return e.contract(v, LABELS)


def over_rows(e, v):
    return (e / total(e, (1,)).expand(e.shape)).contract(v, LABELS)


def beside_one(e, v):
    return (e / (total(e) + 1).expand(e.shape)).contract(v, LABELS)


def squared(e, v):
    return (e * e / total(e).expand(e.shape)).contract(v, LABELS)


def beside_rows(e, v):
    """Rows are added whose shifts differ."""
    seen = e * leaf(np.random.standard_normal(ROWS))
    return seen.reduce("sum", (1, 2)) / e.reduce("sum", (1, 2))


def product_of_rows(e, v):
    rows = leaf(np.random.standard_normal((3, 3, 4)))
    return e.contract(rows, ((0, 1, 2), (0, 1, 3), (0, 2, 3)))


def one_elsewhere(e, v):
    seen = e.iota(2).binary("less", e.iota(1) + 2)
    return (seen.where(e, 1) / total(e).expand(e.shape)).contract(v, LABELS)


def times_the_shift(e, v):
    shift = e.inputs[0].inputs[1]  # is subtracted: as a factor it would undo one of the two
    return (e * e * shift / total(e).expand(e.shape)).contract(v, LABELS)


def beside_others(e, v):
    """Rows of another batch, or of other places, changed by another factor."""
    return (e / e.permute((1, 0, 2))).contract(v, LABELS)


def of_two_rows(e, v):
    rows = (0, 1, 3), (0, 2, 3), (0, 1, 2)
    return (e * e).contract(e, rows) / e.contract(e * e, rows)


READ = [beside_rows, product_of_rows, one_elsewhere, times_the_shift, beside_others, of_two_rows]


@pytest.mark.parametrize("make", [alone, over_rows, beside_one, squared, *READ])
def test_what_does_not(make):
    _, _, e = powers()
    out = make(e, leaf(VALUES))
    assert not cancelled(toposort([out]), [out])


def test_a_maximum_that_is_read_elsewhere():
    _, m, e = powers()
    out = divided(e, leaf(VALUES)) + m.expand((3, 3, 4))
    assert not cancelled(toposort([out]), [out])


def test_a_maximum_that_the_logarithm_of_sums_is_added_to():
    _, m, e = powers()
    log = total(e).unary("log")
    out = m + log
    assert cancelled(toposort([out]), [out]) == {id(m.inputs[0])}
    for other in (m + m, m.permute((1, 0, 2)), -m):
        out = other + log
        assert not cancelled(toposort([out]), [out])


def test_a_maximum_over_more_than_the_sum():
    """One number for all rows cancels in each of them."""
    _, m, e = powers((0, 1, 2))
    out = divided(e, leaf(VALUES))
    assert cancelled(toposort([out]), [out]) == {id(m.inputs[0])}
