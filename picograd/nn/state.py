"""Save and load state dicts as safetensors files; `load` reads those of torch.save too.

The format keeps raw little-endian bytes with dtype names, so bfloat16 and the 8-bit floats survive
and nothing in a file can run code. A file is written beside its target and moved into place: a
crash leaves the old one whole.
"""

import errno
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from picograd.dtype import DType, dtype_named
from picograd.errors import DataError, DTypeError, StateError
from picograd.helpers import product
from picograd.nn.nested import flatten, is_nested, unflatten
from picograd.nn.torch_file import is_torch_file, read_torch
from picograd.nn.torch_pickle import from_storage
from picograd.tensor.tensor import Tensor

# Names in the file (the safetensors format) and ours.
FILE_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}


def save(state: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a state dict to a file; a file of that name is replaced at once or not at all.

    States may be nested, as an optimizer's is: {"model": {...}, "optimizer": {...}, "epoch": 3}.

    >>> from picograd import Tensor, nn
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> nn.save({"weight": Tensor([1.0, 2.0])}, path)
    >>> nn.load(path)["weight"].tolist()
    [1.0, 2.0]
    """
    if not isinstance(state, Mapping):
        problem = f"the state is a {type(state).__name__}"
        raise DTypeError("save", problem, "pass model.state_dict()")
    metadata = {"format": "picograd"}
    if is_nested(state):
        state, metadata["nested"] = flatten(state)
    arrays = {name: _bytes_of(name, value) for name, value in state.items()}  # kept alive here
    entries = {name: _entry(state[name], array) for name, array in arrays.items()}
    content = safetensors.serialize(entries, metadata)
    target = _path("save", path)
    try:
        replace_file(target, content)
    except OSError as error:
        fix = "check the folder, its permissions and the free space"
        raise DataError("save", f"cannot write {target}: {error.strerror}", fix) from error


def replace_file(target: Path, content: bytes) -> None:
    """Give a file new content at once or not at all, with the permissions open() would give it.

    A link keeps leading to its file; what is no regular file (a pipe, `/dev/null`) is written to.
    """
    target = Path(os.path.realpath(target))
    known = target.stat() if target.exists() else None
    if known and not stat.S_ISREG(known.st_mode):
        target.write_bytes(content)
        return
    if known and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            if known:
                os.chmod(file.fileno(), stat.S_IMODE(known.st_mode))
            file.write(content)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str], device: Any = None) -> Any:
    """Read a state dict from a file: safetensors, or what torch.save wrote (see `load_torch`).

    Raises DataError for a missing file and StateError for a truncated or damaged one.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/weights.safetensors"
    >>> save({"a": Tensor([1.0, 2.0])}, path)
    >>> load(path)["a"].tolist()
    [1.0, 2.0]
    """
    source = _path("load", path)
    try:
        content = source.read_bytes()
    except OSError as error:
        problem = f"cannot read {source}: {error.strerror}"
        raise DataError("load", problem, "check the path") from error
    if is_torch_file(content):
        return read_torch(content, str(source), device)
    try:
        entries = safetensors.deserialize(content)
        state = {name: _tensor(entry, device) for name, entry in entries}
        return unflatten(state, text) if (text := _nested_text(content)) else state
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        problem = f"{source} is damaged or no safetensors file: {damage(content)}"
        raise StateError("load", problem, "save it again, or restore it from a copy") from error


def _nested_text(content: bytes) -> str:
    """Find the description of a nested state in the header; none for plain names."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return str(header.get("__metadata__", {}).get("nested", ""))


def damage(content: bytes) -> str:
    """Say what is wrong with a file: 8 bytes of header length, JSON, data."""
    length, rest = int.from_bytes(content[:8], "little"), len(content) - 8
    if rest < 0:
        return f"{len(content)} bytes are too few for a header"
    if length > rest:
        return f"the header should have {length} bytes, {rest} are there"
    try:
        entries = json.loads(content[8 : 8 + length])
        entries.pop("__metadata__", None)
        dtypes = {entry["dtype"] for entry in entries.values()}
        wanted = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return "the header is not readable"
    if dtypes - FILE_NAMES.keys():
        return f"no picograd dtype for {', '.join(sorted(dtypes - FILE_NAMES.keys()))}"
    if wanted != rest - length:
        return f"the data should have {wanted} bytes, {rest - length} are there"
    return "the shapes contradict the data"


def _path(op: str, path: Any) -> Path:
    """Read a path argument."""
    if not isinstance(path, (str, os.PathLike)):
        raise DTypeError(op, f"the path is a {type(path).__name__}", "pass a file name")
    return Path(path)


def _bytes_of(name: str, value: Any) -> "np.ndarray[Any, Any]":
    """Copy the raw bytes of a tensor to the host."""
    if not isinstance(name, str):
        problem = f"the name {name!r} is a {type(name).__name__}"
        raise DTypeError("save", problem, "names of a state dict are strings")
    if not isinstance(value, Tensor):
        problem = f"{name} is a {type(value).__name__}"
        raise DTypeError("save", problem, "a state dict holds tensors only")
    raw, storage = value.detach(), value.dtype.storage
    is_missing = value.dtype.numpy != np.dtype(storage)  # a float that NumPy lacks
    return np.ascontiguousarray((raw.bitcast(storage) if is_missing else raw).numpy())


def _entry(value: Tensor, array: "np.ndarray[Any, Any]") -> safetensors.TensorSpec:
    place = dict(data_ptr=array.ctypes.data, data_len=array.nbytes)
    return safetensors.TensorSpec(dtype=value.dtype.name, shape=list(value.shape), **place)


def _tensor(entry: Mapping[str, Any], device: Any) -> Tensor:
    dtype: DType = dtype_named(FILE_NAMES[entry["dtype"]])
    shape = tuple(entry["shape"])
    array = np.frombuffer(bytearray(entry["data"]), dtype=dtype.storage)
    if array.size != product(shape):
        raise ValueError(f"{array.size} values for shape {shape}")
    return from_storage(array.reshape(shape), dtype, device)
