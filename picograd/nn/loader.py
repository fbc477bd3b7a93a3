"""DataLoader: walk a data set in batches of tensors.

    sampler -> positions of a batch -> samples -> joined on the host -> tensors on the device

Data sets made of arrays skip the middle: a batch is one gather. `num_workers` threads do everything
up to the joined batch ahead of the program, and the copy to the device runs one batch ahead.

Workers of a DataLoader: threads that load batches ahead of the program that asks for them.

Why threads: data sets need not be picklable, no batch is copied between processes, and a process
with native worker threads or a CUDA context must not be forked. What loading spends its time on
(reading files, decompressing, NumPy on large arrays) runs without Python's lock; pure Python code
does not get faster. Batches become tensors in the caller's thread; tensors that a data set makes
are computed here.

Batch k is loaded by worker k modulo their number and delivered in order, and what a worker draws at
random is of a generator of its own, so what a program sees does not depend on timing.
"""

import functools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Generator as GeneratorType
from dataclasses import dataclass  # at once: `WorkerInfo` is shown with its parameters
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from picograd.errors import DataError, DTypeError, StateError, ValueRangeError
from picograd.nn import dataset_types
from picograd.nn.collate import (
    computed,
    default_collate,
    default_convert,
    holds_tensor,
    stack,
    to_tensors,
    with_lists,
)
from picograd.runtime.pools import has_started
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.making.random import OWN, Generator
from picograd.tensor.tensor import Tensor

ARRAYS = (Tensor, np.ndarray)
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
    """An exception of the data set, on its way to the program."""

    error: BaseException


class Batches:
    """This class walks a loader; after an exception of the data set it goes on behind it."""

    def __init__(self, steps: GeneratorType[Any, None, None]) -> None:
        self.steps = steps
        self.close = steps.close

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Any:
        batch = next(self.steps)
        if not isinstance(batch, Failure):
            return batch
        del self  # a traceback that is kept would keep the workers
        if isinstance(batch.error, StopIteration):  # it would end the walk without a word
            raise RuntimeError("a sample raised StopIteration") from batch.error
        raise batch.error


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
        if not has_started(self.thread):
            text = f"the system started {info.id} threads of num_workers={info.num_workers}"
            raise StateError(
                "DataLoader", text, "use fewer workers, or raise the limit (ulimit -u)"
            )


def serve(
    info: WorkerInfo,
    start: Callable[[], Job],
    tasks: "queue.SimpleQueue[Any]",
    replies: "queue.SimpleQueue[Any]",
    stop: threading.Event,
) -> None:
    """Answer each task by its result or its exception, until there is no next task."""
    CURRENT.info, OWN.generator = info, Generator(info.seed)
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


def deliver(
    begin: Callable[[], Feed], finish: Callable[[Any], Any]
) -> GeneratorType[Any, None, None]:
    """Yield finished batches; the next one, if it is loaded, goes to the device ahead of its turn.

    A worker's Failure comes when its batch is due, with the worker's traceback. The workers
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
            ahead = finished(feed.next(wait=False), finish)
            yield batch
    finally:
        feed.close()


def finished(reply: Any, finish: Callable[[Any], Any]) -> Any:
    """Finish a batch; what is no batch stays what it is."""
    if reply is END or reply is LATER or isinstance(reply, Failure):
        return reply
    try:
        return finish(reply)
    except Exception as error:
        return Failure(error)


GATHERING = (
    dataset_types.TensorDataset,
    dataset_types.ArrayDataset,
    dataset_types.Rows,
)  # exactly these: a subclass may change its samples
KEPT = (  # options that are attributes as they are
    "device", "drop_last", "in_order", "multiprocessing_context", "num_workers",
    "persistent_workers", "pin_memory", "pin_memory_device", "timeout", "worker_init_fn",
)  # fmt: skip
FIXED = ("batch_sampler", "batch_size", "drop_last", "sampler")
AHEAD = 2  # batches each worker loads ahead, as in PyTorch


class Endless(dataset_types.Sampler):
    """The tasks of workers that walk a stream: `go on`, without end."""

    def __iter__(self) -> Iterator[bool]:
        return repeat(True)


class DataLoader(dataset_types.OfSamples):
    """This class yields batches of a data set, as PyTorch's of the same name.

    `dataset` has `len` and an index, or is an IterableDataset, or a tensor or array whose rows are
    the samples. Samples that are tuples come as a list of batches. The order is that of `sampler`,
    or of `batch_sampler`, or random with `shuffle`, drawn from `generator` (or `seed`): a new order
    each epoch, the same in every run and for any number of workers. batch_size=None yields samples.

    num_workers    threads that load ahead, prefetch_factor batches each (default 2); the samples
                   they load must not be tensors, since tensors belong to one thread
    collate_fn     joins a list of samples, in the caller's thread (default `default_collate`)
    drop_last      leave out a last batch that is not full
    timeout        seconds to wait for a batch of the workers; 0: for ever
    worker_init_fn called with the worker's number before its first sample
    device         where the batches go; default: tensors stay, arrays go to the default device

    Accepted without effect: pin_memory, pin_memory_device (copies to a GPU are always staged
    through pinned memory), persistent_workers (threads start at once), in_order.

    Raises ValueRangeError for options that exclude each other. An exception of the data set is
    raised at the caller's line, with the traceback of the worker.

    >>> from picograd import Tensor, nn
    >>> data = nn.TensorDataset(Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0]))
    >>> [x.tolist() for x, y in nn.DataLoader(data, batch_size=2)]
    [[1.0, 2.0], [3.0]]
    """

    dataset: dataset_types.Rows | Any
    sampler: Iterable[Any] | dataset_types.Sampler
    num_workers: int
    drop_last: bool
    timeout: float
    worker_init_fn: Callable[[int], Any] | None
    device: DeviceLike | None

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None, batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: None = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
        seed: int | None = None, device: DeviceLike | None = None,
    ) -> None:  # fmt: skip
        options = dict(locals())
        check_options(options)
        self.dataset = dataset_types.Rows(dataset) if isinstance(dataset, ARRAYS) else dataset
        self._is_stream: bool = isinstance(dataset, dataset_types.IterableDataset)
        self.batch_size: int | None = None if batch_sampler is not None else batch_size
        self.collate_fn: Callable[[Any], Any] = collate_fn or (
            default_convert if batch_size is None and batch_sampler is None else default_collate
        )
        self.prefetch_factor = prefetch_factor or (AHEAD if num_workers else None)
        vars(self).update({name: options[name] for name in KEPT})
        self.generator: Generator | None = Generator(seed) if seed is not None else generator
        self.sampler = sampler if sampler is not None else self._sampler(bool(shuffle))
        if batch_sampler is None and batch_size is not None:
            batch_sampler = dataset_types.BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler: dataset_types.BatchSampler | Iterable[Any] | None = batch_sampler

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and "batch_sampler" in vars(self):  # samplers were made of them
            text = f"{name} of a loader that is made would change nothing"
            raise ValueRangeError("DataLoader", text, "make a loader with it")
        super().__setattr__(name, value)

    @property
    def is_joined(self) -> bool:
        """Does the loader join the samples, and no function of the program?"""
        return self.collate_fn in (default_collate, default_convert)

    @property
    def _auto_collation(self) -> bool:
        """Is a batch made of samples? Where a class of a program says no, the data set makes it."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """What the loader walks: batches of indices, or indices."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def _sampler(self, shuffle: bool) -> dataset_types.Sampler:
        if self._is_stream:
            return Endless()
        if shuffle:
            return dataset_types.RandomSampler(self.dataset, generator=self.generator)
        return dataset_types.SequentialSampler(self.dataset)

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return (count + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def __iter__(self) -> Iterator[Any]:
        seed = int(dataset_types.host_random(self.generator).integers(1 << 62))
        tasks: Iterator[Any] = repeat(True) if self._is_stream else iter(self._index_sampler)
        if self.num_workers:  # PyTorch's are given work at once: an order is drawn now
            ahead = self.num_workers * (self.prefetch_factor or AHEAD)
            tasks = chain(list(islice(tasks, ahead)), tasks)
        gather = find_gather(self.dataset) if self.is_joined else None
        is_on_device = gather is not None and not is_on_host(self.dataset)
        if self.num_workers and not is_on_device:
            return Batches(deliver(functools.partial(self._feed, tasks, seed), self._finish))
        return Batches(self._load_here(tasks))

    def _load_here(self, tasks: Iterator[Any]) -> GeneratorType[Any, None, None]:
        """Load in the caller's thread."""
        job = self._start(is_worker=False)
        stop = threading.Event()
        for task in tasks:
            try:
                batch = job(task, stop)
            except Exception as error:
                batch = Failure(error)
            if batch is END:
                return
            yield finished(batch, self._finish)

    def _feed(self, tasks: Iterator[Any], seed: int) -> Feed:
        """Start the workers."""
        count, stop = self.num_workers, threading.Event()
        workers = []
        for number in range(count):
            info = WorkerInfo(number, count, seed + number, self.dataset)
            try:
                workers.append(Worker(info, functools.partial(self._start, True, number), stop))
            except StateError:
                for each in workers:
                    each.tasks.put(None)
                raise
        timeout = self.timeout or None
        return Feed(workers, tasks, count * (self.prefetch_factor or AHEAD), timeout, stop)

    def _start(self, is_worker: bool, number: int = 0) -> Job:
        """Make the function that loads one batch, at the beginning of a walk."""
        if is_worker and self.worker_init_fn is not None:
            self.worker_init_fn(number)
        is_batched = self._auto_collation
        join = stack if self.is_joined and is_batched else None
        if self._is_stream:
            stream = iter(self.dataset)
            if is_batched:
                stream = dataset_types.batches_of(stream, self.batch_size or 1, self.drop_last)
            return functools.partial(load_next, stream, join, is_worker)
        gather = find_gather(self.dataset) if join is not None else None
        if gather is not None:
            return functools.partial(load_gathered, gather)
        return functools.partial(load_samples, self.dataset, is_batched, join, is_worker)

    def _finish(self, batch: Any) -> Any:
        """Make the tensors of a batch, in the caller's thread."""
        if not self.is_joined:
            batch = self.collate_fn(batch)
            return batch if self.device is None else to_tensors(batch, self.device)
        batch = to_tensors(batch, self.device)
        return with_lists(batch) if self.collate_fn is default_convert else batch


def find_gather(dataset: Any) -> Callable[[Any], Any] | None:
    """Find the function that gives a whole batch of a data set in one go, if it has one."""
    if type(dataset) is dataset_types.Subset:
        inner = find_gather(dataset.dataset)
        indices = np.asarray(dataset.indices)
        return None if inner is None else lambda positions: inner(indices[positions])
    return dataset.gather if type(dataset) in GATHERING else None


def is_on_host(dataset: Any) -> bool:
    """Tell whether a gathering data set gives NumPy arrays."""
    while type(dataset) is dataset_types.Subset:
        dataset = dataset.dataset
    return isinstance(dataset, dataset_types.GatheringDataset) and dataset.is_host


def load_gathered(gather: Callable[[Any], Any], positions: list[int], stop: threading.Event) -> Any:
    """Load a batch in one indexing operation."""
    return gather(np.asarray(positions, np.int64))


def load_samples(
    dataset: Any,
    is_batched: bool,
    join: Callable[[Any], Any] | None,
    is_worker: bool,
    positions: Any,
    stop: threading.Event,
) -> Any:
    """Load the samples of a batch one by one, or as the data set does, and join them; or one."""
    samples, load_all = [], getattr(dataset, "__getitems__", None) if is_batched else None
    if load_all:
        samples = load_all(positions)
    for position in () if load_all else positions if is_batched else [positions]:
        if stop.is_set():
            raise Stopped
        samples.append(dataset[position])
    samples = finished_samples(samples, is_worker, join is not None)
    batch = samples if is_batched else samples[0]
    return batch if join is None else join(batch)


def load_next(
    stream: Iterator[Any],
    join: Callable[[Any], Any] | None,
    is_worker: bool,
    task: Any,
    stop: threading.Event,
) -> Any:
    """Load the next batch, or sample, of a stream; END after the last."""
    batch = next(stream, END)
    if batch is END:
        return END
    batch = finished_samples(batch, is_worker, join is not None)
    return batch if join is None else join(batch)


def finished_samples(samples: Any, is_worker: bool, is_joined: bool) -> Any:
    """Compute the tensors that a worker made, where its thread is; those to be joined as arrays."""
    return computed(samples, is_joined) if is_worker and holds_tensor(samples) else samples


def need_length(data: Any) -> None:
    """Raise DTypeError for a data set whose elements cannot be counted, such as a generator."""
    if not hasattr(data, "__len__"):
        problem = f"a {type(data).__name__} has no length"
        fix = "pass a data set with __len__ and __getitem__, or an IterableDataset"
        raise DTypeError("DataLoader", problem, fix)


def check_options(options: dict[str, Any]) -> None:
    """Raise ValueRangeError for options that are out of range or exclude each other."""
    given = {name for name in ("sampler", "batch_sampler") if options[name] is not None}
    given |= {"shuffle"} if options["shuffle"] else set()
    size, workers, factor = (
        options[name] for name in ("batch_size", "num_workers", "prefetch_factor")
    )
    if isinstance(size, Tensor):
        refuse("batch_size is a Tensor", "join tensors: nn.TensorDataset(x, y)")
    if size is not None and (not isinstance(size, (int, np.integer)) or size < 1):
        refuse(f"batch_size={size!r} is not positive", "use 1 or more")
    if not isinstance(workers, (int, np.integer)) or workers < 0:
        refuse(f"num_workers={workers!r} is no count", "use 0 or more")
    if options["timeout"] < 0:
        refuse(f"timeout={options['timeout']} is negative", "use 0 to wait for ever")
    if factor is not None and (not workers or factor < 1):
        refuse(f"prefetch_factor={factor} with {workers} workers", "use 1 or more of both")
    if options["multiprocessing_context"] is not None:
        refuse("workers are threads, not processes", "leave out multiprocessing_context")
    if options["seed"] is not None and options["generator"] is not None:
        refuse("seed and generator are given", "use one of them")
    data = options["dataset"]
    if not isinstance(data, dataset_types.IterableDataset) and not given - {"shuffle"}:
        need_length(data)
    if isinstance(data, dataset_types.IterableDataset) and given:
        refuse(f"a stream has no order to choose: {', '.join(sorted(given))}", "leave it out")
    if {"shuffle", "sampler"} <= given:
        refuse("shuffle and sampler are given", "use one of them")
    rest = given - {"batch_sampler"}
    rest |= {
        name for name, usual in (("batch_size", 1), ("drop_last", False)) if options[name] != usual
    }
    if "batch_sampler" in given and rest:
        refuse(f"batch_sampler excludes {', '.join(sorted(rest))}", "leave it out")
    if size is None and options["drop_last"]:
        refuse("batch_size=None with drop_last", "give a batch size")


def refuse(problem: str, fix: str) -> None:
    """Raise the error of a DataLoader's options."""
    raise ValueRangeError("DataLoader", problem, fix)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Give the four numbers that seed a worker's generator of NumPy, under PyTorch's name."""
    parts = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(each) for each in np.random.SeedSequence(parts).generate_state(4)]
