"""Save and load state dicts as safetensors files; `load` reads those of torch.save too.

The format keeps raw little-endian bytes with dtype names, so bfloat16 and the 8-bit floats survive
and nothing in a file can run code. A file is written beside its target and moved into place: a
crash leaves the old one whole.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from picograd.engine.tracing import check_not_tracing
from picograd.errors import DTypeError, PicogradError, StateError, writing
from picograd.nn.file_kinds import LONGEST, kind_of
from picograd.nn.nested import flatten, is_nested, unflatten
from picograd.nn.safetensors_file import IN_FILES, Damage, header_of, read_tensors, written_order
from picograd.nn.torch_file import is_torch_file, opened, read_torch
from picograd.nn.torch_writer import raw_bytes
from picograd.tensor.core.annotations import DeviceLike
from picograd.tensor.tensor import Tensor

OF_TORCH = (".pt", ".pth", ".bin", ".ckpt")  # ends of the names that torch.save's files have


def save(
    state: Mapping[str, Any],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a state dict to a safetensors file, whatever its name; `picograd.save` writes `.pt`.

    A file of that name is replaced at once or not at all. States may be nested, as an optimizer's
    is: {"model": {...}, "optimizer": {...}, "epoch": 3}. `metadata` is text that the file
    says about itself.

    >>> from picograd import Tensor, nn
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> nn.save({"weight": Tensor([1.0, 2.0])}, path)
    >>> nn.load(path)["weight"].tolist()
    [1.0, 2.0]
    """
    header, flat = prepared(state, metadata)
    target = _path("save", path)
    with writing("save", target):
        replace_file(target, lambda file: write(file, header, flat))


def prepared(
    state: Mapping[str, Any], metadata: Mapping[str, str] | None
) -> tuple[bytes, Mapping[str, Tensor]]:
    """Check a state; give the beginning of its file, and the tensors by name that follow."""
    if not isinstance(state, Mapping):
        problem = f"the state is a {type(state).__name__}"
        raise DTypeError("save", problem, "pass model.state_dict()")
    metadata = {"format": "picograd", **(metadata or {})}
    if is_nested(state):
        state, metadata["nested"] = flatten(state)
    for name, value in state.items():
        _check_entry(name, value)
    return _header("save", state, metadata), state


def replace_file(target: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Give a file new content at once or not at all, with the permissions open() would give it.

    A link keeps leading to its file; what is no regular file (a pipe, `/dev/null`) is written to.
    """
    target = Path(os.path.realpath(target))
    known = target.stat() if target.exists() else None
    if known and not stat.S_ISREG(known.st_mode):
        with target.open("wb") as file:
            write(file)
        return
    if known and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            if known:
                os.chmod(file.fileno(), stat.S_IMODE(known.st_mode))
            write(file)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write(file: IO[bytes], header: bytes, state: Mapping[str, Tensor]) -> None:
    """Write a file from beginning to end; tensors on the CPU are not copied."""
    check_not_tracing("nn.save()")
    file.write(header)
    for name in written_order(state):
        file.write(raw_bytes(state[name]))


def load(path: str | os.PathLike[str], device: DeviceLike | None = None) -> Any:
    """Read a state dict from a file: safetensors, or what torch.save wrote (see `load_torch`).

    Raises DataError for a missing file and StateError for a truncated or damaged one.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/weights.safetensors"
    >>> save({"a": Tensor([1.0, 2.0])}, path)
    >>> load(path)["a"].tolist()
    [1.0, 2.0]
    """
    source = _path("load", path)
    with opened(source) as (file, size):
        return read(file, size, str(source), device)


def read(file: IO[bytes], size: int, source: str, device: DeviceLike | None = None) -> Any:
    """Read an open file of `size` bytes; `source` names it in errors."""
    head = file.read(LONGEST)
    file.seek(0)
    if is_torch_file(head):
        return read_torch(file, size, source, device)
    try:
        state, text = read_tensors(file, size, device)
        return unflatten(state, text) if text else state
    except (Damage, EOFError, ValueError) as error:
        if isinstance(error, PicogradError):
            raise
        raise _not_read(source, head, str(error)) from None


def _not_read(source: str, head: bytes, damage: str) -> StateError:
    """Word what a file is that holds no state, or what is wrong with it."""
    kind = kind_of(head, source)
    if kind is not None:
        what, fix = kind
        return StateError("load", f"{source} is {what}", fix)
    if source.endswith(OF_TORCH):
        problem = f"{source} is damaged: it does not begin as torch.save writes"
    else:
        problem = f"{source} is damaged or no safetensors file: {damage}"
    return StateError("load", problem, "save it again, or restore it from a copy")


def _path(op: str, path: Any) -> Path:
    """Read a path argument."""
    if not isinstance(path, (str, os.PathLike)):
        raise DTypeError(op, f"the path is a {type(path).__name__}", "pass a file name")
    return Path(path)


def _check_entry(name: Any, value: Any) -> None:
    """Raise DTypeError for what a file cannot hold."""
    if not isinstance(name, str):
        problem = f"the name {name!r} is a {type(name).__name__}"
        raise DTypeError("save", problem, "names of a state dict are strings")
    if not isinstance(value, Tensor):
        problem = f"{name} is a {type(value).__name__}"
        raise DTypeError("save", problem, "a state dict holds tensors only")
    if name == "__metadata__":
        raise DTypeError("save", f"the name {name!r} has a meaning in files", "use another")
    if value.dtype.name not in IN_FILES:
        raise DTypeError("save", f"{name} is {value.dtype.name}", "cast it to another dtype")


def _header(op: str, state: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    try:
        return header_of(state, metadata)
    except UnicodeEncodeError:
        problem = "a name holds half a character (a lone surrogate)"
        raise DTypeError(op, problem, "use names that are text") from None
