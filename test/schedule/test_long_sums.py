"""Products of few results whose sums are long are summed in parts."""

import numpy as np
import pytest
from plan_support import TARGET as CPU
from plan_support import VALUES, check_plan, leaf

from picograd.dtype import bfloat16, float16, float32
from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.schedule import long_sums
from picograd.schedule.long_sums import split_sums
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")
LAYOUTS = [("mk", "nk"), ("mk", "kn"), ("km", "kn"), ("km", "nk")]


def product(m: int, n: int, k: int, orders=LAYOUTS[1], dtype=bfloat16) -> Node:
    sizes = {"m": m, "n": n, "k": k}
    first, second = (leaf(*(sizes[c] for c in each), dtype=dtype) for each in orders)
    labels = tuple(tuple("mnk".index(c) for c in each) for each in orders)
    return first.contract(second, (*labels, (0, 1)))


def is_split(node: Node, target=GPU) -> bool:
    (found,) = split_sums([node], toposort([node]), target)
    return found is not node


@pytest.mark.parametrize("orders", LAYOUTS)
def test_values(orders, monkeypatch):
    monkeypatch.setattr(long_sums, "sum_parts", lambda *given: 4)
    node = product(3, 5, 32, orders, float16)
    (found,) = split_sums([node], toposort([node]), GPU)
    summed = found.inputs[0]
    assert (found.op, found.dtype, summed.op, summed.shape) == ("cast", float16, "reduce", (3, 5))
    whole = summed.inputs[0]
    assert (whole.op, whole.shape, whole.dtype) == ("contract", (4, 3, 5), float32)
    values = {each: VALUES[each] for each in node.inputs}
    (wanted,) = interpret([Node("contract", *fields_of(node), float32, "cpu")], values=values)
    (got,) = interpret([found], values=values)
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=2e-3, atol=2e-3)


def fields_of(node: Node):
    return node.inputs, node.arg, node.shape


@pytest.mark.parametrize("orders", LAYOUTS)
def test_plans(orders, monkeypatch):
    """What follows is done where parts are added up; products may be made of one another."""
    monkeypatch.setattr(long_sums, "sum_parts", lambda *given: 4)
    node = product(3, 8, 32, orders, float16)
    check_plan([(node + leaf(3, 8, dtype=float16)) * leaf(3, 8, dtype=float16)], 2, 2e-2, GPU)
    again = node.contract(leaf(8, 16, dtype=float16), ((0, 1), (1, 2), (0, 2)))
    check_plan([again, node], None, 5e-2, GPU)
    flat = leaf(4, 8, 3, dtype=float16).contract(
        leaf(5, 8, 2, dtype=float16), ((0, 1, 2), (3, 1, 4), (0, 3, 2, 4))
    )
    check_plan([flat], None, 2e-2, GPU)


def test_which_products():
    """None of many batches, of float32, of enough tiles, or where no boxes are copied."""
    assert is_split(product(256, 768, 50304)) and is_split(product(256, 256, 65536, dtype=float16))
    assert not is_split(product(256, 768, 50304), CPU)
    assert not is_split(product(256, 768, 50304), cuda_target("sm_80"))
    assert not is_split(product(256, 256, 65536, dtype=float32))
    assert not is_split(product(8192, 768, 50304)) and not is_split(product(256, 768, 1024))
    assert not is_split(product(8, 768, 50304))
    sides = leaf(2, 64, 8192, dtype=bfloat16), leaf(2, 64, 8192, dtype=bfloat16)
    assert not is_split(sides[0].contract(sides[1], ((0, 1, 3), (0, 2, 3), (0, 1, 2))))
    pair = sides[0].contract(sides[1], ((0, 1, 3), (0, 2, 3), (1, 2)))  # two axes are summed
    assert not is_split(pair)


def test_two_kernels_of_tensor_cores():
    heroes = [kernel.hero for kernel in schedule([product(256, 768, 50304)], GPU).kernels]
    assert heroes == ["contract", "reduce.col"]


def test_scores_stream_on():
    """Weights by values are a long sum: in parts they would be written to memory."""
    q, k, v = (leaf(size, 64, dtype=bfloat16) for size in (64, 65536, 65536))
    scores = q.contract(k, ((0, 2), (1, 2), (0, 1)))
    weighed = build.softmax(scores, 1).contract(v, ((0, 1), (1, 2), (0, 2)))
    (shown,) = expand_composites([weighed], target=GPU)
    assert is_split(product(64, 64, 65536)) and not is_split(shown)
    assert [kernel.hero for kernel in schedule([weighed], GPU).kernels] == ["attention"]
