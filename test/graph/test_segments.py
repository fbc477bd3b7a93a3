"""Segments on a GPU: threads for each, which read where it begins and stops, and gradients."""

from typing import Any

import numpy as np
import pytest

from picograd.buffer import Buffer, Storage
from picograd.dtype import DType, dtype_named, float32, int64
from picograd.graph import indexing
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.graph.segments import reduced_segments
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule
from picograd.target import SERIAL, cuda_target

CUDA = cuda_target("sm_90a")
FOLDS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def leaf(shape: tuple[int, ...], dtype: DType) -> Node:
    size = int(np.prod(shape))
    return Node("buffer", (), Storage(Buffer("cuda:0", dtype, size, 0)), shape, dtype, "cuda:0")


def wanted(x: Any, ends: Any, monoid: str, start: float) -> Any:
    """Combine the elements of each segment, row by row of what comes before their axis."""
    axis, size = ends.ndim - 1, x.shape[ends.ndim - 1]
    out = np.full((*ends.shape, *x.shape[axis + 1 :]), start)
    for place in np.ndindex(ends.shape):
        *row, number = place
        first = min(ends[(*row, number - 1)], size) if number else 0
        part = x[tuple(row)][first : min(ends[place], size)]
        out[place] = FOLDS[monoid](part, axis=0, initial=start)
    return out


@pytest.mark.parametrize("after", [(), (2,), (3,), (40,)])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min"])
def test_segments_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, monoid: str, lead: tuple[int, ...], after: tuple[int, ...]
) -> None:
    monkeypatch.setattr(indexing, "FAN", 4)
    random = np.random.default_rng(0)
    x = random.uniform(0.8, 1.2, (*lead, 90, *after)).astype("f4")
    lengths = random.integers(0, 9, (*lead, 8)) * (random.random((*lead, 8)) < 0.8)
    lengths[..., 3] = 50  # the last ones may end beyond the elements, or before
    ends = lengths.cumsum(-1)
    nodes = [leaf(x.shape, float32), leaf(ends.shape, int64)]
    node = reduced_segments(nodes[0], nodes[1], monoid, 1.0)
    expected = wanted(x.astype("f8"), ends, monoid, 1.0)
    values = dict(zip(nodes, (x, ends), strict=True))
    for target in (SERIAL, CUDA):
        (found,) = interpret(expand_composites([node], target=target), values=values)
        np.testing.assert_allclose(found, expected, 1e-4)
    plan = schedule([node], CUDA)
    known = dict(zip(map(id, nodes), (x, ends), strict=True))
    given = [known[id(each)].copy() for each in plan.inputs]
    np.testing.assert_allclose(interpret_plan(plan, given)[0], expected, 1e-4)


@pytest.mark.parametrize(
    ("shape", "count", "launches"), [((100_000, 32), 5000, 5), ((10**6,), 9, 4)]
)
def test_segments_are_neither_sorted_nor_numbered(
    shape: tuple[int, ...], count: int, launches: int
) -> None:
    node = reduced_segments(leaf(shape, float32), leaf((count,), int64), "sum", 0.0)
    plan = schedule([node], CUDA)
    assert len(plan.steps) <= launches
    assert not {"scan", "scatter", "radix"} & {step.kernel.hero for step in plan.steps}


@pytest.mark.parametrize("monoid", ["prod", "max"])
def test_gradients_sort_nothing(monoid: str) -> None:
    data = leaf((2000, 8), float32)
    found = reduced_segments(data, leaf((90,), dtype_named("int64")), monoid, 1.0)
    (root,) = gradient([(found, found.const_like(1))], [data])
    assert root is not None
    ops = {each.op for each in toposort(expand_composites([root], target=CUDA))}
    assert not ops & {"sort_keys", "radix_move"}
