"""What arguments may be: the checks that a signature gives, and the first misfit."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError
from picograd.tensor.core import argument_kinds as kinds


def scaled(x: Any, size: int, factor: float | None = None, *, is_even: bool = False) -> None:
    """A function with a signature."""


NAMES = ("x", "size", "factor", "is_even")
CHECKS = kinds.checks_of(scaled, NAMES)


def look(args: Any, options: Any) -> Any:
    """Look at the arguments of a call."""
    kinds.check_options("scaled", NAMES, CHECKS, options)
    return kinds.check_arguments("scaled", CHECKS, args)


def test_ints_numbers_and_flags_are_checked() -> None:
    assert [each.place for each in CHECKS] == [1, 2, 3]
    for three in (np.int64(3), Tensor.of(3), Tensor.of([3])):
        read = look((None, three, None), {"is_even": True, "factor": None})
        assert read == [None, 3, None] and type(read[1]) is int


# a call with one int, and what PyTorch takes for it: T0 a tensor without axes, T1 one with, N an
# np.int64, B True
X = Tensor.arange(12.0).reshape(3, 4)
CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sum": (X.sum, "T0 T1 N"),
    "sum dim": (lambda n: X.sum(dim=n), "T0 T1 N"),
    "sum of a list": (lambda n: X.sum((n,)), "T0 N"),
    "any": ((X > 0).any, "T0 N"),
    "var": (X.var, "T0 T1 N B"),
    "max": (lambda n: X.max(n).values, "N"),
    "norm": (lambda n: X.norm(2, n), "T0 T1 N"),
    "order": (X.norm, "T0 N B"),
    "argmax": (X.argmax, "T0 N"),
    "squeeze": (lambda n: X[:, :1].squeeze(n), "T0 T1 N"),
    "flip": (X.flip, "T0 T1 N"),
    "roll": (lambda n: X.roll(n, 0), "T0 T1 N"),
    "roll dims": (lambda n: X.roll(1, n), "T0 T1 N"),
    "movedim": (lambda n: X.movedim(n, 0), "T0 N"),
    "topk": (lambda n: X.topk(n).values, "T0 T1 N"),
    "cat": (lambda n: Tensor.cat([X, X], n), "T0 N"),
    "stack": (lambda n: Tensor.stack([X, X], dim=n), "T0 N"),
    "rfft": (lambda n: picograd.fft.rfft(X, n), "T0 T1 N"),
    "pool": (lambda n: picograd.nn.functional.max_pool1d(X, 2, n), "T0 N"),
    "size": (lambda n: picograd.nn.functional.interpolate(X[None], n), "T0 T1 N"),
    "Linear": (lambda n: picograd.nn.Linear(n, 3).weight.shape, "T0 T1 N"),
    "Conv1d": (lambda n: picograd.nn.Conv1d(3, 2, n)(X).shape, "T0 T1 N"),
    "Embedding": (lambda n: picograd.nn.Embedding(n, 3).weight.shape, "T0 T1 N"),
    "GroupNorm": (lambda n: picograd.nn.GroupNorm(1, n)(X[:, :n]).shape, "T0 T1 N"),
    "dropout": (lambda n: picograd.nn.functional.dropout(X, n), "T0 N B"),
    # what a function cannot take as it is, is read, and the function called again
    "max kept": (lambda n: X.max(n, True).values, "T0 N"),
    "cdist": (lambda n: picograd.cdist(X, X, n), "T0 N B"),
    "isclose": (lambda n: picograd.isclose(X, X + 1, rtol=0.0, atol=n), "T0 N B"),
    "pad": (lambda n: picograd.nn.functional.pad(X, (1, 1), value=n), "T0 N B"),
    "scale": (lambda n: picograd.nn.functional.interpolate(X[None], scale_factor=n), "T0 N B"),
    "tensordot": (lambda n: picograd.tensordot(X, X.T, n), "T0 N B"),
    "histogram": (lambda n: picograd.histogram(X, n).hist, "N"),
    "order of a pool": (lambda n: picograd.nn.functional.lp_pool1d(X, n, 2), "T0 N B"),
    "sum_to_size": (lambda n: X[:1].sum_to_size(n, 4), "T0 N"),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_stands_for_an_int_is_read(name: str) -> None:
    call, taken = CALLS[name]
    wanted = call(1)
    ones = {"T0": Tensor.of(1), "T1": Tensor.of([1]), "N": np.int64(1), "B": True}
    for word, one in ones.items():
        if word in taken.split():
            found = call(one)
            same = found == wanted if isinstance(found, tuple) else found.allclose(wanted)
            assert same or word == "B", word
        elif word == "B":
            with pytest.raises(TypeError):
                call(one)


def test_an_array_of_ints_is_a_list_of_them() -> None:
    pool = picograd.nn.functional.adaptive_avg_pool2d
    assert pool(X[None], np.array([2, 1])).allclose(pool(X[None], (2, 1)))


@pytest.mark.parametrize(
    ("args", "options", "text"),
    [
        ((0, 2.0), {}, "size must be an int, not 2.0"),
        ((0, True), {}, "size must be an int, not True"),
        ((0, 1, "a"), {}, "factor must be a number or None, not 'a'"),
        ((0, 1), {"factor": 1j}, "factor must be a number or None, not 1j"),
        ((0, 1), {"is_even": [1]}, "is_even must be True or False, not list"),
    ],
)
def test_what_does_not_fit_is_named(args: Any, options: Any, text: str) -> None:
    with pytest.raises(DTypeError, match="^scaled: ") as caught:
        look(args, options)
    assert text in str(caught.value)


F = picograd.nn.functional


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: X.sum({}), TypeError),  # type: ignore[arg-type]
        (lambda: X.max({0}), TypeError),
        (lambda: X.sum(1 << 70), ValueError),
        (lambda: X.select(0, 1 << 70), ValueError),
        (lambda: F.max_pool1d(X, 2, Tensor.of([2, 2])), TypeError),
        (lambda: X.sum(Tensor.of([0, 1])), TypeError),
        (lambda: F.conv1d(X, Tensor.ones(1, 3, 2), padding=[]), ValueError),
        (lambda: X.histc(4, float("nan"), 1.0), RuntimeError),
        (lambda: F.dropout(X, "a"), TypeError),
        (lambda: picograd.nn.Dropout("a"), TypeError),  # type: ignore[arg-type]
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(call: Callable[[], Any], kind: type) -> None:
    with pytest.raises(kind):
        call()


def test_no_order_is_order_two() -> None:
    assert Tensor.of([3.0, 4.0]).norm(None).item() == 5.0


def listed(sizes: Sequence[int], function: Callable[[], Any], other: int | str) -> None:
    """A function that nobody checks at the door."""


def test_a_misfit_is_found_after_a_failure() -> None:
    assert kinds.misfit("listed", listed, ([1, 2], print, "a"), {}) is None
    for args in (([1.5], print, 1), ([1], 3, 1), ([1], print, 2.5), ([1], print, Tensor.of(1))):
        assert isinstance(kinds.misfit("listed", listed, args, {}), DTypeError)
