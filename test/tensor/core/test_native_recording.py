"""What machine code stamps out of an operation is what Python records, and nothing else is."""

import weakref

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import followed, pending
from picograd.engine.followed import EVENTS
from picograd.engine.native_calls import CALLS, CODED
from picograd.graph.node import toposort
from picograd.nn import functional as F
from picograd.number import noting
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core import following, recipes, recording
from picograd.tensor.core.recipes import RECIPES
from picograd.tensor.core.repeated import check_alike

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]


@pytest.fixture(autouse=True)
def stamped(monkeypatch):
    """Compare all that machine code records with what Python does, and list what was."""
    followed.stop()  # no way that begins where other tests computed takes what is recorded
    EVENTS.after = None
    monkeypatch.setattr(followed, "FIRST", 1 << 30)
    monkeypatch.setattr(following, "KNOWN", weakref.WeakKeyDictionary())
    native, found = CALLS.find("picograd_record"), []

    def checking(function, operands):
        made = native(function, operands)
        if isinstance(made, (Tensor, tuple)):
            nodes = [recipes.as_read(each, read_plainly) for each in operands]
            results = tuple(each._node for each in made) if type(made) is tuple else made._node
            check_alike(function, nodes, results)
            found.append(function)
        return made

    monkeypatch.setattr(CODED, "record", checking)
    RECIPES.clear()
    with picograd.config.override(verify=0):
        yield found


def read_plainly(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(read_plainly, value))
    return recording.read(value)


def drawn(seed, *shape, **options):
    return Tensor(np.random.default_rng(seed).normal(0, 1, shape).astype("f"), **options)


FUNCTIONS = {
    "unary": lambda a, b: a.exp(),
    "of itself": lambda a, b: picograd.maximum(a, a),
    "two": lambda a, b: picograd.maximum(a, b),
    "reduced": lambda a, b: a.sum(1),
    "reduced by name": lambda a, b: a.mean(dim=(0, 1), keepdim=True),
    "two results": lambda a, b: a.max(1),
    "loss": lambda a, b: F.mse_loss(a, b),
    "joined": lambda a, b: picograd.cat([a, b, a], 1),
    "stacked": lambda a, b: picograd.stack((a, b)),
    "chosen": lambda a, b: picograd.where(a > 0, a, b),
    "turned": lambda a, b: a.T @ b,
    "view of a view": lambda a, b: a.T.reshape(-1).exp(),
    "spread": lambda a, b: a[0].expand(4, 4).sqrt(),
    "number": lambda a, b: a.clamp(-0.5, 0.25),
    "option": lambda a, b: F.gelu(a, approximate="tanh"),
    "dtype": lambda a, b: a.to(picograd.int32),
    "norm": lambda a, b: F.layer_norm(a, (4,), eps=1e-3),
    "product": lambda a, b: F.linear(a, b, a[0]),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("tracks", [False, True])
def test_it_records_the_same(function, tracks, stamped):
    a, b = drawn(1, 4, 4, requires_grad=tracks), drawn(2, 4, 4)
    results = [function(a, b) for _ in range(5)]
    first, last = (each[0] if isinstance(each, tuple) else each for each in results[::4])
    assert stamped
    assert first.requires_grad is last.requires_grad
    assert (first._view is None) is (last._view is None)
    np.testing.assert_array_equal(first.detach().numpy(), last.detach().numpy())
    if first.requires_grad:
        grads = [picograd.autograd.grad(each.sum(), a)[0].numpy() for each in (first, last)]
        np.testing.assert_array_equal(*grads)


def test_views_are_written_through(stamped):
    a = drawn(1, 3, 4)
    for number in range(5):
        a.transpose(0, 1)[number % 4] = float(number)
        assert a[:, number % 4].tolist() == [float(number)] * 3
        a.reshape(12)[5] = -1.0
        assert a[1, 1].item() == -1.0
    assert stamped


def test_views_of_one_shape_are_apart(stamped):
    a = drawn(1, 3, 3, 3)
    for axes in ((1, 0, 2), (2, 1, 0)) * 3:
        found = a.permute(axes).permute(0, 2, 1).numpy()  # what is moved again is one move
        np.testing.assert_array_equal(found, a.numpy().transpose(axes).transpose(0, 2, 1))
    assert stamped


def test_long_lists_are_left_to_python(stamped):
    a = drawn(1, 2)
    for count in (2, 2, 2, 5000, 5000, 5000):
        later = a + 1.0  # of memory rows are copied at once
        assert picograd.cat([later] * count).shape == (2 * count,)
    assert len(stamped) == 1


def test_gradients_stop_at_no_grad(stamped):
    a = drawn(1, 3, requires_grad=True)
    for _ in range(4):
        with picograd.no_grad():
            factor = a.exp()
        (found,) = picograd.autograd.grad((factor * a).sum(), a)
        np.testing.assert_array_equal(found.numpy(), factor.numpy())
    with picograd.no_grad():
        assert [drawn(2, 3).exp().requires_grad for _ in range(4)] == [False] * 4
    assert stamped


def test_numbers_stay_arguments(stamped):
    a = drawn(1, 3, 3)
    values = [a.clamp(-0.5, top).max().item() for top in (0.25, 0.25, 0.25, 0.125, 0.125, 0.125)]
    assert values == [0.25] * 3 + [0.125] * 3
    steps = [(a * scale)._node.inputs[1].arg for scale in (2.5, 3.5, 2.5, 4.5)]
    assert steps == [2.5, 3.5, 2.5, 4.5]
    assert stamped


def test_zeros_of_both_signs_are_apart(stamped):
    a = Tensor([1.0, -1.0], dtype=picograd.float16)  # which rounds the number, so that it is kept
    for low in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0, 0.0):
        found = picograd.where(a > 0, a, low).numpy()
        assert np.signbit(found[1]) == np.signbit(low)
    assert stamped


def test_steps_share_the_numbers_that_they_shared():
    a = drawn(1, 3, 3)

    def shared():
        nodes = toposort([a.clamp(-0.5, 0.25)._node])
        numbers = [id(node.arg) for node in nodes if node.op == "const"]
        return [numbers.index(each) for each in numbers]

    first, *others = [shared() for _ in range(5)]
    assert len({*first}) < len(first)
    assert others == [first] * 4


def test_errors_are_those_of_python():
    a, b = drawn(1, 3, 4), drawn(2, 3, 4)
    for _ in range(4):
        with pytest.raises(picograd.errors.ShapeError, match="matmul"):
            a @ b
        with pytest.raises(picograd.errors.AxisError):
            a.sum(2)
        with pytest.raises(picograd.errors.PicogradError, match="exp"):
            picograd.exp(3)


def test_indices_are_looked_at_each_time(stamped):
    a = drawn(1, 3, 4)
    for first in range(4):
        np.testing.assert_array_equal(a[Tensor([first % 3, 2])].numpy(), a.numpy()[[first % 3, 2]])
    assert stamped
    with pytest.raises(IndexError):
        a[Tensor([0, 3])]
    with pytest.raises(IndexError):  # one that waits is looked at where it is computed
        a[Tensor([0, 2]) + Tensor([0, 1])].numpy()


def test_settings_are_told_apart(stamped):
    a, whole = drawn(1, 3, 3, requires_grad=True), Tensor([1, 2])
    for _ in range(4):
        a.exp(), whole.mean(dtype=picograd.float32), picograd.sqrt(whole)
    assert stamped
    with picograd.no_grad():
        assert not a.exp().requires_grad
    with picograd.autocast("cpu"):
        assert (a @ a).dtype is picograd.bfloat16
    picograd.set_default_dtype(picograd.float64)
    try:
        assert picograd.sqrt(whole).dtype is picograd.float64
    finally:
        picograd.set_default_dtype(picograd.float32)
    assert (a @ a).dtype is picograd.float32


def test_a_trace_and_a_way_are_told(stamped):
    a = drawn(1, 3, 3)
    for _ in range(4):
        a.tanh()
    before = len(stamped)
    jitted = picograd.jit(lambda x: x.tanh())
    assert [jitted(a).shape for _ in range(3)] == [(3, 3)] * 3
    assert picograd.vmap(lambda x: x.tanh())(a).shape == (3, 3)
    assert len(stamped) == before
    with noting({}) as notes:  # how numbers are computed of others is noted by Python
        assert a.clamp(-0.5, 0.25).shape == a.tanh().shape
    assert notes
    assert len(stamped) == before
    EVENTS.take, kept = (lambda *call: followed_call), EVENTS.take
    followed_call = object()
    try:
        assert a.tanh() is followed_call
    finally:
        EVENTS.take = kept


def test_classes_of_tensors_are_kept():
    class Own(Tensor):
        pass

    own = Own([1.0, 2.0])
    assert {type(own.exp()) for _ in range(4)} == {Own}


def test_what_recording_computes_is_told_by_the_next_call(stamped):
    a, b = drawn(1, 3, 4), drawn(2, 3, 4)
    for number in range(5):
        view = a.exp()
        for _ in range(pending.HOPS):  # a chain so long is memory of its own once it is computed
            view = view.T.reshape(3, 4)
        pending.IS_DUE[0] = number == 1
        found = picograd.maximum(view, b)
        np.testing.assert_array_equal(found.numpy(), np.maximum(view.numpy(), b.numpy()))
    assert picograd.maximum.__name__ in {each.__name__ for each in stamped}


@pytest.mark.parametrize("join", [picograd.cat, picograd.stack, picograd.hstack])
def test_rows_of_a_tensor_are_joined(join):
    a = drawn(1, 3, 4)
    for _ in range(4):
        np.testing.assert_array_equal(join(a).numpy(), join(list(a)).numpy())


@pytest.mark.parametrize("size", [1, 2, True])
def test_sizes_that_tensors_have_are_read_each_time(size):
    a = drawn(1, 2, 3)
    for number in (2, 2, 2, 3, 1, 2):
        sizes = [picograd.tensor(number), picograd.tensor(size)]
        assert a.repeat(sizes).shape == (2 * number, 3 * size)
        assert a.reshape((picograd.tensor(number), -1) if number < 3 else (-1,)).numel() == 6
