"""OpenCL: kernels in OpenCL C on whatever device a driver brings, a GPU or a processor.

Memory is shared virtual memory of OpenCL 2.0 (coarse-grained): a buffer is an address, a part of it
an address inside. One queue runs all work in the order it was given.
"""

import ctypes
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.code import Code
from picograd.cores import usable_cores
from picograd.dtype import DType
from picograd.errors import DeviceError
from picograd.runtime.boxes import common_box, pieces
from picograd.runtime.device import (
    Bytes,
    Device,
    Executable,
    Shaped,
    Tape,
    TapeLaunch,
    check_size,
    compile_error,
)
from picograd.runtime.memory import Allocation, Pool, Workspaces
from picograd.runtime.opencl_library import Library, open_library
from picograd.runtime.pools import pool
from picograd.target import Target, opencl_target

NAME, DRIVER, VERSION, EXTENSIONS = 0x102B, 0x102D, 0x102F, 0x1030  # cl.h: CL_DEVICE_*
UNITS, GROUP_SIZE, LOCAL_BYTES, SVM, FLOATS = 0x1002, 0x1004, 0x1023, 0x1053, 0x101B
COARSE = 1  # CL_DEVICE_SVM_COARSE_GRAIN_BUFFER
ROUNDED = 1 << 7  # CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
PROFILING = 2  # CL_QUEUE_PROFILING_ENABLE
BUILD_LOG, BINARY_SIZES, BINARIES = 0x1183, 0x1165, 0x1166
STARTED, ENDED = 0x1282, 0x1283  # CL_PROFILING_COMMAND_START, _END
NEEDED = ("cl_khr_subgroup_shuffle", "cl_khr_subgroup_ballot", "cl_intel_required_subgroup_size")
OPTIONS = "-cl-std=CL3.0 -w"
EXACT = " -cl-fp32-correctly-rounded-divide-sqrt"
LONGEST_RUN = 1 << 62
ERROR_LINE = re.compile(r":(\d+):\d+: (?:fatal )?error")


class OpenclDevice(Device):
    """One device of an OpenCL driver; see the module docstring."""

    def __init__(self, library: Library, handle: int, name: str = "opencl") -> None:
        """Open a device that the library lists."""
        self.name, self.library, self.handle = name, library, handle
        self.target = self.describe()
        self.options = OPTIONS + (EXACT if self.number(FLOATS) & ROUNDED else "")
        self.compiler = f"{self.text(VERSION)} {self.text(DRIVER)} {self.options}"
        device = (ctypes.c_void_p * 1)(handle)
        self.context: Any = pointer(library.create("clCreateContext", None, 1, device, None, None))
        properties = ctypes.c_uint64(PROFILING)
        made = library.create("clCreateCommandQueue", self.context, pointer(handle), properties)
        self.queue: Any = pointer(made)
        self.pool: Pool = Pool(self.name, self.reserve, self.give_back)
        self.workspaces: Workspaces = Workspaces(self.pool, self.fill_zero)
        self.lock = threading.RLock()

    def text(self, what: int) -> str:
        """Read a text about the device."""
        return self.library.text("clGetDeviceInfo", self.handle, what).strip()

    def number(self, what: int) -> int:
        """Read a number about the device."""
        return self.library.number("clGetDeviceInfo", self.handle, what)

    def describe(self) -> Target:
        """Find what code generation wants to know; DeviceError if something is missing."""
        name, extensions = self.text(NAME), self.text(EXTENSIONS).split()
        missing = [each for each in NEEDED if each not in extensions]
        if not self.number(SVM) & COARSE:
            missing.append("shared virtual memory (OpenCL 2.0)")
        if missing:
            problem = f"{name} lacks {', '.join(missing)}"
            raise DeviceError("opencl", problem, "use another device: PICOGRAD_DEVICE=cpu")
        return opencl_target(name, self.number(UNITS), self.number(LOCAL_BYTES))

    # -- memory -----------------------------------------------------------------------------------

    def reserve(self, size: int) -> int | None:
        """Take memory; None if there is not enough."""
        allocate = self.library.function("clSVMAlloc")
        address = allocate(self.context, ctypes.c_uint64(1), ctypes.c_size_t(size), 0)
        return int(address) if address else None

    def give_back(self, address: int) -> None:
        """Free memory, when all work given before is done."""
        self.synchronize()
        self.library.function("clSVMFree")(self.context, pointer(address))

    def fill_zero(self, address: int, size: int) -> None:
        """Zero memory, in the order of the work."""
        self.fill_at(address, b"\0", size)

    def fill_at(self, address: int, word: bytes, size: int) -> None:
        """Repeat a word of a power of two bytes."""
        lengths = ctypes.c_size_t(len(word)), ctypes.c_size_t(size)
        place = (self.queue, pointer(address), word)
        self.library.call("clEnqueueSVMMemFill", *place, *lengths, 0, None, None)

    def allocate(self, nbytes: int) -> Allocation:
        """Reserve memory; blocks are reused in the order of the work."""
        with self.lock:
            return self.pool.allocate(nbytes)

    def move(self, to: int, source: int, size: int, is_waiting: bool = True) -> None:
        """Copy bytes, in the order of the work."""
        if size:
            places = pointer(to), pointer(source), ctypes.c_size_t(size)
            arguments = (self.queue, int(is_waiting), *places, 0, None, None)
            with self.lock:
                self.library.call("clEnqueueSVMMemcpy", *arguments)

    def copy_in(self, buffer: Buffer, array: Bytes) -> None:
        """Write the bytes of an array, after all work given before."""
        check_size(buffer, array.nbytes)
        packed = np.ascontiguousarray(array)
        self.move(buffer.address, packed.ctypes.data, buffer.nbytes)

    def fill(self, buffer: Buffer, cell: Bytes) -> None:
        """Write one element everywhere, in the order of the work."""
        if buffer.nbytes:
            with self.lock:
                self.fill_at(buffer.address, cell.tobytes(), buffer.nbytes)

    def copy_out(self, buffer: Buffer) -> Bytes:
        """Read a buffer as a new uint8 array, after all work given before."""
        result: Bytes = np.empty(buffer.nbytes, np.uint8)
        self.move(result.ctypes.data, buffer.address, buffer.nbytes)
        return result

    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Copy between two buffers of this device."""
        check_size(destination, source.nbytes)
        self.move(destination.address, source.address, source.nbytes, False)

    def copy_common(self, destination: Shaped, source: Shaped) -> None:
        """Copy what two layouts have both, run by run."""
        (to, wanted), (other, now) = destination, source
        box, size = common_box(wanted, now), to.dtype.itemsize
        for there, here, (run,) in pieces(box, 1, LONGEST_RUN) if box else ():
            places = to.address + there * size, other.address + here * size
            self.move(*places, run.count * size, False)

    # -- kernels ----------------------------------------------------------------------------------

    def compile(self, code: Code) -> bytes:
        """Build a program, and read its binary."""
        call, source = self.library.call, code.source.encode()
        arguments = (self.context, 1, (ctypes.c_char_p * 1)(source), None)
        program = pointer(self.library.create("clCreateProgramWithSource", *arguments))
        try:
            self.build(code, program)
            size = ctypes.c_size_t()
            width = ctypes.c_size_t(ctypes.sizeof(size))
            call("clGetProgramInfo", program, BINARY_SIZES, width, ctypes.byref(size), None)
            content = ctypes.create_string_buffer(size.value)
            places = (ctypes.c_void_p * 1)(ctypes.addressof(content))
            call("clGetProgramInfo", program, BINARIES, width, places, None)
            return content.raw
        finally:
            call("clReleaseProgram", program)

    def build(self, code: Code, program: Any) -> None:
        """Build a program for this device; CompileError with the lines around the first error."""
        device = (ctypes.c_void_p * 1)(self.handle)
        options = self.options.encode()
        status = self.library.function("clBuildProgram")(program, 1, device, options, None, None)
        if status:
            arguments = (program.value or 0, BUILD_LOG, pointer(self.handle))
            log = self.library.text("clGetProgramBuildInfo", *arguments)
            found = ERROR_LINE.search(log)
            raise compile_error(code, log, int(found.group(1)) if found else None)

    def compile_many(self, codes: Iterable[Code]) -> Iterator[tuple[int, bytes]]:
        """Build on all cores, the first while the next are still being written."""
        with pool(usable_cores()) as executor:
            jobs = [executor.submit(self.compile, code) for code in codes]
            try:
                for position, job in enumerate(jobs):
                    yield position, job.result()
            finally:
                executor.shutdown(wait=False, cancel_futures=True)

    def load(self, code: Code, binary: bytes) -> Executable:
        """Make a kernel of a binary."""
        limit = self.number(GROUP_SIZE)
        if code.threads > limit:
            problem = f"kernel {code.name} has groups of {code.threads}, the device of {limit}"
            raise DeviceError("opencl", problem, "use another device: PICOGRAD_DEVICE=cpu")
        create, device = self.library.create, (ctypes.c_void_p * 1)(self.handle)
        size, texts = (ctypes.c_size_t * 1)(len(binary)), (ctypes.c_char_p * 1)(binary)
        arguments = (self.context, 1, device, size, texts, None)
        program = pointer(create("clCreateProgramWithBinary", *arguments))
        self.build(code, program)
        kernel = create("clCreateKernel", program, code.entry.encode())
        with self.lock:
            workspaces = self.workspaces.own(code)
        held = Kernel(self.library, kernel, program)
        return Executable(code, kernel, held, workspaces, len(binary) + len(code.source))

    # -- runs -------------------------------------------------------------------------------------

    def run_tape(
        self, tape: Tape, addresses: Sequence[int], scalars: Sequence[int | float] = ()
    ) -> None:
        """Queue everything; returns before it is done."""
        with self.lock:
            for launch in tape.launches:
                self.enqueue(tape, launch, addresses, scalars, None)
            self.library.call("clFlush", self.queue)

    def time_tape(
        self, tape: Tape, addresses: Sequence[int], scalars: Sequence[int | float] = ()
    ) -> list[float]:
        """Queue everything and wait; seconds each launch took by the device's clock."""
        found = []
        with self.lock:
            for launch in tape.launches:
                event = ctypes.c_void_p()
                self.enqueue(tape, launch, addresses, scalars, ctypes.byref(event))
                found.append(self.seconds(event) if event.value else 0.0)
        return found

    def seconds(self, event: Any) -> float:
        """Wait for an event; the seconds its work took."""
        self.library.call("clWaitForEvents", 1, ctypes.byref(event))
        times = (STARTED, ENDED)
        read = self.library.number
        start, end = (read("clGetEventProfilingInfo", event.value, each) for each in times)
        self.library.call("clReleaseEvent", event)
        return (end - start) / 1e9

    def enqueue(
        self,
        tape: Tape,
        launch: TapeLaunch,
        addresses: Sequence[int],
        scalars: Sequence[int | float],
        event: Any,
    ) -> None:
        """Give a kernel its arguments, and queue its groups; none, if it has none."""
        executable, code = launch.executable, launch.executable.code
        if not code.tasks:
            return
        kernel, library = pointer(executable.function), self.library
        places = [addresses[slot] for slot in launch.slots]
        shared = () if launch.spaces else self.workspaces.shared_by(code)
        places += [block.address for block in (*shared, *executable.workspaces)]
        for number, place in enumerate(places):
            library.call("clSetKernelArgSVMPointer", kernel, number, pointer(place))
        for number, (at, dtype) in enumerate(zip(launch.scalars, code.scalars), len(places)):
            word = packed(scalars[at], dtype)
            library.call("clSetKernelArg", kernel, number, ctypes.c_size_t(len(word)), word)
        threads = (ctypes.c_size_t * 1)(code.threads)
        total = (ctypes.c_size_t * 1)(code.tasks * code.threads)
        shape = (1, None, total, threads)
        library.call("clEnqueueNDRangeKernel", self.queue, kernel, *shape, 0, None, event)

    def synchronize(self) -> None:
        """Wait for the queue."""
        self.library.call("clFinish", self.queue)

    def empty_cache(self) -> None:
        """Give memory nobody uses back to the driver."""
        with self.lock:
            self.pool.empty()


class Kernel:
    """A kernel and its program, released with the last reference."""

    __slots__ = ("release",)

    def __init__(self, library: Library, kernel: int, program: Any) -> None:
        functions = library.functions
        self.release: Any = (
            partial(functions.clReleaseKernel, pointer(kernel)),
            partial(functions.clReleaseProgram, program),
        )

    def __del__(self) -> None:
        for each in self.release:
            each()


def pointer(address: int) -> Any:
    """Pass an address on as one: ctypes takes an int for one of 32 bits."""
    return ctypes.c_void_p(address)


def packed(value: int | float, dtype: DType) -> bytes:
    """Write a scalar as the kernel takes it."""
    return np.array(value).astype(dtype.storage).tobytes()


def open_opencl(ordinal: int = 0) -> OpenclDevice:
    """Open a device by its number, GPUs first; DeviceError naming what is missing."""
    library, devices = open_library()
    if ordinal >= len(devices):
        problem = f"there is no opencl:{ordinal}: this machine has {len(devices)} device(s)"
        raise DeviceError("opencl", problem, f"use a number below {len(devices)}")
    return OpenclDevice(library, devices[ordinal], f"opencl:{ordinal}")
