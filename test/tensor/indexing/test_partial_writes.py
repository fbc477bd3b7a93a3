"""Writing over parts of a tensor, out of place: values and gradients equal PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, library, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")

A = numbers((3, 4))
ROWS, COLUMNS = np.array([2, 0, 2]), np.array([1, -1, 1])


def test_values_and_gradients(device: str) -> None:
    def put(accumulate: bool, *keep: int) -> Any:
        def call(x: Any, v: Any, rows: Any, columns: Any) -> Any:
            both = (rows, columns)
            index = tuple(both[n] for n in keep)
            return x.index_put(index, v, accumulate=accumulate)

        return call

    def reduced(how: str, own: bool = True) -> Any:
        return lambda x, s, i: library(x).index_reduce(x, 1, i, s, how, include_self=own)

    cube, slices = numbers((2, 3, 4)), numbers((3, 3), 0.5, 2)
    distinct = np.array([2, 0, 1]), np.array([1, 3, 0])
    calls: dict[str, tuple[Any, list[Any]]] = {
        "select_scatter": (lambda x, s: library(x).select_scatter(x, s, 1, -1), [A, A[:, 0]]),
        "slice_scatter": (lambda x, s: library(x).slice_scatter(x, s, 1, 0, 4, 2), [A, A[:, :2]]),
        "slice_scatter all": (lambda x, s: library(x).slice_scatter(x, s), [A, A * 2]),
        "diagonal_scatter": (lambda x, s: library(x).diagonal_scatter(x, s), [A, A[0, :3]]),
        "diagonal 1": (lambda x, s: library(x).diagonal_scatter(x, s, 1, 2, 0),
                       [cube, numbers((3, 1))]),
        "index_put": (put(False, 0, 1), [A, A[0, :3], *distinct]),
        "index_put rows": (put(False, 0), [A, A[:1], ROWS[:2], COLUMNS[:2]]),
        "index_put add": (put(True, 0, 1), [A, A[0, :3], ROWS, COLUMNS]),
        "index_put add rows": (put(True, 0), [A, A[0], ROWS, COLUMNS]),
        "prod": (reduced("prod"), [A + 4, slices, np.array([1, 1, 3])]),
        "mean": (reduced("mean"), [A, slices, np.array([1, 1, 3])]),
        "mean of new": (reduced("mean", False), [A, slices, np.array([1, 1, 3])]),
        "amax": (reduced("amax"), [A, slices, np.array([1, 1, 3])]),
        "amin of new": (reduced("amin", False), [A, slices, np.array([1, 1, 3])]),
    }  # fmt: skip
    compare([Case(n, f, x) for n, (f, x) in calls.items()], device)


def test_in_place(device: str) -> None:
    for shape, wrap in (((3, 3), False), ((7, 3), False), ((7, 3), True), ((2, 2, 2), False)):
        x, t = Tensor(np.zeros(shape), device=device), torch.zeros(shape, dtype=torch.float64)
        found = x.fill_diagonal_(2.0, wrap)
        assert found is x and x.tolist() == t.fill_diagonal_(2.0, wrap).tolist()
    x, t = Tensor(A, device=device), torch.tensor(A)
    x.index_put_((Tensor(ROWS, device=device), None), Tensor(1.0, device=device))
    t.index_put_((torch.tensor(ROWS),), torch.tensor(1.0).double())
    assert x.tolist() == t.tolist()


@pytest.mark.parametrize("shape", [(7,), (3, 4), (0, 2), ()])
def test_nonzero(shape: tuple[int, ...], device: str) -> None:
    values = (np.arange(np.prod(shape)).reshape(shape) % 3 > 0).astype(np.float32)
    x, t = Tensor(values, device=device), torch.tensor(values)
    assert x.nonzero().tolist() == t.nonzero().tolist()
    for found, want in zip(x.nonzero(as_tuple=True), t.nonzero(as_tuple=True), strict=True):
        assert found.tolist() == want.tolist()
    for size in (0, 3, 9):
        found, want = x.nonzero_static(size=size), torch.nonzero_static(t, size=size)
        assert found.tolist() == want.tolist() and found.shape == tuple(want.shape)


def test_masked_select_of_a_size(device: str) -> None:
    x = Tensor(A, device=device, requires_grad=True)
    whole = x.masked_select(x > 0)
    assert whole.tolist() == torch.tensor(A).masked_select(torch.tensor(A) > 0).tolist()
    count = whole.numel()
    longer = x.masked_select(x > 0, size=count + 2, fill_value=-9.0)
    assert longer.tolist() == [*whole.tolist(), -9.0, -9.0]
    assert x.masked_select(x > 0, size=2).tolist() == whole.tolist()[:2]
    (gradient,) = picograd.grad(longer.sum(), [x])
    np.testing.assert_array_equal(gradient.numpy(), A > 0)

    @picograd.jit
    def kept(y: Tensor) -> Tensor:
        return y.masked_select(y > 0, size=3)

    for sign in (1, -1):
        y = Tensor(A * sign, device=device)
        assert kept(y).tolist() == y[y > 0].tolist()[:3]


@pytest.mark.parametrize("how", ["amax", "amin", "prod"])
def test_truth_values_are_reduced(how: str, device: str) -> None:
    x = Tensor(A > 0, device=device)
    index, where = Tensor(ROWS, device=device), torch.tensor(ROWS)
    wanted = torch.tensor(A > 0).index_reduce(0, where, torch.tensor(A < 1), how)
    source = Tensor(A < 1, device=device)
    assert x.index_reduce(0, index, source, how).tolist() == wanted.tolist()
    reduced = picograd.jit(lambda x, i, s: x.index_reduce(0, i, s, how))
    assert reduced(x, index, source).tolist() == wanted.tolist()


def test_mistakes(device: str) -> None:
    x, index = Tensor(A, device=device), Tensor([0], device=device)
    for wrong in (
        lambda: x.select_scatter(x[0], 1, 0),
        lambda: x.select_scatter(x[0], 0, 3),
        lambda: x.slice_scatter(x[:2], 0, 0, 1),
        lambda: x.diagonal_scatter(x[0]),
        lambda: x.index_put(index, x[0]),
        lambda: x.index_put((index, index, index), 1.0),
        lambda: x.index_reduce(0, index, x[:1], "median"),
        lambda: x.index_reduce(0, index, x, "prod"),
        lambda: x[0].fill_diagonal_(1.0),
        lambda: x.nonzero_static(size=-1),
        lambda: x.masked_select(x),
    ):
        with pytest.raises(PicogradError):
            wrong()
