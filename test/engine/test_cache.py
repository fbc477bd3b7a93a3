import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from picograd.code import Code, Workspace
from picograd.config import config
from picograd.dtype import float32
from picograd.engine import cache
from picograd.engine.backends import get_device
from picograd.engine.cache import ABANDONED, DiskCache, kernel_key
from picograd.runtime.null import NullDevice

HAMMER = """
import sys
from picograd.engine.cache import DiskCache
cache = DiskCache(sys.argv[1], 300_000)
for turn in range(300):
    number = (turn * 7 + int(sys.argv[2])) % 40
    payload = bytes([number]) * (1000 + 500 * number)
    found = cache.get(f"key{number}")
    assert found is None or found == payload, number
    cache.put(f"key{number}", payload)
print("ok")
"""


def test_entries_survive_the_process(tmp_path):
    DiskCache(str(tmp_path / "new"), 1 << 20).put("a", b"payload")
    other = DiskCache(str(tmp_path / "new"), 1 << 20)
    assert other.get("a") == b"payload" and other.get("b") is None
    assert os.listdir(tmp_path / "new") == ["a.kernel"]


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "other version"])
def test_damaged_entry_is_a_miss_and_is_rewritten(tmp_path, damage):
    store = DiskCache(str(tmp_path), 1 << 20)
    store.put("a", b"payload" * 100)
    path = tmp_path / "a.kernel"
    content = path.read_bytes()
    flipped = content[:100] + bytes([content[100] ^ 1]) + content[101:]
    bad = {"truncate": content[:-1], "flip": flipped, "empty": b"",
           "other version": b"x" + content[1:]}  # fmt: skip
    path.write_bytes(bad[damage])
    assert store.get("a") is None
    store.put("a", b"payload" * 100)
    assert store.get("a") == b"payload" * 100


def test_unwritable_folder_leaves_memory(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    store = DiskCache(str(tmp_path / "file"), 1 << 20)
    store.put("a", b"payload")
    assert store.get("a") == b"payload"


def test_oldest_entries_go_first(tmp_path):
    store = DiskCache(str(tmp_path), 10_000)
    for number in range(9):
        store.put(f"key{number}", bytes(2000))
        os.utime(store.path(f"key{number}"), (1000 + number, 1000 + number))
    assert store.get("key0")  # used just now: stays
    store.shrink()
    left = sorted(name for name in os.listdir(tmp_path))
    assert left == ["key0.kernel", "key7.kernel", "key8.kernel"]


def test_leftovers_of_dead_writers_go(tmp_path):
    old, fresh = tmp_path / "old.part", tmp_path / "fresh.part"
    old.write_bytes(b"x")
    fresh.write_bytes(b"x")
    past = time.time() - 2 * ABANDONED
    os.utime(old, (past, past))
    DiskCache(str(tmp_path), 10).shrink()
    assert os.listdir(tmp_path) == ["fresh.part"]


def test_processes_share_a_folder(tmp_path):
    command = [sys.executable, "-c", HAMMER, str(tmp_path)]
    running = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(4)
    ]
    results = [process.communicate(timeout=60) for process in running]
    assert results == [(b"ok\n", b"")] * 4
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_key_depends_on_everything_that_changes_the_binary():
    code = Code("k", "cuda", "k", "source", 1)
    keys = {
        kernel_key(code, ("sm_90a", "nvrtc 13.0")),
        kernel_key(Code("k", "cuda", "k", "other", 1), ("sm_90a", "nvrtc 13.0")),
        kernel_key(code, ("sm_80", "nvrtc 13.0")),
        kernel_key(code, ("sm_90a", "nvrtc 13.5")),
    }
    with config.override(threads=3):
        keys.add(kernel_key(code, ("sm_90a", "nvrtc 13.0")))
    assert len(keys) == 5
    with config.override(debug=4):
        assert kernel_key(code, ("sm_90a", "nvrtc 13.0")) in keys


def test_lookup_and_store_follow_the_settings(tmp_path):
    code, device = Code("k", "cuda", "k", "source", 1), NullDevice()
    with config.override(cache=str(tmp_path)):
        assert cache.lookup(code, device) is None
        cache.store(code, device, b"binary")
        assert cache.lookup(code, device) == b"binary"
    for nowhere in ("", "0"):
        with config.override(cache=nowhere):
            cache.store(code, device, b"binary")
            assert cache.lookup(code, device) is None


def test_remember_makes_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return b"object"

    find = cache.remember(("cpu",))
    code = Code("runner", "llvm", "run", "source", 1)
    with config.override(cache=str(tmp_path)):
        assert find(code, make) == find(code, make) == b"object" and len(made) == 1
    with config.override(cache="0"):
        assert find(code, make) == b"object" and len(made) == 2


def test_a_described_kernel_is_found_without_its_source(tmp_path):
    device = get_device("cpu")
    code = Code("k", "llvm", "k", "text", 3, 2, 64, (Workspace(8, True),), (float32,), 16, 5, 7)
    with config.override(cache=str(tmp_path)):
        cache.CACHES.clear()
        assert cache.find_kernel("key", device) is None
        cache.describe_kernel("key", code, device)
        assert cache.find_kernel("key", device) is None, "there is no binary yet"
        cache.store(code, device, b"object")
        found, binary = cache.find_kernel("key", device)
        assert binary == b"object" and found == replace(code, source="")
        assert cache.find_kernel("another key", device) is None
