"""Sizes that vary are followed by themselves: two traces serve all sizes of an axis."""

from typing import Any

import numpy as np
import pytest
from tensor.transforms.test_jit_sizes import FOLLOWED, OTHERS, Decoder, W, compare, rows

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.engine.executable import CompiledPlan
from picograd.engine.sizes import PATIENCE, SHORT_PATIENCE
from picograd.nn import functional as F
from picograd.tensor.transforms import jit_replay


@pytest.fixture(autouse=True)
def replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay what gradients went through, too: elsewhere it is recorded from then on."""
    monkeypatch.setattr(jit_replay, "note_asked", lambda owner: None)


@pytest.mark.parametrize("name", FOLLOWED)
def test_two_traces_serve_all_sizes(name: str) -> None:
    f = picograd.jit(FOLLOWED[name])
    compare(FOLLOWED[name], f)
    assert f.count <= 2 + (name in ("gather", "gradient"))


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_followed_is_right(name: str) -> None:
    compare(OTHERS[name], picograd.jit(OTHERS[name]))


@pytest.mark.parametrize("setting", [0, 1])
def test_following_is_turned_off(setting: int) -> None:
    f = picograd.jit(lambda x: x * 2, dynamic=None if setting == 0 else False)
    with config.override(dynamic=setting):
        for count in (3, 4, 5, 3):
            assert f(rows(count)).shape == (count, 6)
    assert f.count == 3


def test_axes_are_found_one_by_one() -> None:
    f = picograd.jit(lambda x, y: (x * y).sum(1))
    for n, m in ((4, 6), (5, 6), (5, 7), (4, 6), (2, 9), (8, 3)):
        x = picograd.ones(n, m)
        np.testing.assert_array_equal(f(x, x * 2).numpy(), np.full(n, 2.0 * m))
    assert f.count == 3


def test_the_trace_of_the_first_sizes_is_kept() -> None:
    f = picograd.jit(lambda x: x.sum(0))
    for count in (8, 8, 5, 8, 3, 8):
        f(rows(count))
    kept = [each.sizes is None for captures in f.captures.values() for each in captures]
    assert sorted(kept) == [False, True]


def test_other_dtypes_have_traces_of_their_own() -> None:
    f = picograd.jit(lambda x: x + x)
    for dtype in ("float32", "int64"):
        for count in (3, 4, 5, 6):
            x = picograd.arange(count, dtype=dtype)
            assert f(x).dtype is x.dtype and f(x).tolist() == [2 * n for n in range(count)]
    assert f.count == 4


def test_the_last_smaller_batches_of_a_training_step() -> None:
    losses = []
    for is_jitted in (True, False):
        picograd.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = nn.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

        def step(x: Tensor, y: Tensor, model: Any = model, optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        run: Any = picograd.jit(step) if is_jitted else step
        losses.append([run(rows(n), rows(n)[:, :1]).item() for n in (8, 8, 5, 8, 3, 8, 2, 7)])
        assert not is_jitted or run.count <= 4  # the optimizer's state is made in the first
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_prompts_and_a_cache_that_grows() -> None:
    model = Decoder()
    grown = picograd.jit(model.grown)
    with picograd.no_grad():
        for count in (5, 3, 8, 4):
            found, past = grown(picograd.arange(count)[None] % 7)
            for at in range(count, count + 4):
                wanted, _ = model.grown(picograd.arange(at)[None] % 7)
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
                found, past = grown(picograd.tensor([[at % 7]]), past)
    assert grown.count <= 4  # two of prompts, two of steps


def test_the_reason_names_the_argument_and_the_axis(capfd: Any) -> None:
    f = picograd.jit(lambda image, mask: image * mask)
    with config.override(debug=1):
        f(picograd.ones(2, 3), picograd.ones(3))
        f(picograd.ones(2, 5), picograd.ones(5))
    text = "".join(capfd.readouterr())
    wanted = "axis 1 of argument image (from 3 to 5), axis 0 of argument mask (from 3 to 5) changed"
    assert f"jit: traced <lambda> because {wanted}" in text


def test_gradients_of_outputs_at_sizes_that_vary() -> None:
    weight = picograd.tensor(np.ones((6, 2), np.float32), requires_grad=True)
    f = picograd.jit(lambda x: (x @ weight).tanh().sum(1))
    for count in (4, 7, 3, 7, 9):
        weight.grad = None
        f(rows(count)).sum().backward()
        found, weight.grad = weight.grad, None
        f.function(rows(count)).sum().backward()
        np.testing.assert_allclose(found.numpy(), weight.grad.numpy(), rtol=1e-5)
    assert f.count == 2


class Cache(nn.Module):
    """A cache in Python's state that every call makes longer, in the way that `kind` says."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.linear = kind, nn.Linear(6, 6)
        self.attribute: Any = None
        self.table: dict[str, Any] = {}
        self.pair: list[Any] = [None, None]

    def extended(self, old: Any, new: Tensor) -> Tensor:
        return new if old is None else picograd.cat([old, new])

    def forward(self, x: Tensor) -> Tensor:
        new = self.linear(x)
        if self.kind == "attribute":
            held = self.attribute = self.extended(self.attribute, new)
        elif self.kind == "entry":
            held = self.table["k"] = self.extended(self.table.get("k"), new)
        else:
            held = self.pair[0] = self.extended(self.pair[0], new)
            self.pair[1] = self.extended(self.pair[1], new * 2)
        return (held @ new.T).softmax(0).T @ held


@pytest.mark.parametrize("kind", ["attribute", "entry", "items"])
def test_a_cache_in_state_that_grows(kind: str) -> None:
    picograd.manual_seed(0)
    model, other = Cache(kind), Cache(kind)
    other.load_state_dict(model.state_dict())
    f = picograd.jit(model)
    with picograd.no_grad():
        for step in range(9):
            x = rows(1) * (step + 1)
            np.testing.assert_allclose(f(x).numpy(), other(x).numpy(), rtol=1e-4, atol=1e-5)
    assert f.count <= 4


def test_a_size_that_is_read_is_named_with_its_line(capfd: Any) -> None:
    f = picograd.jit(lambda x: x.chunk(2)[0])
    for count in range(4, 12):
        f(rows(count))
    text = "".join(capfd.readouterr())
    assert "argument x.shape[0] changed from 10 to 11, read at " in text
    assert "test_jit_varying.py" in text


def test_an_argument_that_is_reached_otherwise_too() -> None:
    held: list[Any] = []
    f = picograd.jit(lambda x: x + held[0].sum())
    for count in (3, 4, 5, 6, 7):
        held[:] = [rows(count)]
        for _ in range(3):
            np.testing.assert_allclose(f(held[0]).numpy(), f.function(held[0]).numpy(), rtol=1e-5)


def test_a_size_that_stays_gets_a_plan_of_its_own() -> None:
    """Of the trace's own size, too, whose plan keeps the trace."""
    f = picograd.jit(lambda x: (x @ W).softmax(0))
    for count in (4, 5, 6, 7):
        f(rows(count))
    for count in (5, 7, 5, 6):
        for _ in range(PATIENCE + 2):
            found = f(rows(count))
        np.testing.assert_allclose(found.numpy(), f.function(rows(count)).numpy(), rtol=1e-5)
    followed = next(each[0].sizes for each in f.captures.values() if each[0].sizes)
    kinds = [type(plan()) for plan, _ in followed.plans.values()]
    assert f.count == 2 and kinds.count(CompiledPlan) == 3


def test_another_function_of_the_same_line_gets_a_plan_of_its_size_soon() -> None:
    """Its first call is of a size that a plan of the line is widened to; the next ones may stay."""
    values = rows(64)

    def made() -> Any:
        return picograd.jit(lambda x, n=1: (x @ W).softmax(0) * n)

    for count in (5, 64):
        f = made()
        for _ in range(SHORT_PATIENCE + 2):
            found = f(rows(count))
    np.testing.assert_allclose(found.numpy(), f.function(values).numpy(), rtol=1e-5)
    kinds = [type(each[0].plan()) for each in f.captures.values() if each[0].plan is not None]
    assert kinds and all(kind is CompiledPlan for kind in kinds)


SHOWING = {
    "piece": lambda x: x[:2],
    "flat": lambda x: x.reshape(-1),
    "turned": lambda x: x.transpose(0, 1)[1:],
    "beside a value": lambda x: (x.sum(0), x[-1]),
    "of what it made": lambda x: (lambda y: (y[:1], y[:2]))(x * 2),
}


@pytest.mark.parametrize("name", SHOWING)
def test_views_that_are_returned_show_what_a_call_was_given(name: str) -> None:
    function: Any = SHOWING[name]
    jitted = picograd.jit(function)
    for count in (3, 5, 4, 7, 3):
        seen = []
        for each in (function, jitted):
            x = rows(count)
            found = each(x)
            views = found if isinstance(found, tuple) else (found,)
            for number, view in enumerate(views):
                view.add_(10.0 + number)
            seen.append([tensor.tolist() for tensor in (x, *views)])
        assert seen[0] == seen[1]
    assert jitted.count <= 2
