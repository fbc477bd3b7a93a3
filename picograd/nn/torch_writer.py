"""Write files that torch.load reads: a zip archive of a pickle and the bytes of its tensors.

The pickle names PyTorch's functions, which need not be there when it is written. Each memory is a
storage, whole and in row-major order, that the tensors over it name with their strides: views share
memory in the file too. `torch_file` says what a file looks like.
"""

import io
import pickle
import sys
import zipfile
from collections import OrderedDict
from typing import IO, Any

import numpy as np

from picograd.device_name import device
from picograd.dtype import DType
from picograd.helpers import row_major
from picograd.nn.parameter import Buffer, Parameter
from picograd.nn.torch_pickle import STORAGES
from picograd.tensor.core import recording
from picograd.tensor.core.aliasing import offset_of, strides_of
from picograd.tensor.core.exchange import memory_of
from picograd.tensor.core.sizes import Size
from picograd.tensor.tensor import Tensor

PROTOCOL = 2  # that of torch.save, which its weights_only reader knows
CLASSES = {dtype: f"{name}Storage" for name, dtype in STORAGES.items()}
FOLDER = "archive"


class Global:
    """This class stands for something of PyTorch's, by its module and name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Look like a function to the pickler; loading calls the real one."""


TENSOR, OTHER_TENSOR, PARAMETER = (
    Global("torch._utils", f"_rebuild_{name}") for name in ("tensor_v2", "tensor_v3", "parameter")
)
PARAMETER_WITH_STATE = Global("torch._utils", "_rebuild_parameter_with_state")
DEVICE, SIZE = Global("torch", "device"), Global("torch", "Size")


class Storage:
    """This class is memory on its way to a file, as the tensor that shows all of it."""

    def __init__(self, key: str, tensor: Tensor) -> None:
        self.key, self.tensor = key, tensor
        self.is_known = tensor.dtype.name in CLASSES
        name = CLASSES.get(tensor.dtype.name, "UntypedStorage")
        self.kind = Global("torch" if self.is_known else "torch.storage", name)
        self.count = tensor.numel() if self.is_known else tensor.nbytes


class Pickler(pickle._Pickler):
    """This class writes tensors as PyTorch's pickles name them, anything else as Python does."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, PROTOCOL)
        self.emit: Any = self.write  # type: ignore[attr-defined]
        self.storages: dict[int, Storage] = {}  # by the id of the tensor that has the memory

    def persistent_id(self, obj: Any) -> Any:
        """Name the memory of a tensor, which is a record of its own."""
        if not isinstance(obj, Storage):
            return None
        return "storage", obj.kind, obj.key, str(obj.tensor.device), obj.count

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name that something of PyTorch's has."""
        if isinstance(obj, Global):
            self.emit(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, DType):
            self.emit(pickle.GLOBAL + f"torch\n{obj.name}\n".encode())
        else:
            super().save_global(obj, name)  # type: ignore[misc]

    def reducer_override(self, obj: Any) -> Any:
        """Say how tensors, dtypes, devices and sizes are made again."""
        if isinstance(obj, (Global, DType)):
            return obj.name
        if type(obj) is Parameter:
            hooks: Any = OrderedDict()
            made, own = (obj.detach(), obj.requires_grad, hooks), dict(vars(obj))
            return (PARAMETER_WITH_STATE, (*made, own)) if own else (PARAMETER, made)
        if type(obj) in (Tensor, Buffer):
            return self.tensor(obj)
        if type(obj) is Size:
            return SIZE, (tuple(obj),)
        if isinstance(obj, device):
            return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    def tensor(self, tensor: Tensor) -> Any:
        """Say how a tensor is made again, and keep the memory that it shows for later.

        What shows other bits, or elements that were gathered, is written as memory of its own.
        """
        root, offset, steps = recording.root_of(tensor), offset_of(tensor), strides_of(tensor)
        if offset is None or root.dtype is not tensor.dtype:
            root, offset, steps = tensor, 0, row_major(tensor.shape)
        new = Storage(str(len(self.storages)), root)  # type: ignore[arg-type]
        storage = self.storages.setdefault(id(root), new)
        shape = tuple(tensor.shape)
        wants: bool = tensor.requires_grad
        hooks: Any = OrderedDict()
        place = (storage, offset, shape, tuple(steps), wants, hooks)
        return (TENSOR, place) if storage.is_known else (OTHER_TENSOR, (*place, tensor.dtype))


def with_own_numbers(value: Any, seen: set[int]) -> Any:
    """Copy what dicts have of one number twice, as the steps of an optimizer's parameters are.

    PyTorch's optimizers, which continue from the file, add to each of them in place.
    """
    is_new = id(value) not in seen
    seen.add(id(value))
    if isinstance(value, Tensor):
        return value if is_new or value.shape != () else value.detach().clone()
    if type(value) is not dict or not is_new:
        return value
    found = {key: with_own_numbers(each, seen) for key, each in value.items()}
    return found if any(found[key] is not each for key, each in value.items()) else value


SEEKING = (io.BytesIO, io.BufferedWriter, io.BufferedRandom, io.FileIO)


class Stream:
    """This class is a file that is written from front to back, as one that compresses must be."""

    def __init__(self, file: Any) -> None:
        self.write: Any = file.write
        self.flush: Any = getattr(file, "flush", lambda: None)


def write_torch(obj: Any, file: Any) -> None:
    """Write an object to an open file as torch.save does. PicklingError where Python cannot."""
    content = io.BytesIO()
    pickler = Pickler(content)
    pickler.dump(with_own_numbers(obj, set()))
    can_seek = isinstance(getattr(file, "file", file), SEEKING)  # temporary files have one within
    target: Any = file if can_seek else Stream(file)
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(f"{FOLDER}/data.pkl", content.getvalue())
        archive.writestr(f"{FOLDER}/byteorder", sys.byteorder)
        for storage in pickler.storages.values():
            record = zipfile.ZipInfo(f"{FOLDER}/data/{storage.key}")
            with archive.open(record, "w", force_zip64=True) as opened:
                opened.write(raw_bytes(storage.tensor))
        archive.writestr(f"{FOLDER}/version", "3\n")


def raw_bytes(tensor: Tensor) -> Any:
    """Give the bytes of a tensor in row-major order; those on the CPU are not copied."""
    array: Any = memory_of(tensor)
    if array is None:
        value = tensor.detach()
        is_missing = value.dtype.numpy != np.dtype(value.dtype.storage)
        array = (value.bitcast(value.dtype.storage) if is_missing else value).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
