"""DLPack, the C protocol by which array libraries share memory: capsules made and read with ctypes.

Source: the header dlpack.h, version 1.0 (DLManagedTensor and DLManagedTensorVersioned), and the
Python specification of the array API standard. A capsule is used once: who takes the memory out
renames it ("used_...") and calls the deleter when done; a capsule nobody used does so itself.
"""

import ctypes
from typing import Any

from picograd.buffer import Buffer
from picograd.dtype import BY_NAME, DType
from picograd.errors import ExportError
from picograd.helpers import row_major
from picograd.late_methods import dataclass

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL, E4M3FN, E5M2 = 0, 1, 2, 4, 5, 6, 10, 12  # DLDataTypeCode
READ_ONLY, IS_COPIED = 1, 2  # flags of a versioned tensor
OLD, NEW = b"dltensor", b"dltensor_versioned"
USED = {OLD: b"used_dltensor", NEW: b"used_dltensor_versioned"}
KINDS = {"int": INT, "uint": UINT, "float": FLOAT, "complex": COMPLEX, "bool": BOOL}
SPECIAL = {"bfloat16": BFLOAT, "float8_e4m3fn": E4M3FN, "float8_e5m2": E5M2}


class DLDevice(ctypes.Structure):
    """Where memory is."""

    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    """Type of an element."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    """Memory and how to read it; no strides means row-major."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("rank", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """A tensor with an owner, before version 1."""

    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    """A tensor with an owner, since version 1."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


STRUCTURES: dict[bytes, Any] = {OLD: Managed, NEW: ManagedVersioned}
Exported = dict[int, tuple[Any, ...]]
EXPORTED: Exported = {}  # address of a structure -> what must live with it
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def function(name: str, result: Any, *arguments: Any) -> Any:
    """Find a function of the Python interpreter."""
    found = ctypes.pythonapi[name]  # an object of its own: types set here are nobody else's
    found.restype, found.argtypes = result, list(arguments)
    return found


new_capsule = function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                       DESTRUCTOR)  # fmt: skip
is_capsule = function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
pointer_of = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# The destructor gets a capsule that is being freed: as an address, so that nobody counts it.
is_dying_capsule = function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
dying_pointer = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


@DELETER
def forget(address: int, exported: Exported = EXPORTED) -> None:
    """Let exported memory go: the deleter of our structures, also when the interpreter ends."""
    kept = exported.pop(address, None)
    if kept is not None and kept[-1] is not None:
        kept[-1]()


@DESTRUCTOR
def destroy(capsule: int) -> None:
    """Free what an unused capsule holds."""
    for name in (OLD, NEW):
        if is_dying_capsule(capsule, name):
            forget(dying_pointer(capsule, name))


def type_of(dtype: DType) -> DLDataType:
    """Describe an element type."""
    return DLDataType(SPECIAL.get(dtype.name, KINDS.get(dtype.kind, FLOAT)), dtype.bits, 1)


def dtype_of(described: DLDataType) -> DType:
    """Find the dtype of a description; ExportError if there is none."""
    for dtype in BY_NAME.values():
        own = type_of(dtype)
        if (own.code, own.bits, 1) == (described.code, described.bits, described.lanes):
            return dtype
    text = f"element type {described.code} of {described.bits} bits x {described.lanes} is unknown"
    raise ExportError("from_dlpack", text, "convert it there first")


def device_pair(name: str) -> tuple[int, int]:
    """Give the type and number of a device: (1, 0) for the CPU; ExportError without memory."""
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda"):
        text = f"a tensor on the device {kind} has no memory to share"
        raise ExportError("dlpack", text, "make it on another device, or pass x.cpu()")
    return (CUDA, int(number)) if kind == "cuda" else (CPU, 0)


def export(
    buffer: Buffer,
    shape: tuple[int, ...],
    is_versioned: bool,
    is_copied: bool,
    release: Any = None,
    place: tuple[int, tuple[int, ...]] | None = None,
) -> Any:
    """Make a capsule over a buffer, which lives until the other side lets go.

    `release` is called then, before the buffer is dropped. `place` is where in the buffer the first
    element is, in bytes, and the steps between elements; without it the whole is shown.
    """
    offset, strides = place or (0, row_major(shape))
    name = NEW if is_versioned else OLD
    managed = STRUCTURES[name]()
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))(*strides)
    tensor = managed.tensor
    tensor.data = buffer.address + offset if buffer.count else None
    tensor.device = DLDevice(*device_pair(buffer.device))
    tensor.rank, tensor.dtype, tensor.byte_offset = len(shape), type_of(buffer.dtype), 0
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = forget
    if is_versioned:
        managed.major, managed.minor = 1, 0
        managed.flags = IS_COPIED if is_copied else 0
    address = ctypes.addressof(managed)
    EXPORTED[address] = managed, sizes, steps, buffer, release
    return new_capsule(address, name, destroy)


class Owner:
    """Keeps imported memory alive; dropping it calls the exporter's deleter."""

    def __init__(self, managed: Any, release: Any = None) -> None:
        self.managed: Any = managed
        self.release: Any = release
        self.address: int = ctypes.addressof(managed)
        self.deleter: Any = managed.deleter

    def __del__(self) -> None:
        if self.release is not None:  # our work on the memory must be done
            self.release()
        if self.deleter:
            self.deleter(self.address)


@dataclass(slots=True)
class Imported:
    """Memory of another library: strides in elements."""

    owner: Owner
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    kind: int
    number: int
    is_read_only: bool

    @property
    def is_row_major(self) -> bool:
        """Tell whether the elements are in order, without gaps."""
        pairs = zip(self.shape, self.strides, row_major(self.shape))
        return 0 in self.shape or all(size == 1 or a == b for size, a, b in pairs)


def take(capsule: Any) -> Imported:
    """Take the memory out of a capsule."""
    name = next((each for each in (NEW, OLD) if is_capsule(capsule, each)), None)
    if name is None:
        text = "this is no unused DLPack capsule"
        raise ExportError("from_dlpack", text, "call __dlpack__() again: a capsule serves once")
    managed = STRUCTURES[name].from_address(pointer_of(capsule, name))
    if name == NEW and managed.major > 1:
        text = f"DLPack version {managed.major}.{managed.minor} is unknown"
        raise ExportError("from_dlpack", text, "ask for max_version=(1, 0)")
    tensor = managed.tensor
    dtype = dtype_of(tensor.dtype)  # an unknown one leaves the capsule unused
    rename(capsule, USED[name])
    shape = tuple(tensor.shape[: tensor.rank])
    strides = tuple(tensor.strides[: tensor.rank]) if tensor.strides else row_major(shape)
    read_only = bool(managed.flags & READ_ONLY) if name == NEW else False
    address = (tensor.data or 0) + tensor.byte_offset
    place = tensor.device
    return Imported(
        Owner(managed), address, shape, strides, dtype, place.kind, place.number, read_only
    )
