"""How far an iterator or a generator of random numbers is: a replay cannot move it on.

A function that is traced may take the next value of an iterator (`next(schedule)`), or a random
number of Python's or NumPy's. The value is a constant of the graph then, and every run must take
another. So what it reaches of these is looked at before and after: where one moved, the trace
stands for that call alone.
"""

import gc
import operator
import random
import types
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count, cycle
from typing import Any

import numpy as np

DEPTH = 8  # iterators of iterators that are looked into
WIDTH = 64  # iterators that one takes its values from: zip, map
UNKNOWN = -1


@cache
def moving_kinds() -> tuple[type, ...]:
    """List the classes of generators; NumPy imports its own when they are first named."""
    numbers = (random.Random, np.random.Generator, np.random.RandomState)
    return (*numbers, types.GeneratorType)


def is_moving(value: Any) -> bool:
    """Tell whether a value is one that gives another value each time it is asked."""
    return isinstance(value, moving_kinds()) or is_iterator(value)


def is_iterator(value: Any) -> bool:
    """Tell whether a value is an iterator of C; one written in Python is followed as any object."""
    return isinstance(value, Iterator) and not hasattr(value, "__dict__")


def progress_of(value: Any, depth: int = DEPTH) -> Any:
    """Tell how far an iterator or a generator is: equal if it did not move."""
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state())
    if isinstance(value, random.SystemRandom):
        return object()  # it has no state, and never gives the same
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, types.GeneratorType):
        return generator_progress(value)
    if isinstance(value, count):
        return repr(value)
    if isinstance(value, cycle):
        return cycle_progress(value)
    left = operator.length_hint(value, UNKNOWN) if isinstance(value, Iterator) else UNKNOWN
    return left, inner_progress(value, depth)


def rewinding(value: Any) -> Callable[[], None]:
    """Make what puts a generator of random numbers back where it is; nothing does an iterator."""
    if isinstance(value, np.random.Generator):
        bits = value.bit_generator
        return partial(setattr, bits, "state", bits.state)
    if isinstance(value, np.random.RandomState):
        return partial(value.set_state, value.get_state())
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return partial(value.setstate, value.getstate())
    return lambda: None


def generator_progress(value: Any) -> Any:
    """Tell where a generator stopped, and what its variables are, by identity."""
    frame = value.gi_frame
    if frame is None:
        return None
    names = {name: id(each) for name, each in frame.f_locals.items()}
    return frame.f_lasti, names, [progress_of(e) for e in frame.f_locals.values() if is_moving(e)]


def cycle_progress(value: Any) -> Any:
    """Tell which element comes next; where Python does not say, no two answers are equal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            _, (rest,), _ = value.__reduce__()
    except TypeError:
        return object()
    return progress_of(rest)


def inner_progress(value: Any, depth: int) -> list[Any]:
    """Tell how far the iterators are that an iterator of C takes its values from."""
    if depth == 0:
        return []
    inner: list[Any] = []
    for each in gc.get_referents(value):
        inner += each[:WIDTH] if isinstance(each, tuple) else [each]
    return [progress_of(each, depth - 1) for each in inner if is_moving(each)]
