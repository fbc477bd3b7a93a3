"""What every op does to its operands first: promote, broadcast, check devices, read axes.

Functions here and in the files by kind (elementwise, reduce, movement, ...) work on graph nodes;
`tensor.py` wraps them into methods. Promotion equals PyTorch's: a Python scalar or a zero-dim
tensor decides the dtype only when its category (bool < int < float) is the higher one.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import Any

import numpy as np

from picograd.conversion import convert
from picograd.dtype import DType, bool_, category, default_float, promote, scalar_dtype, to_dtype
from picograd.engine import pending
from picograd.engine.crossing import is_in_memory
from picograd.engine.plan_key import walk_pending
from picograd.engine.tracing import is_tracing
from picograd.errors import (
    AxisError,
    DTypeError,
    IndexDTypeError,
    ShapeError,
    ValueRangeError,
    class_of_index,
)
from picograd.graph import build
from picograd.graph.build_composite import check_device
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.room import described
from picograd.graph.row import INPUTS
from picograd.graph.shape import broadcast_shapes, is_shape, normalise_axes, normalise_axis
from picograd.helpers import product
from picograd.number import GIVEN, Given, converted, for_graph, given, size_of
from picograd.target import is_host
from picograd.tensor.core.annotations import DTypeLike, Scalar, Shape
from picograd.tensor.core.repeated import repeated
from picograd.tensor.core.sizes import Size
from picograd.traced_number import TracedNumber, plain

Operand = Node | Scalar
Axes = int | Iterable[int] | None
# Arithmetic of a 16-bit float with a Python number takes the number in float32, as PyTorch.
IN_FLOAT32 = {name for name, row in OPS.items() if row.operand == "wide"}
# An integer divisor, exponent or count is code: the kernel is another one, and a faster one.
CODE = {name for name, row in OPS.items() if row.operand == "code"}
# The number is a value of the result: one that does not fit is an error.
FILLS = {name for name, row in OPS.items() if row.operand == "value"}
INTS = frozenset((int,))
LISTS = (tuple, list, Size)
LARGEST = 1 << 60  # elements of a tensor, so that byte offsets fit 64 bits


PYTHON = frozenset((float, int, bool, *GIVEN))


class Unset:
    """The default of arguments that have a second spelling, such as `axis` and `dim`."""

    def __repr__(self) -> str:
        return "unset"


UNSET: Any = Unset()


def either(op: str, first: str, a: Any, second: str, b: Any, default: Any = None) -> Any:
    """Choose between two spellings of one argument."""
    if a is not UNSET and b is not UNSET:
        raise DTypeError(op, f"both {first} and {second} were given", "pass one of them")
    chosen = b if a is UNSET else a
    return default if chosen is UNSET else chosen


def as_axis(axis: Any, rank: int, op: str) -> int:
    """Read one axis; negative counts from the end."""
    if type(axis) is int and -rank <= axis < rank:
        return axis if axis >= 0 else axis + rank
    try:
        position = operator.index(axis)
        if type(axis) is bool:
            raise TypeError
    except TypeError:
        raise DTypeError(op, f"axis must be an int, not {axis!r}", "pass one axis") from None
    return normalise_axis(position, rank, op)


def own_axis(axis: Any, rank: int, op: str) -> int:
    """Read one axis that has a size: a tensor without axes has none, where others take axis 0."""
    position = as_axis(axis, rank, op)
    if not rank:
        raise AxisError(op, f"axis {axis} of a tensor without axes", "add one with .unsqueeze(0)")
    return position


def need_mask(op: str, mask: Any) -> None:
    """Raise DTypeError for a mask that is no tensor of bool."""
    if not isinstance(mask, Node):
        text = f"the mask must be a Tensor, not {type(mask).__name__}"
        raise DTypeError(op, text, "wrap it in picograd.Tensor(...)")
    if mask.dtype is not bool_:
        raise DTypeError(op, f"mask must be bool, got {mask.dtype.name}", "compare it")


def as_axes(axes: Any, rank: int, op: str) -> Shape:
    """Read one axis, several or None (all)."""
    if axes is None:
        return tuple(range(rank))
    if type(axes) is int and -rank <= axes < rank:
        return (axes if axes >= 0 else axes + rank,)
    if isinstance(axes, int) and type(axes) is not bool:
        return normalise_axes(axes, rank, op)
    try:
        is_ordered = type(axes) is tuple or (
            hasattr(axes, "__iter__") and not isinstance(axes, (str, Mapping, Set))
        )
        listed = tuple(map(size_of, axes if is_ordered else [axes]))
    except TypeError:
        text = f"axis must be an int or a tuple of ints, not {axes!r}"
        raise DTypeError(op, text, "pass axis=0 or axis=(0, 1)") from None
    return normalise_axes(listed, rank, op)


def is_small(sizes: Sequence[int]) -> bool:
    """Tell whether whole numbers fit int64."""
    return not sizes or (-(1 << 63) <= min(sizes) and max(sizes) < 1 << 63)


def as_sizes(sizes: Sequence[Any], op: str) -> Shape:
    """Read `f(2, 3)` and `f((2, 3))` alike."""
    listed = sizes[0] if len(sizes) == 1 and type(sizes[0]) in LISTS else sizes
    is_plain = type(listed) in LISTS and INTS.issuperset(map(type, listed))
    if is_plain and is_small(listed):
        return tuple(listed)
    if len(sizes) == 1:
        (only,) = sizes
        is_number = isinstance(only, (int, np.integer))
        has_none = getattr(only, "ndim", None) == 0  # axes: a tensor of one number
        sizes = sizes if is_number or has_none else only
    try:
        is_ordered = not isinstance(sizes, (str, bytes, Mapping, Set))
        read = tuple(map(size_of, sizes if is_ordered else [sizes]))
    except TypeError:
        raise DTypeError(op, f"sizes must be ints, not {sizes!r}", "pass ints") from None
    if any(not -(1 << 63) <= size < 1 << 63 for size in read):  # each alone: some may be traced
        raise DTypeError(op, f"sizes {described(read)} do not fit int64", "use smaller sizes")
    return read


def as_shape(sizes: Sequence[Any], op: str) -> Shape:
    """Read a shape: like `as_sizes`, and no size may be negative."""
    shape = as_sizes(sizes, op)
    if any(size < 0 for size in shape):
        raise ShapeError(op, f"negative size in {shape}", "sizes count elements")
    if product(shape) > LARGEST:
        text = f"{described(shape)} has more than 2**60 elements"
        raise ShapeError(op, text, "use smaller sizes")
    return shape


def result_dtype(a: Node, b: Node) -> DType:
    """Find the dtype of `a op b`, with PyTorch's rule for zero-dim tensors."""
    if a.dtype is b.dtype:
        return a.dtype
    if bool(a.shape) == bool(b.shape):
        return promote(a.dtype, b.dtype)
    wide, zero_dim = (a, b) if a.shape else (b, a)
    return beside(wide.dtype, zero_dim.dtype)


def beside(wide: DType, zero_dim: DType) -> DType:
    """Find the dtype of what has axes and what has none: the latter counts by its category."""
    if category(zero_dim) <= category(wide):
        return wide
    return wide.complex if zero_dim.is_complex and wide.is_float else promote(wide, zero_dim)


def common_dtype(nodes: Sequence[Node]) -> DType:
    """Find the dtype of an operation on several nodes: zero-dim ones count by their category."""
    dtypes: list[DType | None] = [None, None]
    for node in nodes:
        place = 0 if node.shape else 1
        found = dtypes[place]
        dtypes[place] = node.dtype if found is None else promote(found, node.dtype)
    wide, zero_dim = dtypes
    if wide is None or zero_dim is None:
        return wide or zero_dim or default_float()
    return beside(wide, zero_dim)


def read_factor(op: str, value: Any, dtype: DType) -> Scalar:
    """Read a number that multiplies operands of a dtype: one that would change it is an error."""
    number = given(read_scalar(op, value))
    if isinstance(number, complex) and not dtype.is_complex:
        text = f"the factor {number} is complex, the operands are {dtype.name}"
        raise DTypeError(op, text, "pass a real number")
    if isinstance(number, bool) and dtype.kind != "bool":
        text = f"a bool factor is for bool operands, not {dtype.name}"
        raise DTypeError(op, text, "pass a number")
    if isinstance(number, float) and not dtype.is_differentiable:
        text = f"the factor {number} is a float, the operands are {dtype.name}"
        raise DTypeError(op, text, "pass an int, or cast an operand to a float dtype")
    return fitting_integer(op, number, dtype) if dtype.is_integer else number


def read_scalar(op: str, value: Any) -> Scalar:
    """Check that an operand is a Python or NumPy number."""
    if type(value) in PYTHON:
        return value.item() if type(value) is TracedNumber else value  # type: ignore[no-any-return]
    if isinstance(value, (int, float, complex)) and not isinstance(value, np.generic):
        return value  # type: ignore[return-value]
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        number: Scalar = value.item()
        return given(number) if type(number) is float else number
    has_axes = getattr(value, "ndim", 1)
    is_learned = getattr(value, "requires_grad", True)
    if not has_axes and not is_learned:
        return read_scalar(op, value.item())
    text = f"operand must be a Tensor or a number, not {type(value).__name__}"
    raise DTypeError(op, text, "wrap it in picograd.Tensor(...)")


def broadcast_to(node: Node, shape: Shape, op: str = "expand") -> Node:
    """Repeat axes of size 1, and add axes on the left; errors name the op."""
    return node if is_shape(node.shape, shape) else build.expand(node, shape, op)


def pair(op: str, a: Operand, b: Operand, floating: bool = False) -> tuple[Node, Node]:
    """Make two operands equal in dtype and shape; `floating` turns integers into float32."""
    if not isinstance(b, Node):
        return pair_scalar(op, a, b, floating)
    if not isinstance(a, Node):
        second, first = pair_scalar(op, b, a, floating)
        return first, second
    if a.dtype is b.dtype and a.device == b.device and is_shape(a.shape, b.shape):
        if not floating or a.dtype.kind in ("float", "complex"):
            return a, b
    if a.device != b.device:
        a, b = meet(op, a, b)
    dtype = result_dtype(a, b)
    if floating:
        check_computed(op, dtype)
        dtype = dtype if dtype.is_differentiable else default_float()
    if a.dtype is not dtype:
        a = build.cast(a, dtype)
    if b.dtype is not dtype:
        b = build.cast(b, dtype)
    return (a, b) if is_shape(a.shape, b.shape) else broadcast_both(op, a, b)


def is_data(value: Any) -> bool:
    """Tell whether a value is an array, or a list or tuple without operators of its own."""
    if not isinstance(value, (list, tuple)):
        return hasattr(value, "__array__")
    repeat: Any = type(value).__rmul__
    return repeat in (list.__rmul__, tuple.__rmul__) and not hasattr(value, "__radd__")


@repeated
def nothing_of(node: Node, shape: Shape) -> Node:
    """Choose no elements of a node, in an empty shape: gradients flow, and are zeros."""
    return node.reshape((node.size,)).slice(((0, 0, 1),)).reshape(shape)


def broadcast_both(op: str, a: Node, b: Node) -> tuple[Node, Node]:
    """Give two operands the shape they have together."""
    shape = broadcast_shapes(a.shape, b.shape, op=op)
    return a.broadcast_to(shape), b.broadcast_to(shape)


def compute_known(nodes: Sequence[Node]) -> None:
    """Compute what has values, and is not computed, unless some that it reads is not known yet."""
    if not is_tracing():
        waiting = [node for node in nodes if node.device != "meta" and not is_in_memory(node)]
        if waiting and not any(node.op in INPUTS for node in walk_pending(waiting)):
            pending.compute(waiting)


def moved(node: Node, device: str) -> Node:
    """Copy to another device now, so that what waits on a device reads nothing of others."""
    compute_known([node] if device != "meta" else [])
    made = build.copy(node, device)
    compute_known([made])
    return made


def meet(op: str, a: Node, b: Node) -> tuple[Node, Node]:
    """Bring a zero-dim CPU operand to the other's device, as PyTorch; other mixes are errors."""
    if not b.shape and is_host(b.device):
        return a, moved(b, a.device)
    if not a.shape and is_host(a.device):
        return moved(a, b.device), b
    check_device(op, (a, b))
    return a, b


def pair_scalar(op: str, node: Any, value: Any, floating: bool) -> tuple[Node, Node]:
    """Make a constant of `value` beside a node."""
    number = read_scalar(op, value)
    dtype = scalar_dtype(number, node.dtype)
    if floating and not dtype.is_differentiable:
        dtype = default_float()
    if node.dtype is not dtype:
        node = build.cast(node, dtype)
    is_code = dtype.is_integer and op in CODE
    if type(number) in (int, TracedNumber):
        number = plain(number) if is_code else given(number)
    if dtype.is_integer and op not in FILLS:
        number = converted(conversion("wrapped", op, dtype), number)
    return node, constant(op, number, node.shape, dtype, node.device)


def constant(op: str, value: Any, shape: Shape, dtype: DType, device: str) -> Node:
    """Make a constant of a dtype; a number that does not fit an integer dtype is an error."""
    if isinstance(value, complex) and not dtype.is_complex:
        text = f"{value} is complex, the dtype is {dtype.name}"
        raise DTypeError(op, text, "pass its .real")
    if dtype.is_complex:
        parts = value.real, value.imag if isinstance(value, complex) else 0.0
        real, imag = (constant(op, given(each), shape, dtype.real, device) for each in parts)
        return real.paired(imag)
    if dtype.is_float:
        is_rounded = dtype.is_narrow_float and op not in IN_FLOAT32
        number = value
        if is_rounded or type(value) is not Given:
            number = converted(conversion("rounded", op, dtype) if is_rounded else float, value)
        number = for_graph(number)
        return Node("const", (), number, shape, dtype, device)
    if dtype.kind == "bool":
        return build.const(bool(value), shape, dtype, device)
    number = converted(conversion("fitting", op, dtype), value)
    return build.const(number, shape, dtype, device)


@cache
def conversion(kind: str, op: str, dtype: DType) -> Callable[[Any], Any]:
    """Give a function of a number; the same one each time, since traces compare them."""
    functions: dict[str, Any] = {
        "wrapped": lambda value: wrapped_integer(op, int(value), dtype),
        "rounded": lambda value: rounded(float(value), math.copysign(1.0, value), dtype),
        "fitting": lambda value: fitting_integer(op, value, dtype),
    }
    found = functions[kind]
    found.folded = "cast", None, dtype  # how a graph would compute it
    return found  # type: ignore[no-any-return]


@lru_cache(maxsize=4096)
def rounded(value: float, sign: float, dtype: DType) -> float:
    """Round a number to a narrow float dtype; zeros are equal, which their signs tell apart."""
    return float(convert(value, dtype))


def fitting_integer(op: str, value: Scalar, dtype: DType) -> int:
    """Truncate a number that an integer dtype holds; infinity, NaN and the rest are errors.

    Small negative numbers wrap into unsigned dtypes, as C does and PyTorch allows.
    """
    least, most = dtype.ends
    low = -most if dtype.kind == "uint" and isinstance(value, int) else least
    if not low <= value <= most:
        text = f"{value} cannot be converted to {dtype.name} without overflow"
        raise ValueRangeError(op, text, f"use a number from {least} to {most}")
    return int(value) % (1 << dtype.bits) if dtype.kind == "uint" else int(value)


def wrapped_integer(op: str, number: int, dtype: DType) -> int:
    """Keep the low bits of an operand of 64 bits: beside an integer tensor it wraps, as in C."""
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueRangeError(op, f"{number} has more than 64 bits", "pass a float")
    low_bits = number % (1 << dtype.bits)
    is_negative = dtype.kind == "int" and low_bits >> (dtype.bits - 1)
    return low_bits - (1 << dtype.bits) if is_negative else low_bits


def promote_all(op: str, nodes: Sequence[Node]) -> list[Node]:
    """Cast several nodes to their common dtype and check that they share a device."""
    if not nodes:
        raise ShapeError(op, "there are no tensors", "pass at least one")
    check_device(op, nodes)
    dtype = nodes[0].dtype
    for node in nodes[1:]:
        dtype = promote(dtype, node.dtype)
    return [build.cast(node, dtype) for node in nodes]


def floating(op: str, node: Node) -> Node:
    """Cast bool and integers to float32, as PyTorch's float functions do."""
    check_computed(op, node.dtype)
    return node if node.dtype.is_differentiable else build.cast(node, default_float())


def check_computed(op: str, dtype: DType) -> None:
    """Raise DTypeError for an 8-bit float: PyTorch stores them but computes little with them."""
    if dtype.kind == "float8":
        text = f"takes a float dtype, not {dtype.name}"
        raise DTypeError(op, text, "call .float() first")


def check_ordered(op: str, dtype: DType) -> None:
    """Raise DTypeError for numbers that have no order, and for 8-bit floats."""
    check_computed(op, dtype)
    if dtype.is_complex:
        text = f"is not defined for {dtype.name}: complex numbers have no order"
        raise DTypeError(op, text, "take .abs() or .real first")


def need_float(op: str, node: Node) -> None:
    """Raise DTypeError for an op that takes floats only."""
    check_computed(op, node.dtype)
    if not node.dtype.is_float:
        raise DTypeError(op, f"needs a float dtype, got {node.dtype.name}", "call .float() first")


def need_integer(op: str, node: Node, what: str = "index", fix: str = "call .long() first") -> None:
    """Raise IndexDTypeError when an index is not an integer tensor."""
    kind = node.dtype
    if not kind.is_integer:
        text = f"{what} must have an integer dtype, got {kind.name}"
        raise IndexDTypeError(op, text, fix)


def need_rank(op: str, node: Node, least: int) -> None:
    """Raise ShapeError when there are too few axes."""
    if len(node.shape) < least:
        text = f"needs at least {least} axes, got shape {node.shape}"
        raise ShapeError(op, text, "add axes with .unsqueeze(0)")


def optional_dtype(dtype: DTypeLike | None) -> DType | None:
    """Read a dtype argument that may be None."""
    return None if dtype is None else to_dtype(dtype)


def check_index(op: str, index: int, size: int, axis: int) -> int:
    """Wrap a negative index and raise AxisError (an IndexError) outside the axis."""
    if not -size <= index < size:
        text = f"index {index} is out of range for axis {axis} of size {size}"
        fix = f"use an index from {-size} to {size - 1}" if size else "the axis is empty"
        raise class_of_index(index)(op, text, fix)
    return index % size
