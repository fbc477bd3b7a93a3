"""Making tensors: host data into leaf nodes, and constants, ranges and identity as nodes."""

import functools
import math
import operator
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from picograd.buffer import RuntimeScalar
from picograd.conversion import to_bits
from picograd.dtype import (
    ALIASES,
    BY_NAME,
    DType,
    bool_,
    default_float,
    float32,
    float64,
    int64,
    promote,
    scalar_dtype,
    to_dtype,
    uint64,
)
from picograd.engine import pending
from picograd.engine.backends import default_device, get_device, open_device
from picograd.engine.debug import user_place
from picograd.engine.native_calls import CODED
from picograd.engine.realize import node_from_numpy
from picograd.engine.tracing import note_constant
from picograd.errors import DTypeError, ShapeError, ValueRangeError
from picograd.graph.node import Node
from picograd.graph.room import check_size
from picograd.number import converted, given, size_of
from picograd.target import is_host
from picograd.tensor.core.annotations import DeviceLike, DTypeLike, Scalar, Shape, Tensor
from picograd.tensor.core.operands import (
    as_shape,
    constant,
    fitting_integer,
    optional_dtype,
    read_scalar,
)
from picograd.tensor.core.sizes import Size
from picograd.traced_number import TracedNumber, derived, plain

SUPPORTED = "biufc"  # NumPy kinds: bool, signed, unsigned, float, complex
DEEPEST = 64  # nested lists: NumPy has no more axes


def device_named(device: DeviceLike | None) -> str:
    """Normalise a device argument; None is the default device."""
    if device is None:
        return default_device()
    return open_device(f"cuda:{device}" if type(device) is int else str(device))


def is_filled(tensor: Tensor, data: Any, dtype: DType | None, place: str) -> bool:
    """Let a blank tensor be a leaf of few numbers on the host; False, and nothing, for others."""
    if CODED.fill is None or not is_host(place):
        return False
    with pending.LOCK:
        pool = get_device(place).pool
        return CODED.fill(tensor, data, dtype, pool, user_place(2)) is True


def from_data(data: Any, dtype: DType | None, device: str) -> Node:
    """Turn Python numbers, nested lists, arrays and array-like objects into a leaf node."""
    if isinstance(data, RuntimeScalar):
        usual = float32 if isinstance(data.value, float) else int64
        return Node("scalar", (), data, (), dtype or usual, device)
    if type(data) is TracedNumber and type(data.value) in (int, float):
        return full((), data, dtype, device)
    array = as_array(data, dtype)
    wanted = dtype or dtype_of(data, array)
    if array.dtype.kind == "c" and not wanted.is_complex:
        text = f"complex numbers do not fit {wanted.name}"
        raise DTypeError("Tensor", text, "pass their real parts, or a complex dtype")
    if wanted.is_integer and not isinstance(data, np.ndarray):
        check_range(array, wanted)
    return from_array(array, wanted, device)


def sizes_among(given: Sequence[Any]) -> Sequence[int] | None:
    """Read the arguments of `Tensor(2, 3)` and `Tensor(x.size())`; None where they are data."""
    first = given[0]
    if type(first) is Size:
        return first
    if type(first) is not int:
        return None
    return [each for each in given if type(each) is int]


def flags_as_floats(data: Any) -> Any:
    """Make an array of floats of lists of bools, as PyTorch's `Tensor` does: `1 - Tensor(done)`."""
    first = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if first is data or not isinstance(first, (bool, np.bool_)):
        return data
    array = as_array(data)
    return array.astype(default_float().numpy) if array.dtype == bool else data


def is_named_torch(names: Mapping[str, Any]) -> bool:
    """Tell whether a module calls picograd `torch`: there `torch.Tensor([1, 2])` is floats."""
    return names.get("torch") is sys.modules["picograd"]


def check_range(array: "np.ndarray[Any, Any]", dtype: DType) -> None:
    """Raise ValueRangeError for numbers of a list that an integer dtype does not hold."""
    if array.dtype.kind not in "iuf" or not array.size or array.dtype == dtype.numpy:
        return
    for number in (array.min().item(), array.max().item()):  # NaN is both
        fitting_integer("Tensor", number, dtype)


def from_array(array: "np.ndarray[Any, Any]", dtype: DType, device: str) -> Node:
    """Make a leaf of an array; values are converted on the host."""
    if array.dtype.kind not in SUPPORTED:
        text = f"arrays of dtype {array.dtype} have no picograd dtype"
        raise DTypeError("Tensor", text, "convert it with .astype(numpy.float32)")
    return note_constant(node_from_numpy(to_bits(array, dtype), dtype, device))


def dtype_of(data: Any, array: "np.ndarray[Any, Any]") -> DType:
    """Find the dtype of new data: arrays keep theirs, Python numbers take the default."""
    if array.dtype.kind not in SUPPORTED:
        return default_float()  # `from_array` says what is wrong
    if hasattr(data, "dtype") or shows_array(data):
        return to_dtype(array.dtype)
    if array.dtype.kind in "fc":
        usual = default_float() if array.dtype.kind == "f" else default_float().complex
        return widest(data, usual) if holds_arrays(data) else usual
    return to_dtype(array.dtype)


def widest(data: Any, usual: DType) -> DType:
    """Find the dtype that tensors and numbers in nested lists share: numbers widen no tensor."""
    leaves, kinds = [data], set()
    for leaf in leaves:
        if isinstance(leaf, (list, tuple)):
            leaves.extend(leaf)
        elif hasattr(leaf, "dtype"):
            kinds.add(to_dtype(leaf.dtype))
        elif not isinstance(leaf, int):
            kinds.add(usual)
    return functools.reduce(promote, kinds)


def shows_array(data: Any) -> bool:
    """Tell whether NumPy reads an object as an array: a tensor of others, a column, a picture."""
    return hasattr(data, "__array__") or hasattr(data, "__array_interface__")


def holds_arrays(data: Any) -> bool:
    """Tell whether a nested list is made of arrays, whose dtype counts."""
    while isinstance(data, (list, tuple)) and len(data):
        data = data[0]
    return hasattr(data, "dtype")


def as_array(data: Any, dtype: DType | None = None) -> "np.ndarray[Any, Any]":
    """Turn data into a NumPy array, without a copy where the object can share its memory.

    Ints beyond int64 need a dtype that holds them.
    """
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, (bool, int, float, complex)):
        return number_array(data, dtype)
    if isinstance(data, (list, tuple, range)):
        return list_array(data, dtype)
    if shows_array(data):
        return np.asarray(data)
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    if isinstance(data, memoryview):
        return np.asarray(data)
    if isinstance(data, (bytes, bytearray)):
        return np.frombuffer(data, np.uint8)
    if hasattr(data, "__iter__") and not isinstance(data, dict):
        return list_array(list(data), dtype)
    text = f"cannot make a tensor of {type(data).__name__}"
    raise DTypeError("Tensor", text, "pass numbers, nested lists or an array")


def number_array(value: Scalar | complex, dtype: DType | None) -> "np.ndarray[Any, Any]":
    """Make a zero-dim array of a Python number."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, int):
        if dtype is not None and dtype.is_integer:
            return np.asarray(fitting_integer("Tensor", value, dtype), dtype.numpy)
        if dtype is not None and dtype.is_differentiable:
            return np.asarray(converted(float, value))
        if not -(1 << 63) <= value < 1 << 63:
            raise DTypeError("Tensor", f"{value} does not fit int64", "pass a float")
        return np.asarray(value, np.int64)
    return np.asarray(value, np.complex128 if isinstance(value, complex) else np.float64)


def list_array(data: Any, dtype: DType | None) -> "np.ndarray[Any, Any]":
    """Make an array of nested lists; ragged lists are an error that says where."""
    if not len(data):
        return np.zeros(0, np.float32)
    leaf, depth = data, 0
    while isinstance(leaf, (list, tuple, range)) and len(leaf):
        leaf, depth = leaf[0], depth + 1
        if depth > DEEPEST:
            raise DTypeError("Tensor", "a list holds itself, or too many lists", "pass numbers")
    try:
        array = array_of(data, leaf)
        if dtype is uint64 and array.dtype.kind == "f" and type(leaf) is int:
            array = np.asarray(data, np.uint64)  # some beyond int64: NumPy made floats of them
    except RecursionError:
        raise DTypeError("Tensor", "a list holds itself", "pass nested lists") from None
    except (ValueError, OverflowError) as error:
        check_rectangle(data, "data")
        raise ValueRangeError("Tensor", str(error).strip("."), "pass numbers of one kind") from None
    if array.dtype.kind in SUPPORTED:
        check_width(array, leaf, dtype)
        return array.astype(np.float32) if array.size == 0 and leaf is not array else array
    check_rectangle(data, "data")
    odd = odd_element(data)
    if isinstance(odd, int) and (has_fraction(data) if dtype is None else dtype.is_differentiable):
        return np.asarray(data, np.float64)
    text = f"cannot make a tensor of elements like {odd!r}"
    if isinstance(odd, int):
        text = f"{odd} does not fit int64"
    raise DTypeError("Tensor", text, "pass numbers, nested lists or arrays")


def array_of(data: Any, leaf: Any) -> "np.ndarray[Any, Any]":
    """Make an array of nested lists, whose first element is `leaf`.

    A tensor of one element is a number there, arrays and longer tensors are rows.
    """
    node = getattr(leaf, "_node", None)
    if isinstance(node, Node) and node.size == 1:
        return np.asarray(with_numbers(data))
    try:
        has_tensors = any(hasattr(each, "__array__") for each in data)
        return np.asarray([as_host(each) for each in data] if has_tensors else data)
    except ValueError:
        return np.asarray(with_numbers(data))


def with_numbers(data: Any) -> Any:
    """Turn tensors of one element inside nested lists into arrays without axes."""
    if isinstance(data, (list, tuple)):
        return [with_numbers(each) for each in data]
    found = as_host(data)
    return found.reshape(()) if getattr(found, "size", 0) == 1 else found


def check_width(array: "np.ndarray[Any, Any]", leaf: Any, dtype: DType | None) -> None:
    """Raise DTypeError for Python ints beyond int64 without the dtype uint64."""
    is_wide = array.dtype == np.uint64 and type(leaf) is int
    if is_wide and (dtype is None or (dtype.is_integer and dtype is not uint64)):
        text = f"{array.max()} does not fit int64"
        raise DTypeError("Tensor", text, "pass dtype=picograd.uint64, or floats")


def odd_element(data: Any) -> Any:
    """Find the first element of nested lists that is no number, or no number of 64 bits."""
    for each in data:
        if isinstance(each, (list, tuple)):
            found = odd_element(each)
            if found is not None or None in each:
                return found
        elif not isinstance(each, (bool, float, complex, np.number)):
            if not isinstance(each, int) or not -(1 << 63) <= each < 1 << 64:
                return each
    return None


def has_fraction(data: Any) -> bool:
    """Tell whether nested lists have a float, beside which whole numbers are floats, too."""
    return any(has_fraction(each) if isinstance(each, (list, tuple)) else type(each) is float
               for each in data)  # fmt: skip


def as_host(data: Any) -> Any:
    """Convert an element of a list that knows how to become an array."""
    return np.asarray(data) if hasattr(data, "__array__") else data


def check_rectangle(data: Any, where: str) -> None:
    """Raise ShapeError naming the first place where nested lists differ in length."""
    if not isinstance(data, (list, tuple)) or not data:
        return
    sizes = [row_length(each) for each in data]
    for position, size in enumerate(sizes):
        if size != sizes[0]:
            here, first = (elements(each) for each in (size, sizes[0]))
            text = f"ragged list: {where}[{position}] has {here} but {where}[0] has {first}"
            raise ShapeError("Tensor", text, "make all rows the same length")
    for position, each in enumerate(data):
        check_rectangle(each, f"{where}[{position}]")


def row_length(row: Any) -> int | None:
    """Count the elements of one row of a nested list; None for a number."""
    if isinstance(row, (list, tuple)):
        return len(row)
    shape = getattr(row, "shape", ())
    return int(shape[0]) if shape else None


def elements(count: int | None) -> str:
    """Word the length of a row."""
    if count is None:
        return "a number"
    return f"{count} element" + ("s" if count != 1 else "")


def full(sizes: Any, value: Any, dtype: DTypeLike | None, device: DeviceLike | None) -> Node:
    """Make a constant; without a dtype it is that of the Python value."""
    number = read_scalar("full", value)
    wanted = optional_dtype(dtype) or scalar_dtype(number, bool_)
    shape = as_shape(sizes, "full")
    place = device_named(device)
    check_size("full", shape, wanted.itemsize, place)
    return constant("full", fill_of(number), shape, wanted, place)


def fill_of(number: Scalar) -> Scalar:
    """Mark a fill as given; what `zeros` and `ones` make too stays a constant of the code."""
    is_named = type(number) is not TracedNumber and number in (0, 1)
    return number if is_named else given(number)


def filled(
    op: str, sizes: Any, value: Scalar, dtype: DTypeLike | None, device: DeviceLike | None
) -> Node:
    """Make zeros or ones, float32 unless told otherwise."""
    wanted = optional_dtype(dtype) or default_float()
    shape = as_shape(sizes, op)
    place = device_named(device)
    check_size(op, shape, wanted.itemsize, place)
    return constant(op, value, shape, wanted, place)


def arange(
    start: Any, stop: Any, step: Any, dtype: DTypeLike | None, device: DeviceLike | None
) -> Node:
    """Count from `start` up to but not including `stop`; ints give int64."""
    numbers = [read_scalar("arange", value) for value in (start, stop, step)]
    if not all(plain(derived(math.isfinite, number)) for number in numbers):
        text = f"start {start}, stop {stop} and step {step} are not all finite"
        raise ValueRangeError("arange", text, "pass finite numbers")
    default = default_float() if any(isinstance(x, float) for x in numbers) else int64
    wanted = optional_dtype(dtype) or default
    if wanted is int64:  # PyTorch counts in whole numbers then
        start, stop, step = (converted(int, number) for number in numbers)
    # float32 would round the differences: 1.1 has 11 steps of 0.1 in it, and a little more
    start, stop, step = (x.item() if isinstance(x, np.generic) else x for x in (start, stop, step))
    if step == 0 or (wanted.is_integer and not int(step)):
        text = f"step {numbers[2]} is 0 in {wanted.name}"
        raise ValueRangeError("arange", text, "pass a positive or negative step")
    size = math.ceil((stop - start) / step)
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        size = -(-(stop - start) // step)
    size = size_of(size)
    if size < 0 or (stop != start and (stop > start) != (step > 0)):
        text = f"stop {stop} is not reached from {start} by steps of {step}"
        raise ValueRangeError("arange", text, "change the sign of step")
    check_size("arange", (size,), wanted.itemsize)
    return progression((size,), start, step, wanted, device_named(device))


def progression(shape: Shape, start: Scalar, step: Scalar, dtype: DType, device: str) -> Node:
    """Make start + step x position along axis 0; floats count in float64, as PyTorch."""
    whole = not dtype.is_float
    node = Node("iota", (), 0, shape, int64, device)
    if not whole:
        node = node.cast(to_dtype("float64") if needs_double(start, step) else dtype)
    number = int if whole else float
    node = node * fill_of(converted(number, step)) + fill_of(converted(number, start))
    return node.cast(dtype)


def needs_double(*numbers: Scalar) -> bool:
    """Tell whether float32 would round the numbers of a progression before they are used."""
    return any(float(np.float32(value)) != value for value in numbers)


def has_imaginary(value: Any) -> bool:
    """Tell whether an end of a progression is complex: a number, or a tensor of one."""
    is_number = isinstance(value, (complex, np.complexfloating))
    return is_number or getattr(getattr(value, "dtype", None), "is_complex", False)


def linspace(
    start: Scalar | complex,
    stop: Scalar | complex,
    count: int,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
) -> Node:
    """Space `count` numbers evenly from `start` to `stop`, both included.

    Each half counts from its own end, as in PyTorch, so that both ends are exact; integers are
    computed in float64 and truncated, floats of 16 bits in float32 and rounded. Complex numbers
    lie on a line.
    """
    size = operator.index(count)
    if size < 0:
        raise ValueRangeError("linspace", f"{size} numbers are not possible", "use at least 0")
    usual, is_complex = default_float(), any(map(has_imaginary, (start, stop)))
    wanted = optional_dtype(dtype) or (usual.complex if is_complex else usual)
    if wanted.is_complex:
        begin, end = complex(start), complex(stop)
        real = linspace(begin.real, end.real, size, wanted.real, device)
        return real.paired(linspace(begin.imag, end.imag, size, wanted.real, device))
    place = device_named(device)
    check_size("linspace", (size,), wanted.itemsize)
    first, last = (read_scalar("linspace", value) for value in (start, stop))
    if wanted.is_integer:
        first, last = (fitting_integer("linspace", value, wanted) for value in (first, last))
    last = last if size > 1 else first
    step = (float(last) - float(first)) / max(size - 1, 1)
    number = Node("iota", (), 0, (size,), int64, place)
    is_exact = wanted.is_float and not needs_double(first, last, step)
    position = number.cast(promote(wanted, float32) if is_exact else float64)
    step, first, last = fill_of(step), fill_of(float(first)), fill_of(float(last))
    up = position * step + first
    down = last - (float(size - 1) - position) * step
    return number.binary("less", size // 2).where(up, down).cast(wanted)


def eye(rows: int, columns: int | None, dtype: DTypeLike | None, device: DeviceLike | None) -> Node:
    """Make an identity matrix."""
    shape = as_shape((rows, rows if columns is None else columns), "eye")
    wanted, place = optional_dtype(dtype) or default_float(), device_named(device)
    check_size("eye", shape, wanted.itemsize)
    row, column = (Node("iota", (), axis, shape, int64, place) for axis in (0, 1))
    return row.binary("equal", column).cast(wanted)


def one_hot(index: Node, count: int) -> Node:
    """Mark the position each index names along a new last axis, in int64."""
    shape = (*index.shape, count)
    check_size("one_hot", shape, int64.itemsize)
    wide = index.cast(int64).reshape((*index.shape, 1)).expand(shape)
    positions = Node("iota", (), len(shape) - 1, shape, int64, index.device)
    return wide.binary("equal", positions).cast(int64)


def is_dtype(value: Any) -> bool:
    """Tell whether an argument of `to` is a dtype rather than a device."""
    if isinstance(value, str):
        return value in BY_NAME or value in ALIASES
    return isinstance(value, (type, np.dtype))
