"""What machine code has to know of the CPython it runs in: where slots lie, how it is called.

A slot is found by a mark that is put there and looked for in the object's memory. That holds for
interpreters with a lock (`is_possible`); nobody else gets such code.
"""

import ctypes
import platform
import struct
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any

from picograd.errors import InternalError
from picograd.runtime.python_code import INTERFACE, VARIADIC

FASTCALL, NO_ARGUMENTS = 0x80, 0x04  # methodobject.h: how a function is called
TRIED = (3, 11), (3, 12)  # versions with which all of this was tried, on this kind of machine:
PLATFORM, MACHINE = "linux", "x86_64"


def is_possible() -> bool:
    """Tell whether this interpreter is a known CPython with a lock, whose objects stay in place."""
    has_lock = not sysconfig.get_config_var("Py_GIL_DISABLED")
    is_known = sys.implementation.name == "cpython" and sys.version_info[:2] in TRIED
    is_known = is_known and sys.platform == PLATFORM and platform.machine() == MACHINE
    is_known = is_known and struct.calcsize("P") == 8
    names = *INTERFACE, *VARIADIC
    return is_known and has_lock and all(hasattr(ctypes.pythonapi, name) for name in names)


def words_of(made: object) -> Any:
    """Show the memory of an object as words."""
    count = type(made).__basicsize__ // 8
    return (ctypes.c_uint64 * count).from_address(id(made))


def place_of(made: object, wanted: object) -> int:
    """Find where in the memory of an object the only reference to another one is."""
    found = [8 * at for at, word in enumerate(words_of(made)) if word == id(wanted)]
    if len(found) != 1:
        raise InternalError(f"{type(made).__name__} refers to its parts in another way")
    return found[0]


def offsets(made: object, *names: str) -> dict[str, int]:
    """Find where slots of an object's class lie: a mark is put there, and looked for."""
    kind, found = type(made), {}
    for name in names:
        before, mark = getattr(made, name, None), object()
        object.__setattr__(made, name, mark)  # of a frozen class, too
        found[f"{kind.__name__}.{name}"] = place_of(made, mark)
        object.__setattr__(made, name, before)
    return found


class Definition(ctypes.Structure):
    """How CPython wants a function to be described (PyMethodDef)."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]


def defined(name: str, address: int, flags: int) -> Any:
    """Describe a function to CPython, for ever: functions refer to it until they end."""
    definition = Definition(name.encode(), address, flags, None)
    keep_for_ever(definition)
    return definition


def callable_of(definition: Definition, own: object) -> Any:
    """Make a Python function; `own` is what it gets as `self`."""
    make: Any = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.py_object] + [ctypes.c_void_p],
    )
    return make(ctypes.addressof(definition), own, None)


def method_of(definition: Definition, kind: type) -> Any:
    """Make a method of a class."""
    make: Any = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return make(kind, ctypes.addressof(definition))


def keep_for_ever(*values: object) -> None:
    """Let objects, to which machine code refers, outlive all others: modules are let go first."""
    for value in values:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


class Table:
    """Words in memory that machine code reads: numbers, addresses, and objects, which it keeps."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def name(self, value: Any) -> int:
        """Give the address of an object, which lives as long as the table."""
        self.kept.append(value)
        return id(value)

    def part(self, words: Sequence[int]) -> int:
        """Lay out other words beside the table; their address."""
        memory = (ctypes.c_int64 * max(len(words), 1))(*words)
        self.kept.append(memory)
        return ctypes.addressof(memory)

    def fill(self, words: Sequence[int]) -> "Table":
        """Lay out the words of the table."""
        self.words = (ctypes.c_uint64 * max(len(words), 1))(*words)
        return self

    @property
    def address(self) -> int:
        """Where the words are."""
        return ctypes.addressof(self.words)
