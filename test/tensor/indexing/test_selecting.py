"""Index tensors: host indices are checked and wrapped, unknown ones clamped; scatter by axis."""

import sys

import numpy as np
import pytest
from graph_support import leaf
from interpreted_cuda import interpreted_cuda

from picograd import Tensor
from picograd.engine import pending, realize
from picograd.engine.native_calls import NATIVE_AFTER
from picograd.engine.plan_cache import PlanCache
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import AxisError, PicogradError, ShapeError
from picograd.runtime.python_layout import is_possible
from picograd.tensor.indexing import selecting as s

A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "items",
    [([2, -1],), (A > 4,), (slice(None), [0, -1]), ([True, False, True],), ([0, 1], [1, -2])],
)
def test_read(items) -> None:
    arrays = tuple(np.array(i) if isinstance(i, list) else i for i in items)
    np.testing.assert_array_equal(Tensor(A)[items].numpy(), A[arrays])


def test_host_indices_out_of_range_raise() -> None:
    for wrong in (3, -4):
        with pytest.raises(AxisError, match="^take"):
            s.check_values("take", np.array([0, wrong]), 3, 0)
    s.check_values("take", np.array([-3, 2]), 3, 0)
    wrapped = s.host_index("take", np.array([-1, 0]), 3, 0, "cpu")
    assert Tensor([0.0, 1.0, 2.0])[[-1, 0]].tolist() == [2, 0] and wrapped.shape == (2,)


def test_width_of_items() -> None:
    assert s.width(leaf(np.zeros((2, 2), bool))) == 2 and s.width(3) == 1 and s.width(None) == 0


@pytest.mark.parametrize(("how", "wanted"), [(None, 5), ("add", 6), ("multiply", 5), ("amax", 5)])
def test_scatter_reductions(how, wanted) -> None:
    base, index = Tensor([1.0, 1.0]), Tensor([1])
    node = s.scatter("scatter", base.node, 0, index.node, Tensor([5.0]).node, how)
    assert node.shape == (2,)
    more = {"reduce": how} if how else {}
    found = base.scatter(0, index, Tensor([5.0]), **more)
    assert found.tolist() == [1, wanted]


def test_unknown_reduction() -> None:
    one = Tensor([1.0])
    with pytest.raises(PicogradError):
        s.scatter("scatter", one.node, 0, Tensor([0]).node, one.node, "median")


def test_large_masks(device: str) -> None:
    """Where only the number of the elements found comes to the host."""
    for shape, density in (((9000,), 0.5), ((70, 80), 0.01), ((5000,), 0.0), ((4100,), 1.0)):
        values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        mask = np.random.default_rng(1).random(shape) < density
        x, held = Tensor(values, device=device), Tensor(mask, device=device)
        np.testing.assert_array_equal(x[held].numpy(), values[mask])
        np.testing.assert_array_equal(x.masked_select(held).numpy(), values[mask])
        np.testing.assert_array_equal(held.nonzero().numpy(), np.argwhere(mask))


@pytest.mark.parametrize(
    "shape",
    [(), (7,), (3, 4), (3, 40), (2, 3, 5), (2, 3, 17), (0, 20), (20, 0), (2, 0, 3), (4, 16)],
)
@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_places_of_masks_are_those_of_numpy(shape: tuple[int, ...], density: float) -> None:
    """Of short rows and long ones, of none, and of an array that strides through memory."""
    values = np.random.default_rng(0).random(shape) < density
    for mask in (values, values.T, values.astype(np.float32)):
        found = s.places_of(mask)
        assert len(found) == mask.ndim
        for places, wanted in zip(found, np.argwhere(mask).T, strict=True):
            np.testing.assert_array_equal(places, wanted)
        np.testing.assert_array_equal(Tensor(mask.copy()).nonzero().numpy(), np.argwhere(mask))


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("index", [[3, -1, 4, 1], [[3, -1], [4, 1]]])
def test_what_is_out_of_range_is_not_written(monkeypatch: pytest.MonkeyPatch, index) -> None:
    """A GPU writes before the host learns that an index was wrong."""
    with interpreted_cuda(monkeypatch):
        at = Tensor(np.array(index), device="cuda") * 1
        base = Tensor(np.zeros((4, *at.shape[1:]), np.float32), device="cuda").realize()
        with pytest.raises(AxisError, match="out of range"):
            base.scatter_(0, at, 5.0).numpy()
        wanted = np.zeros(base.shape)
        inside = [n for n in np.ndindex(*at.shape) if 0 <= np.array(index)[n] < 4]
        for place in inside:
            wanted[(np.array(index)[place], *place[1:])] = 5.0
        np.testing.assert_array_equal(base.numpy(), wanted)


def calls_of(function) -> int:
    """Count the functions of Python that a call goes through."""
    seen: list[str] = []
    sys.setprofile(lambda frame, event, _: event == "call" and seen.append(frame.f_code.co_name))
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(seen)


@pytest.mark.parametrize("items_of", [lambda i: i, lambda i: slice(i, i + 2), lambda i: (i, 1)])
def test_a_position_that_is_new_takes_no_longer_than_a_known_one(items_of) -> None:
    table = Tensor(np.arange(4000, dtype=np.float32).reshape(1000, 4)).realize()
    for _ in range(20):
        table[items_of(5)]
    known = calls_of(lambda: table[items_of(5)])
    assert calls_of(lambda: table[items_of(777)]) <= known < 80


def test_an_array_without_axes_is_a_number_and_chooses_a_view() -> None:
    x = Tensor.zeros(3, 3)
    x[np.array(1)].add_(1)
    x[:, np.array(-1)].add_(2)
    assert x.tolist() == [[0, 0, 2], [1, 1, 3], [0, 0, 2]]
    assert x[np.array(True)].shape == (1, 3, 3) and x[np.array(0), [0, 1]].shape == (2,)


def test_an_index_without_axes_chooses_of_a_row() -> None:
    x, at = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([1])[0]
    y = x.gather(0, at)
    y.backward()
    assert y.item() == 2.0 and y.shape == () and x.grad.tolist() == [0.0, 1.0, 0.0]
    row = Tensor.zeros(3)
    assert row.scatter(0, at, Tensor([5.0])[0]).tolist() == [0.0, 5.0, 0.0]
    assert row.scatter_add(0, at, Tensor([5.0])[0]).tolist() == row.scatter(0, at, 5.0).tolist()
    with pytest.raises(ShapeError, match="differ in number of axes"):
        Tensor.zeros(3, 3).gather(0, at)


@pytest.mark.usefixtures("on_host")
def test_masks_on_a_gpu_share_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for all elements, so the plans are the same whatever a mask holds."""
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    array = np.random.default_rng(0).random((60, 90), np.float32)
    counts = set()
    with interpreted_cuda(monkeypatch):
        for limit in (0.5, 0.01, 0.99, -0.5, 1.5):
            x, wanted = Tensor(array, device="cuda"), array < limit
            mask = x < limit
            np.testing.assert_array_equal(mask.nonzero().numpy(), np.argwhere(wanted))
            np.testing.assert_array_equal(x[mask].numpy(), array[wanted])
            counts.add(len(realize.PLANS))
        assert len(counts) == 1
        tracked = Tensor(array, device="cuda", requires_grad=True)
        (tracked[tracked < 0.3] * 2).sum().backward()
        assert tracked.grad is not None
        np.testing.assert_array_equal(tracked.grad.numpy(), 2.0 * (array < 0.3))


@pytest.mark.usefixtures("on_host")
def test_few_rows_get_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a mask holds seldom, what was found does not keep room for all elements."""
    array = np.arange(8192, dtype=np.float32)
    with interpreted_cuda(monkeypatch):
        x = Tensor(array, device="cuda")
        for least, most in ((8000.0, 192), (10.0, 8193)):
            buffer = x[x >= least]._node.arg.buffer
            assert buffer.count == 8192 - least and buffer.room == most


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_places_of_a_mask_in_memory_are_found_by_a_known_plan(monkeypatch):
    """As on a GPU: a mask that is there already is no result, and its plan is known by its key."""
    generator = np.random.default_rng(0)
    for number in range(3 * NATIVE_AFTER):
        mask = Tensor(generator.random(100) < 0.4)
        values = Tensor(generator.normal(0, 1, 100).astype(np.float32))
        if number == 2 * NATIVE_AFTER:
            monkeypatch.setattr(pending, "compute_all", None)
        (places,) = s.held(mask._node)
        (chosen,) = s.held(mask._node, values=values._node)
        assert np.array_equal(node_values(places), np.flatnonzero(mask.numpy()))
        assert np.array_equal(node_values(chosen), values.numpy()[mask.numpy()])


def node_values(node):
    return s.computed_values(node)


def test_a_mask_that_waits_is_kept_for_its_tensor():
    values = Tensor(np.arange(100, dtype=np.float32))
    mask = values > 30
    (places,) = s.held(mask._node)
    assert np.array_equal(node_values(places), np.arange(31, 100))
    assert leaf_buffer(mask._node) is not None
