"""Read the pickles that torch.save writes, without running what they say.

A pickle is a program for a stack machine whose instructions can import and call anything. The
machine here knows the instructions that torch.save uses, and can call only what `CALLABLE` names;
any other global is refused by its name. Source: the opcodes of Python's `pickletools`.
"""

import pickletools
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from picograd.device_name import device
from picograd.dtype import BY_NAME, DType, dtype_named
from picograd.engine.realize import node_over_numpy
from picograd.errors import PicogradError, StateError
from picograd.graph.shape import Shape, Strides
from picograd.helpers import product, row_major
from picograd.late_methods import dataclass
from picograd.nn.parameter import Parameter
from picograd.nn.safe_globals import SAFE, is_safe, make, set_state
from picograd.target import is_host
from picograd.tensor.core.autograd import no_grad
from picograd.tensor.core.sizes import Size
from picograd.tensor.making import creation
from picograd.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
ATOMS = (str, bytes, int, float, bool, type(None))
# Elements that a tensor with zero strides may have beyond those in its file.
MOST_REPEATED = 1 << 26
STORAGES = {
    "Bool": "bool", "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32",
    "Long": "int64", "Half": "float16", "BFloat16": "bfloat16", "Float": "float32",
    "Double": "float64", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """This class is an allowed global: REDUCE may call it if it has a meaning as a function."""

    text: str
    call: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Storage:
    """This class is a run of bytes in a file; `dtype` is None for untyped ones."""

    key: str
    dtype: DType | None
    count: int


class PickleProblem(Exception):
    """What is wrong with a pickle; becomes a StateError that names the file."""


def from_storage(array: Array, dtype: DType, device: Any) -> Tensor:
    """Make a tensor of an array of `dtype.storage`, whose memory it takes over on the CPU.

    Floats that NumPy lacks come as their bits.
    """
    if dtype.name == "bool":
        raw: Array = array.view(np.uint8)
        np.minimum(raw, 1, out=raw)  # a damaged file may hold others: kernels count on 0 and 1
    if array.size and is_host(creation.device_named(device)):
        own: Any = node_over_numpy(array, dtype)
        return Tensor.of(own)
    tensor = Tensor.of(array, device=device)
    return tensor if dtype.numpy == array.dtype else tensor.bitcast(dtype)


class Machine:
    """This class runs the pickles of one file.

    `read` gives the bytes of a storage by its key. The first tensor over a storage takes over that
    memory, if it shows all of it; the others are views of it.
    """

    def __init__(self, read: Callable[[Storage], Array], device: Any) -> None:
        self.read = read
        self.device = device
        self.storages: dict[str, Storage] = {}
        self.roots: dict[Any, Tensor] = {}  # what has their memory

    def run(self, content: bytes) -> Any:
        """Interpret one pickle. Raises PickleProblem for what torch.save never writes."""
        stack: list[Any] = []
        marks: list[int] = []
        memo: dict[int, Any] = {}
        for opcode, arg, _ in pickletools.genops(content):
            name = opcode.name
            if name == "STOP":
                return stack.pop()
            if name in PUSHES:
                stack.append(CONSTANTS.get(name, arg))
            elif name in ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET"):
                stack.append({"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}[name]())
            elif name == "MARK":
                marks.append(len(stack))
            elif name in PUTS:
                memo[len(memo) if arg is None else int(arg)] = stack[-1]
            elif name in GETS:
                stack.append(memo[int(arg or 0)])
            elif name in GATHERS:
                first = marks.pop()
                items, stack[first:] = stack[first:], []
                GATHERS[name](stack, items)
            elif name in STEPS:
                STEPS[name](self, stack, arg)
            elif name not in ("PROTO", "FRAME"):
                raise PickleProblem(f"opcode {name} is refused")
        raise PickleProblem("it ends without STOP")

    def find(self, text: str) -> Any:
        """Look up a global, written "module name". Refuses what is not allowed."""
        module, _, name = text.partition(" ")
        if text in CALLABLE:
            return Name(text, CALLABLE[text])
        if text in SAFE:
            return SAFE[text]
        if module == "torch" and name in DTYPE_NAMES:
            return dtype_named(name)
        if module == "torch" and DTYPE.fullmatch(name):
            raise PickleProblem(f"picograd has no dtype for torch.{name}")
        is_storage = name.endswith("Storage") and module in ("torch", "torch.storage")
        if is_storage:
            return Name(text)
        raise PickleProblem(f"the global {module}.{name} is refused: it may run code")

    def storage(self, given: Any) -> Storage:
        """Read a persistent id: ("storage", class, key, location, count, ...)."""
        if not isinstance(given, tuple) or len(given) < 5 or given[0] != "storage":
            raise PickleProblem("a persistent id is no storage")
        kind, key, count = given[1], given[2], given[4]
        if not isinstance(kind, Name) or not isinstance(key, str) or not isinstance(count, int):
            raise PickleProblem("a storage has no class, key or size")
        name = kind.text.partition(" ")[2].removesuffix("Storage")
        if name not in STORAGES and name != "Untyped":
            raise PickleProblem(f"picograd has no dtype for {name}Storage")
        dtype = None if name == "Untyped" else dtype_named(STORAGES[name])
        found = self.storages.setdefault(key, Storage(key, dtype, count))
        if (found.dtype, found.count) != (dtype, count):
            raise PickleProblem(f"storage {key} has two sizes or dtypes")
        return found

    def call(self, function: Any, args: Any) -> Any:
        """Run REDUCE: only functions of `CALLABLE`, and what the program declared to be safe."""
        if is_safe(function):
            return function(*args)
        if not isinstance(function, Name) or function.call is None or not isinstance(args, tuple):
            raise PickleProblem(f"a call of {getattr(function, 'text', function)!s} is refused")
        return function.call(self, *args)

    def tensor(self, storage: Any, place: tuple[Any, ...], dtype: Any, wants: Any) -> Tensor:
        """Make the tensor that looks at a storage through (offset, sizes, strides)."""
        if not isinstance(storage, Storage) or not isinstance(dtype, DType):
            raise PickleProblem("a tensor has no storage or no dtype")
        check_place(storage, place, dtype)
        root, (offset, sizes, strides) = self.roots.get(storage.key), place
        if root is not None and root.dtype is dtype:
            made = shown(root, offset, sizes, strides)
        else:
            flat: Array = self.read(storage).view(dtype.storage)
            is_whole = flat.size == product(sizes) and strides == row_major(sizes)
            array = np.array(flat) if root is not None else flat  # other bits are a copy
            made = from_storage(array.reshape(sizes) if is_whole else array, dtype, self.device)
            self.roots.setdefault(storage.key, made)
            made = made if is_whole else shown(made, offset, sizes, strides)
        if wants is True and dtype.is_differentiable:
            made.requires_grad = True
        return made


def shown(root: Tensor, offset: int, sizes: Shape, strides: Strides) -> Tensor:
    """View memory that a tensor shows whole: by cheap views where nothing lies between elements."""
    with no_grad():
        order = sorted(range(len(sizes)), key=lambda axis: -strides[axis])  # as they lie in memory
        lying = tuple(sizes[axis] for axis in order)
        if tuple(strides[axis] for axis in order) != row_major(lying):
            return root.detach().as_strided(sizes, strides, offset)
        if sizes == root.shape and order == sorted(order):
            return root.detach()
        flat: Any = root.detach().reshape(-1)[offset : offset + product(sizes)]
        return flat.reshape(lying).permute(*map(order.index, range(len(order))))


def check_place(storage: Storage, place: tuple[Any, ...], dtype: DType) -> None:
    """Raise unless (offset, sizes, strides) stay inside the storage."""
    offset, sizes, strides = place
    is_listed = isinstance(sizes, tuple) and isinstance(strides, tuple)
    if not is_listed or len(sizes) != len(strides):
        raise PickleProblem("a tensor's sizes and strides do not fit each other")
    if any(not isinstance(n, int) or n < 0 for n in (offset, *sizes, *strides)):
        raise PickleProblem("a tensor has a negative size, stride or offset")
    width = 1 if storage.dtype is None else storage.dtype.itemsize
    held = storage.count * width // dtype.itemsize
    last = offset + sum((size - 1) * step for size, step in zip(sizes, strides))
    if 0 not in sizes and last >= held:
        raise PickleProblem(f"a tensor ends at element {last} of a storage of {held}")
    if offset > held or product(sizes) > max(held, MOST_REPEATED):
        raise PickleProblem(f"a tensor of shape {sizes} does not fit a storage of {held}")


# what may be called


def _tensor_v2(
    machine: Machine, storage: Any, offset: Any, sizes: Any, strides: Any, wants: Any, *_: Any
) -> Tensor:
    dtype = storage.dtype if isinstance(storage, Storage) else None
    return machine.tensor(storage, (offset, sizes, strides), dtype, wants)


def _tensor_v3(
    machine: Machine, storage: Any, offset: Any, sizes: Any, strides: Any, wants: Any, _hooks: Any,
    dtype: Any, *_: Any,
) -> Tensor:  # fmt: skip
    return machine.tensor(storage, (offset, sizes, strides), dtype, wants)


def _parameter(_machine: Machine, value: Any, wants: Any, *_: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise PickleProblem("a parameter holds no tensor")
    return Parameter(value, wants is True and value.dtype.is_differentiable)


def _parameter_with_state(
    machine: Machine, value: Any, wants: Any, hooks: Any, state: Any
) -> Tensor:
    made = _parameter(machine, value, wants, hooks)
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise PickleProblem("the attributes of a parameter are no dict")
    vars(made).update(state)
    return made


def _ordered_dict(_machine: Machine, pairs: Any = ()) -> dict[Any, Any]:
    result: OrderedDict[Any, Any] = OrderedDict()
    for key, value in pairs:
        _store(result, key, value)
    return result


def _counter(_machine: Machine, counts: Any = ()) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for key, value in dict(counts).items():
        _store(found, key, value)
    return found


def _size(_machine: Machine, sizes: Any = ()) -> Size:
    return Size(sizes)


def _device(_machine: Machine, kind: Any, index: Any = None) -> device:
    return device(str(kind), index)


def _set(_machine: Machine, items: Iterable[Any] = ()) -> set[Any]:
    return set(map(_atom, items))


def _complex(_machine: Machine, real: Any, imaginary: Any = 0.0) -> complex:
    return complex(real, imaginary)


def _bytearray(_machine: Machine, content: Any = b"") -> bytearray:
    if not isinstance(content, bytes):  # a number would be a length
        raise PickleProblem("a bytearray of something else than bytes")
    return bytearray(content)


def _encode(_machine: Machine, text: Any, coding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or coding != "latin1":
        raise PickleProblem("bytes in an unknown coding")
    return text.encode("latin1")


CALLABLE: Mapping[str, Callable[..., Any]] = {
    "torch._utils _rebuild_tensor_v2": _tensor_v2, "torch._utils _rebuild_tensor_v3": _tensor_v3,
    "torch._utils _rebuild_parameter": _parameter,
    "torch._utils _rebuild_parameter_with_state": _parameter_with_state,
    "collections OrderedDict": _ordered_dict,
    "collections Counter": _counter, "torch Size": _size, "torch device": _device,
    "__builtin__ set": _set, "builtins set": _set, "__builtin__ complex": _complex,
    "builtins complex": _complex, "__builtin__ bytearray": _bytearray,
    "builtins bytearray": _bytearray, "_codecs encode": _encode,
}  # fmt: skip
DTYPE_NAMES = set(BY_NAME)
DTYPE = re.compile(r"(complex|float|q?u?int|bits)\d\w*")  # how PyTorch names them

# the instructions


def _atom(key: Any) -> Any:
    """Check a key: hashing nested tuples that share parts could take for ever."""
    if not isinstance(key, ATOMS):
        raise PickleProblem(f"a {type(key).__name__} as the key of a dict")
    return key


def _store(target: Any, key: Any, value: Any) -> None:
    if not isinstance(target, dict):
        raise PickleProblem("items are stored in something that is no dict")
    target[_atom(key)] = value


def _set_items(stack: list[Any], items: list[Any]) -> None:
    for key, value in zip(items[::2], items[1::2]):
        _store(stack[-1], key, value)


def _set_item(_machine: Machine, stack: list[Any], _arg: Any) -> None:
    value, key = stack.pop(), stack.pop()
    _store(stack[-1], key, value)


def _extend(stack: list[Any], items: list[Any]) -> None:
    if not isinstance(stack[-1], list):
        raise PickleProblem("items are appended to something that is no list")
    stack[-1].extend(items)


def _add(stack: list[Any], items: list[Any]) -> None:
    if not isinstance(stack[-1], set):
        raise PickleProblem("items are added to something that is no set")
    stack[-1].update(map(_atom, items))


def _dict(stack: list[Any], items: list[Any]) -> None:
    stack.append({})
    _set_items(stack, items)


def _join(count: int) -> Callable[[Machine, list[Any], Any], None]:
    def join(_machine: Machine, stack: list[Any], _arg: Any) -> None:
        if len(stack) < count:
            raise PickleProblem("a tuple of more than there is")
        first = len(stack) - count
        stack[first:] = [tuple(stack[first:])]

    return join


def _global(machine: Machine, stack: list[Any], arg: Any) -> None:
    stack.append(machine.find(arg))


def _stack_global(machine: Machine, stack: list[Any], _arg: Any) -> None:
    name, module = stack.pop(), stack.pop()
    stack.append(machine.find(f"{module} {name}"))


def _reduce(machine: Machine, stack: list[Any], _arg: Any) -> None:
    args, function = stack.pop(), stack.pop()
    stack.append(machine.call(function, args))


def _new(_machine: Machine, stack: list[Any], _arg: Any) -> None:
    args, kind = stack.pop(), stack.pop()
    if not is_safe(kind):
        raise PickleProblem(f"an object of {getattr(kind, 'text', kind)!s} is refused")
    stack.append(make(kind, args))


def _build(_machine: Machine, stack: list[Any], _arg: Any) -> None:
    """Set the attributes of an ordered dict: state dicts carry version numbers there."""
    state = stack.pop()
    if is_safe(type(stack[-1])):
        set_state(stack[-1], state)
    elif not isinstance(stack[-1], dict):
        raise PickleProblem("attributes are set on something that is no dict")
    elif isinstance(stack[-1], OrderedDict) and isinstance(state, dict):
        vars(stack[-1]).update(state)


PUTS = {"BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"}
GETS = {"BINGET", "LONG_BINGET", "GET"}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
PUSHES = {
    *CONSTANTS,
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
GATHERS: Mapping[str, Callable[[list[Any], list[Any]], None]] = {
    "TUPLE": lambda stack, items: stack.append(tuple(items)),
    "LIST": lambda stack, items: stack.append(items),
    "DICT": _dict,
    "APPENDS": _extend,
    "SETITEMS": _set_items,
    "ADDITEMS": _add,
    "POP_MARK": lambda stack, items: None,
}
STEPS: Mapping[str, Callable[[Machine, list[Any], Any], None]] = {
    "POP": lambda machine, stack, arg: stack.__delitem__(-1),
    "TUPLE1": _join(1),
    "TUPLE2": _join(2),
    "TUPLE3": _join(3),
    "APPEND": lambda machine, stack, arg: _extend(stack, [stack.pop()]),
    "SETITEM": _set_item,
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _new,
    "BUILD": _build,
    "BINPERSID": lambda machine, stack, arg: stack.append(machine.storage(stack.pop())),
}


DAMAGE = (
    *(ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError),
    *(RecursionError, EOFError, MemoryError),
)


def load_pickle(content: bytes, machine: Machine, source: str) -> Any:
    """Run a pickle of a file. Raises StateError that says what was refused or is damaged."""
    try:
        return machine.run(content)
    except PickleProblem as problem:
        fix = "save a state dict: torch.save(model.state_dict(), path)"
        if "global picograd." in str(problem) or "global __main__." in str(problem):
            fix += ", or trust the file: picograd.load(path, weights_only=False)"
        raise StateError("load", f"{source}: {problem}", fix) from None
    except DAMAGE as error:
        if isinstance(error, PicogradError):
            raise
        problem_text = f"{source}: the pickle in it is damaged"
        raise StateError("load", problem_text, "save it again") from error
