"""The first import, during which Python's collector of garbage waits; what it made is left alone.

An import makes some 50,000 objects, functions and their tables, that live as long as the process.
Collections would walk over them while they are made, whenever the process is looked at as a whole,
and three times at its end: a quarter of a short program's time.

Objects that are left alone (`gc.freeze`) are those of a process that has hardly begun: where a
program had made many of its own, they may be garbage one day.

The program's own globals are among what is left alone, and Python leaves them to its collector as
it ends. Where something of them wants to be told, an open file or a `__del__`, it looks at all.
"""

import atexit
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from picograd.helpers import paused_collection

FEW = 40_000  # objects: Python and NumPy make 20,000, a notebook 100,000
PYTHONS = 1000  # objects: Python 3.12 begins with 375 that are left alone, others with none
TOLD_BY_NOBODY = "builtins", "picograd", "llvmlite"  # generators, memory, machine code
FROZEN: list[bool] = []  # not empty while objects are left alone


@contextmanager
def first_import() -> Iterator[None]:
    """Let the collector wait, and leave alone what is there afterwards."""
    is_untouched = gc.isenabled() and gc.get_freeze_count() < PYTHONS
    before = gc.get_objects() if is_untouched else []
    is_young = is_untouched and len(before) < FEW and not are_told(before)
    del before  # what is garbage already is held by nobody
    if is_young:
        gc.collect()  # what is garbage already goes
    with paused_collection():
        yield
        if is_young:  # before the collector is back, which would look at all of it once: 20 ms
            gc.freeze()
            FROZEN.append(True)
            atexit.register(hand_back)


def are_told(values: Sequence[Any]) -> bool:
    """Tell whether an object is told of its end: it has a `__del__` and is no standard stream."""
    kinds = {kind for kind in set(map(type, values)) if hasattr(kind, "__del__")}
    kinds = {kind for kind in kinds if kind.__module__.partition(".")[0] not in TOLD_BY_NOBODY}
    found = [value for value in values if type(value) in kinds] if kinds else []
    return any(type(x).__module__ != "_io" or "name='<std" not in repr(x) for x in found)


def hand_back() -> None:
    """Let the collector look at all objects as Python ends, if any of them is told of it: 50 ms."""
    if FROZEN and are_told(gc.get_objects()):
        gc.unfreeze()


def holders_of(values: Sequence[Any]) -> list[Any]:
    """List the objects that refer to one of some, as `gc.get_referrers`, those left alone too.

    All objects of the process are looked at: 0.1 us each. Values given one by one would be in a
    tuple of the call's, which is found, and who holds that is asked for in vain.
    """
    if FROZEN:
        FROZEN.clear()
        gc.unfreeze()
    return gc.get_referrers(*values)
