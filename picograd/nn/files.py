"""Reading files of tensors: only regular ones, straight into the memory the tensors keep.

Nothing is mapped: a mapped file that someone truncates kills the process that looks at it. Reading
into the tensors' own memory costs one copy and a peak of the file's size, and what is read stays.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from picograd.errors import DataError, MissingFileError

Array = np.ndarray[Any, Any]
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe does not wait for a writer
CHUNK = 1 << 22
KINDS = {stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


@contextmanager
def opened(path: "os.PathLike[str]") -> Iterator[tuple[IO[bytes], int]]:
    """Open a regular file and give its size; DataError for anything else, or one unreadable."""
    try:
        handle = os.open(path, FLAGS)
    except FileNotFoundError as error:
        raise MissingFileError("load", unread(path, error), "check the path") from error
    except (OSError, ValueError) as error:  # ValueError: a zero character in a path
        raise DataError("load", unread(path, error), "check the path") from error
    try:
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            kind = KINDS.get(stat.S_IFMT(status.st_mode))
            if kind is not None:
                problem = f"cannot read {path}: it is a {kind}"
                raise DataError("load", problem, "copy its content to a file first")
            yield file, status.st_size
    except DataError:
        raise
    except OSError as error:
        raise DataError("load", unread(path, error), "check the path") from error


def unread(path: Any, error: Exception) -> str:
    """Word that a file cannot be read."""
    return f"cannot read {path}: {getattr(error, 'strerror', None) or error}"


def fill(file: IO[bytes], count: int) -> Array:
    """Read bytes into new memory; EOFError if the file ends before."""
    result: Array = np.empty(count, np.uint8)
    view, place = result.data, 0
    while place < count:
        got = file.readinto(view[place : place + CHUNK])  # type: ignore[attr-defined]
        if not got:
            raise EOFError(f"{count} bytes should follow, {place} are there")
        place += got
    return result
