"""Sorts: keys, permutations, runs."""

from collections.abc import Callable

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.buffer import Buffer, Storage
from picograd.dtype import (
    DType,
    bfloat16,
    bool_,
    dtype_named,
    float16,
    float32,
    int64,
    uint32,
    uint64,
)
from picograd.graph import sorting
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.graph.sorting import along, nth, ordered_keys, selected, sort
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

SPECIAL = np.array([np.nan, 1, -0.0, 0.0, np.inf, -np.inf, -1, 1e-40, -np.nan, 2, -1, 0])
CUDA = cuda_target("sm_90a")
DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64"]
DTYPES += ["uint8", "uint16", "uint32", "uint64", "bool"]


def reference(x: np.ndarray, axis: int, is_descending: bool) -> np.ndarray:
    """Sort stably with NaN as the greatest."""
    if not is_descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.flip(x, axis)
    return np.flip(x.shape[axis] - 1 - np.argsort(turned, axis=axis, kind="stable"), axis)


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_numpy(dtype: str, is_descending: bool) -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, 5, (4, 30)).astype(dtype)
    if dtype.startswith("float"):
        with np.errstate(all="ignore"):
            x = random.permuted(np.tile(SPECIAL, (4, 3)), axis=1).astype(dtype)
    elif dtype.startswith("int"):
        x[:, ::3] = np.iinfo(dtype).min
    for axis in (0, 1):
        found = value(sort(leaf(x), axis, is_descending))
        np.testing.assert_array_equal(found, reference(x, axis, is_descending))


def test_keys_order_like_the_elements() -> None:
    x = np.array([-np.inf, -2, -1, -0.0, 0.0, 0.5, np.inf, np.nan])
    keys = value(ordered_keys(leaf(x, bfloat16), False))
    assert (np.diff(keys.astype(np.int64)) >= 0).all() and keys[3] == keys[4]


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [((100,), 0, float32), ((3, 37), 1, float16), ((37, 3), 0, int64), ((70,), 0, bool_)],
)
def test_long_rows_on_cuda_are_sorted_by_digits(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    axis: int,
    dtype: DType,
    is_descending: bool,
) -> None:
    monkeypatch.setattr(sorting, "BLOCK_RUN", 8)
    monkeypatch.setattr(sorting, "RADIX_TILE", 16)
    x = np.random.default_rng(0).integers(-9, 9, shape)
    x = x * (1 << 40) + x if dtype is int64 else x > 0 if dtype is bool_ else x
    x = x.astype(dtype.numpy)
    held = Buffer("cuda:0", dtype, x.size, 0)
    node = Node("buffer", (), Storage(held), shape, dtype, "cuda:0")
    found = sort(node, axis, is_descending)
    wanted = reference(x, axis, is_descending)
    np.testing.assert_array_equal(interpret([found], values={node: x})[0], wanted)
    plan = schedule([found], cuda_target("sm_90a"))
    np.testing.assert_array_equal(interpret_plan(plan, [x])[0], wanted)
    moved = {slot.dtype for slot in plan.slots if slot.dtype in (uint32, uint64)}
    assert moved == {uint32 if dtype.bits <= 16 else uint64}  # a key and a position in one


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("dtype", [*(d for d in DTYPES if "64" not in d), "bfloat16"])
def test_values_of_long_rows_on_cuda_are_those_of_the_keys(
    monkeypatch: pytest.MonkeyPatch, dtype: str, is_descending: bool
) -> None:
    """To the bit: zeros keep their signs, and NaN what they are."""
    monkeypatch.setattr(sorting, "BLOCK_RUN", 8)
    monkeypatch.setattr(sorting, "RADIX_TILE", 16)
    kind = dtype_named(dtype)
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (3, 40)) if kind is bool_ else random.integers(0, 99, (3, 40)) - 50
    x = x.astype(kind.numpy)
    if kind.is_float:
        with np.errstate(all="ignore"):
            some = SPECIAL[SPECIAL != 1e-40] if kind is bfloat16 else SPECIAL  # as it is rounded
            x = random.choice(some, (3, 40)).astype(kind.numpy)
    node = Node("buffer", (), Storage(Buffer("cuda:0", kind, x.size, 0)), x.shape, kind, "cuda:0")
    order = sort(node, 1, is_descending)
    values = along(node, order, 1)
    plan = schedule([values, order], CUDA)
    found = interpret_plan(plan, [x])
    wanted = np.take_along_axis(x, reference(x, 1, is_descending), 1)
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(wanted))
    heroes = [kernel.hero for kernel in plan.kernels]
    assert heroes.count("map") == 1 and "gather" not in heroes


@pytest.mark.parametrize(
    "read",
    [
        lambda x, order: along(x * -2, order, 1),  # of another array
        lambda x, order: along(x, order.flip((1,)), 1),  # in another order
        lambda x, order: x.gather((order.iota(1), order), (0, 1)),
        lambda x, order: along(x, sort(x, 0), 1),
    ],
)
def test_what_another_order_reads_is_gathered(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Node, Node], Node]
) -> None:
    monkeypatch.setattr(sorting, "BLOCK_RUN", 8)
    x = np.random.default_rng(0).normal(size=(20, 20)).astype("f")
    node = Node(
        "buffer", (), Storage(Buffer("cuda:0", float32, 400, 0)), (20, 20), float32, "cuda:0"
    )
    root = read(node, sort(node, 1))
    (expected,) = interpret([root], values={node: x})
    np.testing.assert_array_equal(interpret_plan(schedule([root], CUDA), [x])[0], expected)


def test_values_are_gathered() -> None:
    x = np.random.default_rng(0).normal(size=(3, 5, 2))
    node = leaf(x)
    np.testing.assert_array_equal(value(along(node, sort(node, 1), 1)), np.sort(x, axis=1))


@pytest.mark.parametrize("dtype", [float32, int64, bool_], ids=repr)
@pytest.mark.parametrize("axis", [0, 1])
def test_nth_is_where_the_sorted_row_has_it(dtype: DType, axis: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (40, 30))
    x = x * (1 << 40) + x if dtype is int64 else x > 0 if dtype is bool_ else x / 2
    x = x.astype(dtype.numpy)
    for rank in (0, 7, 20):
        place = value(nth(leaf(x), axis, rank))
        found = np.take_along_axis(x, place, axis)
        np.testing.assert_array_equal(found, np.sort(x, axis).take([rank], axis))


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("dtype", [float32, int64, uint64], ids=repr)
def test_the_first_are_those_of_the_stable_order(dtype: DType, is_descending: bool) -> None:
    x = np.random.default_rng(0).integers(0, 5, (3, 20)).astype(dtype.numpy)
    x[0, ::3] = np.inf if dtype.is_float else np.iinfo(dtype.numpy).max
    wanted = reference(x, 1, is_descending) if dtype is not uint64 else x.argsort(1, kind="stable")
    if dtype is uint64 and is_descending:
        wanted = np.flip(19 - np.flip(x, 1).argsort(1, kind="stable"), 1)
    for count in (1, 2, 5):
        found = value(selected(leaf(x), 1, count, is_descending))
        np.testing.assert_array_equal(found, wanted[:, :count])
