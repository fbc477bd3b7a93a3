"""Splits, joins, grids and shapes: equal to PyTorch's, with gradients."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

import picograd
from picograd import Tensor
from picograd.errors import GradientError, PicogradError

torch = pytest.importorskip("torch")


def library(x: Any) -> Any:
    return torch if isinstance(x, torch.Tensor) else picograd


def test_values_and_gradients(device: str) -> None:
    a, b, v = numbers((3, 4)), numbers((3, 4), seed=2), numbers((5,))
    calls: dict[str, tuple[Any, list[Any]]] = {
        "column_stack": (lambda x, y, z: library(x).column_stack([x, y, z]), [a, b, a[:, 0]]),
        "hsplit": (lambda x: library(x).hsplit(x, 2)[1], [a]),
        "hsplit at": (lambda x: library(x).hsplit(x, (1, 3))[1], [a]),
        "vsplit": (lambda x: library(x).vsplit(x, 3)[2], [a]),
        "dsplit": (lambda x: library(x).dsplit(x, 2)[0], [numbers((2, 3, 4))]),
        "sizes": (lambda x: library(x).split_with_sizes(x, [1, 3], 1)[1], [a]),
        "cartesian_prod": (lambda x, y: library(x).cartesian_prod(x, y), [v, v[:2]]),
        "cartesian_prod 1": (lambda x: library(x).cartesian_prod(x), [v]),
        "combinations": (lambda x: library(x).combinations(x, 3), [v]),
        "combinations again": (lambda x: library(x).combinations(x, 2, True), [v]),
        "combinations none": (lambda x: library(x).combinations(x, 7), [v]),
        "adjoint": (lambda x: library(x).adjoint(x), [numbers((2, 3, 4))]),
        "diagflat": (lambda x: library(x).diagflat(x, -1), [a]),
        "sum_to_size": (lambda x: x.sum_to_size(1, 4), [numbers((2, 3, 4))]),
        "as_strided": (lambda x: library(x).as_strided(x, (2, 3), (1, 2), 1), [a]),
        "H": (lambda x: x.H, [a]),
        "atleast_3d": (lambda x: library(x).atleast_3d(x), [v]),
    }
    cases = [Case(n, f, x) for n, (f, x) in calls.items()]
    # PyTorch's vander overwrites what its own gradient needs
    cases.append(Case("vander", lambda x: picograd.vander(x), [v],
                      lambda x: torch.stack([x**4, x**3, x**2, x, x * 0 + 1], 1)))  # fmt: skip
    compare(cases, device)


def test_whole_numbers(device: str) -> None:
    n = integers((4,))
    cases = [
        Case("vander", lambda x: library(x).vander(x, 3), [n], has_gradient=False),
        Case("vander 0", lambda x: library(x).vander(x, 0), [n], has_gradient=False),
        Case("combinations", lambda x: library(x).combinations(x, 0), [n], has_gradient=False),
    ]
    compare(cases, device)
    found = picograd.unravel_index(Tensor([7, 0, 23], device=device), (2, 3, 4))
    want = torch.unravel_index(torch.tensor([7, 0, 23]), (2, 3, 4))
    assert [x.tolist() for x in found] == [x.tolist() for x in want]
    assert picograd.unravel_index(Tensor([200], dtype="uint8"), (20, 20))[1].dtype is picograd.int64


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4, 5)])
def test_ranks(shape: tuple[int, ...], device: str) -> None:
    x, t = Tensor(np.zeros(shape), device=device), torch.zeros(shape)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        assert getattr(picograd, name)(x).shape == tuple(getattr(torch, name)(t).shape)
    assert [y.shape for y in picograd.atleast_2d(x, x)] == [picograd.atleast_2d(x).shape] * 2


def test_shapes() -> None:
    assert picograd.broadcast_shapes((2, 1), 3, (1, 1, 1)) == (1, 2, 3)
    assert picograd.broadcast_shapes() == ()


def test_mistakes(device: str) -> None:
    a = Tensor(numbers((3, 4)), device=device)
    for wrong in (
        lambda: picograd.hsplit(a, 3),
        lambda: picograd.vsplit(a[0], 2),
        lambda: picograd.dsplit(a, 2),
        lambda: picograd.cartesian_prod(a),
        lambda: picograd.combinations(a),
        lambda: picograd.vander(a),
        lambda: picograd.broadcast_shapes((2,), (3,)),
        lambda: a.sum_to_size(2, 4),
        lambda: picograd.as_strided(a, (4, 4), (4, 1)),
        lambda: picograd.column_stack([]),
    ):
        with pytest.raises(PicogradError):
            wrong()


def test_as_strided_of_a_leaf_that_shares_memory() -> None:
    held = Tensor(np.arange(6.0))
    x = held.detach().requires_grad_()
    (picograd.as_strided(x, (2, 3), (1, 2)) ** 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    part = held[2:].detach().requires_grad_()
    (
        picograd.as_strided(part, (2, 2), (2, 1), 2) * Tensor([[1.0, 2.0], [3.0, 4.0]])
    ).sum().backward()
    assert part.grad is not None and part.grad.tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(GradientError, match="as_strided: gradients of a part of memory"):
        picograd.as_strided(part, (2,), (1,), 1)


def pairs(f: Any) -> Any:
    return f.tensor([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]])


OF_OTHER_DTYPES: dict[str, Any] = {
    "real": lambda f: pairs(f).real,
    "imaginary": lambda f: pairs(f).imag,
    "rows": lambda f: pairs(f)[1:].imag,
    "columns": lambda f: pairs(f).real[:, 1],
    "turned": lambda f: pairs(f).T.real,
    "cut off": lambda f: pairs(f).real.detach(),
    "numbers as parts": lambda f: pairs(f)[1:].view(f.float32),
    "pairs of parts": lambda f: f.view_as_real(pairs(f)).view(8)[2:].view(f.complex64).real,
    "same width": lambda f: f.arange(8, dtype=f.int32)[1:].view(f.float32).view(f.int32),
    "narrower": lambda f: f.arange(8, dtype=f.int32)[1:].view(f.int16)[1:],
    "wider": lambda f: f.arange(11, dtype=f.int16)[2:10].view(f.int32)[1:],
}


@pytest.mark.parametrize("show", OF_OTHER_DTYPES.values(), ids=OF_OTHER_DTYPES)
@pytest.mark.parametrize("offset", [None, 0, 2])
def test_as_strided_counts_elements_of_memory(show: Any, offset: int | None) -> None:
    found = []
    for f in (torch, picograd):
        x = show(f)
        for sizes, strides in ((2,), (1,)), ((2,), (2,)):
            part = x.as_strided(sizes, strides, offset)
            found.append([x.storage_offset(), x.stride(), part.tolist(), part.storage_offset()])
        part.fill_(1)
        found.append(x.tolist())
    assert found[:3] == found[3:]


def test_no_tensors_have_no_axes() -> None:
    assert picograd.atleast_1d() == picograd.atleast_3d() == ()


EMPTY: dict[str, Any] = {
    "cat skips": lambda f: f.cat([f.zeros(0), f.ones(2, 3), f.zeros(0)], 1),
    "cat of nothing": lambda f: f.cat([f.zeros(0), f.zeros(0)], 1),
    "cat of dtypes": lambda f: f.cat([f.zeros(0, dtype=f.float64), f.ones(2, 3)], -1),
    "hstack": lambda f: f.hstack([f.zeros(0), f.ones(2, 3)]),
    "stack": lambda f: f.stack([f.zeros(0, 3), f.zeros(0, 3)], -1),
    "split by nothing": lambda f: f.zeros(3, 0).split(0, 1)[0],
    "split to nothing": lambda f: f.zeros(0).split([0, 0])[1],
    "chunk": lambda f: f.zeros(5, 0).chunk(3, 1)[2],
    "tensor_split": lambda f: f.ones(5).tensor_split([0, 0, 5, 7])[3],
    "block_diag": lambda f: f.block_diag(),
    "unfold": lambda f: f.ones(3).unfold(0, 0, 1),
    "unfold by steps": lambda f: f.ones(2, 7).unfold(1, 0, 3),
    "unfold of nothing": lambda f: f.zeros(0).unfold(0, 0, 1),
    "unfold of a number": lambda f: f.tensor(2.0).unfold(0, 0, 1),
}


@pytest.mark.parametrize("name", EMPTY)
def test_what_is_empty_is_joined_and_cut_as_in_pytorch(name: str, device: str) -> None:
    ours, theirs = (EMPTY[name](framework) for framework in (picograd, torch))
    assert ours.shape == tuple(theirs.shape) and ours.dtype.name == str(theirs.dtype)[6:]
    assert ours.tolist() == theirs.tolist()


def test_pieces_of_no_size_need_an_empty_axis() -> None:
    for size in (0, -1):
        with pytest.raises(PicogradError, match="split: piece size"):
            Tensor([1.0, 2.0]).split(size)
