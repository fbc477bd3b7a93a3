"""Gradients by formula: what a second step of a graph records, and what tells graphs apart."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine.plan_cache import PLANS
from picograd.errors import GradientError
from picograd.graph import gradient_formula
from picograd.graph.formula import FOLDED
from picograd.graph.node import RESULT, toposort
from picograd.number import GivenInt
from picograd.tensor.core import autograd


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Start without known gradients."""
    gradient_formula.KNOWN.clear()
    gradient_formula.SIZES.clear()
    yield


def trained(values: Any) -> Tensor:
    return Tensor(np.array(values, np.float32), requires_grad=True)


def gradients(loss: Tensor, *leaves: Tensor) -> list[Any]:
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no gradient be recorded by the rules."""

    def recorded(*args: Any) -> Any:
        raise AssertionError("a known gradient was recorded again")

    monkeypatch.setattr(autograd, "node_gradient", recorded)


def test_a_second_step_records_no_gradient_by_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    w, b = trained([[1.0, 2.0], [3.0, 4.0]]), trained([0.5, -0.5])

    def step(x: Tensor) -> list[Any]:
        return gradients((x @ w + b).relu().square().mean(), w, b)

    x, other = Tensor([[1.0, -2.0]]), Tensor([[-0.25, 3.0]])
    step(x)
    refuse(monkeypatch)
    found = step(other)
    hidden = np.array([[-0.25, 3.0]]) @ w.numpy() + b.numpy()
    flowing = np.maximum(hidden, 0)
    np.testing.assert_allclose(found[0], np.array([[-0.25, 3.0]]).T @ flowing, rtol=1e-6)
    np.testing.assert_allclose(found[1], flowing[0], rtol=1e-6)


@pytest.mark.parametrize("use", [
    lambda x, n: (x * n).mean(),
    lambda x, n: (x * x).sum() * n,
    lambda x, n: (x * n).sum() * (n + 1.0),
    lambda x, n: ((x + n) * (x + n)).sum(),
])  # fmt: skip
def test_another_number_has_its_own_gradient_and_no_plan_of_its_own(use: Any) -> None:
    x = trained([1.0, -2.0, 3.0])

    def wanted(n: float) -> np.ndarray[Any, Any]:
        y, slope = np.array([1.0, -2.0, 3.0]), []
        for k in range(3):
            e = np.eye(3)[k] * 1e-6
            slope.append((float(use(y + e, n)) - float(use(y - e, n))) / 2e-6)
        return np.array(slope)

    for n in (0.5, 0.5, 2.25):
        np.testing.assert_allclose(gradients(use(x, n), x)[0], wanted(n), rtol=1e-5)
    known = len(PLANS)
    for n in (3.5, -1.25, 3.5):
        np.testing.assert_allclose(gradients(use(x, n), x)[0], wanted(n), rtol=1e-5)
    assert len(PLANS) == known


def test_steps_by_hand_that_nobody_reads() -> None:
    """A gradient that is still a folded formula stands below the parameter of the next step."""
    w = picograd.nn.Parameter(Tensor([5.0]))
    for _ in range(4):
        w.grad = None
        ((w - 2) ** 2).sum().backward()
        with picograd.no_grad():
            w -= 0.25 * w.grad
    assert w.tolist() == [2 + 3 / 16]


def test_a_position_is_not_part_of_what_is_known() -> None:
    x = trained([1.0, 2.0, 3.0, 4.0, 5.0])
    for at in (2, 3, 2, 4):
        found = gradients((x[at] * x[at]).sum(), x)[0]
        assert found == [2.0 * (at + 1) if k == at else 0.0 for k in range(5)]


def test_numbers_are_compared_and_not_where_a_batch_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean by a quarter computes a number of the one given; the batches begin elsewhere."""
    data, w = Tensor(np.arange(12.0)).realize(), trained([2.0, 0.5])
    kept: list[Any] = []
    keep = gradient_formula.keep
    monkeypatch.setattr(gradient_formula, "keep", lambda *args: kept.append(1) or keep(*args))
    for at in range(2, 8):
        found = gradients((data[at : at + 2] * w).mean() / 4.0, w)[0]
        np.testing.assert_allclose(found, [at / 8, (at + 1) / 8])
    assert len(kept) <= 2
    found = gradients((data[2:4] * w).mean() / 5.0, w)[0]
    np.testing.assert_allclose(found, [0.2, 0.3])


def test_clamped_values_have_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is picograd's own, and knows which limits there are."""
    x = trained([-2.0, 0.5, 3.0])
    kept: list[Any] = []
    keep = gradient_formula.keep
    monkeypatch.setattr(gradient_formula, "keep", lambda *args: kept.append(1) or keep(*args))
    for _ in range(3):
        assert gradients((x.clamp(-1.0, 1.0) * x).sum(), x)[0] == [-1.0, 1.0, 1.0]
        assert gradients((x.clamp(max=1.0) * x).sum(), x)[0] == [-4.0, 1.0, 1.0]
    assert len(kept) <= 4


def test_what_leaves_ask_for_tells_graphs_apart() -> None:
    a, b = trained([2.0]), trained([3.0])
    assert gradients((a * b).sum(), a, b) == [[3.0], [2.0]]
    b.requires_grad_(False)
    assert gradients((a * b).sum(), a, b) == [[3.0], None]
    b.requires_grad_(True)
    assert gradients((a * b).sum(), a, b) == [[3.0], [2.0]]
    assert gradients((a * a).sum(), a, b) == [[4.0], None]


def test_a_rule_of_the_users_own_is_asked_every_time() -> None:
    class Scaled(picograd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
            ctx.factor = factor
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g * ctx.factor, None

    x = trained([1.0])
    found = [gradients(Scaled.apply(x, factor).sum(), x)[0] for factor in (2.0, 3.0, 2.0)]
    assert found == [[2.0], [3.0], [2.0]]


def test_gradients_may_be_read_one_by_one_and_written_between() -> None:
    a, b = trained([2.0]), trained([3.0])
    for _ in range(2):
        (a * b * b).sum().backward()
        assert a.grad is not None and b.grad is not None
        assert a.grad.tolist() == [b.item() ** 2]
        before = b.item()
        with picograd.no_grad():
            b += 1.0
        assert b.grad.tolist() == [2.0 * a.item() * before]
        a.grad = b.grad = None


def test_a_gradient_that_is_read_again_and_again_is_stored() -> None:
    x, y = trained([1.0, 2.0]), trained([3.0, 5.0])
    (x * y * y).sum().backward()
    assert x.grad is not None and y.grad is not None
    assert (x.grad * 2.0).tolist() == [18.0, 50.0]
    assert (x.grad + y.grad).tolist() == [15.0, 45.0]
    assert (x.grad - y.grad).tolist() == [3.0, 5.0]
    assert (x.grad.sqrt() + y.grad).tolist() == [9.0, 25.0]


def test_gradients_add_up_as_before() -> None:
    x = trained([1.5])
    for count in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [3.0 * count]


def test_a_walk_over_the_graph_sees_the_gradient_itself() -> None:
    x, y = trained([1.0, 2.0]), trained([3.0, 4.0])
    (x * y).sum().backward()
    assert x.grad is not None and y.grad is not None
    ops = {node.op for node in toposort([x.grad.node])}
    assert not ops & {FOLDED, RESULT}
    assert "formula" not in picograd.explain(y.grad)
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad.tolist() == [1.0, 2.0]


def test_gradients_that_are_pending_are_read_by_transforms() -> None:
    x = trained([1.0, 2.0])
    uses: list[Callable[[Tensor], Tensor]] = [
        picograd.vmap(lambda t: t * x.grad),  # type: ignore[operator]
        picograd.jit(lambda t: t * x.grad),
        lambda t: t * x.grad.reshape(2).permute(0).flip(0),  # type: ignore[union-attr]
    ]
    wanted = [[[2.0, 4.0]], [[2.0, 4.0]], [[4.0, 2.0]]]
    for use, expected in zip(uses, wanted, strict=True):
        x.grad = None
        (x * x).sum().backward()
        assert use(Tensor([[1.0, 1.0]])).tolist() == expected


def test_second_derivatives_are_of_the_graph_itself() -> None:
    x = trained([2.0])
    for _ in range(2):
        x.grad = None
        (x**3).sum().backward(create_graph=True)
        slope = x.grad
        assert slope is not None
        (curve,) = picograd.autograd.grad(slope.sum(), x)
        assert slope.tolist() == [12.0] and curve.tolist() == [12.0]


def test_hooks_see_every_gradient() -> None:
    x = trained([2.0])
    seen: list[Any] = []
    gradients((x * x).sum(), x)
    handle = x.register_hook(lambda g: seen.append(g.reshape(1).tolist()) or g * 10)
    assert gradients((x * x).sum(), x) == [[40.0]]
    handle.remove()
    assert gradients((x * x).sum(), x) == [[4.0]]
    y = x * 1.5
    y.register_hook(lambda g: g * 2)
    assert gradients((y * y).sum(), x) == [[18.0]]
    assert seen == [[4.0]]


def test_a_hook_counts_for_the_graph_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = trained([2.0])
    other = x * 1.5
    assert gradients((x * x).sum(), x) == [[4.0]]  # known from here on
    assert gradients((other * other).sum(), x) == [[9.0]]
    other.register_hook(lambda g: g * 2)
    assert gradients((other * other).sum(), x) == [[18.0]]
    kept = x * 1.5
    kept.retain_grad()
    gradients((kept * kept).sum(), x)
    assert kept.grad is not None and kept.grad.tolist() == [6.0]
    refuse(monkeypatch)
    assert gradients((x * x).sum(), x) == [[4.0]]
    with pytest.raises(AssertionError, match="again"):
        gradients((other * other).sum(), x)


def test_what_was_overwritten_is_refused_still() -> None:
    w = trained([2.0])
    for _ in range(2):
        s = Tensor([3.0]).realize()
        loss = (w * s).sum()
        s += 1.0
        s.realize()
        with pytest.raises(GradientError, match="modified by an in-place"):
            loss.backward()


def test_only_so_many_graphs_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_formula, "LIMIT", 2)
    for size in range(1, 6):
        x = trained(np.ones(size))
        assert gradients((x * x).sum(), x) == [[2.0] * size]
    assert len(gradient_formula.KNOWN) == 2


def test_where_sizes_vary_those_that_come_twice_are_known() -> None:
    w = trained([[1.0, 2.0], [3.0, 4.0]])
    for n in range(1, 9):
        gradients((Tensor.ones(n, 2) @ w).sum(), w)
    first = len(gradient_formula.KNOWN)
    assert first == gradient_formula.FEW
    for _ in range(2):
        gradients((Tensor.ones(8, 2) @ w).sum(), w)
    assert len(gradient_formula.KNOWN) == first + 1


def test_a_rule_that_asks_about_a_number_is_no_answer_for_the_next() -> None:
    x = trained([1.0, 2.0])
    for base in (0.0, 2.0, 3.0):
        slope = [base**at * np.log(base) if base else 0.0 for at in (1, 2)]
        assert gradients((base**x).sum(), x) == [pytest.approx(slope, rel=1e-5)]
    for exponent in (2.5, 0.0, 3.5):  # not one that is named in the graph
        x = trained([1.5, 2.0])
        slope = [exponent * at ** (exponent - 1) for at in (1.5, 2.0)]
        assert gradients((x**exponent).sum(), x) == [pytest.approx(slope, rel=1e-5)]


def test_how_a_weight_is_drawn_is_not_walked() -> None:
    weight, x = picograd.randn(4, 4, requires_grad=True), Tensor([[1.0, 2.0, 3.0, 4.0]]).realize()
    loss = (x @ weight).relu().sum()
    walked = gradient_formula.walk(loss.node, autograd.asked_of)
    assert walked is not None and weight.node in walked.order and len(walked.order) < 10
    for _ in range(3):
        weight.grad = None
        (x @ weight).relu().sum().backward()
        found = weight.grad
        assert found is not None
        wanted = (x.numpy() @ weight.detach().numpy() > 0) * x.numpy().T
        np.testing.assert_allclose(found.numpy(), wanted)


def test_a_number_of_a_gradient_is_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares and what is left of them are factors of a mean: others need no rules."""
    w, x = trained([2.0, 0.5]), Tensor([[1.0, 3.0], [-2.0, 4.0]])

    def step(share: float) -> list[Any]:
        loss = share * (x @ w).mean() + (1 - share) * (w * w).sum() / (share * 4.0)
        return gradients(loss, w)[0]

    def wanted(share: float) -> Any:
        return share * np.array([-0.5, 3.5]) + (1 - share) / (share * 4) * 2 * w.numpy()

    np.testing.assert_allclose(step(0.3), wanted(0.3), rtol=1e-6)
    refuse(monkeypatch)
    for share in (0.7, 1e-3, 1.0, 0.5, -2.0):
        np.testing.assert_allclose(step(share), wanted(share), rtol=1e-5)


def test_what_no_plan_takes_is_recorded_by_the_rules() -> None:
    """A number that a gradient computes may be beyond float32, or none at all."""
    w = trained([1.0])
    for share in (2.0, 3.0, 1e-39, 2.5, 3e38, 2.0, 1e-30, 0.0, 0.5):
        found = gradients((w * share * share).sum(), w)[0]
        with np.errstate(all="ignore"):
            assert found == [float(np.float32(share) * np.float32(share))]


def test_positions_of_a_gradient_are_those_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a weight by numbers: others need no rules, equal ones are two all the same."""
    w = trained(np.arange(12.0).reshape(4, 3))

    def step(*rows: int) -> Any:
        loss: Any = 0.0
        for at, row in enumerate(rows):
            loss = loss + (w[row] * w[row] * (at + 1.0)).sum()
        return gradients(loss, w)[0]

    def wanted(*rows: int) -> Any:
        found = np.zeros((4, 3))
        for at, row in enumerate(rows):
            found[row] += 2 * (at + 1) * w.numpy()[row]
        return found

    np.testing.assert_allclose(step(2, 1, 3), wanted(2, 1, 3))
    refuse(monkeypatch)
    for rows in ((0, 1, 2), (2, 2, 3), (0, 0, 0), (3, 0, 3)):
        np.testing.assert_allclose(step(*rows), wanted(*rows))


def test_one_position_in_two_places_is_no_answer_for_two() -> None:
    """A graph that has one object twice says nothing of where two would be."""
    w, one = trained(np.arange(5.0)), GivenInt(3)
    for first, second in ((one, one), (GivenInt(1), GivenInt(2)), (one, GivenInt(4))):
        found = gradients((w[first : first + 2].sum() + w[second] * 2.0), w)[0]
        wanted = np.zeros(5)
        wanted[first : first + 2] += 1
        wanted[second] += 2
        np.testing.assert_allclose(found, wanted)
