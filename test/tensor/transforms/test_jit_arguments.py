"""Arguments of jitted functions: which are the same tensor, what is written, what is refused."""

import dataclasses
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import TraceError
from picograd.tensor.transforms.jit_arguments import Flattener


def test_one_tensor_twice_is_another_trace():
    f = picograd.jit(lambda x, y: x - 2 * y)
    a, b = Tensor([1.0]), Tensor([10.0])
    assert [f(*each).item() for each in ((a, a), (a, b), (b, a), (b, b))] == [-1, -19, 8, -10]
    assert f.traces == 2


def test_callers_tensors_keep_their_nodes():
    x, w = Tensor([1.0]).realize(), Tensor([2.0], requires_grad=True)
    nodes = x.node, w.node
    f = picograd.jit(lambda a: a * w)
    assert [f(x).item() for _ in range(3)] == [2, 2, 2]
    assert (x.node, w.node) == nodes and x.grad is None and w.requires_grad


def test_captured_tensor_as_argument_is_written():
    w = Tensor([3.0])

    @picograd.jit
    def f(x):
        x += 1
        return x * w

    assert [f(Tensor([1.0])).item(), f(w).item(), f(Tensor([1.0])).item()] == [6, 16, 8]
    assert w.item() == 4


def test_hidden_captured_tensor_as_argument_is_written_or_refused():
    """No name in the code leads to the tensor: it is found when it has been read once."""
    holder = {"w": Tensor([3.0])}
    read = [lambda: holder]

    @picograd.jit
    def f(x):
        x += 1
        return x * read[0]()["w"]

    def hidden(x):
        x += 1
        return x * getattr(nn, "_hidden", holder)["w"]

    assert f(holder["w"]).item() == 16.0 and holder["w"].item() == 4.0
    g = picograd.jit(hidden)
    assert g(holder["w"]).item() == 25.0


def test_argument_written_by_a_value_that_tracks():
    @picograd.jit
    def f(x, a):
        x[1:3] = a

    for k in (1.0, 2.0, 3.0):
        x, a = Tensor.zeros(4), Tensor.full((2,), k).requires_grad_(True)
        f(x, a)
        assert x.tolist() == [0, k, k, 0] and x.requires_grad
        (x * x).sum().backward()
        assert a.grad.tolist() == [2 * k, 2 * k]


def test_exception_leaves_everything_as_it_was():
    w, a = Tensor([1.0]), Tensor([2.0], requires_grad=True)

    @picograd.jit
    def f(x, fails):
        w.assign(w + 1)
        (x * w).sum().backward()
        w.grad = x * 1
        if fails:
            raise ValueError("stop")
        return w * x

    for _ in range(2):
        with pytest.raises(ValueError, match="stop"):
            f(a, True)
        assert w.tolist() == [1.0] and a.grad is None and w.grad is None
        assert (w * a).item() == 2.0 and f.traces == 0
    assert [f(a, False).item() for _ in range(3)] == [4, 6, 8]
    with pytest.raises(ValueError, match="stop"):
        f(a, True)
    assert f(a, False).item() == 10 and a.grad.item() == 2 + 3 + 4 + 5


def test_error_of_a_wrong_operation_leaves_everything_as_it_was():
    w = Tensor([1.0, 2.0])

    @picograd.jit
    def f(x):
        w.mul_(2)
        return w @ x

    with pytest.raises(picograd.errors.ShapeError):
        f(Tensor([1.0]))
    assert f(Tensor([1.0, 1.0])).item() == 6.0 and w.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (np.ones(2), "an argument is a NumPy array.*Tensor"),
        ({Tensor([1.0])}, "of type set cannot be hashed"),
        ([{"a": bytearray(2)}], "of type bytearray cannot be hashed"),
    ],
)
def test_refused_arguments(argument, message):
    with pytest.raises(TraceError, match=message):
        picograd.jit(lambda x, y: x)(Tensor([1.0]), argument)


def test_changed_container_among_the_arguments_is_refused():
    @picograd.jit
    def f(batch):
        batch["y"] = batch["x"] + 1

    batch = {"x": Tensor([1.0])}
    with pytest.raises(TraceError, match="changed a list, dict or dataclass among its arguments"):
        f(batch)
    assert list(batch) == ["x"]


def test_numbers_stored_in_arguments_are_refused():
    """They would be stored in a stand-in, and lost."""

    def count(held):
        held["n"] = held.get("n", 0) + 1
        return held["x"]

    def add(held):
        held.append(3)
        return held[0]

    for function, held in ((count, {"x": Tensor([1.0])}), (add, [Tensor([1.0])])):
        with pytest.raises(TraceError, match="changed a list, dict or dataclass among its"):
            picograd.jit(function)(held)
        assert len(held) == 1


def test_returned_object_with_tensors_is_refused():
    class Output:
        def __init__(self, value):
            self.value = value

    with pytest.raises(TraceError, match="returned an Output with new tensors inside"):
        picograd.jit(lambda x: Output(x + 1))(Tensor([1.0]))


@dataclasses.dataclass(frozen=True)
class Batch:
    x: Tensor
    scale: float = 1.0


def test_a_parameter_is_told_from_a_tensor():
    is_parameter = picograd.jit(lambda x: x * (2 if isinstance(x, nn.Parameter) else 3))
    leaf = picograd.ones(1, requires_grad=True)
    found = [is_parameter(each).item() for each in (nn.Parameter(picograd.ones(1)), leaf) * 2]
    assert found == [2.0, 3.0] * 2 and is_parameter.traces == 2


def test_a_dtype_comes_out_as_the_one_that_it_is():
    found = picograd.jit(lambda x, dtype: (x.dtype, [dtype], picograd.int8))
    for _ in range(2):
        first, (second,), third = found(Tensor([1.0]), picograd.float64)
        assert first is picograd.float32 and second == picograd.float64 and third is picograd.int8


def test_dataclasses_are_containers():
    f = picograd.jit(lambda batch: Batch(batch.x * batch.scale, 7.0))
    found = [f(Batch(Tensor([k]), 2.0)) for k in (1.0, 2.0)]
    assert [each.x.item() for each in found] == [2, 4] and found[0].scale == 7.0
    assert f.traces == 1


def test_special_dicts_keep_their_type():
    from collections import OrderedDict, defaultdict

    f = picograd.jit(lambda d: (OrderedDict(b=d["a"] + 1), defaultdict(list, c=d["a"] + 2)))
    for k in (1.0, 2.0):
        ordered, default = f(defaultdict(int, a=Tensor([k])))
        assert type(ordered) is OrderedDict and ordered["b"].item() == k + 1
        assert default["x"] == [] and default["c"].item() == k + 2


def test_modules_as_arguments_and_as_functions():
    layers = [nn.Linear(2, 2) for _ in range(3)]
    f, x = picograd.jit(lambda layer, x: layer(x)), Tensor([1.0, 2.0])
    for layer in (*layers, *layers):
        assert picograd.allclose(f(layer, x), layer(x))
    assert f.traces == 3
    whole = picograd.jit(layers[0])
    assert all(picograd.allclose(whole(x * k), layers[0](x * k)) for k in range(3))
    died = weakref.ref(layers.pop())
    del layer
    gc.collect()
    assert died() is None and f.traces == 2


def test_instances_are_held_weakly():
    class Model:
        def __init__(self, k):
            self.weight = Tensor.full((1000,), float(k))

        @picograd.jit
        def forward(self, x):
            return x * self.weight

    kept = Model(1)
    assert kept.forward(Tensor([2.0]))[0].item() == 2
    models = [Model(k) for k in range(5)]
    assert [m.forward(Tensor([2.0]))[0].item() for m in models] == [0, 2, 4, 6, 8]
    died = [weakref.ref(each) for m in models for each in (m, m.weight)]
    del models[:]
    gc.collect()
    assert not any(each() for each in died)
    assert Model.forward.traces == 1 and kept.forward(Tensor([3.0]))[0].item() == 3


def test_traces_are_bounded(monkeypatch):
    monkeypatch.setattr(sys.modules[picograd.jit.__module__], "KEPT", 64)
    f = picograd.jit(lambda x, n: x * len(n))
    assert [f(Tensor([1.0]), "n" * n).item() for n in range(100)] == list(range(100))
    assert f.traces == 64
    assert f(Tensor([2.0]), "n" * 99).item() == 198 and f(Tensor([2.0]), "").item() == 0


def test_generators_as_arguments_are_not_replayed_stale():
    f = picograd.jit(lambda x, numbers: x + sum(numbers))
    assert [f(Tensor([1.0]), (i * k for i in range(3))).item() for k in range(4)] == [1, 4, 7, 10]


def test_modes_are_part_of_the_key():
    w = Tensor([1.0, 2.0], requires_grad=True)
    f = picograd.jit(lambda x: x * w)
    with picograd.no_grad():
        assert not f(Tensor([1.0, 1.0])).requires_grad
    for _ in range(2):
        assert f(Tensor([1.0, 1.0])).requires_grad
    with picograd.no_grad():
        assert not f(Tensor([1.0, 1.0])).requires_grad
    assert f.traces == 2


def test_gradients_through_written_state():
    w, count = Tensor([2.0], requires_grad=True), Tensor([0.0])

    @picograd.jit
    def f(x):
        count.add_(1)
        return count * w * x

    for _ in range(3):
        f(Tensor([1.0])).backward()
    assert w.grad.item() == 1 + 2 + 3 and count.item() == 3


def test_gradients_through_written_state_are_the_same_again():
    """They read what was written, and write it once more nowhere."""
    w, count = Tensor([2.0], requires_grad=True), Tensor([0.0])

    @picograd.jit
    def f(x):
        count.add_(1)
        return count * w * w * x

    for step in (1, 2, 3):
        y = f(Tensor([1.0]))
        for _ in range(2):
            (slope,) = picograd.grad(y, w, retain_graph=True)
            assert slope.item() == 4 * step and count.item() == step


def test_second_derivatives_through_a_jitted_function():
    f = picograd.jit(lambda x: (x**3).sum())
    for k in (1.0, 2.0):
        x = Tensor([k], requires_grad=True)
        (first,) = picograd.grad(f(x), x, create_graph=True)
        (second,) = picograd.grad(first.sum(), x)
        assert (first.item(), second.item()) == (3 * k * k, 6 * k)


@pytest.mark.parametrize("wrong", [4, 9, -5])
def test_write_past_the_end_raises(wrong):
    """A position that only the call knows: no other row is written without a word."""
    cache = Tensor.zeros(4, 2)

    @picograd.jit
    def put(row, position):
        cache[position] = row
        return cache.sum()

    for k in (0, 3, -4, -1):
        assert put(Tensor([1.0, 1.0]), Tensor.of(k)).item() in (2.0, 4.0)
    with pytest.raises(
        IndexError, match=r"(an index|index -?\d+) is out of range for axis 0 of size 4"
    ):
        put(Tensor([5.0, 5.0]), Tensor.of(wrong)).item()  # CUDA says so at the next read
    with pytest.raises(IndexError, match="out of range"):
        picograd.jit(lambda x, i: x.index_add(0, i, x))(Tensor([1.0]), Tensor([wrong])).item()
    assert put.traces == 1


@pytest.mark.parametrize("count", range(4))
def test_a_call_with_tensors_alone_is_described_as_any_other(count):
    args = tuple(Tensor([float(number)]) for number in range(count))
    short, whole = Flattener(), Flattener()
    assert short.flatten_call(args, {}) == whole.flatten((args, {}))
    assert all(x is y for x, y in zip(short.tensors, whole.tensors, strict=True))


def test_what_contains_itself_is_refused_by_name():
    inside = [Tensor([1.0])]
    inside.append(inside)
    with pytest.raises(TraceError, match="an argument contains itself"):
        picograd.jit(lambda x: x[0] * 2)(inside)


def test_an_iterator_is_not_returned() -> None:
    f = picograd.jit(lambda x: (x * k for k in range(3)))
    with pytest.raises(TraceError, match="return a list"):
        f(Tensor([1.0]))


class Alike(float):
    """This class is a number that equals every other one."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Sized(int):
    """This class is a number with an attribute."""

    scale: float


class Named(str):
    """This class is a text with an attribute."""

    scale: float


def test_numbers_of_a_class_with_its_own_equality_are_told_apart() -> None:
    scaled = picograd.jit(lambda x, number: x * float(number))
    for number in (1.0, 2.0, 3.0):
        assert scaled(Tensor([2.0]), Alike(number)).item() == 2.0 * number


@pytest.mark.parametrize("value", [Sized(3), Named("name")])
def test_attributes_of_numbers_and_texts_are_read(value: Any) -> None:
    scaled = picograd.jit(lambda x, given: x * given.scale)
    for number in (1.0, 2.0, 3.0, -0.0):
        value.scale = number
        expected = 2.0 * number
        assert str(scaled(Tensor([2.0]), value).item()) == str(expected)
