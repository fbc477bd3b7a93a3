"""Numbers of Python's state in jitted functions: read at every call, and set by every call."""

import dataclasses
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import PicogradError
from picograd.tensor.transforms import jit_variables

CASES: dict[str, tuple[Any, int]] = {}  # how to make a step and its state; most traces made
G = 0


def case(most: int) -> Any:
    def put(make: Any) -> Any:
        CASES[make.__name__] = make, most
        return make

    return put


class Holder:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


@case(3)
def beta_of_a_module(jit: Any) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.beta = 0.0

        def forward(self, x: Any) -> Any:
            return x * self.beta

    model = Model()

    def step(x: Any, k: Any) -> Any:
        model.beta = min(1.0, k / 4 + 0.1)
        return model(x)

    return jit(step), lambda: model.beta


@case(1)
def attribute_that_nothing_reads(jit: Any) -> Any:
    holder = Holder(beta=0.0)

    def step(x: Any, k: Any) -> Any:
        holder.beta = k * 0.5 + 0.25
        return x * k

    return jit(step), lambda: holder.beta


@case(2)
def counter_of_a_module(jit: Any) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.steps = 0

        def forward(self, x: Any) -> Any:
            self.steps += 1
            return x * self.steps

    model = Model()
    return jit(lambda x, k: model(x)), lambda: model.steps


@case(3)
def every_third_step(jit: Any) -> Any:
    class Trainer:
        def __init__(self) -> None:
            self.number, self.w = 0, Tensor([1.0])

        def step(self, x: Any, k: Any) -> Any:
            self.number += 1
            if self.number % 3 == 0:
                self.w.mul_(0.5)
            return self.w * x

    trainer = Trainer()
    return jit(trainer.step), lambda: trainer.number


@case(2)
def warm_up_of_an_average(jit: Any) -> Any:
    average = Holder(decay=0.0, count=0, w=Tensor([0.0]))

    def step(x: Any, k: Any) -> Any:
        average.count += 1
        average.decay = min(0.99, (1 + average.count) / (10 + average.count))
        average.w.mul_(average.decay).add_(x * (1 - average.decay))
        return average.w * 1

    return jit(step), lambda: (average.decay, average.count)


@case(2)
def entries_of_a_dict(jit: Any) -> Any:
    table = {"beta": 1.0, "count": 0, "name": "n"}

    def step(x: Any, k: Any) -> Any:
        table["beta"] = k * 0.25
        table["count"] += 1
        return x * table["beta"] + table["count"]

    return jit(step), lambda: dict(table)


@case(3)
def items_of_a_list(jit: Any) -> Any:
    items = [0.5, 5]

    def step(x: Any, k: Any) -> Any:
        items[0] = k * 0.25 + 0.5
        items[1] += 1
        return x * items[1]

    return jit(step), lambda: list(items)


@case(2)
def variables_of_functions(jit: Any) -> Any:
    count, last = 0, 0.0

    def step(x: Any, k: Any) -> Any:
        global G
        nonlocal count, last
        count, last, G = count + 1, k * 0.5, k + 2
        return x * count

    return jit(step), lambda: (count, last, G)


@case(3)
def tuple_of_numbers(jit: Any) -> Any:
    holder = Holder(pair=(0.0, 0.0))

    def step(x: Any, k: Any) -> Any:
        holder.pair = (k * 0.5, holder.pair[0] + 1.0)
        return x + holder.pair[1]

    return jit(step), lambda: holder.pair


@case(3)
def modules_that_a_loop_finds(jit: Any) -> Any:
    model = nn.Sequential(nn.Dropout(0.0), nn.Dropout(0.0))

    def step(x: Any, k: Any) -> Any:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = k * 0.05
        return model(x * 0)

    return jit(step), lambda: (model[0].p, model[1].p)


@case(2)
def momentum_of_a_norm(jit: Any) -> Any:
    norm = nn.BatchNorm1d(1)

    def step(x: Any, k: Any) -> Any:
        norm.momentum = 1 / (k + 2)
        norm(x.reshape(1, 1).expand(2, 1) * k)
        return norm.running_mean * 1

    return jit(step), lambda: norm.momentum


@case(2)
def dataclass_and_numpy(jit: Any) -> Any:
    @dataclasses.dataclass
    class State:
        step: int = 0
        ema: Any = None

    state = State(ema=np.float32(0))

    def step(x: Any, k: Any) -> Any:
        state.step += 1
        state.ema = np.float32(0.5) * state.ema + np.float32(1)
        return x * state.ema

    return jit(step), lambda: (state.step, float(state.ema), type(state.ema))


@case(1)
def variable_of_a_stored_function(jit: Any) -> Any:
    holder = Holder(call=lambda: 0)

    def step(x: Any, k: Any) -> Any:
        holder.call = lambda: k + 1
        return x + k

    return jit(step), lambda: holder.call()


@case(7)  # right, and traced at every call: where a number is put is not known to the next one
def what_a_replay_cannot_set(jit: Any) -> Any:
    listed, holder, parameter = [], Holder(info=None), nn.Parameter(Tensor([1.0]))

    def step(x: Any, k: Any) -> Any:
        listed.append(k * 2)
        holder.info = {"k": (k, 1)}
        parameter.scale = k + 1
        return x + k

    return jit(step), lambda: (list(listed), holder.info, parameter.scale)


@pytest.fixture
def globals_are_seen() -> Iterator[None]:
    """Let traces look at this module's globals too, which `conftest.py` has them leave alone."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_state_are_as_without_jit(name: str, request: pytest.FixtureRequest) -> None:
    """Also where code outside of the function sets them in between."""
    if name == "variables_of_functions":
        request.getfixturevalue("globals_are_seen")
    make, most = CASES[name]
    found = []
    for jit in (lambda f: f, picograd.jit):
        step, state = make(jit)
        found.append([(round(step(Tensor([1.0]), k).item(), 5), state()) for k in range(7)])
    assert repr(found[0]) == repr(found[1])
    assert step.count <= most


def test_a_value_from_outside_is_read() -> None:
    holder = Holder(scale=1.0)

    def step(x: Any, k: Any) -> Any:
        y = x * holder.scale
        holder.scale = holder.scale * 0.5 + k
        return y

    plain, f, seen = [], picograd.jit(step), []
    for k in range(6):
        for function, kept in ((step, plain), (f, seen)):
            holder.scale = 8.0 if k in (0, 4) else kept[-1][1]
            kept.append((function(Tensor([1.0]), k).item(), holder.scale))
    assert plain == seen and f.count <= 2
    holder.scale = "text"
    with pytest.raises(PicogradError):
        f(Tensor([1.0]), 1)


def test_what_reads_the_number_makes_a_trace_for_it() -> None:
    holder = Holder(count=0)

    def step(x: Any) -> Any:
        holder.count += 1
        return x * len(range(holder.count % 3))

    f = picograd.jit(step)
    assert [f(Tensor([1.0])).item() for _ in range(9)] == [1, 2, 0] * 3
    assert holder.count == 9 and f.count <= 4


def test_two_functions_share_a_number() -> None:
    holder = Holder(scale=1.0)

    def sets(x: Any, k: Any) -> Any:
        holder.scale = k
        return x * 1

    reads, writes = picograd.jit(lambda x: x * holder.scale), picograd.jit(sets)
    for k in (2.0, 3.0, 2.0):
        writes(Tensor([1.0]), k)
        assert reads(Tensor([1.0])).item() == k
    assert writes.count == 1


def test_nobody_keeps_a_traced_number() -> None:
    holder, listed = Holder(a=0.0, b=None), []

    def step(x: Any, k: Any) -> Any:
        holder.a, holder.b = k, [k, {"c": k}]
        listed.append((k, k))
        return x * k

    picograd.jit(step)(Tensor([1.0]), 0.5)
    found = [holder.a, holder.b[0], holder.b[1]["c"], *listed[0]]
    assert [type(each) for each in found[:3]] == [float] * 3
    assert found == [0.5] * 5


def test_numbers_are_what_they_were_after_an_error() -> None:
    weight = nn.Parameter(Tensor([1.0]))
    optimizer = nn.optim.Adam([weight], lr=0.5)
    schedule = nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @picograd.jit
    def step(x: Any, lr: Any) -> Any:
        optimizer.param_groups[0]["lr"] = lr
        (weight * x * picograd.rand(1)).sum().backward()
        optimizer.step()
        schedule.step()
        raise KeyError("late")

    state = picograd.get_rng_state().tolist()
    for _ in range(2):
        with pytest.raises(KeyError):
            step(Tensor([1.0]), 0.25)
        group = optimizer.param_groups[0]
        assert group["lr"] == 0.5 and group.host["lr"] == 0.5 and schedule.last_epoch == 0
        assert not optimizer.state and weight.grad is None and weight._version == 0
        assert picograd.get_rng_state().tolist() == state
    (weight * 1.0).sum().backward()
    optimizer.step()
    assert abs(weight.item() - 0.5) < 1e-6


def test_a_number_that_is_returned_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All objects of a process are looked at: lists of the search itself have no holders."""
    asked: list[int] = []
    found = jit_variables.holders_of

    def holders_of(values: Any) -> list[Any]:
        asked.append(len(values))
        return found(values)

    monkeypatch.setattr(jit_variables, "holders_of", holders_of)
    step = picograd.jit(lambda x, rate: (x * rate, rate))
    for rate in (0.5, 0.25, 0.125):
        assert step(Tensor([2.0]), rate)[1] == rate
    assert step.traces == len(asked) == 1
