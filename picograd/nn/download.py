"""Download published files: from mirrors in turn, resumed after a break, checked, moved in whole.

A file grows as `NAME.part` beside its target, under a lock, so that a second process waits for the
first one's file instead of fetching it again. What arrived before a connection or a program broke
is kept: the next attempt asks for the rest (RFC 9110, section 14: Range). Only a complete file with
the published SHA-256 gets the target's name. What speaks to the net is imported when it must: it
takes as long as the rest of picograd.
"""

import fcntl
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from picograd.config import config
from picograd.errors import DataError, writing
from picograd.late_methods import dataclass

TIMEOUT = 20  # seconds without an answer before the next mirror is tried
ATTEMPTS = 5  # connections to one mirror, as long as each brings some bytes
PIECE = 1 << 16  # bytes read at a time
PARTIAL_CONTENT = 206  # the status of an answer that begins where it was asked to


@dataclass(frozen=True)
class Published:
    """A file on the net: name, folders that hold it (URLs ending in /), bytes, SHA-256."""

    name: str
    mirrors: tuple[str, ...]
    size: int
    sha256: str


class Unusable(Exception):
    """What a mirror sent cannot be the published file."""


def data_folder(name: str) -> Path:
    """Find the folder of a downloaded data set (it may not exist yet)."""
    if config.data:
        return Path(config.data) / name
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "picograd" / "datasets" / name


def sha256_of(path: Path) -> str:
    """Hash a file without holding it in memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def megabytes(size: int) -> str:
    """Write a number of bytes for people."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def download(op: str, file: Published, target: Path, timeout: float = TIMEOUT) -> None:
    """Fetch a file from the first mirror that gives the right bytes, with a progress bar.

    Raises DataError, naming the file, its size and every mirror's problem, if none does.
    """
    with open_partial(target) as part:
        if target.is_file():  # another process fetched it while this one waited for the lock
            return
        problems = []
        for mirror in file.mirrors:
            problem = fetch(mirror + file.name, file, part, timeout)
            if not problem:
                os.replace(part.name, target)
                return
            problems.append(f"{mirror}{file.name}: {problem}")
    what = f"{file.name}, {megabytes(file.size)}"
    fix = f"connect to the internet, or put {file.name} into {target.parent}"
    raise DataError(op, f"cannot fetch {what} ({'; '.join(problems)})", fix)


@contextmanager
def open_partial(target: Path) -> Iterator[BinaryIO]:
    """Open `NAME.part` for appending, once no other process has it."""
    path = target.with_name(f"{target.name}.part")
    with writing("download", path, "set PICOGRAD_DATA to a folder you own"):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = path.open("ab")
    with part:
        fcntl.flock(part, fcntl.LOCK_EX)
        yield part


def fetch(url: str, file: Published, part: BinaryIO, timeout: float) -> str:
    """Complete the part from one mirror; returns what went wrong, or nothing."""
    from http.client import HTTPException

    problem = ""
    for _ in range(ATTEMPTS):
        start = part.seek(0, os.SEEK_END)
        try:
            if start < file.size:
                receive(url, file, part, start, timeout)
        except Unusable as error:
            part.truncate(0)
            return str(error)
        except (OSError, HTTPException, ValueError) as error:
            problem = str(getattr(error, "reason", error) or type(error).__name__)
        size = part.seek(0, os.SEEK_END)
        if size == file.size and sha256_of(Path(part.name)) == file.sha256:
            return ""
        if size >= file.size:
            part.truncate(0)
            problem = "wrong SHA-256"
            if not start:
                return problem  # all of it came from here: the mirror has another file
        elif size == start:
            return problem or "no data"
        else:
            problem = problem or f"ended after {size} of {file.size} bytes"
    return problem


def receive(url: str, file: Published, part: BinaryIO, start: int, timeout: float) -> None:
    """Append what a mirror sends from byte `start` on; begin anew if it sends everything."""
    import urllib.request

    from tqdm import tqdm

    headers = {"User-Agent": "picograd"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        if start and not continues(answer, start):
            part.truncate(0)
            start = 0
        bar = tqdm(total=file.size, initial=start, unit="B", unit_scale=True, desc=file.name)
        with bar:
            while piece := answer.read1(PIECE):
                start += len(piece)
                if start > file.size:
                    raise Unusable(f"longer than the {file.size} bytes published")
                write(part, piece)
                bar.update(len(piece))


def continues(answer: Any, start: int) -> bool:
    """Tell whether an answer holds the bytes from `start` on and not the whole file."""
    given = str(answer.headers.get("Content-Range") or "")
    return answer.status == PARTIAL_CONTENT and given.startswith(f"bytes {start}-")


def write(part: BinaryIO, piece: bytes) -> None:
    """Append to the part; a full disk is no reason to ask the next mirror."""
    try:
        part.write(piece)
        part.flush()
    except OSError as error:
        raise Unusable(f"cannot write {part.name}: {error.strerror}") from error


def read_tar(op: str, path: Path, sizes: dict[str, int]) -> dict[str, bytes]:
    """Read named regular files of a .tar.gz into memory; a size of 0 stands for any.

    Nothing is written, so no name in an archive can lead anywhere. Raises DataError when the
    archive is damaged or a member is missing or has another size.
    """
    import tarfile

    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.isreg() and member.name in sizes:
                    file = archive.extractfile(member)
                    found[member.name] = file.read() if file else b""
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        problem = f"cannot read {path} ({error})"
        raise DataError(op, problem, "delete the file to have it downloaded again") from error
    for name, size in sizes.items():
        if name not in found or (size and len(found[name]) != size):
            problem = f"{path} has no {name}" + (f" of {size} bytes" if size else "")
            raise DataError(op, problem, "delete the file to have it downloaded again")
    return found
