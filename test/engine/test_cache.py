import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from picograd.code import SMALL_WORK, Code, TensorMap, Windows, Workspace, unpacked
from picograd.config import config
from picograd.dtype import bfloat16, float32
from picograd.engine import cache
from picograd.engine.backends import get_device
from picograd.engine.cache import ABANDONED, DiskCache, kernel_key
from picograd.runtime import llvm
from picograd.runtime.device import Executable
from picograd.runtime.null import NullDevice
from picograd.traced_number import Numbers

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
    with pytest.warns(RuntimeWarning, match="not kept on disk: .*file is no folder, or a link"):
        store.put("a", b"payload")
    assert store.get("a") == b"payload"
    with warnings.catch_warnings(action="error"):  # once is enough
        store.put("b", b"more")
        assert store.get("b") == b"more" and store.get("c") is None


def test_a_missing_folder_that_cannot_be_made_leaves_memory():
    store = DiskCache("/proc/no/such/folder", 1 << 20)
    store.put("a", b"payload")
    assert store.get("a") == b"payload" and store.get("b") is None


def test_an_entry_under_another_name_is_a_miss(tmp_path):
    store = DiskCache(str(tmp_path), 1 << 20)
    store.put("a", b"payload")
    os.rename(tmp_path / "a.kernel", tmp_path / "b.kernel")
    assert store.get("b") is None


def test_oldest_entries_go_first(tmp_path):
    store = DiskCache(str(tmp_path), 10_000)
    for number in range(9):
        store.put(f"key{number}", bytes(2000))
        os.utime(tmp_path / f"key{number}.kernel", (1000 + number, 1000 + number))
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
    warm = replace(code, flops=SMALL_WORK + 1)  # compiled with few passes
    assert kernel_key(warm, ("sm_90a", "nvrtc 13.0")) not in keys
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


def test_a_folder_that_is_far_from_full_is_not_looked_at_whole(tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    store = cache.DiskCache(str(folder), 1 << 20)
    for number in range(40):
        store.put(hashlib.sha256(bytes([number])).hexdigest(), b"x" * 100)
    listed, entries = [], cache.DiskCache.entries

    def noted(self, start=""):
        listed.append(start)
        return entries(self, start)

    monkeypatch.setattr(cache.DiskCache, "entries", noted)
    store.shrink()
    assert listed == [cache.SAMPLE, ""], "too few entries to tell"
    monkeypatch.setattr(cache, "SAMPLED", 1)
    del listed[:]
    store.shrink()
    assert listed == [cache.SAMPLE] and 0 < store.room < 1 << 20
    store.limit = 1000
    store.shrink()
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 1000


def test_a_described_kernel_is_found_without_its_source(tmp_path):
    device = get_device("cpu")
    code = Code("k", "llvm", "k", "text", 3, 2, 64, (Workspace(8, True),), (float32,), 16, 5, 7)
    code = replace(code, inputs=2)
    with config.override(cache=str(tmp_path)):
        cache.CACHES.clear()
        assert cache.find_kernel("key", device) is None
        cache.describe_kernel("key", code, device)
        assert cache.find_kernel("key", device) is None, "there is no binary yet"
        cache.store(code, device, b"object")
        found, binary = cache.find_kernel("key", device)
        assert binary == b"object" and found == replace(code, source="")
        assert cache.find_kernel("another key", device) is None


def test_a_kernel_that_holds_a_number_of_a_trace_depends_on_it(tmp_path):
    device, numbers = get_device("cpu"), Numbers([3], lambda: "the line")
    code = Code("k", "llvm", "k", "text", 3, 2, 64, flops=numbers.argument(0))
    with config.override(cache=str(tmp_path)):
        cache.CACHES.clear()
        cache.store(code, device, b"object")
        cache.describe_kernel("key", code, device)
        assert cache.find_kernel("key", device)[0].flops == 3 and numbers.guards[0] == "the line"


def test_a_described_kernel_has_its_tensor_maps(tmp_path):
    device = get_device("cpu")
    tensor = TensorMap(1, bfloat16, 8, (64, 100, 3), (64, 6400), (64, 128, 1))
    image = replace(tensor, box=(64, 128), windows=Windows((-1,), (100,), (1,)))
    code = Code("k", "cuda", "k", "text", 3, 384, 64, tensors=(tensor, image))
    with config.override(cache=str(tmp_path)):
        cache.CACHES.clear()
        cache.store(code, device, b"object")
        cache.describe_kernel("key", code, device)
        assert cache.find_kernel("key", device)[0].tensors == (tensor, image)


def test_a_kernel_that_may_be_compiled_again_is_found_with_its_source(tmp_path):
    device = get_device("cpu")
    code = Code("k", "llvm", "k", "text", 3, flops=SMALL_WORK, bytes_moved=4)
    with config.override(cache=str(tmp_path)):
        cache.describe_kernel("key", code, device)
        cache.store(code, device, b"object")
        found, binary = cache.find_kernel("key", device)
        assert found.is_warm and unpacked(found) == code and binary == b"object"


def test_processes_begin_with_what_was_compiled_again(tmp_path):
    device, code = get_device("cpu"), Code("k", "llvm", "k", "text", 3, flops=SMALL_WORK + 1)
    executable = Executable(code, None, canonical="key", packs={"a" * 64})
    with config.override(cache=str(tmp_path)):
        cache.describe_kernel("key", code, device)
        cache.store(code, device, b"quick")
        cache.disk_cache().put("a" * 64, b"as it was")
        cache.keep_improved(device, executable, code, b"with all passes")
        found, binary = cache.find_kernel("key", device)
        assert not found.is_warm and binary == b"with all passes"
        assert cache.disk_cache().get("a" * 64) is None
        cache.keep_improved(device, executable, code, b"by another tape")  # the pack is gone


def describing(**changes):
    code = Code("k", "llvm", "k", "text", 3, 2, 64, (Workspace(8, True),), (float32,), 16, 5, 7)
    facts = {name: getattr(code, name) for name in cache.LAUNCH_FACTS}
    facts |= {"workspaces": [[8, True]], "scalars": ["float32"], "binary": "0" * 64, "packed": ""}
    return {name: value for name, value in (facts | changes).items() if value is not ...}


def test_a_description_is_read():
    found = cache.read_facts(json.dumps(describing()).encode())
    assert found["scalars"] == (float32,) and found["workspaces"] == (Workspace(8, True),)


MALFORMED = [
    b"", b"not json", b"\xff\xfe", b"{}", b"[]", b"3", b"null", b"NaN", b"[" * 100_000,
    b'{"a":' * 50_000, b'{"binary": 3}', b'{"binary": "../../../../etc/passwd"}',
]  # fmt: skip
CHANGES = [
    {"binary": "../../../../etc/passwd"}, {"binary": 3}, {"binary": None}, {"binary": ["a"]},
    {"binary": "0" * 63 + "/"}, {"entry": 3}, {"tasks": "3"}, {"tasks": -1}, {"tasks": 1 << 70},
    {"tasks": 1.5}, {"tasks": True}, {"tasks": ...}, {"more": 1}, {"workspaces": [[8]]},
    {"workspaces": 3}, {"workspaces": [[8, 1]]}, {"workspaces": [["8", True]]}, {"scalars": [3]},
    {"scalars": ["complex7"]}, {"scalars": {"float32": 1}}, {"scalars": None},
    {"tensors": 3}, {"tensors": [3]}, {"tensors": [[0, "float32", 0, [1], [], [True]]]},
    {"tensors": [[0, "complex7", 0, [1], [], [1]]]},
    {"tensors": [[0, "float32", -1, [1], [], [1]]]},
    {"tensors": [[0, "float32", 0, [1], [], [1], [0.5], [1], [1]]]},
    {"tensors": [[0, "float32", 0, [1], [], [1], [0], [-1], [1]]]},
]  # fmt: skip


@pytest.mark.parametrize("bad", MALFORMED + [json.dumps(describing(**c)).encode() for c in CHANGES])
def test_a_malformed_description_is_a_miss(bad, tmp_path):
    device = get_device("cpu")
    with config.override(cache=str(tmp_path)):
        cache.disk_cache().put(cache.entry_key("key", device), bad)
        assert cache.read_facts(bad) is None and cache.find_kernel("key", device) is None


def test_the_version_covers_everything_that_shapes_code(tmp_path):
    package = Path(cache.__file__).parents[1]
    shutil.copytree(package, tmp_path, dirs_exist_ok=True)
    whole = version = cache.version_of(str(tmp_path))
    assert version == cache.generator_version()
    rooms = [path for room in cache.GENERATOR for path in (tmp_path / room).rglob("*.py")]
    named = [tmp_path / name for name in ("dtype.py", "target.py", "code.py", "runtime/native.py")]
    assert len(rooms) > 100
    for path in (*named, *tmp_path.glob("*.py"), *rooms[::7]):
        text, status = path.read_text(), path.stat()
        path.write_text(text[:-1] + "#")  # of the same size and time
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        version = cache.version_of(str(tmp_path))
        assert version != whole, path
        path.write_text(text)
    assert cache.version_of(str(tmp_path)) == whole


def test_an_edit_above_the_kernels_keeps_them(tmp_path):
    shutil.copytree(Path(cache.__file__).parents[1], tmp_path, dirs_exist_ok=True)
    with open(tmp_path / "nn" / "linear.py", "a") as file:
        file.write("# an edit")
    assert cache.version_of(str(tmp_path)) == cache.generator_version()


def test_the_version_is_part_of_both_keys(monkeypatch):
    device, code = get_device("cpu"), Code("k", "llvm", "k", "source", 1)
    keys = kernel_key(code, ()), cache.entry_key("key", device)
    monkeypatch.setattr(cache, "generator_version", lambda: "another")
    assert kernel_key(code, ()) != keys[0] and cache.entry_key("key", device) != keys[1]


def test_keys_name_the_processor_and_the_compiler():
    device = get_device("cpu")
    cpu = llvm.host()
    enabled = {feature for feature in cpu.features.split(",") if feature.startswith("+")}
    assert device.target.arch == cpu.cpu and set(device.target.features.split(",")) == enabled
    assert llvm.llvmlite.__version__ in device.compiler


def test_places(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert cache.place_of("relative") == str(tmp_path / "relative" / "kernels")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # nobody has a home here
    store = DiskCache(cache.place_of("~/.cache/picograd"), 1 << 20)
    store.put("a", b"payload")
    assert store.get("a") == b"payload" and os.listdir(tmp_path) == []
    tmp_path.rmdir()  # nor a current folder
    assert cache.place_of("relative") == cache.place_of("~/.cache/picograd")


PROGRAM = """
from picograd import Tensor
x = Tensor([1.0, 2.0, 3.0])
print((x * 2 - x).tolist())
"""


def run_with(folder, **more):
    variables = dict(os.environ, PICOGRAD_CACHE=str(folder), PICOGRAD_DEVICE="cpu", **more)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout == "[1.0, 2.0, 3.0]\n", done.stderr
    return done.stderr


def spoil(path, make):
    path.unlink()
    make(path)


SPOILED = {
    "pipes": lambda path: spoil(path, os.mkfifo),
    "folders": lambda path: spoil(path, os.mkdir),
    "links": lambda path: spoil(path, lambda new: os.symlink("/dev/zero", new)),
}


def test_a_program_runs_whatever_is_in_its_folder(tmp_path):
    assert run_with(tmp_path) == ""
    kinds = list(SPOILED.values())
    for number, path in enumerate(sorted((tmp_path / "kernels").iterdir())):
        kinds[number % len(kinds)](path)
    assert run_with(tmp_path) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_program_does_not_run_what_another_user_put_there(tmp_path):
    os.chmod(tmp_path, 0o777)
    run_with(tmp_path)
    for path in (*(tmp_path / "kernels").iterdir(), tmp_path / "kernels", tmp_path):
        os.chown(path, 65534, 65534)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").iterdir()}
    assert "belongs to user 65534" in run_with(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").iterdir()} == before
