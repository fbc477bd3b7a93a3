"""Steps of optimizers are foreseen where they are those of before, and are what a walk finds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.dtype import float32
from picograd.engine import foreseen, pending
from picograd.engine.foreseen import CHANGED
from picograd.engine.small import SmallGraph
from picograd.errors import InternalError
from picograd.graph.gradient_formula import Block, Placed
from picograd.graph.node import RESULT, Node
from picograd.nn import functional as F

STEPS = 8
Loop = Callable[[nn.Module, Any, int], Any]


def network() -> tuple[nn.Module, Any]:
    layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))
    drawn = np.random.default_rng(3)
    for parameter in layers.parameters():
        values = drawn.standard_normal(parameter.shape).astype(np.float32)
        parameter.data = Tensor(values).realize()
    return layers, nn.optim.Adam(layers.parameters(), lr=0.05)


def batch(number: int, size: int = 5) -> tuple[Tensor, Tensor]:
    drawn = np.random.default_rng(number)
    x = drawn.standard_normal((size, 4)).astype(np.float32)
    return Tensor(x).realize(), Tensor(drawn.integers(0, 3, size)).realize()


def loss_of(model: nn.Module, number: int, size: int = 5) -> Tensor:
    x, y = batch(number, size)
    return F.cross_entropy(model(x), y)


def plain(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number)
    loss.backward()
    optimizer.step()
    return loss.item()


def rates(model: nn.Module, optimizer: Any, number: int) -> Any:
    optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
    return plain(model, optimizer, number)


def clipped(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss_of(model, number).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    return norm.item()


def two_losses(model: nn.Module, optimizer: Any, number: int) -> Any:
    model.eval()
    loss_of(model, number).backward()
    (loss_of(model, number + 1) / 3.0).backward()
    optimizer.step()
    return model.state_dict()["0.weight"].sum().item()


def outputs_held(model: nn.Module, optimizer: Any, number: int) -> Any:
    x, y = batch(number)
    out = model(x)
    weight = next(iter(model.parameters())) * 2.0  # reads what the step writes
    apart = x * 3.0
    loss = F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    return out.sum().item() + weight.sum().item() + apart.sum().item() + loss.item()


def written_between(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number)
    loss.backward()
    with picograd.no_grad():
        for parameter in model.parameters():
            parameter *= 0.9
    optimizer.step()
    return loss.item()


def read_between(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number)
    loss.backward()
    value = loss.item() if number % 2 else 0.0
    optimizer.step()
    return value + loss.item()


def sizes(model: nn.Module, optimizer: Any, number: int) -> Any:
    loss = loss_of(model, number, 5 + number % 2)
    loss.backward()
    optimizer.step()
    return loss.item()


def one_tensor_twice(model: nn.Module, optimizer: Any, number: int) -> Any:
    """Every other step, the first too, two inputs are the same memory."""
    x, y = batch(number)
    other = batch(number + 50)[0] if number % 2 else x
    loss = F.cross_entropy(model(x) + model(other), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def run(loop: Loop, steps: int = STEPS) -> list[Any]:
    model, optimizer = network()
    found = []
    for number in range(steps):
        optimizer.zero_grad()
        found.append(loop(model, optimizer, number))
    return [*found, *(parameter.numpy() for parameter in model.parameters())]


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each step was computed as it was foreseen."""
    found: list[bool] = []
    compute = foreseen.compute

    def noted(*args: Any) -> Any:
        roots = compute(*args)
        found.append(roots is not None)
        return roots

    monkeypatch.setattr(foreseen, "compute", noted)
    monkeypatch.setattr(picograd.config, "verify", 0)
    foreseen.KNOWN.clear()
    return found


@pytest.mark.parametrize(
    ("loop", "few"),
    [
        (plain, 3), (rates, 3), (clipped, 3), (two_losses, 3), (outputs_held, 3),
        (written_between, 0), (read_between, 0), (sizes, 1), (one_tensor_twice, 1),
    ],
)  # fmt: skip
def test_steps_are_what_a_walk_finds(
    loop: Loop, few: int, hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(loop)
    assert sum(hits) >= few, hits
    monkeypatch.setattr(foreseen, "step_of", lambda *args: None)
    for mine, wanted in zip(found, run(loop), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)
    assert len(hits) <= STEPS


def test_a_step_that_was_foreseen_makes_no_walk(
    hits: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = network()
    for number in range(5):
        optimizer.zero_grad()
        plain(model, optimizer, number)
    monkeypatch.setattr(pending, "compute_all", lambda *args: pytest.fail("a walk"))
    for number in range(3):
        optimizer.zero_grad()
        plain(model, optimizer, number)


def test_what_was_foreseen_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    foreseen.KNOWN.clear()
    model, optimizer = network()
    for number in range(4):
        optimizer.zero_grad()
        plain(model, optimizer, number)
    (known,) = list(foreseen.KNOWN.values())
    known.buffers[0], known.buffers[1] = known.buffers[1], known.buffers[0]
    optimizer.zero_grad()
    with pytest.raises(InternalError, match="foreseen"):
        plain(model, optimizer, 4)


def test_many_norms_are_foreseen(hits: list[bool]) -> None:
    model = nn.Sequential(*(nn.BatchNorm1d(4) for _ in range(24))).to("null")
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    x = Tensor(np.ones((5, 4), np.float32), device="null")
    for _ in range(5):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert hits[-1] and hits.count(True) >= 2


def leaf(*shape: int) -> Node:
    return Tensor(np.ones(shape, np.float32)).realize().node


def above(
    *inputs: Node, op: str = "detach", arg: Any = None, shape: tuple[int, ...] = (2,)
) -> Node:
    return Node(op, inputs, arg, shape, float32, "cpu")


def computed(node: Node) -> Node:
    node.realized = leaf(*node.shape).arg.buffer
    return node


def test_a_gradient_is_the_result_of_a_formula_as_it_was_recorded() -> None:
    result = above(above(leaf(2)), op=RESULT, arg=3)
    assert foreseen.number_of(above(result)) == 3
    assert foreseen.number_of(result) == CHANGED, "it is none of a formula's result"
    assert foreseen.number_of(above(result, arg=1)) == CHANGED
    assert foreseen.number_of(above(result, leaf(2), op="add")) == CHANGED
    assert foreseen.number_of(above(result, shape=(1, 2))) == CHANGED
    assert foreseen.number_of(computed(above(result))) == CHANGED
    assert foreseen.number_of(above(computed(result))) == CHANGED


def test_formulas_are_found_a_few_nodes_below_what_was_made_of_gradients() -> None:
    whole = above(leaf(2))
    gradient = above(above(whole, op=RESULT, arg=0))
    assert foreseen.wholes_below([gradient], []) == [whole]
    near = above(gradient, leaf(2), op="mul")
    assert foreseen.wholes_below([], [near]) == [whole]
    assert not foreseen.wholes_below([], [above(computed(near))]), "it is in memory"
    far = near
    for _ in range(foreseen.NEAR):
        far = above(far)
    assert not foreseen.wholes_below([], [far])


def test_a_known_graph_ends_in_memory_that_is_as_it_was() -> None:
    x, two = leaf(2), Node("const", (), 2.0, (2,), float32, "cpu")
    product = above(x, two, op="mul")

    def ends(order: list[Node], leaves: tuple[int, ...], outside: tuple[int, ...] = ()) -> Any:
        block = Block((), leaves, outside, ())
        return foreseen.ends_of(Placed(block, [product], order, []), step)

    step = foreseen.Step([], [], [], [])
    held = step.buffers
    assert ends([x, two, product], (0, 1), (2,)) is not None and held == [x.arg.buffer]
    assert ends([x, two, product], (2,)) is None, "an end is computed"
    assert ends([x, two, product], (0,), (1,)) is None, "what is outside is no more"
    assert ends([Node("buffer", (), None, (2,), float32, "cpu")], (0,)) is None, "memory is gone"
    assert ends([x, two, computed(above(x, two, op="mul"))], (0, 1)) is None
    product.inputs = ()
    assert ends([x, two], (0, 1)) is None, "something inside was computed"


def test_what_is_beside_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    def added(node: Node, told: tuple[Node, ...] = ()) -> bool:
        graph = SmallGraph((), 8)
        graph.places.update((id(each), -1) for each in told)
        return foreseen.add_rest(foreseen.Step([], [], [], []), graph, [node])

    assert added(above(leaf(2), op="neg"))
    root = above(leaf(2), op="neg")
    assert not added(root, (root,)), "it is told already"
    assert not added(computed(above(leaf(2), op="neg")))
    monkeypatch.setattr(foreseen, "is_carried", lambda nodes: True)
    assert not added(above(leaf(2), op="neg"))


def test_which_objects_are_the_same() -> None:
    a, b = object(), object()
    assert foreseen.sharing([a, b]) == 2
    assert foreseen.sharing([a, b, a]) == (0, 1, 0) != foreseen.sharing([a, b, b])
