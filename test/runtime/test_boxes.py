"""Boxes cover what two layouts have both, cut or whole, in any unit; the CUDA kernels copy them."""

import ctypes
import subprocess

import numpy as np
import pytest

from picograd.dtype import float32, float64, uint8
from picograd.runtime import boxes
from picograd.runtime.boxes import Along, common_box, in_units, pieces
from picograd.runtime.cuda import CudaDevice
from picograd.runtime.driver import Driver

LAYOUTS = [
    ((3, 37, 8), (3, 64, 8)),
    ((3, 64, 8), (3, 37, 8)),
    ((5,), (8,)),
    ((2, 3, 4), (2, 3, 4)),
    ((), ()),
    ((4, 1, 7), (8, 1, 7)),
    ((3, 5, 1), (4, 5, 2)),
    ((2, 3, 2, 3, 2, 3), (3, 2, 3, 2, 3, 4)),
    ((7, 5, 6), (8, 4, 6)),
    ((0, 3), (4, 3)),
]


def copied(to_shape, shape, parts, dtype=np.int32):
    """Copy by boxes; the array that was there, and what should be there now."""
    source = np.arange(1, 1 + np.prod(shape, dtype=int)).astype(dtype)
    made = np.zeros(np.prod(to_shape, dtype=int), dtype)
    for to, other, part in parts:
        places = [np.array([to]), np.array([other])]
        for axis in part:
            steps = np.arange(axis.count)
            places[0] = (places[0][:, None] + steps * axis.to).reshape(-1)
            places[1] = (places[1][:, None] + steps * axis.source).reshape(-1)
        made[places[0]] = source[places[1]]
    wanted = np.zeros(to_shape, dtype)
    both = tuple(slice(min(pair)) for pair in zip(to_shape, shape))
    wanted[both] = source.reshape(shape)[both]
    return made, wanted.reshape(-1)


@pytest.mark.parametrize(("to", "source"), LAYOUTS)
def test_a_box_is_what_both_have(to, source):
    box = common_box(to, source)
    for rank, most in ((9, 1 << 30), (2, 1 << 30), (1, 3), (3, 5)):
        parts = list(pieces(box, rank, most)) if box else []
        assert all(len(part) <= max(rank, 1) for _, _, part in parts)
        np.testing.assert_array_equal(*copied(to, source, parts))


def test_axes_that_are_whole_merge():
    assert common_box((3, 37, 2, 4), (3, 64, 2, 4)) == (Along(3, 296, 512), Along(296, 1, 1))
    assert common_box((16, 5, 4), (9, 5, 4)) == (Along(180, 1, 1),)


def test_units_divide_runs_steps_and_addresses():
    box = (Along(3, 37, 64), Along(37, 1, 1))
    assert in_units(box, 4, 512, 1024) == (4, box)
    assert in_units((Along(3, 8, 64), Along(8, 1, 1)), 4, 512, 1024)[0] == 16
    assert in_units((Along(3, 8, 64), Along(8, 1, 1)), 4, 512, 1032)[0] == 8
    assert in_units((Along(3, 7, 64), Along(7, 1, 1)), 1, 512, 1024)[0] == 1


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
    for unit, kind in boxes.UNITS.items():
        text += boxes.kernel(unit, 132).source
        text += RUN.replace("UNIT", str(unit)).replace("TYPE", kind)
    folder = tmp_path_factory.mktemp("boxes")
    (folder / "boxes.cpp").write_text(text)
    command = ["g++", "-O1", "-w", "-shared", "-fPIC", "boxes.cpp", "-o", "boxes.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "boxes.so"))


@pytest.fixture
def device(fake_driver, library):
    module = fake_driver()
    for unit in boxes.UNITS:
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
    monkeypatch.setattr(boxes, "MOST_UNITS", 20)
    made, given = device.new_buffer(float32, 70), device.new_buffer(float32, 73)
    device.copy_in(given, np.arange(73, dtype=np.float32))
    device.copy_common((made, (70,)), (given, (73,)))
    np.testing.assert_array_equal(device.copy_out(made).view(np.float32), np.arange(70))
