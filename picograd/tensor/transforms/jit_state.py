"""What of Python's state a trace depends on: variables, attributes, modules, optimizers.

`reach` walks from a function over what its code names (`jit_names`): variables of outer functions,
globals, attributes, and the functions, methods, modules and containers found there; code of
picograd, of Python and of installed packages is not entered. Two kinds of state are found:

  slots     a variable, or an attribute of a plain object: compared at every call, by identity
  watched   objects with a `_trace_state` (modules, optimizers): they replace `STATE.token` when
            they change, and are compared only then

What the function itself changes while it is traced cannot be guarded: where a later call would see
another value, the trace is not kept. Containers are the exception: what a function appends or
stores there happens when it is traced. What arrays of NumPy hold is compared, up to a megabyte.
"""

import builtins
import functools
import gc
import operator
import os
import random
import sys
import weakref
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Mapping
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from picograd.dtype import DType
from picograd.engine.tracing import STATE, Trace
from picograd.tensor.core.recording import root_of
from picograd.tensor.core.subclasses import Public
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit_arguments import BY_VALUE, Reference
from picograd.tensor.transforms.jit_names import Path, names_of
from picograd.tensor.transforms.jit_places import moves, tensors_of
from picograd.tensor.transforms.jit_progress import is_moving, progress_of, rewinding
from picograd.tensor.transforms.jit_variables import (
    GONE,
    Members,
    Variable,
    as_it_is,
    is_followable,
    plain_of,
)
from picograd.traced_number import NAMED

PACKAGE = os.path.abspath(os.path.join(__file__, "..", "..", "..")) + os.sep
PLAIN = (*BY_VALUE, float, DType, np.generic)
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class made at run time
QUIET = ("state", "param_groups", "defaults")  # containers of optimizers, which tell changes
LARGEST = 1 << 13  # elements of a container that are looked into
LARGEST_PLAIN = 1 << 17  # elements of one of numbers and texts alone, which lead nowhere
LARGEST_ARRAY = 1 << 20  # bytes of an array of NumPy whose contents are compared
FARTHEST = 20_000  # objects of one walk
BAGS = (("types", "SimpleNamespace"), ("argparse", "Namespace"))  # attributes of the user's
ADDING = ("append", "extend", "appendleft")  # methods of a list that read nothing of it
ADDED = tuple((name,) for name in ADDING)
MEMBER = MemberDescriptorType
REPLACED = FunctionType, staticmethod, property  # members of a class that tests and tools replace
MISSING = object()
Pairs = list[tuple[Any, Any]]
Copies = tuple[Pairs, Pairs, Pairs, list[Callable[[], None]]]  # of Python's state; see `copies`
FOLLOWED = object()  # a number that the trace follows


def is_plain(value: Any) -> bool:
    """Tell whether a value is compared by value: a number, a text, a tuple of such."""
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_plain, value))
    return isinstance(value, PLAIN) or value is MISSING


def is_same(first: Any, second: Any) -> bool:
    """Tell whether two values of a slot make no difference to a trace."""
    if first is second:
        return True
    if type(first) is not type(second) or not (is_plain(first) and is_plain(second)):
        return False
    return bool(first == second) and repr(first) == repr(second)  # -0.0 == 0.0, 1 == True


@functools.cache
def foreign_places() -> tuple[str, ...]:
    """List how the files of picograd, Python and installed packages begin."""
    import sysconfig  # here, like NumPy's generators below: most programs trace nothing

    paths = sysconfig.get_paths()
    installed = {paths[name] + os.sep for name in ("stdlib", "purelib", "platlib")}
    return (PACKAGE, *installed, "<frozen")


@functools.cache
def global_generators() -> tuple[Any, ...]:
    """List the generators of random numbers that every function reaches."""
    return random._inst, np.random.mtrand._rand  # type: ignore[attr-defined]


def is_foreign(path: Any) -> bool:
    """Tell whether a file belongs to picograd, Python or an installed package."""
    return not isinstance(path, str) or path.startswith(foreign_places())


def is_foreign_class(kind: type) -> bool:
    """Tell whether a class is not of the user's own files."""
    if kind.__module__ in ("__main__", "builtins"):  # of text that `exec` runs, it says builtins
        return kind.__module__ == "builtins" and not kind.__flags__ & HEAP_TYPE
    return is_foreign(getattr(sys.modules.get(kind.__module__), "__file__", ""))


def is_library(value: Any) -> bool:
    """Tell whether a value is a module, class or function that is not of the user's own files."""
    if isinstance(value, ModuleType):
        return is_foreign(getattr(value, "__file__", None))
    if isinstance(value, type):
        return is_foreign_class(value)
    if isinstance(value, FunctionType):
        return is_foreign(value.__code__.co_filename) and not wrapped(value)
    return isinstance(value, (BuiltinFunctionType, Public))


def is_users(value: Any) -> bool:
    """Tell whether a value calls a function of the user's, or is a module."""
    if isinstance(value, (FunctionType, MethodType, functools.partial)):
        return type(value) is not Public
    return hasattr(type(value), "_trace_state")


def wrapped(function: FunctionType, depth: int = 4) -> list[Any]:
    """List the user's functions and modules that one of a library was made of: by `no_grad()`."""
    cells = map(content, function.__closure__ or ())
    found: list[Any] = []
    for each in (*cells, getattr(function, "__wrapped__", None)):
        if isinstance(each, FunctionType) and is_foreign(each.__code__.co_filename):
            found += wrapped(each, depth - 1) if depth else []
        elif is_users(each):
            found.append(each)
    return found


def content(cell: Any) -> Any:
    """Give the value of a variable of an outer function."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def inside(member: Any) -> Any:
    """Find the function of a member of a class: behind a property, `jit`, or what wraps it."""
    function = getattr(member, "fget", getattr(member, "__func__", member))
    if hasattr(type(function), "_jitted"):
        function = function._jitted()
    if isinstance(function, FunctionType) and is_foreign(function.__code__.co_filename):
        return next((e for e in wrapped(function) if isinstance(e, FunctionType)), function)
    return function


def copied(container: Any) -> Any:
    """Copy a container as one of Python's own."""
    return (dict if isinstance(container, dict) else list)(container)


def inside_of(container: Any) -> list[Any]:
    """List what is in a container, keys of a dict too."""
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def put_back(copies: Copies) -> None:
    """Give Python's state what it was before a trace that failed: the function runs once more."""
    slots, containers, arrays, moving = copies
    for rewind in moving:
        rewind()
    for slot, value in slots:
        if slot.read() is not value:
            slot.variable().write(GONE if value is MISSING else value)
    for held, was in containers:
        if len(held) != len(was) or not all(map(operator.is_, inside_of(held), inside_of(was))):
            held.clear()
            (held.extend if isinstance(held, (list, deque)) else held.update)(was)
    for holder, content in arrays:
        own = holder if isinstance(holder, np.ndarray) else np.frombuffer(holder, np.uint8)
        if own.dtype.kind != "O" and bytes_of(holder) != content:
            own[...] = np.frombuffer(content, own.dtype).reshape(own.shape)


class Every(set[str]):
    """This class has every name in it: those of attributes that code computes."""

    def __contains__(self, name: object) -> bool:
        return True


class Slot:
    """This class is one variable or attribute: how to read it, and what is expected there."""

    __slots__ = ("expected", "holder", "key", "label", "owner", "reference")

    def __init__(self, holder: Any, key: str | None, label: str, owner: Any = None) -> None:
        self.holder = holder
        self.key = key
        self.label = label
        self.owner = owner
        self.expect(self.read())

    def variable(self) -> Variable:
        """Give the place: `owner` is a class, or an object without a dict of its attributes."""
        if self.owner is not None:
            return Variable(self.owner, Members, self.key, self.label)
        return Variable(self.holder, as_it_is, self.key, self.label)

    def expect(self, value: Any) -> None:
        """Keep a value to compare with; what is not plain is held weakly."""
        self.expected = value if is_plain(value) else None
        self.reference = None if is_plain(value) else Reference(value)

    def value(self) -> Any:
        """Give what is expected; None for an object that is gone."""
        return self.expected if self.reference is None else self.reference.find()

    def read(self) -> Any:
        """Read what is there now."""
        if self.key is not None:
            return self.holder.get(self.key, MISSING)
        return content(self.holder)


def members_of(value: Any) -> set[str]:
    """List the attributes that an object of a class of the user's keeps in `__slots__`."""
    kinds = [kind for kind in type(value).__mro__ if "__slots__" in vars(kind)]
    found = {n for k in kinds for n, each in vars(k).items() if isinstance(each, MEMBER)}
    return set() if is_foreign_class(type(value)) else found


def size_of(value: Any) -> int:
    """Count the bytes of an array."""
    return int(value.nbytes if isinstance(value, np.ndarray) else memoryview(value).nbytes)


def bytes_of(value: Any) -> bytes:
    """Copy what an array holds."""
    return bytes(value) if isinstance(value, bytearray) else value.tobytes()


def behind(value: Any) -> list[Any]:
    """List what a method is made of, a view of containers shows, a weak reference finds."""
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, MappingProxyType):
        return gc.get_referents(value)
    if isinstance(value, ChainMap):
        return value.maps
    if isinstance(value, (UserDict, UserList)):
        return [value.data]
    return [value()] if isinstance(value, weakref.ref) else []


class Reach:
    """This class is what a function can reach, found by one walk; see the module docstring."""

    def __init__(self, function: Any, objects: Iterable[Any], followed: Iterable[Any] = ()) -> None:
        self.followed = set(followed)  # places of which the trace follows what is there
        self.slots: dict[tuple[int, str | None], Slot] = {}
        self.watched: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.containers: dict[int, tuple[Any, list[Any], str]] = {}
        self.arrays: dict[int, tuple[Any, bytes, str]] = {}
        self.tensors: list[Tensor] = []
        self.plain: dict[int, tuple[Any, str]] = {}  # objects with attributes
        self.loose: set[str] = set()
        self.asked: set[str] = set()  # of these, what may be missing
        self.is_computed = False  # some code computes names of attributes
        self.moving: dict[int, tuple[Any, Any, str]] = {}  # iterators, generators of numbers
        self.read: set[int] = set()  # lists of which more is read than a method that adds
        self.added: set[int] = set()  # lists of which such a method is read
        self.math: list[tuple[dict[str, Any], str]] = []  # variables: `from math import exp`
        self.definitions: dict[tuple[int, str], Any] = {}  # what functions and classes are made of
        self.asks_class: bool = False  # some code reads `type`: a number there must be what it says
        self.seen: dict[int, Any] = {}
        self.work: list[tuple[Any, str]] = [(function, name_of(function))]
        self.work += [(each, type(each).__name__) for each in objects]
        for each in global_generators():
            self.moving[id(each)] = each, progress_of(each), "a generator of random numbers"
        self.walk()

    def names(self) -> set[str]:
        """Give the names of attributes that its code reads of any object."""
        return Every() if self.is_computed else self.loose

    def copies(self) -> "Copies":
        """Copy what a function may change beside tensors, for `put_back`."""
        held = [(each, copied(each)) for each, _, _ in self.containers.values()]
        arrays = [(each, was) for each, was, _ in self.arrays.values()]
        moving = [rewinding(each) for each, _, _ in self.moving.values()]
        return [(slot, slot.read()) for slot in self.slots.values()], held, arrays, moving

    def forget(self) -> None:
        """Let go what was found."""
        for table in (self.slots, self.watched, self.containers, self.arrays, self.plain):
            table.clear()
        self.moving.clear()
        self.seen.clear()
        self.tensors.clear()

    def walk(self) -> None:
        """Visit all that is reached; loose names are looked up on all plain objects."""
        known: set[tuple[int, str]] = set()
        while True:
            while self.work and len(self.seen) < FARTHEST:
                value, label = self.work.pop()
                is_new = id(value) not in self.seen or (label and self.may_change(value))
                if is_new and not is_plain(value):
                    self.seen[id(value)] = value
                    self.visit(value, label)
            for value, label in list(self.plain.values()):
                own = attributes_of(value)
                read = own if self.is_computed else self.loose & own
                for name in sorted(read if isinstance(value, Tensor) else read | self.asked):
                    if (id(value), name) not in known:
                        known.add((id(value), name))
                        self.follow(value, (name,), label)
            if not self.work:
                return

    def visit(self, value: Any, label: str) -> None:
        """Find out what a value is, and what it leads to."""
        if isinstance(value, Tensor):
            self.tensors.append(value)
            if vars(value):
                self.plain[id(value)] = value, label
            self.work += [(hook, "a hook") for hook in hooks_of(value)]
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, (np.ndarray, bytearray, array)):
            if size_of(value) <= LARGEST_ARRAY:
                self.arrays[id(value)] = value, bytes_of(value), label or "an array"
        elif is_moving(value):
            self.moving[id(value)] = value, progress_of(value), label or "an iterator"
        elif isinstance(value, operator.attrgetter):
            self.loose.update(".".join(value.__reduce__()[1]).split("."))
        elif isinstance(value, functools.partial) and type(value) is not Public:
            self.work += [(each, label) for each in (value.func, value.args, value.keywords)]
        elif hasattr(type(value), "_trace_state"):
            self.watch(value, label)
        elif hasattr(type(value), "_jitted"):
            self.work.append((value._jitted(), label))
        elif isinstance(value, (list, tuple, dict, set, frozenset, deque)):
            self.contain(value, label)
        elif held := behind(value):
            self.work += [(each, label) for each in held]
        elif isinstance(value, type):
            self.members(value, value.__mro__, label)
        elif isinstance(value, (ModuleType, BuiltinFunctionType, Public)):
            return
        elif hasattr(value, "__dict__") and hasattr(type(value), "_follows_numbers"):
            self.plain[id(value)] = value, label
            self.members(value, type(value).__mro__, label)
            for name, item in vars(value).items():
                if not is_followable(item):
                    slot = Slot(vars(value), name, f"{label}.{name}")
                    self.slots.setdefault((id(value), name), slot)
                    self.work.append((item, ""))
        elif has_attributes(value) and is_of_user(type(value)):
            self.plain[id(value)] = value, label
            self.members(value, type(value).__mro__, label)

    def may_change(self, value: Any) -> bool:
        """Tell whether a value is a container that is not compared yet."""
        return isinstance(value, (list, dict, set, deque)) and id(value) not in self.containers

    def contain(self, value: Any, label: str) -> None:
        """Look into a container, and remember what is in it."""
        if len(value) > LARGEST_PLAIN:
            return
        items = contents(value)
        if len(items) > LARGEST and not all(map(is_plain, items)):
            return
        if self.followed and not isinstance(value, (set, frozenset)):
            keys = value if isinstance(value, dict) else range(len(items))
            pairs = [((id(value), key), item) for key, item in zip(keys, items)]
            items = [FOLLOWED if place in self.followed else item for place, item in pairs]
        if isinstance(value, (list, dict, set, deque)) and label:
            self.containers[id(value)] = value, items, label
        self.work += [(e, label and f"{label}[...]") for e in items if e is not FOLLOWED]

    def watch(self, value: Any, label: str) -> None:
        """Remember an object that tells its changes, and look into it."""
        state = value._trace_state()
        self.watched[id(value)] = value, state
        self.members(value, type(value).__mro__, label)
        hooks = getattr(value, "_hooks", None)
        self.work += [(hook, "a hook") for hook in ([] if hooks is None else hooks.functions())]
        read, is_own = (read_attributes(type(value)), is_foreign_class(type(value)))
        for name, item in state.items():
            if (id(vars(value)), name) in self.followed:
                continue
            is_guarded = name in read and not (is_own or name in QUIET or name.startswith("_"))
            self.work.append((item, f"{label}.{name}" if is_guarded else ""))

    def members(self, value: Any, kinds: Iterable[type], label: str) -> None:
        """Enter the functions of the user's classes; what they read first of may be `value`.

        An object, or a class: of what is made of it only what all share is known.
        """
        for kind in kinds:
            if is_foreign_class(kind):
                continue
            for member_name, member in vars(kind).items():
                function = inside(member)
                if isinstance(function, FunctionType):
                    self.work.append((function, label))
                    if isinstance(member, REPLACED):
                        self.define(kind, member_name)
                    own = names_of(function.__code__).own
                    if isinstance(member, staticmethod):
                        self.loose.update(*own)
                    for path in own:
                        self.follow(value, path, label)

    def function(self, function: FunctionType) -> None:
        """Follow what the code of a function names."""
        code = function.__code__
        if is_foreign(code.co_filename):
            self.work += [(each, function.__name__) for each in wrapped(function)]
            return
        names = names_of(code)
        self.asks_class |= ("type",) in names.paths
        self.is_computed |= names.is_computed
        for text in names.texts & function.__globals__.keys():
            self.enter(Slot(function.__globals__, text, f"global {text}"), (text,))
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        self.loose |= names.loose
        owner = function.__qualname__.rpartition(".")[0]
        if not owner or owner.endswith("<locals>"):  # no method: its first argument is any object
            self.loose.update(*names.own)
        self.asked |= names.asked
        for path in names.paths:
            root = path[0]
            if root in cells:
                self.enter(Slot(cells[root], None, root), path)
            elif root in function.__globals__ or not hasattr(builtins, root):
                self.enter(Slot(function.__globals__, root, f"global {root}"), path)
        self.define(function, "__code__")
        given = [self.define(function, name) for name in ("__defaults__", "__kwdefaults__")]
        self.work += [(each, "a default") for each in given if each]

    def define(self, owner: Any, name: str) -> Any:
        """Take up what a function or class is made of, once; gives it."""
        value = getattr(owner, name)
        if value is not None and "__init__" not in (name, owner.__name__):
            self.definitions[id(owner), name] = weakref.ref(owner), name, value
        return value

    def enter(self, slot: Slot, path: Path) -> None:
        """Take a slot up, and follow the attributes that are read of its value."""
        value = slot.read()
        if is_library(value):
            if slot.key is not None and isinstance(value, BuiltinFunctionType) and value in NAMED:
                self.math.append((slot.holder, slot.key))
            return
        if slot.variable().identity()[:2] in self.followed:
            return
        self.slots.setdefault((id(slot.holder), slot.key), slot)
        self.work.append((value, slot.label))
        self.note_read(value, path[1:])
        self.follow(value, path[1:], slot.label)

    def note_read(self, value: Any, rest: Path) -> None:
        """Remember a list of which code reads more than a method that adds to it."""
        if isinstance(value, list):
            (self.added if rest[:1] in ADDED else self.read).add(id(value))

    def follow(self, value: Any, path: Path, label: str) -> None:
        """Read attributes one after the other, each a slot unless its owner tells changes."""
        for at, name in enumerate(path):
            if not has_attributes(value) or (
                isinstance(value, Tensor) and hasattr(type(value), name)
            ):
                return
            if not hasattr(type(value), "_trace_state") and name in members_of(value):
                label = f"{label}.{name}"
                if (id(value), name) in self.followed:
                    return
                slot = Slot(Members(value), name, label, value)
                self.slots.setdefault((id(value), name), slot)
                value = getattr(value, name, None)
                self.work.append((value, label))
                self.note_read(value, path[at + 1 :])
                continue
            kinds = value.__mro__[1:] if isinstance(value, type) else type(value).__mro__
            owners = [value] if hasattr(value, "__dict__") else []
            owners += [kind for kind in kinds if not is_foreign_class(kind)]
            first = next((n for n, each in enumerate(owners) if name in vars(each)), -1)
            if first >= 0 and place_of(owners[first], name) in self.followed:
                return
            label = f"{label}.{name}"
            if first < 0:
                if not hasattr(value, name):  # `getattr` with a default, or `hasattr`, asks
                    for each in owners:
                        kind = each if isinstance(each, type) else None
                        self.slots.setdefault((id(each), name), Slot(vars(each), name, label, kind))
                return
            if first > 0 or not tells(value, name):
                for each in owners[: first + 1]:
                    kind = each if isinstance(each, type) else None
                    self.slots.setdefault((id(each), name), Slot(vars(each), name, label, kind))
            value = vars(owners[first])[name]
            self.work.append((value, label))
            self.note_read(value, path[at + 1 :])


def noted_on(tensors: Iterable[Tensor]) -> list[Any]:
    """List the attributes of tensors that are compared by identity, or by what they hold."""
    noted = [each for tensor in tensors if vars(tensor) for each in vars(tensor).values()]
    return [each for each in noted if not is_plain(each)]


def asked_of(tensor: Tensor, asked: set[str]) -> tuple[Any, ...]:
    """Say what code may ask of an argument beside its values: attributes, and of its layout."""
    found = [(n, type(e), e if is_plain(e) else id(e)) for n, e in vars(tensor).items()]
    if {"strides", "offset"} & asked and tensor.numel() and not tensor.is_contiguous():
        found.append(("strides", tuple, tensor.stride()))
    if "offset" in asked and tensor.storage_offset():
        found.append(("offset", int, tensor.storage_offset()))
    return tuple(found)


def place_of(owner: Any, name: str) -> tuple[int, str]:
    """Identify an attribute of an object or class, as its variable does."""
    return id(owner if isinstance(owner, type) else vars(owner)), name


def is_of_user(kind: type) -> bool:
    """Tell whether the attributes of the objects of a class are the user's."""
    return not is_foreign_class(kind) or (kind.__module__, kind.__name__) in BAGS


def has_attributes(value: Any) -> bool:
    """Tell whether an object has attributes that a program may set."""
    return hasattr(value, "__dict__") or bool(members_of(value))


def attributes_of(value: Any) -> set[str]:
    """List the attributes of an object, and the defaults that classes of the user's give it."""
    kinds = [kind for kind in type(value).__mro__ if not is_foreign_class(kind)]
    defaults = {n for kind in kinds for n, each in vars(kind).items() if is_plain(each)}
    return {*getattr(value, "__dict__", ()), *members_of(value), *defaults}


def name_of(function: Any) -> str:
    """Name a function in messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def contents(value: Any) -> list[Any]:
    """List what is in a container."""
    return list(value.values() if isinstance(value, dict) else value)


ATTRIBUTES: "weakref.WeakKeyDictionary[type, frozenset[str]]" = weakref.WeakKeyDictionary()


def read_attributes(kind: type) -> frozenset[str]:
    """List the attributes that the methods of a class read of anything."""
    known = ATTRIBUTES.get(kind)
    if known is None:
        found: set[str] = set()
        for each in kind.__mro__[:-1]:
            for member in vars(each).values():
                function = inside(member)
                if isinstance(function, FunctionType):
                    found |= names_of(function.__code__).attributes
        known = ATTRIBUTES[kind] = frozenset(found)
    return known


def relevant(value: Any, state: Mapping[str, Any], more: set[str]) -> dict[str, Any]:
    """Choose what of a watched object's state its own code, or the function's, can read."""
    own = getattr(value, "__dict__", {})
    read = read_attributes(type(value))
    return {
        name: item
        for name, item in state.items()
        if name not in own
        or is_part(item)
        or ((name in read or name in more) and not name.startswith("__"))
    }


def tells(value: Any, name: str) -> bool:
    """Tell whether an attribute is of the state that its owner's own code tells changes of."""
    own = {name: vars(value).get(name)}
    return hasattr(type(value), "_trace_state") and bool(relevant(value, own, set()))


def is_part(value: Any) -> bool:
    """Tell whether an attribute is a module or parameter: it is read where they are listed."""
    return hasattr(type(value), "_trace_state") or is_parameter(value)


def is_parameter(value: Any) -> bool:
    """Tell whether a tensor is a parameter or buffer of a module by its class."""
    return isinstance(value, Tensor) and type(value) is not Tensor


class Watched:
    """This class is what is expected of one watched object."""

    __slots__ = ("held", "label", "more", "others", "plain", "reference", "skipped")

    def __init__(self, value: Any, more: set[str]) -> None:
        self.reference: Reference = Reference(value)
        self.label: str = type(value).__name__
        self.more: set[str] = more
        state = relevant(value, value._trace_state(), more)
        self.plain: dict[str, Any] = {name: each for name, each in state.items() if is_plain(each)}
        kept = {n: e for n, e in state.items() if n not in self.plain}
        self.others = {n: Reference(e) for n, e in kept.items() if not isinstance(e, (list, dict))}

    def skip(self, followed: set[Any]) -> None:
        """Let the numbers be what they are that a trace follows."""
        table = id(vars(self.reference.find()))
        self.skipped = {name for place, name in followed if place == table}

    def hold(self, compared: set[int]) -> None:
        """Expect the lists and dicts, whose items are compared, to stay where they are."""
        own = vars(self.reference.find())
        self.held = {name: each for name, each in own.items() if id(each) in compared}

    def difference(self) -> str | None:
        """Say what changed; None if nothing did."""
        value = self.reference.find()
        if value is None:
            return f"a {self.label} is gone"
        for name, was in self.held.items():
            if vars(value).get(name) is not was:
                return f"{self.label}.{name} was replaced"
        state = relevant(value, value._trace_state(), self.more)
        for name in (self.plain.keys() | state.keys() | self.others.keys()) - self.skipped:
            now = state.get(name, MISSING)
            if name in self.others:
                if self.others[name].find() is not now:
                    return f"{self.label}.{name} was replaced"
            elif isinstance(now, (list, dict)):
                continue
            elif not is_same(self.plain.get(name, MISSING), now):
                before = self.plain.get(name, MISSING)
                return f"{self.label}.{name} changed from {shown(before)} to {shown(now)}"
        return None


def are_numbers(was: Any, now: Any) -> bool:
    """Tell whether a number, or a tuple of numbers, became another of its class."""
    return type(was) is type(now) and is_followable(was) and is_followable(now)


def shown(value: Any) -> str:
    """Show a value in a message."""
    if not is_plain(value):
        return f"a {type(value).__name__}"
    text = "nothing" if value is MISSING else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


class Guard:
    """This class tells at every call whether the state is that of the trace."""

    def __init__(self, reach: Reach, trace: Trace) -> None:
        self.token: object = STATE.token
        self.refusals: list[str] = []
        self.moving: list[Variable] = []  # numbers that the function changes itself
        self.rebound: list[Variable] = []  # places in which it puts other tensors
        self.followed = {identity[:2] for identity in trace.variables} | reach.followed
        self.reached: set[int] = set(reach.watched)
        before, names = {**trace.objects, **reach.watched}, reach.names()
        for value, state in before.values():
            self.own_changes(value, relevant(value, state, names))
        owners = [value for value, _ in before.values()]
        self.watched: list[Watched] = [Watched(each, names) for each in owners]
        for each in self.watched:
            each.skip(self.followed)
        states = [(each, getattr(each, "state", None)) for each in owners]
        dicts = [(owner, state) for owner, state in states if isinstance(state, dict)]
        self.sized = [(Reference(owner).find, sizes_of(owner)) for owner, _ in dicts]
        if any(not hasattr(Tensor, name) for name in reach.asked):
            trace.asked.add("attributes")  # what an argument lacks now it may have later
        self.slots: list[Slot] = [slot for slot in reach.slots.values() if self.is_steady(slot)]
        self.links = [
            (slot.holder, slot.key, slot.reference.find) for slot in self.slots if slot.reference
        ]
        self.arrange()
        self.hooked: list[tuple[Any, tuple[Any, ...]]] = []
        told = [each for each in reach.tensors if each._tracks or each._view is not None]
        self.watch_hooks(told)  # walks end at these, and writes show in what they are views of
        self.containers: list[tuple[Any, list[Any], str]] = []
        self.contain_all(reach)
        for each, was, label in reach.moving.values():
            if progress_of(each) != was:
                self.refusals.append(f"{label} moves on in it")
        self.definitions = [*reach.definitions.values()]
        self.arrays: list[tuple[Any, bytes, str]] = []
        for each, was, label in reach.arrays.values():
            if bytes_of(each) == was:
                self.arrays.append((each, was, label))
            else:
                self.refusals.append(f"{label} is written in it")

    def settle(self, reach: Reach, trace: Trace) -> None:
        """Let go what the function made and dropped: every call makes it anew."""
        reach.forget()
        trace.objects = {}
        self.watched = [each for each in self.watched if each.reference.find() is not None]
        self.sized = [pair for pair in self.sized if pair[0]() is not None]

    def contain_all(self, reach: Reach) -> None:
        """Compare containers, and expect those of watched objects to stay where they are.

        What code only appends to a list happens when it is traced.
        """
        for value, items, label in reach.containers.values():
            if id(value) in reach.read or id(value) not in reach.added:
                self.contain(value, items, label)
        held = {id(value) for value, *_ in self.containers}
        for each in self.watched:
            each.hold(held)

    def contain(self, value: Any, items: list[Any], label: str) -> None:
        """Compare a container, unless the function changed it itself."""
        now, known = contents(value), set(map(id, items))
        if len(now) == len(items) and not isinstance(value, set):
            items = self.own_entries(value, items, label)
        if len(now) == len(items) and all(map(is_alike, now, items)):
            kept = [
                each if each is FOLLOWED or is_plain(each) else Reference(each) for each in items
            ]
            self.containers.append((value, kept, label))
        elif any(isinstance(e, Tensor) and id(e) not in known for e in now):
            self.refusals.append(f"{label} gets another tensor in it")
        else:
            self.refusals.append(f"what {label} holds changes in it")

    def own_entries(self, value: Any, items: list[Any], label: str) -> list[Any]:
        """Refuse a trace that changes numbers in a list or dict; marks those that it follows."""
        found = list(items)
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for at, (key, was) in enumerate(zip(keys, items)):
            now = value[key]
            if (id(value), key) in self.followed:
                found[at] = FOLLOWED
            elif are_numbers(was, now) and not is_same(was, now):
                name = f"{label}[{key!r}]"
                self.refusals.append(f"{name} changes from {shown(was)} to {shown(now)} in it")
                self.moving.append(Variable(value, as_it_is, key, name))
            elif moves(was, now):
                self.rebound.append(Variable(value, as_it_is, key, f"{label}[{key!r}]"))
        return found

    def own_changes(self, value: Any, before: dict[str, Any]) -> None:
        """Refuse a trace in which a watched object changed in a way that a later run would see."""
        after = value._trace_state()
        for name, noted in before.items():
            now, was = after.get(name, MISSING), plain_of(noted)
            if (id(vars(value)), name) in self.followed:
                continue
            is_own = name in vars(value) or name in ("training", "hooks")
            is_own = is_own or (name.startswith("state of") and not after["is_formula"])
            is_value = is_plain(was) or (isinstance(was, Tensor) and id(value) in self.reached)
            is_changed = is_value and not is_same(was, now)
            if is_own and is_changed and not isinstance(now, (list, dict)):
                label = f"{type(value).__name__}.{name}"
                self.refusals.append(f"{label} changes from {shown(was)} to {shown(now)} in it")
                if name in vars(value) and are_numbers(was, now):
                    self.moving.append(Variable(value, vars, name, label))
                elif name in vars(value) and moves(was, now):
                    self.rebound.append(Variable(value, vars, name, label))

    def is_steady(self, slot: Slot) -> bool:
        """Tell whether a slot still is what it was before the trace; else refuse the trace."""
        now = slot.read()
        if slot.variable().identity()[:2] in self.followed:
            return False
        if is_same(slot.value(), now):
            return True
        if are_numbers(slot.value(), now):
            self.moving.append(slot.variable())
        elif moves(slot.value(), now):
            self.rebound.append(slot.variable())
        self.refusals.append(f"{slot.label} changes from {shown(slot.value())} in it")
        return False

    def moved(self) -> list[Variable]:
        """List the places that got another tensor since the trace, or of a container a number."""
        slots = [slot for slot in self.slots if slot.reference is not None]
        found = [slot.variable() for slot in slots if is_moved(slot.value(), slot.read())]
        for held, items, label in self.containers:
            keys = held if isinstance(held, dict) else range(len(held))
            for key, was in zip(keys if not isinstance(held, set) else (), items):
                now = held[key]
                is_other = are_numbers(was, now) and not is_same(was, now)
                if is_other or (isinstance(was, Reference) and is_moved(was.find(), now)):
                    found.append(Variable(held, as_it_is, key, f"{label}[{key!r}]"))
        for each in self.watched:
            owner = each.reference.find()
            for name, reference in () if owner is None else each.others.items():
                if is_moved(reference.find(), vars(owner).get(name)):
                    found.append(Variable(owner, vars, name, f"{each.label}.{name}"))
        return found

    def arrange(self) -> None:
        """List the plain slots for the comparison by identity."""
        plain = [slot for slot in self.slots if slot.reference is None]
        self.cells = [(slot.holder, slot.expected) for slot in plain if slot.key is None]
        self.entries = [(s.holder, s.key, s.expected) for s in plain if s.key is not None]

    def holds(self) -> bool:
        """Tell whether nothing changed; by identity, which is what most calls need."""
        for holder, key, expected in self.entries:
            if holder.get(key, MISSING) is not expected:
                return self.difference() is None
        for cell, expected in self.cells:
            if cell.cell_contents is not expected:
                return self.difference() is None
        for holder, name, find in self.links:
            now = holder.cell_contents if name is None else holder.get(name)
            if now is not find() or now is None:
                return self.difference() is None
        if self.changed() is not None:
            return False
        return self.token is STATE.token or self.difference() is None

    def watch_hooks(self, tensors: Iterable[Any]) -> None:
        """Expect the hooks that tensors have now, and that they show the memory of the same."""
        self.hooked += [(Reference(each).find, hooked(each)) for each in tensors]

    def difference(self) -> str | None:
        """Say what changed since the trace; None if nothing did."""
        for slot in self.slots:
            now, was = slot.read(), slot.value()
            if not is_same(was, now) or (slot.reference is not None and was is None):
                return f"{slot.label} changed from {shown(was)} to {shown(now)}"
            slot.expected = now if slot.reference is None else None
        self.arrange()
        reason, token = self.changed(), STATE.token
        if reason is not None or self.token is token:
            return reason
        for each in self.watched:
            if reason := each.difference():
                return reason
        for find, hooks in self.hooked:
            if hooked(find()) != hooks:
                return "the hooks of a captured tensor changed, or what it is a view of"
        self.token = token
        return None

    def changed(self) -> str | None:
        """Say what changed that tells nobody, and is no variable; None if nothing did."""
        for container, items, label in self.containers:
            if not is_unchanged(container, items):
                return f"what {label} holds changed"
        for value, was, label in self.arrays:
            if bytes_of(value) != was:
                return f"what {label} holds changed"
        for find, name, expected in self.definitions:
            if getattr(find(), name, expected) is not expected:
                return f"{name} of {name_of(find())} was replaced"
        for find, sizes in self.sized:
            if sizes_of(find()) != sizes:
                return "the state of an optimizer was cleared, or it has other parameters"
        return None


def hooks_of(tensor: Any) -> list[Any]:
    """List the functions that are called with the gradient of a tensor."""
    hooks = getattr(tensor, "_hooks", None)
    if hooks is None:
        return []
    kept = () if hooks.keep is None else (hooks.keep,)
    return [*hooks.before.values(), *hooks.step.values(), *kept, *hooks.after.values()]


class Root:
    """This class names a tensor that others show, unlike an identity for as long as it is there."""

    def __init__(self, tensor: Any) -> None:
        self.find = weakref.ref(tensor)

    def __eq__(self, other: object) -> bool:
        found = self.find()
        return isinstance(other, Root) and found is not None and found is other.find()

    __hash__ = None  # type: ignore[assignment]


def hooked(tensor: Any) -> tuple[Any, ...]:
    """Name the hooks of a tensor, by numbers that no later ones have, and what it is a view of."""
    hooks, view = getattr(tensor, "_hooks", None), getattr(tensor, "_view", None)
    base: tuple[Any, ...] = () if view is None else (Root(root_of(tensor)),)
    return base if hooks is None else base + hooks.numbers()


def is_moved(was: Any, now: Any) -> bool:
    """Tell whether a place got another tensor, or tensors in a container; no parameters."""
    return moves(was, now) and all(type(each) is Tensor for each in tensors_of(now))


def sizes_of(owner: Any) -> list[int]:
    """Count what an optimizer has state of, and its parameters by group; nothing if it is gone."""
    groups = getattr(owner, "param_groups", ())
    return [] if owner is None else [len(owner.state), *[len(each["params"]) for each in groups]]


def is_alike(now: Any, was: Any) -> bool:
    """Tell whether an element of a container makes no difference to a trace."""
    return was is FOLLOWED or is_same(now, was)


def is_unchanged(container: Any, items: list[Any]) -> bool:
    """Tell whether a container still holds the same."""
    if len(container) != len(items):
        return False
    found = contents(container)
    if all(map(operator.is_, found, items)):
        return True
    for now, was in zip(found, items):
        if was is FOLLOWED:
            continue
        if isinstance(was, Reference):
            if was.find() is not now:
                return False
        elif not is_same(was, now):
            return False
    return True
