"""Scatters on CUDA: sorted, reduced run by run, and what the plan of that computes."""

from typing import Any

import numpy as np
import pytest

from picograd.buffer import Buffer, Storage
from picograd.dtype import DType, bool_, dtype_named, float32, int64, uint32
from picograd.graph import binning, indexing, sorting
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule
from picograd.target import SERIAL, Target, cuda_target

PATTERNS = ("random", "same", "sorted", "reversed", "distinct", "two")


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FAN", 4)
    monkeypatch.setattr(indexing, "FEW", 4)
    monkeypatch.setattr(indexing, "MOST_VISITS", 0)
    monkeypatch.setattr(binning, "SPARSE", 0)
    monkeypatch.setattr(sorting, "BLOCK_RUN", 64)
    monkeypatch.setattr(sorting, "RADIX_TILE", 256)


CUDA = cuda_target("sm_90a")


def leaf(shape: tuple[int, ...], dtype: DType, device: str = "cuda:0") -> Node:
    size = int(np.prod(shape))
    return Node("buffer", (), Storage(Buffer(device, dtype, size, 0)), shape, dtype, device)


def places(pattern: str, count: int, size: int) -> Any:
    random = np.random.default_rng(count)
    found = random.integers(0, size, count)
    chosen = {
        "random": found,
        "same": np.full(count, size // 2),
        "sorted": np.sort(found),
        "reversed": np.sort(found)[::-1],
        "distinct": random.permutation(max(count, size))[:count] % size,
        "two": np.where(found % 2, 0, size - 1),
    }
    return chosen[pattern].copy()


def wanted(
    base: Any, values: Any, indices: Any, axes: Any, monoid: str | None, inside: Any = None
) -> Any:
    """Apply the updates one by one."""
    out = base.copy()
    turned = indexing.axes_first(out, axes)
    for position in np.ndindex(indices[0].shape):
        if inside is not None and not inside[position]:
            continue
        at = tuple(index[position] for index in indices)
        made = values[position]
        turned[at] = made if monoid is None else indexing.UPDATES[monoid](turned[at], made)
    return out


def check(
    base: Any,
    values: Any,
    indices: list[Any],
    axes: Any,
    monoid: str | None,
    inside: Any = None,
    own: tuple[tuple[int, int], ...] = (),
) -> Node:
    """Compare the graph and the plan for CUDA with the updates done one by one.

    An index that is `own` is the position of an update along an axis.
    """
    arrays = [base, values, *indices, *([] if inside is None else [inside])]
    nodes = [leaf(a.shape, dtype_named(a.dtype.name)) for a in arrays]
    count = 2 + len(indices)
    for number, axis in own:
        nodes[2 + number] = nodes[2].iota(axis)
    node = nodes[0].scatter(nodes[1], nodes[2:count], axes, monoid, *nodes[count:])
    expected = wanted(base, values, indices, axes, monoid, inside)
    tolerance = {"rtol": 2e-3 if base.dtype == np.float16 else 1e-5, "atol": 1e-5}
    (found,) = interpret([node], values=dict(zip(nodes, arrays, strict=True)))
    np.testing.assert_allclose(found, expected, **tolerance)
    plan = schedule([node], CUDA)
    numbers = {id(each): number for number, each in enumerate(nodes)}
    given = [arrays[numbers[id(each)]].copy() for each in plan.inputs]
    np.testing.assert_allclose(interpret_plan(plan, given)[0], expected, **tolerance)
    return node


@pytest.mark.parametrize("count", [5, 60, 333])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern(pattern: str, count: int) -> None:
    random = np.random.default_rng(0)
    base, values = random.normal(size=40).astype("f"), random.normal(size=count).astype("f")
    check(base, values, [places(pattern, count, 40)], (0,), "sum")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min", None])
def test_every_monoid_and_dtype(monoid: str | None, dtype: str) -> None:
    random = np.random.default_rng(0)
    base, values = (random.integers(1, 3, n).astype(dtype) for n in ((9, 3), (20, 3)))
    check(base, values, [places("random", 20, 9)], (0,), monoid)


@pytest.mark.parametrize("monoid", ["sum", None])
def test_rows_and_several_axes(monoid: str | None) -> None:
    random = np.random.default_rng(0)
    base = random.normal(size=(5, 4, 6)).astype("f")
    first, second = places("random", 66, 6).reshape(11, 6), places("random", 66, 5).reshape(11, 6)
    check(base, random.normal(size=(11, 6, 4)).astype("f"), [first, second], (2, 0), monoid)
    values = random.normal(size=(70, 5, 6)).astype("f")
    check(base, values, [places("same", 70, 4)], (1,), monoid)


@pytest.mark.parametrize("monoid", ["sum", None])
@pytest.mark.parametrize("count", [1, 5, 70])  # 70: digit by digit
def test_indices_that_are_places_of_the_updates(monoid: str | None, count: int) -> None:
    """Updates are sorted apart for each place, those with one update each not at all."""
    random = np.random.default_rng(0)
    shape = (count, 6, 3)
    found = [random.integers(0, 9, shape), *np.indices(shape)[1:]]
    base, values = random.normal(size=(6, 3, 9)).astype("f"), random.normal(size=shape).astype("f")
    order = [found[n] for n in (1, 0, 2)]
    node = check(base, values, order, (0, 2, 1), monoid, own=((0, 1), (2, 2)))
    ops = {each.op for each in toposort(expand_composites([node], target=CUDA))}
    assert (count > 1 and monoid == "sum") is bool(ops & {"sort_keys", "radix_move"})
    inside = random.integers(0, 2, shape) > 0
    check(base, values, order, (0, 2, 1), None, inside, ((2, 2),))
    square = random.normal(size=(9, 9, 2)).astype("f")
    both = [np.indices((9, 9))[0], np.indices((9, 9))[0]]
    check(
        square,
        random.normal(size=(9, 9, 2)).astype("f"),
        both,
        (0, 1),
        "sum",
        None,
        ((0, 0), (1, 0)),
    )


@pytest.mark.parametrize("count", [4, 60, 333])  # 4: one after the other
@pytest.mark.parametrize("pattern", PATTERNS)
def test_updates_that_are_not_wanted(pattern: str, count: int) -> None:
    """They are left out, also where they follow one that is wanted at the same place."""
    random = np.random.default_rng(1)
    base, values = (random.normal(size=(n, 2)).astype("f") for n in (9, count))
    index = places(pattern, count, 9)
    for inside in (random.integers(0, 2, count) > 0, np.zeros(count, bool), np.ones(count, bool)):
        node = check(base, values, [index], (0,), None, inside)
        assert node.inputs[-1].dtype is bool_
    both = [places(pattern, count, 3), places("random", count, 3)]
    square = random.normal(size=(3, 3, 2)).astype("f")
    check(square, values, both, (0, 1), None, random.integers(0, 2, count) > 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8"])
def test_sums_at_few_destinations_are_one_kernel(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MOST_VISITS", 1 << 20)
    random = np.random.default_rng(0)
    base, values = (random.integers(0, 3, n).astype(dtype) for n in ((9, 3), (60, 3)))
    node = check(base, values, [places("random", 60, 9)], (0,), "sum")
    assert [kernel.hero for kernel in schedule([node], CUDA).kernels] == ["reduce.col"]
    kept = random.integers(0, 2, 60) > 0
    check(base, values, [places("two", 60, 9)], (0,), "sum", kept)
    first, second = places("random", 66, 6).reshape(11, 6), places("random", 66, 5).reshape(11, 6)
    base, values = (random.integers(0, 3, n).astype(dtype) for n in ((5, 4, 6), (11, 6, 4)))
    check(base, values, [first, second], (2, 0), "sum")


def test_what_stays_a_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    def ops(count: int, target: Target, more: int = 0) -> set[str]:
        base, values = leaf((9,), float32), leaf((count,), float32)
        index = leaf((count,), int64)
        for _ in range(more):
            index = index * 2 + 1
        node = base.scatter(values, [index], (0,), "sum")
        return {each.op for each in toposort(expand_composites([node], target=target))}

    assert "scatter" in ops(100, SERIAL) and "scatter" in ops(4, CUDA)
    assert "scatter" in ops(0, CUDA)
    assert "scatter_runs" in ops(100, CUDA)
    monkeypatch.setattr(indexing, "MOST_VISITS", 1 << 20)
    assert "scatter_runs" in ops(8, CUDA) and "scatter_runs" not in ops(9, CUDA)
    assert "contiguous" not in ops(9, CUDA) and "contiguous" in ops(9, CUDA, 9)


def test_a_long_run_is_short_work() -> None:
    """Levels leave a run of n updates 2 * FAN * log(n) steps: every level is FAN times smaller."""
    base, values = leaf((9,), float32), leaf((4096,), float32)
    node = base.scatter(values, [leaf((4096,), int64)], (0,), "sum")
    (root,) = expand_composites([node], target=CUDA)
    assert [level.shape for level in root.inputs[4:]] == [(1024,), (256,), (64,), (16,), (4,)]


@pytest.mark.parametrize("target", [SERIAL, CUDA], ids=["serial", "cuda"])
def test_the_last_of_each_run(target: Target) -> None:
    keys = np.repeat(np.arange(5), [3, 1, 4, 1, 2])
    for order in (keys, np.random.default_rng(0).permutation(11)):
        values, key = leaf((11,), int64), leaf((11,), int64)
        node = indexing.last_of_runs(values, key, int(order.max()) + 1, target)
        arrays = [np.arange(11) * 10, order]
        wanted = np.zeros(node.shape, int)
        wanted[order] = arrays[0]
        (found,) = interpret([node], values=dict(zip((values, key), arrays, strict=True)))
        np.testing.assert_array_equal(found, wanted)
        plan = schedule([node], CUDA)
        given = [arrays[0 if each is values else 1].copy() for each in plan.inputs]
        np.testing.assert_array_equal(interpret_plan(plan, given)[0], wanted)


@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min"])
def test_levels_combine_the_groups_of_one_key(monoid: str) -> None:
    count = 150
    arrays = [np.zeros(9), np.random.default_rng(0).random(count) + 0.5, places("two", count, 9)]
    nodes = [leaf(a.shape, dtype_named(a.dtype.name)) for a in arrays]
    (root,) = expand_composites([nodes[0].scatter(nodes[1], nodes[2:], (0,), monoid)], target=CUDA)
    _, rows, keys, first, *levels = interpret(
        list(root.inputs), values=dict(zip(nodes, arrays, strict=True))
    )
    assert (keys[first] == keys).all() and (first[1:][keys[1:] != keys[:-1]] > 0).all()
    size = 1
    for level in levels:
        size *= 4
        for number, found in enumerate(level):
            group = slice(number * size, (number + 1) * size)
            if len(set(keys[group])) == 1:
                wanted = indexing.UPDATES[monoid].reduce(rows[group])
                np.testing.assert_allclose(found, wanted)


def test_where_runs_begin() -> None:
    keys = leaf((7,), uint32)
    values = {keys: np.array([0, 0, 0, 2, 2, 5, 7], np.uint32)}
    (found,) = interpret([indexing.run_starts(keys)], values=values)
    assert found.tolist() == [0, 0, 0, 3, 3, 5, 6]
