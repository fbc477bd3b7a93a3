"""Several processes of one program, under the names of torch.multiprocessing."""

from pathlib import Path

import pytest

from picograd import multiprocessing, processes
from picograd.errors import StateError


def write_rank(rank: int, folder: str) -> None:
    Path(folder, str(rank)).write_text(str(rank * 2))


def fail_once(rank: int, started: bool) -> None:
    if started and rank == 1:
        raise SystemExit(3)


def test_a_function_runs_in_each_process(tmp_path: Path) -> None:
    assert multiprocessing.spawn is processes.spawn
    processes.start_processes(write_rank, (str(tmp_path),), nprocs=2, start_method="fork")
    assert [Path(tmp_path, name).read_text() for name in "01"] == ["0", "2"]


def test_one_that_fails_is_told() -> None:
    with pytest.raises(StateError, match="exit code 3"):
        processes.start_processes(fail_once, (True,), nprocs=2, start_method="fork")
    given = processes.start_processes(fail_once, (False,), join=False, start_method="fork")
    assert given is not None and len(given.pids()) == 1 and given.join()


def test_how_memory_is_shared_is_accepted() -> None:
    multiprocessing.set_sharing_strategy("file_system")
    assert multiprocessing.get_sharing_strategy() in multiprocessing.get_all_sharing_strategies()
    assert multiprocessing.get_context("spawn")
