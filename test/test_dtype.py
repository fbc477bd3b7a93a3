"""DTypes: names, conversion from Python and NumPy, and PyTorch's promotion."""

import copy
import dataclasses
import functools
import inspect
import pickle
from itertools import product

import numpy as np
import pytest

import picograd
from picograd.dtype import (
    ALL,
    COMPLEX,
    DType,
    accumulate_dtype,
    bfloat16,
    bool_,
    category,
    complex64,
    complex128,
    dtype_named,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int16,
    int64,
    promote,
    scalar_dtype,
    to_dtype,
)
from picograd.errors import DTypeError


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_names_and_sizes(dtype: DType) -> None:
    assert to_dtype(dtype.name) is dtype and to_dtype(dtype) is dtype
    assert np.dtype(dtype.storage).itemsize == dtype.itemsize == dtype.bits // 8
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
    assert category(dtype) == (2 if dtype.is_float else int(dtype.is_integer))


def test_other_spellings() -> None:
    assert to_dtype(bool) is bool_ and to_dtype(int) is int64
    assert to_dtype(float) is float64 and to_dtype(np.int16) is int16
    assert dtype_named("half") is float16 and dtype_named("long") is int64
    assert dtype_named("float8_e4m3") is float8_e4m3fn
    assert dtype_named("short") is int16


@pytest.mark.parametrize("value", ["float31", "complex32", object(), np.str_])
def test_what_is_no_dtype(value: object) -> None:
    with pytest.raises(DTypeError):
        to_dtype(value)


@pytest.mark.parametrize(("a", "b"), list(product(ALL, ALL)), ids=repr)
def test_promotion_equals_pytorch(a: DType, b: DType) -> None:
    torch = pytest.importorskip("torch")
    try:
        wanted = torch.promote_types(getattr(torch, a.name), getattr(torch, b.name))
    except RuntimeError:  # PyTorch has no common dtype for uint16, 32 or 64 and another integer
        if {a.kind, b.kind} <= {"bool", "uint"}:
            assert promote(a, b).bits == max(a.bits, b.bits) and promote(a, b).kind == "uint"
        elif "float8" not in (a.kind, b.kind) and "uint64" not in (
            a.name,
            b.name,
        ):  # as in NumPy and the array API
            assert promote(a, b).name == np.promote_types(a.numpy, b.numpy).name
        else:
            with pytest.raises(DTypeError, match="no common dtype"):
                promote(a, b)
        return
    assert f"torch.{promote(a, b).name}" == str(wanted)


@pytest.mark.parametrize("value", [True, 3, 1.5])
@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_scalars_raise_only_the_category(dtype: DType, value: object) -> None:
    torch = pytest.importorskip("torch")
    wanted = torch.result_type(torch.zeros(1, dtype=getattr(torch, dtype.name)), value)
    assert f"torch.{scalar_dtype(value, dtype).name}" == str(wanted)


NARROW = (float16, bfloat16, float8_e4m3fn, float8_e5m2)


def test_narrow_floats_accumulate_in_float32() -> None:
    for dtype in ALL:
        assert dtype.is_narrow_float == (dtype in NARROW)
        assert accumulate_dtype(dtype) is (float32 if dtype in NARROW else dtype)


def test_numpy_holds_what_it_lacks_in_float32() -> None:
    lacking = [dtype for dtype in ALL if dtype.numpy != dtype.storage]
    assert lacking == [float8_e4m3fn, float8_e5m2, bfloat16]
    assert all(dtype.numpy == np.float32 for dtype in lacking)


@pytest.mark.parametrize("other", ALL, ids=repr)
def test_complex_numbers_promote_as_in_pytorch(other: DType) -> None:
    torch = pytest.importorskip("torch")
    for own in COMPLEX:
        if other.kind == "float8":
            with pytest.raises(DTypeError):
                promote(own, other)
        elif other.name not in ("uint16", "uint32", "uint64"):
            wanted = torch.promote_types(getattr(torch, own.name), getattr(torch, other.name))
            assert f"torch.{promote(other, own).name}" == str(wanted)
    assert complex64.real is float32 and float64.complex is complex128
    assert scalar_dtype(1j, other).is_complex and to_dtype(complex) is complex128


def test_the_type_of_a_dtype_is_pytorchs_name_of_it() -> None:
    assert type(picograd.float32) is picograd.dtype and isinstance(int64, picograd.dtype)
    assert inspect.isclass(picograd.dtype) and picograd.dtype | None
    shown = functools.singledispatch(lambda value: "other")
    shown.register(picograd.dtype, lambda value: value.name)
    assert shown(picograd.int8) == "int8" and shown(3) == "other"


def test_a_dtype_is_no_dataclass_of_programs() -> None:
    """Trainers walk through dataclasses for the tensors in them, and refuse frozen ones."""
    assert not dataclasses.is_dataclass(picograd.float32)
