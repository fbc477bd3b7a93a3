"""The kernels that copy boxes, run on the host through a double of the driver, and compiled."""

import ctypes
import subprocess

import numpy as np
import pytest

from picograd.dtype import float32, float64, uint8
from picograd.runtime import box_kernels
from picograd.runtime.cuda import CudaDevice
from picograd.runtime.driver import Driver

pytest.importorskip("cuda.bindings.nvrtc")
HOST = """
#define __global__
struct Place { unsigned x; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
static Place blockIdx, threadIdx;
"""
RUN = """
extern "C" void run_UNIT(unsigned blocks, unsigned threads, void*** p) {
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
      copy_box_UNIT(*(TYPE**)p[0], *(TYPE**)p[1], *(unsigned*)p[2], *(unsigned*)p[3],
                    *(unsigned*)p[4], *(unsigned*)p[5], *(long long*)p[6], *(long long*)p[7],
                    *(long long*)p[8], *(long long*)p[9], *(long long*)p[10], *(long long*)p[11]);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    text = HOST
    for unit, kind in box_kernels.UNITS.items():
        text += box_kernels.kernel(unit, 132).source
        text += RUN.replace("UNIT", str(unit)).replace("TYPE", kind)
    folder = tmp_path_factory.mktemp("boxes")
    (folder / "boxes.cpp").write_text(text)
    command = ["g++", "-O1", "-w", "-shared", "-fPIC", "boxes.cpp", "-o", "boxes.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "boxes.so"))


@pytest.fixture
def device(fake_driver, library):
    module = fake_driver()
    for unit in box_kernels.UNITS:
        run = getattr(library, f"run_{unit}")
        run.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p]
        module.kernels[f"copy_box_{unit}"] = lambda blocks, threads, params, run=run: run(
            blocks, threads, ctypes.addressof(params)
        )
    return CudaDevice(Driver(module), 0)


@pytest.mark.parametrize(
    ("to", "source", "dtype", "unit"),
    [
        ((3, 64, 8), (3, 37, 8), float32, 16),
        ((3, 37, 8), (3, 64, 8), float32, 16),
        ((3, 64), (3, 37), float32, 4),
        ((3, 64), (3, 37), uint8, 1),
        ((3, 64), (3, 38), uint8, 2),
        ((5, 3), (7, 4), float64, 8),
        ((2, 3, 2, 3, 2, 3), (3, 2, 3, 2, 3, 4), float32, 4),
        ((0, 3), (4, 3), float32, 0),
    ],
)
def test_copies_what_two_layouts_have_both(device, to, source, dtype, unit):
    array = np.arange(1, 1 + np.prod(source)).astype(dtype.numpy).reshape(source)
    made, given = (device.new_buffer(dtype, int(np.prod(shape))) for shape in (to, source))
    device.copy_in(given, array)
    device.copy_in(made, np.zeros(to, dtype.numpy))
    device.copy_common((made, to), (given, source))
    wanted = np.zeros(to, dtype.numpy)
    both = tuple(slice(min(pair)) for pair in zip(to, source))
    wanted[both] = array[both]
    np.testing.assert_array_equal(device.copy_out(made).view(dtype.numpy), wanted.reshape(-1))
    assert list(device.box_copiers) == ([unit] if unit else [])


def test_long_boxes_take_several_launches(device, monkeypatch):
    monkeypatch.setattr(box_kernels, "MOST_UNITS", 20)
    made, given = device.new_buffer(float32, 70), device.new_buffer(float32, 73)
    device.copy_in(given, np.arange(73, dtype=np.float32))
    device.copy_common((made, (70,)), (given, (73,)))
    np.testing.assert_array_equal(device.copy_out(made).view(np.float32), np.arange(70))
