"""Read files of torch.save (`.pt`, `.pth`, `.bin`) without executing the pickle in them.

Since PyTorch 1.6 the file is a zip archive, nothing compressed: `<name>/data.pkl`, whose storages
are the records `<name>/data/<key>`, and `<name>/byteorder`. Before, it was five pickles (a magic
number, a version, facts of the system, the object, the keys of storages) and then, for every key,
a count of eight bytes and the elements.
"""

import io
import os
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from picograd.errors import DataError, DTypeError, StateError
from picograd.nn.torch_pickle import Array, Machine, PickleProblem, Storage, load_pickle

ZIP_MAGIC = b"PK\x03\x04"
LEGACY_NUMBER = 0x1950A86A20F9469CFC6C
LEGACY_MAGIC = b"\x8a\x0a" + LEGACY_NUMBER.to_bytes(10, "little")  # LONG1 of ten bytes


def is_torch_file(content: bytes) -> bool:
    """Tell whether bytes begin like a file of torch.save."""
    return content.startswith(ZIP_MAGIC) or LEGACY_MAGIC in content[:32]


def load_torch(path: str | os.PathLike[str], device: Any = None) -> Any:
    """Read what torch.save wrote: a state dict, or dicts, lists and numbers around tensors.

    No code of the file runs: of globals only tensors, parameters, dtypes, OrderedDict and sizes are
    known, any other (a whole pickled model, say) is refused by its name. Strided and shared
    storages give tensors of their own; the same view saved twice is one Tensor. Raises DataError
    for a missing file; StateError for a refused, damaged, compressed or big-endian one.

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
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        problem = f"cannot read {path}: {error.strerror}"
        raise DataError("load", problem, "check the path") from error
    return read_torch(content, str(path), device)


def read_torch(content: bytes, source: str, device: Any = None) -> Any:
    """Read the bytes of such a file; `source` names it in errors."""
    if content.startswith(ZIP_MAGIC):
        return _read_zip(content, source, device)
    if is_torch_file(content):
        return _read_legacy(content, source, device)
    raise StateError("load", f"{source} is no file of torch.save", "use nn.load for safetensors")


def _damaged(source: str, problem: str) -> StateError:
    return StateError("load", f"{source} is damaged: {problem}", "save it again, or copy it again")


def _elements(storage: Storage, content: bytes) -> Array:
    """View the bytes of a storage, which must be as many as the pickle says."""
    width = 1 if storage.dtype is None else storage.dtype.itemsize
    if len(content) != storage.count * width:
        wanted = storage.count * width
        raise PickleProblem(f"storage {storage.key} has {len(content)} bytes, {wanted} wanted")
    return np.frombuffer(content, np.uint8 if storage.dtype is None else storage.dtype.storage)


# the zip archive


def _read_zip(content: bytes, source: str, device: Any) -> Any:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_archive(archive, len(content), source)
            return _read_archive(archive, source, device)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        if isinstance(error, StateError):
            raise
        raise _damaged(source, str(error)) from error


def _check_archive(archive: zipfile.ZipFile, size: int, source: str) -> None:
    """Refuse archives that are larger inside than outside."""
    infos = archive.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        problem = f"{source} holds compressed records, torch.save writes none"
        raise StateError("load", problem, "do not load it, it may be a zip bomb")
    if sum(info.file_size for info in infos) > size:
        problem = f"the records of {source} are larger than the file"
        raise StateError("load", problem, "do not load it, it may be a zip bomb")


def _read_archive(archive: zipfile.ZipFile, source: str, device: Any) -> Any:
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
            arrays[storage.key] = _elements(storage, archive.read(name))
        return arrays[storage.key]

    return load_pickle(archive.read(roots[0]), Machine(read, device), source)


def _check_order(is_little: bool, source: str) -> None:
    if not is_little:
        problem = f"{source} was written by a big-endian machine"
        raise StateError("load", problem, "save it on a little-endian machine")


# the older format


def _read_legacy(content: bytes, source: str, device: Any) -> Any:
    pieces, rest = _split_pickles(content, 5, source)
    _magic, _version, system, data, keys = pieces
    facts = load_pickle(system, Machine(_no_storage, device), source)
    _check_order(isinstance(facts, dict) and facts.get("little_endian") is True, source)
    # The records follow the object, and only the object tells their dtypes: look at it first.
    scout = Machine(_blank(len(rest)), "cpu")
    load_pickle(data, scout, source)
    order = load_pickle(keys, Machine(_no_storage, device), source)
    records = _split_records(rest, order, scout.storages, source)

    def read(storage: Storage) -> Array:
        return _elements(storage, records[storage.key])

    return load_pickle(data, Machine(read, device), source)


def _split_pickles(content: bytes, count: int, source: str) -> tuple[list[bytes], bytes]:
    """Cut off the first pickles."""
    pieces: list[bytes] = []
    for _ in range(count):
        try:
            *_, (_, _, last) = pickletools.genops(content)
        except ValueError as error:
            raise _damaged(source, "a pickle in it ends too early") from error
        end = int(last or 0) + 1
        pieces.append(content[:end])
        content = content[end:]
    return pieces, content


def _split_records(
    content: bytes, order: Any, storages: dict[str, Storage], source: str
) -> dict[str, bytes]:
    """Cut the elements of every storage out of the end of a file."""
    records: dict[str, bytes] = {}
    for key in order if isinstance(order, list) else []:
        if key not in storages:
            raise _damaged(source, f"storage {key!r} belongs to no tensor")
        dtype = storages[key].dtype
        size = storages[key].count * (1 if dtype is None else dtype.itemsize)
        if int.from_bytes(content[:8], "little") != storages[key].count:
            raise _damaged(source, f"storage {key} has another size than its tensors say")
        records[key], content = content[8 : 8 + size], content[8 + size :]
    if storages.keys() - records.keys():
        raise _damaged(source, "a storage is missing")
    return records


def _no_storage(storage: Storage) -> Array:
    raise PickleProblem(f"storage {storage.key} where none belongs")


def _blank(most: int) -> Callable[[Storage], Array]:
    """Stand in for elements that are not read yet, of at most as many bytes as the file has."""

    def read(storage: Storage) -> Array:
        size = storage.count * (1 if storage.dtype is None else storage.dtype.itemsize)
        if size > most:
            raise PickleProblem(f"storage {storage.key} should have {size} bytes, {most} are there")
        return np.zeros(size, np.uint8)

    return read
