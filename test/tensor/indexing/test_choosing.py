"""What a mask chooses of memory of the host is read, written and listed without a plan."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine.plan_cache import PLANS
from picograd.engine.plan_key import leaf_buffer
from picograd.tensor.indexing import choosing

torch = pytest.importorskip("torch")

KINDS = ("float32", "float64", "int64", "uint8", "bool", "bfloat16")


@pytest.fixture(autouse=True)
def on_the_host(device: str) -> None:
    if device != "cpu":
        pytest.skip("the host chooses from its own memory")


def both(data: Any, dtype: str = "float32") -> list[Any]:
    return [library.tensor(data).to(getattr(library, dtype)) for library in (picograd, torch)]


def is_made(x: Any) -> bool:
    return leaf_buffer(x._node) is not None


def plans() -> int:
    return len(PLANS)


@pytest.mark.parametrize("dtype", KINDS)
def test_values(dtype: str) -> None:
    drawn = np.random.default_rng(0)
    given, flags = drawn.integers(-2, 3, (5, 3)), drawn.random((5, 3)) > 0.5
    found = []
    for library, x in zip((picograd, torch), both(given, dtype)):
        masks = [library.tensor(each) for each in (flags, flags[:, 0], flags[:, 0] & False)]
        y = x + x if dtype != "bool" else ~x
        read = [x[each] for each in masks] + [x[:, 1][masks[1]]]
        y[masks[1]] = x[masks[1]]
        y[masks[0]] = True if dtype == "bool" else 1
        y[x != y] = x[0, 0]
        listed = [x.nonzero(), *library.where(masks[0]), *library.where(x > y)]
        found.append([each.float().tolist() for each in (*read, y, *listed)])
    assert found[0] == found[1]


def test_nothing_is_planned() -> None:
    x, labels = Tensor.arange(12).reshape(6, 2).realize(), picograd.tensor([0, 1, 0, 2, 1, 0])
    table = Tensor.zeros(6, 2, dtype=x.dtype).realize()
    before = plans()
    chosen = x[(labels == 0) & (labels < 2)]
    table[labels == 1] = x[labels == 1]
    table[labels == 2] = 7
    (at,) = picograd.where(labels > 0)
    assert is_made(chosen) and is_made(at) and plans() == before
    assert chosen.tolist() == [[0, 1], [4, 5], [10, 11]] and at.tolist() == [1, 3, 4]
    assert table.tolist() == [[0, 0], [2, 3], [0, 0], [7, 7], [8, 9], [0, 0]]


def test_a_mask_is_computed_once_and_is_memory_of_its_own() -> None:
    flags = picograd.tensor([True, False, True])
    mask = flags.clone().to(picograd.bool)
    other = mask | False
    x = picograd.tensor([1.0, 2.0, 3.0])
    assert x[other].tolist() == [1.0, 3.0] and is_made(other)
    copy = flags.clone()
    assert copy.nonzero().tolist() == [[0], [2]]
    flags[0] = False
    assert mask.tolist() == other.tolist() == copy.tolist() == [True, False, True]


def test_constants_are_rounded_to_the_dtype() -> None:
    x = picograd.tensor([0.3, 0.1])
    assert x[x <= 0.3].tolist() == torch.tensor([0.3, 0.1]).tolist()
    assert x[picograd.zeros(2) == 0].tolist() == x.tolist()
    truth = picograd.tensor([0.0, 0.5, float("nan")]).bool()
    assert truth.nonzero().tolist() == [[1], [2]]
    assert picograd.tensor([True, False])[picograd.tensor([True, False]) == 1].tolist() == [True]


def test_what_reads_a_choice_is_computed_before_one_of_another_size() -> None:
    x, labels = picograd.tensor([1.0, 2.0, 4.0]), picograd.tensor([0, 1, 0])
    first = x[labels == 0].sum()
    again = x[labels == 0].sum()  # of one size: one plan for both
    assert not is_made(first) and not is_made(again)
    second = x[labels == 1].sum()
    assert is_made(again) and not is_made(second)
    assert [first.item(), again.item(), second.item()] == [5.0, 5.0, 2.0]


def test_gradients_and_traces_are_recorded() -> None:
    x = picograd.tensor([1.0, 2.0, 4.0], requires_grad=True)
    mask = picograd.tensor([True, False, True])
    (x[mask] * x[mask]).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 0.0, 8.0]
    with pytest.raises(picograd.errors.PicogradError):
        picograd.jit(lambda x, mask: x[mask])(x.detach(), mask)
    y = picograd.tensor([1.0, 2.0, 4.0])
    view = y[1:]
    kept = view * 2  # reads what was there before
    y[mask] = x.detach()[mask] * 3
    assert (y.tolist(), view.tolist(), kept.tolist()) == ([3, 2, 12], [2, 12], [4, 8])
    y[mask] = x[mask]
    assert y.requires_grad


@pytest.mark.parametrize("value", [2.5, picograd.tensor([1.0, 2.0]), picograd.tensor([1, 2, 3])])
def test_what_does_not_fit_is_an_error_or_a_cast(value: Any) -> None:
    y = picograd.tensor([1, 2, 3])
    mask = picograd.tensor([True, True, True])
    theirs = torch.tensor([1, 2, 3])
    given = torch.tensor(value.tolist()) if isinstance(value, Tensor) else value
    try:
        theirs[torch.tensor([True, True, True])] = given
    except (RuntimeError, IndexError):
        with pytest.raises(picograd.errors.PicogradError):
            y[mask] = value
    else:
        y[mask] = value
    assert y.tolist() == theirs.tolist()
    assert choosing.choose(y, picograd.tensor([True, True])) is None  # which `__getitem__` refuses
    with pytest.raises(IndexError):
        y[picograd.tensor([True, True])]


def test_what_was_chosen_chooses_at_once() -> None:
    found = []
    for library, x in zip((picograd, torch), both([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "int64")):
        order = library.tensor([2, 0, 1, -1])
        rest = order[library.tensor([True, True, False, True])]
        chosen = [x[rest], x[rest[1:]], x[rest.reshape(3, 1)], x[:, 1][rest], x[rest[:0]]]
        if library is picograd:
            assert all(map(is_made, chosen)) and not is_made(x[order])
        x[0] = 0  # what was chosen stays
        far = library.where(library.tensor([False] * 5 + [True]))[0]
        with pytest.raises(IndexError):
            x[far].tolist()
        found.append([each.tolist() for each in chosen])
    assert found[0] == found[1]


def test_views_of_a_choice_are_not_computed_for_the_next() -> None:
    x = picograd.tensor([1.0, 2.0, 4.0])
    first = x[x > 1]
    part, total = first[1:], first[1:] * 2
    x[x > 2].sum()
    assert is_made(total) and not is_made(part)
    assert part.tolist() == [4.0] and total.tolist() == [8.0]


def test_a_number_that_was_chosen_keeps_its_memory() -> None:
    """As overlapping boxes are suppressed: NumPy gives a number, not an array, at one place."""
    draw = np.random.default_rng(0)
    left, right = draw.random(40), draw.random(40)
    place = draw.permutation(40)
    x, y, order = map(picograd.tensor, (left, right, place))
    for _ in range(4):
        first, rest = order[0], order[1:]
        found = x[first] * x[rest] + y[first] * y[rest]
        expected = left[place[0]] * left[place[1:]] + right[place[0]] * right[place[1:]]
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
        order, place = rest[found > 0.05], place[1:][expected > 0.05]
