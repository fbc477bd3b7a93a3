"""Ends of ways by machine code: tensors are left as Python leaves them, or Python does it."""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.buffer import Overwritten
from picograd.engine import carried, followed
from picograd.engine import sizes as engine_sizes
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CODED
from picograd.errors import GradientError
from picograd.graph.node import Node
from picograd.nn import functional as F
from picograd.runtime.memory import WATCHERS
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following, native_ends

pytestmark = pytest.mark.skipif(not is_possible(), reason="another interpreter")
WARM = 9


class Step:
    """A step with a norm, whose statistics are written; `told` counts ends by Python."""

    def __init__(self) -> None:
        picograd.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
        self.optimizer = nn.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.norm: Any = self.model[1]
        self.wanted = Tensor(np.ones((5, 3), np.float32)).realize()

    def __call__(self, number: int, inside: Callable[[Tensor], Any] = lambda loss: None) -> Tensor:
        numbers = np.random.default_rng(number)
        x = Tensor(numbers.standard_normal((5, 4)).astype(np.float32)).realize()
        loss = F.mse_loss(self.model(x), self.wanted)
        loss.backward()
        inside(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What Python did at the ends of ways, which all are followed by machine code at once."""
    found: list[str] = []
    if CODED.follow is None:
        CODED.begin()

    def noted(name: str) -> None:
        method = getattr(following.Follower, name)

        def call(follower: Any, *given: Any) -> Any:
            found.append(name)
            return method(follower, *given)

        monkeypatch.setattr(following.Follower, name, call)

    noted("is_as_told"), noted("give_results"), noted("launch")
    monkeypatch.setattr(following.Known, "miss", lambda known, *_: setattr(known, "waits", 1))
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    monkeypatch.setattr(engine_sizes, "FAMILIES", OrderedDict())
    monkeypatch.setattr(native_ends, "USES", 1)
    monkeypatch.setattr(picograd.config, "verify", 0)
    monkeypatch.setattr(followed, "FIRST", 2)
    carried.SPOTS.clear()
    yield found
    followed.stop()
    EVENTS.after = None


def after(look: Callable[[Step], Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a look finds after steps that machine code ends, Python ends, and that are recorded."""
    found = []
    for uses, first in ((1, 2), (1 << 30, 2), (1, 1 << 30)):
        monkeypatch.setattr(native_ends, "USES", uses)
        monkeypatch.setattr(followed, "FIRST", first)
        followed.stop()
        EVENTS.after = None
        step = Step()
        for number in range(WARM):
            step(number)
        found.append(look(step))
    return found


def same(found: list[Any]) -> None:
    for each in found[1:]:
        np.testing.assert_allclose(found[0], each, rtol=1e-6, atol=1e-7)


def test_machine_code_ends_steps(ends: list[str]) -> None:
    step = Step()
    for number in range(WARM):
        step(number)
    assert ends[-4:] == ["launch"] * 4


def test_what_is_written_counts_its_versions(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        stats = step.norm.running_mean, step.norm.running_var, step.norm.num_batches_tracked
        count = [each._version for each in stats]
        step(WARM)
        return [now._version - before for now, before in zip(stats, count)], stats[0].tolist()[:3]

    found = after(look, monkeypatch)
    same([versions for versions, _ in found])
    same([values for _, values in found])


def test_a_loss_that_lives_on_has_its_graph(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        loss = step(WARM)
        value = loss.item()
        assert loss.grad_fn is not None and loss.requires_grad
        with pytest.raises(GradientError, match="in-place"):
            loss.backward()  # the weights it needs are gone
            step.model[0].weight.grad.numpy()
        step.optimizer.zero_grad()
        return [value, *step.norm.running_var.tolist()]

    same(after(look, monkeypatch))


def test_gradients_that_live_on_have_values(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        kept: list[Tensor] = []
        step(WARM, lambda loss: kept.append(step.model[0].weight.grad))
        step(WARM + 1, lambda loss: kept.append(loss))
        history = [each._history is None for each in kept]
        return [*kept[0].numpy().ravel(), kept[1].item(), *history]

    same(after(look, monkeypatch))


def test_a_tensor_that_lives_on_for_once_gets_its_value(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        kept: list[Tensor] = []
        handle = step.model[0].register_forward_hook(lambda *given: kept.append(given[2]))
        step(WARM)
        handle.remove()
        step(WARM + 1)
        return kept[0].detach().numpy().ravel()

    same(after(look, monkeypatch))


def test_parameters_that_share_memory_are_told(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        step.model[2].bias.data = step.model[0].bias[:3].detach()
        for number in range(3):
            step(WARM + number)
        return [*step.model[2].bias.tolist(), *step.model[0].bias.tolist()]

    same(after(look, monkeypatch))


def test_views_of_what_the_optimizer_writes_are_told(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        shown, part = step.model[0].weight.detach(), step.model[2].bias.detach()[1:]
        step(WARM)
        step(WARM + 1)
        np.testing.assert_array_equal(shown.numpy(), step.model[0].weight.detach().numpy())
        return [*shown.numpy().ravel(), *part.numpy()]

    same(after(look, monkeypatch))


def test_a_gradient_that_is_another_is_told(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(step: Step) -> Any:
        def change(loss: Tensor) -> None:
            step.model[2].bias.grad, step.model[2].weight.grad = None, step.model[2].weight.grad * 2

        step(WARM, change)
        return [*step.model[2].bias.tolist(), *step.model[2].weight.numpy().ravel()]

    same(after(look, monkeypatch))


def test_gradients_that_live_on_without_their_parameters_are_told(
    ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`zero_grad` before the step, while somebody holds the gradients, as in each step."""

    def look(step: Step) -> Any:
        kept: list[Any] = []

        def keep(loss: Tensor) -> None:
            kept[:] = [each.grad for each in step.model.parameters()]
            if number == 8:
                step.optimizer.zero_grad()

        for number in range(10):
            step(number, keep)
        return np.concatenate([each.numpy().ravel() for each in step.model.parameters()])

    same(after(look, monkeypatch))


def test_machine_code_looks_at_what_is_written(ends: list[str]) -> None:
    """Targets of the optimizer, and statistics, which are no more what they were: Python looks."""
    step, found = Step(), []
    weight, mean = step.model[0].weight, step.norm.running_mean

    def look(loss: Tensor) -> None:
        assert EVENTS.record is not None
        follower, leaf = EVENTS.record.follower, weight._node
        ready, storage = follower.way.ends[0], leaf.arg
        other = Node(leaf.op, (), storage, leaf.shape, leaf.dtype, leaf.device)
        other.leaf = leaf.leaf
        gone = Overwritten(storage, storage.version)
        for owner, slot, value in (
            (weight, "_node", other), (mean, "_node", other), (weight, "_views", []),
            (weight, "_view", mean), (leaf, "leaf", None), (leaf, "realized", storage.buffer),
            (leaf, "arg", gone), (leaf, "op", "full"),
        ):  # fmt: skip
            before = getattr(owner, slot)
            assert ready(follower) is not None
            setattr(owner, slot, value)
            found.append((slot, ready(follower)))
            setattr(owner, slot, before)

    for number in range(WARM):
        step(number)
    step(WARM, look)
    assert len(found) == 8 and all(memory is None for _, memory in found)
    assert ends[-1] == "launch"


def test_memory_that_is_watched_is_given_back(ends: list[str]) -> None:
    """What machine code lets go at the end of a step is told, and may run Python."""
    step, told = Step(), []
    for number in range(WARM):
        step(number)
    WATCHERS.append(lambda device, size: told.append(size))
    try:
        for number in range(4):
            step(WARM + number)
    finally:
        WATCHERS.pop()
    assert told and ends[-1] == "launch"
    assert max(told) < 1 << 24
