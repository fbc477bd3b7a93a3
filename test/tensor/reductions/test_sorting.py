"""Sorting, and what is made of it, against PyTorch: values, indices, gradients."""

from typing import Any

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda
from order_support import chosen_device, compare, compare_gradients  # noqa: F401

import picograd
from picograd import Tensor
from picograd.engine.realize import make_plan
from picograd.errors import AxisError, DTypeError, ShapeError, ValueRangeError
from picograd.graph import sorting as graph_sorting
from picograd.graph.node import Node
from picograd.tensor.reductions import sorting

torch = pytest.importorskip("torch")

RANDOM = np.random.default_rng(0)
FLOATS = [RANDOM.normal(size=shape) for shape in ((7,), (3, 5), (4, 3, 6), (40, 70))]
SCALAR, SPECIAL = np.array(2.5), np.array([1.0, np.nan, 3, np.inf, -np.inf, 2, np.nan, -0.0, 0])
TIES = RANDOM.integers(0, 4, (6, 90))
EMPTY = [np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0))]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_sort(axis: int, descending: bool) -> None:
    def call(x: Any) -> Any:
        return x.sort(dim=axis, descending=descending, stable=True)

    for array in (*FLOATS, SCALAR, SPECIAL, *EMPTY):
        compare(call, array)
    for dtype in DTYPES:
        compare(call, TIES.astype(dtype))
    for array in (*FLOATS, SCALAR):
        compare_gradients(call, array)
    compare(lambda x: x.argsort(dim=axis, descending=descending, stable=True), TIES)


def test_long_and_strided_rows() -> None:
    compare(lambda x: x.sort(stable=True), RANDOM.normal(size=50_000))
    compare(lambda x: x.permute(1, 0).sort(dim=0, stable=True), RANDOM.normal(size=(300, 9)))
    compare(lambda x: x.msort(), RANDOM.normal(size=(300, 9)))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("largest", [False, True])
def test_topk_and_kthvalue(axis: int, largest: bool) -> None:
    for array in FLOATS[1:]:
        compare(lambda x: x.topk(2, dim=axis, largest=largest), array)
        compare_gradients(lambda x: x.topk(2, dim=axis, largest=largest), array)
        compare(lambda x: x.kthvalue(2, dim=axis, keepdim=largest), array)
        compare_gradients(lambda x: x.kthvalue(2, dim=axis), array)


def test_median() -> None:
    for array in (*FLOATS, SCALAR, SPECIAL):
        compare(lambda x: x.median(), array)
        compare(lambda x: x.median(dim=-1).values, array)
    for array in FLOATS:
        compare(lambda x: x.median(dim=0, keepdim=True), array)
        compare_gradients(lambda x: x.median(), array)
    assert np.isnan(Tensor(np.zeros(0)).median().item())


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantile(how: str) -> None:
    for array in (*FLOATS, SCALAR, SPECIAL):
        for q in (0.0, 0.37, 0.5, 1.0):
            compare(lambda x, q=q: x.quantile(q, interpolation=how), array)
            compare(lambda x, q=q: x.quantile(q, dim=0, interpolation=how), array)
    compare_gradients(lambda x: x.quantile(0.3, dim=1, interpolation=how), FLOATS[1])


def test_several_quantiles_lead_the_shape() -> None:
    assert Tensor(FLOATS[1]).quantile([], dim=0).shape == (0, *FLOATS[1].shape[1:])
    for array in FLOATS:
        found = Tensor(array).quantile([0.0, 0.25, 1.0], dim=0, keepdim=True).numpy()
        q = torch.tensor([0.0, 0.25, 1.0], dtype=torch.float64)
        wanted = torch.from_numpy(array).quantile(q, dim=0, keepdim=True)
        np.testing.assert_allclose(found, wanted.numpy())


def test_an_index_loaded_under_one_guard_is_not_reused_under_another() -> None:
    found = Tensor([3.0, 1.0, 2.0]).quantile([0.0, 0.5, 1.0], dim=0)
    assert found.tolist() == [1, 2, 3]


def whole_numbers(low: int, high: int, dtype: str = "int64") -> np.ndarray:
    return np.random.default_rng(0).integers(low, high, 700, dtype=dtype)


@pytest.mark.parametrize(
    ("x", "bits"),
    [
        (whole_numbers(5, 90), 8),
        (np.full(701, -3), 8),
        (whole_numbers(-900, 900), 16),
        (whole_numbers(-90_000, 90_000), 32),
        (whole_numbers(1 << 63, (1 << 63) + 70_000, "uint64"), 32),
        (whole_numbers(-(1 << 62), 1 << 62), 64),
        (np.array([-(1 << 63), (1 << 63) - 1] * 300), 64),
    ],
)
def test_unique_on_a_gpu_sorts_by_as_many_digits_as_there_are(
    monkeypatch: pytest.MonkeyPatch, x: np.ndarray, bits: int
) -> None:
    monkeypatch.setattr(graph_sorting, "BLOCK_RUN", 64)
    monkeypatch.setattr(graph_sorting, "RADIX_TILE", 256)
    seen = []
    plain = graph_sorting.radix_sorted

    def noted(keys: Node, bits: int) -> tuple[Node, Node]:
        seen.append(bits)
        return plain(keys, bits)

    monkeypatch.setattr(graph_sorting, "radix_sorted", noted)
    with interpreted_cuda(monkeypatch):
        found = Tensor(x, device=NAME).unique(return_inverse=True, return_counts=True)
        wanted = np.unique(x, return_inverse=True, return_counts=True)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs)
        assert str(found[0].dtype) == str(Tensor(x).dtype) and set(seen) == {bits}


def test_unique() -> None:
    for array in (*FLOATS, SPECIAL, TIES, TIES.astype(bool), *EMPTY):
        compare(lambda x: x.unique(), array)
    for array in (*FLOATS, TIES, TIES.astype(np.uint8)):
        compare(lambda x: x.unique(return_inverse=True, return_counts=True), array)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right: bool) -> None:
    row, rows = np.sort(RANDOM.normal(size=100)), np.sort(RANDOM.normal(size=(5, 33)))
    values = RANDOM.normal(size=(5, 6))
    values[0, :3], values[1, :3] = row[[0, 50, 99]], [np.inf, -np.inf, np.nan]
    for ordered in (row, rows, row[:1], row[:0]):
        found = Tensor(ordered).searchsorted(Tensor(values), right=right).numpy()
        given = torch.from_numpy(np.ascontiguousarray(ordered)), torch.from_numpy(values)
        np.testing.assert_array_equal(found, torch.searchsorted(*given, right=right).numpy())
    assert Tensor([1.0, 3.0]).searchsorted(2.0).item() == 1


def test_bincount_and_histc() -> None:
    for array in (np.array([7, 1, 1]), np.array([], np.int64), TIES.ravel()):
        compare(lambda x: x.bincount(minlength=3), array)
    weights = RANDOM.normal(size=3)
    found = Tensor([7, 1, 1]).bincount(Tensor(weights)).numpy()
    np.testing.assert_allclose(found, np.bincount([7, 1, 1], weights))
    for array in FLOATS:
        compare(lambda x: x.histc(bins=7), array)
        compare(lambda x: x.histc(bins=5, min=-1, max=1), array)


def test_function_spelling() -> None:
    values, indices = picograd.topk(Tensor([1.0, 3.0, 2.0]), 2)
    assert values.tolist() == [3, 2] and indices.tolist() == [1, 2]
    assert picograd.argsort(Tensor([3, 1, 2])).tolist() == [1, 2, 0]


def test_errors() -> None:
    x = Tensor([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueRangeError, match="topk: k=4 does not fit size 3. Fix: use 0 to 3."):
        x.topk(4)
    with pytest.raises(ValueRangeError, match="kthvalue: k=0 does not fit size 3"):
        x.kthvalue(0)
    with pytest.raises(AxisError, match="sort"):
        x.sort(2)
    with pytest.raises(AxisError, match="median: an axis of"):
        Tensor(np.zeros((2, 0))).median(dim=1)
    with pytest.raises(ValueRangeError, match="is not in 0..1"):
        x.quantile(1.5)
    with pytest.raises(DTypeError, match="quantile: needs a float dtype"):
        Tensor([1]).quantile(0.5)
    with pytest.raises(ShapeError, match="differ in leading axes"):
        Tensor(np.zeros((2, 3))).searchsorted(Tensor(np.zeros((3, 3))))
    with pytest.raises(ValueRangeError, match="a number is negative"):
        Tensor([-1]).bincount()


@pytest.mark.parametrize("limit", [8, 0], ids=["selected", "of stretches"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_a_few_of_a_long_row_are_the_first_of_its_order(
    dtype: str, limit: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "SELECTED", (limit, 0))
    monkeypatch.setattr(sorting, "SELECTED_IN_BLOCKS", (limit, 0))
    random = np.random.default_rng(0)
    ends = [[9], [90], [9], [9]] if dtype != "bool" else 2
    x = random.integers(0, ends, (4, 300)).astype(dtype)  # many ties, in stretches and between
    x[3], x[3, 290], x[3, 200] = 4, 1, 7  # the first lie behind ties
    if dtype.startswith("float"):
        x[0, [7, 40]], x[1, 5], x[2, :] = np.nan, -np.inf, -0.0
    t = Tensor(x, device=device)
    for is_largest in (True, False):
        order = t.argsort(dim=1, descending=is_largest, stable=True).numpy()
        for k in (1, 6):
            values, index = t.topk(k, dim=1, largest=is_largest)
            np.testing.assert_array_equal(index.numpy(), order[:, :k])
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order[:, :k], 1))
    columns = Tensor(np.ascontiguousarray(x.T), device=device).topk(6, dim=0)[1]
    np.testing.assert_array_equal(columns.numpy().T, t.argsort(1, True, stable=True).numpy()[:, :6])


def test_the_gradient_of_a_few_goes_to_them(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "SELECTED", (8, 0))
    monkeypatch.setattr(sorting, "SELECTED_IN_BLOCKS", (8, 0))
    x = Tensor(np.random.default_rng(0).permutation(400).astype("f"), device=device)
    x.requires_grad = True
    x.topk(3)[0].sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), (x.numpy() >= 397).astype("f"))


def test_stability_may_be_left_open() -> None:
    assert Tensor([2.0, 1.0]).sort(stable=None).values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_one_of_a_long_row_is_found_without_a_sort(dtype: str) -> None:
    x = np.random.default_rng(0).integers(-500, 500, (40, 600)).astype(dtype)
    if dtype != "int64":
        x[3, 5] = np.nan
        x[4] = -0.0
    ours, theirs = Tensor(x, device="cpu").realize(), torch.from_numpy(x)
    for picked in (lambda x: x.median(1), lambda x: x.kthvalue(30, 1)):
        values, index = picked(ours)
        np.testing.assert_array_equal(values.numpy(), picked(theirs)[0].numpy())
        found = np.take_along_axis(x, index.numpy()[:, None], 1)[:, 0]
        np.testing.assert_array_equal(found, values.numpy())
        plan = make_plan([picked(ours)[0].node])
        assert plan.kernels and all(kernel.hero != "sort" for kernel in plan.kernels)


def test_quantiles_between_an_infinity_and_a_number() -> None:
    x = Tensor([-np.inf, 0.0, 1.0])
    assert [x.quantile(q).item() for q in (0.25, 0.4, 0.75)] == [-np.inf, -np.inf, 0.5]


@pytest.mark.parametrize("axis, is_largest", [(1, True), (1, False), (0, True)])
def test_topk_of_many_short_rows_selects(axis: int, is_largest: bool) -> None:
    """As sorting does: of equal elements the first comes first, and NaN is the greatest."""
    shape = (2048, 20) if axis else (20, 2048)
    values = np.random.default_rng(0).integers(-5, 5, shape).astype(np.float32)
    values[3, 7] = values[5, 0] = np.nan
    for k in (1, 3, 8):
        found, places = Tensor(values).topk(k, axis, largest=is_largest)
        wanted, order = Tensor(values).sort(axis, descending=is_largest)
        np.testing.assert_array_equal(found.numpy(), wanted.narrow(axis, 0, k).numpy())
        np.testing.assert_array_equal(places.numpy(), order.narrow(axis, 0, k).numpy())


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "count", "axis"), [((3, 5000), 7, -1), ((20_000,), 300, 0)])
def test_few_of_long_rows_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, shape: Any, count: int, axis: int, largest: bool
) -> None:
    """Pieces of few stretches are sorted; equal elements, and NaN, come in the stable order."""
    array = np.round(np.random.default_rng(0).normal(size=shape), 1).astype(np.float32)
    array[np.random.default_rng(1).random(shape) < 0.01] = np.nan
    keys = np.where(np.isnan(array), np.inf, array)
    order = np.argsort(-keys if largest else keys, axis, kind="stable")
    wanted = np.take(order, range(count), axis)
    with interpreted_cuda(monkeypatch):
        values, indices = Tensor(array, device="cuda").topk(count, axis, largest)
        np.testing.assert_array_equal(indices.numpy(), wanted)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(array, wanted, axis))


@pytest.mark.usefixtures("on_host")
def test_distinct_elements_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for all: elements that are alike, all others, and one alone."""
    with interpreted_cuda(monkeypatch):
        for size, kinds in ((5000, 40), (5000, 5000), (3, 1)):
            array = np.random.default_rng(0).integers(0, kinds, size) - kinds // 2
            x = Tensor(array, device="cuda")
            wanted = np.unique(array, return_inverse=True, return_counts=True)
            found = picograd.unique(x, return_inverse=True, return_counts=True)
            for each, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(each.numpy(), other)
            np.testing.assert_array_equal(picograd.unique(x).numpy(), wanted[0])


def wide_keys() -> dict[str, Any]:
    """Keys of 64 bits by how many share an upper half: none, few, many, all."""
    random = np.random.default_rng(3)
    lower = random.integers(0, 1 << 32, 400)
    apart = random.permutation(400) << 40
    return {
        "none": apart + lower,
        "pairs": (apart >> 41 << 41) + lower,
        "fives": (random.permutation(400) // 5 << 40) + lower,
        "sixes": (random.permutation(400) // 6 << 40) + lower,
        "sixes in other bytes": (random.permutation(400) // 6 << 40) + lower % 200,
        "all": lower,
        "few and equal": (apart >> 41 << 41) + lower % 2,
        "one": np.full(400, 7),
    }


@pytest.mark.parametrize("name", wide_keys())
def test_keys_of_64_bits_that_share_an_upper_half(name: str) -> None:
    keys = wide_keys()[name]
    for given in (keys, -keys, keys.view(np.float64), keys[:65]):
        order = np.argsort(given, kind="stable")
        np.testing.assert_array_equal(Tensor(given).argsort().numpy(), order)
        np.testing.assert_array_equal(Tensor(given).sort().values.numpy(), given[order])
