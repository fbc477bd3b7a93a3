"""Of products that only slices read, the rows of the slices alone are computed."""

from collections.abc import Callable

import numpy as np
import pytest
from plan_support import TARGET, check_plan, leaf

import picograd.nn.functional as F
from picograd import Tensor
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

GPU = cuda_target("sm_90a")
PLACES, WIDTH, HEADS, WORDS = 24, 16, 2, 11


def reshaped(x: Node, *shape: int) -> Node:
    return build.reshape(x, shape)


def layer(x: Node, batch: int) -> Node:
    """Attend to all places, then a network of two products."""
    q, k, v = (build.matmul(x, leaf(WIDTH, WIDTH)) for _ in range(3))
    q, k, v = (
        reshaped(each, batch, PLACES, HEADS, WIDTH // HEADS).permute((0, 2, 1, 3))
        for each in (q, k, v)
    )
    weights = build.softmax(build.matmul(q, k.permute((0, 1, 3, 2))), 3)
    y = build.matmul(weights, v).permute((0, 2, 1, 3))
    x = x + build.matmul(reshaped(y, batch, PLACES, WIDTH), leaf(WIDTH, WIDTH))
    hidden = build.matmul(x, leaf(WIDTH, 2 * WIDTH)).unary("relu")
    return x + build.matmul(hidden, leaf(2 * WIDTH, WIDTH))


def cut(x: Node, axis: int, first: int, count: int = 1, step: int = 1) -> Node:
    ranges = [(0, size, 1) for size in x.shape]
    ranges[axis] = first, first + (count - 1) * step + 1, step
    return x.slice(tuple(ranges))


def products(*roots: Node, target: Target = TARGET) -> list[int]:
    """Count the elements of the results of products of a plan, in order."""
    plan = schedule(list(roots), target)
    found = []
    for kernel in plan.kernels:
        for part in kernel.parts:
            sums = [each for each in part.computes if each.reduce and len(each.axes)]
            if kernel.hero == "contract" and sums:
                found.append(int(np.prod([axis.size for axis in sums[0].axes])))
    return found


@pytest.mark.parametrize("target", [TARGET, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_last_layer_is_computed_of_the_last_place(batch: int, target: Target) -> None:
    x = leaf(batch, PLACES, WIDTH)
    y = build.matmul(layer(layer(x, batch), batch), leaf(WIDTH, WORDS))
    last = cut(y, 1, PLACES - 1)
    check_plan([last], target=target)
    found = products(last, target=target)
    assert batch * WORDS in found
    assert batch * PLACES * WORDS not in found
    assert found.count(batch * PLACES * 2 * WIDTH) == 1, "of the first layer alone"


CUTS: dict[str, Callable[[Node], Node]] = {
    "first": lambda y: cut(y, 1, 0),
    "steps": lambda y: cut(y, 1, 1, 3, 8),
    "columns": lambda y: cut(y, 2, 3, 2),
    "both": lambda y: cut(cut(y, 1, 5, 4), 2, 1),
    "twice": lambda y: cut(cut(y, 1, 3, 6), 1, 2),
    "again": lambda y: cut(y, 1, 4) * 2.0 + cut(y, 1, 4),
    "of a view": lambda y: cut(y.permute((1, 0, 2)), 0, 7),
    "of a sum": lambda y: cut(y.reduce("sum", (2,)), 1, 7),
    "padded": lambda y: cut(y.pad(((0, 0), (0, 0), (1, 2))), 1, 9),
}


@pytest.mark.parametrize("name", CUTS)
def test_values_are_those_of_the_whole(name: str) -> None:
    y = build.matmul(leaf(2, PLACES, WIDTH), leaf(WIDTH, WORDS))
    found = CUTS[name](y)
    check_plan([found])
    assert max(products(found)) < y.size


def test_what_others_read_is_computed_whole() -> None:
    y = build.matmul(leaf(2, PLACES, WIDTH), leaf(WIDTH, WORDS))
    last = cut(y, 1, PLACES - 1)
    for roots in ([last, y], [last, y.reduce("sum", (1,))], [last, cut(y, 1, 0)]):
        check_plan(roots)
        assert y.size in products(*roots)
    parted = cut(reshaped(y, 2, PLACES // 4, 4, WORDS), 1, 2)
    check_plan([parted])
    assert y.size in products(parted), "an axis of the slice is none of the product"
    most = cut(y, 1, 1, PLACES - 1)
    assert y.size in products(most), "of most rows the first is computed, too"


def test_nothing_changes_where_no_product_is_cut() -> None:
    x = leaf(8, PLACES, WIDTH)
    (kernel,) = schedule([cut(x.unary("exp"), 1, 0)], TARGET).kernels
    (part,) = kernel.parts
    assert [axis.size for axis in part.rows] == [8, WIDTH]


@pytest.mark.parametrize("causal", [False, True])
def test_a_position_may_be_another_each_time(causal: bool) -> None:
    numbers = np.random.default_rng(0)
    x, head = (Tensor(numbers.standard_normal(s, np.float32)) for s in ((2, 40, 16), (16, 9)))
    whole = F.scaled_dot_product_attention(x, x, x, is_causal=causal) @ head
    expected = whole.numpy()
    for place in (0, 7, 39, -1):
        scores = F.scaled_dot_product_attention(x, x, x, is_causal=causal) @ head
        np.testing.assert_allclose(scores[:, place].numpy(), expected[:, place], 1e-4, 1e-5)
