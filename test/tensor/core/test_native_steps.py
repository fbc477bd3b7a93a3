"""Training steps that machine code follows: what is unlike the last time is found."""

import gc
import random
import signal
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import carried, followed
from picograd.engine import sizes as engine_sizes
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CODED
from picograd.nn import functional as F
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following, native_ends

pytestmark = pytest.mark.skipif(not is_possible(), reason="another interpreter")
STEPS = 24


class Images(nn.Module):
    """Convolutions, norms, pools, views and layers, with what a step may change about them."""

    def __init__(self) -> None:
        # a bias ahead of a norm has gradients of rounding alone, which Adam makes steps of
        self.conv, self.norm = nn.Conv2d(1, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
        self.pool, self.first, self.last = nn.MaxPool2d(2), nn.Linear(12, 5), nn.Linear(5, 3)
        self.stride: Any = 1
        self.shift = 0, 0
        self.bias: Any = self.first.bias
        self.seen: list[Tensor] = []
        self.within: Callable[[Tensor], Any] = lambda x: None

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.norm(self.conv(x)).relu())
        x = F.max_pool2d(x, 1, self.stride).roll(self.shift, (2, 3))
        self.within(x)
        flat = x.flatten(1)
        x = F.linear(flat, self.first.weight, self.bias).relu()
        self.seen = [flat, x]
        return self.last(x)


class Step:
    """A training step that draws what is unusual about it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.model = Images()
        numbers = np.random.default_rng(seed)
        for each in self.model.parameters():
            values = numbers.standard_normal(each.shape).astype(np.float32)
            each.data = Tensor(values).realize()
        kind = self.draw.choice([nn.optim.SGD, nn.optim.AdamW])
        self.optimizer = kind(self.model.parameters(), lr=0.01)
        self.kept: list[Any] = []
        self.handles: list[Any] = []

    def batch(self, number: int, count: int) -> tuple[Tensor, Tensor]:
        numbers = np.random.default_rng(number)
        x = numbers.standard_normal((count, 1, 4, 4)).astype(np.float32)
        return Tensor(x).realize(), Tensor(numbers.integers(0, 3, count)).realize()

    def __call__(self, number: int, changes: list[str]) -> Any:
        model, draw = self.model, self.draw
        x, y = self.batch(number, 3 if "count" in changes else 4)
        if "shown batch" in changes:
            x = picograd.stack([x, x])[1].realize()
        model.shift = (1, 0) if "shift" in changes else (0, 0)
        model.stride = {"bool": True, "list": [1, 1]}.get(changes[0] if changes else "", 1)
        model.bias = None if "no bias" in changes else model.first.bias
        try:
            found = [change(self, x) for change in map(BEFORE.get, changes) if change]
        except picograd.errors.DTypeError:  # of a model that is evaluated with such a stride
            return None
        model.within = next((partial_of(WITHIN[each], self) for each in changes
                             if each in WITHIN), lambda x: None)  # fmt: skip
        try:
            out = model(x)
            if "half" in changes:
                raise InterruptedError
            loss = F.cross_entropy(out, y) * (0.5 if "scaled" in changes else 1.0)
            if "grads" in changes:
                loss.backward(retain_graph=True)
            loss.backward()
            found += [change(self, loss) for change in map(BEHIND.get, changes) if change]
            self.optimizer.step()
        except (InterruptedError, picograd.errors.DTypeError):
            return None
        finally:
            model.within = lambda x: None
        if "keep" not in changes:
            self.optimizer.zero_grad()
        if "outputs" in changes:
            self.kept.append(loss if draw.random() < 0.5 else out)
        if len(self.kept) > 3:
            del self.kept[0]
        return [loss.item(), *[each for each in found if isinstance(each, float)]]


def partial_of(function: Callable[..., Any], step: Step) -> Callable[[Tensor], Any]:
    return lambda x: function(step, x)


def hook(step: Step, x: Tensor) -> None:
    step.handles.append(step.model.first.weight.register_hook(lambda grad: grad * 2.0))


def unhook(step: Step, x: Tensor) -> None:
    while step.handles:
        step.handles.pop().remove()


def freeze(step: Step, x: Tensor) -> None:
    step.model.last.weight.requires_grad_(not step.model.last.weight.requires_grad)


def other_memory(step: Step, x: Tensor) -> None:
    weight = step.model.first.weight
    weight.data = (weight.detach() * 0.5).realize()


def other_weight(step: Step, x: Tensor) -> None:
    step.model.first.bias = nn.Parameter(step.model.first.bias.detach() + 1.0)
    step.model.bias = step.model.first.bias


def shown_statistics(step: Step, x: Tensor) -> None:
    step.kept.append(step.model.norm.running_mean[:2])


def written_statistics(step: Step, x: Tensor) -> None:
    with picograd.no_grad():
        step.model.norm.running_mean.mul_(0.5)


def written_batch(step: Step, x: Tensor) -> None:
    x.add_(1.0)


def switched(step: Step, x: Tensor) -> None:
    picograd.config.native = 1 - picograd.config.native


def evaluated(step: Step, x: Tensor) -> float:
    step.model.eval()
    with picograd.no_grad():
        found = step.model(x).sum().item()
    step.model.train()
    return float(found)


def signalled(step: Step, x: Tensor) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: step.kept.append((x * 2.0).sum().item()))
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def beside(step: Step, x: Tensor) -> None:
    other = threading.Thread(target=lambda: step.kept.append((x * 3.0).sum().item()))
    other.start()
    other.join()


def read_inside(step: Step, x: Tensor) -> None:
    step.kept.append(x.sum().item())


def raised(step: Step, x: Tensor) -> None:
    with pytest.raises(picograd.errors.ShapeError):
        x + Tensor([[1.0] * 7])


def gathered(step: Step, x: Tensor) -> None:
    gc.collect()


def scaled_gradient(step: Step, loss: Tensor) -> None:
    weight = step.model.first.weight
    if weight.grad is not None:
        weight.grad = weight.grad * 0.5


def no_gradient(step: Step, loss: Tensor) -> None:
    step.model.last.bias.grad = None


def kept_gradient(step: Step, loss: Tensor) -> None:
    step.kept.append(step.model.conv.weight.grad)


def kept_view(step: Step, loss: Tensor) -> None:
    step.kept.append(step.model.seen[0])


def detached(step: Step, loss: Tensor) -> None:
    step.kept.append(step.model.seen[1].detach())


def rate(step: Step, loss: Tensor) -> None:
    step.optimizer.param_groups[0]["lr"] = 0.02


def clipped(step: Step, loss: Tensor) -> None:
    nn.utils.clip_grad_norm_(step.model.parameters(), 0.1)


BEFORE: dict[str, Callable[[Step, Tensor], Any]] = {
    "hook": hook, "unhook": unhook, "freeze": freeze, "memory": other_memory,
    "weight": other_weight, "shown": shown_statistics, "written": written_statistics,
    "batch": written_batch, "native": switched, "evaluated": evaluated,
}  # fmt: skip
WITHIN: dict[str, Callable[[Step, Tensor], Any]] = {
    "signal": signalled, "thread": beside, "read": read_inside, "raised": raised,
    "gathered": gathered, "shown inside": shown_statistics, "hook inside": hook,
    "written inside": written_statistics,
}  # fmt: skip
BEHIND: dict[str, Callable[[Step, Tensor], Any]] = {
    "scaled gradient": scaled_gradient, "no gradient": no_gradient,
    "kept gradient": kept_gradient, "kept view": kept_view, "detached": detached,
    "rate": rate, "clipped": clipped, "read behind": read_inside,
}  # fmt: skip
OTHERS = [
    "count", "bool", "list", "no bias", "half", "scaled", "grads", "keep", "outputs", "shift",
    "shown batch",
]  # fmt: skip
CHANGES = [*BEFORE, *WITHIN, *BEHIND, *OTHERS]


def program(seed: int) -> list[Any]:
    """Take steps of which some are unusual; all that is known of them in the end."""
    picograd.manual_seed(seed)
    step, draw, found = Step(seed), random.Random(seed + 1), []
    picograd.config.native = 1
    usual = draw.sample(CHANGES, draw.choice([0, 0, 1, 2]))  # in every step
    usual = [each for each in usual if each not in ("half", "native")]
    for number in range(STEPS):
        is_other = number > 9 and draw.random() < 0.4
        more = draw.sample(CHANGES, draw.choice([1, 1, 2])) if is_other else []
        found.append(step(number, [*more, *usual]))
    values = [*step.model.state_dict().values(), *step.kept]
    return [*found, *(each.numpy() if isinstance(each, Tensor) else each for each in values)]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Let machine code follow from the first time; whether each way was followed to its end."""
    if CODED.follow is None:
        CODED.begin()
    found: list[bool] = []
    finish = following.Follower.finish

    def noted(follower: Any, *ended: Any) -> Any:
        found.append(finish(follower, *ended))
        return found[-1]

    inside = noted.__code__.replace(co_filename=following.__file__)  # no line of the program's
    monkeypatch.setattr(noted, "__code__", inside)
    monkeypatch.setattr(following.Follower, "finish", noted)
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


def no_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "FIRST", 1 << 30)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    followed.stop()
    EVENTS.after = None


@pytest.mark.parametrize("seed", range(20))
def test_whatever_changes_is_found(
    seed: int, at_once: list[bool], monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    try:
        mine = program(seed)
        no_ways(monkeypatch)
        wanted = program(seed)
    finally:
        picograd.config.native = 1
    for one, other in zip(mine, wanted, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_machine_code_follows_whole_steps(
    at_once: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but looks at labels, which are in the host's memory, and numbers."""
    step, names = Step(1), []
    for number in range(8):
        step(number, [])
    follow = following.Follower.follow

    def noted(self: Any, function: Any, *call: Any) -> Any:
        names.append(function.__name__)
        return follow(self, function, *call)

    monkeypatch.setattr(following.Follower, "follow", noted)
    for name in "is_as_told", "give_results":
        monkeypatch.setattr(following.Follower, name, lambda *_: pytest.fail("Python followed"))
    for number in range(3):
        step(number, [])
    assert {*names} <= {"check_labels", "operate", "backward"}  # the last two are of `* 1.0`
    assert at_once[-3:] == [True] * 3


def test_what_is_gone_is_not_none(at_once: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor that was made and dropped, and None in its place."""
    optimizer = nn.optim.SGD([weight := nn.Parameter(Tensor([[1.0, 2.0]]))], lr=0.1)

    def step(number: int) -> float:
        bias = weight[0, :1] * 2.0
        given = bias if number < 9 else None
        del bias
        y = F.linear(Tensor([[1.0, 3.0]]).realize(), weight, given)
        loss = y.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.item())

    start = weight.detach().clone().realize()
    mine = [step(number) for number in range(12)]
    no_ways(monkeypatch)
    with picograd.no_grad():
        weight.copy_(start)
    assert mine == [step(number) for number in range(12)]


@pytest.mark.parametrize("change", ["shift", "shown batch", "list", "count", "written inside"])
def test_what_changes_for_once_is_found(
    change: str, at_once: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def losses() -> list[Any]:
        picograd.manual_seed(4)
        step = Step(4)
        return [step(number, [change] if number in (9, 10, 13) else []) for number in range(16)]

    mine = losses()
    assert at_once[-1]
    no_ways(monkeypatch)
    np.testing.assert_allclose(mine, losses(), rtol=2e-5)


def test_handlers_of_signals_record_anywhere(
    at_once: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer whose handler computes, within steps and at their ends."""
    kept: list[float] = []
    again = 0.0

    def handle(*_: Any) -> None:
        kept.append((Tensor([1.0]) * 2.0).item())
        signal.setitimer(signal.ITIMER_REAL, again)  # the next one, behind this

    def losses(seconds: float) -> list[Any]:
        nonlocal again
        step = Step(6)
        for number in range(10):
            step(number, [])
        again = seconds
        signal.setitimer(signal.ITIMER_REAL, again)
        try:
            return [step(number, []) for number in range(60)]
        finally:
            again = 0.0  # first: one that is on its way sets no other
            signal.setitimer(signal.ITIMER_REAL, again)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        mine = losses(0.0011)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert kept and {*kept} == {2.0}
    no_ways(monkeypatch)
    np.testing.assert_allclose(mine, losses(0.0), rtol=2e-5)


def test_a_handler_at_any_call_of_a_follower(
    at_once: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed where Python may run a handler, within an event and at the end of a step."""
    within = "follow", "end", "finish"
    calls, wanted_call = 0, 0

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        caller = frame.f_back
        if caller is None or caller.f_code.co_filename != following.__file__:
            return
        if caller.f_code.co_name in within:
            calls += 1
            if calls == wanted_call:
                sys.settrace(None)
                assert (Tensor([1.0]) * 2.0).item() == 2.0

    def losses() -> list[Any]:
        nonlocal calls
        monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
        step, found = Step(6), []
        for number in range(9):
            if number == 6:
                calls = 0
                sys.settrace(seen)
            found.append(step(number, []))
            sys.settrace(None)
        return found

    losses()
    wanted, before = losses(), sys.gettrace()
    count = calls
    try:
        for wanted_call in range(1, count + 1):
            np.testing.assert_allclose(losses(), wanted, rtol=2e-5, err_msg=str(wanted_call))
    finally:
        sys.settrace(before)
    assert count > 10


@pytest.mark.parametrize("change", ["kept gradients", "a hook", "autocast", "a frozen leaf"])
def test_what_backward_meets_is_looked_at(
    change: str, at_once: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def losses() -> list[float]:
        picograd.manual_seed(7)
        model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
        optimizer = nn.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        wanted, found = Tensor(np.ones((5, 3), np.float32)).realize(), []
        for number in range(16):
            x = np.random.default_rng(number).standard_normal((5, 4)).astype(np.float32)
            is_other = number in (9, 10, 13)
            if change == "a hook" and is_other:
                model[0].weight.register_hook(lambda g: g * 2.0)
            model[2].bias.requires_grad_(not (change == "a frozen leaf" and is_other))
            with picograd.autocast("cpu", enabled=change == "autocast" and is_other):
                loss = F.mse_loss(model(Tensor(x).realize()), wanted)
            loss.backward()
            optimizer.step()
            if not (change == "kept gradients" and is_other):
                optimizer.zero_grad()
            found.append(float(loss.item()))
        return found

    mine = losses()
    assert at_once.count(True) >= 4
    no_ways(monkeypatch)
    np.testing.assert_allclose(mine, losses(), rtol=2e-5)
