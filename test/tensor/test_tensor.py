"""Tensor: making, reading, promotion, in-place writes, protocols and error messages."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def test_dtype_of_new_tensors(device: str) -> None:
    assert Tensor.of(1, device=device).dtype is picograd.int64
    assert Tensor([1.5]).dtype is picograd.float32
    assert Tensor.of([True]).dtype is picograd.bool
    assert Tensor(np.zeros(2)).dtype is picograd.float64
    assert Tensor(np.zeros(2, np.uint8)).dtype is picograd.uint8
    assert Tensor([]).shape == (0,)
    assert Tensor([1, 2], dtype="float16").dtype is picograd.float16
    assert Tensor([[Tensor([1.0]), Tensor([2.0])]][0]).shape == (2,)
    assert Tensor.full((2,), 3).dtype is picograd.int64
    assert Tensor.arange(3).dtype is picograd.int64
    assert Tensor.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert Tensor.ones(2, 3).shape == Tensor.ones((2, 3)).shape == (2, 3)


def test_round_trip(device: str) -> None:
    for dtype in DTYPES:
        values = np.array([[1, 0, 3], [2, 1, 0]])
        tensor = Tensor(values, dtype=dtype, device=device)
        assert tensor.numpy().tolist() == tensor.tolist()
        assert (tensor.numpy() == values.astype(tensor.numpy().dtype)).all()
    assert Tensor([1.00390625], dtype="bfloat16").item() == 1.0  # half way: to even


@pytest.mark.usefixtures("on_host")
def test_printing() -> None:
    assert repr(Tensor([1.0, 2.5])) == "Tensor([1.0000, 2.5000])"
    shown = repr(Tensor([1.0], requires_grad=True))
    assert shown == "Tensor([1.], requires_grad=True)"
    assert len(repr(Tensor.zeros(1000, 1000))) < 1000
    assert f"{Tensor(2.0):.2f}" == "2.00"
    assert repr(Tensor.zeros(0, 3)) == "Tensor([], size=(0, 3))"


def test_protocols() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert float(Tensor(2.5)) == 2.5 and int(Tensor([3])) == 3 and [5, 6][Tensor.of(1)] == 6
    assert bool(Tensor.of(1)) and not bool(Tensor([0.0]))
    assert np.asarray(x).tolist() == x.tolist()
    assert (np.ones((2, 2), np.float32) + x).tolist() == [[2, 3], [4, 5]]
    assert {x: 1}[x] == 1 and 3.0 in x and 9.0 not in x
    assert (x == None) is False  # noqa: E711
    assert x.numel() == 4 and x.size() == (2, 2) and x.size(0) == 2 and x.nbytes == 16


def test_copies() -> None:
    """Shallow copies share the memory, as in PyTorch."""
    x = Tensor([1.0, 2.0], requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert other is not x and other.tolist() == [1, 2] and other.requires_grad
        is_shared = other.data_ptr() == x.data_ptr()
        with picograd.no_grad():
            other += 1
        assert x.tolist() == ([2, 3] if is_shared else [1, 2]) and other.tolist() == [2, 3]
    assert is_shared


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "inner sizes": (
        lambda: Tensor.ones(32, 784) @ Tensor.ones(128, 784),
        ValueError,
        "matmul: inner sizes differ: (32, 784) @ (128, 784). "
        "Fix: transpose the second operand with .T.",
    ),
    "ragged": (
        lambda: Tensor([[1, 2], [3]]),
        ValueError,
        "Tensor: ragged list: data[1] has 1 element but data[0] has 2 elements. "
        "Fix: make all rows the same length.",
    ),
    "broadcast": (
        lambda: Tensor.ones(2, 3) + Tensor.ones(4),
        RuntimeError,
        "add: shapes (2, 3) and (4,) do not broadcast. "
        "Fix: make sizes equal or 1, counted from the right.",
    ),
    "axis": (
        lambda: Tensor.ones(2, 3).sum(5),
        IndexError,
        "sum: axis 5 is out of range for 2 axes. Fix: use an axis from -2 to 1.",
    ),
    "index": (
        lambda: Tensor.ones(3)[5],
        IndexError,
        "getitem: index 5 is out of range for axis 0 of size 3. Fix: use an index from -3 to 2.",
    ),
    "index tensor": (
        lambda: Tensor.ones(3)[Tensor([0, 7])],
        IndexError,
        "getitem: index 7 is out of range for axis 0 of size 3. Fix: use indices from -3 to 2.",
    ),
    "reshape": (
        lambda: Tensor.ones(4).reshape(3, 2),
        RuntimeError,
        "reshape: cannot reshape (4,) (4 elements) to (3, 2). "
        "Fix: keep the number of elements, with at most one -1.",
    ),
    "truth": (
        lambda: bool(Tensor([1, 2])),
        RuntimeError,
        "bool(): the truth value of a tensor of shape (2,) is ambiguous. "
        "Fix: use .any() or .all().",
    ),
    "two axes": (
        lambda: Tensor.ones(3).sum(axis=0, dim=0),
        TypeError,
        "sum: both axis and dim were given. Fix: pass one of them.",
    ),
    "operand": (
        lambda: Tensor.ones(3).maximum("x"),
        TypeError,
        "maximum: operand must be a Tensor or a number, not str. "
        "Fix: wrap it in picograd.Tensor(...).",
    ),
    "device": (
        lambda: Tensor.ones(3, device="cpu") + Tensor.ones(3, device="null"),
        RuntimeError,
        'add: operands are on different devices: cpu and null. Fix: move one with .to("cpu").',
    ),
    "mean of ints": (
        lambda: Tensor([1, 2]).mean(),
        TypeError,
        "mean: needs a float dtype, got int64. Fix: call .float() first.",
    ),
    "assign": (
        lambda: Tensor.ones(3).assign(Tensor.ones(4)),
        ValueError,
        "assign: value of shape (4,) does not fit a tensor of shape (3,). "
        "Fix: reshape or expand the value.",
    ),
    "joined": (
        lambda: Tensor.cat([Tensor.ones(2, 3), Tensor.ones(2, 4)]),
        ValueError,
        "cat: shapes (2, 3) and (2, 4) differ outside axis 0. "
        "Fix: make all sizes but axis 0 equal.",
    ),
}


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("name", MISTAKES)
def test_error_message(name: str) -> None:
    call, kind, message = MISTAKES[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_a_uint8_index_is_a_mask() -> None:
    x, mask = Tensor([10, 20, 30]), Tensor([1, 0, 1], dtype="uint8")
    with pytest.warns(UserWarning, match="uint8 tensor selects by mask"):
        assert x[mask].tolist() == [10, 30]
    with pytest.warns(UserWarning):
        x[mask] = 0
    assert x.tolist() == [0, 20, 0]
    assert Tensor([10, 20, 30])[mask.long()].tolist() == [20, 10, 20]


def test_the_class_makes_what_that_of_pytorch_makes() -> None:
    torch = pytest.importorskip("torch")
    for call in (
        "T.Tensor(3)", "T.Tensor(2, 3)", "T.Tensor(T.ones(2, 3).size())", "T.Tensor([True, False])",
        "T.Tensor([[True], [False]])", "T.Tensor([1.0])", "T.Tensor()", "1 - T.Tensor([True])",
        "T.Tensor(2).fill_(1.5)",
    ):  # fmt: skip
        ours, theirs = eval(call, {"T": picograd}), eval(call, {"T": torch})
        assert (ours.shape, str(ours.dtype)[9:]) == (tuple(theirs.shape), str(theirs.dtype)[6:])
    assert picograd.tensor(3).item() == Tensor.of(3).item() == 3 and Tensor(2.5).item() == 2.5
    assert Tensor.of([True]).dtype is picograd.bool and Tensor([1, 2]).dtype is picograd.int64
    assert picograd.nn.Parameter(Tensor(4)).shape == (4,)


class Named(Tensor):
    """This class is one of a program's own."""


@pytest.mark.parametrize("kind", [Tensor, Named, picograd.FloatTensor, Tensor([1.0]).new])
def test_a_tensor_of_a_tensor_shows_it_and_gradients_pass(kind: Any) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    shown = kind(y)
    assert shown.requires_grad and not shown.is_leaf
    (shown * shown).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
    plain = Tensor([1.0, 2.0])
    kind(plain)[0] = 5.0
    assert plain.tolist() == [5.0, 2.0]
