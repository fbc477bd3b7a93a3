"""Python's and NumPy's protocols: numbers, copies, pickles, arrays beside tensors."""

import copy
import operator
import pickle

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, GradientError, ShapeError, ValueRangeError
from picograd.graph.node import toposort
from picograd.graph.starts import starts_of
from picograd.tensor.core import methods_protocol
from picograd.tensor.core.methods_protocol import METHODS, REFLECTED


@pytest.mark.parametrize("count", [3, 9])
@pytest.mark.parametrize("is_host", [False, True])
def test_few_rows_are_at_places_that_kernels_of_a_gpu_know(count, is_host, monkeypatch) -> None:
    monkeypatch.setattr(methods_protocol, "is_host", lambda device: is_host)
    rows = [row._node for row in Tensor.zeros(count, 2)]
    assert any(starts_of(node) for node in toposort(rows)) == (is_host or count == 9)


def test_numbers_and_truth() -> None:
    assert complex(Tensor(2.0)) == 2 and float(Tensor([[1.5]])) == 1.5 and int(Tensor(-1.7)) == -1
    assert operator.index(Tensor.of(True)) == 1 and [5, 6][Tensor([1])[0]] == 6
    assert f"{Tensor(1.25)}" == "1.25" and f"{Tensor.of(3):>4}" == "   3"
    assert 2.0 in Tensor([1.0, 2.0]) and Tensor(3.0) not in Tensor([1.0])
    assert (Tensor([1.0]) == None) is False  # noqa: E711
    assert hash(Tensor(1.0)) != hash(Tensor(1.0)) and len({Tensor(1.0), Tensor(1.0)}) == 2
    with pytest.raises(DTypeError, match="is not an index"):
        operator.index(Tensor(1.0))
    with pytest.raises(ValueError, match="NaN"):
        int(Tensor(float("nan")))
    with pytest.raises(ShapeError, match="ambiguous"):
        bool(Tensor.zeros(0))
    with pytest.raises(DTypeError, match="no elements to visit"):
        iter(Tensor(1.0))


def test_arrays_beside_tensors() -> None:
    array, x = np.array([1.0, 2.0], np.float32), Tensor([3.0, 4.0])
    for found, wanted in ((array + x, [4, 6]), (array * x, [3, 8]), (x - array, [2, 2])):
        assert isinstance(found, Tensor) and found.tolist() == wanted
    assert (array @ x).item() == 11 and (array < x).tolist() == [True, True]
    assert (np.float32(2) * x).tolist() == [6, 8]
    assert np.add(array, x).tolist() == [4, 6]


def test_numpy_reduces_a_tensor() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 6.0]])
    assert [np.sum(x).item(), np.mean(x).item(), np.max(x).item()] == [12, 3, 6]
    assert np.mean(x, axis=1, keepdims=True).tolist() == [[1.5], [4.5]]
    assert np.all(x > 0).item() and np.any(x > 5).item() and np.prod(x).item() == 36
    into = Tensor(0.0)
    assert x.sum(out=into) is into and into.item() == 12


@pytest.mark.usefixtures("on_host")
def test_numpy_reads_a_tensor() -> None:
    x = Tensor([1.0, 2.0])
    assert np.asarray(x, np.float64).dtype == np.float64 and np.array(x).tolist() == [1, 2]
    shared = x.__array__(copy=False)
    shared[0] = 7
    assert x.tolist() == [7, 2]
    with pytest.raises(ValueRangeError, match="needs a copy"):
        x.__array__(np.float64, copy=False)
    with pytest.raises(ValueRangeError, match="needs a copy"):
        Tensor([1.0], dtype="bfloat16").__array__(copy=False)


def test_copies() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    twins = copy.deepcopy([x, x])
    assert twins[0] is twins[1] and twins[0] is not x and twins[0].requires_grad
    assert twins[0].grad is not None and twins[0].grad.tolist() == [3, 3]
    with picograd.no_grad():
        twins[0].mul_(5)
    assert x.tolist() == [1, 2] and copy.copy(x).tolist() == [1, 2]
    with pytest.raises(GradientError, match="only tensors that the user made"):
        copy.deepcopy(x * 2)
    layer = copy.deepcopy(nn.Linear(2, 1))
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.is_leaf
    layer(Tensor.ones(1, 2)).sum().backward()
    assert layer.weight.grad is not None and copy.deepcopy(layer).weight.grad is None


def test_pickles(device: str) -> None:
    for dtype in ("float32", "bfloat16", "int8", "bool"):
        x = Tensor([[1, 0], [1, 1]], dtype=dtype, device=device)
        back = pickle.loads(pickle.dumps(x))
        assert back.dtype is x.dtype and back.device == x.device and back.tolist() == x.tolist()
    p = nn.Parameter(Tensor([1.0], device=device))
    back = pickle.loads(pickle.dumps(p))
    assert type(back) is nn.Parameter and back.requires_grad and back.is_leaf


def test_results_do_not_see_what_is_written_into_an_array_that_shares_memory() -> None:
    x = Tensor([1.0, 2.0, 3.0], device="cpu").realize()
    before = x * 2
    array = np.asarray(x, copy=False)
    after = x * 3
    array[0] = 5.0
    assert (before.tolist(), after.tolist()) == ([2.0, 4.0, 6.0], [3.0, 6.0, 9.0])
    assert (x + 1).tolist() == [6.0, 3.0, 4.0]


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "tanh", "absolute", "square", "isnan"])
def test_functions_of_one_tensor(name: str) -> None:
    values = np.array([0.5, 2.0], np.float32)
    found = getattr(np, name)(Tensor(values))
    assert isinstance(found, Tensor)
    np.testing.assert_allclose(found.numpy(), getattr(np, name)(values), rtol=1e-6)


@pytest.mark.parametrize(
    "name", [*REFLECTED, "left_shift", "maximum", "arctan2", "fmod", "logical_and"]
)
def test_functions_of_two(name: str) -> None:
    kind = np.int32 if "bitwise" in name or "shift" in name else np.float32
    a, b = np.array([5, 2], kind), np.array([3, 2], kind)
    wanted = getattr(np, name)(a, b)
    for pair in ((Tensor(a), Tensor(b)), (a, Tensor(b)), (Tensor(a), b)):
        found = getattr(np, name)(*pair)
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_gradients_are_recorded() -> None:
    x = Tensor([4.0], requires_grad=True)
    np.sqrt(x).backward()
    assert x.grad is not None and x.grad.tolist() == [0.25]
    with pytest.raises(GradientError, match=r"numpy.cbrt: .*pass tensor.detach"):
        np.cbrt(x)


def test_other_functions_compute_on_the_values() -> None:
    x = Tensor([1.0, 8.0])
    assert isinstance(np.cbrt(x), Tensor) and np.cbrt(x).tolist() == [1.0, 2.0]
    assert [part.tolist() for part in np.modf(Tensor([1.5]))] == [[0.5], [1.0]]
    assert np.add.outer(x, x).tolist() == [[2.0, 9.0], [9.0, 16.0]]
    array = np.ones(2, np.float32)
    array += x
    assert isinstance(array, np.ndarray) and array.tolist() == [2.0, 9.0]
    assert all(hasattr(Tensor, each) for each in (*METHODS.values(), *REFLECTED.values()))


def test_a_tensor_is_reversed_as_one() -> None:
    assert reversed(Tensor([[1.0], [2.0]])).tolist() == [[2.0], [1.0]]
    assert reversed(Tensor(3.0)).item() == 3.0
