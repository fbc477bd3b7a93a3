"""DTypes: names, conversion from Python and NumPy, and PyTorch's promotion."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest

from picograd import dtype as dtypes
from picograd.dtype import (
    ALL,
    DType,
    accumulate_dtype,
    category,
    dtype_named,
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
    assert to_dtype(bool) is dtypes.bool_ and to_dtype(int) is dtypes.int64
    assert to_dtype(float) is dtypes.float64 and to_dtype(np.int16) is dtypes.int16
    assert dtype_named("half") is dtypes.float16 and dtype_named("long") is dtypes.int64
    assert dtype_named("float8_e4m3") is dtypes.float8_e4m3fn
    assert dtype_named("short") is dtypes.int16


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


NARROW = (dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2)


def test_narrow_floats_accumulate_in_float32() -> None:
    for dtype in ALL:
        assert dtype.is_narrow_float == (dtype in NARROW)
        assert accumulate_dtype(dtype) is (dtypes.float32 if dtype in NARROW else dtype)


def test_numpy_holds_what_it_lacks_in_float32() -> None:
    lacking = [dtype for dtype in ALL if dtype.numpy != dtype.storage]
    assert lacking == [dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.bfloat16]
    assert all(dtype.numpy == np.float32 for dtype in lacking)


@pytest.mark.parametrize("other", ALL, ids=repr)
def test_complex_numbers_promote_as_in_pytorch(other: DType) -> None:
    torch = pytest.importorskip("torch")
    for own in dtypes.COMPLEX:
        if other.kind == "float8":
            with pytest.raises(DTypeError):
                promote(own, other)
        elif other.name not in ("uint16", "uint32", "uint64"):
            wanted = torch.promote_types(getattr(torch, own.name), getattr(torch, other.name))
            assert f"torch.{promote(other, own).name}" == str(wanted)
    assert dtypes.complex64.real is dtypes.float32 and dtypes.float64.complex is dtypes.complex128
    assert scalar_dtype(1j, other).is_complex and to_dtype(complex) is dtypes.complex128
