"""Replays by machine code: those of `Closure.run`, for calls like the last one."""

import copy
import gc
import sys
from typing import NamedTuple

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import pending
from picograd.engine.native_calls import NATIVE_AFTER
from picograd.engine.plan_cache import PLANS
from picograd.engine.realize import CHECK_LIMIT, CHECKS
from picograd.runtime.python_layout import is_possible
from picograd.tensor.transforms import jit_native

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
WEIGHT = [None]
SCALE = 2.0


def leaf(seed, shape=(3, 3), **options):
    return Tensor(np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32), **options)


@pytest.fixture(autouse=True)
def spare():
    """Leave free blocks in the pool, and no write that waits: else Python replays."""
    pending.flush_assigns()
    held = [leaf(number) for number in range(64)]
    del held
    with picograd.config.override(dynamic=0):  # each size has a plan
        yield


def warmed(function, *args):
    """Call a jitted function until its closure is machine code."""
    step = picograd.jit(function)
    for _ in range(3 * NATIVE_AFTER):
        step(*args)
    assert step.closure.ready is not None
    return step


def test_it_computes_what_the_function_does():
    step = warmed(lambda a, b: (a @ b).relu(), leaf(0), leaf(1))
    assert step.closure.native is not None
    for number in range(5):
        a, b = leaf(number), leaf(number + 9)
        found = step.closure.native(a, b)
        assert type(found) is Tensor
        assert np.array_equal(found.numpy(), (a @ b).relu().numpy())
    assert step.traces == 1


def test_plans_of_many_arrays():
    """What is on the way are hundreds of slots."""
    weight = leaf(1)

    def products(x):
        for _ in range(200):
            x = (x @ weight).tanh()
        return x

    step = warmed(products, leaf(0))
    for number in range(3):
        found = step.closure.native(leaf(number))
        np.testing.assert_allclose(found.numpy(), products(leaf(number)).numpy(), rtol=1e-5)


def test_numbers_of_the_function_are_arguments_of_its_plan():
    step = warmed(lambda a: (a * 1.5 + 0.25).norm() + 3, leaf(0))
    assert step.closure.capture.scalars
    for number in range(3):
        a = leaf(number)
        wanted = np.linalg.norm(a.numpy() * 1.5 + 0.25) + 3
        np.testing.assert_allclose(step.closure.native(a).numpy(), wanted, rtol=1e-6)


OTHER = {
    "shape": (leaf(0, (2, 2)), leaf(1, (2, 2))),
    "dtype": (leaf(0).double(), leaf(1).double()),
    "the same twice": (leaf(0),) * 2,
    "asks for gradients": (leaf(0, requires_grad=True), leaf(1)),
    "frozen": (leaf(0, requires_grad=False), leaf(1)),
    "not computed": (lambda: leaf(0) + 1, leaf(1)),
    "a number": (leaf(0), 1.0),
    "too few": (leaf(0),),
    "none": (),
    "no tensors": ("a", None),
    "never filled": (Tensor.__new__(Tensor), leaf(1)),
}


@pytest.mark.parametrize("args", OTHER.values(), ids=OTHER)
def test_another_call_is_left_to_python(args):
    step = warmed(lambda a, b: a + b, leaf(0), leaf(1))
    args = tuple(each() if type(each) is type(warmed) else each for each in args)
    assert step.closure.native(*args) is None
    assert step.closure.ready(*args) is None


def test_arguments_that_are_the_same():
    step = warmed(lambda a, b: a + b, *[leaf(0)] * 2)
    a = leaf(5)
    assert np.array_equal(step.closure.native(a, a).numpy(), 2 * a.numpy())
    assert step.closure.native(a, leaf(6)) is None


def test_state_of_python_is_seen(monkeypatch):
    here = sys.modules[__name__]
    step = warmed(lambda a: a * SCALE, leaf(0))
    a = leaf(1)
    assert step.closure.ready(a) is not None
    monkeypatch.setattr(here, "SCALE", 5.0)
    assert step.closure.ready(a) is None
    np.testing.assert_allclose(step(a).numpy(), a.numpy() * 5, rtol=1e-6)


def test_cells_are_seen():
    scale = 2.0
    step = warmed(lambda a: a * scale, leaf(0))
    a = leaf(1)
    assert step.closure.ready(a) is not None
    scale = 3.0
    assert step.closure.ready(a) is None
    np.testing.assert_allclose(step(a).numpy(), a.numpy() * 3, rtol=1e-6)


@pytest.mark.parametrize("mode", ["no_grad", "autocast", "settings"])
def test_modes_are_seen(mode):
    step = warmed(lambda a: a + a, leaf(0))
    a = leaf(1)
    assert step.closure.native(a) is not None
    if mode == "settings":
        picograd.config.outdate()
        assert step.closure.native(a) is None
        return
    with picograd.no_grad() if mode == "no_grad" else picograd.autocast("cpu"):
        assert step.closure.native(a) is None
    assert step.closure.native(a) is not None


def test_captured_tensors_are_seen():
    weight = leaf(7)
    step = warmed(lambda a: a @ weight, leaf(0))
    a = leaf(1)
    assert np.array_equal(step.closure.native(a).numpy(), (a @ weight).numpy())
    assert step.closure.native(weight) is None  # it is an argument, and captured
    weight += 1
    weight.realize()
    assert np.array_equal(step(a).numpy(), (a @ weight).numpy())
    weight.data = leaf(8)
    assert np.array_equal(step(a).numpy(), (a @ weight).numpy())
    for _ in range(3 * NATIVE_AFTER):
        found = step(a)
    assert np.array_equal(found.numpy(), (a @ weight).numpy())
    shown = weight[0]
    assert np.array_equal(step(a).numpy(), (a @ weight).numpy())
    del shown


def test_memory_of_the_trace_itself():
    step = warmed(lambda a: a + Tensor([1.0, 2.0, 3.0]), leaf(0))
    a = leaf(2)
    assert np.array_equal(step(a).numpy(), a.numpy() + np.array([1, 2, 3], np.float32))
    ready = step.closure.ready
    PLANS.clear()
    gc.collect()
    assert ready(a) is None
    assert np.array_equal(step(a).numpy(), a.numpy() + np.array([1, 2, 3], np.float32))


class Scaled(nn.Linear):
    """Has a class method and a static one, which a trace looks up in the class."""

    @staticmethod
    def twice(x):
        return x * 2

    @classmethod
    def half(cls, x):
        return cls.twice(x) / 4

    def forward(self, x):
        return self.half(super().forward(x))


@pytest.mark.parametrize("rule", [nn.optim.SGD, nn.optim.AdamW])
def test_training_steps_read_what_they_read(rule, monkeypatch):
    """Parameters, and what showed them and is gone, are read by machine code."""
    model, x, y = Scaled(3, 2), leaf(1), leaf(2, (3, 2))
    optimizer = rule(model.parameters(), lr=0.1)

    def learn(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step, steps = picograd.jit(learn), 3 * NATIVE_AFTER
    start = {name: value.clone().realize() for name, value in model.state_dict().items()}
    rule_start = copy.deepcopy(optimizer.state_dict())
    for number in range(steps):
        step(x, y)
        assert number > 2 or model.weight.detach()[0].shape == (3,)
    found = [step(x, y).item() for _ in range(3)]
    assert len(step.closure.ready(x, y)) == len(step.closure.capture.inputs)
    shown = model.weight.detach()[0]
    assert step.closure.ready(x, y) is None
    found.append(step(x, y).item())
    assert np.array_equal(shown.numpy(), model.weight.numpy()[0])
    del shown
    found.append(step(x, y).item())
    assert step.closure.ready(x, y) is not None
    with monkeypatch.context() as patch:
        patch.setattr(Scaled, "twice", staticmethod(lambda x: x * 3))
        assert step.closure.ready(x, y) is None
    model.load_state_dict(start)
    optimizer.load_state_dict(rule_start)
    wanted = [learn(x, y).item() for _ in range(steps + 5)][steps:]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def is_ready(step, *args):
    """Tell whether machine code knows the memory that a call reads."""
    ready = step.closure is not None and step.closure.ready
    return bool(ready and ready(*args) is not None)


def updated(step):
    """Update a copy of weights by gradients, in turn as they are and replaced, changed, shown."""
    weights = [nn.Parameter(leaf(number)) for number in range(3)]
    optimizer = nn.optim.AdamW(weights, lr=0.1)
    run, seen = step(optimizer, weights), []
    for number in range(4 * NATIVE_AFTER + 12):
        change, weight = max(number - 4 * NATIVE_AFTER, 0), weights[number % 3]
        if number == 0:
            for each in weights:
                each.grad = leaf(50)
        elif number % 7 == 1:
            weight.grad = leaf(number)
        elif number % 7 == 2:
            weight.grad *= 0.5  # not computed yet
        shown = weight.grad[0] if change == 3 else None
        if change == 4:
            weight.grad = leaf(5).T
        if change == 5:
            weight.grad = None
        if change == 6:
            weight.grad, weights[0].grad = leaf(6), weights[1].grad
        if change == 8:
            weights[1].grad.requires_grad_()
        if change == 9:
            weights[1].grad.requires_grad_(False)
        run()
        if shown is not None:
            seen.append(shown.numpy().copy())
        del shown
    return [*[each.detach().numpy() for each in weights], *seen]


def update_of(optimizer, weights):
    def update():
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()

    return update


def test_gradients_that_are_read():
    """By machine code, if they are what they were."""
    found = []

    def jitted(optimizer, weights):
        step = picograd.jit(update_of(optimizer, weights))

        def run():
            found.append(is_ready(step))
            step()

        return run

    values, wanted = updated(jitted), updated(update_of)
    for value, expected in zip(values, wanted, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
    assert sum(found) > 10 and not all(found[-10:])


def test_gradients_that_are_added_to():
    weight = nn.Parameter(leaf(1))
    weight.grad = leaf(2)
    step = warmed(lambda x: (x @ weight).sum().backward(), leaf(3))
    weight.grad = leaf(4)
    x, before = leaf(5), weight.grad.numpy().copy()
    for times in range(1, 4):
        assert is_ready(step, x)
        step(x)
        wanted = before + times * x.numpy().sum(0)[:, None]
        np.testing.assert_allclose(weight.grad.numpy(), wanted, rtol=1e-5, atol=1e-5)
    for other in leaf(2).double(), leaf(2, (2, 3)):
        weight.grad.data = other
        assert not is_ready(step, x)
        weight.grad = leaf(4)
        assert is_ready(step, x)
    shown = weight.grad[0]
    assert not is_ready(step, x)
    step(x)
    np.testing.assert_allclose(shown.numpy(), weight.grad.numpy()[0])
    del shown
    for gradient in leaf(6).T, leaf(6, requires_grad=True), picograd.zeros(3, 3):
        weight.grad = gradient
        assert not is_ready(step, x)
        wanted = gradient.detach().numpy() + x.numpy().sum(0)[:, None]
        step(x)
        np.testing.assert_allclose(weight.grad.detach().numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_memory_and_references_stay_flat():
    a, b = leaf(0), leaf(1)
    step = warmed(lambda a, b: a + b, a, b)
    native = step.closure.native
    objects = (None, True, False, 0, "", Tensor, picograd.float32, a, b, a._node, native)
    gc.collect()
    stats, before = picograd.memory_stats(), [sys.getrefcount(each) for each in objects]
    for _ in range(200_000):
        native(a, b)
        native(a)
    after = [sys.getrefcount(each) for each in objects]
    assert max(abs(x - y) for x, y in zip(before, after, strict=True)) < 20
    assert picograd.memory_stats()["in_use"] == stats["in_use"]


def test_tensors_in_containers_and_by_name():
    model = nn.Linear(3, 3)
    model.requires_grad_(False)

    def f(layer, batch, scale=None, is_double=False):
        found = layer(batch["x"]) + sum(batch["rest"])
        found = found if scale is None else found * scale
        return {"y": found * 2 if is_double else found}

    step, batch = picograd.jit(f), {"x": leaf(1), "rest": [leaf(2), leaf(3)]}
    for _ in range(3 * NATIVE_AFTER):
        step(model, batch, scale=leaf(4), is_double=True)
    assert step.closure.ready is not None and not step.closure.is_flat
    calls = [
        ((model, batch), {"scale": leaf(5), "is_double": True}),
        ((model, batch), {"scale": leaf(5), "is_double": False}),
        ((model, batch), {"is_double": True, "scale": leaf(6)}),
        ((copy.deepcopy(model), batch), {"scale": leaf(5), "is_double": True}),
        ((model, {**batch, "rest": [leaf(7)]}), {"scale": leaf(5), "is_double": True}),
        ((model, {"rest": batch["rest"], "x": leaf(9)}), {"scale": leaf(5), "is_double": True}),
        ((model, batch), {"scale": 2.5, "is_double": True}),
        ((model, {**batch, "x": batch["rest"][0]}), {"scale": leaf(5), "is_double": True}),
    ]
    for args, kwargs in (*calls, *calls):
        found = step(*args, **kwargs)["y"].numpy()
        np.testing.assert_allclose(found, f(*args, **kwargs)["y"].numpy(), rtol=1e-6)


def test_methods_with_names():
    class Scaled(nn.Linear):
        @picograd.jit
        def scaled(self, x, scale=None):
            return self(x) if scale is None else self(x) * scale

    layers = [Scaled(3, 3).requires_grad_(False) for _ in range(2)]
    for number in range(3 * NATIVE_AFTER):
        layers[0].scaled(leaf(number), scale=leaf(1))
    assert Scaled.scaled.closure.ready is not None
    for layer in (layers[0], layers[1], layers[0]):
        x, scale = leaf(2), leaf(3)
        wanted = layer(x).numpy()
        np.testing.assert_allclose(layer.scaled(x, scale=scale).numpy(), wanted * scale.numpy())
        np.testing.assert_allclose(Scaled.scaled(layer, x).numpy(), wanted)
        np.testing.assert_allclose(layer.scaled(x).numpy(), wanted)


CHECKED = {
    "gather": lambda x, i: x.gather(1, i),
    "getitem": lambda x, i: x[i] * 2,
    "index_copy": lambda x, i: x.index_copy(0, i[0], x.T),
    "embedding": lambda x, i: nn.functional.embedding(i, x),
    "one_hot": lambda x, i: nn.functional.one_hot(i, 3),
    "cross_entropy": lambda x, i: nn.functional.cross_entropy(x, i[0]),
    "several": lambda x, i: (x[i[0]], x.gather(0, i[1:]), x + 1),
}


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("function", CHECKED.values(), ids=CHECKED)
def test_checks_are_looked_at(function):
    """A wrong index raises as it does where the function is not jitted."""
    good = [Tensor(np.array([[0, 1, 2], at], np.int64)) for at in ([2, 0, 1], [1, 1, 0])]
    step = warmed(function, leaf(0), good[0])
    assert step.closure.capture.checks and step.closure.native is not None
    for x, i in ((leaf(1), good[1]), (leaf(2), good[0])):
        found, wanted = listed(step.closure.native(x, i)), listed(function(x, i))
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(found, wanted, strict=True))
    for place, index in (((0, 1), 3), ((1, 2), 7), ((0, 0), -4)):
        wrong = good[0].numpy().copy()
        wrong[place] = index
        x, i = leaf(3), Tensor(wrong)
        try:
            wanted = function(x, i)
            listed(wanted)[0].numpy()
        except IndexError as error:
            assert step.closure.native(x, i) is None
            with pytest.raises(type(error), match="out of range"):
                step(x, i)
        else:
            assert np.array_equal(listed(step(x, i))[0].numpy(), listed(wanted)[0].numpy())
        assert step.closure.native(leaf(4), good[1]) is not None
    assert step.traces == 1


def test_calls_that_fail_leave_memory_and_references_flat():
    step = warmed(lambda x, i: (x[i], x + 1), leaf(0), Tensor([0, 2]))
    x, good, wrong = leaf(1), Tensor([1, 1]), Tensor([0, 3])
    native = step.closure.native
    error = step.closure.capture.checks[0][1]
    objects = (None, True, False, 0, Tensor, error, x, good, wrong, x._node, native)
    gc.collect()
    stats, before = picograd.memory_stats(), [sys.getrefcount(each) for each in objects]
    for _ in range(20_000):
        assert native(x, good) is not None and native(x, wrong) is None
    after = [sys.getrefcount(each) for each in objects]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 20
    assert picograd.memory_stats()["in_use"] == stats["in_use"]


class Pair(NamedTuple):
    sums: Tensor
    rest: list


RETURNED = {
    "tuple": lambda x, y: (x + y, x * y),
    "list": lambda x, y: [x + y, x * y],
    "turned": lambda x, y: {"b": x * y, "a": x + y},
    "the same twice": lambda x, y: (s := x + y, s, x - y),
    "of a class": lambda x, y: (x + y).max(1),
    "nested": lambda x, y: Pair(x + y, [x * y, ("text", 2, x - y)]),
    "one in a list": lambda x, y: [x @ y],
}


def leaves_of(value):
    if isinstance(value, dict):
        return [part for key in value for part in (key, *leaves_of(value[key]))]
    if isinstance(value, (tuple, list)):
        return [type(value), *[part for each in value for part in leaves_of(each)]]
    return [value.tolist() if isinstance(value, Tensor) else value]


@pytest.mark.parametrize("function", RETURNED.values(), ids=RETURNED)
def test_what_is_returned_has_the_structure_it_had(function):
    step = warmed(function, leaf(0), leaf(1))
    assert step.closure.native is not None
    before = step.closure.runs
    for number in range(4):
        x, y = leaf(number), leaf(number + 5)
        assert leaves_of(step(x, y)) == leaves_of(function(x, y))
    assert step.closure.runs == before


def test_bools_wait_where_nobody_looks_yet(monkeypatch):
    """As on a GPU: until a value is read, or many wait."""
    monkeypatch.setattr(jit_native, "is_host", lambda device: False)
    step = warmed(lambda x, i: x[i], leaf(0), Tensor([0, 2]))
    x, good, wrong = leaf(1), Tensor([1, 1]), Tensor([0, 3])
    native = step.closure.native
    CHECKS.clear()
    found = native(x, wrong)
    assert [error for _, error in CHECKS] == [step.closure.capture.checks[0][1]]
    with pytest.raises(IndexError, match="out of range for axis 0 of size 3"):
        found.numpy()
    assert not CHECKS and np.array_equal(native(x, good).numpy(), x.numpy()[[1, 1]])
    held = [leaf(number) for number in range(2 * CHECK_LIMIT)]
    del held
    for number in range(CHECK_LIMIT):
        assert native(x, good) is not None and len(CHECKS) == number + 1
    assert native(x, good) is None
    CHECKS.clear()


def test_arguments_that_show_what_is_trained():
    weight = nn.Parameter(leaf(0, (3,)))
    batches = [leaf(1, (8,))[at : at + 3].realize() for at in range(5)]
    optimizer = picograd.optim.SGD([weight], 0.01)

    def step(x):
        optimizer.zero_grad()
        ((weight * x) ** 2).sum().backward()
        optimizer.step()

    train = warmed(step, batches[0])
    assert train.closure.ready(batches[1]) is not None
    for shown in (weight.detach(), weight.detach()[:3], weight.detach().view(1, 3)[0]):
        assert train.closure.ready(shown.realize()) is None
        with pytest.raises(picograd.errors.TraceError, match="argument 0 is captured too"):
            train(shown)
        train = warmed(step, batches[0])


def test_a_step_of_two_views_of_its_data_takes_the_short_way():
    weight, data = nn.Parameter(leaf(0, (3,))), leaf(1, (4, 4))
    batches = [(data[at, :3].realize(), data[at, 1:].realize()) for at in range(4)]

    def step(x, y):
        weight.grad = None
        ((weight * x - y) ** 2).sum().backward()
        with picograd.no_grad():
            weight.sub_(weight.grad * 0.1)

    train = warmed(step, *batches[0])
    assert train.closure.ready(*batches[1]) is not None and train.count <= 2
    train(leaf(2, (3,)), leaf(3, (3,)))
    before = weight.detach().clone()
    train(*batches[2])
    x, y = batches[2]
    wanted = before - 0.2 * (before * x - y) * x
    np.testing.assert_allclose(weight.detach().numpy(), wanted.numpy(), rtol=1e-5)
