"""DLPack capsules: what they hold, who frees them, and which are refused."""

import ctypes
import gc

import numpy as np
import pytest

from picograd.buffer import Buffer
from picograd.dtype import ALL, COMPLEX, float32
from picograd.errors import ExportError
from picograd.runtime import dlpack


def buffer_of(array: np.ndarray) -> Buffer:
    return Buffer("cpu", float32, array.size, array.ctypes.data, array)


def test_round_trip() -> None:
    array = np.arange(6, dtype=np.float32)
    for is_versioned in (True, False):
        found = dlpack.take(dlpack.export(buffer_of(array), (2, 3), is_versioned, False))
        assert (found.shape, found.strides, found.dtype) == ((2, 3), (3, 1), float32)
        assert found.address == array.ctypes.data and (found.kind, found.number) == (1, 0)
        assert found.is_row_major and not found.is_read_only
        assert len(dlpack.EXPORTED) == 1
        del found
        gc.collect()
        assert not dlpack.EXPORTED


def test_unused_capsule_frees_its_memory() -> None:
    calls = []
    capsule = dlpack.export(
        buffer_of(np.ones(2, np.float32)), (2,), True, True, lambda: calls.append(1)
    )
    assert dlpack.EXPORTED
    del capsule
    assert not dlpack.EXPORTED and calls == [1]


def test_capsule_serves_once() -> None:
    capsule = dlpack.export(buffer_of(np.ones(2, np.float32)), (2,), False, False)
    dlpack.take(capsule)
    with pytest.raises(ExportError, match="no unused DLPack capsule"):
        dlpack.take(capsule)
    with pytest.raises(ExportError, match="no unused DLPack capsule"):
        dlpack.take(3)


def test_types_have_a_description_of_their_own() -> None:
    for dtype in (*ALL, *COMPLEX):
        assert dlpack.dtype_of(dlpack.type_of(dtype)) is dtype
    with pytest.raises(ExportError, match="element type 5 of 32 bits x 1 is unknown"):
        dlpack.dtype_of(dlpack.DLDataType(5, 32, 1))  # complex numbers of 16-bit floats


def test_strides_tell_the_order() -> None:
    array = np.zeros((3, 4), np.float32)
    assert dlpack.take(array[1:2, :].__dlpack__()).is_row_major
    assert not dlpack.take(array.T.__dlpack__()).is_row_major
    assert dlpack.take(array[:0].__dlpack__()).is_row_major
    assert ctypes.sizeof(dlpack.DLTensor) == 48
