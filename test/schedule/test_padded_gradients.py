"""Of gradients that are 0 but for a slice, what is made of the slice alone is computed."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from plan_support import TARGET, VALUES, check_plan, leaf, run
from test_narrowed import PLACES, WIDTH, WORDS, cut, layer, products

from picograd import Tensor
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target

GPU = cuda_target("sm_90a")


def gradients(y: Node, *leaves: Node) -> list[Node]:
    """List the gradients of a sum of squares."""
    found = gradient(
        [((y * y).reduce("sum", tuple(range(y.rank))), build.const(1.0, (), y.dtype, "cpu"))],
        list(leaves),
    )
    return [each for each in found if each is not None]


def leaves_of(root: Node) -> list[Node]:
    """List the leaves below a node, in order."""
    found: dict[int, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not node.inputs:
            found[id(node)] = node
        waiting += node.inputs
    return [each for each in found.values() if each.row.role.name == "MEMORY"]


@pytest.mark.parametrize("target", [TARGET, GPU], ids=["cpu", "gpu"])
def test_the_last_layer_has_gradients_of_one_place(target: Target) -> None:
    x = leaf(2, PLACES, WIDTH)
    y = build.matmul(cut(layer(layer(x, 2), 2), 1, 0), leaf(WIDTH, WORDS))
    roots = [y, *gradients(y, *leaves_of(y))]
    values = run(schedule(roots, target))
    for ours, theirs in zip(values, interpret(roots, values=VALUES), strict=True):
        assert np.linalg.norm(ours - theirs) <= 1e-4 * np.linalg.norm(theirs)
    found = products(*roots, target=target)
    assert found.count(2 * PLACES * 2 * WIDTH) == 2, "hidden values and their gradient, of one"


def in_heads(x: Node) -> Node:
    """Move heads before places, and back."""
    heads = x.reshape((2, PLACES, 4, WIDTH // 4)).permute((0, 2, 1, 3))
    return (heads * 2.0).permute((0, 2, 1, 3)).reshape(x.shape)


CASES: dict[str, Callable[[Node, Node], Node]] = {
    "product": build.matmul,
    "activation": lambda x, w: build.matmul(x, w).unary("relu"),
    "scaled": lambda x, w: build.matmul(x * 3.0, w) / 2.0,
    "residual": lambda x, w: build.matmul(x + build.matmul(x, leaf(WIDTH, WIDTH)), w),
    "heads": lambda x, w: build.matmul(in_heads(x), w),
    "softmax": lambda x, w: build.softmax(build.matmul(x, w), 2),
    "padded": lambda x, w: build.matmul(x, w).pad(((0, 0), (0, 0), (2, 1))),
}
SLICES: Sequence[Callable[[Node], Node]] = [
    lambda y: cut(y, 1, 0),
    lambda y: cut(y, 1, PLACES - 3, 3),
    lambda y: cut(cut(y, 1, 4, 2), 2, 1, 2),
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", range(len(SLICES)))
def test_gradients_are_those_of_the_whole(name: str, number: int) -> None:
    x, w = leaf(2, PLACES, WIDTH), leaf(WIDTH, WORDS)
    y = SLICES[number](CASES[name](x, w))
    check_plan([y, *gradients(y, x, w)], tolerance=2e-3)


def test_zeros_beside_numbers_stay() -> None:
    x, w = leaf(2, PLACES, WIDTH), leaf(WIDTH, WORDS)
    y = build.matmul(x, w)
    both = cut(y, 1, 0) * cut(y, 1, 5) + y.reduce("sum", (1,)).reshape((2, 1, WORDS))
    check_plan(gradients(both, x, w), tolerance=1e-2)
    found = schedule(gradients(cut(y, 1, 0), x, w), TARGET)
    assert all(slot.nbytes < y.size * 4 for slot in found.slots if slot.kind == "temporary")


def test_a_number_beside_zeros_is_not_lost() -> None:
    around = leaf(2, 2, WIDTH).pad(((0, 0), (0, PLACES), (0, 0)))
    framed = around.pad(((0, 0), (0, 0), (1, 2)), 1.0)
    check_plan([build.matmul(framed, leaf(WIDTH + 3, WORDS))])


@pytest.mark.parametrize("places", [8, 64])
def test_columns_that_a_slice_reads_are_computed_alone(places: int) -> None:
    x, w, b = leaf(places, WIDTH), leaf(WIDTH, WORDS), leaf(WORDS)
    y = build.matmul(x, w) + b.reshape((1, WORDS)).expand((places, WORDS))
    roots = gradients(cut(y, 1, 3, 2), w, b)
    check_plan(roots, tolerance=1e-3)
    names = [kernel.name for kernel in schedule(roots, TARGET).kernels]
    assert f"contract_{WIDTH}x2" in names


@pytest.mark.parametrize("place", [0, 3, -1])
def test_a_place_may_be_another_each_time(place: int) -> None:
    numbers = np.random.default_rng(0)
    x, w = numbers.standard_normal((2, 40, 16)), numbers.standard_normal((16, 9))
    inputs = [Tensor(each, requires_grad=True) for each in (x, w)]
    (inputs[0] @ inputs[1])[:, place].sum().backward()
    assert inputs[0].grad is not None and inputs[1].grad is not None
    expected = np.zeros_like(x)
    expected[:, place] = w.sum(1)
    np.testing.assert_allclose(inputs[0].grad.numpy(), expected)
    np.testing.assert_allclose(inputs[1].grad.numpy(), np.stack([x[:, place].sum(0)] * 9, 1))
