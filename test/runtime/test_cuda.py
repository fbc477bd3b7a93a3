import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from picograd.code import Code, TensorMap, Workspace
from picograd.dtype import BY_NAME, float32, int32
from picograd.errors import DeviceError, OutOfMemoryError
from picograd.runtime import cuda, parameters
from picograd.runtime.cuda import CudaDevice, open_cuda
from picograd.runtime.device import TapeLaunch
from picograd.runtime.driver import Driver, has_driver

pytest.importorskip("cuda.bindings.nvrtc")
SCALE = """extern "C" __global__ void scale(float* y, const float* x, int* w, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""
CODE = Code("scale", "cuda", "scale", SCALE, 4, 256, 100 << 10, (Workspace(4, is_zeroed=True),),
            (float32, int32))  # fmt: skip


def scale_on_host(blocks, threads, params):
    """What the kernel above does, from the parameters as the driver gets them."""
    y, x, w = (ctypes.c_uint64.from_address(params[n]).value for n in range(3))
    a = ctypes.c_float.from_address(params[3]).value
    n = ctypes.c_int32.from_address(params[4]).value
    assert ctypes.c_int32.from_address(w).value == 0
    source = np.ctypeslib.as_array((ctypes.c_float * n).from_address(x))
    np.ctypeslib.as_array((ctypes.c_float * n).from_address(y))[:] = np.float32(a) * source


@pytest.fixture
def module(fake_driver):
    module = fake_driver()
    module.kernels["scale"] = scale_on_host
    return module


@pytest.fixture
def device(module):
    return CudaDevice(Driver(module), 0)


def test_target(device):
    target = device.target
    assert (device.name, target.arch, target.multiprocessors) == ("cuda:0", "sm_90a", 132)
    assert target.tensor_cores and target.shared_bytes == 227 << 10


def test_kernel_from_source_to_result(device, module):
    executable = device.load(CODE, device.compile(CODE))
    again = device.load(CODE, device.compile(CODE))
    assert module.log.count("load") == 1 and again.workspaces != executable.workspaces
    assert ("scale", 8, 100 << 10) in module.log  # more than 48 KiB is asked for
    x = np.arange(1000, dtype=np.float32)
    source, target = device.new_buffer(float32, 1000), device.new_buffer(float32, 1000)
    device.copy_in(source, x)
    for factor in (3.0, 0.5):
        device.launch(executable, (target.address, source.address), (factor, 1000))
        got = device.copy_out(target).view(np.float32)
        np.testing.assert_array_equal(got, x * np.float32(factor))
    assert module.log[-1] == ("scale", 4, 256, 100 << 10)
    device.synchronize()
    assert device.resources(executable) == {"registers": 14, "local": 13, "shared": 11}


def test_loop_moves_addresses_by_rules(device, module):
    """Every launch sees the addresses of its step."""
    executable = device.load(CODE, device.compile(CODE))
    rows = device.new_buffer(float32, 50)
    device.copy_in(rows, np.ones(50, np.float32))
    seen = []

    def note(blocks, threads, params):
        found = [ctypes.c_uint64.from_address(params[n]).value for n in range(2)]
        seen.append([(address - rows.address) // 40 for address in found])

    module.kernels["plain"] = note
    code = Code("plain", "cuda", "plain", SCALE, 4)
    executable = device.load(code, b"plain")
    tape = device.make_tape((TapeLaunch(executable, (1, 0)),), 2)
    base = rows.address
    device.run_loop(tape, [0, 0], [(0, base + 160, -40, -1, 0), (1, base, 40, 1, 1)], 4)
    assert seen == [[1, 4], [0, 3], [1, 2], [0, 1]]


def test_a_kernel_gets_tensor_maps_of_its_arrays(device, module, monkeypatch):
    """They come behind the scalars, and see the addresses of each launch and each step."""
    tensor = TensorMap(1, float32, 4, (32,), (), (32,))

    def encode(driver, tensor, address):
        content = (ctypes.c_uint64 * 16)(*[address + tensor.offset * 4] * 16)
        return SimpleNamespace(getPtr=lambda: ctypes.addressof(content), keep=content)

    monkeypatch.setattr(parameters, "encode", encode)
    seen = []
    module.kernels["boxes"] = lambda blocks, threads, params: seen.append(
        ctypes.c_uint64.from_address(params[3]).value
    )
    code = Code("boxes", "cuda", "boxes", SCALE, 4, scalars=(int32,), tensors=(tensor,))
    executable = device.load(code, b"boxes")
    for address in (4096, 8192):
        device.launch(executable, (64, address), (1,))
    tape = device.make_tape((TapeLaunch(executable, (1, 0), (0,)),), 2, (int32,))
    device.run_tape(tape, (1024, 64), (1,))
    assert seen == [4112, 8208, 1040]
    loop = Code("boxes", "cuda", "boxes", SCALE, 4, tensors=(tensor,))
    module.kernels["boxes"] = lambda blocks, threads, params: seen.append(
        ctypes.c_uint64.from_address(params[2]).value
    )
    tape = device.make_tape((TapeLaunch(device.load(loop, b"boxes"), (0, 1)),), 2)
    device.run_loop(tape, [0, 0], [(0, 64, 0, -1, 0), (1, 256, 128, -1, 0)], 3)
    assert seen[3:] == [272, 400, 528]


def test_tape_and_times(device):
    executable = device.load(CODE, device.compile(CODE))
    buffers = [device.new_buffer(float32, 10) for _ in range(3)]
    steps = (TapeLaunch(executable, (1, 0), (2, 0)), TapeLaunch(executable, (2, 1), (1, 0)))
    tape = device.make_tape(steps, 3, (int32, float32, float32))
    device.copy_in(buffers[0], np.ones(10, np.float32))
    addresses = [buffer.address for buffer in buffers]
    device.run_tape(tape, addresses, (10, 2.0, 3.0))
    assert (device.copy_out(buffers[2]).view(np.float32) == 6).all()
    assert device.time_tape(tape, addresses, (10, 2.0, 5.0)) == [0.0005, 0.0005]
    assert (device.copy_out(buffers[2]).view(np.float32) == 10).all()
    copy = device.new_buffer(float32, 10)
    device.copy(copy, buffers[2])
    assert (device.copy_out(copy).view(np.float32) == 10).all()


def test_failed_launch_names_the_call(device, module):
    executable = device.load(CODE, device.compile(CODE))
    module.kernels.clear()
    with pytest.raises(DeviceError, match="cuLaunchKernel failed with 719"):
        device.launch(executable, (0, 0), (1.0, 1))


def test_kernel_without_blocks_is_not_launched(device, module):
    code = Code("scale", "cuda", "scale", SCALE, 0)
    device.launch(device.load(code, device.compile(code)), (0, 0))
    assert not [entry for entry in module.log if entry[0] == "scale"]
    tape = device.make_tape((TapeLaunch(device.load(code, device.compile(code)), (0, 1)),) * 2)
    assert device.time_tape(tape, (0, 0)) == [0.0, 0.0]


def test_long_tapes_are_timed_in_pieces(device, monkeypatch):
    monkeypatch.setattr(cuda, "TIMED", 3)
    executable = device.load(CODE, device.compile(CODE))
    buffers = [device.new_buffer(float32, 10) for _ in range(2)]
    steps = (TapeLaunch(executable, (1, 0), (0, 1)),) * 8
    tape = device.make_tape(steps, 2, (float32, int32))
    device.copy_in(buffers[0], np.ones(10, np.float32))
    times = device.time_tape(tape, [buffer.address for buffer in buffers], (2.0, 10))
    assert times == [0.0005] * 8 and device.gate.passed == 3
    assert (device.copy_out(buffers[1]).view(np.float32) == 2).all()


def test_peak_bandwidth(device):
    assert device.peak_bandwidth() == 2 * 1e6 * 4096 / 8  # the double's clock and bus


def test_memory_is_reused_and_its_end_reported(fake_driver):
    module = fake_driver(memory=20 << 20)
    device = CudaDevice(Driver(module), 0)
    address = device.new_buffer(float32, 1 << 20).address
    kept = device.new_buffer(float32, 1 << 20, "net.py:3")
    assert kept.address == address
    with pytest.raises(OutOfMemoryError, match=r"on cuda:0.*\n.*4.0 MiB float32.*net.py:3"):
        device.allocate(1 << 30)
    del kept
    device.empty_cache()
    assert device.memory_stats()["reserved"] == 0 and len(module.blocks) == 1  # staging


@pytest.mark.parametrize(("cell", "is_copied"), [
    (np.float32(0), False), (np.float32(1.5), False), (np.float16(-2), False), (np.bool_(1), False),
    (np.int64(-1), False), (np.int64(7), True), (np.complex64(0), False), (np.float64(0.1), True),
])  # fmt: skip
def test_memory_is_filled_on_the_device(device, monkeypatch, cell, is_copied):
    copied = []
    (staging,) = device.stagings.free
    write = staging.write
    monkeypatch.setattr(staging, "write", lambda *a: (copied.append(a), write(*a)))
    buffer = device.new_buffer(BY_NAME[cell.dtype.name], 1000, "here")
    device.fill(buffer, np.array([cell]))
    found = device.copy_out(buffer).view(cell.dtype)
    assert (found == cell).all() and bool(copied) == is_copied


def test_wrong_ordinal(module):
    with pytest.raises(DeviceError, match=r"no cuda:2: this machine has 1 GPU\(s\)"):
        CudaDevice(Driver(module), 2)


@pytest.mark.skipif(has_driver(), reason="this machine has the driver")
def test_open_without_driver_names_what_is_missing():
    with pytest.raises(DeviceError, match=r"driver library \(libcuda\) is not installed. Fix: "):
        open_cuda(0)
