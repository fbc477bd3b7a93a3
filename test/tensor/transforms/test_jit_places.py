"""Tensors that a jitted function stores: every call sets them, as PyTorch does run unchanged."""

import collections
import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.engine.backends import get_device
from picograd.tensor.transforms import jit_places

torch = pytest.importorskip("torch")
CASES: dict[str, tuple[Any, int]] = {}  # how to make a step and its state; most traces made
CALLS = 7
STATE: Any = None


def case(most: int) -> Any:
    def put(make: Any) -> Any:
        CASES[make.__name__] = make, most
        return make

    return put


def plain(function: Any) -> Any:
    return function


@case(2)
def attribute(lib: Any, jit: Any) -> Any:
    held = SimpleNamespace(h=lib.ones(3))

    def step(x: Any) -> Any:
        held.h = held.h * 0.5 + x
        held.h.mul_(2)
        return held.h.sum()

    return jit(step), lambda: held.h


@case(3)
def attribute_of_a_module(lib: Any, jit: Any) -> Any:
    class Cell(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("h", lib.ones(3))
            self.c = None

        def forward(self, x: Any) -> Any:
            self.c = x if self.c is None else self.c + x
            self.h = self.h * 0.5 + self.c
            return self.h

    cells = [Cell(), Cell()]
    return jit(lambda x: cells[1](cells[0](x))), lambda: cells[0].h + cells[1].c


@case(2)
def variables(lib: Any, jit: Any) -> Any:
    global STATE
    first, STATE = lib.ones(3), lib.ones(3)

    def step(x: Any) -> Any:
        global STATE
        nonlocal first
        first, STATE = STATE + x, first * 0.5
        return first.sum()

    return jit(step), lambda: first + 2 * STATE


@case(2)
def attribute_of_a_class(lib: Any, jit: Any) -> Any:
    class Held:
        __slots__ = ("h",)
        total = lib.ones(3)
        calls = 0

    held = Held()
    held.h = lib.ones(3)

    def step(x: Any) -> Any:
        Held.calls += 1
        held.h = held.h * 0.5 + x
        Held.total = Held.total + held.h * Held.calls
        return held.h.sum()

    return jit(step), lambda: held.h + Held.total


@case(2)
def containers_made_anew(lib: Any, jit: Any) -> Any:
    @dataclasses.dataclass
    class State:
        h: Any
        count: int

    held = SimpleNamespace(pair=(lib.ones(3), lib.ones(3)), s=State(lib.ones(3), 0), d={"a": 0.0})

    def step(x: Any) -> Any:
        h, c = held.pair
        held.pair = h + c * x, c * 0.5
        held.s = State(held.s.h * 0.5 + x, held.s.count + 1)
        held.d = {name: value + x for name, value in held.d.items()}
        return held.s.h * held.s.count

    return jit(step), lambda: held.pair[0] + held.pair[1] + held.s.h * held.s.count + held.d["a"]


@case(4)
def entries(lib: Any, jit: Any) -> Any:
    table: Any = {"h": lib.ones(3)}
    ring = collections.deque([lib.ones(3), lib.ones(3)], maxlen=2)

    def step(x: Any) -> Any:
        table["h"] = table["h"] * 0.5 + x
        table["last"] = x
        ring.append(ring[0] * 0.5 + x)
        return ring[1].sum()

    return jit(step), lambda: table["h"] + table["last"] + ring[0] * 2


@case(3)
def what_nothing_reads(lib: Any, jit: Any) -> Any:
    held, kept = SimpleNamespace(), []

    def step(x: Any) -> Any:
        held.given, held.last = x, (x * 2).detach()
        return (x * 2).sum()

    traced = jit(step)

    def run(x: Any) -> Any:
        result = traced(x)
        assert held.given is x
        kept.append(held.last)
        return result

    return run, lambda: sum(n * each for n, each in enumerate(kept))


@case(1)
def lists_that_grow(lib: Any, jit: Any) -> Any:
    losses: list[Any] = []
    logged: list[Any] = []

    def step(x: Any) -> Any:
        loss = (x * 2).sum()
        losses.append(loss.detach())
        logged.append("loss")
        logged.extend([loss, (loss * 2, 3)])
        return loss

    return jit(step), lambda: sum(losses) + sum(logged[1::3]) + sum(e[0] for e in logged[2::3])


@case(2)
def leaves_and_gradients(lib: Any, jit: Any) -> Any:
    weights = [lib.ones(3).requires_grad_()]

    def step(x: Any) -> Any:
        loss = ((weights[0] * x - 1) ** 2).sum()
        loss.backward()
        weights[0] = (weights[0] - 0.01 * weights[0].grad).detach().requires_grad_()
        return loss.detach()

    return jit(step), lambda: weights[0].detach()


@case(3)
def gradients_through_several_calls(lib: Any, jit: Any) -> Any:
    held = SimpleNamespace(h=lib.ones(3), count=0)
    w = lib.full((3,), 0.5).requires_grad_()

    def step(x: Any) -> Any:
        held.h = held.h * w + x
        return (held.h**2).sum()

    traced = jit(step)

    def run(x: Any) -> Any:
        held.count += 1
        loss = traced(x)
        if held.count % 3 == 0:
            loss.backward()
            held.h = held.h.detach()
        return loss.detach()

    return run, lambda: held.h.detach() + (0 if w.grad is None else w.grad)


@case(2)
def one_tensor_in_two_places(lib: Any, jit: Any) -> Any:
    first = lib.ones(3)
    held = SimpleNamespace(a=first, b=first)

    def step(x: Any) -> Any:
        held.a = held.a + x + first
        held.b = held.a
        held.b.mul_(0.5)
        return held.a.sum()

    return jit(step), lambda: held.a + held.b * 2 + first


@case(4)
def what_is_set_outside(lib: Any, jit: Any) -> Any:
    held = SimpleNamespace(given=lib.ones(3), h=lib.ones(3))

    class Scale(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = lib.ones(3)

        def forward(self, x: Any) -> Any:
            return x * self.factor + held.given

    scale = Scale()

    def encode(x: Any) -> Any:
        held.h = held.h * 0.5 + x
        return held.h

    decode, encoded = jit(lambda x: scale(x) + held.h), jit(encode)

    def run(x: Any) -> Any:
        held.given, scale.factor = x + 1, x * 2
        return decode(encoded(x))

    return run, lambda: held.h


@case(2 + CALLS)
def after_an_error(lib: Any, jit: Any) -> Any:
    held = SimpleNamespace(h=lib.ones(3))

    def step(x: Any, fails: bool) -> Any:
        if fails:
            raise ValueError("fails")
        held.h = held.h + x
        return held.h.sum()

    traced = jit(step)

    def run(x: Any) -> Any:
        with pytest.raises(ValueError, match="fails"):
            traced(x, True)
        return traced(x, False)

    return run, lambda: held.h


@case(9)  # right, and traced at every call: the number of tensors differs
def what_grows_and_is_read(lib: Any, jit: Any) -> Any:
    cache: list[Any] = []

    def step(x: Any) -> Any:
        cache.append(x * 2)
        return sum(cache).sum()

    return jit(step), lambda: sum(cache)


@pytest.mark.parametrize("name", CASES)
def test_state_is_as_in_pytorch(name: str) -> None:
    make, most = CASES[name]
    made: list[Any] = []

    def jit(function: Any) -> Any:
        made.append(picograd.jit(function))
        return made[-1]

    found = []
    for lib, wrap in ((torch, plain), (picograd, jit)):
        step, state = make(lib, wrap)
        rows = [lib.tensor([0.5, -1.0, float(n)]) for n in range(CALLS)]
        found.append([(step(x).numpy().tolist(), state().numpy().tolist()) for x in rows])
    for ours, theirs in zip(found[1], found[0]):
        assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
        assert ours[1] == pytest.approx(theirs[1], rel=1e-5)
    assert made[0].count <= most


def test_a_place_that_grows_is_named(capsys: Any) -> None:
    history: dict[int, Any] = {}

    @picograd.jit
    def step(x: Any, k: int) -> Any:
        history[k] = x.sum()
        return x

    for k in range(8):
        step(picograd.ones(3), k)
    assert "history gets another tensor in it" in capsys.readouterr().err
    assert len({id(each) for each in history.values()}) == 8


def test_what_a_lambda_inside_reads_is_no_global() -> None:
    table: dict[str, Any] = {"x": picograd.ones(3)}
    exec("def step(x): return (lambda: x * 2)()", table)
    step = picograd.jit(table["step"])
    for n in range(3):
        table["x"] = picograd.full((3,), float(n))
        assert step(table["x"]).tolist() == [2.0 * n] * 3
    assert step.count == 1


def test_memory_stays_flat() -> None:
    held = SimpleNamespace(h=picograd.zeros(1000))

    @picograd.jit
    def step(x: Any) -> Any:
        held.h = held.h * 0.5 + x
        return held.h.sum()

    x, seen = picograd.Tensor(np.ones(1000, np.float32)), []
    for _ in range(6):
        step(x).item()
        seen.append(get_device("cpu").memory_stats()["in_use"])
    assert len(set(seen[3:])) == 1


def test_objects_that_calls_make_and_drop_are_no_places() -> None:
    """Two objects in cycles hold a tensor each, and are collected when the call has ended."""

    class Power:
        def __init__(self, exponent: picograd.Tensor) -> None:
            self.exponent, self.inverse = exponent, self

    @picograd.jit
    def step(x: picograd.Tensor) -> picograd.Tensor:
        both = [Power(x * 2.0), Power(x * 3.0)]
        return both[0].exponent + both[1].exponent

    assert [step(picograd.Tensor([float(n)])).tolist() for n in range(4)] == [[0], [5], [10], [15]]


def test_nobody_is_asked_for_arguments_that_are_written_and_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look at all objects of a process takes 0.1 s."""
    monkeypatch.setattr(jit_places, "holders_of", lambda values: pytest.fail("looked"))
    x = picograd.tensor([1.0, 2.0])
    step = picograd.jit(lambda x: x.mul_(2).add_(1))
    for _ in range(2):
        step(x)
    assert x.tolist() == [7.0, 11.0]


def test_numbers_beside_tensors_that_are_replaced_go_on():
    """The list was put back with all that was in it: what the function counted there was lost."""
    x, held = picograd.Tensor([1.0]), [picograd.Tensor([0.0]), 0]

    @picograd.jit
    def step(x):
        held[1] += 1
        return x * 2

    for number in range(1, 8):
        if number in (3, 5):
            held[0] = x + number
        assert step(x).item() == 2.0 and held[1] == number


def rate_in_a_dict(numbers: Any, x: Any) -> Any:
    return x * numbers["rate"] + numbers["other"][0]


def compared(numbers: Any, x: Any) -> Any:
    return x if numbers["rate"] < 2 else x + 1


def counted(numbers: Any, x: Any) -> Any:
    numbers["other"][1] += 1
    return x * numbers["other"][1] - numbers["rate"]


def as_an_index(numbers: Any, x: Any) -> Any:
    return x[numbers["other"][0] % 3] * 2


def as_a_length(numbers: Any, x: Any) -> Any:
    for _ in range(numbers["other"][0]):
        x = x + numbers["rate"]
    return x


def text_of_it(numbers: Any, x: Any) -> Any:
    return x + len(str(numbers["rate"]))


@pytest.mark.parametrize(
    ("step", "most"),
    [(rate_in_a_dict, 3), (compared, 4), (counted, 4), (as_an_index, 4), (as_a_length, 9),
     (text_of_it, 9)],
)  # fmt: skip
def test_numbers_in_containers_are_followed(step: Any, most: int) -> None:
    """A container that a program writes a number to had every call traced anew."""
    found: list[Any] = []
    for is_jitted in (True, False):
        numbers = {"rate": 0.5, "other": [1, 0], "name": "plain"}

        def function(x: Any, numbers: Any = numbers) -> Any:
            return step(numbers, x)

        called = picograd.jit(function) if is_jitted else function
        seen = []
        for call in range(9):
            numbers["rate"] = call * 0.25 if call != 7 else call  # of another class, once
            numbers["other"][0] = (call * 2) % 5
            seen.append(called(picograd.tensor([1.0, 2.0, 4.0])).tolist())
        found.append([*seen, numbers])
        if is_jitted:
            assert called.count <= most
    assert found[0] == found[1]
    assert type(numbers["other"][1]) is int


def test_who_owns_a_table_is_asked_only_where_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Known:
        lists = ()

        def places(self, holder, wanted):
            return []

    asked = []
    monkeypatch.setattr(jit_places, "owner_of", asked.append)
    finder = jit_places.Finder(Known(), [])
    assert finder.visit({}, set()) == [] and asked == []
