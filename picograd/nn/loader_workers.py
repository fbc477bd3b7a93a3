"""Workers of a DataLoader: threads that load batches ahead of the program that asks for them.

Why threads: data sets need not be picklable, no batch is copied between processes, and a process
with native worker threads or a CUDA context must not be forked. What loading spends its time on
(reading files, decompressing, NumPy on large arrays) runs without Python's lock; pure Python code
does not get faster. Batches become tensors in the caller's thread; tensors that a data set makes
are computed here.

Batch k is loaded by worker k modulo their number and delivered in order, so what a program sees
does not depend on timing.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from picograd.errors import DataError
from picograd.late_methods import dataclass

END = object()  # a worker's stream is over
LATER = object()  # the next batch is not loaded yet
WAKE = 0.5  # seconds between looks at signals while waiting
PATIENCE = 1.0  # seconds to wait for workers that are told to stop

Job = Callable[[Any, threading.Event], Any]


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed, the data set.

    >>> from picograd import nn
    >>> nn.WorkerInfo(id=0, num_workers=2, seed=1, dataset=[5, 6]).num_workers
    2
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


CURRENT = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Describe the worker this runs in; None in the program's own thread.

    >>> from picograd import nn
    >>> nn.get_worker_info() is None
    True
    """
    return getattr(CURRENT, "info", None)


@dataclass(frozen=True)
class Failure:
    """An exception of a worker, on its way to the program."""

    error: BaseException


class Stopped(Exception):
    """The program wants no more batches."""


class Worker:
    """One thread with its tasks and its replies, in order."""

    def __init__(self, info: WorkerInfo, start: Callable[[], Job], stop: threading.Event) -> None:
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        arguments = (info, start, self.tasks, self.replies, stop)
        name = f"picograd loader {info.id}"
        self.thread = threading.Thread(target=serve, args=arguments, name=name, daemon=True)
        self.thread.start()


def serve(
    info: WorkerInfo,
    start: Callable[[], Job],
    tasks: "queue.SimpleQueue[Any]",
    replies: "queue.SimpleQueue[Any]",
    stop: threading.Event,
) -> None:
    """Answer each task by its result or its exception, until there is no next task."""
    CURRENT.info = info
    job = None
    while (task := tasks.get()) is not None and not stop.is_set():
        try:
            job = job or start()
            reply = job(task, stop)
        except BaseException as error:
            reply = Failure(error)
        replies.put(reply)


class Feed:
    """Batches in order: at most `in_flight` tasks are with the workers at any time."""

    in_flight: int
    timeout: float | None

    def __init__(
        self,
        workers: list[Worker],
        tasks: Iterator[Any],
        in_flight: int,
        timeout: float | None,
        stop: threading.Event,
    ) -> None:
        self.workers: list[Worker] = workers
        self.active: list[Worker] = list(workers)
        self.tasks: Iterator[Any] = tasks
        self.in_flight, self.timeout, self.stop = in_flight, timeout, stop
        self.sent: deque[Worker] = deque()
        self.turn: int = 0

    def fill(self) -> None:
        """Give the first tasks."""
        for _ in range(self.in_flight):
            self.send()

    def send(self) -> None:
        """Give the next task to the next worker whose stream is not over."""
        task = next(self.tasks, None) if self.active else None
        if task is not None:
            worker = self.active[self.turn % len(self.active)]
            self.turn += 1
            worker.tasks.put(task)
            self.sent.append(worker)

    def next(self, wait: bool = True) -> Any:
        """Return the next result, a Failure or END; without `wait` LATER if it is not there."""
        while self.sent:
            worker = self.sent[0]
            if not wait and worker.replies.empty():
                return LATER
            reply = receive(worker.replies, self.timeout)
            self.sent.popleft()
            if reply is END and worker in self.active:
                self.active.remove(worker)
            self.send()
            if reply is not END:
                return reply
        return END

    def close(self) -> None:
        """Stop the workers; one in the middle of a sample ends after it, by itself."""
        self.stop.set()
        for worker in self.workers:
            worker.tasks.put(None)
        end = time.monotonic() + PATIENCE
        for worker in self.workers:
            worker.thread.join(max(0.0, end - time.monotonic()))


def receive(replies: "queue.SimpleQueue[Any]", timeout: float | None) -> Any:
    """Wait for the next reply, at most `timeout` seconds.

    It wakes up now and then because a signal that comes just before a thread begins to wait does
    not end the wait: Ctrl-C would be seen only with the next reply.
    """
    waited = 0.0
    while timeout is None or waited < timeout:
        step = WAKE if timeout is None else min(WAKE, timeout - waited)
        try:
            return replies.get(timeout=step)
        except queue.Empty:
            waited += step
    problem = f"no batch within {timeout:g} seconds"
    raise DataError("DataLoader", problem, "raise timeout=, or see what the data set waits for")


def deliver(begin: Callable[[], Feed], finish: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield finished batches; the next one, if it is loaded, goes to the device ahead of its turn.

    A worker's exception is raised when its batch is due, with the worker's traceback. The workers
    start with the first batch asked for, and stop when this generator is closed or dropped.
    """
    feed = begin()
    try:
        feed.fill()
        ahead = LATER
        while True:
            batch = finished(feed.next(), finish) if ahead is LATER else ahead
            if batch is END:
                return
            if isinstance(batch, Failure):
                raise batch.error
            ahead = finished(feed.next(wait=False), finish)
            yield batch
    finally:
        feed.close()


def finished(reply: Any, finish: Callable[[Any], Any]) -> Any:
    """Finish a batch; what is no batch stays what it is."""
    is_batch = reply is not END and reply is not LATER and not isinstance(reply, Failure)
    return finish(reply) if is_batch else reply
