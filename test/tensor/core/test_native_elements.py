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
    found = {"row": 0, "number": 0}

    def counting(name):
        native = CALLS.find(f"picograd_{name}")

        def call(*given):
            made = native(*given)
            found[name] += made is not None
            return made

        monkeypatch.setattr(CODED, name, call)

    counting("row")
    counting("number")
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
