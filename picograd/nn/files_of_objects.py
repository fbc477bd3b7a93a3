"""`picograd.save` and `picograd.load`: files of any objects with tensors, as PyTorch's.

A name that ends in ".safetensors" is written in that format; any other name, and any open file, in
that of torch.save, which PyTorch reads. `load` tells the formats apart by what is in the file.
"""

import io
import os
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from picograd.device_name import device
from picograd.engine.tracing import check_not_tracing
from picograd.errors import DataError, DTypeError, StateError, writing
from picograd.nn import state, torch_file
from picograd.nn.torch_file import unread
from picograd.nn.torch_pickle import CALLABLE, Machine, PickleProblem
from picograd.nn.torch_writer import write_torch

__all__ = ["load", "save"]

File = str | os.PathLike[str] | IO[bytes]


def save(
    obj: Any, f: File, pickle_module: Any = None, pickle_protocol: Any = None, **options: Any
) -> None:
    """Write an object: tensors, state dicts, lists, numbers, whole modules.

    `f` is a path or an open binary file. PyTorch reads the file, unless it holds modules; those
    are read by `load(f, weights_only=False)`.

    >>> import io, picograd
    >>> file = io.BytesIO()
    >>> picograd.save({"x": picograd.Tensor([1.0, 2.0]), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> picograd.load(file)["x"].tolist()
    [1.0, 2.0]
    """
    check_not_tracing("save()")
    if isinstance(f, (str, os.PathLike)):
        if os.fspath(f).endswith(".safetensors"):
            state.save(obj, f)
            return
        with writing("save", f):
            state.replace_file(Path(f), lambda file: write_torch(obj, file))
    elif hasattr(f, "write"):
        write_torch(obj, f)
    else:
        raise DTypeError("save", f"the file is a {type(f).__name__}", "pass a path or a file")


def load(
    f: File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **options: Any,
) -> Any:
    """Read what `save` wrote, torch.save, or a safetensors file: by its content.

    `map_location` is where tensors go: a device, a dict of names, or a function (storage, name);
    None is the default device. Nothing in a file runs, so that of classes only tensors are known;
    `weights_only=False` reads any object, and trusts the file as `pickle` does. Raises DataError
    for a missing file and StateError for a damaged, or a refused, one.

    >>> import picograd, tempfile
    >>> path = tempfile.mkdtemp() + "/a.pt"
    >>> picograd.save([picograd.Tensor([1.0]), "text"], path)
    >>> picograd.load(path, map_location="cpu")
    [Tensor([1.]), 'text']
    """
    place = read_place(map_location)
    if isinstance(f, (str, os.PathLike)):
        if weights_only is False and is_archive(f):
            with open(f, "rb") as file:
                return read_objects(file, str(f), place)
        return state.load(f, place)
    if not hasattr(f, "read"):
        raise DTypeError("load", f"the file is a {type(f).__name__}", "pass a path or a file")
    start = f.tell() if hasattr(f, "tell") else 0
    content = io.BytesIO(f.read())
    try:
        if weights_only is False and is_archive(content):
            content.seek(0)
            return read_objects(content, "the file", place)
        content.seek(0)
        return state.read(content, len(content.getbuffer()), "the file", place)
    except (EOFError, OSError) as error:
        raise DataError("load", unread("the file", error), f"it starts at {start}") from error


def is_archive(f: Any) -> bool:
    """Tell whether a file is a zip archive, or a damaged one."""
    try:
        return zipfile.is_zipfile(f)
    except zipfile.BadZipFile:
        return True


def read_place(map_location: Any) -> Any:
    """Read where tensors go: None is the default device."""
    if map_location is None or isinstance(map_location, (str, int)):
        return map_location
    if isinstance(map_location, Mapping):
        return map_location.get("cpu") or next(iter(map_location.values()), None)
    if callable(map_location):
        found = map_location(Memory(), "cpu")
        return "cpu" if isinstance(found, Memory) and found.place is None else place_of(found)
    problem = f"map_location is a {type(map_location).__name__}"
    raise DTypeError("load", problem, 'pass "cpu", or another device')


def place_of(found: Any) -> Any:
    """Read what a function of the user's answered: a memory that was moved, or a device."""
    return found.place if isinstance(found, Memory) else found


class Memory:
    """This class is what a function given as `map_location` moves."""

    def __init__(self, place: str | None = None) -> None:
        self.place = place

    def cpu(self) -> "Memory":
        """Stay on the CPU."""
        return Memory("cpu")

    def cuda(self, index: Any = None, *given: Any, **options: Any) -> "Memory":
        """Go to a GPU."""
        return Memory("cuda" if index is None else str(device(index)))


class Unpickler(pickle.Unpickler):
    """This class runs a pickle of the user's own, with tensors read by a machine of ours."""

    def __init__(self, file: IO[bytes], machine: Machine) -> None:
        super().__init__(file)
        self.machine = machine

    def find_class(self, module: str, name: str) -> Any:
        """Find what a pickle names: PyTorch's functions of tensors are ours."""
        text = f"{module} {name}"
        if module.split(".")[0] != "torch":
            return super().find_class(module, name)
        if text in CALLABLE:
            return Call(self.machine, CALLABLE[text])
        return self.machine.find(text)

    def persistent_load(self, pid: Any) -> Any:
        """Find the memory of a tensor."""
        return Call(self.machine, Machine.storage)(pid)


class Call:
    """This class is a function of the machine's as a pickle calls it."""

    def __init__(self, machine: Machine, function: Callable[..., Any]) -> None:
        self.machine, self.function = machine, function

    def __call__(self, *args: Any) -> Any:
        """Call the function. What it raises is of what it reads: nothing in it is the user's."""
        try:
            return self.function(self.machine, *args)
        except torch_file.DAMAGE as error:
            raise PickleProblem(f"a tensor in it is damaged: {error}") from error


def read_objects(file: IO[bytes], source: str, place: Any) -> Any:
    """Read a pickle of any objects; what it says is run."""

    def run(content: bytes, machine: Machine) -> Any:
        try:
            return Unpickler(io.BytesIO(content), machine).load()
        except PickleProblem as problem:
            fix = "load it with PyTorch, and save the state dict"
            raise StateError("load", f"{source}: {problem}", fix) from None

    return torch_file.read_archive(file, source, place, run)
