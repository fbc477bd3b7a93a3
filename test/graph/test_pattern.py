"""What was made together is told as one, as long as it is as it was made."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.graph import gradient_formula
from picograd.graph.node import Node
from picograd.graph.pattern import FEWEST, Pattern, made_with, pattern_of
from picograd.nn import functional as F
from picograd.tensor.core.autograd import asked_of

ANY = ("add", (0, 1), None)


def tensor(*shape: int, tracks: bool = False) -> Tensor:
    drawn = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return Tensor(drawn, requires_grad=tracks).realize()


def norm(x: Tensor, w: Tensor) -> Tensor:
    return F.layer_norm(x, (4,), w)


def patterns(root: Node) -> list[Any]:
    walked: Any = gradient_formula.walk(root, asked_of)
    return [part for part in walked.key.rows[0] if type(part) is Pattern]


@pytest.fixture
def stamped(monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    monkeypatch.setattr(picograd.config, "verify", 0)
    x, w = tensor(3, 4, tracks=True), tensor(4, tracks=True)
    for _ in range(3):
        norm(x, w)
    return x, w


def test_what_makes_a_pattern() -> None:
    steps = [ANY] * FEWEST
    last = 2 + FEWEST - 1
    number = ("const", (), 2.0)
    assert pattern_of(steps, 2, [last], set()) is not None
    assert pattern_of(steps[1:], 2, [last - 1], set()) is None
    assert pattern_of(steps, 2, [last - 1], set()) is None
    for refused in ("detach", (1,), None), ("assign", (0, 1), None):
        assert pattern_of([refused, *steps[1:]], 2, [last], set()) is None
    assert pattern_of([("detach", (3,), None), *steps[1:]], 2, [last], set()) is not None
    assert pattern_of(steps, 2, [last], {1}) is None
    found: Any = pattern_of([number, *steps[1:]], 5, [5 + FEWEST - 1], {0})
    assert (found.count, found.reads, found.ends, found.numbers) == (5, (0, 1), (0,), (0,))


def test_a_pattern_is_that_of_the_first_of_several_results() -> None:
    steps = [ANY] * FEWEST
    last = 2 + FEWEST - 1
    more = [*steps, ("detach", (1,), None), ("assign", (0, 1), None)]
    found = pattern_of(more, 2, [last, last + 2], {FEWEST + 1})
    alone = pattern_of(steps, 2, [last], set())
    assert found is not None and alone is not None
    assert (found.reads, found.numbers) == (alone.reads, ())
    assert pattern_of(more, 2, [last, last - 1], set()) is None  # made on the way
    assert pattern_of(more, 2, [last, 0], set()) is None
    assert pattern_of([], 2, [], set()) is None


def test_a_result_says_what_it_was_made_with(stamped: tuple[Tensor, Tensor]) -> None:
    root = norm(*stamped)._node
    pattern, members, made = made_with(root, lambda made: True)  # type: ignore[misc]
    assert members[: pattern.count] == [stamped[0]._node, stamped[1]._node]
    assert {node.op for node in made} >= {"reduce", "layer_norm"}
    assert made_with(root, lambda made: False) is None
    made[3].realized = stamped[0]._node.arg.buffer
    assert made_with(root, lambda made: True) is None


def test_a_walk_has_one_row_for_it(stamped: tuple[Tensor, Tensor]) -> None:
    x, w = stamped
    loss = (norm(x, w) * 2.0).sum()
    assert len(patterns(loss._node)) == 1


def test_what_reads_inside_is_told_apart(stamped: tuple[Tensor, Tensor]) -> None:
    """What is inside may have another reader, met before or after."""
    y = norm(*stamped)._node
    kind = y.shape, y.dtype, y.device
    alike = [node for node in y.stamped[1][2:] if node.shape == y.shape][-2:]
    keys = set()
    for inner in alike:
        beside = Node("neg", (inner,), None, *kind)
        for read in (y, beside), (beside, y):
            walked: Any = gradient_formula.walk(Node("add", read, None, *kind), asked_of)
            assert walked.order.count(inner) == 1
            keys.add(walked.key)
    assert len(keys) == 4


def test_gradients_and_values_are_those_of_the_first_call(stamped: tuple[Tensor, Tensor]) -> None:
    def run(scale: float) -> list[np.ndarray]:
        x, w = tensor(3, 4, tracks=True), tensor(4, tracks=True)
        y = F.layer_norm(x, (4,), w, eps=scale)
        (y * y * x).sum().backward()
        return [y.numpy(), x.grad.numpy(), w.grad.numpy()]  # type: ignore[union-attr]

    first = run(1e-5)
    for _ in range(4):
        for found, wanted in zip(run(1e-5), first, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert not np.allclose(run(3.0)[0], first[0])
