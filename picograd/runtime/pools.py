"""Threads are started but while Python ends: functions of `atexit` may still compute then."""

import threading
from collections.abc import Callable
from typing import Any


def may_start() -> bool:
    """Tell whether threads may be started: not any more when the main one has ended."""
    return threading.main_thread().is_alive()


def pool(threads: int) -> Any:
    """Make an executor of so many threads, or of none where no thread may start any more.

    An executor of `concurrent.futures`, whose import takes a tenth of that of picograd.
    """
    if may_start():
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(threads, "picograd-compile")
    from concurrent.futures import Executor, Future

    class Caller(Executor):
        """Runs what is submitted at once, in the thread that submits it."""

        def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            done: Future[Any] = Future()
            try:
                done.set_result(function(*args, **named))
            except Exception as error:
                done.set_exception(error)
            return done

    return Caller()
