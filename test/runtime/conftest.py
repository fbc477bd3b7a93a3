"""Kernels and a double of the CUDA driver for the runtime's tests."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from picograd.code import Code, Workspace
from picograd.dtype import float32

# y[i] = x[i] * scalar + 1, for the tasks i in begin..end-1
SCALE = """
define void @scale(ptr %buffers, ptr %scalars, ptr %scratch, i64 %begin, i64 %end) {
entry:
  %x = load ptr, ptr %buffers
  %y.p = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %y.p
  %wide = load double, ptr %scalars
  %a = fptrunc double %wide to float
  br label %test
test:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %from = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %from
  %product = fmul float %value, %a
  %sum = fadd float %product, 1.0
  %to = getelementptr float, ptr %y, i64 %i
  store float %sum, ptr %to
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}
"""

# Counts its tasks in a zeroed workspace; whoever does the last of COUNT tasks adds COUNT to the
# output and leaves the workspace zero. Each task writes its scratch memory full.
COUNT = """
define void @count(ptr %buffers, ptr %scalars, ptr %scratch, i64 %begin, i64 %end) {
  %out = load ptr, ptr %buffers
  %w.p = getelementptr ptr, ptr %buffers, i64 1
  %w = load ptr, ptr %w.p
  %done = sub i64 %end, %begin
  call void @llvm.memset.p0.i64(ptr %scratch, i8 1, i64 SCRATCH, i1 false)
  %before = atomicrmw add ptr %w, i64 %done acq_rel
  %after = add i64 %before, %done
  %is_last = icmp eq i64 %after, TASKS
  br i1 %is_last, label %last, label %exit
last:
  store i64 0, ptr %w
  %old = load i64, ptr %out
  %new = add i64 %old, TASKS
  store i64 %new, ptr %out
  br label %exit
exit:
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def scale_code(tasks):
    return Code("scale", "llvm", "scale", SCALE, tasks, scalars=(float32,))


def increment_code(tasks):
    source = SCALE.replace("@scale", "@increment").replace("%wide = load double, ptr %scalars", "")
    source = source.replace("%a = fptrunc double %wide to float", "")
    return Code("increment", "llvm", "increment", source.replace("%a", "1.0"), tasks)


def count_code(tasks, scratch=4096):
    source = COUNT.replace("TASKS", str(tasks)).replace("SCRATCH", str(scratch))
    workspaces = (Workspace(8, is_zeroed=True),)
    return Code("count", "llvm", "count", source, tasks, workspaces=workspaces,
                scratch_bytes=scratch)  # fmt: skip


@pytest.fixture
def scale():
    return scale_code


@pytest.fixture
def increment():
    return increment_code


@pytest.fixture
def count():
    return count_code


class FakeDriver:
    """The part of cuda.bindings.driver that picograd uses, on host memory.

    A kernel is a Python function in `kernels`, called with (grid, block, parameter addresses).
    """

    def __init__(self, devices=1, memory=1 << 30, version=13000):
        self.devices, self.left, self.version = devices, memory, version
        self.blocks, self.kernels, self.log = {}, {}, []
        self.graphs, self.parameters = {}, 5  # nodes by handle; parameters that a node copies

    def __getattr__(self, name):
        raise AssertionError(f"the driver double lacks {name}")

    def CUdevice_attribute(self, number):
        return number

    CUfunction_attribute = CUdevice_attribute

    def cuDriverGetVersion(self):
        return 0, self.version

    def cuGetProcAddress(self, name, version, flags):
        return 500, None, 0  # its functions are Python's

    def cuDeviceGetCount(self):
        return 0, self.devices

    def cuDeviceGet(self, ordinal):
        return 0, ordinal

    def cuDevicePrimaryCtxRetain(self, device):
        return 0, f"context {device}"

    def cuCtxSetCurrent(self, context):
        return (0,)

    def cuDeviceGetAttribute(self, attribute, device):
        return 0, {75: 9, 76: 0, 16: 132, 97: 227 << 10, 36: 1000, 37: 4096}[attribute]

    def cuStreamCreate(self, flags):
        return 0, "stream"

    def cuStreamSynchronize(self, stream):
        return (0,)

    def cuEventCreate(self, flags):
        return 0, "event"

    def cuEventRecord(self, event, stream):
        return (0,)

    def cuEventSynchronize(self, event):
        return (0,)

    def cuFuncLoad(self, function):
        return (0,)

    def cuStreamWaitValue32(self, stream, address, value, flags):
        return (0,)

    def cuEventElapsedTime(self, start, end):
        return 0, 0.5

    def cuMemAlloc(self, size):
        if size > self.left:
            return 2, None
        self.left -= size
        block = np.zeros(size, np.uint8)
        self.blocks[block.ctypes.data] = block
        return 0, block.ctypes.data

    def cuMemHostAlloc(self, size, flags):
        return self.cuMemAlloc(size)

    def cuMemFree(self, address):
        self.left += self.blocks.pop(address).nbytes
        return (0,)

    def cuMemsetD8Async(self, address, value, size, stream):
        ctypes.memset(address, value, size)
        return (0,)

    def cuMemsetD16Async(self, address, value, count, stream):
        return self.cuMemsetD32Async(address, value, count, stream, np.uint16)

    def cuMemsetD32Async(self, address, value, count, stream, dtype=np.uint32):
        size = count * np.dtype(dtype).itemsize
        np.frombuffer((ctypes.c_char * size).from_address(address), dtype)[:] = value
        return (0,)

    def cuMemcpyHtoDAsync(self, target, source, size, stream):
        ctypes.memmove(target, source, size)
        return (0,)

    cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = cuMemcpyHtoDAsync

    def cuModuleLoadData(self, image):
        self.log.append("load")
        return 0, f"module {len(image)}"

    def cuModuleGetFunction(self, module, name):
        return 0, name.decode()

    def cuFuncSetAttribute(self, function, attribute, value):
        self.log.append((function, attribute, value))
        return (0,)

    def cuFuncGetAttribute(self, attribute, function):
        return 0, 10 + attribute

    def CUDA_KERNEL_NODE_PARAMS(self):
        return SimpleNamespace()

    def cuGraphCreate(self, flags):
        return self.cuGraphInstantiate(None, flags)

    def cuGraphAddKernelNode(self, graph, dependencies, count, params):
        assert len(dependencies) == count
        self.graphs[graph].append((dependencies, self.copied(params)))
        return 0, len(self.graphs[graph]) - 1

    def cuGraphInstantiate(self, graph, flags):
        handle = f"graph {len(self.graphs)}"
        self.graphs[handle] = [*self.graphs.get(graph, ())]
        return 0, handle

    def cuGraphExecKernelNodeSetParams(self, graph, node, params):
        self.graphs[graph][node] = (self.graphs[graph][node][0], self.copied(params))
        self.log.append(("set", node))
        return (0,)

    def cuGraphLaunch(self, graph, stream):
        """Run the nodes, the last first of those that may run."""
        left = dict(enumerate(self.graphs[graph]))
        self.log.append(("graph", len(left)))
        while left:
            node = max(n for n, (before, _) in left.items() if not left.keys() & {*before})
            function, blocks, threads, values = left.pop(node)[1]
            places = (ctypes.addressof(values) + 8 * n for n in range(len(values)))
            self.kernels[function](blocks, threads, (ctypes.c_uint64 * len(values))(*places))
        return (0,)

    def cuGraphExecDestroy(self, graph):
        self.log.append(("destroy", graph))
        return (0 if self.graphs.pop(graph, None) is not None else 400,)

    cuGraphDestroy = cuGraphExecDestroy

    def copied(self, params):
        """What a node keeps: the parameters' values at this moment."""
        places = (ctypes.c_uint64 * self.parameters).from_address(params.kernelParams)
        values = [ctypes.c_uint64.from_address(place).value for place in places]
        kept = (ctypes.c_uint64 * len(values))(*values)
        return params.func, params.gridDimX, params.blockDimX, kept

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
        if function not in self.kernels:
            return (719,)
        self.log.append((function, gx, bx, shared))
        self.kernels[function](gx, bx, (ctypes.c_uint64 * 16).from_address(params))
        return (0,)


@pytest.fixture
def fake_driver():
    return FakeDriver
