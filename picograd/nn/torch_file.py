"""Read files of torch.save (`.pt`, `.pth`, `.bin`) without executing the pickle in them.

Since PyTorch 1.6 the file is a zip archive, nothing compressed: `<name>/data.pkl`, whose storages
are the records `<name>/data/<key>`, and `<name>/byteorder`. Before, it was five pickles (a magic
number, a version, facts of the system, the object, the keys of storages) and then, for every key,
a count of eight bytes and the elements.

Reading files of tensors: only regular ones, straight into the memory the tensors keep.

Nothing is mapped: a mapped file that someone truncates kills the process that looks at it. Reading
into the tensors' own memory costs one copy and a peak of the file's size, and what is read stays.
"""

import os
import pickletools
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from picograd.dtype import DType, uint8
from picograd.errors import DataError, DTypeError, MissingFileError, PicogradError, StateError
from picograd.nn.file_kinds import LONGEST, archive_kind, kind_of
from picograd.nn.torch_pickle import Machine, PickleProblem, Storage, check_place, load_pickle
from picograd.tensor.tensor import Tensor

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


ZIP_MAGIC = b"PK\x03\x04"
# What reading a damaged archive or pickle may raise.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError),
    *(KeyError, IndexError, TypeError, AttributeError, OverflowError, MemoryError),
)
LEGACY_NUMBER = 0x1950A86A20F9469CFC6C
LEGACY_MAGIC = b"\x8a\x0a" + LEGACY_NUMBER.to_bytes(10, "little")  # LONG1 of ten bytes


def is_torch_file(content: bytes) -> bool:
    """Tell whether bytes begin like a file of torch.save."""
    return content.startswith(ZIP_MAGIC) or LEGACY_MAGIC in content[:32]


def load_torch(path: str | os.PathLike[str], device: Any = None) -> Any:
    """Read what torch.save wrote: a state dict, or dicts, lists and numbers around tensors.

    No code of the file runs: of globals only tensors, parameters, dtypes, OrderedDict and sizes are
    known, any other (a whole pickled model, say) is refused by its name. Tensors over one storage
    share memory. Raises DataError for a missing file; StateError for a refused, damaged, compressed
    or big-endian one.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.pt"
    >>> _ = path.write_bytes(b"no zip")
    >>> load_torch(path)
    Traceback (most recent call last):
    ...
    picograd.errors.StateError: load: ...a.pt is no file of torch.save. Fix: use nn.load for ...
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DTypeError("load", f"the path is a {type(path).__name__}", "pass a file name")
    with opened(Path(path)) as (file, size):
        return read_torch(file, size, str(path), device)


def read_torch(file: IO[bytes], size: int, source: str, device: Any = None) -> Any:
    """Read an open file of `size` bytes; `source` names it in errors."""
    head = file.read(LONGEST)
    file.seek(0)
    if head.startswith(ZIP_MAGIC):
        return _read_zip(file, size, source, device)
    if is_torch_file(head):
        return _read_legacy(file, size, source, device)
    what, fix = kind_of(head, source) or ("no file of torch.save", "use nn.load for safetensors")
    raise StateError("load", f"{source} is {what}", fix)


def _damaged(source: str, problem: str) -> StateError:
    return StateError("load", f"{source} is damaged: {problem}", "save it again, or copy it again")


def _size_of(storage: Storage) -> int:
    return storage.count * (1 if storage.dtype is None else storage.dtype.itemsize)


# the zip archive


def _read_zip(file: IO[bytes], size: int, source: str, device: Any) -> Any:
    try:
        with zipfile.ZipFile(file) as archive:
            _check_archive(archive, size, source)
            return _read_archive(archive, source, device)
    except PicogradError:
        raise
    except DAMAGE as error:
        raise _damaged(source, str(error) or type(error).__name__) from error


def _check_archive(archive: zipfile.ZipFile, size: int, source: str) -> None:
    """Refuse other archives, and those that are larger inside than outside."""
    kind = archive_kind(archive.namelist())
    if kind is not None:
        raise StateError("load", f"{source} is {kind[0]}", kind[1])
    infos = archive.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        problem = f"{source} holds compressed records, torch.save writes none"
        raise StateError("load", problem, "do not load it, it may be a zip bomb")
    if sum(info.file_size for info in infos) > size:
        problem = f"the records of {source} are larger than the file"
        raise StateError("load", problem, "do not load it, it may be a zip bomb")


def read_archive(
    file: IO[bytes], source: str, device: Any, run: Callable[[bytes, Machine], Any]
) -> Any:
    """Read an archive whose pickle the caller runs; what the objects in it raise passes."""
    passing: list[Exception] = []

    def ran(content: bytes, machine: Machine) -> Any:
        try:
            return run(content, machine)
        except Exception as error:
            passing.append(error)
            raise

    try:
        with zipfile.ZipFile(file) as archive:
            return _read_archive(archive, source, device, ran)
    except DAMAGE as error:
        if error in passing or isinstance(error, PicogradError):
            raise
        raise _damaged(source, str(error) or type(error).__name__) from error


def _read_archive(archive: zipfile.ZipFile, source: str, device: Any, run: Any = None) -> Any:
    names = set(archive.namelist())
    roots = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(roots) != 1:
        problem = f"{source} is a zip archive without a data.pkl"
        raise StateError("load", problem, "use a file that torch.save wrote")
    folder = roots[0].removesuffix("data.pkl")
    order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in names else b"little"
    _check_order(order.strip() == b"little", source)
    arrays: dict[str, Array] = {}

    def read(storage: Storage) -> Array:
        name = f"{folder}data/{storage.key}"
        if name not in names:
            raise PickleProblem(f"the record {name} is missing")
        if storage.key not in arrays:
            held, wanted = archive.getinfo(name).file_size, _size_of(storage)
            if held != wanted:
                raise PickleProblem(f"storage {storage.key} has {held} bytes, {wanted} wanted")
            with archive.open(name) as record:
                arrays[storage.key] = fill(record, held)
                record.read(1)  # the end: the checksum is looked at
        return arrays[storage.key]

    content, machine = archive.read(roots[0]), Machine(read, device)
    return read_whole(content, machine, source) if run is None else run(content, machine)


def _check_order(is_little: bool, source: str) -> None:
    if not is_little:
        problem = f"{source} was written by a big-endian machine"
        raise StateError("load", problem, "save it on a little-endian machine")


# the older format


def _read_legacy(file: IO[bytes], size: int, source: str, device: Any) -> Any:
    _magic, _version, system, data, keys = _split_pickles(file, 5, source)
    facts = load_pickle(system, Machine(_no_storage, device), source)
    _check_order(isinstance(facts, dict) and facts.get("little_endian") is True, source)
    # The records follow the object, and only the object tells their dtypes: look at it first.
    scout = Scout(_no_storage, "cpu")
    load_pickle(data, scout, source)
    order = load_pickle(keys, Machine(_no_storage, device), source)
    places = _place_records(file, size, order, scout.storages, source)
    arrays: dict[str, Array] = {}

    def read(storage: Storage) -> Array:
        if storage.key not in arrays:
            file.seek(places[storage.key])
            arrays[storage.key] = fill(file, _size_of(storage))
        return arrays[storage.key]

    return read_whole(data, Machine(read, device), source)


def read_whole(content: bytes, machine: Machine, source: str) -> Any:
    """Read what a file holds; a storage that is all of it is a flat tensor."""
    found = load_pickle(content, machine, source)
    if not isinstance(found, Storage):
        return found
    place = 0, (found.count,), (1,)
    return machine.tensor(found, place, found.dtype or uint8, False)


def _split_pickles(file: IO[bytes], count: int, source: str) -> list[bytes]:
    """Cut off the first pickles; the file is then where they end."""
    pieces: list[bytes] = []
    for _ in range(count):
        start = file.tell()
        try:
            for _each in pickletools.genops(file):
                pass
        except DAMAGE as error:
            raise _damaged(source, "a pickle in it ends too early") from error
        end = file.tell()
        file.seek(start)
        pieces.append(file.read(end - start))
    return pieces


def _place_records(
    file: IO[bytes], size: int, order: Any, storages: dict[str, Storage], source: str
) -> dict[str, int]:
    """Find where the elements of every storage begin, from the place the file is at."""
    places: dict[str, int] = {}
    place = file.tell()
    for key in order if isinstance(order, list) else []:
        if not isinstance(key, str) or key not in storages:
            raise _damaged(source, f"storage {key!r} belongs to no tensor")
        file.seek(place)
        if int.from_bytes(file.read(8), "little") != storages[key].count:
            raise _damaged(source, f"storage {key} has another size than its tensors say")
        places[key], place = place + 8, place + 8 + _size_of(storages[key])
        if place > size:
            raise _damaged(source, f"the file ends inside storage {key}")
    if storages.keys() - places.keys():
        raise _damaged(source, "a storage is missing")
    return places


def _no_storage(storage: Storage) -> Array:
    raise PickleProblem(f"storage {storage.key} where none belongs")


class Scout(Machine):
    """This class runs a pickle to see which storages it names; its tensors are blank."""

    def tensor(self, storage: Any, place: tuple[Any, ...], dtype: Any, wants: Any) -> Tensor:
        """Stand in for a tensor whose elements are not read yet."""
        if not isinstance(storage, Storage) or not isinstance(dtype, DType):
            raise PickleProblem("a tensor has no storage or no dtype")
        check_place(storage, place, dtype)
        return Tensor(np.zeros((), dtype.storage), dtype=dtype, device="cpu")
