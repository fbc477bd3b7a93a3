"""Transforms of signals that are enough for vectors, by machine code (runtime/fourier_code.py).

What has few points is left to NumPy (`MANY` in graph/host_call.py), as are signals of points that
have a prime factor above 7, and of real points that are odd, or not the last axis, or few long
ones. The choice follows from shapes alone, so that equal calls give equal bits.

Few signals, and long ones, of n = a b points are matrices of a rows: columns are transformed,
turned, and then rows, whose result k lies a points behind the one before.
"""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from picograd.code import Code
from picograd.engine.backends import get_device
from picograd.helpers import product
from picograd.runtime.fourier_code import (
    PLAN,
    circle,
    fourier_source,
    radices_of,
    rotations_of,
    turns_of,
)
from picograd.runtime.log import log_action

Array = Any
LONGEST = 4096  # points of a signal, 16 of which are worked on at a time: 1 MiB, twice
MOST = 1 << 20  # points of a signal: 8 MiB of numbers to turn them by
MATRIX = 256  # points of a signal that is sooner done as a matrix
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)


@lru_cache(None)
def entry(is_double: bool) -> Any:
    """Compile the functions for a width of numbers, or load them from disk."""
    device: Any = get_device("cpu")
    source = fourier_source(lanes_of(is_double), is_double)
    code = Code("fourier", "llvm", "picograd_fourier", source, 1)
    binary = device.remember(code, lambda: device.machine.compile(code, is_straight=True))
    library = device.machine.load(binary, (code.entry,))
    log_action("compile", "Fourier transforms")
    return library, ENTRY(library[code.entry])


@lru_cache(None)
def lanes_of(is_double: bool) -> int:
    """Count the numbers of a vector."""
    return int(get_device("cpu").target.vector_bytes) // (4 << is_double)


class Way:
    """This class is the plan of a call, and the memory that it names."""

    def __init__(self, kind: Any, points: int, words: dict[str, int], **tables: Array) -> None:
        is_double = kind == np.complex128
        radices = radices_of(points)
        steps, apart, left = [], 1, points
        for each in radices:
            left //= each
            steps += [each, left, apart]
            apart *= each
        point = lanes_of(is_double) * kind.itemsize
        self.room = whole_lines((points + 1) * point)
        self.between = 0  # bytes of a signal after it
        words |= {"points": points, "room": self.room, "steps": len(radices)}
        self.held = {"turns": turns_of(radices, kind), **tables}
        for name, table in self.held.items():
            words[name] = table.ctypes.data
        listed = [words.get(name, 0) for name in PLAN]
        self.table = np.array([*listed, *steps], np.int64)
        self.address = self.table.ctypes.data
        self.enter = entry(is_double)[1]


def whole_lines(size: int) -> int:
    """Round bytes up to whole lines of a cache."""
    return (size + 63) // 64 * 64


class Signals:
    """This class is how signals lie: `outer` sets of `lanes`; distances are in complex points."""

    def __init__(self, kind: Any, outer: int, lanes: int, is_back: bool, scale: float) -> None:
        vector = lanes_of(kind == np.complex128)
        self.kind = kind
        self.words = {
            "outer": outer,
            "lanes": lanes,
            "blocks": -(-lanes // vector),
            "swap": int(is_back),
            "scale": int(np.float64(scale).view(np.int64)),
        }

    def spaced(self, name: str, outer: int, lane: int, point: int) -> None:
        """Tell how far apart things lie where they come from, or go to."""
        size = self.kind.itemsize
        self.words[f"{name}_outer"] = outer * size
        self.words[f"{name}_lane"] = lane * size
        self.words[f"{name}_point"] = point * size

    def way(self, points: int, read: int = 0, made: int = 0, **tables: Array) -> Way:
        """Plan a transform of so many points, or of as many as are read and made."""
        counts = {"read": read or points, "made": made or points}
        numbers = {name: table.astype(self.kind) for name, table in tables.items()}
        return Way(self.kind, points, self.words | counts, **numbers)


@lru_cache(maxsize=128)
def ways(name: str, shape: tuple[int, ...], at: int, size: int, kind: Any, scale: float) -> Any:
    """Plan a transform of an axis; None where NumPy takes it."""
    outer, inner = product(shape[:at]), product(shape[at + 1 :])
    vector = lanes_of(kind == np.complex128)
    is_short, has_rows = size <= LONGEST, inner == 1 and outer >= vector
    if name in ("rfft", "irfft"):
        half = size // 2
        is_fit = size % 2 == 0 and vector <= half <= LONGEST
        if not (is_fit and has_rows and radices_of(half)):
            return None
        return (real_way(name, outer, size, kind, scale),)
    if not radices_of(size):
        return None
    is_back = name == "ifft"
    if inner >= vector and is_short:
        signals = Signals(kind, outer, inner, is_back, scale)
        signals.spaced("source", size * inner, 1, inner)
        signals.spaced("to", size * inner, 1, inner)
        return (signals.way(size),)
    if inner > 1 or size < vector:
        return None
    found = matrix_ways(kind, outer, size, is_back, scale) if size >= MATRIX else None
    if found or not (has_rows and is_short):
        return found
    signals = Signals(kind, 1, outer, is_back, scale)
    signals.spaced("source", 0, size, 1)
    signals.spaced("to", 0, size, 1)
    return (signals.way(size),)


def real_way(name: str, outer: int, size: int, kind: Any, scale: float) -> Way:
    """Plan signals of an even number of real points, from or to half as many frequencies."""
    half = size // 2
    count = half + 1
    turns = circle(size)[:count]
    if name == "irfft":
        signals = Signals(kind, 1, outer, True, scale)
        signals.spaced("source", 0, count, 1)
        signals.spaced("to", 0, half, 1)
        return signals.way(half, count, half, opened=1j * turns.conj())
    signals = Signals(kind, 1, outer, False, scale / 2)
    signals.spaced("source", 0, half, 1)
    signals.spaced("to", 0, count, 1)
    return signals.way(half, half, count, closed=-1j * turns)


def matrix_ways(kind: Any, outer: int, size: int, is_back: bool, scale: float) -> Any:
    """Plan the two ways of signals that are matrices; None where a side is too short or long."""
    vector = lanes_of(kind == np.complex128)
    sides = [n for n in range(vector, int(size**0.5) + 1) if size % n == 0]
    if not sides or size > MOST:
        return None
    b = sides[-1]
    a = size // b
    if a > LONGEST:
        return None
    columns = Signals(kind, outer, b, is_back, 1.0)
    columns.spaced("source", size, 1, b)
    columns.spaced("to", size, 1, b)
    first = columns.way(a, rotations=rotations_of(a, b, is_back, vector))
    first.between = whole_lines(size * kind.itemsize)
    rows = Signals(kind, outer, a, is_back, scale)
    rows.spaced("source", size, b, 1)
    rows.spaced("to", size, 1, a)
    return first, rows.way(b)


def run(ways: Sequence[Way], source: Array, to: Array) -> None:
    """Transform in one way, or two, the second from what the first leaves of a signal."""
    first, last = ways[0], ways[-1]
    room = max(way.room for way in ways)
    memory: Array = np.empty(2 * room + first.between + 64, np.uint8)
    between = whole_lines(address_of(memory))
    second = last.address if last is not first else None
    given, made = address_of(source), address_of(to)
    first.enter(first.address, second, given, made, between, between + first.between)


def address_of(array: Array) -> int:
    """Give the address of an array's memory."""
    return int(array.__array_interface__["data"][0])


def transformed(name: str, x: Array, at: int, size: int, scale: float) -> Array | None:
    """Transform an axis from or to so many points; None where NumPy takes it."""
    kind = np.result_type(x.dtype, np.complex64)
    found = ways(name, x.shape, at, size, kind, scale)
    if found is None:
        return None
    count = size // 2 + 1 if name == "rfft" else size
    made = kind.type(0).real.dtype if name == "irfft" else kind
    source = np.ascontiguousarray(x, x.dtype if name == "rfft" else kind)
    to = np.empty((*x.shape[:at], count, *x.shape[at + 1 :]), made)
    run(found, source, to)
    return to
