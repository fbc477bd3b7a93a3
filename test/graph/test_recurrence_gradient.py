"""The gradient of a loop is a loop: what it keeps, what it sums outside, and that it is right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_support import leaf

from picograd.dtype import float64
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.graph.recurrence import make_body, outcome, placeholder, recur, stacked

STEP = 1e-6
Step = Callable[[Node, Node, Node], Node]


def product(h: Node, x: Node, w: Node) -> Node:
    return (h.contract(w, ((0, 1), (1, 2), (0, 2))) + x).unary("tanh")


def mixed(h: Node, x: Node, w: Node) -> Node:
    """The weight enters by elementwise arithmetic, larger than any carry."""
    scaled = (w * w).reduce("sum", (0,)).reshape((1, 3)).expand((2, 3))
    return (h * scaled * 0.3 + x).unary("sigmoid")


def reduced(h: Node, x: Node, w: Node) -> Node:
    column = h.reduce("sum", (1,)).reshape((2, 1)).expand((2, 3))
    return h.contract(w, ((0, 1), (2, 1), (0, 2))).unary("sin") * column + x * h


STEPS: dict[str, Step] = {"product": product, "mixed": mixed, "reduced": reduced}


def build(step: Step, is_reverse: bool, inputs: list[Node]) -> Node:
    """A number that depends on every outcome of a loop."""
    h, x = (placeholder(kind, (2, 3), float64, "cpu") for kind in ("carry", "x"))
    w = placeholder("constant", (3, 3), float64, "cpu")
    after = step(h, x, w)
    y = after * x + h
    body, numbers = make_body(([h], [x], [w]), [after], [y])
    node = recur(body, 4, is_reverse, inputs)
    parts = [outcome(node, "carry", 0), outcome(node, "history", 0), stacked(node, numbers[id(y)])]
    total = [(part * part).reduce("sum", tuple(range(part.rank))) for part in parts]
    return total[0] + total[1] + total[2]


def values() -> list[np.ndarray]:
    draw = np.random.default_rng(0).normal
    return [draw(size=(2, 3)), draw(size=(4, 2, 3)), draw(size=(3, 3))]


def differentiated(step: Step, is_reverse: bool, arrays: list[np.ndarray], order: int) -> Node:
    """The number, or a number made of its gradients."""
    inputs = [leaf(array) for array in arrays]
    total = build(step, is_reverse, inputs)
    for _ in range(order):
        found = gradient([(total, total.const_like(1.0))], inputs)
        squares = [(g * g).reduce("sum", tuple(range(g.rank))) for g in found if g is not None]
        assert len(squares) == 3
        total = squares[0] + squares[1] + squares[2]
    return total


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_gradient_against_finite_differences(name: str, is_reverse: bool, order: int) -> None:
    """Of the loop, and of its gradient: the second order."""
    arrays, step = values(), STEPS[name]
    inputs = [leaf(array) for array in arrays]
    total = build(step, is_reverse, inputs)
    if order:
        found = gradient([(total, total.const_like(1.0))], inputs)
        squares = [(g * g).reduce("sum", tuple(range(g.rank))) for g in found if g is not None]
        total = squares[0] + squares[1] + squares[2]
    slopes = interpret([g for g in gradient([(total, total.const_like(1.0))], inputs) if g])
    for number, slope in enumerate(slopes):
        for at in ((0, 1), (1, 2)):
            place = (1, *at) if slope.ndim == 3 else at
            sides = []
            for move in (STEP, -STEP):
                moved = [array.copy() for array in arrays]
                moved[number][place] += move
                sides.append(interpret([differentiated(step, is_reverse, moved, order)])[0])
            wanted = (sides[0] - sides[1]) / (2 * STEP)
            np.testing.assert_allclose(slope[place], wanted, rtol=2e-5, atol=1e-5)


def loops(nodes: list[Node]) -> list[Node]:
    return [node for node in toposort(nodes) if node.op == "recur"]


def test_a_weight_gradient_is_one_product_over_all_steps() -> None:
    inputs = [leaf(array) for array in values()]
    total = build(product, False, inputs)
    found = [g for g in gradient([(total, total.const_like(1.0))], inputs) if g is not None]
    first, back = loops(found)
    products = [n for n in back.arg.body.order if n.op == "contract"]
    assert len(products) == 1  # that of h: the weight's is outside
    assert first.arg.is_reverse is False and back.arg.is_reverse is True
    (outside,) = [n for n in toposort(found) if n.op == "contract"]
    assert [child.shape for child in outside.inputs] == [(4, 2, 3)] * 2


def test_gradients_of_slices_are_kept_as_one_array() -> None:
    """A bias of gates, which are slices of one array: one array a step, not one for each gate."""
    shapes = ("carry", (2, 3)), ("x", (2, 6)), ("constant", (2, 6))
    h, x, bias = (placeholder(*each, float64, "cpu") for each in shapes)
    forget, enter = ((x + bias).slice(((0, 2, 1), (n, n + 3, 1))) for n in (0, 3))
    after = forget.unary("sigmoid") * h + enter.unary("tanh")
    body, _ = make_body(([h], [x], [bias]), [after], [])
    draw = np.random.default_rng(0).normal
    inputs = [leaf(draw(size=shape)) for shape in ((2, 3), (4, 2, 6), (2, 6))]
    last = outcome(recur(body, 4, False, inputs), "carry", 0)
    (found,) = gradient([(last, last.const_like(1.0))], inputs[2:])
    assert found is not None
    kept = [each for each in toposort([found]) if each.op == "outcome"]
    assert [each.shape for each in kept] == [(5, 2, 3), (4, 2, 6)]  # the carries, and the gates
    both = [each for each in gradient([(last, last.const_like(1.0))], inputs[1:]) if each]
    of_x, of_bias = interpret(both)
    np.testing.assert_allclose(of_x.sum(0), of_bias, rtol=1e-12)


def kept_of(after: Callable[[Node, Node], Node], shape: tuple[int, int]) -> list[Any]:
    """List the shapes kept for the gradient of a constant, and those of its carries."""
    h, made = (
        placeholder(*each, float64, "cpu") for each in (("carry", (2, 3)), ("constant", shape))
    )
    body, _ = make_body(([h], [], [made]), [after(h, made)], [])
    draw = np.random.default_rng(0).normal
    inputs = [leaf(draw(size=shape)) for shape in ((2, 3), shape)]
    last = outcome(recur(body, 4, False, inputs), "carry", 0)
    (found,) = gradient([(last, last.const_like(1.0))], inputs[1:])
    assert found is not None
    _, back = loops([found])
    kept = [n for n in toposort([found]) if n.op == "outcome" and n.inputs[0] is back]
    return [each.shape for each in (*kept, *back.arg.body.carries)]


def test_products_that_are_added_up_are_taken_outside_each() -> None:
    """A weight that a step multiplies twice: no array of a step is as large as it."""
    axes = ((0, 1), (1, 2), (0, 2))
    shapes = kept_of(lambda h, w: h.contract(w, axes).contract(w, axes).unary("tanh"), (3, 3))
    assert shapes and not {(3, 3), (4, 3, 3)}.intersection(shapes)


def test_other_constants_are_summed_in_a_carry() -> None:
    inputs = [leaf(array) for array in values()]
    total = build(mixed, False, inputs)
    found = [g for g in gradient([(total, total.const_like(1.0))], inputs) if g is not None]
    assert [carry.shape for carry in loops(found)[1].arg.body.carries] == [(2, 3), (3, 3)]


def test_what_is_made_of_a_product_is_kept_in_its_place() -> None:
    """Of h' = tanh(h w + x) the states alone: neither the product nor x is read again."""
    inputs = [leaf(array) for array in values()]
    h, x = (placeholder(kind, (2, 3), float64, "cpu") for kind in ("carry", "x"))
    w = placeholder("constant", (3, 3), float64, "cpu")
    body, _ = make_body(([h], [x], [w]), [product(h, x, w)], [])
    last = outcome(recur(body, 4, False, inputs), "carry", 0)
    (found,) = gradient([(last, last.const_like(1.0))], inputs[2:])
    assert found is not None
    first, back = loops([found])
    kept = [n for n in toposort([found]) if n.op == "outcome" and n.inputs[0] is first]
    assert {each.arg[0] for each in kept} == {"history"}
    assert inputs[1] not in back.inputs and len(back.arg.body.xs) == 1


def test_the_derived_body_is_kept() -> None:
    """Differentiating a loop of known structure builds no new body."""
    bodies = []
    for _ in range(2):
        inputs = [leaf(array) for array in values()]
        total = build(product, False, inputs)
        found = [g for g in gradient([(total, total.const_like(1.0))], inputs) if g is not None]
        bodies.append(loops(found)[1].arg.body)
    assert bodies[0] is bodies[1]
