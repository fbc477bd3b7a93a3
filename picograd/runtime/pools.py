"""Threads as far as the system gives any: where it refuses, the caller works with fewer, or alone.

None are started any more while Python ends: functions of `atexit` may still compute then.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any


def may_start() -> bool:
    """Tell whether threads may be started: not any more when the main one has ended."""
    return threading.main_thread().is_alive()


def has_started(thread: threading.Thread) -> bool:
    """Start a thread, and tell whether there is one: a limit of the system may be reached."""
    if not may_start():
        return False
    try:
        thread.start()
    except (RuntimeError, MemoryError):  # "can't start new thread"
        return False
    return True


def pool(threads: int) -> Any:
    """Make an executor of at most so many threads, which start as work comes.

    As one of `concurrent.futures`, whose import takes a tenth of that of picograd.
    """
    import queue
    from concurrent.futures import Executor, Future

    class Pool(Executor):
        """Runs what is submitted in its threads; at once, in the caller's, if there are none."""

        def __init__(self) -> None:
            self.threads: list[threading.Thread] = []
            self.work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

        def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            done: Future[Any] = Future()
            job = functools.partial(run, done, functools.partial(function, *args, **named))
            if len(self.threads) < threads:
                thread = threading.Thread(target=serve, args=(self.work,), name="picograd-compile")
                if has_started(thread):
                    self.threads.append(thread)
            if self.threads:
                self.work.put(job)
            else:
                job()
            return done

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            while cancel_futures and not self.work.empty():
                job: Any = self.work.get()
                job.args[0].cancel()
            for _ in self.threads:
                self.work.put(None)
            for thread in self.threads if wait else ():
                thread.join()

    return Pool()


def serve(work: Any) -> None:
    """Do what comes, until there is nothing more."""
    while (job := work.get()) is not None:
        job()
        del job


def run(done: Any, function: Callable[[], Any]) -> None:
    """Run a function, and note its result or its error, unless nobody waits for it any more."""
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(function())
    except BaseException as error:
        done.set_exception(error)
