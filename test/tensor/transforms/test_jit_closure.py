"""The short way of replays: which traces take it, and which calls leave it."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import AxisError, TraceError
from picograd.tensor.transforms import jit_closure, jit_replay, jit_trace
from picograd.tensor.transforms.jit_closure import MISSED


@pytest.fixture(autouse=True)
def own_plans():
    """Whether a plan serves many sizes hangs on what ran before: these have plans of their own."""
    with picograd.config.override(dynamic=False):
        yield


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


def short(function: Any, *args: Any) -> bool:
    """Call a jitted function often enough, and tell whether the last call took the short way."""
    for _ in range(3):
        function(*args)
    return function.closure is not None and function.closure.run(args) is not jit_closure.MISSED


def test_what_only_computes_takes_the_short_way() -> None:
    weight = tensor(3.0, 4.0)
    jitted = picograd.jit(lambda a, b: (a + b * weight, [a - b]))
    assert short(jitted, tensor(1.0, 2.0), tensor(5.0, 6.0))
    first, (second,) = jitted(tensor(0.5, 1.0), tensor(2.0, -1.0))
    assert first.tolist() == [6.5, -3.0] and second.tolist() == [-1.5, 2.0]
    again, _ = jitted(tensor(1.0, 1.0), tensor(1.0, 1.0))
    assert again.tolist() == [4.0, 5.0] and first.tolist() == [6.5, -3.0]


def test_results_come_in_the_containers_of_the_function() -> None:
    jitted = picograd.jit(lambda a: {"x": a + 1.0, "y": (a * 2.0, [a - 1.0])})
    assert short(jitted, tensor(1.0))
    found = jitted(tensor(3.0))
    assert found["x"].tolist() == [4.0] and found["y"][0].tolist() == [6.0]
    assert found["y"][1][0].tolist() == [2.0]


def took(function: Any, *args: Any, **kwargs: Any) -> bool:
    """Tell whether a call takes the short way."""
    found = []
    closure = function.closure
    run = closure.run
    closure.run = lambda given: found.append(run(given)) or found[-1]
    try:
        function(*args, **kwargs)
    finally:
        closure.run = run
    return bool(found) and found[0] is not MISSED


def test_numbers_that_are_followed_take_the_short_way() -> None:
    jitted = picograd.jit(lambda x, scale, shift=0: (x * scale + 2 * shift, [scale * 3, x - shift]))
    x = tensor(1.0, 2.0)
    for number in range(40):  # from some call on as machine code
        scale, shift = 0.5 * number, number - 7
        first, (number_given, second) = jitted(x, scale, shift=shift)
        assert first.tolist() == [scale + 2 * shift, 2 * scale + 2 * shift]
        assert number_given == scale * 3 and second.tolist() == [1 - shift, 2 - shift]
    assert jitted.traces == 1 and took(jitted, x, -0.25, shift=3)
    assert not took(jitted, x, 2, shift=3)  # another class of number
    assert jitted(x, 2, shift=3)[0].tolist() == [8.0, 10.0]


def test_numbers_that_are_read_leave_the_short_way_where_they_read_otherwise() -> None:
    jitted = picograd.jit(lambda x, bound: x * bound if bound > 1 else x + bound)
    x = tensor(1.0, 2.0)
    for bound in (2.0, 3.0, 4.0, 0.5, 0.25, 5.0, 6.0, 0.125):
        wanted = [bound, 2 * bound] if bound > 1 else [1 + bound, 2 + bound]
        assert jitted(x, bound).tolist() == wanted
    jitted(x, 7.0)
    assert took(jitted, x, 8.0) and not took(jitted, x, 0.5)


def test_fixed_numbers_are_compared_on_the_short_way() -> None:
    jitted = picograd.jit(lambda x, count, scale: x.reshape(1, 2).repeat(int(count), 1) * scale)
    x = tensor(1.0, 2.0)
    for count in (1, 1, 2, 2, 1, 2, 2):
        found = jitted(x, count, 0.5 + count)
        assert found.tolist() == [[0.5 + count, 1.0 + 2 * count]] * count
    assert took(jitted, x, 2, 9.0) and not took(jitted, x, 3, 9.0)


def test_numbers_that_no_trace_could_follow_are_compared_too() -> None:
    """Code that takes nothing but a number of Python's own is traced with its value."""
    jitted = picograd.jit(lambda x, count, scale: x * float(Decimal(count)) + scale)
    x = tensor(1.0, 2.0)
    for count in (1, 1, 2, 2, 1, 2, 2):
        assert jitted(x, count, 0.5).tolist() == [count + 0.5, 2 * count + 0.5]
    assert not took(jitted, x, 3, 0.5)


def test_one_result_of_numbers_for_many_calls() -> None:
    jitted = picograd.jit(lambda x, scale: x * scale)
    x = tensor(1.0, 2.0)
    for number in range(300):
        assert jitted(x, 0.5 * number).tolist() == [0.5 * number, number]
    assert jitted.closure.ready is not None
    chosen = picograd.jit(lambda x, bound: x * 2 if bound > 1 else x + 1)
    for number in range(300):
        assert chosen(x, 2.0 + number).tolist() == [2.0, 4.0]
    assert chosen.closure.ready is not None and chosen(x, 0.5).tolist() == [2.0, 3.0]
    rows = picograd.arange(400).float().realize()
    cut = picograd.jit(lambda x, at: x[at : at + 2] * 2)
    for at in range(300):
        assert cut(rows, at).tolist() == [2 * at, 2 * at + 2]


def test_starts_and_state_that_are_numbers_are_seen() -> None:
    rows, state = picograd.arange(6).float().realize(), {"rate": 2.0}
    jitted = picograd.jit(lambda x, at: x[at : at + 2] * state["rate"])
    for at in (0, 1, 1, 2, 3, 0, 4):
        state["rate"] += 0.5
        assert jitted(rows, at).tolist() == [at * state["rate"], (at + 1) * state["rate"]]


@pytest.mark.parametrize("is_short", [False, True])
def test_a_step_with_its_rate_among_the_arguments(
    is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_short:
        monkeypatch.setattr("picograd.tensor.transforms.jit.closure_of", lambda *_: None)
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @picograd.jit
    def learn(x: Tensor, rate: float) -> Tensor:
        weight.grad = None
        loss = (weight * x).square().sum()
        loss.backward()
        with picograd.no_grad():
            weight.sub_(weight.grad * rate)
        return loss

    x, wanted = tensor(0.5, -1.0), np.array([1.0, 2.0], np.float32)
    for number in range(30):
        rate = 0.01 * number
        learn(x, rate)
        gradient = 2 * wanted * np.square(np.array([0.5, -1.0], np.float32))
        wanted = wanted - gradient * np.float32(rate)
        np.testing.assert_allclose(weight.numpy(), wanted, rtol=1e-5)
    assert bool(learn.closure) is is_short


def test_what_hands_out_more_than_new_tensors_does_not() -> None:
    kept = []

    def storing(x: Tensor) -> Tensor:
        kept[:] = [x * 3.0]
        return x * 2.0

    functions = (lambda x: x[:1], lambda x: x, storing)
    for function in functions:
        assert not short(picograd.jit(function), tensor(1.0, 2.0))


@pytest.mark.parametrize("is_number", [False, True])
def test_gradients_can_be_asked_of_what_it_gives(
    is_number: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit_replay, "note_asked", lambda owner: None)  # else it is recorded then
    weight, shift = (Tensor(values, requires_grad=True) for values in ([2.0, 3.0], [1.0]))

    @picograd.jit
    def forward(x: Tensor, *scale: float) -> Any:
        y = x * weight * (scale[0] if scale else 4.0)
        return (y.square() + shift).sum(), [y, x + 1.0]

    outputs = []
    for number in range(60):
        scale, x = 0.5 * number if is_number else 4.0, tensor(number, -1.0)
        given = (scale,) if is_number else ()
        loss, (y, other) = forward(x, *given)
        assert loss.requires_grad and y.requires_grad and not other.requires_grad
        assert y.tolist() == [2 * number * scale, -3 * scale]
        outputs.append((loss, [2 * 2 * (number * scale) ** 2, 2 * 3 * scale**2]))
    assert took(forward, x, *given) and forward.traces == 1
    for loss, wanted in outputs[::7]:
        weight.grad = shift.grad = None
        loss.backward()
        assert weight.grad.tolist() == wanted and shift.grad.tolist() == [2.0]
    (loss, _), weight.grad = forward(x, *given), None
    with picograd.no_grad():
        weight.add_(1.0)  # the call read it as it was
    loss.backward()
    assert weight.grad.tolist() == [2 * 2 * (59 * scale) ** 2, 2 * 3 * scale**2]


def test_methods_take_it_each_for_its_instance() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = tensor(factor)

        @picograd.jit
        def scaled(self, x: Tensor) -> Tensor:
            return x * self.factor

    first, second, x = Scale(2.0), Scale(3.0), tensor(5.0)
    for each, wanted in ((first, 10.0), (second, 15.0)) * 3:
        assert each.scaled(x).tolist() == [wanted] and each.scaled(x).tolist() == [wanted]
    closure = Scale.scaled.closure
    assert closure.bound == (id(second),) and closure.run((x,)).tolist() == [15.0]
    del second, each, closure
    assert Scale.scaled.closure is None  # another object may get its identity


@pytest.mark.parametrize("change", [
    lambda x: tensor(1.0, 2.0, 3.0),
    lambda x: Tensor(np.array([1.0, 2.0])).realize(),
    lambda x: Tensor([1, 2]).realize(),
    lambda x: x.clone().requires_grad_(True),
    lambda x: picograd.nn.Parameter(x.clone()),
    lambda x: tensor(9.0, 1.0, 2.0)[1:],
    lambda x: x * 1.0,
])  # fmt: skip
def test_another_kind_of_argument_leaves_it(change: Any) -> None:
    jitted = picograd.jit(lambda a, b: a * b + 1.0)
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    assert short(jitted, x, y)
    other = change(x)
    if other.shape != x.shape:
        y = tensor(3.0, 4.0, 5.0)
    found = jitted(other, y)
    np.testing.assert_allclose(found.numpy(), other.detach().numpy() * y.numpy() + 1.0)
    assert found.requires_grad == other.requires_grad
    assert jitted(tensor(1.0, 2.0), tensor(3.0, 4.0)).tolist() == [4.0, 9.0]


def test_a_plan_of_many_sizes_is_left_once_a_size_has_its_own() -> None:
    with picograd.config.override(dynamic=True):
        for count in range(20, 30):  # other sizes, none of them again
            picograd.jit(lambda a, b: a * b - 7.0)(tensor(*range(count)), tensor(*range(count)))
        jitted = picograd.jit(lambda a, b: a * b - 7.0)
        x, y = tensor(*range(31)), tensor(*range(31))
        assert not short(jitted, x, y)
        assert any(short(jitted, x, y) for _ in range(100))
        assert jitted(x, y).tolist() == [k * k - 7.0 for k in range(31)]


def test_which_arguments_are_the_same_tells_calls_apart() -> None:
    jitted = picograd.jit(lambda a, b: a + b if a is not b else a * 10.0)
    x, y = tensor(1.0), tensor(2.0)
    assert short(jitted, x, y)
    assert jitted(x, x).tolist() == [10.0]
    assert short(jitted, x, x)
    assert jitted(x, y).tolist() == [3.0]
    assert jitted(x, x.detach()).tolist() == [2.0]


def test_state_and_modes_are_seen() -> None:
    class Scale:
        factor = 2.0

    scale, weight = Scale(), tensor(1.0)
    jitted = picograd.jit(lambda x: x * scale.factor + weight)
    x = tensor(3.0)
    assert short(jitted, x)
    scale.factor = 5.0
    assert jitted(x).tolist() == [16.0]
    weight.data = tensor(2.0)
    assert jitted(x).tolist() == [17.0]
    weight.add_(1.0)
    assert jitted(x).tolist() == [18.0]
    x.add_(1.0)
    assert jitted(x).tolist() == [23.0]
    weight.requires_grad_(True)
    assert jitted(x).requires_grad
    with picograd.no_grad():
        assert not jitted(x).requires_grad
    assert picograd.jit(lambda y: jitted(y) + 1.0)(x).tolist() == [24.0]
    with picograd.config.override(threads=1):
        assert jitted(x).tolist() == [23.0]


def test_arguments_that_wait_are_computed_first() -> None:
    jitted = picograd.jit(lambda a: a + 1.0)
    assert short(jitted, tensor(1.0))
    lazy = tensor(1.0) * 5.0
    assert jitted(lazy).tolist() == [6.0]
    written = tensor(1.0)
    written += 3.0
    assert jitted(written).tolist() == [5.0]


def test_memory_of_others_is_read_at_once() -> None:
    array = np.array([1.0, 2.0], np.float32)
    theirs, ours = picograd.from_numpy(array), tensor(5.0, 6.0)
    for function in (lambda a, b: a + b, lambda a, b: a + 0.0, lambda a, b: (a, a * b)):
        jitted = picograd.jit(function)
        first = jitted(ours, ours)
        assert short(jitted, ours, ours) and first is not None  # also while it lives
        array[:] = 1.0, 2.0
        for _ in range(3):
            found = jitted(theirs, ours)
            found = found[1] if isinstance(found, tuple) else found
            expected = function(theirs, ours)
            expected = expected[1] if isinstance(expected, tuple) else expected
            before = expected.tolist()
            array += 1.0
            assert found.tolist() == before


def test_results_are_let_go() -> None:
    jitted = picograd.jit(lambda a: a + 1.0)
    x = tensor(1.0)
    assert short(jitted, x)
    live = picograd.engine.pending.LIVE
    for _ in range(3 * live.limit):
        jitted(x)
    assert len(live.data) <= live.limit + 1


def test_a_trace_of_state_that_was_cleared_is_not_taken_for_the_next() -> None:
    """The first tensors of an optimizer live on in what was saved of it."""
    found = []
    for jit in (picograd.jit, lambda function: function):
        weight = Tensor([1.0, 2.0], requires_grad=True)
        optimizer = picograd.optim.Adam([weight], lr=0.1)

        @jit
        def step(x: Tensor, optimizer: Any = optimizer, weight: Tensor = weight) -> Tensor:
            optimizer.zero_grad()
            loss = (weight * x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        x, saved = tensor(0.5, 1.5), None
        for number in range(10):
            saved = saved or (optimizer.state_dict() if number == 2 else None)
            if number == 6:
                optimizer.state.clear()
            step(x)
        found.append(weight.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


class Step:
    """This class learns w of y = w x by gradient descent, and counts what took the short way."""

    def __init__(self) -> None:
        weight = self.weight = Tensor([1.0, 2.0], requires_grad=True)
        self.expected = np.array([1.0, 2.0])

        @picograd.jit
        def learn(x: Tensor) -> Tensor:
            weight.grad = None
            loss = (weight * x).square().sum()
            loss.backward()
            with picograd.no_grad():
                weight.sub_(0.1 * weight.grad)
            return loss

        self.jitted: Any = learn

    def __call__(self, *values: float) -> Any:
        """Step, and compare everything with NumPy."""
        x, before = np.array(values), self.expected
        loss = self.jitted(Tensor(x.astype(np.float32)).realize())
        gradient = 2 * before * x * x
        self.expected = before - 0.1 * gradient
        np.testing.assert_allclose(loss.item(), (before * x) @ (before * x), rtol=1e-5)
        np.testing.assert_allclose(self.weight.grad.numpy(), gradient, rtol=1e-5)
        np.testing.assert_allclose(self.weight.detach().numpy(), self.expected, rtol=1e-5)
        return loss

    def is_short(self) -> bool:
        """Tell whether calls take the short way now."""
        return self.jitted.closure is not None and self.jitted.closure.changes is not None


def address(tensor: Any) -> int:
    return tensor._node.arg.buffer.address


def test_a_step_takes_the_short_way_and_writes_its_own_gradient_again() -> None:
    step = Step()
    losses = [step(1.0, 0.5), step(0.5, 1.0), step(0.25, 2.0)]
    assert step.is_short()
    gradient, place = step.weight.grad, address(step.weight.grad)
    del gradient
    losses.append(step(0.5, 0.5))
    assert address(step.weight.grad) == place
    assert len({address(each) for each in losses}) == len(losses)


def dlpack_of(gradient: Any) -> Any:
    return np.from_dlpack(gradient)


@pytest.mark.parametrize("hold", [
    lambda gradient: gradient,
    lambda gradient: gradient.detach(),
    lambda gradient: gradient[:1],
    lambda gradient: gradient * 2.0,
    lambda gradient: gradient._node,
    lambda gradient: gradient._node.arg,
    dlpack_of,
    lambda gradient: memoryview(np.asarray(gradient)),
    lambda gradient: {"x": [gradient]},
])  # fmt: skip
def test_a_gradient_that_something_else_holds_stays(hold: Any, device: str) -> None:
    if hold is dlpack_of and device != "cpu":
        pytest.skip("NumPy reads memory of the host only")
    step = Step()
    for _ in range(4):
        step(1.0, 0.5)
    assert step.is_short()
    held, gradient, before = hold(step.weight.grad), step.weight.grad, step.weight.grad.tolist()
    read = gradient.numpy().copy()
    del gradient
    shown = np.asarray(held) if isinstance(held, (Tensor, memoryview, np.ndarray)) else None
    shown = None if shown is None else shown.copy()
    assert before != (step(2.0, 3.0), step.weight.grad.tolist())[1]
    if shown is not None:
        np.testing.assert_array_equal(np.asarray(held), shown)
    if isinstance(held, dict):
        assert held["x"][0].tolist() == before == read.tolist()


def test_a_pending_reader_of_a_gradient_sees_the_old_one() -> None:
    step = Step()
    for _ in range(4):
        step(1.0, 0.5)
    twice = step.weight.grad * 2.0
    wanted = (2 * step.weight.grad.numpy()).tolist()
    step(2.0, 3.0)
    assert twice.tolist() == wanted


def test_a_pending_reader_of_a_weight_sees_the_old_one() -> None:
    step = Step()
    for _ in range(4):
        step(1.0, 0.5)
    before, view = step.weight.detach() * 3.0, step.weight.detach()[1:]
    wanted = (3 * step.weight.detach().numpy()).tolist()
    step(2.0, 3.0)
    assert before.tolist() == wanted
    np.testing.assert_allclose(view.numpy(), step.expected[1:], rtol=1e-5)


def test_gradients_that_are_gone_or_of_another_kind_are_made_anew() -> None:
    step = Step()
    for _ in range(4):
        step(1.0, 0.5)
    step.weight.grad = None
    step(1.0, 1.0)
    step.weight.grad = Tensor([7.0, 7.0])
    step(1.0, 2.0)
    step.weight.grad.mul_(2.0)
    step(0.5, 2.0)
    step.weight.data = Tensor.of(step.expected.astype(np.float32) + 1)
    step.expected = step.expected + 1
    step(0.5, 1.0)
    step(0.5, 1.5)


def test_equal_gradients_of_two_tensors_are_two_tensors() -> None:
    a, b = (Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))

    def learn(x: Tensor) -> Tensor:
        a.grad = b.grad = None
        loss = ((a + b) * x).sum()
        loss.backward()
        return loss

    jitted = picograd.jit(learn)
    for k in range(5):
        loss = jitted(Tensor([1.0 * k, 2.0]).realize())
        assert loss.item() == 2.0 * k + 8.0
        assert a.grad.tolist() == b.grad.tolist() == [1.0 * k, 2.0]
    a.grad.mul_(3.0)
    assert a.grad.tolist() == [12.0, 6.0] and b.grad.tolist() == [4.0, 2.0]


def test_wrong_labels_change_nothing(on_host: None) -> None:
    model = nn.Linear(3, 4)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)

    @picograd.jit
    def learn(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x = Tensor(np.ones((2, 3), np.float32)).realize()
    good, bad = Tensor([0, 3]).realize(), Tensor([0, 4]).realize()
    for _ in range(4):
        learn(x, good)
    assert learn.closure is not None and learn.closure.changes is not None
    before = [each.numpy().copy() for p in model.parameters() for each in (p.detach(), p.grad)]
    with pytest.raises(AxisError, match="label 4 is out of range for 4 classes"):
        learn(x, bad)
    after = [each.numpy() for p in model.parameters() for each in (p.detach(), p.grad)]
    for was, now in zip(before, after, strict=True):
        np.testing.assert_array_equal(was, now)


def test_random_numbers_go_on() -> None:
    x = Tensor([0.0] * 4).realize()
    drawn = picograd.jit(lambda a: a + Tensor.rand(4))
    picograd.manual_seed(3)
    wanted = [Tensor.rand(4).tolist() for _ in range(5)]
    picograd.manual_seed(3)
    assert [drawn(x).tolist() for _ in range(5)] == wanted
    assert drawn.closure is not None


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_loops_and_adam_train_as_without_jit(kind: str) -> None:
    losses = [recurrent_losses(kind, picograd.jit), recurrent_losses(kind, lambda plain: plain)]
    np.testing.assert_allclose(*losses, rtol=1e-6)


def recurrent_losses(kind: str, wrapped: Any) -> list[float]:
    """Train layers that loop over time, and list the losses."""
    picograd.manual_seed(0)
    model = getattr(nn, kind)(3, 5, batch_first=True)
    optimizer = nn.optim.Adam(model.parameters(), lr=1e-2)

    def learn(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step = wrapped(learn)
    x = Tensor(np.random.default_rng(0).standard_normal((2, 6, 3)).astype(np.float32)).realize()
    return [step(x).item() for _ in range(6)]


def test_the_short_way_looks_at_what_was_checked_on_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU a wrong label is found when a value is read next."""
    model = nn.Linear(3, 4, bias=False)
    monkeypatch.setattr(jit_trace, "is_early", lambda check, known: False)

    @picograd.jit
    def learn(x: Tensor, y: Tensor) -> Tensor:
        model.weight.grad = None
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    x = Tensor(np.ones((2, 3), np.float32)).realize()
    good, bad = Tensor([0, 3]).realize(), Tensor([0, 4]).realize()
    losses = [learn(x, good).item() for _ in range(4)]
    assert learn.closure is not None and learn.closure.capture.checks and len({*losses}) == 1
    with pytest.raises(AxisError, match="a label is out of range for 4 classes"):
        learn(x, bad).item()
    assert learn(x, good).item() == losses[0]


def test_a_step_that_ends_without_gradients_takes_the_short_way() -> None:
    """It may only where they are still missing: one that is there is added to."""
    model = nn.Linear(3, 4)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Tensor) -> Tensor:
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = Tensor(np.ones((2, 3), np.float32)).realize()
    learn = picograd.jit(step)
    for _ in range(4):
        learn(x)
    assert learn.closure is not None and learn.closure.capture.read
    state = {name: each.numpy().copy() for name, each in model.state_dict().items()}
    wanted = [step(x).item() for _ in range(2)]
    model.load_state_dict({name: Tensor(each) for name, each in state.items()})
    assert [learn(x).item() for _ in range(2)] == pytest.approx(wanted, rel=1e-6)
    assert learn.closure is not None
    model.load_state_dict({name: Tensor(each) for name, each in state.items()})
    model.weight.grad = Tensor.ones(4, 3).realize()
    learn(x)
    moved = model.weight.detach().numpy()
    model.load_state_dict({name: Tensor(each) for name, each in state.items()})
    step(x)
    np.testing.assert_allclose(moved, model.weight.detach().numpy() - 0.1, rtol=1e-5)


class Accumulating:
    """This class adds up gradients of w x by a jitted function, beside NumPy."""

    def __init__(self) -> None:
        weight = self.weight = Tensor([1.0, 2.0], requires_grad=True)
        self.expected = np.zeros(2)

        @picograd.jit
        def learn(x: Tensor) -> Tensor:
            loss = (weight * x).square().sum()
            loss.backward()
            return loss.detach()

        self.jitted: Any = learn
        for value in (1.0, 2.0, 3.0, 4.0):
            self(value, 1.0)

    def __call__(self, *values: float) -> None:
        """Step, and compare the loss and the gradient with NumPy."""
        x, before = np.array(values), self.weight.detach().numpy()
        loss = self.jitted(Tensor(x.astype(np.float32)).realize())
        self.expected = self.expected + 2 * before * x * x
        np.testing.assert_allclose(loss.item(), (before * x) @ (before * x), rtol=1e-5)
        np.testing.assert_allclose(self.weight.grad.numpy(), self.expected, rtol=1e-5)


def test_gradients_are_added_to_by_the_short_way() -> None:
    """In place: who holds the gradient sees the sum."""
    step = Accumulating()
    held, closure = step.weight.grad, step.jitted.closure
    assert held is not None and closure is not None and closure.added
    view, double = held[:1], held * 2
    step(3.0, 5.0)
    assert step.jitted.closure is closure and step.weight.grad is held
    np.testing.assert_allclose(view.numpy(), step.expected[:1], rtol=1e-5)
    before = step.expected - 2 * np.array([1.0, 2.0]) * np.array([9.0, 25.0])
    np.testing.assert_allclose(double.numpy(), 2 * before, rtol=1e-5)
    loss = closure.run((Tensor([1.0, 1.0]).realize(),))
    assert loss is not MISSED and loss.item() == 5.0
    np.testing.assert_allclose(held.numpy(), step.expected + [2.0, 4.0], rtol=1e-5)
    step.weight.grad = None
    assert closure.run((Tensor([1.0, 1.0]).realize(),)) is MISSED


@pytest.mark.parametrize("change", ["none", "other", "view", "lazy", "tracks", "write"])
def test_gradients_that_are_others_by_then(change: str) -> None:
    step = Accumulating()
    start = np.array([5.0, 7.0], np.float32)
    if change == "none":
        step.weight.grad, start = None, np.zeros(2, np.float32)
    elif change == "other":
        step.weight.grad = Tensor(start).realize()
    elif change == "view":
        base = Tensor(np.stack([start, start])).realize()
        step.weight.grad = base[1]
    elif change == "lazy":
        step.weight.grad = Tensor(start - 1).realize() + 1
    elif change == "tracks":
        step.weight.grad = Tensor(start, requires_grad=True)
        with picograd.no_grad():
            step.weight.grad = step.weight.grad.detach()
    elif change == "write":
        gradient: Any = step.weight.grad
        gradient.copy_(Tensor(start))
    step.expected = start.astype(float)
    for value in (2.0, 3.0, 4.0):
        step(value, 0.5)
    if change == "view":
        assert base[0].tolist() == [5.0, 7.0]
        np.testing.assert_allclose(base[1].numpy(), step.expected, rtol=1e-5)


@pytest.mark.parametrize("calls", [3, 60])
def test_arguments_that_are_written_and_given_back(calls: int) -> None:
    """Views of them that were read before see what is written; so does what waited the old."""

    @picograd.jit
    def added(total: Tensor, x: Tensor) -> Any:
        total.mul_(0.5).add_(x)
        return total, total.sum(), x

    x, wanted = tensor(1.0, 2.0), np.array([4.0, 8.0], np.float32)
    total = Tensor(wanted)
    for _ in range(calls):
        first, number, last = added(total, x)
        wanted = wanted * 0.5 + [1, 2]
        assert first is total and last is x and number.item() == pytest.approx(wanted.sum())
    closure = added.closure
    assert closure is not None and closure.native is None
    assert added.traces == 1 and (calls == 3 or closure.ready is not None)
    cell, turned, before = total[1], total.view(2, 1).T, total * 2
    assert cell.item() == pytest.approx(wanted[1])
    assert turned.realize().tolist() == [pytest.approx(wanted)]
    added(total, x)
    after = wanted * 0.5 + [1, 2]
    assert before.tolist() == pytest.approx(2 * wanted)
    assert cell.item() == pytest.approx(after[1]) and turned.tolist() == [pytest.approx(after)]
    assert total.tolist() == pytest.approx(after) and added.closure is closure


def test_a_check_alone_is_looked_at_where_an_argument_is_given_back(on_host: None) -> None:
    def looked(x: Tensor, index: Tensor) -> Tensor:
        x[index]  # dropped, but for its check
        return x

    jitted = picograd.jit(looked)
    x = tensor(1.0, 2.0, 3.0)
    for _ in range(40):
        assert jitted(x, Tensor([0, 2])) is x
    with pytest.raises(AxisError):
        jitted(x, Tensor([0, 3]))


@pytest.mark.parametrize("is_gradient", [False, True])
def test_views_of_what_a_call_writes_of_its_arguments(is_gradient: bool) -> None:
    """They show what the short way writes, though the argument was shown by none before."""
    given = Tensor([1.0, 2.0, 3.0]).realize()
    given.grad = Tensor([1.0, 2.0, 3.0]).realize()

    @picograd.jit
    def add(x: Tensor) -> None:
        written: Any = x.grad if is_gradient else x
        written += 1.0

    for _ in range(3):
        add(given)
    held: Any = given.grad if is_gradient else given
    views = held.detach(), held[1:], held.view(-1, 1)
    for call in range(3):
        add(given)
        expected = np.array([1.0, 2.0, 3.0]) + 4 + call
        np.testing.assert_array_equal(held.numpy(), expected)
        np.testing.assert_array_equal(views[0].numpy(), expected)
        np.testing.assert_array_equal(views[1].numpy(), expected[1:])
        np.testing.assert_array_equal(views[2].numpy()[:, 0], expected)


@pytest.mark.parametrize("calls", [1, 4, 30])
def test_views_of_what_a_trace_writes_are_not_its_arguments(calls: int) -> None:
    """A trace made for memory apart does not serve arguments of which one shows another."""
    x = tensor(1.0, 2.0, 3.0, 4.0)
    add = picograd.jit(lambda x, y: (x.add_(1), y * 2)[1])
    for _ in range(calls):
        add(x, tensor(0.0, 0.0, 0.0, 0.0))
    computed = x[:4].realize()  # which has memory of its own, too
    for shown in (computed, x[:4], x.detach(), x.view(2, 2).view(4)):
        with pytest.raises(TraceError, match="show one memory, and one is written"):
            add(x, shown)
    assert x.tolist() == [1.0 + calls, 2.0 + calls, 3.0 + calls, 4.0 + calls]
    product = picograd.jit(lambda x, y: x * y)
    for _ in range(calls):
        assert product(tensor(1.0, 2.0), tensor(3.0, 4.0)).tolist() == [3.0, 8.0]
        assert product(x[:2], x[1:3]).tolist() == (x[:2] * x[1:3]).tolist()


@pytest.mark.parametrize("calls", [0, 1, 30])
def test_arguments_over_the_same_bytes_of_an_array_are_not_written(
    calls: int, cpu_by_default: None
) -> None:
    array = np.arange(6, dtype=np.float32)
    add = picograd.jit(lambda x, y: (x.add_(1), y * 2)[1])
    for _ in range(calls):
        assert add(Tensor.from_numpy(array[2:]), tensor(1.0, 2.0)).tolist() == [2.0, 4.0]
    for first, second in ((0, 1), (1, 0), (0, 0)):
        x, y = Tensor.from_numpy(array[first:][:4]), Tensor.from_numpy(array[second:][:2])
        with pytest.raises(TraceError, match="show one memory, and one is written"):
            add(x, y)
    assert array.tolist() == [0.0, 1.0, *(2.0 + calls + n for n in range(4))]
    product = picograd.jit(lambda x, y: x * y)
    for _ in range(3):
        found = product(Tensor.from_numpy(array[1:]), Tensor.from_numpy(array[:-1]))
        assert found.tolist() == (array[1:] * array[:-1]).tolist()


@pytest.mark.parametrize("calls", [1, 4, 30])
def test_views_of_what_a_trace_captured_are_not_its_arguments(calls: int) -> None:
    state = tensor(1.0, 2.0, 3.0)
    rest = state[1:]
    grow = picograd.jit(lambda y: (state.add_(1), y * 2)[1])
    read = picograd.jit(lambda y: (y.add_(1), rest * 2)[1])
    for _ in range(calls):
        grow(tensor(0.0, 0.0))
        read(tensor(0.0, 0.0, 0.0))
    with pytest.raises(TraceError, match="argument 0 is captured too"):
        grow(state[1:])
    assert read(state).tolist() == [2 * (3.0 + calls), 2 * (4.0 + calls)]
