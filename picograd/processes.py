"""Several processes of one program, under the names of torch.multiprocessing."""

import multiprocessing
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from picograd.errors import StateError


class ProcessContext:
    """This class is the processes that `spawn` started, until they are joined."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[int]:
        """List the numbers the operating system knows them by."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all have ended. Raises StateError if one failed, and ends the others."""
        left = {process.sentinel: process for process in self.processes}
        while left:
            ended = connection.wait(list(left), timeout)
            if not ended:
                return False
            for process in [left.pop(each) for each in ended]:
                process.join()
                if process.exitcode:
                    for other in left.values():
                        other.terminate()
                    problem = f"a process ended with exit code {process.exitcode}"
                    raise StateError("spawn", problem, "read what it printed")
        return True


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(rank, *args)` in each of `nprocs` processes; without `join` they are given."""
    at: Any = multiprocessing.get_context(start_method)
    processes = [at.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    context = ProcessContext(processes)
    return context if not join or not context.join() else None


spawn = start_processes


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept how PyTorch shares memory: here tensors that are not told to are copied."""


def get_sharing_strategy() -> str:
    """Name the strategy that memory of other processes would be found by."""
    return "file_system"


def get_all_sharing_strategies() -> set[str]:
    """List the strategies."""
    return {"file_system"}
