"""Workers: order, errors, leaving early. Ancestor row M52: prefetch and double buffering."""

import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.errors import DataError


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = set(threading.enumerate())
    yield
    leaked = [t for t in set(threading.enumerate()) - before if "picograd loader" in t.name]
    assert leaked == []


class Slow(nn.Dataset):
    """Sample i takes a time that makes later samples finish first."""

    def __init__(self, count=12, pause=lambda index: 0.004 * (3 - index % 4)):
        self.count, self.pause, self.started = count, pause, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.started.append(index)
        time.sleep(self.pause(index))
        return index


def test_batches_come_in_order():
    loader = nn.DataLoader(Slow(), 2, num_workers=3)
    assert [batch.tolist() for batch in loader] == [[i, i + 1] for i in range(0, 12, 2)]


def test_workers_load_ahead_but_not_everything():
    """M52: while batch 0 is used, its successors are loaded, up to the limit."""
    data = Slow(100, lambda index: 0.0)
    batches = iter(nn.DataLoader(data, 1, num_workers=2, prefetch_factor=3))
    next(batches)
    time.sleep(0.1)
    # 6 in flight at first, one more for the batch taken, one for the batch sent ahead
    assert 6 <= len(data.started) <= 8
    batches.close()


def test_loading_overlaps_with_use():
    """M52: 6 batches of 50 ms beside 50 ms of use take less than one after the other."""
    loader = nn.DataLoader(Slow(6, lambda index: 0.05), 1, num_workers=2)
    start = time.perf_counter()
    for _ in loader:
        time.sleep(0.05)
    assert time.perf_counter() - start < 0.55


class Broken(nn.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3:
            raise KeyError("no such image")
        return index


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_surfaces_at_its_batch_with_its_traceback(workers):
    seen = []
    with pytest.raises(KeyError, match="no such image") as error:
        for batch in nn.DataLoader(Broken(), 1, num_workers=workers):
            seen.append(batch.item())
    assert seen == [0, 1, 2]
    frames = [frame.name for frame in traceback.extract_tb(error.tb)]
    assert "__getitem__" in frames and frames[0].startswith("test_an_error")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_walk_goes_on_behind_an_error(workers):
    batches, seen = iter(nn.DataLoader(Broken(), 2, num_workers=workers)), []
    with pytest.raises(StopIteration):
        while True:
            try:
                seen.append(next(batches).tolist())
            except KeyError:
                seen.append(None)
    assert seen == [[0, 1], None, [4, 5]]


def test_the_end_of_iteration_in_a_data_set_is_no_silent_end():
    class Ends(Broken):
        def __getitem__(self, index):
            raise StopIteration

    with pytest.raises(RuntimeError):
        list(nn.DataLoader(Ends(), 1, num_workers=2))


def test_leaving_early_stops_the_workers():
    for _ in nn.DataLoader(Slow(1000), 1, num_workers=2):
        break
    batches = iter(nn.DataLoader(Slow(1000), 1, num_workers=2))
    next(batches)
    del batches
    iter(nn.DataLoader(Slow(1000), 1, num_workers=2))  # never asked for a batch


def test_an_error_of_the_sampler_stops_the_workers():
    def positions():
        yield 0
        raise LookupError("no more positions")

    with pytest.raises(LookupError, match="no more positions"):
        list(nn.DataLoader(Slow(), 1, sampler=positions(), num_workers=2))


def test_leaving_does_not_wait_for_a_slow_batch():
    data = Slow(1000, lambda index: 0.01)
    batches = iter(nn.DataLoader(data, 500, num_workers=1, prefetch_factor=1, timeout=0.05))
    start = time.perf_counter()
    with pytest.raises(DataError, match=r"no batch within 0.05 seconds. Fix: raise timeout="):
        next(batches)
    assert time.perf_counter() - start < 1.0


def test_workers_know_themselves():
    seen, ids = {}, []

    class Names(nn.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            info = nn.get_worker_info()
            seen[index] = (info.id, info.num_workers, info.dataset is self, info.seed)
            return index

    loader = nn.DataLoader(Names(), 1, num_workers=2, worker_init_fn=ids.append, seed=1)
    assert len(list(loader)) == 4 and sorted(ids) == [0, 1]
    assert [seen[index][:3] for index in range(4)] == [(i % 2, 2, True) for i in range(4)]
    assert seen[1][3] == seen[0][3] + 1
    assert nn.get_worker_info() is None


class Noisy(Slow):
    """Samples are drawn at random by whoever loads them."""

    def __getitem__(self, index):
        super().__getitem__(index)
        return picograd.rand(())


def test_what_workers_draw_does_not_depend_on_timing():
    def drawn(pause):
        picograd.manual_seed(7)
        batches = list(nn.DataLoader(Noisy(8, pause), 2, num_workers=2))
        return [x for batch in batches for x in batch.tolist()], picograd.get_rng_state().tolist()

    first = drawn(lambda index: 0.003 * (index % 4 < 2))
    assert drawn(lambda index: 0.003 * (index % 4 > 1)) == first
    assert len(set(first[0])) == 8


def test_an_error_of_worker_init_fn_surfaces():
    def fail(number):
        raise OSError("no licence")

    with pytest.raises(OSError, match="no licence"):
        next(iter(nn.DataLoader(Slow(), 1, num_workers=2, worker_init_fn=fail)))


def test_arrays_are_gathered_by_workers():
    data = nn.ArrayDataset(np.arange(6), np.arange(6.0, dtype=np.float32) * 2)
    loader = nn.DataLoader(data, 4, num_workers=2)
    assert [[x.tolist(), y.tolist()] for x, y in loader] == [
        [[0, 1, 2, 3], [0.0, 2.0, 4.0, 6.0]],
        [[4, 5], [8.0, 10.0]],
    ]


PROGRAM = """
import signal
import time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from picograd import nn
class Sleeper(nn.Dataset):
    def __len__(self): return 3
    def __getitem__(self, index):
        print("loading", flush=True)
        time.sleep(60)
list(nn.DataLoader(Sleeper(), 1, num_workers=1))
"""


def test_control_c_does_not_hang():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
