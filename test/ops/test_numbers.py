"""Python numbers beside integer tensors: what is filled in must fit, what is an operand wraps."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.errors import PicogradError
from picograd.graph.interpret import interpret

torch = pytest.importorskip("torch")

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64")
VALUES = (
    math.inf, -math.inf, math.nan, 300, -1, -128, -129, -200, -256, 255, 256, 2**31, 2**32,
    -(2**63), 1.7, -1.7, 1e10, 1e30, -0.5, 70000, 5, True,
)  # fmt: skip
Function = Callable[..., Any]


pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def assigned(x: Any, items: Any, value: Any) -> Any:
    x[items] = value
    return x


def pair(lib: Any, dtype: Any) -> Any:
    return lib.tensor([1, 0], dtype=dtype)


FILLS: dict[str, Function] = {
    "tensor": lambda lib, v, d: lib.tensor(v, dtype=d),
    "list": lambda lib, v, d: lib.tensor([v, v], dtype=d),
    "full": lambda lib, v, d: lib.full((2,), v, dtype=d),
    "full_like": lambda lib, v, d: lib.full_like(pair(lib, d), v),
    "new_full": lambda lib, v, d: pair(lib, d).new_full((2,), v),
    "fill_": lambda lib, v, d: pair(lib, d).fill_(v),
    "masked_fill": lambda lib, v, d: pair(lib, d).masked_fill(lib.tensor([True, False]), v),
    "index_fill": lambda lib, v, d: pair(lib, d).index_fill(0, lib.tensor([0]), v),
    "item": lambda lib, v, d: assigned(pair(lib, d), 0, v),
    "slice": lambda lib, v, d: assigned(pair(lib, d), slice(None), v),
    "mask": lambda lib, v, d: assigned(pair(lib, d), lib.tensor([True, False]), v),
    "positions": lambda lib, v, d: assigned(pair(lib, d), lib.tensor([1]), v),
    "where": lambda lib, v, d: lib.where(lib.tensor([True, False]), pair(lib, d), v),
    "diagonal": lambda lib, v, d: lib.zeros(2, 2, dtype=d).fill_diagonal_(v),
    "exponent": lambda lib, v, d: pair(lib, d) ** v,
}
OPERANDS: dict[str, Function] = {
    "add": lambda lib, v, d: pair(lib, d) + v,
    "mul": lambda lib, v, d: pair(lib, d) * v,
    "or": lambda lib, v, d: pair(lib, d) | v,
    "and": lambda lib, v, d: v & pair(lib, d),
    "add_": lambda lib, v, d: pair(lib, d).add_(v),
    "clamp": lambda lib, v, d: lib.clamp(pair(lib, d), max=v),
    "clamp min": lambda lib, v, d: lib.clamp(pair(lib, d), min=v),
    "fmod": lambda lib, v, d: lib.fmod(lib.tensor([100, -7]).to(d), v),
}


def answer(function: Function, lib: Any, value: Any, dtype: str) -> Any:
    try:
        return function(lib, value, getattr(lib, dtype))
    except (RuntimeError, TypeError, PicogradError, ZeroDivisionError) as error:
        return error


def same(ours: Any, theirs: Any, context: Any) -> None:
    assert not isinstance(ours, Exception), (context, ours)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch."), context
    np.testing.assert_array_equal(interpret([ours._node])[0], theirs.numpy(), str(context))


@pytest.mark.parametrize("name", FILLS)
def test_what_is_filled_in_fits_or_raises(name: str) -> None:
    for dtype in DTYPES:
        for value in VALUES:
            theirs = answer(FILLS[name], torch, value, dtype)
            ours = answer(FILLS[name], picograd, value, dtype)
            if name == "exponent" and dtype == "bool":
                continue  # picograd has no powers of bools
            if isinstance(theirs, Exception):
                assert isinstance(ours, RuntimeError), (dtype, value, ours, theirs)
            else:
                same(ours, theirs, (dtype, value))


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_wrap(name: str) -> None:
    for dtype in DTYPES:
        for value in VALUES:
            theirs = answer(OPERANDS[name], torch, value, dtype)
            if not isinstance(theirs, Exception):
                same(answer(OPERANDS[name], picograd, value, dtype), theirs, (dtype, value))


def test_comparisons_do_not_wrap() -> None:
    x = picograd.tensor([0, 255], dtype="uint8")
    assert (x == 256).tolist() == [False, False] and (x < 256).tolist() == [True, True]
    assert (x > -1).tolist() == [True, True] and (x != -1).tolist() == [True, True]
    whole = picograd.tensor([2**63 - 1, -(2**63)])
    assert (whole < 2**63).tolist() == [True, True]
    assert (whole >= -(2**63) - 1).tolist() == [True, True]
    assert operator.gt(2**70, whole).tolist() == [True, True]


def test_padding_and_constants() -> None:
    with pytest.raises(RuntimeError, match="pad: -inf cannot be converted to int64"):
        picograd.nn.functional.pad(picograd.tensor([1, 2]), (1, 1), value=-math.inf)
    with pytest.raises(RuntimeError, match="inf cannot be converted to int32"):
        picograd.nn.init.constant_(picograd.zeros(2, dtype="int32"), math.inf)
    with pytest.raises(TypeError, match="fill_value must be an int"):
        picograd.tensor([1, 0]).nonzero_static(size=2, fill_value=-1.5)  # type: ignore[arg-type]


def test_the_largest_numbers() -> None:
    assert picograd.tensor(2**64 - 1, dtype="uint64").item() == 2**64 - 1
    assert picograd.tensor([2**64 - 1, 1], dtype="uint64").tolist() == [2**64 - 1, 1]
    assert (picograd.full((1,), 2**64 - 1, dtype="uint64") - 1).item() == 2**64 - 2
    for wrong in (2**63, [2**63], -(2**63) - 1):
        with pytest.raises(RuntimeError, match="does not fit int64"):
            picograd.tensor(wrong)
    with pytest.raises(RuntimeError):
        picograd.tensor(2**64, dtype="uint64")


def test_arrays_convert_as_numpy_does() -> None:
    assert picograd.tensor(np.array([300]), dtype="uint8").tolist() == [44]


def test_kernels_agree() -> None:
    assert (picograd.tensor([5], dtype="uint8") + 300).tolist() == [49]
    assert (picograd.tensor([5], dtype="int32") | 0xFFFFFFFF).tolist() == [-1]
    assert picograd.tensor([1.0, 2.0]).clamp(max=math.nan).isnan().tolist() == [True, True]


def test_scalars_are_searched_for_in_their_own_dtype() -> None:
    ordered = picograd.tensor([1, 2, 3])
    assert ordered.searchsorted(2.5).item() == 2
    assert picograd.tensor([1, 2], dtype="uint8").searchsorted(300).item() == 2
