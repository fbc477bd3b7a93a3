"""Whether `picograd.jit` is tracing: while it is, nothing may be realized or read.

A trace is a list of the nodes whose realization was asked for; `jit` realizes them all in one plan
when the traced function returns.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from picograd.errors import TraceError

ACTIVE: list[bool] = []


def is_tracing() -> bool:
    """Tell whether a jitted function is being traced."""
    return bool(ACTIVE)


def check_not_tracing(what: str) -> None:
    """Raise TraceError when a value is needed while tracing, at the user's line."""
    if ACTIVE:
        problem = "the value of a traced tensor is not known while picograd.jit traces"
        raise TraceError(what, problem, "return the tensor and read it outside the jitted function")


@contextmanager
def tracing() -> Iterator[None]:
    """Trace inside this block: realizations wait until it ends."""
    ACTIVE.append(True)
    try:
        yield
    finally:
        ACTIVE.pop()
