import gc
import sys

import pytest

from picograd.buffer import Buffer
from picograd.code import Workspace
from picograd.dtype import float32
from picograd.errors import OutOfMemoryError
from picograd.runtime import memory
from picograd.runtime.memory import Allocation, Pool, Workspaces, format_bytes, size_class


class Source:
    """Addresses without memory, up to a capacity."""

    def __init__(self, capacity=1 << 40):
        self.left, self.next, self.sizes = capacity, 4096, {}

    def reserve(self, size):
        if size > self.left:
            return None
        self.left -= size
        address, self.next = self.next, self.next + size
        self.sizes[address] = size
        return address

    def give_back(self, address):
        self.left += self.sizes.pop(address)


def make_pool(capacity=1 << 40):
    source = Source(capacity)
    return Pool("test", source.reserve, source.give_back), source


def test_size_classes_waste_little():
    previous = 0
    for nbytes in [0, 1, 511, 512, 513, 5000, 65536, 65537, 1 << 20, (1 << 20) + 1, 10**9]:
        size = size_class(nbytes)
        assert size >= max(nbytes, previous) and size % 512 == 0
        assert size <= max(nbytes * 1.126, nbytes + 512)
        previous = size
    assert size_class(size_class(10**7)) == size_class(10**7)


def test_large_blocks_waste_less():
    for nbytes in [(16 << 20) + 1, (256 << 20) + 1, 10**9, 9 * 10**9, (1 << 33) + 1]:
        size = size_class(nbytes)
        assert nbytes <= size <= nbytes * 129 / 128 and size_class(size) == size


def test_dropped_blocks_are_reused():
    pool, source = make_pool()
    first = pool.allocate(1000)
    address = first.address
    assert pool.stats() == {"in_use": 1024, "reserved": 1024, "peak": 1024, "allocations": 1}
    del first
    second = pool.allocate(900)
    assert second.address == address and pool.reserved == 1024
    third = pool.allocate(1000)
    assert third.address != address and pool.peak == 2048
    del second, third
    assert pool.in_use == 0 and pool.reserved == 2048
    pool.empty()
    assert pool.reserved == 0 and not source.sizes


def test_large_blocks_serve_what_is_little_smaller():
    pool, _ = make_pool()
    address = pool.allocate(36 << 20).address
    assert pool.allocate(33 << 20).address == address and pool.reserved == pool.peak == 36 << 20
    kept = pool.allocate(30 << 20)
    assert kept.address != address and pool.reserved == 66 << 20


def test_free_blocks_of_other_sizes_are_given_back_when_memory_is_short():
    pool, _ = make_pool(capacity=10_240)
    del_me = pool.allocate(8192)
    del del_me
    assert pool.allocate(9000).size >= 9000


def test_out_of_memory_names_buffers_and_lines():
    pool, _ = make_pool(capacity=1 << 20)
    kept = []
    for count, line in ((1000, "train.py:1"), (100_000, "train.py:2")):
        block = pool.allocate(count * 4)
        buffer = Buffer("test", float32, count, block.address, block)
        buffer.origin = line
        kept.append(buffer)
    gc.collect()
    with pytest.raises(OutOfMemoryError) as caught:
        pool.allocate(2 << 20)
    text = str(caught.value)
    assert "no memory for 2.0 MiB on test" in text and "Fix: use smaller tensors" in text
    assert text.index("390.6 KiB float32[100000] train.py:2") < text.index("train.py:1")


def test_workspaces():
    pool, _ = make_pool()
    zeroed = []
    workspaces = Workspaces(pool, lambda address, size: zeroed.append(address))
    (small,) = workspaces.bind((Workspace(1000),))
    (same,) = workspaces.bind((Workspace(500),))
    (large,) = workspaces.bind((Workspace(5000),))
    assert small is same and large is not small and not zeroed
    (own,), (other,) = (workspaces.bind((Workspace(8, is_zeroed=True),)) for _ in range(2))
    assert own is not other and zeroed == [own.address, other.address]


def test_format_bytes():
    assert [format_bytes(n) for n in (5, 2048, 3 << 20, 5 << 29)] == [
        "5 B", "2.0 KiB", "3.0 MiB", "2.5 GiB"]  # fmt: skip


def test_blocks_are_handed_out_by_address_once_they_are_sorted():
    pool, _ = make_pool()
    held = [pool.allocate(512) for _ in range(4)]
    addresses = [each.address for each in held]
    for place in (2, 0, 1):
        held[place] = None
    pool.sort([512])
    again = [pool.allocate(512) for _ in range(3)]
    assert [each.address for each in again] == addresses[:3]


def test_a_block_that_was_never_made_gives_nothing_back():
    Allocation.__new__(Allocation).__del__()  # as after Ctrl-C in its beginning


def test_a_block_that_outlives_the_names_of_modules_says_nothing(monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    pool, _ = make_pool()
    block = pool.allocate(1000)
    monkeypatch.setattr(memory, "config", None)
    del block
    assert not said


def test_a_bounded_pool_gives_the_oldest_free_blocks_back_where_it_grows():
    source = Source()
    pool = Pool("test", source.reserve, source.give_back, spare=4096)
    for kib in range(1, 9):  # sizes that no later one takes
        pool.allocate(kib << 10)
    assert pool.peak == 8 << 10 < pool.reserved <= 2 * pool.peak + pool.spare
    assert not pool.free[1 << 10] and len(pool.free[8 << 10]) == 1
    held = [pool.allocate(16 << 10) for _ in range(3)]  # what is in use is never given back
    assert pool.in_use == pool.peak == 48 << 10 and len({each.address for each in held}) == 3


def test_a_bounded_pool_keeps_what_a_loop_takes_again_and_again():
    source = Source()
    pool = Pool("test", source.reserve, source.give_back, spare=1 << 20)
    for _ in range(3):
        held = [pool.allocate(size << 20) for size in (5, 6, 7)]
        del held
        other = [pool.allocate(size << 20) for size in (8, 9)]
        del other
    assert source.next == 4096 + (35 << 20)  # each block was reserved once
