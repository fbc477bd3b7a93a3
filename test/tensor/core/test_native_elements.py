"""Rows and numbers by machine code are those of Python, and of NumPy."""

import sys

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine.native_calls import CALLS, CODED
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core.repeated import check_alike
from picograd.tensor.indexing import indexing

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]
DTYPES = "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool", "float16"


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """Let machine code read, and count what it did."""
    found = {"row": 0, "number": 0, "fill": 0}

    def counting(name):
        native = CALLS.find(f"picograd_{name}")

        def call(*given):
            made = native(*given)
            found[name] += made is not None
            return made

        monkeypatch.setattr(CODED, name, call)

    counting("row")
    counting("number")
    counting("fill")
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_values(dtype, counted):
    x = (np.random.default_rng(0).normal(0, 60, (2, 3, 4))).astype(dtype)
    t = Tensor(x)
    for place in np.ndindex(4, 6, 8):
        i, j, k = (at - size for at, size in zip(place, x.shape))  # from the end as well
        wanted = x[i, j, k].item()
        for found in (t[i, j, k], t[i][j][k], t[i, j][k], t[:, :, ::1][i, j][k]):
            assert type(found.item()) is type(wanted)
        assert t[i, j, k].item() == t[i][j][k].item() == wanted
        np.testing.assert_array_equal(t[i, j].numpy(), x[i, j])
    assert counted["row"]
    assert bool(counted["number"]) is (dtype != "float16")


def test_nodes_are_those_of_python(counted):
    t = Tensor(np.arange(24.0, dtype="f").reshape(2, 3, 4))
    for items in (1, -1, (0, 2), (1, -3, 3)):
        listed = [items] if type(items) is int else list(items)
        given = [picograd.number.GivenInt(each) for each in listed]
        row = t[items]
        check_alike(lambda node, given=given: indexing.chosen(node, given), [t._node], row._node)
        start = row._node.inputs[0].arg[0][0]
        assert type(start) is picograd.number.GivenInt
        assert row._view.base is t
        assert row._view.operands == (listed,)
        assert (row._view.operands[0][0] is start) is (listed[0] >= 0)
    assert counted["row"] == 4


def test_writes_and_gradients(counted):
    t = Tensor(np.zeros((3, 4), "f"))
    row = t[1]
    t[1] += 5
    t[-1, 3] = 7
    assert row.tolist() == [5.0] * 4
    row[0].fill_(2)
    assert t[1, 0].item() == 2
    assert t[2, 3].item() == 7
    leaf = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (leaf[0] * leaf[1][0] + leaf[1, 1] ** 2).sum().backward()
    assert leaf.grad.tolist() == [[3.0, 3.0], [3.0, 16.0]]
    with picograd.no_grad():
        assert not leaf[0].requires_grad
    assert counted["row"]


@pytest.mark.parametrize("items", [3, -4, 10**30, (0, 4), (0, 0, 0), (), True, None, 1.0, "a"])
def test_others_are_left_to_python(items, counted):
    t = Tensor(np.zeros((3, 4), "f"))
    native = counted["row"]
    try:
        np.asarray(t[items])
    except (IndexError, TypeError, ValueError, picograd.errors.PicogradError):
        pass
    assert counted["row"] == native


def test_numbers_that_are_no_look(counted):
    single = Tensor(np.ones((1, 4), "f"))
    assert single[0].shape == (4,)  # an axis of one element needs no place
    waiting = single.exp()[0, 1]
    assert waiting.item() == pytest.approx(np.e)
    with pytest.raises(picograd.errors.ShapeError):
        single.item()
    assert counted["row"] == 0


def test_one_number_of_any_rank_is_read(counted):
    assert Tensor([[[5.0]]]).item() == 5.0
    assert counted["number"] == 1


def test_a_trace_notes_rows(counted):
    t = Tensor(np.arange(6.0, dtype="f").reshape(2, 3))
    jitted = picograd.jit(lambda x: x[1] * 2)
    before = counted["row"]
    for _ in range(3):
        assert jitted(t).tolist() == [6.0, 8.0, 10.0]
    assert counted["row"] == before


def test_what_is_no_node_has_no_number():
    for other in (None, 1, "text", (), [Tensor([1.0])], Tensor([1.0])):
        assert CODED.number(other) is None


def test_rows_leave_nothing(counted):
    t = Tensor(np.zeros((3, 4), "f"))
    numbers = sys.getrefcount(picograd.number.GivenInt)  # one for each that is alive
    for _ in range(100):
        t[1], t[-1], t[2, 3], t[0, 0].item()
    assert counted["row"] > 300
    assert sys.getrefcount(picograd.number.GivenInt) < numbers + 10  # a plan may have some


NUMBERS = [
    3, -3.5, True, 0, -0.0, float("nan"), float("-inf"), 1e300, 2**62, -(2**63),
    [1, 2, 3], (1.0, 2), [True, False, True], [True, 2], [0.1, True], [[1, 2], [3, 4.5]],
    [[[1.0]], ((2.0,),)], [*range(64)], [0.1] * 128, [[True] * 9] * 7, [[1], [2], [3]],
]  # fmt: skip
LEFT = [
    [], [[]], [[], []], [0.1] * 129, [*range(65)], 2**53 + 1, [2**60 + 1, 0.5], 1j, [1, 1j],
    np.float32(1.5), [np.int8(3), 2], range(3), [range(2), range(2)], [Tensor([1.0]), 2.0],
]  # fmt: skip
WRONG = [
    2**63, -(2**63) - 1, [1, 2**64], [[1, 2], [3]], [1, [2]], [[1], 2], ["a"], [None], [1, "b"],
]  # fmt: skip


def filled(data, **options):
    """What a tensor of data is, or the error of it."""
    try:
        found = picograd.tensor(data, **options)
    except picograd.errors.PicogradError as error:
        return type(error), str(error)
    return found.dtype, found.shape, found.numpy().tobytes(), found.is_leaf, found.requires_grad


@pytest.mark.parametrize("dtype", [None, "float32", "float64", "int64", "int32", "bool", "float16"])
def test_tensors_of_numbers(dtype, counted):
    for usual in (picograd.float32, picograd.float64):
        picograd.set_default_dtype(usual)
        try:
            for data in (*NUMBERS, *LEFT, *WRONG):
                mine = filled(data, dtype=dtype)
                with picograd.config.override(native=0):
                    assert filled(data, dtype=dtype) == mine, data
        finally:
            picograd.set_default_dtype(picograd.float32)
    if dtype is None:
        assert counted["fill"] == 2 * len(NUMBERS) + 1  # one that only a float would round twice
    assert bool(counted["fill"]) is (dtype not in ("int32", "float16"))


def test_tensors_of_numbers_are_leaves_as_any_other(counted):
    class Own(Tensor):
        pass

    x = Own([1.0, 2.0], requires_grad=True, name="x")
    assert (type(x), x.name, x.is_leaf, x._version) == (Own, "x", True, 0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    before = picograd.memory_stats("cpu")["in_use"]
    kept = [picograd.tensor([number, 0.5]) for number in range(8)]
    assert picograd.memory_stats("cpu")["in_use"] > before
    kept[3].add_(1.0)
    shown = kept[3].numpy().tolist()
    assert shown == [4.0, 1.5] and kept[4].tolist() == [4.0, 0.5]
    assert picograd.jit(lambda a: a + picograd.tensor([1.0, 2.0]))(kept[0]).tolist() == [1.0, 2.5]
    del kept
    assert picograd.memory_stats("cpu")["in_use"] == before
    assert counted["fill"]
