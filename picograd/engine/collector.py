"""Python's collector of garbage, paused while picograd walks and makes nodes.

It looks for cycles whenever some hundred more objects were made than are gone, and now and then at
all objects of the process. Recording a step makes thousands, which are in no cycle and end by their
counts: of a step of GPT-2 a fifth went there, and nothing was found. Beside the pauses (`Pace`):

    young objects   one look for as many as a step has at once, where that was more than Python's
                    700 (2,000); at most 10,000
    all objects     so rarely that it takes a fiftieth of the time. Python looks at all after every
                    tenth look at those that outlived two, as the nodes of each long step do: one
                    look in 25 steps of GPT-2 took as long as ten steps
"""

import _thread
import ctypes
import functools
import gc
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
SHARE = 50  # looks at all objects take one part in so many of the time
RAREST = 1000  # looks at objects that outlived one, for one at all
YOUNGEST = 10_000  # objects: some MB
PYTHONS = 700, 2000  # young objects before a look, as Python sets it
PAUSED = (1 << 31) - 1  # young objects before a look, where none is wanted: C's largest int


class Pace:
    """This class lets Python look at objects as seldom as is worth it, or as often as at first.

    Whoever sets thresholds of his own finds them kept, those from before the first computation too,
    and `gc.collect()` is none of this.
    """

    def __init__(self) -> None:
        self.young, _, self.least = gc.get_threshold()
        if self.young not in PYTHONS:
            self.young, self.least = sys.maxsize, 0
        self.set = self.least
        self.begun = self.ended = time.perf_counter()
        self.is_due = False

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """Note that a look begins or ends, which the collector tells."""
        if info["generation"] < 2:
            return
        first, second, oldest = gc.get_threshold()
        if phase == "start":
            self.is_due = gc.get_count()[2] > oldest
            self.begun = time.perf_counter()
        elif self.is_due and self.least and oldest == self.set:
            now = time.perf_counter()
            needed = oldest * SHARE * (now - self.begun) / (now - self.ended)
            self.ended = now
            self.set = max(self.least, min(int(needed), RAREST))
            gc.set_threshold(first, second, self.set)

    def make_room(self, count: int) -> None:
        """Let so many young objects be there at once without a look at them."""
        first, *older = gc.get_threshold()
        if first == self.young and 0 < first < YOUNGEST:
            self.young = min(count + count // 4, YOUNGEST)
            gc.set_threshold(self.young, older[0], older[1])


def begin() -> None:
    """Let the collector tell of its looks from now on."""
    before = sys.unraisablehook

    def hook(lost: Any) -> None:
        """Raise what the handler of a signal raised in the callback: it would be printed alone."""
        if lost.object in PACE and lost.exc_value is not None:
            _thread.start_new_thread(raise_behind, (_thread.get_ident(), lost.exc_value))
        else:
            before(lost)

    PACE.append(Pace())
    gc.callbacks.append(PACE[0])
    sys.unraisablehook = hook


def raise_behind(thread: int, error: BaseException) -> None:
    """Raise an error in a thread once the callback has ended, and its hook."""

    class Late(type(error)):  # type: ignore[misc]  # Python makes the error, of a class
        def __new__(cls) -> Any:
            return error

    time.sleep(0.001)
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual and isinstance(error, KeyboardInterrupt):  # which wakes the thread, too
        signal.pthread_kill(thread, signal.SIGINT)
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Late))


PACE: list[Pace] = []  # from the first computation on


def undisturbed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let the collector wait until a function returns. Who paused it finds it paused.

    It waits by its threshold: whether it is enabled is the user's, whose hooks may run meanwhile.
    """

    @functools.wraps(function)
    def call(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        if not PACE:
            begin()
        first, *older = gc.get_threshold()
        if first == PAUSED or not gc.isenabled():
            return function(*args, **options)
        try:  # first: the handler of a signal may raise behind any call
            gc.set_threshold(PAUSED, *older)
            return function(*args, **options)
        finally:
            try:
                count = gc.get_count()[0]
                now, *older = gc.get_threshold()
            except BaseException:
                gc.set_threshold(first, *older)
                raise
            if now == PAUSED:  # else the function set another
                gc.set_threshold(first, *older)
            if count > PACE[0].young:
                PACE[0].make_room(count)

    return call
