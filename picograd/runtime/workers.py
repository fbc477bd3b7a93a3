"""Workers: the native launch runner of `native.py` with the threads that serve it.

A worker is a Python thread that spends its life inside one native call, without the GIL. Threads
start with the first launch that can use them, and again in a child process after a fork.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from picograd.code import MIDDLE, Code
from picograd.runtime.compiler import Compiler
from picograd.runtime.device import Running
from picograd.runtime.native import CONTEXT, CONTEXT_BYTES, RUNNING, runner_source
from picograd.runtime.pools import has_started, may_start

# An idle worker spins this often before it sleeps: about 40 us, some pauses between two launches.
SPINS = 2000
SYMBOLS = (
    "picograd_run", "picograd_resume", "picograd_loop", "picograd_copy", "picograd_worker",
    "picograd_stop",
)  # fmt: skip
Remember = Callable[[Code, Callable[[], bytes]], bytes]
POINTER, COUNT = ctypes.c_void_p, ctypes.c_int64
TAPE_TYPES = (POINTER, POINTER, COUNT, POINTER, POINTER)  # context, records, count, tables
RUN_TYPE = ctypes.CFUNCTYPE(COUNT, POINTER, POINTER)
RESUME_TYPE = ctypes.CFUNCTYPE(COUNT, *TAPE_TYPES, COUNT)
LOOP_TYPE = ctypes.CFUNCTYPE(COUNT, *TAPE_TYPES, POINTER, *[COUNT] * 5)
COPY_TYPE = ctypes.CFUNCTYPE(None, POINTER, POINTER, *[COUNT] * 10)
WORKER_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
STOP_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def aligned(nbytes: int) -> tuple[Any, int]:
    """Allocate zeroed host memory aligned to a cache line: its owner and its address."""
    memory = (ctypes.c_char * (nbytes + 64))()
    return memory, -(-ctypes.addressof(memory) // 64) * 64


class Threads:
    """The running threads of one context; stopped when dropped and at interpreter exit."""

    def __init__(self, library: Any, count: int) -> None:
        self.memory, self.address = aligned(CONTEXT_BYTES)
        self.write("spins", SPINS)
        enter = WORKER_TYPE(library["picograd_worker"])
        keep, begin = (self.memory, library), threading.Event()
        self.threads: list[threading.Thread] = []
        for number in range(1, count + 1):
            given = enter, self.address, number, keep, begin
            thread = threading.Thread(target=serve, args=given, daemon=True)
            if not has_started(thread):
                break
            self.threads.append(thread)
        self.write("workers", len(self.threads))
        begin.set()
        stop = STOP_TYPE(library["picograd_stop"])
        self.finalizer = weakref.finalize(
            self, stop_threads, stop, self.address, self.threads, keep
        )

    def write(self, field: str, value: int) -> None:
        """Set one 8-byte field of the context; only while no launch is running."""
        ctypes.c_int64.from_address(self.address + CONTEXT[field]).value = value

    def read(self, field: str) -> int:
        """Read one 8-byte field of the context; only while no launch is running."""
        return ctypes.c_int64.from_address(self.address + CONTEXT[field]).value


def runner(source: str) -> Code:
    """Make the code of the runner, or what it is remembered by."""
    return Code("runner", "llvm", "picograd_run", source, 1)


def serve(
    enter: Callable[[int, int], None], context: int, number: int, keep: object,
    begin: threading.Event,
) -> None:  # fmt: skip
    """Work until stopped; `keep` holds the memory and the code this runs on."""
    begin.wait()  # until it is known how many threads there are
    enter(context, number)
    del keep


def stop_threads(
    stop: Callable[[int], None], context: int, threads: list[threading.Thread], keep: object
) -> None:
    """Stop the workers of a context and wait for them; `keep` as in `serve`."""
    if threads:
        stop(context)
    for thread in threads:
        thread.join(timeout=1.0)
    del keep


class Runner(Running):
    """Runs records on `threads` threads, the caller's included.

    `enter(state.address, call)` runs records in order and returns 0 when all are done, 1 for a
    pause; a call is the address of five words: records, count, address table, scalar table, is
    timed. To convert each would take longer than a small kernel. After a pause `resume` goes on,
    which takes them one by one; call both with `lock` held. So does `loop(..., rules, rule count,
    length, step, position, left)`, for all steps of a loop. `copy` copies runs of bytes.
    """

    __slots__ = (
        "__weakref__", "copy", "count", "enter", "library", "lock", "loop", "resume",
        "run_address", "scratch", "scratch_address", "serial", "state", "stride",
    )  # fmt: skip

    def __init__(self, compiler: Compiler, threads: int, remember: Remember) -> None:
        self.count = threads

        def make() -> bytes:
            return compiler.compile(runner(runner_source()), MIDDLE)  # as fast as with all

        binary = remember(runner(RUNNING), make)  # to write its source takes 20 ms
        try:
            self.library: Any = compiler.load(binary, SYMBOLS)
        except RuntimeError:  # a damaged object from a cache
            self.library = compiler.load(make(), SYMBOLS)
        self.run_address: int = self.library["picograd_run"]
        self.enter = RUN_TYPE(self.run_address)
        self.resume = RESUME_TYPE(self.library["picograd_resume"])
        self.loop = LOOP_TYPE(self.library["picograd_loop"])
        self.copy = COPY_TYPE(self.library["picograd_copy"])
        self.scratch: Any = None
        self.scratch_address = self.stride = 0
        self.lock = threading.RLock()  # the handler of a signal may run a tape inside another
        self.running = None  # the tape that runs
        self.is_inside = False
        self.serial: Threads = Threads(self.library, 0)
        self.use(self.serial)
        RUNNERS.add(self)

    def use(self, state: Threads) -> None:
        """Run on these threads from now on, with the scratch memory that there is."""
        state.write("scratch", self.scratch_address)
        state.write("stride", self.stride)
        self.state, self.context = state, state.address

    def reserve_scratch(self, nbytes: int) -> None:
        """Make sure that every thread has `nbytes` of scratch memory of its own."""
        with self.lock:
            if nbytes > self.stride:
                before, self.stride = self.scratch, -(-nbytes // 4096) * 4096
                self.scratch, self.scratch_address = aligned(self.stride * self.count)
                for state in {self.serial, self.state}:
                    state.write("scratch", self.scratch_address)
                    state.write("stride", self.stride)
                del before  # the handler of a signal may have run a tape until here

    def start(self) -> None:
        """Start the threads, if more than one is wanted and they do not run yet."""
        with self.lock:
            if self.count > 1 and self.state is self.serial and may_start():
                found = Threads(self.library, self.count - 1)
                if found.threads:
                    self.use(found)

    def restart(self) -> None:
        """Forget threads that a fork left behind; the next parallel tape starts new ones."""
        self.running, self.is_inside = None, False
        for state in {self.serial, self.state}:
            state.finalizer.detach()
        had_threads = self.state is not self.serial
        self.lock = threading.RLock()
        self.serial = Threads(self.library, 0)
        self.use(self.serial)
        if had_threads:
            self.start()


RUNNERS: "weakref.WeakSet[Runner]" = weakref.WeakSet()


def restart_all() -> None:
    """Mend every runner in the child process after a fork."""
    for runner in list(RUNNERS):
        runner.restart()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=restart_all)
