"""What the array API asks about names, dtypes and devices."""

import inspect

import pytest

from picograd import Tensor
from picograd import array_api as xp

NAMES = """
    abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype
    atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip
    concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff
    divide empty empty_like equal exp expand_dims expm1 eye finfo flip floor
    floor_divide from_dlpack full full_like greater greater_equal hypot iinfo imag
    isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum
    mean meshgrid min minimum moveaxis multiply negative nextafter nonzero not_equal
    ones ones_like permute_dims positive pow prod real reciprocal remainder repeat
    reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square
    squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril
    triu trunc unique_all unique_counts unique_inverse unique_values unstack var vecdot
    where zeros zeros_like
"""


def test_every_name_is_there() -> None:
    assert set(NAMES.split()) <= set(xp.__all__) and all(hasattr(xp, name) for name in xp.__all__)
    assert all(inspect.getdoc(getattr(xp, name)) for name in NAMES.split())
    for part in (xp.linalg, xp.fft):
        assert all(callable(getattr(part, name)) for name in part.__all__)


def test_tensors_know_the_namespace() -> None:
    x = Tensor([1.0])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2022.12") is xp
    assert x.to_device("cpu").device == "cpu"
    with pytest.raises(ValueError):
        x.__array_namespace__(api_version="1999.12")


def test_kinds_of_dtypes() -> None:
    assert xp.isdtype(xp.uint8, "unsigned integer") and xp.isdtype(xp.int8, ("bool", "integral"))
    assert xp.isdtype(xp.complex64, "numeric") and not xp.isdtype(xp.bool, "numeric")
    with pytest.raises(ValueError):
        xp.isdtype(xp.int8, "whole")
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["complex floating"] is xp.complex64
    assert list(info.dtypes(kind="real floating")) == ["float32", "float64"]
    assert info.default_device() in info.devices() and info.capabilities()["boolean indexing"]
    assert xp.finfo(xp.complex64).bits == 32 and xp.iinfo(Tensor([1])).max == 2**63 - 1
