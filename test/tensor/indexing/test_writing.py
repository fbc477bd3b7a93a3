"""Writing by index against PyTorch: every pattern of indices, reduction, dtype; the same bits."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from picograd import Tensor, explain
from picograd.errors import AxisError, DTypeError
from picograd.nn import functional

torch = pytest.importorskip("torch")
ROWS, COUNT = 50, 300  # on CUDA: a block sorts the updates; LONG takes a radix sort
LONG = 9000


def indices(pattern: str, count: int, size: int = ROWS) -> Any:
    random = np.random.default_rng(1)
    found = random.integers(0, size, count)
    return {
        "random": found,
        "same": np.full(count, 7),
        "sorted": np.sort(found),
        "reversed": np.sort(found)[::-1].copy(),
        "two": np.where(found % 2, 0, size - 1),
        "none": found[:0],
        "one": found[:1],
    }[pattern]


def draw(*shape: int, dtype: str = "float32") -> Any:
    random = np.random.default_rng(len(shape))
    values = random.integers(1, 4, shape) / (2 if dtype.startswith("float") else 1)
    return values.astype(dtype)


def test_a_mask_that_is_wider(device: str) -> None:
    x, mask, source = draw(4), draw(3, 4) > 1, draw(3, 4)
    found = Tensor(x, device=device).masked_scatter(
        Tensor(mask, device=device), Tensor(source, device=device)
    )
    wanted = torch.tensor(x).masked_scatter(torch.tensor(mask), torch.tensor(source))
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("pattern", ["random", "same", "sorted", "reversed", "two", "none", "one"])
def test_patterns(pattern: str, device: str) -> None:
    for count in (COUNT, LONG):
        index = indices(pattern, count)
        for rest in ((), (3,)):
            base, values = draw(ROWS, *rest), draw(len(index), *rest)
            t = [Tensor(each, device=device) for each in (base, index, values)]
            r = [torch.from_numpy(each) for each in (base, index, values)]
            added = t[0].index_add(0, t[1], t[2])
            wanted = r[0].index_add(0, r[1], r[2])
            np.testing.assert_array_equal(added.numpy(), wanted)  # sums of halves are exact
        written = Tensor(base, device=device)
        written[t[1]] = t[2]
        expected = base.copy()
        expected[index] = values  # NumPy: the last one wins
        np.testing.assert_array_equal(written.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
@pytest.mark.parametrize("mode", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(mode: str, dtype: str, device: str) -> None:
    index = indices("random", 60, 20)
    base, values = draw(20, dtype=dtype), draw(60, dtype=dtype)
    for include_self in (True, False):
        t = [Tensor(each, device=device) for each in (base, index, values)]
        r = [torch.from_numpy(each) for each in (base, index, values)]
        found = t[0].scatter_reduce(0, t[1], t[2], mode, include_self=include_self)
        wanted = r[0].scatter_reduce(0, r[1], r[2], mode, include_self=include_self)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=3e-3)


@pytest.mark.parametrize("mode", ["sum", "prod", "amax"])
def test_gradients(mode: str, device: str) -> None:
    index = indices("random", 60, 20)
    results = []
    for make, where in ((torch.tensor, "cpu"), (Tensor, device)):
        base, values = (
            make(each, requires_grad=True, device=where) for each in (draw(20), draw(60))
        )
        made = base.scatter_reduce(0, make(index, device=where), values, mode)
        (made * made).sum().backward()
        results.append([base.grad.tolist(), values.grad.tolist()])
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("pattern", ["random", "same"])
def test_embedding_gradient_is_the_same_in_every_run(pattern: str, device: str) -> None:
    index = indices(pattern, LONG)
    random = np.random.default_rng(0)
    given = random.normal(size=(LONG, 8)).astype(np.float32)
    bits = set()
    for _ in range(5):
        table = Tensor.zeros(ROWS, 8, device=device, requires_grad=True)
        found = functional.embedding(Tensor(index, device=device), table)
        (found * Tensor(given, device=device)).sum().backward()
        assert table.grad is not None
        bits.add(table.grad.numpy().tobytes())
    assert len(bits) == 1
    exact = np.zeros((ROWS, 8))
    np.add.at(exact, index, given.astype(np.float64))
    np.testing.assert_allclose(table.grad.numpy(), exact, rtol=1e-3, atol=1e-2)


def test_short_runs_have_the_bits_of_the_cpu(device: str) -> None:
    """Runs of fewer than 32 updates are added one by one, after the base, on every device."""
    index = np.arange(6000) % 400 * 200  # more places than a block has room for: no bins
    values = np.random.default_rng(0).normal(size=6000).astype(np.float32)
    expected = np.ones(80_000, np.float32)
    np.add.at(expected, index, values)
    for name in {"cpu", device}:
        base = Tensor.ones(80_000, device=name)
        found = base.index_add(0, Tensor(index, device=name), Tensor(values, device=name))
        np.testing.assert_array_equal(found.numpy(), expected)


WIDENED = [
    lambda index, s: index.reshape(-1, 1).expand(s.shape),
    lambda index, s: index.reshape(-1, 1).repeat(1, s.shape[1]),
    lambda index, s: index.reshape(-1, 1).expand(s.shape[0], s.shape[1] - 2),  # not whole rows
]


@pytest.mark.parametrize("widened", WIDENED)
def test_an_index_that_is_one_for_each_row(widened: Any, device: str) -> None:
    base, index, values = draw(ROWS, 5), indices("random", COUNT), draw(COUNT, 5)
    found, wanted = [], []
    for results, make in ((found, partial(Tensor, device=device)), (wanted, torch.tensor)):
        x, i, s = (make(each) for each in (base, index, values))
        at = widened(i, s)
        x.requires_grad_()
        results += [x.scatter_reduce(0, at, s, how) for how in ("sum", "mean", "amax")]
        results.append(x.gather(0, at))
        results[-1].square().sum().backward()
        results.append(x.grad)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-6)
    wrong, host = Tensor(index * 0 + ROWS, device="cpu"), partial(Tensor, device="cpu")
    with pytest.raises(AxisError, match=f"index {ROWS} is out of range for axis 0"):
        host(base).scatter_add(0, widened(wrong, host(values)), host(values))


def test_whole_rows_are_sorted_once_on_a_gpu() -> None:
    base, index, values = (
        Tensor(each) for each in (draw(8000, 9), indices("random", LONG), draw(LONG, 9))
    )
    plans = [
        explain(found, "cuda").split("== Plan")[1].split("\n  roots")[0]
        for found in (
            base.index_add(0, index, values),
            base.scatter_add(0, WIDENED[0](index, values), values),
            base.scatter_add(0, WIDENED[1](index, values), values),
        )
    ]
    assert plans[0] == plans[1] == plans[2]


def test_a_place_filled_twice_counts_once() -> None:
    value = Tensor(2.0, requires_grad=True)
    filled = Tensor.zeros(2, 3).index_fill(1, Tensor([0, 0, 1]), value)
    assert filled.tolist() == [[2, 2, 0]] * 2
    (filled * Tensor([1.0, 10.0, 100.0])).sum().backward()
    assert value.grad.item() == 22


def test_a_number_is_copied_to_one_place() -> None:
    row = Tensor.zeros(3).index_copy(0, Tensor([1]), Tensor([5.0])[0])
    assert row.tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
def test_complex_numbers_that_cannot_be_reduced_into_places_are_refused_at_once(reduce) -> None:
    """Refused when they were planned, they made an error of all that was computed with them."""
    x, at = Tensor([1 + 2j, 3 - 1j]), Tensor([0, 1])
    op = reduce.removeprefix("a")
    with pytest.raises(DTypeError, match=f"scatter_reduce: {op} of complex64"):
        x.scatter_reduce(0, at, x, reduce)
    assert x.scatter_reduce(0, at, x, "sum").tolist() == [2 + 4j, 6 - 2j]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "how, keeps", list(itertools.product(("mean", "amax", "prod"), (True, False)))
)
def test_what_an_index_repeats_is_counted_once(axis: int, how: str, keeps: bool) -> None:
    """Along an axis before or behind that of the places, whole or not."""
    base, values = draw(6, 7), draw(6, 7)
    for few in ((6, 1), (1, 7)):
        index = np.random.default_rng(3).integers(0, 4, few)
        for size in ((6, 7), (6, 5), (4, 7)):
            if any(one > other for one, other in zip(few, size)):
                continue
            found = Tensor(base).scatter_reduce(
                axis, Tensor(index).expand(*size), Tensor(values), how, include_self=keeps
            )
            wanted = torch.tensor(base).scatter_reduce(
                axis,
                torch.tensor(index).expand(size),
                torch.tensor(values),
                how,
                include_self=keeps,
            )
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_a_mean_counts_rows_on_a_gpu(cpu_by_default: None) -> None:
    base, index, values = (
        Tensor(each) for each in (draw(8000, 9), indices("random", LONG), draw(LONG, 9))
    )
    at = WIDENED[0](index, values)
    mean = base.scatter_reduce(0, at, values, "mean", include_self=False)
    plan = explain(mean, "cuda").split("== Plan")[1].split("\n  roots")[0]
    sums = [line.split()[0] for line in plan.splitlines() if "bin_sums" in line]
    assert [name.split("_")[-1] for name in sums] == ["8000x1", "8000x9"], "counts are of rows"
