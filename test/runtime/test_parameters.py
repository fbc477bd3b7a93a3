import pytest

from picograd.dtype import bfloat16, float16, float32, int32
from picograd.errors import InternalError
from picograd.runtime.parameters import cell


def test_scalars_take_their_c_type():
    assert [cell(dtype) for dtype in (float32, int32, float16)] == ["f4x", "i4x", "e6x"]
    with pytest.raises(InternalError, match="bfloat16 scalar"):
        cell(bfloat16)
