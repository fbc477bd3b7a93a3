"""Memory of gradients: a replay writes new ones where old ones are that nothing else holds."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, jit, nn
from picograd.errors import TraceError
from picograd.tensor.transforms import jit_replay


@pytest.fixture(autouse=True)
def replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay what gradients went through, too: elsewhere it is recorded from then on."""
    monkeypatch.setattr(jit_replay, "note_asked", lambda owner: None)


def make_step() -> tuple[Any, nn.Linear]:
    """Make a training step with a number among its arguments."""
    model = nn.Linear(3, 4)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)

    @picograd.jit
    def learn(batch: tuple[Tensor, Tensor], scale: float) -> Tensor:
        x, y = batch[0] * scale, batch[1]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return learn, model


def address(model: nn.Linear) -> int:
    gradient: Any = model.weight.grad
    return gradient._node.arg.buffer.address  # type: ignore[no-any-return]


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
def test_a_replay_writes_gradients_where_they_lie_unless_somebody_holds_them(
    is_held: bool, is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_short:
        monkeypatch.setattr("picograd.tensor.transforms.jit.closure_of", lambda *_: None)
    learn, model = make_step()
    x, y = Tensor(np.ones((2, 3), np.float32)).realize(), Tensor([0, 3]).realize()
    for _ in range(3):
        learn((x, y), 1.0)
    assert bool(learn.closure) is is_short
    place, held = address(model), model.weight.grad if is_held else None
    before = None if held is None else held.numpy().copy()
    learn((x, y), 2.0)
    assert (address(model) == place) is not is_held
    if held is not None:
        np.testing.assert_array_equal(held.numpy(), before)


def test_gradients_that_add_up_are_read_before_they_are_written() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @picograd.jit
    def add(x: Tensor) -> None:
        (weight * x).sum().backward()

    x = Tensor([1.0, 3.0]).realize()
    for count in range(1, 6):
        add(x)
        assert weight.grad is not None and weight.grad.tolist() == [1.0 * count, 3.0 * count]


def test_the_second_call_writes_gradients_where_those_of_the_trace_lie() -> None:
    learn, model = make_step()
    x, y = Tensor(np.ones((2, 3), np.float32)).realize(), Tensor([0, 3]).realize()
    learn((x, y), 1.0)
    place = address(model)
    learn((x, y), 1.0)
    assert address(model) == place


def carried(decorate: Any, is_returned: bool) -> list[list[float]]:
    """Take gradients of a state that every call makes of the one before."""
    x, w = Tensor([2.0], requires_grad=True), Tensor([3.0], requires_grad=True)
    first, found = picograd.zeros(1), []

    @decorate
    def returned(state: Tensor) -> Tensor:
        state = state * w + x
        state.sum().backward(retain_graph=True)
        return state

    @decorate
    def written() -> None:
        first.mul_(w).add_(x)
        first.sum().backward(retain_graph=True)

    state = first
    for _ in range(5):
        state = returned(state) if is_returned else (written(), first)[1]
        found.append([x.grad.item(), 0.0 if w.grad is None else w.grad.item()])
    return found


@pytest.mark.parametrize("is_returned", [True, False])
def test_gradients_go_through_a_state_that_calls_carry_on(is_returned: bool) -> None:
    """They were lost: of what is returned beside gradients, and of what a call before computed."""
    jitted = carried(picograd.jit, is_returned)
    np.testing.assert_allclose(jitted, carried(lambda function: function, is_returned), 1e-6)
    assert jitted[:3] == [[1.0, 0.0], [5.0, 2.0], [18.0, 16.0]]


def test_gradients_with_gradients_that_a_jitted_function_adds_up() -> None:
    """Those of a replay were values, and led nowhere; nor did what they were added to."""
    totals = []
    for decorate in (picograd.jit, lambda function: function):
        x, y = (Tensor(each, requires_grad=True) for each in ([2.0, 3.0], [1.0, 3.0]))

        @decorate
        def step(x: Tensor = x, y: Tensor = y) -> Tensor:
            (x * x * y).sum().backward(create_graph=True)
            return x * 2

        found = []
        for call in range(5):
            made = step()
            if call % 2:
                made.sum().backward(retain_graph=True)
            if call > 2:
                (x.grad * x).sum().backward(retain_graph=True)
            found.append([x.grad.tolist(), y.grad.tolist()])
            assert x.grad.requires_grad
        totals.append(found)
    assert totals[0] == totals[1]
    assert totals[0][-1] == [[140.0, 574.0], [92.0, 207.0]]


@pytest.mark.parametrize("how", ["set_", "data"])
def test_a_tensor_that_the_trace_gave_another_shape_is_traced_again(how: str) -> None:
    """It was described as the trace left it, so that the next call fitted the old shape."""
    x, other = picograd.ones(3, 3), Tensor([1.0, 2.0])

    @picograd.jit
    def step() -> Tensor:
        before = x.clone()
        if how == "data":
            x.data = other
        else:
            x.set_(other)
        return before

    assert [step().shape for _ in range(3)] == [(3, 3), (2,), (2,)]
    x.add_(1)
    assert other.tolist() == [2.0, 3.0]


def test_gradients_through_a_position_of_a_state() -> None:
    """A KeyError: the values of the second call do not need the position in the first."""
    found = []
    for decorate in (picograd.jit, lambda function: function):
        rows, x = picograd.ones(2, 3), Tensor([1.0, 2.0, 3.0], requires_grad=True)

        @decorate
        def step(number: int, rows: Tensor = rows, x: Tensor = x) -> None:
            rows[number] += x * rows[0].clone()

        for number in (1, 0, 1, 0, 1):
            step(number)
        rows.sum().backward()
        found.append([rows.tolist(), x.grad.tolist()])
    assert found[0] == found[1]


def test_what_is_stored_and_returned_is_one_memory_from_the_first_call_on() -> None:
    stored: list[Tensor] = []

    @picograd.jit
    def double(x: Tensor) -> Tensor:
        stored.append(x * 2)
        return stored[-1]

    returned = []
    for _ in range(4):
        returned.append(double(Tensor([1.0, 2.0])))
        returned[-1].add_(1)
    assert [each.tolist() for each in stored] == [[3, 5]] * 4
    assert [each.tolist() for each in returned] == [[3, 5]] * 4


@pytest.mark.parametrize("show", [lambda x: x[:2], lambda x: x.detach()])
def test_a_stored_view_shows_what_is_returned_from_the_first_call_on(show: Any) -> None:
    stored = {}

    @picograd.jit
    def double(x: Tensor) -> Tensor:
        whole = x * 2
        stored["view"] = show(whole)
        return whole

    for _ in range(4):
        whole = double(Tensor([1.0, 2.0, 3.0]))
        whole.add_(1)
        assert stored["view"].tolist()[:2] == [3, 5]
        stored["view"].zero_()
        assert whole.tolist()[:2] == [0, 0]


def test_a_detached_view_written_with_gradients_is_refused() -> None:
    weight, scale = Tensor.ones(3), Tensor([2.0, 3.0, 4.0]).requires_grad_()

    def scaled(view: Tensor) -> Tensor:
        return view.detach().mul_(scale)

    with pytest.raises(TraceError, match="detached view"):
        jit(scaled)(weight)
    jit(lambda x: scaled(x).clone())(weight).sum().backward()
    assert scale.grad is not None and scale.grad.tolist() == [1.0, 1.0, 1.0]
    assert weight.tolist() == [2.0, 3.0, 4.0]


def test_a_loss_has_gradients_though_the_call_took_the_old_ones_away() -> None:
    model = nn.Linear(2, 1)
    optimizer = nn.optim.SGD(model.parameters())

    @picograd.jit
    def loss_of(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        return model(x).sum()

    for _ in range(3):
        loss_of(picograd.ones(3, 2)).backward()
        assert model.weight.grad is not None and model.weight.grad.tolist() == [[3.0, 3.0]]


def test_a_view_is_returned_as_one_where_a_number_is_followed() -> None:
    @picograd.jit
    def scaled(x: Tensor, factor: int) -> tuple[Tensor, Tensor]:
        whole = x * factor
        return whole, whole[1:]

    for factor in (1, 2, 3):
        whole, part = scaled(Tensor([1.0, 2.0]), factor)
        whole.add_(1)
        assert part.tolist() == [2 * factor + 1]


@pytest.mark.parametrize("is_passed", [False, True])
def test_gradients_read_what_a_call_writes_as_it_was(is_passed: bool) -> None:
    """They read what the call left there: those of a loss that reads a state it moves on."""
    state, weight = Tensor([2.0, 1.0]), Tensor([1.0, 0.5], requires_grad=True)

    def step(passed: Tensor | None) -> Tensor:
        held = state if passed is None else passed
        loss = (weight * (held * 2)).square().sum()
        held.mul_(1.5)
        return loss

    jitted, number = picograd.jit(step), np.array([2.0, 1.0])
    losses, wanted = [], np.zeros(2)
    for _ in range(4):
        losses.append(jitted(state if is_passed else None))
        wanted += 8 * number**2 * np.array([1.0, 0.5])
        number = number * 1.5
    sum(losses, Tensor(0.0)).backward()
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(state.numpy(), number, rtol=1e-6)


def test_gradients_of_a_first_call_start_from_what_a_state_was() -> None:
    state, weight = Tensor([2.0]), Tensor([1.0], requires_grad=True)

    @picograd.jit
    def step() -> Tensor:
        state.add_(weight.sin())
        return state.sin()

    step().sum().backward()
    assert weight.grad is not None
    assert weight.grad.item() == pytest.approx(np.cos(2 + np.sin(1)) * np.cos(1), rel=1e-5)


def test_what_waits_is_computed_before_memory_that_it_leads_to_is_written() -> None:
    """The value of a state that was computed just before is read by the node that gave it."""
    state, found = Tensor([1.0]), []

    @picograd.jit
    def step() -> None:
        state.add_(1)

    for _ in range(4):
        step()
        state.data = state.data * 3
        found.append(state.detach().clone())
    assert [each.item() for each in found] == [6.0, 21.0, 66.0, 201.0]


def test_gradients_go_through_what_a_call_has_written() -> None:
    """What read a written state had no gradient, and neither had what was returned beside it."""
    state, weight = Tensor([2.0, 1.0]), Tensor([1.0, 0.5], requires_grad=True)

    @picograd.jit
    def step(shift: Tensor) -> tuple[Tensor, Tensor]:
        fresh = Tensor([3.0, 4.0])
        beside = weight * fresh.clone()
        fresh += shift
        state.add_(1)
        return weight * state + fresh, beside

    for number in range(3):
        weight.grad = None
        found, beside = step(Tensor([1.0, number]))
        (found.sum() + 10 * beside.sum()).backward()
        assert weight.grad is not None
        assert weight.grad.tolist() == [33.0 + number, 42.0 + number]


@pytest.mark.parametrize("is_argument", [False, True])
def test_what_was_computed_of_a_leaf_survives_that_it_is_frozen_for_a_while(is_argument):
    def step(weight, x):
        with picograd.no_grad():
            weight.sub_(x)
        weight.requires_grad_(False)
        loss = (weight * other * x).sum()
        weight.requires_grad_(True)
        return loss

    weight, other = (nn.Parameter(Tensor([1.0])) for _ in range(2))
    traced = picograd.jit(step if is_argument else lambda x: step(weight, x))
    kept = []
    for k in (1.0, 2.0, 3.0):
        traced(*[weight] * is_argument, Tensor([k]))
        kept.append(weight.detach().clone())
    assert [each.item() for each in kept] == [0.0, -2.0, -5.0]


def test_gradients_of_what_backward_did_not_spend_and_of_written_leaves() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @picograd.jit
    def step(x: Tensor) -> tuple[Tensor, ...]:
        loss = (weight * x).sum()
        loss.backward()
        with picograd.no_grad():
            weight.mul_(0.5)
        return loss, (weight * weight * x).sum(), (weight[1:] * x).sum()

    for count in range(1, 4):
        weight.grad = None
        loss, first, second = step(Tensor([2.0, 2.0]))
        assert weight.grad is not None and weight.grad.tolist() == [2.0, 2.0]
        assert not loss.requires_grad
        (first + second).backward()
        value = 0.5**count
        assert weight.tolist() == [value, 2 * value]
        assert weight.grad.tolist() == [2 + 4 * value, 2 + 8 * value + 4]


def test_no_gradients_of_a_written_leaf_that_is_written_again() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @picograd.jit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        with picograd.no_grad():
            weight.mul_(0.5)
        first = (weight * x).sum()
        with picograd.no_grad():
            weight.add_(1.0)
        return first, (weight * weight).sum()

    for _ in range(3):
        first, second = step(Tensor([2.0, 2.0]))
        assert not first.requires_grad and second.requires_grad
        weight.grad = None
        second.backward()
        assert weight.grad is not None and weight.grad.tolist() == (weight * 2).tolist()


def test_gradients_of_new_data() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @picograd.jit
    def halved(x: Tensor, number: int) -> Tensor:
        weight.data = weight.data * 0.5
        return (weight * weight * x).sum() * number

    for count in range(1, 4):
        weight.grad = None
        halved(Tensor.ones(2 * count - count // 2 * 2, 1), count).backward()
        size = 2 * count - count // 2 * 2
        assert weight.grad is not None
        assert weight.grad.tolist() == [count * size * 2 * n * 0.5**count for n in (1, 2)]


def test_a_view_at_numbers_of_the_call_shows_what_it_was_taken_from() -> None:
    table = Tensor.zeros(6)

    @picograd.jit
    def parts(x: Tensor, at: int) -> tuple[Tensor, ...]:
        return table[at], x[:at], x[len(x) // 2 :], x.narrow(0, at, 1), x.select(0, at)

    for size, at in ((6, 1), (8, 2), (10, 3), (8, 3), (6, 0)):
        x = Tensor.zeros(size)
        for number, each in enumerate(parts(x, at)):
            each += 10**number
        wanted = np.zeros(size)
        wanted[:at] += 10
        wanted[size // 2 :] += 100
        wanted[at] += 11000
        assert x.tolist() == wanted.tolist()
    assert table.tolist() == [1, 1, 1, 2, 0, 0]


def test_views_of_an_argument_that_is_given_other_memory_keep_the_old() -> None:
    """In the call that is traced as in later ones."""

    @picograd.jit
    def renew(x: Tensor, y: Tensor) -> None:
        x.data = y * 2

    given, other = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    for _ in range(4):
        given.zero_()
        view = given.view(-1)
        renew(given, other)
        assert given.tolist() == [6.0, 8.0] and view.tolist() == [0.0, 0.0]


def moves_after_a_write(x: Tensor, y: Tensor) -> None:
    x.add_(1)
    x.data = y * 2
    x.add_(3)


def moves_to_another(x: Tensor, y: Tensor) -> None:
    x[1:] = 7
    x.data = y
    x.mul_(3)


def moves_to_a_view(x: Tensor, y: Tensor) -> None:
    x.add_(1)
    x.data = y[:]
    x.add_(3)
    y.mul_(2)


def moves_twice(x: Tensor, y: Tensor) -> None:
    x.add_(1)
    x.data = y
    x.data = y * 2
    y.add_(1)


def writes_what_it_left(x: Tensor, y: Tensor) -> None:
    view = x[1:]
    view.add_(5)
    x.data = y * 1
    view.add_(1)


def moves_by_itself(x: Tensor, y: Tensor) -> None:
    x.mul_(2)
    x.data = x.data + y
    x.add_(1)


@pytest.mark.parametrize("is_captured", [False, True])
@pytest.mark.parametrize("step", [
    moves_after_a_write, moves_to_another, moves_to_a_view, moves_twice, writes_what_it_left,
    moves_by_itself,
])  # fmt: skip
def test_other_memory_is_given_as_without_jit(step: Any, is_captured: bool) -> None:
    """Views keep the old memory with what was written there, and the new one is shared."""
    histories: list[Any] = []
    for kind in (lambda function: function, picograd.jit):
        x, views, seen = Tensor([1.0, 2.0, 3.0]), [], []
        call = kind(lambda y, x=x: step(x, y)) if is_captured else kind(step)
        for number in range(5):
            y = Tensor([10.0, 20.0, 30.0 + number])
            views.append(x[:2])
            waiting = x * 10
            call(y) if is_captured else call(x, y)
            seen.append([each.tolist() for each in (*views, waiting, x, y)])
            x -= 1
            y += 2
            seen.append([each.tolist() for each in (*views, x, y)])
        histories.append(seen)
    assert histories[0] == histories[1]


@pytest.mark.parametrize("is_captured", [False, True])
def test_what_a_failed_call_stored_is_what_it_computed(is_captured: bool) -> None:
    """Of what arguments held then; what it stored of an argument itself shows that."""
    stored: list[Tensor] = []
    outside = Tensor([7.0, 8.0])

    @picograd.jit
    def fail(x: Tensor) -> None:
        value = outside if is_captured else x
        stored.extend([value * 1, value.sum(), value[1:], value])
        value.add_(1)
        stored.append(value * 2)
        raise ValueError("told")

    for _ in range(3):
        stored.clear()
        given = Tensor([1.0, 2.0])
        changed = outside if is_captured else given
        first, second = changed.tolist()
        with pytest.raises(ValueError, match="told"):
            fail(given)
        assert changed.tolist() == [first, second]
        changed += 5
        changed.realize()
        values = [each.tolist() for each in stored]
        now = changed.tolist()
        wanted = [[first, second], first + second, now[1:], now, [2 * first + 2, 2 * second + 2]]
        assert values == wanted
        stored[3].add_(1)
        assert changed.tolist() == stored[3].tolist() == [first + 6, second + 6]


@pytest.mark.parametrize("calls", [2, 5])
def test_what_reads_an_argument_is_computed_before_another_call_writes_it(calls: int) -> None:
    """Though nothing was recorded since the last call, which wrote another argument."""

    @picograd.jit
    def double(x: Tensor) -> None:
        x.mul_(2)

    for _ in range(calls):
        double(Tensor([1.0, 2.0]).realize())
    first, second = Tensor([3.0, 4.0]).realize(), Tensor([5.0, 6.0]).realize()
    total, third = second + 1, first.realize() * 3
    double(first)
    double(second)
    assert total.tolist() == [6.0, 7.0] and third.tolist() == [9.0, 12.0]
    assert second.tolist() == [10.0, 12.0]
