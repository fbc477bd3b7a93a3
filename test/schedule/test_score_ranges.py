"""Ranges of places that rows see through masks of numbers in memory: found right, and left out."""

import numpy as np
import pytest
from attention_forms import documents, is_seen, masked, numbers, product, weigh
from plan_support import TARGET, VALUES, check_plan, leaf, spread

from picograd.buffer import RuntimeScalar
from picograd.dtype import bool_, int32, int64, uint8
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.schedule import both_sides, range_kernels, score_ranges
from picograd.schedule.schedule import schedule

ROWS, PLACES, GRAIN = 37, 45, 8  # of rows, of places, of those that share a range


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(score_ranges, "LEAST", 16)
    monkeypatch.setattr(both_sides, "MOST_BYTES", 0)  # places have ranges of their own then
    for module in (score_ranges, range_kernels):
        monkeypatch.setattr(module, "GRAIN", GRAIN)


def pair(make, *before):
    """Numbers of rows, and of places."""
    return make((*before, ROWS)), make((*before, PLACES))


def of_kind(dtype, low=-3):
    return lambda shape: numbers(shape, dtype, low)


def unsorted(shape):
    return leaf(*shape, dtype=int64, below=4)


def far(shape):
    """Numbers at both ends of their dtype."""
    node = leaf(*shape, dtype=int64, below=2)
    VALUES[node] = np.sort(np.where(VALUES[node] == 0, -(1 << 63), (1 << 63) - 1), -1)
    return node


def gappy(shape):
    """Floats in order, some of them NaN."""
    node = leaf(*shape)
    VALUES[node] = np.sort(np.round(VALUES[node]), -1)
    VALUES[node][..., ::5] = np.nan
    return node


def compare(op, make):
    def see(s, at):
        row, place = pair(make)
        return at(row, 2).binary(op, at(place, 3))

    return see


def apart(s, at):
    row, place = pair(of_kind(int32))
    return at(row, 2).binary("not_equal", at(place, 3))


def fails(s, at):
    return compare("less", numbers)(s, at).unary("logical_not")


def moved(s, at):
    """Arithmetic between the two: looked at whole."""
    row, place = pair(numbers)
    return (at(row, 2) - at(place, 3)).binary("less", at(place, 3).const_like(2))


def limited(s, at):
    """A number of the launch is part of the mask: how far beyond its own a row sees."""
    row, place = pair(numbers)
    reach = build.scalar(RuntimeScalar(1), "cpu", int64)
    return at(place, 3).binary("less_equal", at(row, 2) + at(reach))


def in_a_batch(s, at):
    row, place = pair(numbers, 2)
    return at(row, 0, 2).binary("equal", at(place, 0, 3)).binary("logical_and", is_seen(s))


def stored(s, at):
    mask = leaf(ROWS, PLACES, dtype=bool_, below=2)
    VALUES[mask][:, :11] = VALUES[mask][:20, 30:] = False
    return at(mask, 2, 3)


def kept(s, at):
    """Places that all rows see, or none."""
    mask = leaf(2, PLACES, dtype=bool_, below=2)
    VALUES[mask][:, 30:] = False
    return at(mask, 0, 3)


def either(s, at, near=None):
    """Places near a row that wants them, and those of its document."""
    row, place = pair(numbers)
    same = at(row, 2).binary("equal", at(place, 3))
    wanted = leaf(ROWS, dtype=bool_, below=2)
    near = is_seen(s, 4) if near is None else near
    near = near.binary("logical_and", at(wanted, 2))
    neither = same.unary("logical_not").binary("logical_and", near.unary("logical_not"))
    return neither.unary("logical_not")


def shrinking(s, at):
    """Rows see the less the later they are: the last of some is the one that sees least."""
    return either(s, at, s.iota(3).binary("less", 30 - s.iota(2)))


MASKS = {
    "sorted": compare("equal", numbers),
    "int32": compare("equal", of_kind(int32)),
    "uint8": compare("equal", of_kind(uint8, 250)),
    "unsorted": compare("equal", unsorted),
    "far": compare("equal", far),
    "less": compare("less", numbers),
    "less_equal": compare("less_equal", of_kind(int32)),
    "nan": compare("less_equal", gappy),
    "nan_equal": compare("equal", gappy),
    "not_equal": apart,
    "not_less": fails,
    "arithmetic": moved,
    "scalar": limited,
    "batch": in_a_batch,
    "boolean": stored,
    "kept": kept,
    "shrinking": shrinking,
    "either": either,
}


def operands(heads=4):
    return leaf(2, heads, ROWS, 4), leaf(2, heads, PLACES, 4), leaf(2, heads, PLACES, 4)


@pytest.mark.parametrize("name", MASKS)
def test_values_and_gradients(name):
    """The guards leave nothing out that is seen: the oracle of a kernel obeys them."""
    np.random.seed(0)
    q, k, v = operands()
    output = masked(q, k, v, MASKS[name])
    roots = [output, *gradient([(output, leaf(*output.shape))], [q, k, v])]
    plan = check_plan(roots)
    names = [kernel.name for kernel in plan.kernels]
    assert sum("ranges" in each for each in names) == 2, names  # of rows, and of places


def lowered(dims, shape, heads=8):
    """Attention through numbers that are added to scores, -inf where nothing is seen."""
    q, k, v = operands(heads)
    mask = leaf(*shape)
    VALUES[mask][..., 20:] = -np.inf
    VALUES[mask][..., 0] = 0.0
    s = product(q, k) * 0.3
    sizes = [n if d in dims else 1 for d, n in enumerate(s.shape)]
    added = s + spread(mask.reshape(tuple(sizes)), s.shape)
    return (q, k, v), weigh(build.softmax(added, 3), v)


@pytest.mark.parametrize("dims, shape", [((2, 3), (ROWS, PLACES)), ((0, 3), (2, PLACES))])
def test_numbers_that_are_added_hide_where_they_are_lowest(dims, shape):
    np.random.seed(0)
    leaves, output = lowered(dims, shape)
    plan = check_plan([output, *gradient([(output, leaf(*output.shape))], leaves)])
    names = [kernel.name for kernel in plan.kernels]
    assert sum("ranges" in each for each in names) == 2, names


def test_few_heads_look_at_added_numbers_where_gradients_do_too():
    """One look serves all streams of a plan that add the same numbers."""
    np.random.seed(0)
    leaves, output = lowered((2, 3), (ROWS, PLACES), heads=4)
    names = [kernel.name for kernel in schedule([output], TARGET).kernels]
    assert not any("ranges" in each for each in names), names
    plan = check_plan([output, *gradient([(output, leaf(*output.shape))], leaves)])
    names = [kernel.name for kernel in plan.kernels]
    assert sum("blocks" in each for each in names) == 1, names
    assert sum("ranges" in each for each in names) == 2, names


def test_biases_of_a_head_are_not_looked_at():
    leaves, output = lowered((1, 2, 3), (8, ROWS, PLACES))
    roots = [output, *gradient([(output, leaf(*output.shape))], leaves)]
    names = [kernel.name for kernel in schedule(roots, TARGET).kernels]
    assert not any("ranges" in each for each in names), names


def test_who_needs_no_ranges():
    """Positions alone are known before; a mask for each head, or few rows, are not worth it."""

    def own_mask(s, at):
        return at(leaf(2, 4, ROWS, PLACES, dtype=bool_, below=2), 0, 1, 2, 3)

    def by_score(s, at):
        return s.const_like(0.0).binary("less", s)

    few = leaf(2, 4, 9, 4), *operands()[1:]
    for form in (
        masked(*operands(), lambda s, at: is_seen(s)),
        masked(*operands(), own_mask),
        masked(*operands(), by_score),
        masked(*few, lambda s, at: at(leaf(PLACES, dtype=bool_, below=2), 3)),
    ):
        plan = schedule([form], TARGET)
        assert not any("ranges" in kernel.name for kernel in plan.kernels), plan


def test_layers_share_ranges():
    q, k, v = operands()
    k, v = leaf(2, 4, ROWS, 4), leaf(2, 4, ROWS, 4)
    own = numbers((ROWS,))
    first = documents(q, k, v, lambda shape: own)
    second = documents(first, k, v, lambda shape: own)
    names = [kernel.hero for kernel in check_plan([second]).kernels]
    assert names == ["reduce.row", "attention", "attention"]
    steps = schedule([second], TARGET).steps
    assert steps[1].slots[-2:] == steps[2].slots[-2:]


def test_ranges_are_found_anew_after_a_write():
    q, k, v = operands()
    k, v = leaf(2, 4, ROWS, 4), leaf(2, 4, ROWS, 4)
    own = numbers((ROWS,))
    first = documents(q, k, v, lambda shape: own)
    written = build.assign(own, numbers((ROWS,)))
    second = documents(first, k, v, lambda shape: written)
    names = [kernel.name for kernel in schedule([written, second], TARGET).kernels]
    assert sum("ranges" in each for each in names) == 2, names
