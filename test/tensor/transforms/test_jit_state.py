"""What a trace depends on beside its arguments: it is seen, it is said, and it is let go."""

import contextlib
import functools
import gc
import random
import weakref
from array import array
from collections import ChainMap, UserDict, UserList
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.tensor.transforms import jit_state
from picograd.tensor.transforms.jit_names import names_of

SCALE = 2.0


def test_a_training_step_is_traced_once():
    picograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = nn.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = nn.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    scaler, calls = picograd.GradScaler(init_scale=8.0), []

    @picograd.jit
    def step(x, y):
        calls.append(1)
        optimizer.zero_grad()
        with picograd.autocast("cpu"):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    for k in range(6):
        step(Tensor.ones(4, 5) * k, Tensor([0, 1, 2, 0]))
        scheduler.step()
    assert len(calls) == step.traces == 1


def test_attributes_that_only_the_function_reads_of_a_module_are_seen():
    layer, x = nn.Linear(1, 1, bias=False), picograd.ones(1, 1)
    layer.weight.data.fill_(1.0)
    layer.scale, layer.shift = 2.0, Tensor([0.0])
    scaled = picograd.jit(lambda x: layer(x) * layer.scale + layer.shift)
    assert [scaled(x).item() for _ in range(2)] == [2.0, 2.0]
    layer.scale = 3.0
    assert [scaled(x).item() for _ in range(2)] == [3.0, 3.0]
    layer.shift = Tensor([5.0])
    assert [scaled(x).item() for _ in range(2)] == [8.0, 8.0]
    layer.scale = Tensor([4.0])
    assert scaled(x).item() == 9.0


def test_lists_and_dicts_of_a_module_are_compared_and_may_be_replaced():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = {"scale": 2.0}

        def forward(self, x):
            return x * self.own["scale"]

    layer, x = Scaled(), picograd.ones(1)
    layer.shifts, layer.more = [1.0], {"shift": 0.0}
    shifted = picograd.jit(lambda x: layer(x) + layer.shifts[0] + layer.more["shift"])
    assert [shifted(x).item() for _ in range(2)] == [3.0, 3.0]
    layer.own = {"scale": 4.0}
    assert shifted(x).item() == 5.0
    layer.own["scale"] = 6.0
    assert shifted(x).item() == 7.0
    layer.shifts[0] = 2.0
    assert shifted(x).item() == 8.0
    layer.more["shift"] = 1.0
    assert shifted(x).item() == 9.0


def test_classes_of_text_that_exec_runs_are_the_users():
    place = {"jit": picograd.jit, "nn": nn}
    exec("class Net(nn.Module):\n    k = 2.0\n    def forward(self, x): return x * self.k", place)
    exec("net = Net()\nscaled = jit(lambda x: net(x))", place)
    assert [place["scaled"](picograd.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    place["Net"].k = 3.0
    assert place["scaled"](picograd.ones(1)).item() == 3.0


def test_a_state_seen_before_is_not_traced_again():
    layer, calls = nn.Dropout(0.5), []

    @picograd.jit
    def f(x):
        calls.append(1)
        return layer(x)

    for k in range(6):
        layer.train(k % 2 == 0)
        zeros = (f(Tensor.ones(64)) == 0).sum().item()
        assert (zeros > 0) == (k % 2 == 0)
    assert len(calls) == 2


def test_large_containers_are_seen():
    table, rows = list(range(20_000)), [Tensor([float(k)]) for k in range(1500)]
    f = picograd.jit(lambda x: x + Tensor(table)[5] + rows[7])
    assert f(Tensor([1.0])).item() == 13
    table[5] = 50
    assert f(Tensor([1.0])).item() == 58
    rows[7] = Tensor([100.0])
    assert f(Tensor([1.0])).item() == 151


def test_a_replay_forgets_gradients_that_the_trace_had_none_of():
    weight = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = nn.optim.SGD([weight], lr=0.1)
    clear = picograd.jit(lambda x: (optimizer.zero_grad(), x + 1)[1])
    for _ in range(4):
        clear(Tensor([1.0]))
        assert weight.grad is None
        (weight * weight).sum().backward()
        assert weight.grad.tolist() == [2, 4]


class Counter:
    count = 0


def test_attributes_that_only_the_class_has_are_counted():
    state = SimpleNamespace(inner=Counter())

    @picograd.jit
    def f(x):
        state.inner.count += 1
        return x

    for number in range(1, 5):
        f(Tensor([1.0]))
        assert state.inner.count == number
    assert Counter.count == 0


def test_a_dict_of_tensors_that_is_replaced_is_written():
    state = SimpleNamespace()

    @picograd.jit
    def f(x):
        state.all["count"] += 1
        return x + state.all["w"]

    for _ in range(3):
        state.all = {"w": Tensor([1.0]), "count": 0}
        for number in range(1, 4):
            assert f(Tensor([1.0])).item() == 2
            assert state.all["count"] == number


def test_globals_are_seen():
    global SCALE
    f = picograd.jit(lambda x: x * SCALE)
    assert f(Tensor([1.0])).item() == 2.0
    SCALE = 5.0
    try:
        assert f(Tensor([1.0])).item() == 5.0
    finally:
        SCALE = 2.0
    assert f(Tensor([1.0])).item() == 2.0 and f.traces == 2


def test_what_the_code_does_not_name_changes_nothing():
    class Trainer:
        def __init__(self):
            self.epoch, self.scale = 0, 2.0

    class Model(nn.Module):
        def __init__(self):
            self.epoch, self.layer = 0, nn.Linear(1, 1)

        def forward(self, x):
            return self.layer(x)

    trainer, model = Trainer(), Model()
    f = picograd.jit(lambda x: model(x) * trainer.scale)
    for k in range(5):
        trainer.epoch = model.epoch = k
        f(Tensor([1.0]))
    assert f.traces == 1 and f.count == 1


def test_functions_it_calls_are_followed():
    factor = 2.0

    def inner(x):
        return x * factor

    f = picograd.jit(lambda x: inner(x))
    assert f(Tensor([1.0])).item() == 2.0
    factor = 3.0
    assert f(Tensor([1.0])).item() == 3.0


def test_data_is_seen_without_a_trace():
    w = Tensor([1.0])
    f = picograd.jit(lambda x: x * w)
    for k in range(4):
        w.data = Tensor([float(k)])
        assert f(Tensor([2.0])).item() == 2.0 * k
    assert f.traces == 1


def test_frozen_parameter_gets_no_gradient():
    w, v = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    f = picograd.jit(lambda x: (x * w * v).sum().backward())
    for k in range(4):
        w.grad = v.grad = None
        w.requires_grad_(k % 2 == 0)
        f(Tensor([2.0]))
        assert (w.grad is None) == (k % 2 == 1) and v.grad.item() == 2.0


def test_weight_decay_from_zero():
    w = Tensor([1.0], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=1.0)

    @picograd.jit
    def step():
        optimizer.zero_grad()
        (w * 0.0).sum().backward()
        optimizer.step()
        return w.detach()

    assert [step().item() for _ in range(2)] == [1.0, 1.0]
    optimizer.param_groups[0]["weight_decay"] = 0.5
    assert [step().item() for _ in range(2)] == [0.5, 0.25]
    optimizer.param_groups[0]["lr"] = 0.5
    assert step().item() == 0.1875 and step.traces == 2


def test_options_that_the_function_reads_are_numbers():
    w = Tensor([1.0], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=1.0)
    f = picograd.jit(lambda x: x * optimizer.param_groups[0]["lr"])
    seen = []
    for lr in (1.0, 2.0, 3.0, 1.0):
        optimizer.param_groups[0]["lr"] = lr
        seen.append(f(Tensor([1.0])).item())
    assert seen == [1, 2, 3, 1]


def test_reader_of_a_written_and_returned_tensor():
    w = Tensor([1.0])
    f = picograd.jit(lambda x: w.assign(w + x))
    for k in range(1, 5):
        assert f(Tensor([1.0])) is w
        v = w * 10
        f(Tensor([0.0]))
        assert v.item() == 10.0 * (k + 1)


def test_gradients_of_earlier_calls_keep_their_values():
    w, kept = Tensor([1.0], requires_grad=True), []
    f = picograd.jit(lambda x: (w * x).sum().backward())
    for k in range(4):
        w.grad = None
        f(Tensor([float(k)]))
        kept.append(w.grad)
    assert [each.item() for each in kept] == [0, 1, 2, 3]


def test_memory_of_replaced_tensors_is_released():
    class Holder:
        def __init__(self):
            self.weight = Tensor.ones(1000)

    holder, died = Holder(), []
    f = picograd.jit(lambda x: x * holder.weight)
    for k in range(4):
        died.append(weakref.ref(holder.weight))
        assert f(Tensor([2.0]))[0].item() == 2.0 * (k or 1)
        holder.weight = Tensor.full((1000,), float(k + 1))
    gc.collect()
    assert not any(each() for each in died)
    assert f(Tensor([2.0]))[0].item() == 8.0 and f.traces == 1


def test_it_is_said_why(capsys):
    layer = nn.Dropout(0.5)
    f = picograd.jit(lambda x: layer(x))
    with config.override(debug=1):
        f(Tensor.ones(4))
        layer.p = 0.25
        f(Tensor.ones(4))
        layer.eval()
        f(Tensor.ones(4))
        f(Tensor.ones(5))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("jit:")]
    assert lines[0] == "jit: traced <lambda>"
    assert lines[1].endswith("because Dropout.p changed from 0.5 to 0.25")
    assert lines[2].endswith("because Dropout.training changed from True to False")
    assert lines[3].endswith("because axis 0 of argument x (from 4 to 5) changed")


def test_many_traces_are_told(capsys):
    class Annealed(nn.Module):
        def __init__(self):
            self.steps = ""

        def forward(self, x):
            self.steps += "x"
            return x * len(self.steps)

    model = Annealed()
    f = picograd.jit(lambda x: model(x))
    assert [f(Tensor([1.0])).item() for _ in range(9)] == list(range(1, 10))
    told = capsys.readouterr().err
    assert told.count("was traced 8 times") == 1
    assert "Annealed.steps changes from 'xxxxxxx' to 'xxxxxxxx' in it" in told and f.traces == 0


def test_appending_happens_when_it_is_traced():
    calls = []

    @picograd.jit
    def f(x):
        calls.append("called")
        return x + 1

    assert [f(Tensor([1.0])).item() for _ in range(3)] == [2, 2, 2]
    assert calls == ["called"]


def test_a_returned_view_stores_no_tensor():
    """What a view was cut from is alive as long as the view, and nobody else has it."""
    kept = {}

    def both(x):
        kept["all"] = x * 2
        kept["row"] = kept["all"][0]
        return kept["all"].T[1]

    f = picograd.jit(lambda x: ((x * 2).T[1], {"a": (x * 3)[0][:1], "b": x[1].T}))
    stored = picograd.jit(both)
    for number in range(3):
        x = picograd.ones(2, 3) + number
        first, rest = f(x)
        assert first.tolist() == [2.0 + 2 * number] * 2 and rest["a"].tolist() == [3.0 + 3 * number]
        assert stored(x).tolist() == first.tolist()
        kept["row"].add_(1)
        assert kept["all"].tolist() == [[3.0 + 2 * number] * 3, [2.0 + 2 * number] * 3]
    assert f.count == 1


@pytest.mark.parametrize("jitted", [False, True])
def test_dropout_follows_the_seed(jitted):
    layer = nn.Dropout(0.5)

    def f(x):
        return layer(x)

    run = picograd.jit(f) if jitted else f
    picograd.manual_seed(11)
    first = [run(Tensor.ones(32)).tolist() for _ in range(3)]
    picograd.manual_seed(11)
    assert [run(Tensor.ones(32)).tolist() for _ in range(3)] == first
    assert first[0] != first[1] != first[2]
    picograd.manual_seed(11)
    assert f(Tensor.ones(32)).tolist() == first[0]


def test_names_of_code():
    settings = {}

    def f(x, other):
        return x.first + settings.scale.deep * SCALE + next(each.last for each in other)

    found = names_of(f.__code__)
    assert {("settings", "scale", "deep"), ("SCALE",)} <= found.paths
    assert ("first",) in found.own and {"last"} <= found.loose
    assert {"scale", "deep", "first", "last"} <= found.attributes


@pytest.mark.parametrize("kind", [SimpleNamespace, nn.Identity, type("Plain", (), {})])
def test_an_attribute_that_was_missing_is_seen_when_it_is_set(kind):
    owner = kind()
    f = picograd.jit(lambda x: x * getattr(owner, "scale", 1) + hasattr(owner, "shift"))
    x = Tensor([1.0])
    assert [f(x).item(), f(x).item()] == [1.0, 1.0]
    owner.scale = 4
    assert f(x).item() == 4.0
    del owner.scale
    assert f(x).item() == 1.0
    owner.scale = owner.shift = 5
    assert f(x).item() == 6.0


def test_a_global_that_was_missing_is_seen_when_it_is_set():
    @picograd.jit
    def f(x):
        try:
            return x * LATER
        except NameError:
            return x

    x = Tensor([1.0])
    assert [f(x).item(), f(x).item()] == [1.0, 1.0]
    globals()["LATER"] = 3.0
    assert f(x).item() == 3.0
    del globals()["LATER"]


def test_copies_of_a_state_that_the_trace_began_are_taken_before_the_next_write():
    weight = nn.Parameter(Tensor([1.0]))
    optimizer = nn.optim.SGD([weight], lr=0.1, momentum=0.9)

    @picograd.jit
    def step():
        optimizer.zero_grad()
        (weight * weight).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
        moved = optimizer.state[weight]["momentum_buffer"]
        copy, expected = moved.clone(), moved.item()
        step()
        assert copy.item() == expected != moved.item()


WRAPPERS = {
    "no_grad": picograd.no_grad(),
    "autocast": picograd.autocast("cpu", enabled=False),
    "vmap": picograd.vmap,
    "singledispatch": functools.singledispatch,
    "twice": lambda function: picograd.no_grad()(picograd.enable_grad()(function)),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_state_is_seen_that_a_wrapped_function_reads(wrap):
    scale, counted = [1.0], [0]

    @wrap
    def scaled(x):
        counted[0] += 1
        return x * scale[0]

    f = picograd.jit(lambda x: scaled(x) + counted[0])
    for k in range(4):
        scale[0] = k * 3.0
        assert f(Tensor([1.0])).item() == k * 3.0 + k + 1


@pytest.mark.parametrize("kind", [object, nn.Module])
def test_state_is_seen_that_wrapped_methods_read(kind):
    class Counting(kind):
        def __init__(self):
            super().__init__()
            self.scale, self.calls = 1.0, 0

        @picograd.no_grad()
        def scaled(self, x):
            self.calls += 1
            return x * self.scale + self.calls

    owner = Counting()
    f = picograd.jit(lambda x: owner.scaled(x))
    for k in range(4):
        owner.scale = k * 3.0
        assert f(Tensor([1.0])).item() == k * 3.0 + k + 1


def test_state_of_a_context_manager_is_seen():
    entered = [0]

    @contextlib.contextmanager
    def counting():
        entered[0] += 1
        yield entered[0]

    @picograd.jit
    def f(x):
        with counting() as number:
            return x * number

    assert [f(Tensor([1.0])).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


def test_counters_of_classes_functions_and_modules_go_on():
    """`owner.count += 1` reads the attribute of a copy: it was followed of plain objects alone."""

    class Counting(nn.Module):
        count = 0

        def forward(self, x):
            Counters.count += 1
            counted.count += 1
            self.count += 1
            return x * (100 * Counters.count + 10 * counted.count + self.count)

    class Counters:
        count = 0

    def counted():
        pass

    counted.count = 0
    model = Counting()
    step = picograd.jit(lambda x: model(x))
    assert [step(Tensor([1.0])).item() for _ in range(4)] == [111.0, 222.0, 333.0, 444.0]
    assert (Counters.count, counted.count, model.count) == (4, 4, 4)


def test_a_view_that_is_one_no_more_is_seen():
    base = picograd.zeros(2)
    view = base[1:]

    @picograd.jit
    def grow(x):
        base.add_(x)
        view.mul_(2)
        return base.sum()

    grow(picograd.ones(1))
    assert base.tolist() == [1.0, 2.0]
    base.data = picograd.zeros(2)
    grow(picograd.ones(1))
    assert base.tolist() == [1.0, 1.0] and view.tolist() == [4.0]


def test_a_trace_that_is_made_once_more_finds_the_state_of_before() -> None:
    """What the first attempt stored, added and drew happened twice."""
    holder, weight = SimpleNamespace(last=None, name=""), Tensor.ones(2)
    counts, seen, array, generator = {}, [], np.zeros(1), random.Random(3)

    @picograd.jit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        w = weight
        holder.last = w.detach()
        y = x + holder.last
        weight.mul_(2)
        counts["k"] = counts.get("k", 0) + 1
        holder.name += "a"
        array[0] += 1
        seen.append(generator.random())
        return y, w

    for _ in range(3):
        step(Tensor.ones(2))
    other = random.Random(3)
    assert (counts, holder.name, array.tolist()) == ({"k": 3}, "aaa", [3.0])
    assert seen == [other.random() for _ in range(3)]


def test_a_function_that_raises_has_run_once() -> None:
    seen, numbers = [], random.SystemRandom()

    @picograd.jit
    def wrong(x: Tensor, number: int) -> None:
        seen.append(numbers.random())
        raise ValueError(f"bad {number}")

    with pytest.raises(ValueError, match="bad 7"):
        wrong(Tensor.ones(2), 7)
    assert len(seen) == 1


def test_a_base_that_is_gone_is_no_other_one() -> None:
    """Its identity may be that of a later tensor."""
    base = Tensor([1.0])
    was = jit_state.Root(base)
    assert was == jit_state.Root(base) != jit_state.Root(Tensor([1.0]))
    del base
    assert all(was != jit_state.Root(Tensor([1.0])) for _ in range(9))


FACTOR = 2.0


class Scaled:
    factor = 1.0

    def __init__(self) -> None:
        self.own = FACTOR

    @staticmethod
    def of_global(x: Tensor) -> Tensor:
        return x * FACTOR

    @classmethod
    def of_class(cls, x: Tensor) -> Tensor:
        return x * cls.factor

    @staticmethod
    def named(x: Tensor) -> Tensor:
        return x * Scaled.factor

    def of_object(self, x: Tensor) -> Tensor:
        return x * self.own * self.factor


class Multiplied(picograd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * FACTOR

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * Scaled.factor


def slope(x: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    (gradient,) = picograd.autograd.grad(Multiplied.apply(leaf).sum(), leaf)
    return gradient


CHOSEN = {"kind": Scaled}
FUNCTIONS = {
    "static": lambda x: Scaled.of_global(x),
    "class": lambda x: Scaled.of_class(x),
    "named": lambda x: Scaled.named(x),
    "made": lambda x: Scaled().of_object(x),
    "chosen": lambda x: CHOSEN["kind"].of_global(x),
    "custom": lambda x: Multiplied.apply(x),
    "gradient": slope,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_class_are_followed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they read is compared, though no object of the class is reached."""
    function = FUNCTIONS[name]
    jitted = picograd.jit(function)
    x = Tensor([1.0, -3.0])
    for factor in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        for shared in (1.0, 7.0):
            monkeypatch.setattr(Scaled, "factor", shared)
            for _ in range(3):
                assert jitted(x).tolist() == function(x).tolist()


class Counted:
    def __init__(self) -> None:
        self.count = 0

    @staticmethod
    def scaled(state: "Counted", x: Tensor) -> Tensor:
        state.count += 1
        return x * state.count


def scaled(state: Counted, x: Tensor) -> Tensor:
    state.count += 1
    return x * state.count


def read_of(state: Counted, x: Tensor) -> Tensor:
    return x * state.count


@pytest.mark.parametrize(
    "make",
    [
        lambda state: lambda x: scaled(state, x),
        lambda state: lambda x: Counted.scaled(state, x),
        lambda state: functools.partial(scaled, state),
    ],
)
def test_what_is_read_of_a_first_argument_that_is_no_self(make: Any) -> None:
    state = Counted()
    jitted = picograd.jit(make(state))
    assert [jitted(Tensor([1.0])).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    state = Counted()
    jitted, seen = picograd.jit(lambda x: read_of(state, x)), []
    for state.count in (1, 1, 2, 3):
        seen.append(jitted(Tensor([1.0])).item())
    assert seen == [1.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["default", "dict", "loop", "partial"])
def test_lists_that_are_reached_without_a_name_are_read(kind: str) -> None:
    lists: dict[str, list[int]] = {"a": []}

    def default(x, held=lists["a"]):
        held.append(1)
        return x * len(held)

    def within(x):
        lists["a"].append(1)
        return x * len(lists["a"])

    def loop(x):
        for held in lists.values():
            held.append(1)
            x = x * len(held)
        return x

    def given(held, x):
        held.append(1)
        return x * len(held)

    partial = functools.partial(given, lists["a"])
    functions = {"default": default, "dict": within, "loop": loop, "partial": partial}
    jitted = picograd.jit(functions[kind])
    assert [jitted(Tensor([1.0])).item() for _ in range(3)] == [1.0, 2.0, 3.0]


class Numbers(dict[str, float]):
    """This class is a dict that allows weak references."""


@pytest.mark.parametrize("kind", ["array", "proxy", "chain", "dict", "list", "weak"])
def test_containers_behind_another_object_are_read(kind: str) -> None:
    held: Any = Numbers(k=1.0)
    shown: Any = {
        "array": lambda: array("d", [1.0]),
        "proxy": lambda: MappingProxyType(held),
        "chain": lambda: ChainMap({}, held),
        "dict": lambda: UserDict(k=1.0),
        "list": lambda: UserList([1.0]),
        "weak": lambda: weakref.ref(held),
    }[kind]()
    key: Any = 0 if kind in ("array", "list") else "k"

    @picograd.jit
    def scaled(x: Tensor) -> Tensor:
        return x * (shown() if kind == "weak" else shown)[key]

    for number in (1.0, 2.0, 3.0, 2.0):
        (held if kind in ("proxy", "chain", "weak") else shown)[key] = number
        assert scaled(Tensor([2.0])).item() == 2.0 * number
