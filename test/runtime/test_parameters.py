import ctypes
from typing import Any

import numpy as np
import pytest

from picograd.code import TensorMap, Windows
from picograd.dtype import bfloat16, float16, float32, int32
from picograd.errors import DeviceError, InternalError
from picograd.runtime.device import Tape, TapeLaunch
from picograd.runtime.driver import Driver
from picograd.runtime.parameters import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    EncodedMap,
    cell,
    encode,
    packer,
    unrolled_launches,
)


def test_scalars_take_their_c_type():
    assert [cell(dtype) for dtype in (float32, int32, float16)] == ["f4x", "i4x", "e6x"]
    with pytest.raises(InternalError, match="bfloat16 scalar"):
        cell(bfloat16)


def test_numbers_beyond_those_of_a_dtype_are_infinite():
    table = (ctypes.c_uint64 * 3)()
    packer((float32, float16, int32))(table, 0, -1e300, 70000.0, 7)
    found = np.frombuffer(table, np.uint8).reshape(3, 8)
    assert found[0].view(np.float32)[0] == -np.inf and found[1].view(np.float16)[0] == np.inf
    assert found[2].view(np.int32)[0] == 7


class Names:
    """This class stands for the driver's enumerations: a name is its own value."""

    def __getattr__(self, name: str) -> str:
        return name


class Encoded:
    """This class is what the driver returns: bytes somewhere."""

    def __init__(self, fill: int) -> None:
        self.content = (ctypes.c_ubyte * MAP_BYTES)(*[fill] * MAP_BYTES)

    def getPtr(self) -> int:
        return ctypes.addressof(self.content)


class Double:
    """This class is a driver that notes what it is asked to encode."""

    CUtensorMapDataType = CUtensorMapInterleave = CUtensorMapSwizzle = Names()
    CUtensorMapL2promotion = CUtensorMapFloatOOBfill = Names()
    cuuint64_t = cuuint32_t = int

    def __init__(self) -> None:
        self.asked: list[tuple] = []
        self.status = 0

    def cuTensorMapEncodeTiled(self, *args):
        self.asked.append(args)
        return self.status, Encoded(len(self.asked))

    cuTensorMapEncodeIm2col = cuTensorMapEncodeTiled


MAP = TensorMap(1, bfloat16, 8, (64, 100, 3), (64, 6400), (64, 128, 1))


def test_sizes_are_counted_in_elements_and_strides_in_bytes():
    double = Double()
    encode(Driver(double), MAP, 4096)
    kind, rank, address, sizes, strides, box, steps, *rest = double.asked[0]
    assert kind == "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16" and rank == 3
    assert address == 4096 + 16 and sizes == [64, 100, 3] and strides == [128, 12800]
    assert box == [64, 128, 1] and steps == [1, 1, 1]
    assert "CU_TENSOR_MAP_SWIZZLE_128B" in rest
    encode(Driver(double), TensorMap(0, float32, 0, (32, 8), (32,), (32, 8)), 0)
    assert double.asked[1][0] == "CU_TENSOR_MAP_DATA_TYPE_FLOAT32"


def test_rows_that_begin_between_lines_fetch_one_line():
    double = Double()
    for stride in (128, 72):
        encode(Driver(double), TensorMap(1, bfloat16, 0, (64, 100), (stride,), (64, 128)), 0)
    lines, between = (each[-2] for each in double.asked)
    assert lines.endswith("L2_256B") and between.endswith("L2_128B")


def test_windows_are_told_by_their_corners():
    """Three windows from -1 on, two apart, of five positions: the last begins at 3, 1 from 4."""
    double = Double()
    windows = Windows((-1, 0), (3, 4), (2, 1))
    tensor = TensorMap(0, bfloat16, 0, (64, 5, 6, 7), (64, 320, 1920), (64, 128), windows)
    encode(Driver(double), tensor, 4096)
    _, rank, _, sizes, strides, lower, upper, channels, count, steps, *_ = double.asked[0]
    assert rank == 4 and sizes == [64, 5, 6, 7] and strides == [128, 640, 3840]
    assert lower == [-1, 0] and upper == [-1 + 2 * 2 + 1 - 5, 0 + 3 + 1 - 6]
    assert (channels, count) == (64, 128) and steps == [1, 2, 1, 1]


def test_a_map_is_encoded_again_only_where_the_address_changed():
    double = Double()
    made = EncodedMap(Driver(double), MAP, 5)
    assert made.slot == 5 and made.address % MAP_ALIGNMENT == 0
    contents = []
    for address in (256, 256, 512, 512, 256):
        made.update(address)
        contents.append(ctypes.string_at(made.address, MAP_BYTES)[0])
    assert contents == [1, 1, 2, 2, 3] and len(double.asked) == 3


def test_what_the_driver_refuses_is_an_error():
    double = Double()
    double.status = 1
    with pytest.raises(DeviceError, match="cuTensorMapEncodeTiled failed"):
        EncodedMap(Driver(double), MAP, 0).update(3)


def test_steps_of_a_loop_wait_for_all_of_the_step_before():
    """Two products side by side, then what reads both: its slots are those of its step."""
    kernel: Any = object()
    reads = [((0, 2), ()), ((1, 3), ()), ((2, 3, 4), (0, 1))]
    launches = tuple(TapeLaunch(kernel, slots, waits=waits) for slots, waits in reads)
    found = unrolled_launches(Tape(launches, 5, ()), 2)
    assert [each.waits for each in found] == [(), (), (0, 1), (2,), (2,), (3, 4)]
    assert [each.slots for each in found[3:]] == [(5, 7), (6, 8), (7, 8, 9)]
