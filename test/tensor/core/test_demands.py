"""Demands on integer values: what is looked at, when, and what is left to the run of a plan."""

import ctypes
import threading

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import pending, realize
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import AxisError, ValueRangeError
from picograd.tensor.core import demands
from picograd.tensor.core.demands import demand_divisor, demand_index, demand_labels, demand_number

pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def test_what_is_proven_is_not_computed() -> None:
    x = Tensor(np.ones((4, 6), np.float32)) * 2
    for index in (x.argmax(1), Tensor([7, -3]) % 6, Tensor.arange(6), (x + 1).argsort(1)[0]):
        assert demand_index("op", index.node, 6, 0)
        assert index.node.realized is None
    for index in ((x > 1).sum(1).clamp(max=5), (x > 1).long().cumsum(1) - 1, (x - 1).long() & 5):
        assert demand_index("op", index.node, 6, 0)  # samples, positions
        assert index.node.realized is None


def test_what_is_not_known_is_computed_and_looked_at() -> None:
    index = Tensor([2, 3]) * Tensor([2, 1])
    assert demand_index("op", index.node, 5, 0)
    assert leaf_buffer(index.node) is not None
    with pytest.raises(AxisError, match="op: index 4 is out of range for axis 2 of size 4"):
        demand_index("op", (index + 0).node, 4, 2)


def test_ends() -> None:
    for values, size, wraps in (([-3, 2], 3, True), ([0, 2], 3, False), ([], 0, True)):
        assert demand_index("op", Tensor(values, dtype="int64").node, size, 0, wraps)
    for values, size, wraps in (([-4], 3, True), ([3], 3, True), ([-1], 3, False), ([0], 0, True)):
        for index in (Tensor(values), Tensor(values) + Tensor([0])):
            with pytest.raises(AxisError):
                demand_index("op", index.node, size, 0, wraps)
    largest = Tensor([2**64 - 1], dtype="uint64")
    with pytest.raises(AxisError):
        demand_index("op", largest.node, 3, 0)


def test_views_of_large_memory_are_looked_at_without_a_plan() -> None:
    index = np.zeros((1000, 100), np.int64)
    index[0, 0] = 9
    whole = Tensor(index).realize()
    assert demand_index("op", whole[1:].T.reshape(-1, 3)[::2].node, 1, 0) is True
    plans = len(realize.PLANS)
    assert demand_index("op", whole[1:, ::2].T.flip(0).node, 1, 0)
    assert len(realize.PLANS) == plans
    with pytest.raises(AxisError, match="index 9"):
        demand_index("op", whole[:, :1].node, 9, 0)


def test_labels() -> None:
    labels = Tensor([0, 2, -100])
    demand_labels("op", labels.node, 3, -100)
    demand_number("op", labels[:2].node, 3)
    for wrong in (lambda: demand_labels("op", labels.node, 3, None),
                  lambda: demand_labels("op", labels.node, 2, -100),
                  lambda: demand_number("op", labels.node, 3)):  # fmt: skip
        with pytest.raises(AxisError, match="out of range for . classes"):
            wrong()


def test_divisors() -> None:
    for fine in (2, 0.0, Tensor([1, 2]).node, Tensor([0.0]).node, (Tensor([1]) + 1).node):
        demand_divisor("op", fine)
    for zero in (0, False, Tensor([1, 0]).node, picograd.zeros(2, dtype="int32").node,
                 (Tensor([1]) - 1).node):  # fmt: skip
        with pytest.raises(ValueRangeError, match="divided by zero"):
            demand_divisor("op", zero)


def test_where_nothing_is_divided_a_divisor_may_be_zero() -> None:
    nothing, zero = picograd.zeros((0, 2), dtype="int64"), picograd.zeros((), dtype="int64")
    truncated = picograd.jit(lambda a, b: a.div(b, rounding_mode="trunc"))
    for found in (nothing // zero, nothing % 0, picograd.fmod(nothing, zero + 0),
                  truncated(nothing, zero)):  # fmt: skip
        assert found.shape == (0, 2)


def test_other_threads_wait() -> None:
    """Computing what they recorded would change the graph that is looked through."""
    index, done = (Tensor([1]) + 1).node, []
    looking = threading.Thread(target=lambda: done.append(demand_index("op", index, 3, 0)))
    with pending.LOCK:
        looking.start()
        looking.join(0.1)
        assert not done
    looking.join()
    assert done == [True]


def test_an_error_leaves_nothing_behind() -> None:
    """What is refused was not recorded: later computations and writes go on."""
    memory = Tensor([1.0, 2.0, 3.0])
    memory += 1.0
    with pytest.raises(IndexError):
        memory[Tensor([1]) + 5] = 0.0
    with pytest.raises(IndexError):
        memory.index_add_(0, Tensor([1]) + 5, Tensor([1.0]))
    assert memory.tolist() == [2.0, 3.0, 4.0]
    memory[Tensor([1]) + 1] = 0.0
    assert memory.tolist() == [2.0, 3.0, 0.0]


def test_vmap_inside_jit_reports() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    step = picograd.jit(picograd.vmap(picograd.vmap(lambda i: x[i])))
    assert step(Tensor([[0, 1], [2, -1]])).tolist() == [[1.0, 2.0], [3.0, 3.0]]
    with pytest.raises(IndexError, match="getitem: an index is out of range"):
        step(Tensor([[0, 1], [3, -1]])).tolist()


@pytest.mark.parametrize("count", [10, 5000])  # their bounds are kept, unless others may write
def test_labels_in_memory_of_others_are_looked_at_each_time(count: int) -> None:
    memory, x = np.zeros(count, np.int64), Tensor(np.ones((count, 3), np.float32))
    labels = picograd.from_numpy(memory)
    assert picograd.nn.functional.cross_entropy(x, labels).item() == pytest.approx(np.log(3))
    memory[7] = 3
    with pytest.raises((AxisError, ValueRangeError)):
        picograd.nn.functional.cross_entropy(x, labels).item()


def test_memory_is_asked_once_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    is_below = demands.is_below

    def counted(values: np.ndarray, size: int) -> bool:
        looks.append(size)
        return is_below(values, size)

    monkeypatch.setattr(demands, "is_below", counted)
    index = Tensor([2, 1]).realize()
    for _ in range(3):
        assert demand_index("op", index.node, 4, 0) and demand_number("op", index.node, 3)
    assert looks == [4, 3]  # `x[index]` and `embedding` of sizes of their own
    with pytest.raises(AxisError):
        demand_index("op", index.node, 2, 0)
    index[0] = 3
    with pytest.raises(AxisError, match="index 3 is out of range for 3 classes"):
        demand_number("op", index.realize().node, 3)


def test_memory_that_others_write_is_asked_each_time() -> None:
    values = np.array([0, 1])
    index = picograd.from_numpy(values)
    for number in (1, 2, 3):
        values[0] = number
        if number < 3:
            assert demand_index("op", index.node, 3, 0)
    with pytest.raises(AxisError):
        demand_index("op", index.node, 3, 0)


def test_what_a_trace_or_an_address_writes_is_asked_again() -> None:
    index = Tensor([0, 1]).realize()
    step = picograd.jit(lambda: index.add_(1))
    for _ in range(8):
        step()
        if index.max().item() < 5:
            assert demand_index("op", index.node, 5, 0)
        else:
            with pytest.raises(AxisError):
                demand_index("op", index.node, 5, 0)
    address = index.data_ptr()
    assert demand_index("op", index.node, 10, 0)
    ctypes.c_int64.from_address(address).value = 10
    with pytest.raises(AxisError):
        demand_index("op", index.node, 10, 0)


def test_rows_of_memory_are_asked_once_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    plain = demands.Below.__call__
    counted = lambda self, values: (looks.append(values.size), plain(self, values))[0]  # noqa: E731
    monkeypatch.setattr(demands.Below, "__call__", counted)
    whole = Tensor([[0, 1, 2], [2, 1, 9]]).realize()
    for _ in range(3):
        demand_labels("op", whole[0].node, 3, -100)
        demand_index("op", whole[0, 1:].node, 3, 0)
        with pytest.raises(AxisError, match="label 9"):
            demand_labels("op", whole[1].node, 3, -100)
    assert looks == [3, 2, 3, 3, 3]
    whole[0, 1] = 4
    for _ in range(2):
        with pytest.raises(AxisError, match="label 4"):
            demand_labels("op", whole[0].node, 3, -100)
