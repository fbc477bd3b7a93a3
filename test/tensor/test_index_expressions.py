"""Index expressions drawn at a fixed seed: reading and writing equal PyTorch's or NumPy's.

PyTorch is the reference, NumPy that of negative steps, which PyTorch refuses. They differ in one
thing: PyTorch takes ints for views first, so that they do not move the axes of index arrays.
"""

import random
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import AxisError, PicogradError

torch = pytest.importorskip("torch")

A = np.arange(60.0).reshape(3, 4, 5)
BASIC: list[Any] = [
    0, -1, 2, np.int64(1), slice(None), slice(1, 3), slice(None, None, 2), slice(5, 2),
    slice(-100, 100), slice(0, 0), None, Ellipsis, slice(None, None, -1), slice(-1, 0, -2),
]  # fmt: skip
ARRAYS: list[Any] = [
    [0, 2], [-1, 0, 1], np.array([[0, 1], [2, 0]]), np.array(1), np.array([], np.int64),
    np.array([[2], [1]]), np.array([True, True, False]), [True, False, True], True,
]  # fmt: skip
MASKS: list[Any] = [
    (A > 30,), (A[:, :, 0] > 20,), (A[:, :, 0] > 20, slice(1, 3)), (slice(None), A[0] > 7),
    (A[0, :, 0] > 4,), (Ellipsis, A[0, 0] > 1), (True,), (False,), (True, 0), (0, False),
    (np.array(True),), (np.array(False), 1), (A[:, 0, 0] > 10, [0, 1]), (A > 100,),
]  # fmt: skip


def expressions() -> list[tuple[Any, ...]]:
    draw = random.Random(3)
    pool = BASIC + ARRAYS
    found: list[tuple[Any, ...]] = [(item,) for item in pool] + MASKS
    while len(found) < 150:
        found.append(tuple(draw.choice(pool) for _ in range(draw.randint(2, 4))))
    return found


def is_backwards(items: tuple[Any, ...]) -> bool:
    return any(isinstance(item, slice) and (item.step or 1) < 0 for item in items)


def has_array(items: tuple[Any, ...]) -> bool:
    return any(isinstance(item, (list, np.ndarray, bool)) for item in items)


def reference(items: tuple[Any, ...]) -> Any:
    """Positions the expression reads; None where it is an error, "skip" where none knows."""
    places = np.arange(A.size).reshape(A.shape)
    is_int = any(isinstance(i, (int, np.integer)) and i is not True for i in items)
    is_int = is_int or any(isinstance(i, np.ndarray) and not i.ndim for i in items)
    try:
        if not is_backwards(items):
            given = tuple(torch.tensor(i) if isinstance(i, np.ndarray) else i for i in items)
            return torch.tensor(places)[given].numpy()
        return "skip" if has_array(items) and is_int else places[items]
    except (IndexError, TypeError, RuntimeError):
        return None


def ours(items: tuple[Any, ...], device: str, draw: random.Random) -> tuple[Any, ...]:
    """Give some of the arrays as tensors."""
    is_array = [isinstance(i, np.ndarray) and i.ndim > 0 and draw.random() < 0.5 for i in items]
    return tuple(Tensor.of(i, device=device) if t else i for i, t in zip(items, is_array))


def test_reading_and_writing(device: str) -> None:
    draw, wrong, reads, writes = random.Random(5), [], [], []
    for number, items in enumerate(expressions()):
        want = reference(items)
        if isinstance(want, str):
            continue
        x = Tensor(A, device=device)
        try:
            found = x[ours(items, device, draw)]
        except PicogradError as error:
            if want is not None:
                wrong.append(f"reading {items}: {error}")
            continue
        if want is None:
            wrong.append(f"reading {items} is no error")
            continue
        if found.shape != want.shape:
            wrong.append(f"reading {items}: {found.shape} != {want.shape}")
            continue
        reads.append((items, found, want))
        if number % 2:
            value = 100.0 + np.arange(want.size).reshape(want.shape) if number % 4 == 1 else -1.0
            x = Tensor(A, device=device)  # what was read shows the other one
            x[ours(items, device, draw)] = (
                value if isinstance(value, float) else Tensor(value, device=device)
            )
            writes.append((items, x, want, value))
    tensors = [each[1] for each in (*reads, *writes)]
    tensors[0].realize(*tensors[1:])
    for items, found, want in reads:
        if not np.array_equal(found.numpy(), want):
            wrong.append(f"reading {items}: {found.tolist()} != {want.tolist()}")
    for items, x, want, value in writes:
        after = A.copy().reshape(-1)
        after[want.reshape(-1)] = value if isinstance(value, float) else value.reshape(-1)
        if not np.array_equal(x.numpy().reshape(-1), after):
            wrong.append(f"writing {items}")
    assert not wrong, "\n".join(wrong)
    assert len(reads) > 70 and len(writes) > 35


def test_gradients(device: str) -> None:
    rows, mask = np.array([2, 0, 2]), A[:, :, 0] > 20
    for items in ((1,), (slice(None), -1), (rows,), (slice(None), rows), (rows, 1, rows), (mask,),
                  (Ellipsis, [0, 0]), (rows[:, None], slice(1, 3), rows),
                  (None, 0, rows)):  # fmt: skip
        x, t = Tensor(A, device=device, requires_grad=True), torch.tensor(A, requires_grad=True)
        given = tuple(torch.tensor(i) if isinstance(i, np.ndarray) else i for i in items)
        weight = np.arange(t[given].numel()).reshape(t[given].shape) + 1.0
        (found,) = picograd.grad(x[items], [x], Tensor(weight, device=device))
        (want,) = torch.autograd.grad(t[given], [t], torch.tensor(weight))
        np.testing.assert_array_equal(found.numpy(), want.numpy(), str(items))
    x, v = (Tensor(y, device=device, requires_grad=True) for y in (A, [7.0]))
    y = x * 1.0
    y[:, [0, 2]] = v
    for_x, for_v = picograd.grad(y.sum(), [x, v])
    want = np.ones_like(A)
    want[:, [0, 2]] = 0
    np.testing.assert_array_equal(for_x.numpy(), want)
    assert for_v.tolist() == [30.0]


@pytest.mark.parametrize("items", [(3,), (-4,), (0, 4), (0, 0, 0, 0), ([0, 3],), ([-4],)])
def test_out_of_range(items: Any, device: str) -> None:
    x = Tensor(A, device=device)
    with pytest.raises(AxisError):
        x[items]
    with pytest.raises(IndexError):
        x[items] = 1.0


def test_other_mistakes(device: str) -> None:
    x = Tensor(A, device=device)
    for items in (1.5, "a", ([0, 1], [0, 1, 2]), np.ones((2, 4), bool),
                  slice(None, None, 0), ([[0], [1, 2]],)):  # fmt: skip
        with pytest.raises(PicogradError):
            x[items]
    with pytest.raises(PicogradError):
        x[0] = Tensor(np.ones((3, 3)), device=device)


# Lists and tuples: which are one index and which are several, beside PyTorch. L is the library.
N, S, E = None, slice(None), Ellipsis
NESTED = """
(0, 1) | ((0, 1),) | (S, (0, 1)) | ((0, 1), (1, 2)) | ((0, 1), (1, 2), (3, 4))
((0, 1), slice(1, 3)) | (E, (0, 1)) | ((0, 1), E, (1, 2)) | ((0,), (1, 2)) | ((0, 1), N, (1, 2))
(N, (0, 1)) | (0, N, (1, 2)) | [(0, 1), (1, 2)] | [[0, 1], [1, 2]] | [0, 1] | [S, [0, 2]] | [S, 0]
[0, S] | [N, 0] | [0, N] | [E, 0] | [[0, 2], E] | [True, False, True] | (True, False)
((True, False, True),) | ((True, False, True), 0) | (S, (True, False, True, False))
(True, [0, 1]) | ([0, 1], True) | (False, (0, 1)) | (S, True, (0, 1)) | range(2) | (range(2),)
(S, range(3)) | (range(2), range(2)) | ((0, 1), (0, 1, 2)) | ((0, 5),) | ((0, -4),) | (S, (0, 7))
[] | ((),) | () | (S, ()) | [[]] | ((0, 1), S, (0, 1)) | (0, S, (0, 1)) | ((0, 1), 0, S)
((0, 1), 0) | (0, (0, 1)) | (S, 0, (0, 1)) | (N, [0, 1], N) | (1, [2], S)
(np.array([0, 1]), (1, 2)) | (S, np.array([0, 2])) | np.array([True, False, True]) | np.int64(1)
(L.tensor([0, 1]), (1, 2)) | [L.tensor(0), L.tensor(1)] | [L.tensor([0, 1]), L.tensor([1, 2])]
[L.tensor([0, 1]), S] | [L.tensor(0), 1] | ((L.tensor(0), 1),) | ((0, 1), L.tensor([[0], [1]]))
(S, ((0, 1), (1, 2))) | (S, [(0, 1), [1, 2]]) | [[[0, 1]]] | [((0, 1), (1, 2))]
[[True, False, True]] | (((0,), (1,)), ((0, 1),)) | ([[True] * 4] * 3,) | (((True,) * 4,) * 3,)
([[True] * 4] * 2,) | slice(L.tensor(0), L.tensor(2)) | [[0, 1]] * 40 | [0] * 40 | ((0, 1),) * 4
0.5 | (0.5,) | (0, 0.5) | "a" | ("a",) | {} | object() | 5 | -4 | (0, 4) | (0, 0, 0, 0) | 1j
b"a" | L.tensor([0.5]) | L.tensor(1.0) | slice(0.5) | slice("a") | slice(N, N, 0) | (0, N, 0.5)
[[0, 1], [1]]
"""
EXPRESSIONS = [each.strip() for line in NESTED.strip().splitlines() for each in line.split(" | ")]


def outcome(lib: Any, text: str, value: Any) -> Any:
    """What reading (no value) or writing gives, or the error."""
    x = lib.tensor(A)
    try:
        items = eval(text, {"L": lib, "np": np, "N": N, "S": S, "E": E})
        if value is None:
            found = x[items]
            return tuple(found.shape), found.tolist()
        x[items] = lib.tensor(value) if isinstance(value, np.ndarray) else value
        return x.tolist()
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore:a list of several", "ignore:Using a non-tuple")
@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("value", [None, -7.0, np.array(-8.0)], ids=["read", "number", "tensor"])
def test_lists_and_tuples_inside(text: str, value: Any) -> None:
    found, wanted = outcome(picograd, text, value), outcome(torch, text, value)
    if isinstance(wanted, Exception):
        is_kept = isinstance(wanted, (IndexError, ValueError, TypeError))
        kind = type(wanted) if is_kept else Exception
        assert isinstance(found, PicogradError) and isinstance(found, kind), (found, wanted)
    else:
        assert found == wanted
