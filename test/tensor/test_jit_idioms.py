"""Short programs run jitted and plain: values, gradients and states are equal at every call."""

import collections
import dataclasses
import functools
import itertools
import operator
import random
import types

import numpy as np
import pytest
from thread_support import run_in_threads

import picograd
from picograd import Tensor, nn
from picograd.errors import TraceError

CALLS = 5
IDIOMS = []


def idiom(function):
    """List a program: it takes `jit` and returns what it saw."""
    IDIOMS.append(function)
    return function


def at(k, size=3):
    return Tensor(np.arange(size, dtype=np.float32) + k)


def linear(*sizes):
    picograd.manual_seed(3)
    return nn.Linear(*sizes)


@idiom
def pure(jit):
    f = jit(lambda x, y: x * 2 - y)
    return [f(at(k), at(2 * k)) for k in range(CALLS)]


@idiom
def one_tensor_twice_in_turn(jit):
    f = jit(lambda x, y: x - 2 * y)
    a, b = at(1), at(7)
    return [f(*each) for each in ((a, a), (a, b), (b, b), (b, a), (a, b))]


@idiom
def argument_written(jit):
    def f(x, y):
        x += 1
        return x * y

    f = jit(f)
    u, v = at(2), at(2)
    return [[f(u, v), u, v], [f(u, u), u], [f(v, u), u, v], [f(v, v), v], [f(u, v), u, v]]


@idiom
def captured_as_argument(jit):
    w = at(5)
    f = jit(lambda x: x + 2 * w)
    return [f(x) for x in (at(1), w, at(2), w, at(1))]


@idiom
def captured_argument_written(jit):
    w = at(5)

    def f(x):
        x += 1
        return x * w

    f, a = jit(f), at(1)
    return [[f(x), w, a] for x in (a, w, a, w, w)]


@idiom
def captured_written_argument_read(jit):
    w = at(5)

    def f(x):
        w.assign(w * 2)
        return x + w

    f, a = jit(f), at(1)
    return [[f(x), w, a] for x in (a, w, a, w, w)]


@idiom
def detached_argument(jit):
    f, a = jit(lambda x, y: (x - y, x)), at(1)
    pairs = ((a, a.detach()), (at(5), at(2)), (a, a), (a.detach(), a))
    return [list(f(*each)) for each in pairs]


@idiom
def view_of_argument(jit):
    f, a = jit(lambda x, y: x[0] * y), at(4)
    return [f(a, a[1:]), f(at(2), at(3, 2)), f(a, a[:2]), f(a, a[1:])]


@idiom
def argument_returned(jit):
    f, a = jit(lambda x: (x, x, x + 1)), at(1)
    seen = []
    for k in range(CALLS):
        x, again, more = f(a)
        seen += [x is again, x is a, more]
        a += k
    return seen


@idiom
def same_tensor_in_a_tree(jit):
    f = jit(lambda tree: tree["a"] - tree["b"][0] * tree["b"][1])
    z, one = at(0), at(1)
    trees = [{"a": z, "b": [z, z]}, {"a": one, "b": [z, one]}, {"a": z, "b": [one, one]}]
    return [f(tree) for tree in (*trees, *trees)]


@idiom
def written_by_slices(jit):
    def f(x, a):
        x[1:3] = a
        return x * 2

    f, seen = jit(f), []
    for k in range(CALLS):
        x, a = Tensor.zeros(4), Tensor.full((2,), float(k)).requires_grad_(True) * 1
        y = f(x, a)
        seen += [x.detach(), y.detach()]
    return seen


@idiom
def write_that_is_returned(jit):
    w = at(1)
    f, seen = jit(lambda x: w.assign(w + x)), []
    for k in range(CALLS):
        y = f(at(k))
        seen += [y is w, w * 10]
    return seen


@idiom
def own_accumulator(jit):
    def f(x):
        total = Tensor([0.0, 0.0, 0.0])
        total += x
        total += x
        return total

    f = jit(f)
    return [f(at(k)) for k in range(CALLS)]


@idiom
def returned_constant(jit):
    f, seen = jit(lambda x: (x + 1, Tensor([5.0]), Tensor.zeros(2, dtype="int32"))), []
    for k in range(CALLS):
        _, five, zero = f(at(k))
        five.add_(1)
        zero.add_(3)
        seen += [five, zero]
    return seen


@idiom
def backward_inside_step_outside(jit):
    w = Tensor([0.0], requires_grad=True)
    optimizer, seen = nn.optim.SGD([w], lr=1.0), []

    @jit
    def f(x):
        (w * x).sum().backward()

    for k in range(CALLS):
        optimizer.zero_grad(set_to_none=k % 2 == 0)
        f(Tensor([1.0 + k]))
        seen.append(w.grad.detach())
        optimizer.step()
        seen.append(w.detach())
    return seen


@idiom
def gradients_accumulate(jit):
    w = Tensor([1.0, 2.0], requires_grad=True)
    f, seen = jit(lambda x: (w * x).sum().backward()), []
    for k in range(CALLS):
        f(Tensor([1.0, float(k)]))
        seen.append(w.grad)
        if k == 2:
            w.grad = None
    return seen


@idiom
def step_inside_zero_grad_outside(jit):
    w = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = nn.optim.Adam([w], lr=0.1)

    @jit
    def f(x):
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    seen = []
    for k in range(CALLS):
        seen += [f(Tensor([1.0, float(k)])).detach(), w.detach(), w.grad]
        optimizer.zero_grad()
    return seen


@idiom
def clipping_outside(jit):
    model = linear(3, 2)
    optimizer = nn.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

    @jit
    def forward_backward(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss

    @jit
    def step():
        optimizer.step()

    seen = []
    for k in range(CALLS):
        seen.append(forward_backward(at(k)).detach())
        seen.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        step()
        seen.append(model.weight.detach())
    return seen


def training(optimizer_of, change=lambda k, model, optimizer: None):
    def program(jit):
        model = linear(3, 2)
        optimizer = optimizer_of(model)

        @jit
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        seen = []
        for k in range(2 * CALLS):
            change(k, model, optimizer)
            seen += [step(at(k % 3)).detach(), model.weight.detach()]
        return seen

    return program


def set_option(name, values):
    def change(k, model, optimizer):
        optimizer.param_groups[0][name] = values[k // 2 % len(values)]

    return change


def change_weights(k, model, optimizer):
    if k == 2:
        model.weight.data = model.weight.data * 0.5
    if k == 4:
        model.load_state_dict({"weight": np.ones((2, 3), np.float32), "bias": np.ones(2)})
    if k == 6:
        model.bias.requires_grad_(False)
    if k == 8:
        with picograd.no_grad():
            model.weight.mul_(0.25)


def load_optimizer(k, model, optimizer):
    if k == 2:
        optimizer.saved = optimizer.state_dict()
    if k == 5:
        optimizer.load_state_dict(optimizer.saved)
    if k == 7:
        optimizer.state.clear()


optim = nn.optim
TRAININGS = {
    "adamw": training(lambda m: optim.AdamW(m.parameters(), lr=0.1)),
    "weight_decay": training(
        lambda m: optim.SGD(m.parameters(), lr=0.01), set_option("weight_decay", [0.0, 0.5])
    ),
    "momentum": training(
        lambda m: optim.SGD(m.parameters(), lr=0.01), set_option("momentum", [0.0, 0.9, 0.5])
    ),
    "lr": training(
        lambda m: optim.Adam(m.parameters(), lr=0.01), set_option("lr", [0.0, 0.1, 0.01])
    ),
    "betas": training(
        lambda m: optim.Adam(m.parameters(), lr=0.1), set_option("betas", [(0.9, 0.99), (0.5, 0.5)])
    ),
    "maximize": training(
        lambda m: optim.Adam(m.parameters(), lr=0.1), set_option("maximize", [False, True])
    ),
    "weights": training(lambda m: optim.SGD(m.parameters(), lr=0.01), change_weights),
    "state": training(lambda m: optim.Adam(m.parameters(), lr=0.1), load_optimizer),
}
for name, program in TRAININGS.items():
    program.__name__ = f"training_{name}"
    IDIOMS.append(program)


@idiom
def scheduler_inside(jit):
    w = Tensor([1.0], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=1.0)
    scheduler = nn.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    @jit
    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        scheduler.step()

    seen = []
    for _ in range(CALLS):
        step(Tensor([1.0]))
        seen.append(w.detach())
    return seen


@idiom
def modes_of_modules(jit):
    picograd.manual_seed(4)
    layer = nn.Dropout(0.5)
    f, x = jit(lambda x: layer(x)), Tensor.ones(64)
    seen = []
    for k in range(2 * CALLS):
        layer.train(k % 3 != 0)
        layer.p = 0.25 if k > 6 else 0.5
        seen.append(f(x))
    return seen


@idiom
def batch_norm(jit):
    norm = nn.BatchNorm1d(3)
    f, seen = jit(lambda x: norm(x)), []
    for k in range(CALLS):
        norm.train(k != 3)
        x = Tensor(np.random.default_rng(k).normal(size=(4, 3)).astype(np.float32))
        seen += [f(x).detach(), norm.running_mean.detach(), norm.num_batches_tracked.detach()]
    return seen


@idiom
def hooks(jit):
    layer = linear(3, 3)
    f, seen = jit(lambda x: layer(x)), []
    handle = None
    for k in range(CALLS):
        if k == 2:
            handle = layer.register_forward_hook(lambda module, inputs, output: output + 100)
        if k == 4:
            handle.remove()
        seen.append(f(at(k)).detach())
    return seen


@idiom
def replaced_parameter(jit):
    layer = linear(3, 3)
    f, seen = jit(lambda x: layer(x)), []
    for k in range(CALLS):
        if k == 2:
            layer.weight = nn.Parameter(Tensor.ones(3, 3))
        if k == 4:
            layer.bias = None
        seen.append(f(at(k)).detach())
    return seen


@idiom
def dtype_of_a_model(jit):
    layer = linear(3, 3)
    f, seen = jit(lambda x: layer(x.cast(layer.weight.dtype))), []
    for k in range(CALLS):
        if k == 2:
            layer.double()
        seen.append(f(at(k)).detach())
    return seen


@idiom
def captured_variables(jit):
    scale, weights, options = 2.0, [at(1), at(2)], {"power": 2}

    def f(x):
        return (x * scale + weights[0] * weights[-1]) ** options["power"]

    f, seen = jit(f), []
    for k in range(2 * CALLS):
        if k == 2:
            scale = 3.0
        if k == 4:
            weights[0] = at(5)
        if k == 6:
            weights.append(at(9))
        if k == 8:
            options["power"] = 3
        seen.append(f(at(k)))
    return seen


class Settings:
    scale = 1.0

    def __init__(self):
        self.shift = 0.0


@idiom
def attributes_of_objects(jit):
    settings = Settings()
    f, seen = jit(lambda x: x * settings.scale + settings.shift), []
    for k in range(2 * CALLS):
        if k == 2:
            settings.shift = 1.0
        if k == 4:
            settings.scale = 3.0
        if k == 6:
            del settings.scale
        seen.append(f(at(k)))
    return seen


@idiom
def methods(jit):
    class Model:
        def __init__(self, k):
            self.k, self.weight = k, at(k)

        def forward(self, x):
            return x * self.k + self.weight

    Model.forward = jit(Model.forward)
    first, second, seen = Model(1), Model(2), []
    for k in range(CALLS):
        seen += [first.forward(at(k)), second.forward(at(k))]
        first.k += 1
        second.weight = at(3 * k)
    return seen


@idiom
def counters_of_the_function(jit):
    class Annealed(nn.Module):
        def __init__(self):
            self.steps = 0

        def forward(self, x):
            self.steps += 1
            return x * self.steps

    model = Annealed()
    f = jit(lambda x: model(x))
    return [f(at(k)) for k in range(CALLS)]


@idiom
def state_by_rebinding(jit):
    class Cell:
        def __init__(self):
            self.hidden = at(1)

        def step(self, x):
            self.hidden = self.hidden * 0.5 + x
            return self.hidden * 2

    cell = Cell()
    step = jit(lambda x: cell.step(x))
    return [[step(at(k)), cell.hidden] for k in range(CALLS)]


@idiom
def state_made_at_the_first_call(jit):
    class Cache(nn.Module):
        def __init__(self):
            self.total = None

        def forward(self, x):
            if self.total is None:
                self.total = Tensor.zeros(3)
            self.total.add_(x)
            return self.total * 2

    cache = Cache()
    f = jit(lambda x: cache(x))
    return [[f(at(k)), cache.total] for k in range(CALLS)]


@idiom
def own_momentum(jit):
    w, state = Tensor([1.0, 2.0], requires_grad=True), {}

    @jit
    def step(x):
        w.grad = None
        ((w - x) ** 2).sum().backward()
        with picograd.no_grad():
            state["v"] = w.grad if "v" not in state else state["v"] * 0.9 + w.grad
            w.sub_(state["v"] * 0.1)

    seen = []
    for k in range(CALLS):
        step(Tensor([0.0, float(k)]))
        seen += [w.detach(), state["v"]]
    return seen


@idiom
def stored_outputs(jit):
    kept, model = [], Settings()

    def f(x):
        model.last = x * 2
        return x + model.last

    f = jit(f)
    for k in range(CALLS):
        kept.append(f(at(k)))
        kept.append(model.last + 0)
    return kept


@idiom
def gradients_outside(jit):
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    f, seen = jit(lambda x, y: (x * w * y, x * y)), []
    for k in range(CALLS):
        x = Tensor([1.0, 2.0, float(k)], requires_grad=True)
        y = at(k)
        first, second = f(x, y)
        (first.sum() * 2 + second.sum()).backward()
        seen += [first.requires_grad, x.grad, w.grad, y.grad is None]
        w.grad = None
    return seen


@idiom
def gradients_through(jit):
    """What is computed outside leads through the function, and on to what was before it."""
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    f, seen = jit(lambda x: (x * x).sum()), []
    for k in range(CALLS):
        w.grad = None
        (f(w * (k + 1.0)) * 3).backward()
        seen.append(w.grad)
    return seen


@idiom
def backward_inside_through_argument(jit):
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    f, seen = jit(lambda x: (x * x).sum().backward()), []
    for k in range(CALLS):
        w.grad = None
        f(w * (k + 1.0))
        seen.append(w.grad)
    return seen


@idiom
def gradients_of_leaf_arguments(jit):
    f, seen = jit(lambda x: (x * x).sum().backward()), []
    x = Tensor([1.0, 2.0], requires_grad=True)
    for k in range(CALLS):
        f(x)
        seen.append(x.grad)
        if k == 2:
            x.grad = None
    return seen


@idiom
def manual_descent(jit):
    w = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def step(x):
        ((w - x) ** 2).sum().backward()
        with picograd.no_grad():
            w.sub_(w.grad * 0.1)
            w.grad.zero_()

    seen = []
    for k in range(CALLS):
        step(Tensor([0.0, float(k)]))
        seen += [w.detach(), w.grad]
    return seen


@idiom
def random_numbers(jit):
    layer = nn.Dropout(0.3)
    f, seen = jit(lambda x: layer(x) + picograd.randn(3) + picograd.rand(3)), []
    for k in range(CALLS):
        if k % 2 == 0:
            picograd.manual_seed(k)
        seen += [f(at(k)), picograd.rand(2)]
    return seen


@idiom
def modes_of_recording(jit):
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    f, seen = jit(lambda x: (x * w) @ w), []
    for k in range(2 * CALLS):
        with picograd.set_grad_enabled(k % 2 == 0), picograd.autocast("cpu", enabled=k % 3 == 0):
            y = f(at(k))
        seen += [y.requires_grad, y.dtype.name, y.detach().float()]
    return seen


@dataclasses.dataclass
class Pair:
    left: Tensor
    right: object


@idiom
def dataclasses_in_and_out(jit):
    f = jit(lambda p: Pair(p.left * p.right, [p.left, None, "text"]))
    seen = []
    for k in range(CALLS):
        out = f(Pair(at(k), at(2) if k % 2 else 3.0))
        seen += [out.left, out.right[0], out.right[1:]]
    return seen


@idiom
def partials_and_lambdas(jit):
    w = at(3)
    f = jit(functools.partial(lambda a, x, b: a * x + b, w, b=2.0))
    seen = []
    for k in range(CALLS):
        seen.append(f(at(k)))
        w += 1
    return seen


@idiom
def recursion(jit):
    def f(x, n):
        return x if n == 0 else f(x * 2 + n, n - 1)

    f = jit(f)
    return [f(at(k), k % 3) for k in range(CALLS)]


@idiom
def signs_of_zero(jit):
    f = jit(lambda x, c: x * c)
    zeros = (0.0, -0.0, 0.0, False, 1, True, 1.0, float("nan"))
    return [str(f(Tensor([1.0]), c).tolist()) for c in zeros]


@idiom
def captured_integers(jit):
    count = Tensor.zeros(2, dtype="int64")
    f, seen = jit(lambda x: x + count), []
    for k in range(CALLS):
        seen.append(f(at(k, 2)))
        if k % 2:
            count.add_(1)
        else:
            count.assign(Tensor([k, k]))
    return seen


@idiom
def functional_calls(jit):
    layer = linear(3, 3)
    f = jit(lambda x, w: picograd.func.functional_call(layer, {"weight": w}, x))
    return [f(at(k), Tensor.full((3, 3), float(k))).detach() for k in range(CALLS)]


@idiom
def transformed(jit):
    f = jit(picograd.func.grad(lambda x: (x**3).sum()))
    g = jit(picograd.func.vmap(lambda x, y: x @ y))
    return [[f(at(k)), g(at(k).reshape(3, 1), at(1).reshape(3, 1))] for k in range(CALLS)]


@idiom
def attributes_of_a_class_in_its_method(jit):
    class Scaled:
        factor = 3

        @classmethod
        def scale(cls, x):
            return x * cls.factor

    f = jit(Scaled.scale)
    seen = [f(at(1))]
    Scaled.factor = 5
    return [*seen, f(at(1))]


@idiom
def arrays_written_between_calls(jit):
    class Held:
        mask = np.ones(3, np.float32)

    weights, flags, held = np.ones(3, np.float32), bytearray(3), Held()
    f = jit(lambda x: x * picograd.tensor(weights) * picograd.tensor(held.mask) + flags[1])
    seen = [f(at(1))]
    for write in (weights, held.mask, flags):
        write[1] = 7
        seen.append(f(at(1)))
    return seen


@idiom
def sets_and_queues(jit):
    names, last = {"a"}, collections.deque([at(0)], maxlen=2)

    def f(x, name):
        last.append(x * 2 if name in names else x)
        return sum(last)

    g = jit(f)
    seen = [g(at(k), name) for k, name in enumerate("abab")]
    names.add("b")
    return [*seen, *[g(at(k), name) for k, name in enumerate("abab")]]


@idiom
def objects_with_slots(jit):
    @dataclasses.dataclass(slots=True)
    class Settings:
        scale: float
        shift: Tensor

    own, other = Settings(2.0, at(1)), Settings(3.0, at(2))
    f = jit(lambda x: x * own.scale + own.shift)
    g = jit(lambda x, settings: x * settings.scale)
    seen = [f(at(1)), g(at(1), other)]
    own.scale = other.scale = 5.0
    seen += [f(at(1)), g(at(1), other)]
    own.shift = at(9)
    return [*seen, f(at(1))]


@idiom
def parameters_added_to_an_optimizer(jit):
    w, v = Tensor([2.0], requires_grad=True), Tensor([3.0], requires_grad=True)
    optimizer = nn.optim.Adam([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        ((w - x) ** 2 + (v - x) ** 2).sum().backward()
        optimizer.step()

    f, seen = jit(step), []
    for count in range(6):
        if count == 3:
            optimizer.add_param_group({"params": [v], "lr": 0.01})
        f(Tensor([1.0]))
        seen += [w.detach().clone(), v.detach().clone()]
    return seen


@idiom
def methods_that_are_replaced(jit):
    class Rule:
        def scale(self):
            return 2

        @property
        def shift(self):
            return self.base + 1

    rule = Rule()
    rule.base = 1
    f = jit(lambda x: x * rule.scale() + rule.shift)
    seen = [f(at(1))]
    Rule.scale = lambda self: 7
    seen.append(f(at(1)))
    rule.scale, rule.base = (lambda: 9), 4
    return [*seen, f(at(1))]


@idiom
def numbers_of_many_kinds(jit):
    f = jit(lambda x, k: x * k)
    numbers = 1.5, float("nan"), float("inf"), -0.0, 0.0, True, 2, np.float32(2), np.int64(3), 2.5
    return [*[f(at(1), k) for k in numbers], 1 / f(at(1), -0.0), 1 / f(at(1), 0.0)]


@idiom
def structures_that_are_matched(jit):
    def f(x, kind):
        match kind:
            case {"by": value}:
                return x + value
            case [first, second]:
                return x + first * second
            case str():
                return x * len(kind)
        return x

    g = jit(f)
    kinds = {"by": 3}, [2, 3], "abc", None, {"by": 4}, [2, 5], "ab"
    return [g(at(1), kind) for kind in kinds]


@idiom
def cached_tables(jit):
    @functools.lru_cache
    def table(count):
        return picograd.arange(count).float()

    f = jit(lambda x: x + table(x.shape[0]))
    return [*[f(at(k, size)) for k, size in enumerate((2, 3, 2))], table(3)]


@idiom
def one_function_in_many_threads(jit):
    weight, found = at(2), [None] * 4
    f = jit(lambda x: x * weight + x.sum())

    def work(k):
        for _ in range(3):
            found[k] = f(at(k))

    run_in_threads(work, 4)
    return found


@idiom
def computed_names(jit):
    class Scales:
        first, second = 2.0, 3.0

    scales, bag = Scales(), types.SimpleNamespace(first=1.0, second=2.0)

    def f(x, name):
        wide = sum(vars(bag).values()) + getattr(bag, "third", 0.0) + globals()["CALLS_OF_A_TEST"]
        return x * getattr(scales, name) + wide * operator.attrgetter("first")(bag)

    f, found = jit(f), []
    for k in range(CALLS):
        found.append(f(at(k), ("first", "second")[k % 2]))
        scales.first, bag.second = k + 1.5, bag.second + 1
        if k == 2:
            bag.third = Scales.second = 7.0
        globals()["CALLS_OF_A_TEST"] += 1
    globals()["CALLS_OF_A_TEST"] = 1.0
    return found


@idiom
def iterators_move_on(jit):
    def rates(rate=1.0):
        while True:
            yield rate
            rate *= 0.5

    several = [
        iter([1.0, 2.0, 3.0, 4.0, 5.0]), rates(), itertools.count(1), itertools.cycle([1.0, 2.0]),
        zip([1, 2, 3, 4, 5], "abcde"),
    ]  # fmt: skip
    listed, generated, counted, turned, zipped = several

    def f(x):
        x = x * next(listed) + next(generated)
        return x * next(counted) - next(turned) + next(zipped)[0]

    f = jit(f)
    return [f(at(k)) for k in range(CALLS)]


@idiom
def other_random_numbers(jit):
    random.seed(3)
    np.random.seed(3)
    own, seeded = np.random.default_rng(0), random.Random(1)

    def f(x):
        noise = Tensor(own.standard_normal(3).astype(np.float32))
        return x * random.random() + np.random.rand() + seeded.gauss(0, 1) * noise

    f = jit(f)
    return [f(at(k)) for k in range(CALLS)]


@idiom
def entries_that_come_and_change(jit):
    totals, mode, seen, rows = collections.defaultdict(float), {"name": "a"}, set(), []

    def f(x):
        totals["sum"] += 1
        rows.append(1)
        mode["name"] = mode["name"][-8:] + "b"
        scale = 2.0 if "x" in seen else 1.0
        seen.add("x")
        return x * totals["sum"] + len(mode["name"]) * scale * len(rows)

    f = jit(f)
    return [*[f(at(k)) for k in range(CALLS)], dict(totals), mode, len(rows)]


@idiom
def tensors_that_change_places(jit):
    pair = {"a": at(1), "b": at(5)}

    def f(x):
        pair["a"], pair["b"] = pair["b"], pair["a"]
        pair["a"] += x
        return pair["a"] - pair["b"]

    f = jit(f)
    return [*[f(at(k)) for k in range(CALLS)], pair["a"], pair["b"]]


@idiom
def layers_that_come_and_go(jit):
    model = nn.Sequential(linear(3, 3), nn.Tanh(), linear(3, 3))
    f, old, found = jit(lambda x: model(x)), list(model), []
    for change in (
        lambda: model.append(nn.ReLU()),
        lambda: model.insert(0, nn.Sigmoid()),
        lambda: model.__setitem__(1, nn.Identity()),
        lambda: model.pop(-2),
        lambda: setattr(old[2], "weight", nn.Parameter(old[2].weight.detach() * 2)),
    ):
        found += [f(at(1)), f(at(2))]
        change()
    return [*found, f(at(1))]


@idiom
def hooks_that_come_and_go(jit):
    weight, model, factor = nn.Parameter(at(1)), linear(3, 3), {"value": 2.0}
    kept = weight.detach()
    handle = model.register_forward_hook(lambda module, inputs, result: result * factor["value"])

    def f(x):
        weight.grad = None
        (weight * x * kept).pow(2).sum().backward()
        return [weight.grad, model(x).detach()]

    f, found = jit(f), []
    for k in range(CALLS):
        found.append(f(at(k)))
        if k == 0:
            clamped = weight.register_hook(lambda gradient: gradient.clamp(-1, factor["value"]))
        factor["value"] += k
        if k == 3:
            clamped.remove()
            handle.remove()
    return found


@idiom
def outputs_that_show_one_memory(jit):
    weight, leaf = at(1, 6).reshape(2, 3), at(2).requires_grad_()

    def f(x):
        y, z = x * 2, leaf * x
        weight.add_(1)
        return [y, y[0], y.view(-1)[1:], y.detach().T, x[1], weight[:, 1], weight.T, z, z[1:], y[0]]

    f, found = jit(f), []
    for k in range(CALLS):
        x = at(k, 6).reshape(2, 3)
        outputs = f(x)
        for number, each in enumerate(outputs[:7]):
            each[..., 0] = 10 * number + k
        outputs[8].sum().backward()
        found += [[each.detach().clone() for each in outputs], x, weight.clone(), leaf.grad.clone()]
    return found


@idiom
def pieces_of_a_result(jit):
    f, found = jit(lambda x: (x + 1).chunk(3)), []
    for k in range(CALLS):
        first, second, third = f(at(k))
        first += second
        third.zero_()
        found.append([first, second, third])
    return found


@idiom
def sets_and_counts(jit):
    def f(x, flags, numbers):
        x = x * 2 if "double" in flags else x
        return x + picograd.bincount(numbers, minlength=3)

    f = jit(f)
    flags = [{"double"}, set(), frozenset({"double"}), {"other", "double"}, set()]
    return [f(at(k), flags[k], Tensor([0, 2, k % 3])) for k in range(CALLS)]


CALLS_OF_A_TEST = 1.0


def seen_values(value):
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, (list, tuple)):
        return [seen_values(each) for each in value]
    return value


def plain(function):
    return function


@pytest.mark.parametrize("program", IDIOMS, ids=lambda each: each.__name__)
def test_idiom_is_the_same_jitted(program):
    Settings.scale = 1.0
    picograd.manual_seed(1)
    expected = seen_values(program(plain))
    Settings.scale = 1.0
    picograd.manual_seed(1)
    assert_equal(seen_values(program(picograd.jit)), expected)


READERS = {
    "format": lambda x: f"{x.sum():.3f}",
    "str": lambda x: f"the loss is {x.sum()}",
    "bincount": lambda x: x.long().bincount(),
    "t_": lambda x: x.t_(),
    "assert": lambda x: bool((x > 0).all()),
}


@pytest.mark.parametrize("name", READERS)
def test_what_a_trace_cannot_know_names_the_line(name):
    with pytest.raises(TraceError, match="test_jit_idioms.py:"):
        picograd.jit(lambda x: (READERS[name](x), x))(at(1))


def test_a_number_beyond_the_counts_raises():
    f = picograd.jit(lambda x: x.bincount(minlength=3))
    assert f(Tensor([0, 2])).tolist() == [1, 0, 1]
    with pytest.raises(IndexError):
        f(Tensor([0, 3])).tolist()


def assert_equal(found, expected):
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_equal(one, other)
    else:
        assert found == expected
