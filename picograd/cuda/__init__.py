"""NVIDIA GPUs under torch.cuda's names. Without a GPU, questions have answers; work is an error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from picograd.absent import CUDAGraph as CUDAGraph
from picograd.absent import refuse_capture as graph  # noqa: F401
from picograd.config import config
from picograd.cuda import amp, nvtx
from picograd.device_name import device as named
from picograd.engine.backends import get_device, is_usable
from picograd.errors import DeviceError, OutOfMemoryError
from picograd.runtime.device import Device
from picograd.target import is_gpu
from picograd.tensor.core.annotations import DeviceLike, Tensor
from picograd.tensor.core.inspect import synchronize as wait
from picograd.tensor.making import distributions
from picograd.tensor.making.random import default, read_seed
from picograd.typed import kind_named

__all__ = ["Event", "OutOfMemoryError", "Stream", "amp", "is_available", "nvtx"]

MIB = 1 << 20
BYTES_OF = {"peak": "peak", "in_use": "in_use", "reserved": "reserved"}

FloatTensor = kind_named("FloatTensor", "cuda")
DoubleTensor = kind_named("DoubleTensor", "cuda")
HalfTensor = kind_named("HalfTensor", "cuda")
BFloat16Tensor = kind_named("BFloat16Tensor", "cuda")
LongTensor = kind_named("LongTensor", "cuda")
IntTensor = kind_named("IntTensor", "cuda")
ByteTensor = kind_named("ByteTensor", "cuda")
BoolTensor = kind_named("BoolTensor", "cuda")


def is_available() -> bool:
    """Tell whether there is a GPU that works.

    >>> import picograd
    >>> device = "cuda" if picograd.cuda.is_available() else "cpu"
    """
    return is_usable("cuda:0")


_initialized = False  # no GPU has random numbers of its own, whose state a program would keep


def is_initialized() -> bool:
    """Tell whether there is a GPU that works: it opens at its first use."""
    return is_available()


def init() -> None:
    """Open the first GPU. Raises DeviceError without one."""
    opened(None)


def device_count() -> int:
    """Count the GPUs; 0 without one."""
    return opened(None).driver.call("cuDeviceGetCount") if is_available() else 0


def place(where: DeviceLike | None) -> str:
    """Name a GPU: by number, by name, or the one new tensors are made on."""
    if where is None:
        where = config.device if is_gpu(config.device) else "cuda:0"
    found = named(where)
    if found.type != "cuda":
        raise DeviceError("cuda", f"{found!r} is no GPU", 'pass a number, or "cuda:0"')
    return f"cuda:{found.index or 0}"


def opened(where: DeviceLike | None) -> Any:
    """Open a GPU. Raises DeviceError where there is none."""
    return get_device(place(where))


def current_device() -> int:
    """Give the number of the GPU that new tensors are made on."""
    return int(place(None).partition(":")[2])


def set_device(device: DeviceLike | None) -> None:
    """Make new tensors on a GPU from now on; -1 changes nothing, as in PyTorch."""
    if device != -1:
        config.device = opened(device).name


@contextmanager
def device(device: DeviceLike | None) -> Iterator[None]:
    """Make new tensors on a GPU inside a block; None, or a device that is no GPU, changes nothing.

    >>> import picograd
    >>> with picograd.cuda.device(None):
    ...     x = picograd.zeros(2)
    """
    name = "" if device is None else named(device)
    if not is_gpu(name):
        yield
        return
    with named(opened(name).name):
        yield


def get_device_name(device: DeviceLike | None = None) -> str:
    """Name a GPU: "NVIDIA H200"."""
    gpu = opened(device)
    text = gpu.driver.call("cuDeviceGetName", 256, gpu.number)
    return str(text.split(b"\0")[0].decode())


def get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    """Give the compute capability of a GPU: (9, 0)."""
    digits = "".join(c for c in opened(device).target.arch if c.isdigit())
    return int(digits[:-1]), int(digits[-1])


def get_device_properties(device: DeviceLike | None = None) -> SimpleNamespace:
    """Describe a GPU: name, total_memory, major, minor, multi_processor_count."""
    gpu = opened(device)
    major, minor = get_device_capability(device)
    return SimpleNamespace(
        name=get_device_name(device),
        total_memory=mem_get_info(device)[1],
        multi_processor_count=gpu.target.multiprocessors,
        major=major,
        minor=minor,
    )


def mem_get_info(device: DeviceLike | None = None) -> tuple[int, int]:
    """Give the free and the total bytes of a GPU's memory."""
    gpu = opened(device)
    gpu.activate()
    free, total = gpu.driver.call("cuMemGetInfo")
    return int(free), int(total)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tell whether kernels take bfloat16: on every GPU."""
    return is_available()


def is_current_stream_capturing() -> bool:
    """Tell that no launches are captured by hand: `picograd.jit` captures."""
    return False


def synchronize(device: DeviceLike | None = None) -> None:
    """Compute what is pending, and wait until a GPU has done all its work."""
    wait(place(device))


# memory


def statistics(where: DeviceLike | None, name: str) -> int:
    """Read one number of a GPU's memory; 0 without a GPU."""
    gpu: Device | None = opened(where) if is_available() else None
    return 0 if gpu is None else gpu.memory_stats()[name]


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Count the bytes that tensors occupy; 0 without a GPU.

    >>> import picograd
    >>> picograd.cuda.memory_allocated() >= 0
    True
    """
    return statistics(device, "in_use")


def max_memory_allocated(device: DeviceLike | None = None) -> int:
    """Count the bytes that tensors occupied at most; 0 without a GPU."""
    return statistics(device, "peak")


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Count the bytes taken from the GPU; 0 without one."""
    return statistics(device, "reserved")


max_memory_reserved = memory_cached = max_memory_cached = memory_reserved


def memory_stats(device: DeviceLike | None = None) -> dict[str, int]:
    """List what is known of a GPU's memory; empty without one."""
    return opened(device).memory_stats() if is_available() else {}


def memory_summary(device: DeviceLike | None = None, abbreviated: bool = False) -> str:
    """Write what is known of a GPU's memory."""
    lines = [f"{name}: {value}" for name, value in memory_stats(device).items()]
    return "\n".join(lines)


def empty_cache() -> None:
    """Give memory that nobody uses back to the GPU; nothing without one.

    >>> import picograd
    >>> picograd.cuda.empty_cache()
    """
    if is_available():
        opened(None).empty_cache()


def reset_peak_memory_stats(device: DeviceLike | None = None) -> None:
    """Count the peak of memory anew; it is that of the process here, and stays."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def ipc_collect() -> None:
    """Accept PyTorch's wish: memory is not shared between processes."""


def set_per_process_memory_fraction(fraction: float, device: DeviceLike | None = None) -> None:
    """Accept PyTorch's limit of memory: here there is none."""


# random numbers


def manual_seed(seed: int) -> None:
    """Restart the default generator: one serves all devices.

    >>> import picograd
    >>> picograd.cuda.manual_seed_all(3)
    >>> picograd.initial_seed()
    3
    """
    default().manual_seed(read_seed(seed))


manual_seed_all = manual_seed


def seed() -> None:
    """Restart the default generator from a seed of the operating system."""
    default().seed()


seed_all = seed


def initial_seed() -> int:
    """Give the seed of the default generator."""
    return default().initial_seed()


def get_rng_state(device: DeviceLike | None = None) -> Tensor:
    """Give the state of the default generator."""
    return distributions.get_rng_state()


def set_rng_state(new_state: Any, device: DeviceLike | None = None) -> None:
    """Continue the default generator from a state."""
    default().set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Give the states of the generators: there is one."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Any) -> None:
    """Continue the default generator from the states that `get_rng_state_all` gave."""
    for state in new_states:
        default().set_state(state)


# time and streams


class Event:
    """This class marks a moment of the program; recording it waits for the work given before.

    >>> import picograd
    >>> start, end = picograd.cuda.Event(enable_timing=True), picograd.cuda.Event()
    >>> start.record(); end.record()
    >>> start.elapsed_time(end) >= 0
    True
    """

    def __init__(self, enable_timing: bool = False, *given: Any, **options: Any) -> None:
        self.moment: float | None = None

    def record(self, stream: Any = None) -> None:
        """Wait for the work given so far, and look at the clock."""
        wait(place(None) if is_available() else None)
        self.moment = time.perf_counter()

    def elapsed_time(self, end_event: "Event") -> float:
        """Count the milliseconds to another event. Raises DeviceError for one not recorded."""
        if self.moment is None or end_event.moment is None:
            raise DeviceError("Event", "an event was not recorded", "call record() on both")
        return 1e3 * (end_event.moment - self.moment)

    def synchronize(self) -> None:
        """Wait for the work before the event: `record` has."""

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for the event: there is one stream, in order."""

    def query(self) -> bool:
        """Tell whether the work before the event is done."""
        return True


StreamContext = Any  # an annotation of programs


class Stream:
    """This class stands for the one stream of a GPU: work runs in the order it was given."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.cuda_stream = 0

    def synchronize(self) -> None:
        """Wait until the GPU has done all its work."""
        wait(place(None) if is_available() else None)

    def wait_stream(self, stream: Any) -> None:
        """Wait for another stream: there is one."""

    wait_event = wait_stream

    def record_event(self, event: Event | None = None) -> Event:
        """Mark a moment."""
        found = event or Event()
        found.record()
        return found

    def query(self) -> bool:
        """Tell whether the work is done, after waiting for it."""
        self.synchronize()
        return True

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: Any) -> None:
        return None


def current_stream(device: DeviceLike | None = None) -> Stream:
    """Give the one stream."""
    return Stream()


default_stream = current_stream


def stream(stream: Any) -> Any:
    """Give work to a stream inside a block: there is one."""
    return stream if stream is not None else Stream()
