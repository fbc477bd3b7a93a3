"""MNIST files that are missing, damaged or cannot be fetched."""

import gzip
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from error_support import Case, check, named

from picograd.errors import DataError
from picograd.nn import datasets

TRAIN = "train-images-idx3-ubyte"


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run every program in an empty folder, without network, package data and cache."""

    def refuse(request: urllib.request.Request, timeout: float) -> None:
        raise urllib.error.URLError("no route to host")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setattr(datasets, "PACKAGED", Path("package"))
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    yield


def with_file(content: bytes) -> None:
    """Load from a folder whose first file has this content."""
    Path("mine").mkdir()
    Path("mine", f"{TRAIN}.gz").write_bytes(content)
    datasets.mnist(folder="mine")


def damaged_cache() -> None:
    folder = datasets.cache_folder()
    folder.mkdir(parents=True)
    (folder / f"{TRAIN}.gz").write_bytes(gzip.compress(b"other digits", mtime=0))
    datasets.mnist()


def wrong_bytes() -> None:
    datasets.read_idx("labels", b"\x00\x00\x08\x01\x00\x00\x00\x05abc")


RESTORE = "Fix: restore the file, or delete it to have it downloaded."
CASES = [
    Case(
        "missing folder", lambda: datasets.mnist(folder="mine"), DataError,
        "mnist: cannot read mine/train-images-idx3-ubyte.gz (No such file or directory). "
        "Fix: put train-images-idx3-ubyte.gz there, or leave out folder=.",
    ),
    Case(
        "no gzip", lambda: with_file(b"no gzip file"), DataError,
        "mnist: cannot read mine/train-images-idx3-ubyte.gz (Not a gzipped file (b'no')). "
        + RESTORE,
    ),
    Case(
        "empty", lambda: with_file(b""), DataError,
        "mnist: mine/train-images-idx3-ubyte.gz is damaged: its SHA-256 is not the published one. "
        "Fix: delete the file to have it downloaded again.",
    ),
    Case(
        "truncated", lambda: with_file(gzip.compress(b"digits" * 99, mtime=0)[:-12]), DataError,
        "mnist: cannot read mine/train-images-idx3-ubyte.gz "
        "(Compressed file ended before the end-of-stream marker was reached). " + RESTORE,
    ),
    Case(
        "other content", lambda: with_file(gzip.compress(b"digits", mtime=0)), DataError,
        "mnist: mine/train-images-idx3-ubyte.gz is damaged: its SHA-256 is not the published one. "
        "Fix: delete the file to have it downloaded again.",
    ),
    Case(
        "damaged cache", damaged_cache, DataError,
        "mnist: cache/picograd/datasets/mnist/train-images-idx3-ubyte.gz is damaged: "
        "its SHA-256 is not the published one. Fix: delete the file to have it downloaded again.",
    ),
    Case(
        "offline", lambda: datasets.mnist(), DataError,
        "mnist: cannot fetch train-images-idx3-ubyte.gz, 9.9 MB ("
        "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz: "
        "no route to host; "
        "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz: "
        "no route to host). Fix: connect to the internet, or put train-images-idx3-ubyte.gz "
        "into cache/picograd/datasets/mnist.",
    ),
    Case(
        "wrong size", wrong_bytes, DataError,
        "mnist: labels is no idx file of bytes. Fix: restore the file.",
    ),
]  # fmt: skip


@named(CASES)
def test_message(case: Case) -> None:
    check(case)
