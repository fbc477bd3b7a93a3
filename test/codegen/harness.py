"""Compile and run generated kernels for tests: a small llvmlite harness with tasks in a loop."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from picograd.code import ALL, Code
from picograd.codegen.pipeline import generate
from picograd.runtime.compiler import Compiler
from picograd.runtime.llvm import host
from picograd.schedule.loop import Kernel
from picograd.target import Target

TARGET = Target("llvm", "host", 64, threads=2)
LIBRARIES: list[Any] = []


@cache
def compiler() -> Compiler:
    """Make the compiler of this computer."""
    return Compiler(host())


def load(code: Code, passes: int | None = ALL) -> Any:
    """Compile code, with all passes unless others are asked for; returns its entry for ctypes."""
    binary = compiler().compile(code, passes)
    library = compiler().load(binary, (code.entry,))
    LIBRARIES.append(library)
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int64, ctypes.c_int64)
    return kind(library[code.entry])


class Launch:
    """A compiled kernel bound to NumPy arrays."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Sequence[Any],
        scalars: Sequence[Any] = (),
        passes: int | None = ALL,
    ) -> None:
        self.code = generate(kernel, TARGET)
        self.function = load(self.code, passes)
        self.arrays = [np.ascontiguousarray(a) for a in arrays]
        work = [np.zeros(w.bytes + 64, np.uint8) for w in self.code.workspaces]
        self.keep = [*self.arrays, *work]
        addresses = [a.ctypes.data for a in self.keep]
        self.pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        cells = np.zeros(max(1, len(scalars)), np.int64)
        for n, (value, dtype) in enumerate(zip(scalars, kernel.scalars, strict=True)):
            (cells.view(np.float64) if dtype.is_float else cells)[n] = value
        self.cells = cells
        self.scratch = np.zeros(self.code.scratch_bytes + 128, np.uint8)
        self.scratch_at = -(-self.scratch.ctypes.data // 64) * 64
        self.work = work

    def __call__(self, begin: int = 0, end: int | None = None) -> None:
        end = self.code.tasks if end is None else end
        self.function(
            ctypes.addressof(self.pointers), self.cells.ctypes.data, self.scratch_at, begin, end
        )


def run(
    kernel: Kernel, arrays: Sequence[Any], scalars: Sequence[Any] = (), passes: int | None = ALL
) -> list[Any]:
    """Run a kernel twice, tasks one by one, last first the second time; return its arrays."""
    launch = Launch(kernel, [np.copy(a) for a in arrays], scalars, passes)
    before = [a.copy() for a in launch.arrays]
    for task in range(launch.code.tasks):
        launch(task, task + 1)
    first = [a.copy() for a in launch.arrays]
    for array, old in zip(launch.arrays, before, strict=True):
        array[...] = old
    for task in reversed(range(launch.code.tasks)):
        launch(task, task + 1)
    for a, b in zip(first, launch.arrays, strict=True):
        np.testing.assert_array_equal(a, b)
    for work, info in zip(launch.work, launch.code.workspaces, strict=True):
        assert not info.is_zeroed or not work.any()
    return first
