"""Processes that compile CUDA C beside this one, as NVRTC reads one program at a time in each.

They live as long as one build, and are started as its programs come: a build of one program needs
none. Where none can be started, or one dies, this process compiles.
"""

import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from picograd.runtime import nvrtc_library
from picograd.runtime.nvrtc_library import ask
from picograd.runtime.pools import has_started

Process = subprocess.Popen[bytes]
BROKEN = OSError, ValueError, OverflowError, MemoryError, struct.error  # what a bad answer raises
PYTHON = re.compile(r"(python|pypy)[\d.]*[a-z]?(\.exe)?")  # python3.13t, pythonw.exe
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows


class Compilers(AbstractContextManager["Compilers"]):
    """At most `limit` processes, this one among them; threads may share an object."""

    def __init__(self, library: Any, path: str, limit: int) -> None:
        self.library, self.path = library, path
        self.room = limit - 1 if can_start() else 0
        self.is_busy = False  # whether this process compiles
        self.idle: list[Process] = []
        self.started: list[Process] = []
        self.lock = threading.Lock()
        self.end: threading.Thread | None = None  # of the processes

    def compile(self, source: bytes, options: list[bytes]) -> tuple[bool, bytes]:
        """Compile where nobody does: here, in a process that waits, or in a new one."""
        with self.lock:
            is_here = not self.is_busy
            self.is_busy = True
        process = None if is_here else self.take()
        if process is not None and process.stdin and process.stdout:
            with suppress(*BROKEN):
                answer = ask(process.stdin, process.stdout, source, options)
                self.idle.append(process)
                return answer
        try:
            return nvrtc_library.compile_program(self.library, source, options)
        finally:
            if is_here:
                self.is_busy = False

    def take(self) -> Process | None:
        """Find a process that waits, or start one; None if there is no room for it."""
        with self.lock:
            if self.idle:
                return self.idle.pop()
            if self.room <= 0:
                return None
            self.room -= 1
        try:
            process = start(self.path)
        except OSError:
            self.room = 0
            return None
        self.started.append(process)
        return process

    def __exit__(self, *_: object) -> None:
        """End the processes; soon nothing is left of them.

        That takes 30 ms, for which nobody has to wait.
        """
        for process in self.started:
            process.kill()
        self.end = threading.Thread(target=put_away, args=(self.started,))
        if not self.started or not has_started(self.end):
            put_away(self.started)


def put_away(processes: Sequence[Process]) -> None:
    """Wait for the end of processes, and close their pipes."""
    for process in processes:
        with suppress(OSError), process:
            pass


def can_start() -> bool:
    """Tell whether Python can be started: a program that embeds it may name itself instead."""
    name = os.path.basename(sys.executable or "").lower()
    return bool(PYTHON.fullmatch(name)) and not getattr(sys, "frozen", False)


def start(path: str) -> Process:
    """Start a process that compiles, without site-packages or the user's settings of Python."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", nvrtc_library.__file__, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        creationflags=NO_WINDOW,
    )
