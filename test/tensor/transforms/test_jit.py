"""jit: one trace, then replays that see new arguments, new captured contents and new randomness.

Ancestors' list: M26.
"""

import copy
import gc

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import TraceError


def test_replays_with_new_arguments():
    calls = []

    @picograd.jit
    def f(x, y):
        calls.append(1)
        return x * 2 + y

    for k in range(4):
        result = f(Tensor([1.0, 2.0]) + k, Tensor([10.0, 20.0]))
        assert result.tolist() == [12.0 + 2 * k, 24.0 + 2 * k]
    assert len(calls) == 1 and f.traces == 1


def test_outputs_are_fresh():
    double = picograd.jit(lambda x: x + x)
    first = double(Tensor([1.0]))
    second = double(Tensor([2.0]))
    assert first.tolist() == [2.0] and second.tolist() == [4.0]


def test_new_shape_or_static_argument_traces_again():
    @picograd.jit
    def scale(x, factor=1):
        return x * factor

    assert scale(Tensor([1.0])).tolist() == [1.0]
    assert scale(Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert scale(Tensor([1.0]), factor=3).tolist() == [3.0]
    assert scale.traces == 3


def test_nested_structures_go_in_and_out():
    @picograd.jit
    def f(batch, extra):
        x, y = batch
        return {"sum": x + y, "pair": (x, [extra["z"] * 2])}

    for k in (1.0, 5.0):
        out = f((Tensor([k]), Tensor([2.0])), {"z": Tensor([3.0 * k])})
        assert out["sum"].tolist() == [k + 2.0]
        assert out["pair"][0].tolist() == [k]
        assert out["pair"][1][0].tolist() == [6.0 * k]


def test_captured_tensors_are_tracked_and_assigned():
    weight, count = Tensor([1.0]), Tensor([0.0])

    @picograd.jit
    def f(x):
        count.assign(count + 1)
        return x * weight

    assert f(Tensor([2.0])).tolist() == [2.0]
    weight.assign(Tensor([10.0]))
    assert f(Tensor([2.0])).tolist() == [20.0]
    assert f(Tensor([3.0])).tolist() == [30.0]
    assert count.tolist() == [3.0]


def test_argument_assigned_inside_is_written():
    @picograd.jit
    def increment(x):
        x.assign(x + 1)
        return x * 2

    x = Tensor([1.0])
    assert increment(x).tolist() == [4.0]
    assert increment(x).tolist() == [6.0]
    assert x.tolist() == [3.0]


def test_gradients_that_escape_follow_every_call():
    w = Tensor([3.0], requires_grad=True)

    @picograd.jit
    def f(x):
        w.grad = None
        loss = (w * x * x).sum()
        loss.backward()
        return loss

    for k in (1.0, 2.0, 3.0):
        f(Tensor([k]))
        assert w.grad.tolist() == [k * k]


def test_random_numbers_continue():
    draw = picograd.jit(lambda x: x + picograd.rand(4))
    picograd.manual_seed(7)
    jitted = [draw(Tensor([0.0] * 4)).tolist() for _ in range(3)]
    picograd.manual_seed(7)
    plain = [picograd.rand(4).tolist() for _ in range(3)]
    assert jitted == plain and jitted[0] != jitted[1]


def test_several_draws_are_those_of_the_plain_loop():
    """Draws of two generators, dropout, unread draws: all in the order of recording."""
    own = picograd.Generator(3)
    dropout = nn.Dropout(0.4)

    def step(x):
        noise = picograd.randn(6)
        picograd.rand(5)  # nothing reads it, but it moves the generator on
        late = picograd.rand(6, generator=own)
        kept = dropout(x + 1)
        shuffled = x[picograd.randperm(6)]
        return picograd.rand(6, dtype="float64") * late - kept * noise + shuffled, late

    def loop(function):
        picograd.manual_seed(7)
        own.manual_seed(3)
        x = Tensor(np.arange(6, dtype=np.float32))
        return [[each.tolist() for each in function(x * k)] for k in (1, 2, 3)]

    plain, jitted = loop(step), picograd.jit(step)
    assert loop(jitted) == plain and plain[0] != plain[1] != plain[2]
    assert loop(jitted) == plain and jitted.traces == 1


def test_reading_while_tracing_raises():
    @picograd.jit
    def f(x):
        return x * x.sum().item()

    with pytest.raises(TraceError, match="return the tensor and read it outside"):
        f(Tensor([1.0, 2.0]))
    assert (Tensor([1.0]) + 1).tolist() == [2.0]  # everything still works


def test_unhashable_static_argument_raises():
    class Unhashable:
        __hash__ = None

    with pytest.raises(TraceError, match="cannot be hashed"):
        picograd.jit(lambda x, y: x)(Tensor([1.0]), Unhashable())


def test_nested_jit_is_inlined():
    inner = picograd.jit(lambda x: x + 1)
    outer = picograd.jit(lambda x: inner(x) * 2)
    assert outer(Tensor([1.0])).tolist() == [4.0]
    assert outer(Tensor([2.0])).tolist() == [6.0]
    assert inner.traces == 0


def test_methods_can_be_jitted():
    class Model:
        def __init__(self):
            self.w = Tensor([2.0])

        @picograd.jit
        def forward(self, x):
            return self.w * x

    model = Model()
    assert model.forward(Tensor([3.0])).tolist() == [6.0]
    assert model.forward(Tensor([4.0])).tolist() == [8.0]


def train(jitted: bool, steps: int = 6) -> list[float]:
    picograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = nn.optim.Adam(model.parameters(), lr=0.05)
    generator = np.random.default_rng(0)
    x = Tensor(generator.normal(size=(16, 5)).astype(np.float32))
    y = Tensor(generator.integers(0, 3, 16))

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = picograd.jit(step) if jitted else step
    return [run(x, y).item() for _ in range(steps)]


def test_training_step_equals_the_plain_one():
    assert np.allclose(train(True), train(False), rtol=1e-5)


def test_memory_does_not_grow():
    from picograd.engine.backends import get_device

    device = get_device("cpu")
    step = picograd.jit(lambda x: (x * 2).sum())
    x = Tensor(np.ones(1000, np.float32))
    for _ in range(5):
        step(x).item()
    gc.collect()
    before = device.memory_stats()["in_use"]
    for _ in range(50):
        step(x).item()
    gc.collect()
    assert device.memory_stats()["in_use"] == before


def test_a_trace_stores_no_view_larger_than_its_memory() -> None:
    """It computes all live tensors; a view that is alive may be larger than any memory."""
    weight = Tensor([1.0, 2.0, 3.0])
    shown, alive = weight.expand(4, 3), [picograd.ones(3).expand(10**12, 3)]
    total = picograd.jit(lambda: shown.sum())
    for factor in (1, 2, 4):
        assert total().item() == 24 * factor
        weight.mul_(2)
    assert total.count == 1 and alive
    shown = weight.expand(2, 3)
    assert total().item() == 96 and total.count == 2


def test_a_model_whose_gradients_are_asked_for_outside_is_recorded() -> None:
    """Under `no_grad` it is replayed, as before; values are those of the model itself."""
    picograd.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    other = copy.deepcopy(model)
    run, x = picograd.jit(model), picograd.randn(5, 3)
    optimizers = [nn.optim.SGD(each.parameters(), lr=0.1) for each in (model, other)]
    losses: list[list[float]] = [[], []]
    for _ in range(6):
        for each, optimizer, found in zip((run, other), optimizers, losses, strict=True):
            optimizer.zero_grad()
            loss = (each(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert run.is_asked and run.count == 1
    with picograd.no_grad():
        wanted = model(x).numpy()
        for _ in range(3):
            np.testing.assert_allclose(run(x).numpy(), wanted, atol=1e-5)
    assert run.count == 2


def test_a_method_whose_gradients_are_asked_for_outside_is_recorded() -> None:
    class Scaled(nn.Linear):
        @picograd.jit
        def scaled(self, x: Tensor, scale: float = 1.0) -> Tensor:
            return self(x) * scale

    model, x = Scaled(2, 2), picograd.ones(3, 2)
    for number in range(4):
        model.zero_grad()
        model.scaled(x, scale=float(number)).sum().backward()
        assert model.weight.grad is not None
        assert model.weight.grad.tolist() == [[3.0 * number] * 2] * 2
    assert Scaled.scaled.is_asked
