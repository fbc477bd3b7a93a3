"""Tensor maps: what the bulk copy engine of Hopper must know of an array, encoded by the driver.

A map holds an address. The launches of a tape own one buffer of 128 bytes for each of their maps,
which their parameters point to; it is encoded again only where the address of its slot has changed.
The driver copies parameters at launch, and into a graph that it captures.
"""

import ctypes
from typing import Any

from picograd.code import TensorMap, Windows
from picograd.runtime.driver import Driver

MAP_BYTES, MAP_ALIGNMENT = 128, 64  # of a CUtensorMap (cuda.h)
LINE_BYTES = 128  # of the L2 cache
TYPES = {
    "bool": "CU_TENSOR_MAP_DATA_TYPE_UINT8",
    "bfloat16": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
    "float16": "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
    "float32": "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
    "float8_e4m3fn": "CU_TENSOR_MAP_DATA_TYPE_UINT8",
    "float8_e5m2": "CU_TENSOR_MAP_DATA_TYPE_UINT8",
}


class EncodedMap:
    """One tensor map of one launch: `address` of the bytes that the kernel gets."""

    __slots__ = ("address", "driver", "encoded_for", "keep", "slot", "tensor")
    encoded_for: int
    slot: int

    def __init__(self, driver: Driver, tensor: TensorMap, slot: int) -> None:
        """Reserve a map of what entry `slot` of the table of addresses points to."""
        self.driver, self.tensor, self.slot, self.encoded_for = driver, tensor, slot, -1
        self.keep = (ctypes.c_ubyte * (MAP_BYTES + MAP_ALIGNMENT))()
        start = ctypes.addressof(self.keep)
        self.address: int = start + -start % MAP_ALIGNMENT

    def update(self, address: int) -> None:
        """Encode the map again if its slot has moved to another address."""
        if address != self.encoded_for:
            made = encode(self.driver, self.tensor, address)
            ctypes.memmove(self.address, int(made.getPtr()), MAP_BYTES)
            self.encoded_for = address


def encode(driver: Driver, tensor: TensorMap, address: int) -> Any:
    """Encode a tensor map of an array at an address."""
    module, size = driver.module, tensor.dtype.itemsize
    rank, windows = len(tensor.sizes), tensor.windows
    steps = (1, *windows.steps, 1) if windows else (1,) * rank
    head = (
        getattr(module.CUtensorMapDataType, TYPES[tensor.dtype.name]),
        rank,
        address + tensor.offset * size,
        [module.cuuint64_t(count) for count in tensor.sizes],
        [module.cuuint64_t(stride * size) for stride in tensor.strides],
    )
    # Rows that begin between lines touch two of them for a box: a pair for each is too much.
    has_lines = all(n * size % LINE_BYTES == 0 for n in (tensor.offset, *tensor.strides))
    promoted = "L2_256B" if has_lines else "L2_128B"
    tail = (
        [module.cuuint32_t(step) for step in steps],
        module.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        module.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        getattr(module.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promoted}"),
        module.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if windows is None:
        box = [module.cuuint32_t(count) for count in tensor.box]
        return driver.call("cuTensorMapEncodeTiled", *head, box, *tail)
    corners = list(windows.first), window_ends(tensor, windows)
    return driver.call("cuTensorMapEncodeIm2col", *head, *corners, *tensor.box, *tail)


def window_ends(tensor: TensorMap, windows: Windows) -> list[int]:
    """Find where the last window begins along each dimension, from the last element on."""
    rows = zip(windows.first, windows.counts, windows.steps, tensor.sizes[1:])
    return [first + (count - 1) * step + 1 - size for first, count, step, size in rows]
