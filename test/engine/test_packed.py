"""Kernels of a plan in one file: read instead of their own, and done without where damaged."""

from pathlib import Path

import pytest
from debug_tools import fresh_engine

from picograd import Tensor
from picograd.engine import cache, compile, packed


def run(path):
    with fresh_engine(cache=str(path), verify=0):
        x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        return ((x @ x).softmax(1) @ x).sum(0).tolist()


@pytest.fixture
def first(tmp_path, monkeypatch):
    """What a process computed that left its plans, and the kernels of each in one file."""
    monkeypatch.setattr(packed, "LEAST", 1)
    return run(tmp_path)


def files(path):
    """The entries of packed kernels, and those of kernels alone."""
    packs, others = [], []
    for file in Path(path, "kernels").iterdir():
        payload = file.read_bytes()[cache.HEAD :]
        if payload.startswith(b"[["):
            packs.append(file)
        elif not payload.startswith(b'{"slots"'):
            others.append(file)
    return packs, others


def never(*_, **__):
    raise AssertionError("a kernel was compiled again")


def test_kernels_come_from_one_file(first, tmp_path, monkeypatch):
    packs, others = files(tmp_path)
    assert len(packs) == 1
    for file in others:
        file.unlink()
    monkeypatch.setattr(compile, "build", never)
    assert run(tmp_path) == first
    packs[0].unlink()
    with pytest.raises(AssertionError):
        run(tmp_path)


@pytest.mark.parametrize("payload", [b"", b"[]\n", b'[["a"]]\n', b'[["a", "b"]]\nc', b'[["a", 1]]'])
def test_a_damaged_file_is_done_without(payload, first, tmp_path):
    (file,), _ = files(tmp_path)
    name = file.name.removesuffix(cache.SUFFIX)
    file.write_bytes(cache.head(name, payload) + payload)
    assert run(tmp_path) == first


def test_few_kernels_stay_alone(tmp_path):
    run(tmp_path)
    assert files(tmp_path)[0] == []


def test_kernels_that_are_missing_are_packed_for_nobody(tmp_path, monkeypatch):
    """A cache that lost what a kernel's description names."""
    monkeypatch.setattr(packed, "LEAST", 1)
    monkeypatch.setattr(cache.DiskCache, "get", lambda *_: None)
    run(tmp_path)
    assert files(tmp_path)[0] == []
