"""What is computed from memory that others write does not change when they write it later."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import foreign

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def on_the_cpu():
    with config.override(device="cpu"):
        yield


MAKERS = {
    "from_numpy": lambda a, library: library.from_numpy(a),
    "from_dlpack": lambda a, library: library.from_dlpack(a),
    "as_tensor": lambda a, library: library.as_tensor(a),
}
PROGRAMS = {
    "elementwise": lambda x, lib: x * 2,
    "reflected": lambda x, lib: 3 - x,
    "composite": lambda x, lib: x.softmax(0),
    "reduction": lambda x, lib: x.sum(),
    "index": lambda x, lib: x[lib.tensor([1, 0])],
    "concatenation": lambda x, lib: lib.cat([x, x + 1]),
    "through a view": lambda x, lib: x.reshape(2, 2)[0] + 1,
    "clone": lambda x, lib: x.clone(),
    "second step": lambda x, lib: (x + 1) * 2,
    "split": lambda x, lib: (x + 1).split(2)[1],
    "in place": lambda x, lib: lib.zeros(4, dtype=x.dtype).add_(x),
    "a view stays one": lambda x, lib: x[:2],
    "a detached view": lambda x, lib: x.detach().reshape(2, 2)[1],
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_pytorch(name, make):
    found = []
    for library in (picograd, torch):
        array = np.array([1.0, 2.0, 3.0, 4.0])
        result = PROGRAMS[name](MAKERS[make](array, library), library)
        array[:] = [9.0, -8.0, 7.0, -6.0]
        found.append(result.tolist())
    assert found[0] == pytest.approx(found[1]) or np.allclose(found[0], found[1])


def test_the_tensor_shows_later_writes_and_writes_show_at_once():
    array = np.array([1.0, 2.0])
    x = picograd.from_numpy(array)
    array[0] = 9
    assert x.tolist() == [9.0, 2.0]
    x += 1
    assert array.tolist() == [10.0, 3.0]
    x[1] = 5
    assert array.tolist() == [10.0, 5.0]
    array[1] = 7
    assert (x + 0).tolist() == [10.0, 7.0]


def test_gradients_flow_through_what_was_computed_at_once():
    array = np.array([1.0, 2.0, 3.0], np.float32)
    w = Tensor([2.0, 2.0, 2.0], requires_grad=True)
    loss = ((picograd.from_numpy(array) * w) ** 2).sum()
    loss.backward()
    assert w.grad.tolist() == [4.0, 16.0, 36.0]


def test_a_copied_array_costs_nothing_later():
    array = np.array([1.0, 2.0])
    x, y = Tensor(array), picograd.tensor(array)
    array[0] = 9
    assert x.tolist() == y.tolist() == [1.0, 2.0]
    assert not foreign.reads((x + 1).node)


def test_jit_reads_at_the_call():
    array = np.array([1.0, 2.0])
    x = picograd.from_numpy(array)
    double = picograd.jit(lambda t: t * 2)
    results = []
    for k in range(4):
        array[:] = k
        results.append(double(x))
    assert [each.tolist() for each in results] == [[2.0 * k] * 2 for k in range(4)]


def test_what_is_shared_is_forgotten_with_its_memory():
    before = len(foreign.SHARED)
    x = picograd.from_numpy(np.ones(3))
    assert len(foreign.SHARED) == before + 1
    del x
    assert len(foreign.SHARED) == before


def test_every_node_is_looked_at_once():
    kept = picograd.from_numpy(np.ones(3))
    x = Tensor([1.0])
    for _ in range(2000):
        x = x + 1
    assert x.tolist() == [2001.0] and kept.tolist() == [1.0] * 3
