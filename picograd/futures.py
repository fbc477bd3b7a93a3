"""PyTorch's `torch.futures`: values that a thread sets and others wait for."""

from collections.abc import Callable, Sequence
from threading import Condition
from typing import Any, Generic, TypeVar

from picograd.errors import StateError

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """This class is a value that is set once, or an error that is raised where it is read.

    >>> from picograd.futures import Future
    >>> future = Future()
    >>> future.set_result(3)
    >>> future.then(lambda done: done.value() + 1).wait()
    4
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = Condition()
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Tell whether the value is set."""
        return self._is_done

    def wait(self) -> T:
        """Wait for the value."""
        self._wait_until_done()
        return self.value()

    def value(self) -> T:
        """Give the value. Raises StateError before it is set, and the error that was set."""
        if not self._is_done:
            raise StateError("Future", "the value is not set yet", "call wait()")
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[no-any-return]

    def set_result(self, result: T) -> None:
        """Set the value, and call what waits for it. Raises StateError for a second one."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error in the place of the value."""
        self._finish(None, result)

    def add_done_callback(self, callback: "Callable[[Future[T]], Any]") -> None:
        """Call a function with this future once it is done, or now."""
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: "Callable[[Future[T]], S]") -> "Future[S]":
        """Give the future of what a function makes of this one."""
        made: Future[S] = Future()

        def follow(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                made.set_exception(error)
            else:
                made.set_result(result)

        self.add_done_callback(follow)
        return made

    def _wait_until_done(self) -> None:
        with self._changed:
            self._changed.wait_for(self.done)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._is_done:
                raise StateError("Future", "the value is set already", "make another future")
            self._result, self._error, self._is_done = result, error, True
            waiting = list(self._callbacks)
            self._changed.notify_all()
        for callback in waiting:
            callback(self)


def collect_all(futures: Sequence[Future[T]]) -> Future[list[Future[T]]]:
    """Wait for futures, and give one of their list.

    >>> from picograd.futures import Future, collect_all
    >>> collect_all([]).wait()
    []
    """
    for each in futures:
        each._wait_until_done()
    joined: Future[list[Future[T]]] = Future()
    joined.set_result(list(futures))
    return joined


def wait_all(futures: Sequence[Future[T]]) -> list[T]:
    """Wait for futures, and give their values."""
    return [each.wait() for each in futures]
