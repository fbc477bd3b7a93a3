"""Jitted training steps by machine code, beside `Changes.run` and plain steps."""

import copy
import random
import threading

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import pending
from picograd.engine.native_calls import NATIVE_AFTER
from picograd.errors import AxisError, TraceError
from picograd.runtime.pieces import OFTEN
from picograd.runtime.python_layout import is_possible
from picograd.tensor.transforms import jit_closure

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
CLASSES = 3
GENERATOR = np.random.default_rng(5)
X = GENERATOR.normal(0, 1, (6, 4)).astype(np.float32)
Y = GENERATOR.integers(0, CLASSES, 6)


@pytest.fixture(autouse=True)
def each_size_has_a_plan():
    pending.flush_assigns()
    with picograd.config.override(dynamic=0):
        yield


class Loop:
    """A small classifier and its step: plain, jitted by Python, or by machine code."""

    def __init__(self, kind, optimizer="Adam", zeroes=True):
        picograd.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, CLASSES))
        self.optimizer = getattr(nn.optim, optimizer)(self.model.parameters(), lr=0.1)
        self.x, self.y, self.kept, self.seen = Tensor(X), Tensor(Y), [], []
        self.first = self.model[0].weight
        self.parameters = [*self.model.parameters()]
        model, optimizer = self.model, self.optimizer

        def step(x, y):
            if zeroes:
                optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        self.step = step if kind == "plain" else picograd.jit(step)
        self.is_jitted = kind != "plain"
        self.is_short = optimizer == "SGD"  # of others some kernels get all passes first

    def run(self, count=1):
        for _ in range(count):
            self.seen.append(self.step(self.x, self.y).tolist())

    def warm(self, is_native):
        self.run(3 * NATIVE_AFTER if self.is_short else OFTEN + 2 * NATIVE_AFTER)
        if self.is_jitted:
            assert (self.step.closure.native is not None) is is_native
        return self

    def state(self):
        gradients = [each.grad for each in self.parameters]
        found = [each.tolist() for each in self.parameters]
        return found + [each if each is None else each.tolist() for each in gradients]


class Passed(Loop):
    """The same with the weights as arguments, written by hand."""

    def __init__(self, kind, lets_go="before"):
        picograd.manual_seed(0)
        self.x, self.y, self.kept, self.seen = Tensor(X), Tensor(Y), [], []
        shapes = (4, 5), (5,), (5, CLASSES), (CLASSES,)
        drawn = [np.random.default_rng(3).normal(0, 0.5, shape) for shape in shapes]
        made = [Tensor(each.astype(np.float32), requires_grad=True) for each in drawn]
        self.parameters, self.first = made, made[0]
        self.is_jitted, self.is_short = kind != "plain", True

        def step(w, b, v, c, x, y):
            if lets_go == "before":
                w.grad = b.grad = v.grad = c.grad = None
            loss = nn.functional.cross_entropy((x @ w + b).tanh() @ v + c, y)
            loss.backward()
            with picograd.no_grad():
                for each in w, b, v, c:
                    each -= 0.1 * each.grad
                    if lets_go == "behind":
                        each.grad = None
            return loss

        self.function = step if kind == "plain" else picograd.jit(step)

    def step(self, x, y):
        return self.function(*self.parameters, x, y)

    def warm(self, is_native):
        self.run(3 * NATIVE_AFTER)
        if self.is_jitted:
            assert (self.function.closure.native is not None) is is_native
        return self


class Drawn(Loop):
    """Dropout, and a number among the arguments, which is another at each step."""

    def __init__(self, kind, rate=0.25):
        super().__init__("plain", optimizer="SGD")
        del self.step  # below is another
        model, parameters, drop = self.model, self.parameters, nn.Dropout(rate)
        self.is_jitted, self.rate = kind != "plain", 0.1

        def step(x, y, rate):
            for each in parameters:
                each.grad = None
            loss = nn.functional.cross_entropy(model[2](drop(model[1](model[0](x)))), y)
            loss.backward()
            with picograd.no_grad():
                for each in parameters:
                    each -= rate * each.grad
            return loss, rate

        self.function = step if kind == "plain" else picograd.jit(step)

    def step(self, x, y):
        self.rate *= 0.99
        loss, rate = self.function(x, y, self.rate)
        assert rate == self.rate
        return loss

    def warm(self, is_native):
        self.run(3 * NATIVE_AFTER)
        if self.is_jitted:
            assert (self.function.closure.renewed is not None) is is_native
        return self


def another_seed(loop):
    picograd.manual_seed(9)


def draw_beside(loop):
    loop.seen.append(picograd.rand(3).tolist()[0])


def keep_gradient(loop):
    loop.kept.append((loop.first.grad, loop.first.grad.tolist()))


def keep_view(loop):
    view = loop.first.grad[1]
    loop.kept.append((view, view.tolist()))


def keep_waiting(loop):
    made = loop.first.grad * 2
    loop.kept.append((made, (loop.first.grad.numpy() * 2).tolist()))


def keep_array(loop):
    array = loop.first.grad.numpy()
    loop.kept.append((array, array.tolist()))


def keep_detached(loop):
    loop.kept.append((loop.first.grad.detach().clone(), loop.first.grad.tolist()))


def keep_copies(loop):
    """Nothing is recorded for a deep copy; it waits all the same, and reads what is written."""
    for each in (loop.first, loop.first.grad):
        was = each.tolist()
        loop.kept += [(copy.deepcopy(each), was), (Tensor(each, dtype="float64"), was)]


def keep_state(loop):
    was = loop.optimizer.state_dict()["state"]
    copied = copy.deepcopy(was)
    for number, values in was.items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                loop.kept.append((copied[number][name], value.numpy().tolist()))


def read_weight_later(loop):
    made = loop.first * 3
    loop.kept.append((made, (loop.first.detach().numpy() * np.float32(3)).tolist()))


def computed_weight(loop):
    made = (loop.first * 3).realize()
    loop.kept.append((made, made.tolist()))


def view_of_gradient(loop):
    row = loop.first.grad[0]
    loop.run()
    assert row.tolist() == loop.first.grad[0].tolist()


def rows_of_weight(loop):
    loop.row = loop.first.detach()[0]
    loop.run()
    assert loop.row.tolist() == loop.first[0].tolist()


def no_gradient(loop):
    loop.first.grad = None


def other_gradient(loop):
    loop.first.grad = Tensor(np.ones(loop.first.shape, np.float32))


def scaled_gradient(loop):
    loop.first.grad.mul_(2)


def write(loop):
    with picograd.no_grad():
        loop.first.add_(0.5)


def write_row(loop):
    with picograd.no_grad():
        loop.first[1] = 0.25


def new_data(loop):
    loop.first.data = Tensor(np.full(loop.first.shape, 0.125, np.float32))


def rate(loop):
    loop.optimizer.param_groups[0]["lr"] *= 0.5


def state(loop):
    loop.optimizer.load_state_dict(copy.deepcopy(loop.optimizer.state_dict()))


def moments(loop):
    for each in loop.optimizer.state.values():
        for value in each.values():
            if isinstance(value, Tensor):
                with picograd.no_grad():
                    value.mul_(0.5)


def hook(loop):
    handle = loop.first.register_hook(lambda gradient: gradient * 3)
    loop.run(2)
    handle.remove()


def later_hook(loop):
    loop.told = []
    handle = loop.first.register_post_accumulate_grad_hook(lambda each: loop.told.append(1))
    loop.run(1)
    handle.remove()


def frozen(loop):
    loop.first.requires_grad_(False)
    loop.run(2)
    loop.first.requires_grad_(True)


def bad_label(loop):
    before = loop.state()
    for wrong in CLASSES, -1, 1 << 40:
        labels = Tensor(np.where(np.arange(6) == 4, wrong, Y))
        with pytest.raises(AxisError):
            loop.step(loop.x, labels).tolist()
    assert loop.state() == before or not loop.is_jitted  # a plain step let go of gradients


def ignored_label(loop):
    labels = Tensor(np.where(np.arange(6) == 4, -100, Y))
    loop.seen.append(loop.step(loop.x, labels).tolist())


def narrow_labels(loop):
    loop.seen.append(loop.step(loop.x, Tensor(Y.astype(np.int32))).tolist())


def view_of_labels(loop):
    loop.seen.append(loop.step(loop.x, Tensor(np.concatenate([Y, Y]))[6:]).tolist())


def waiting_batch(loop):
    loop.seen.append(loop.step(Tensor(X) + 0.5, loop.y).tolist())


def other_batch(loop):
    loop.seen.append(loop.step(Tensor(X[::-1].copy()), Tensor(Y[::-1].copy())).tolist())


def smaller_batch(loop):
    loop.seen.append(loop.step(Tensor(X[:4]), Tensor(Y[:4])).tolist())


def evaluate(loop):
    loop.model.eval()
    with picograd.no_grad():
        loop.seen.append(loop.model(loop.x).sum().item())
    loop.model.train()


def other_thread(loop):
    thread = threading.Thread(target=loop.run)
    thread.start()
    thread.join()


EVENTS = [
    keep_gradient, keep_view, keep_waiting, keep_array, keep_detached, keep_copies, keep_state,
    read_weight_later,
    computed_weight, rows_of_weight, no_gradient, other_gradient, scaled_gradient, write, write_row,
    new_data, rate, state, moments, hook, later_hook, frozen, bad_label, ignored_label,
    narrow_labels, view_of_labels, waiting_batch, other_batch, smaller_batch, evaluate,
    other_thread,
]  # fmt: skip


def all_kinds(monkeypatch, events, made=Loop, **options):
    """Run a program three times: what it saw, and what is left."""
    outcomes = []
    for kind in "native", "python", "plain":
        with monkeypatch.context() as patch:
            if kind == "python":
                patch.setattr(jit_closure, "native_of", lambda *_: (None, None, None))
            loop = made(kind, **options).warm(kind == "native")
            for event in events:
                event(loop)
                loop.run(2)
            for value, was in loop.kept:
                np.testing.assert_allclose(value.tolist(), was, rtol=1e-6)
            outcomes.append([loop.seen, *loop.state()])
    return outcomes


def compare(outcomes):
    native, python, plain = outcomes
    assert native == python
    for found, wanted in zip(native, plain, strict=True):
        assert (found is None) is (wanted is None)
        if found is not None:
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("event", EVENTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_events_between_steps(monkeypatch, event, optimizer):
    compare(all_kinds(monkeypatch, [event, event], optimizer=optimizer))


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(monkeypatch, seed, request):
    for number in range(max(int(request.config.getoption("--examples")), 1)):
        drawn = random.Random(100 * number + seed)
        events = [drawn.choice(EVENTS) for _ in range(6)]
        compare(all_kinds(monkeypatch, events, optimizer="SGD"))


OF_OPTIMIZERS = rate, state, moments, frozen, evaluate, keep_state
OF_GRADIENTS = (
    keep_gradient, keep_view, keep_waiting, keep_array, keep_detached, keep_copies, scaled_gradient
)  # fmt: skip


@pytest.mark.parametrize("lets_go", ["before", "behind"])
@pytest.mark.parametrize(
    "event", [each for each in EVENTS if each not in OF_OPTIMIZERS], ids=lambda each: each.__name__
)
def test_events_between_steps_of_arguments(monkeypatch, event, lets_go):
    if lets_go == "behind" and event in OF_GRADIENTS:
        pytest.skip("there are none")
    compare(all_kinds(monkeypatch, [event, event], made=Passed, lets_go=lets_go))


# a plain step draws before it fails
OF_ANOTHER_STEP = rate, state, moments, keep_state, frozen, bad_label


@pytest.mark.parametrize("rate", [0, 0.25])
@pytest.mark.parametrize(
    "event",
    [another_seed, draw_beside, *[each for each in EVENTS if each not in OF_ANOTHER_STEP]],
    ids=lambda each: each.__name__,
)
def test_events_between_steps_that_draw(monkeypatch, event, rate):
    compare(all_kinds(monkeypatch, [event, event], made=Drawn, rate=rate))


def test_a_failed_step_draws_nothing():
    loops = [Drawn("native").warm(True) for _ in range(2)]
    for loop in loops:
        picograd.manual_seed(4)
        if loop is loops[1]:
            bad_label(loop)
        loop.rate = 0.1
        loop.run(3)
    assert loops[0].seen[-3:] == loops[1].seen[-3:]


def test_numbers_of_other_kinds():
    jitted = picograd.jit(lambda x, scale: (x * scale, scale))
    x = Tensor(X)
    for number in range(3 * NATIVE_AFTER):
        jitted(x, number * 0.5)
    assert jitted.closure.renewed is not None
    for scale in 2.5, -0.0, float("inf"), 1e-40, 3, True, 1 << 70:
        found, told = jitted(x, scale)
        assert told is scale or told == scale
        np.testing.assert_array_equal(found.numpy(), (x * scale).numpy())


def other_arguments(loop):
    """Another tensor in the place of one: a copy, a view, a computed one, one that does not ask."""
    was = loop.parameters[0]
    for made in (
        was.detach().clone().requires_grad_(),
        Tensor(np.stack([was.numpy()] * 2))[1].detach().requires_grad_(),
        nn.Parameter(was.detach().clone()),
    ):
        loop.parameters[0] = made
        loop.run(2)
    loop.parameters[0] = loop.first = was


def shown_argument(loop):
    """Views that were computed see what is written."""
    row, column = loop.first.detach()[1], loop.first.detach()[:, 1]
    for _ in range(3):
        loop.seen.append((row * 2).sum().item() + column.realize().sum().item())
        loop.run(1)
        np.testing.assert_array_equal(row.numpy(), loop.first.detach().numpy()[1])
        np.testing.assert_array_equal((column * 1).numpy(), loop.first.detach().numpy()[:, 1])


def test_other_arguments(monkeypatch):
    compare(all_kinds(monkeypatch, [other_arguments, shown_argument] * 2, made=Passed))


def test_graphs_of_what_memory_was_computed_from():
    """A graph that was recorded before an argument was computed reads what it was."""
    jitted = picograd.jit(lambda x: x.add_(1).sum())
    for _ in range(3 * NATIVE_AFTER):
        jitted(Tensor(X))
    assert jitted.closure.native is not None
    for _ in range(3):
        made = Tensor(X) * 2
        later = made * 3
        made.realize()
        jitted(made)
        np.testing.assert_array_equal(later.numpy(), X * 2 * 3)
        np.testing.assert_array_equal(made.numpy(), X * 2 + 1)


def test_readers_of_an_argument_that_an_earlier_call_did_not_write():
    jitted = picograd.jit(lambda x: x.add_(1).sum())
    for _ in range(3 * NATIVE_AFTER):
        jitted(Tensor(X))
    first, second = Tensor(X), Tensor(X)
    later = first * 3
    jitted(second)
    jitted(first)
    np.testing.assert_array_equal(later.numpy(), X * 3)
    np.testing.assert_array_equal(first.numpy(), X + 1)


def test_gradients_of_arguments_alone():
    """They are given, and nothing is written: those of before that somebody holds stay."""

    def step(w, x):
        ((x @ w).square().sum()).backward()

    jitted = picograd.jit(step)
    w, x = Tensor(X[:4], requires_grad=True), Tensor(X)
    held = []
    for number in range(4 * NATIVE_AFTER):
        x = Tensor(X + number)
        w.grad = None
        assert jitted(w, x) is None
        held.append((w.grad, 2 * x.numpy().T @ (x.numpy() @ w.detach().numpy())))
    assert jitted.closure.native is not None
    for found, wanted in held:
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)
    was = w.grad
    assert jitted.closure.native(w, x) is None  # there is one, to which it adds
    jitted(w, x)
    np.testing.assert_allclose(was.numpy(), 2 * held[-1][1], rtol=1e-4)


def test_leaves_that_a_function_makes():
    """Their gradients are stored nowhere: a trace serves later calls."""

    def step(w, x):
        w = w.detach().requires_grad_()
        loss = (x @ w).square().sum()
        loss.backward()
        return (w - 0.01 * w.grad).detach(), loss.detach()

    jitted, x, kept = picograd.jit(step), Tensor(X), []
    w = v = Tensor(X[:4])
    for _ in range(3 * NATIVE_AFTER):
        (w, loss), (v, wanted) = jitted(w, x), step(v, x)
        np.testing.assert_allclose(w.numpy(), v.numpy(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(loss.item(), wanted.item(), rtol=1e-3, atol=1e-4)
    assert jitted.count == 1 and jitted.closure.native is not None

    @picograd.jit
    def stores(w):
        w = w.detach().clone().requires_grad_()
        (w * w).sum().backward()
        kept.append(w)
        return w.grad.sum()

    for _ in range(3):
        found = stores(Tensor(X))
        np.testing.assert_allclose(found.item(), 2 * X.sum(), rtol=1e-4)
    assert kept[-1].tolist() == X.tolist()


def test_gradients_that_are_added_to(monkeypatch):
    events = [keep_waiting, view_of_gradient, scaled_gradient, no_gradient, other_gradient]
    compare(all_kinds(monkeypatch, events, zeroes=False, optimizer="SGD"))


def test_a_gradient_of_its_own_lies_where_it_lay():
    loop = Loop("native").warm(True)
    buffer = loop.first.grad._node.arg.buffer.address
    version = loop.first.grad._node.arg.version
    assert loop.step.closure.native(loop.x, loop.y) is not None
    assert loop.first.grad._node.arg.buffer.address == buffer
    assert loop.first.grad._node.arg.version == version + 1
    held = loop.first.grad
    assert loop.step.closure.native(loop.x, loop.y) is not None
    assert loop.first.grad is not held and held._node.arg.version == version + 1


def test_what_machine_code_leaves_to_python():
    loop = Loop("native").warm(True)
    native = loop.step.closure.native
    before = loop.state()
    wrong = Tensor(np.where(np.arange(6) == 2, CLASSES, Y))
    assert native(loop.x, wrong) is None
    assert native(loop.x, Tensor(np.where(np.arange(6) == 2, -100, Y))) is None
    waiting = loop.first * 2
    assert native(loop.x, loop.y) is None
    with picograd.no_grad():
        assert native(loop.x, loop.y) is None
    assert loop.state() == before
    assert waiting.tolist() == (loop.first * 2).tolist()
    del waiting
    loop.run(2)
    assert native(loop.x, loop.y) is not None


def test_a_step_that_gives_nothing_back_and_methods():
    class Trainer:
        def __init__(self):
            self.weight = Tensor(np.ones(3, np.float32), requires_grad=True)

        @picograd.jit
        def step(self, x):
            self.weight.grad = None
            (self.weight * x).square().sum().backward()
            with picograd.no_grad():
                self.weight -= 0.1 * self.weight.grad

    trainer, x = Trainer(), Tensor(np.ones(3, np.float32))
    for _ in range(3 * NATIVE_AFTER):
        assert trainer.step(x) is None
    assert Trainer.step.closure.native is not None
    was = trainer.weight.numpy().copy()
    assert trainer.step(x) is None
    np.testing.assert_allclose(trainer.weight.numpy(), was * 0.8, rtol=1e-5)
    other = Trainer()
    other.step(x)
    np.testing.assert_allclose(other.weight.numpy(), 0.8, rtol=1e-5)
    np.testing.assert_allclose(trainer.weight.numpy(), was * 0.8, rtol=1e-5)


def tie_copies(weight, mean):
    mean.data = weight.detach()


def tie_weight(weight, mean):
    weight.data = mean


def tie_both(weight, mean):
    memory = Tensor(np.ones(4, np.float32))
    weight.data, mean.data = memory[:3], memory[1:]


@pytest.mark.parametrize("tie", [tie_copies, tie_weight, tie_both])
@pytest.mark.parametrize("warm", [1, 3 * NATIVE_AFTER])
def test_captured_tensors_that_come_to_share_memory(tie, warm):
    """A trace in which they do not is none for them; apart again, it is."""
    seen = []
    for kind in picograd.jit, lambda function: function:
        weight = nn.Parameter(Tensor(np.ones(3, np.float32)))
        mean = Tensor(np.zeros(3, np.float32))

        def step(x, weight=weight, mean=mean):
            with picograd.no_grad():
                weight.sub_(x * 0.1)
                mean.mul_(0.9).add_(weight * 0.1)

        step, x = kind(step), Tensor(np.arange(3, dtype=np.float32))
        found = []
        for change in (lambda *_: None, tie, tie_apart, tie):
            change(weight, mean)
            for _ in range(warm):
                step(x)
            found.append((weight.tolist(), mean.tolist()))
        seen.append(found)
    np.testing.assert_allclose(*seen, rtol=1e-4, atol=1e-5)


def tie_apart(weight, mean):
    weight.data, mean.data = Tensor(np.ones(3, np.float32)), Tensor(np.zeros(3, np.float32))


@pytest.mark.parametrize("warm", [1, 3 * NATIVE_AFTER])
@pytest.mark.parametrize("is_late", [False, True])
def test_an_argument_that_shows_what_a_captured_tensor_comes_to_show(warm, is_late):
    weight = nn.Parameter(Tensor(np.ones(3, np.float32)))

    @picograd.jit
    def step(x):
        with picograd.no_grad():
            weight.sub_(x * 0.1)
            weight.add_(x * 0.2)

    x, memory = Tensor(np.arange(3, dtype=np.float32)), Tensor(np.ones(8, np.float32))
    for _ in range(warm):
        step(x)
    weight.data = memory[2:5]
    for _ in range(warm if is_late else 0):
        step(x)
    with pytest.raises(TraceError, match="captured too"):
        step(memory[1:4])


KINDS = (
    "register_forward_hook", "register_forward_pre_hook", "register_hook",
    "register_post_accumulate_grad_hook",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_that_are_gone_leave_the_short_way_as_it_was(kind):
    """They left steps to a new trace, or to Python for good."""
    loop = Loop("native", "SGD").warm(is_native=True)
    native, owner = loop.step.closure.native, loop.model[0]
    told = []
    handle = getattr(owner if hasattr(owner, kind) else loop.first, kind)(
        lambda *given: told.append(len(given))
    )
    loop.run(2)
    handle.remove()
    calls = len(told)
    loop.run(2)
    assert calls and len(told) == calls
    assert loop.step.closure.native is native
