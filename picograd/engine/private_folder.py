"""A folder that only this user can write: what is read from it was written by this user.

Every operation opens the folder and looks at what it opened (never at a name, which may mean
something else a moment later), then works relative to that descriptor: who may write in a folder
above cannot slip in a folder or file of their own. Links are not followed, and what is no regular
file of this user is not read, nor waited for. Root gets no exception.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
PART = ".part"  # ends the name of a file that is being written


class NotPrivate(OSError):
    """A folder that somebody else owns or may write."""


class PrivateFolder:
    """A folder of files that are replaced whole. Every method raises OSError for the disk."""

    def __init__(self, path: str) -> None:
        self.path = path

    @contextmanager
    def opened(self, make: bool = False) -> Iterator[int]:
        """Open the folder; NotPrivate if another user has a hand in it. Our own is made private."""
        if make:
            make_folder(self.path)
        try:
            folder = os.open(self.path, FOLDER_FLAGS)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError as error:
            raise NotPrivate(f"{self.path} is no folder, or a link") from error
        try:
            check_folder(folder, self.path)
            yield folder
        finally:
            os.close(folder)

    def read(self, name: str, most: int) -> bytes:
        """Read a file of at most `most` bytes, and note that it was used."""
        with self.opened() as folder:
            handle = os.open(name, READ_FLAGS, dir_fd=folder)
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                raise OSError(f"{name} is no regular file, or too large")
            if status.st_uid != os.geteuid() or status.st_mode & WRITABLE_BY_OTHERS:
                raise OSError(f"others may write {name}")
            content = file.read(most)
            try:
                os.utime(handle)
            except OSError:
                pass  # a folder that is read-only: the content is as good
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file: readers see all of it or nothing."""
        part = f"{os.urandom(12).hex()}{PART}"
        with self.opened(make=True) as folder:
            handle = os.open(part, WRITE_FLAGS, 0o600, dir_fd=folder)
            try:
                with open(handle, "wb") as file:
                    os.fchmod(handle, 0o600)  # whatever the umask left of it
                    file.write(content)
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(part, dir_fd=folder)
                raise

    def list(self, start: str = "") -> list[tuple[str, os.stat_result]]:
        """List names that begin so, and states; files that vanish meanwhile are left out."""
        found = []
        with self.opened() as folder, os.scandir(folder) as listing:
            for item in listing:
                if not item.name.startswith(start):
                    continue
                try:
                    found.append((item.name, item.stat(follow_symlinks=False)))
                except OSError:
                    continue
        return found

    def remove(self, name: str) -> None:
        """Delete a file."""
        with self.opened() as folder:
            os.unlink(name, dir_fd=folder)


def make_folder(path: str) -> None:
    """Make a folder, and those above it, for this user alone; leave alone what is there."""
    missing = []
    while path and not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            continue  # made by another process meanwhile
        os.chmod(each, 0o700)  # a umask may have taken our own rights


def check_folder(folder: int, path: str) -> None:
    """Raise NotPrivate unless an opened folder is this user's alone, if need be from now on."""
    status = os.fstat(folder)
    if status.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to user {status.st_uid}")
    if status.st_mode & WRITABLE_BY_OTHERS:
        try:
            os.fchmod(folder, 0o700)
        except OSError as error:
            raise NotPrivate(f"others may write {path}") from error
        if os.fstat(folder).st_mode & WRITABLE_BY_OTHERS:
            raise NotPrivate(f"others may write {path}")
