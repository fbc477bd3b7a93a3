"""Whether `picograd.jit` or `vmap` is tracing: while one is, nothing may be realized or read.

A trace is a list of the nodes whose realization was asked for; `jit` realizes them all in one plan
when the traced function returns. `vmap` rewrites them for a batch.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from picograd.buffer import RuntimeScalar
from picograd.errors import TraceError


class Running(threading.local):
    """The traces that run in this thread: what each is, and what those of `jit` draw."""

    def __init__(self) -> None:
        self.active: list[str] = []  # the innermost last
        self.drawn: list[list[RuntimeScalar]] = []


RUNNING = Running()
OUTSIDE = {
    "picograd.jit": "return the tensor and read it outside the jitted function",
    "picograd.scan": "return it in y and read it after the loop; choose with where, not if",
    "vmap": "compute it with tensor operations (where, masks), or read it outside the function",
}


def is_tracing() -> bool:
    """Tell whether a jitted function is being traced."""
    return bool(RUNNING.active)


def check_not_tracing(what: str) -> None:
    """Raise TraceError when a value is needed while tracing, at the user's line."""
    if RUNNING.active:
        problem = f"the value of a traced tensor is not known while {RUNNING.active[-1]} traces"
        raise TraceError(what, problem, OUTSIDE[RUNNING.active[-1]])


@contextmanager
def tracing(what: str = "picograd.jit") -> Iterator[None]:
    """Trace inside this block: realizations wait until it ends."""
    RUNNING.active.append(what)
    try:
        yield
    finally:
        RUNNING.active.pop()


@contextmanager
def drawing() -> Iterator[list[RuntimeScalar]]:
    """List the numbers drawn inside this block, in the order in which a plain run draws them."""
    RUNNING.drawn.append([])
    try:
        yield RUNNING.drawn[-1]
    finally:
        RUNNING.drawn.pop()


def note_draw(scalar: RuntimeScalar) -> RuntimeScalar:
    """Remember a number that every run of a jitted plan draws again, and return it."""
    for drawn in RUNNING.drawn:
        drawn.append(scalar)
    return scalar
