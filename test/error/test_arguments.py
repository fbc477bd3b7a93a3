"""Arguments of wrong types: every public function answers with an error of picograd's."""

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import DTypeError, PicogradError, ShapeError

# These set what later tests would see, or look at whole programs.
SKIPPED = {"explain", "plan", "profile", "fork_rng", "synchronize", "seed", "manual_seed",
           "set_printoptions", "set_rng_state", "set_default_dtype", "settle"}  # fmt: skip
WRONG: tuple[Callable[[], Any], ...] = (
    lambda: 3, lambda: "a", lambda: None, lambda: [1, 2], lambda: {"a": 1}, lambda: object(),
    lambda: np.ones(2), lambda: Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), lambda: Tensor([1, 0]),
    lambda: Tensor(1.0), lambda: Tensor.of([True]), lambda: 2.5,
)  # fmt: skip
ROOMS = {"picograd": picograd, "functional": nn.functional, "linalg": picograd.linalg}


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    for room, module in ROOMS.items():
        for name in module.__all__:
            function = getattr(module, name)
            is_ours = getattr(function, "__module__", "").startswith("picograd")
            if is_ours and inspect.isfunction(function) and name not in SKIPPED:
                yield f"{room}.{name}", function
    for name, function in inspect.getmembers(Tensor, inspect.isfunction):
        if not name.startswith("_") and name not in SKIPPED:
            yield f"Tensor.{name}", function


def count(function: Callable[..., Any]) -> int:
    """Count the arguments a function needs, or one more than none."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    return max(len(needed), 1)


def test_no_raw_error_reaches_the_user() -> None:
    raw = []
    turns = itertools.cycle(WRONG)
    for name, function in public():
        for first in WRONG:
            args = [first(), *(next(turns)() for _ in range(count(function) - 1))]
            try:
                function(*args)
            except PicogradError as error:
                assert error.op and error.problem and error.fix, name
            except Exception as error:
                if not isinstance(error, TypeError) or "argument" not in str(error):
                    raw.append(f"{name}{tuple(map(type, args))}: {error!r}")
        next(turns)
    assert not raw, "\n".join(raw[:20])


@pytest.mark.parametrize(
    ("program", "error", "text"),
    [
        (lambda: nn.functional.relu(3), DTypeError, "must be a Tensor, not int"),
        (lambda: picograd.einsum(3, Tensor([1.0])), PicogradError, "einsum: "),
        (lambda: picograd.linspace(0, 1, 2.5), DTypeError, "linspace: "),
        (lambda: picograd.roll(Tensor([1.0]), "a"), DTypeError, "roll: "),
        (lambda: picograd.randint("a", size=(2,)), DTypeError, "randint: "),
        (lambda: picograd.exp(3), DTypeError, "exp: the input must be a Tensor, not int"),
        (lambda: Tensor([1.0]).add("a"), DTypeError, "must be a Tensor or a number, not str"),
        (lambda: Tensor(1.0).size(3), (PicogradError, IndexError), "size: "),
        (lambda: len(Tensor(1.0)), DTypeError, "a zero-dim tensor has no length"),
        (lambda: bool(Tensor([1.0, 2.0])), ShapeError, "is ambiguous"),
        (lambda: "a" in Tensor([1.0]), DTypeError, "a str is not an element"),
        (lambda: f"{Tensor([1.0, 2.0]):.2f}", DTypeError, "has no format '.2f'"),
        (lambda: complex(Tensor([1.0, 2.0])), ShapeError, "has 2 elements, not one"),
    ],
)
def test_message(program: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error) as caught:
        program()
    assert text in str(caught.value)


X, Z = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1j, 2.0], [3.0, 4.0]])
KINDS: dict[str, Callable[[], Any]] = {
    "diag: diagonal must be an int, not 2.0": lambda: picograd.diag(X, 2.0),
    "diag: diagonal must be an int, not True": lambda: X.diag(True),
    "diagonal: offset must be an int, not 'a'": lambda: X.diagonal("a"),
    "diag_embed: offset must be an int, not 1.5": lambda: picograd.diag_embed(X, 1.5),
    "repeat_interleave: repeats must be an int or a Tensor": lambda: X.repeat_interleave(2.5),
    "nan_to_num: nan must be a number, not a tensor": lambda: X.nan_to_num(X),
    "sum: keepdim must be True or False, not 'a'": lambda: X.sum(0, keepdim="a"),
    "conv_transpose2d: groups must be an int": lambda: nn.functional.conv_transpose2d(
        X[None, None], X[None, None], groups=1.5
    ),
    "fft: n must be an int or None, not 2.0": lambda: picograd.fft.fft(X, 2.0),
    "diagonal: offset must be an int, not 2.0": lambda: picograd.linalg.diagonal(X, offset=2.0),
    "arange: start must be a number, not 1j": lambda: picograd.arange(1j),
    "std: correction=1j is complex": lambda: X.std(correction=1j),
    "inner: the input must be a Tensor, not bool": lambda: X.inner(True),
    "size: takes a tensor, not 3": lambda: Tensor.size(3),
    "mean: [1] is not a dtype": lambda: X.mean(dtype=[1]),
    "float(): a complex64 is no real number": lambda: float(Z[0, 0]),
    "mse_loss: is not defined for complex64": lambda: nn.functional.mse_loss(Z, Z),
}


@pytest.mark.parametrize("text", KINDS)
def test_an_argument_of_another_kind_is_named(text: str) -> None:
    with pytest.raises(DTypeError) as caught:
        values(KINDS[text]())
    assert str(caught.value).startswith(text)


UNORDERED = """
    round floor ceil trunc frac sort argsort max min amax argmin median cummax unique clamp_min relu
    erf lgamma digamma signbit bitwise_not softmax log_softmax histc isneginf
"""


@pytest.mark.parametrize("name", UNORDERED.split())
def test_functions_that_have_no_meaning_for_complex_numbers(name: str) -> None:
    arguments = {"clamp_min": (0,), "softmax": (0,), "log_softmax": (0,)}
    with pytest.raises(DTypeError):
        values(getattr(Z, name)(*arguments.get(name, ())))


def values(found: Any) -> None:
    """Compute what a call gave: an error may come then."""
    for each in found if isinstance(found, tuple) else (found,):
        each.numpy()
