"""Runs one kernel on the CPU from its Tile IR, without the engine: for template tests."""

import ctypes
import time
from collections.abc import Callable, Sequence

import numpy as np
from contractions import Case, widen

from picograd.code import Code
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.render.llvm import render
from picograd.codegen.templates import contract
from picograd.runtime.compiler import Compiler
from picograd.runtime.llvm import host
from picograd.schedule.loop import Kernel
from picograd.target import Target

TARGET = Target("llvm", "host", 64, threads=2, registers=32)
COMPILERS: list[Compiler] = []


class Loaded:
    """A compiled kernel with its buffers."""

    def __init__(self, kernel: Kernel, inputs: Sequence[np.ndarray], target: Target = TARGET):
        start = time.perf_counter()
        program = linearize(contract.build(kernel, target), target)
        self.source = render(program)
        self.python_seconds = time.perf_counter() - start
        if not COMPILERS:
            COMPILERS.append(Compiler(host()))
        code = Code(kernel.name, "llvm", program.name, self.source, program.tasks)
        start = time.perf_counter()
        binary = COMPILERS[0].compile(code)
        self.compile_seconds = time.perf_counter() - start
        self.code = code
        self.library = COMPILERS[0].load(binary, (program.name,))
        self.tasks = program.tasks
        slot = kernel.slots[-1]
        # Poison: every element must be written, and nothing past the end.
        self.output = np.full(slot.size + 64, 77, np.dtype(slot.dtype.storage))
        self.arrays = [np.ascontiguousarray(x) for x in inputs] + [self.output]
        spaces = [np.zeros(size + 64, np.uint8) for size, _ in program.workspaces]
        self.scratch = np.full(program.scratch_bytes + 64, 255, np.uint8)
        self.spaces = spaces
        pointers = [x.ctypes.data for x in (*self.arrays, *spaces)]
        self.buffers = (ctypes.c_void_p * len(pointers))(*pointers)
        signature = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_int64)
        self.entry: Callable[..., None] = signature(self.library[program.name])

    def run(self, first: int = 0, last: int | None = None) -> None:
        """Run tasks first..last-1 on this thread."""
        scratch = (self.scratch.ctypes.data + 63) // 64 * 64
        last = self.tasks if last is None else last
        self.entry(self.buffers, None, scratch, first, last)

    def run_backwards(self) -> None:
        """Run tasks one by one, the last first: none needs what another wrote."""
        for task in reversed(range(self.tasks)):
            self.run(task, task + 1)

    def result(self) -> np.ndarray:
        """Check the guard zone and return the output."""
        self.run()
        assert (self.output[-64:] == 77).all(), "written past the end"
        return self.output[:-64]


def computed(case: Case, target: Target) -> np.ndarray:
    """Compute a case by machine code, its tasks in any order; the shape is what is expected."""
    loaded = Loaded(case.kernel, case.inputs, target)
    loaded.run_backwards()
    found = widen(loaded.result(), case.kernel.slots[-1].dtype)
    return found.reshape(case.expected.shape)
