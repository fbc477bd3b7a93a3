"""The first import, during which Python's collector of garbage waits; what it made is left alone.

An import makes some 50,000 objects, functions and their tables, that live as long as the process.
Collections would walk over them while they are made, whenever the process is looked at as a whole,
and three times at its end: a quarter of a short program's time.

Objects that are left alone (`gc.freeze`) are those of a process that has hardly begun: where a
program had made many of its own, they may be garbage one day.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from picograd.helpers import paused_collection

FEW = 40_000  # objects: Python and NumPy make 20,000, a notebook 100,000
FROZEN: list[bool] = []  # not empty while objects are left alone


@contextmanager
def first_import() -> Iterator[None]:
    """Let the collector wait, and leave alone what is there afterwards."""
    is_young = gc.isenabled() and not gc.get_freeze_count() and len(gc.get_objects()) < FEW
    if is_young:
        gc.collect()  # what is garbage already goes
    with paused_collection():
        yield
        if is_young:  # before the collector is back, which would look at all of it once: 20 ms
            gc.freeze()
            FROZEN.append(True)


def holders_of(values: Sequence[Any]) -> list[Any]:
    """List the objects that refer to one of some, as `gc.get_referrers`, those left alone too.

    All objects of the process are looked at: 0.1 us each. Values given one by one would be in a
    tuple of the call's, which is found, and who holds that is asked for in vain.
    """
    if FROZEN:
        FROZEN.clear()
        gc.unfreeze()
    return gc.get_referrers(*values)
