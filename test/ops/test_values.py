"""Casting, moving, detaching, writing and reading values, against PyTorch."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("source", [*DTYPES, "bfloat16"])
def test_cast(source: str, device: str) -> None:
    data = [0.0, 1.0, 2.0, 3.75, 100.0]
    ours = Tensor(data, device=device).cast(source)
    theirs = torch.tensor(data).to(getattr(torch, source))
    for target in DTYPES:
        found = ours.cast(target)
        want = theirs.to(getattr(torch, target))
        assert found.dtype.name == target
        np.testing.assert_array_equal(found.numpy(), want.numpy(), f"{source} to {target}")


def test_cast_gradients(device: str) -> None:
    x = numbers((3, 4))
    cases = [
        Case("double", lambda t: t.double() * 2, [x]),
        Case("half and back", lambda t: t.half().float() * t, [x], lambda t: t * t),
        Case("twice", lambda t: t.double() * t.double(), [x]),
        Case("of a slice", lambda t: t.T[1:].double(), [x]),
        Case("empty", lambda t: t.double(), [numbers((0, 2))]),
        Case("zero-dim", lambda t: t.double(), [numbers(())]),
    ]
    compare(cases, device)


def test_copies(device: str) -> None:
    x = numbers((3, 4))
    functions: dict[str, Any] = {
        "clone": lambda t: t.clone() * t,
        "contiguous": lambda t: t.T.contiguous() * t.T,
        "detach": lambda t: t.detach() * t,
        "detach all of it": lambda t: (t * 2).detach() + t * 0,
        "expand_as": lambda t: t[:1].expand_as(t) * t,
    }
    compare([Case(name, f, [x]) for name, f in functions.items()], device)


def test_to(device: str) -> None:
    x = Tensor(numbers((2, 3)), device=device, dtype="float32")
    assert x.to(device).device == x.device
    assert x.to("cpu").device == "cpu"
    assert x.to("float64").dtype is picograd.float64
    assert x.to(device, picograd.int32).dtype is picograd.int32
    np.testing.assert_array_equal(x.cpu().numpy(), x.numpy())
    y = Tensor([1.0, 2.0], device="cpu", requires_grad=True)
    (y.to(device) * 3).sum().backward()
    assert y.grad.tolist() == [3, 3]
    assert y.grad.device == "cpu"


def test_reading(device: str) -> None:
    x = Tensor([[1, 2], [3, 4]], device=device)
    assert x.tolist() == [[1, 2], [3, 4]]
    assert x[1, 0].item() == 3
    assert isinstance(x[0, 0].item(), int)
    assert isinstance(x.float().sum().item(), float)
    assert x.numel() == 4
    assert x.nonzero().tolist() == torch.tensor([[1, 2], [3, 4]]).nonzero().tolist()
    assert x.numpy().dtype == np.int64


def test_writes(device: str) -> None:
    x, v = numbers((3, 4)), numbers((3, 4), seed=1)

    def changed(change: Any) -> Any:
        def call(a: Any, b: Any) -> Any:
            copy = a.detach().clone()
            before = copy * 2
            change(copy, b.detach())
            return copy * 3 + before

        return call

    def power(a: Any, b: Any) -> None:
        a **= 2
        a -= b
        a /= 2

    def doubled(a: Any, b: Any) -> None:
        a += b
        a *= a

    changes: dict[str, Any] = {
        "copy_": lambda a, b: a.copy_(b),
        "copy_ broadcast": lambda a, b: a.copy_(b[0]),
        "fill_": lambda a, b: a.fill_(2.5),
        "zero_": lambda a, b: a.zero_(),
        "power": power,
        "doubled": doubled,
        "transposed": lambda a, b: a.copy_(b.T.reshape(3, 4)),
        "itself": lambda a, b: a.copy_(a.flip(0)),
    }
    cases = [Case(n, changed(f), [x, v], has_gradient=False) for n, f in changes.items()]
    compare(cases, device)


def test_assign(device: str) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device)
    before, total = x * 1, x.sum()
    x.assign(x + 10)
    x.assign(x * 2)
    assert x.tolist() == [22, 24, 26]
    assert before.tolist() == [1, 2, 3]
    assert total.item() == 6


def test_logic_and_selection(device: str) -> None:
    a, b = integers((3, 4), 0, 2).astype(bool), integers((4,), 0, 2).astype(bool)
    x = numbers((3, 4))
    cases = [
        Case("and", lambda p, q: p.logical_and(q), [a, b], has_gradient=False),
        Case("or", lambda p, q: p.logical_or(q), [a, b], has_gradient=False),
        Case("masked_select", lambda t: t.masked_select(t.detach() > 0), [x]),
        Case("one_hot", lambda i: i.one_hot(5), [integers((3,), 0, 5)],
             lambda i: torch.nn.functional.one_hot(i, 5), has_gradient=False),
        Case("bmm", lambda p, q: p.bmm(q), [numbers((2, 3, 4)), numbers((2, 4, 2))]),
        Case("matmul", lambda p, q: p.matmul(q), [x, x.T.copy()]),
    ]  # fmt: skip
    compare(cases, device)
    both = [Tensor([1.0, 2.0], device=device), Tensor([3.0], device=device)]
    assert picograd.concat(both).tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_shifts_by_about_the_width(dtype: str, device: str) -> None:
    bits, ends = 8 * np.dtype(dtype).itemsize, np.iinfo(dtype)
    counts = [0, 1, bits - 1, bits, bits + 1] + ([-1] if ends.min else [])
    x, by = np.meshgrid(np.array([1, 3, ends.max, ends.min], dtype), np.array(counts, dtype))
    ours = [Tensor(each, device=device) for each in (x, by)]
    left, right = ((ours[0] << ours[1]).tolist(), (ours[0] >> ours[1]).tolist())
    for row, count in enumerate(counts):
        for column, number in enumerate(int(n) for n in x[0]):
            is_inside = 0 <= count < bits
            wanted = np.array((number << count if is_inside else 0) % (1 << bits), f"uint{bits}")
            assert left[row][column] == wanted.view(dtype).item(), (number, count)
            filled = number >> count if is_inside else -1 if number < 0 else 0
            assert right[row][column] == filled, (number, count)
