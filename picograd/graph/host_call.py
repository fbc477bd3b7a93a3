"""Host calls: what NumPy computes when the plan runs (LAPACK, Fourier transforms) is one op.

    host_call(inputs...)    arg = HostCall(name of a row of FUNCTIONS, its options)

A row is the whole meaning of a function: shape rule, NumPy function, gradient. Its inputs have one
dtype, float or complex, which is that of the result: where some of several results are real, they
are the real parts. In a plan, complex numbers are a last axis of (real, imaginary) (`in_pairs`).

Leading axes are batches: a function works on the last axes of arrays that have the same ones before
them, and names axes by negative numbers, so that `vmap` adds an axis in front and changes nothing
else. What a function gives as several arrays lies one behind the other in the last axis of one
(`packed`), and is cut apart by views (`unpacked`): their gradients are joined where they meet.
Adding a function is adding a row to a table: of host_matrices.py, of host_lu.py, of
incomplete_gamma.py, or below.

Host calls of Fourier transforms along one axis, named by a negative number.

Where one of input and result is real, a complex array has a last axis more, of (real, imaginary),
which axes do not count. A transform is linear: its gradient is the transform back, with the
normalisation of the other direction.

A GPU computes transforms in steps, without its host.

n = a * b points are transformed in two steps (Cooley and Tukey, 1965), W_n = exp(-2 pi i / n):

    y[j, k]       W_n^(j k) * sum over i of W_a^(i k) x[b i + j]     a points that lie b apart
    out[k + a m]  sum over j of W_b^(j m) y[j, k]                    the same again, of b points

Complex numbers are a last axis of (real, imaginary). Few points are transformed in registers
(butterflies.py), others by products with an (a, a) matrix, which sum over parts as well. Rotations
are computed in float64. Points of a large prime number have no such steps.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from picograd.dtype import DType, float64, int32, int64
from picograd.errors import LinAlgError
from picograd.graph import butterflies
from picograd.graph.batch_rules import same
from picograd.graph.butterflies import FIRST
from picograd.graph.composites import join
from picograd.graph.node import Node, constant
from picograd.graph.row import COMPLEX_KIND, DTypeRule, Op, Role, table
from picograd.graph.shape import Shape
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.target import Target

Array = Any
Gradients = Sequence[Any]
CONTINUOUS = DTypeRule(("float", COMPLEX_KIND), wanted="a float or complex dtype")


@dataclass(frozen=True, slots=True)
class HostCall:
    """The argument of a `host_call` node: equal calls of equal inputs have equal values."""

    name: str
    options: tuple[Any, ...] = ()
    in_pairs: bool = False

    def shape(self, *shapes: Shape) -> Shape:
        """Find the shape of the result."""
        if self.in_pairs:
            return (*self.row.shape(*[each[:-1] for each in shapes], *self.options), 2)
        return self.row.shape(*shapes, *self.options)

    @property
    def row(self) -> "HostFunction":
        """The row of the function."""
        return FUNCTIONS[self.name]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.options))})"


@dataclass(frozen=True, slots=True)
class HostFunction:
    """One row; see the module docstring.

    numpy(*arrays, *options)      the result
    shape(*shapes, *options)      its shape
    vjp(gradient, output, *inputs)    the gradients of the inputs, as nodes; None: there is none
    kernels(node, target)         the result by other ops, for a GPU; None: there are none

    Several results are a tuple, which `run` packs, or one array that is packed already.
    `is_kept`: the first plan that computes the call stores it, since several results are cut out of
    it or its gradient reads it. `can_fail`: it refuses some values, by NumPy's LinAlgError; outside
    of traces it is computed where it is called, so that the error is one of the user's line. What
    NumPy does not raise but flags as an invalid operation has `refusal` for its text.
    """

    name: str
    numpy: Callable[..., Array]
    shape: Callable[..., Shape]
    vjp: Callable[..., Gradients] | None = None
    is_kept: bool = False
    can_fail: bool = False
    refusal: str = ""
    kernels: Callable[[Node, Target], Node | None] | None = None


FUNCTIONS: dict[str, HostFunction] = {}  # graph/ops.py fills it, from the files that own the rows


def functions(*rows: HostFunction) -> dict[str, HostFunction]:
    """Index rows by their names."""
    return {row.name: row for row in rows}


def host_call(name: str, *inputs: Node, options: tuple[Any, ...] = ()) -> Node:
    """Record the call of a function on checked inputs."""
    arg = HostCall(name, options)
    first = inputs[0]
    shape = arg.shape(*[node.shape for node in inputs])
    return Node("host_call", inputs, arg, shape, first.dtype, first.device)


def run(call: HostCall, *arrays: Array) -> Array:
    """Call the function on arrays; LinAlgError, naming it, where it refuses their values."""
    given = tuple(map(as_complex, arrays)) if call.in_pairs else arrays
    found = results(call, *given)
    if isinstance(found, tuple):
        found = packed(given[0].ndim - 2, *found)
    return as_pairs(found) if call.in_pairs else found


def results(call: HostCall, *arrays: Array) -> Any:
    """Call the function on arrays that are real or complex: its result, or a tuple of several."""
    row = call.row
    try:
        return (guarded if row.refusal else plain)(row.numpy, *arrays, *call.options)
    except FloatingPointError:
        raise LinAlgError(f"linalg.{call.name}", row.refusal, "check the matrix") from None
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{call.name}", str(error), "check the matrix") from None


@np.errstate(all="ignore")
def plain(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that raises its own errors."""
    return function(*arguments)


def refuse(problem: str, flag: int) -> None:
    """Raise for what NumPy flags as an invalid operation."""
    raise FloatingPointError(problem)


@np.errstate(all="ignore", invalid="call", call=refuse)
def guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of which NumPy flags what it refuses."""
    return function(*arguments)


def as_complex(pairs: Array) -> Array:
    """Read (..., 2) as complex numbers."""
    pairs = np.ascontiguousarray(pairs)
    return pairs.view(np.result_type(pairs.dtype, np.complex64))[..., 0]


def as_pairs(numbers: Array) -> Array:
    """Read complex numbers as (..., 2)."""
    numbers = np.ascontiguousarray(numbers)
    return numbers.view(numbers.real.dtype).reshape(*numbers.shape, 2)


def may_fail(nodes: Sequence[Node]) -> bool:
    """Tell whether one of some nodes is a call that can fail, or a loop around one."""
    loops = [node.arg.body.order for node in nodes if node.row.role is Role.LOOP]
    calls = [node.arg for node in nodes if type(node.arg) is HostCall]
    return any(call.row.can_fail for call in calls) or any(map(may_fail, loops))


# several results in one array


def packed(rank: int, *parts: Array) -> Array:
    """Put arrays one behind the other that have `rank` leading axes in common."""
    lead = parts[0].shape[:rank]
    flat = [part.reshape(*lead, product(part.shape[rank:])) for part in parts]
    return np.concatenate(flat, -1)


def unpacked(node: Node, *shapes: Shape) -> list[Node]:
    """Cut the results of some shapes apart that lie one behind the other in the last axis."""
    lead, found, start = node.shape[:-1], [], 0
    whole = tuple((0, size, 1) for size in lead)
    for shape in shapes:
        stop = start + product(shape)
        found.append(node.slice((*whole, (start, stop, 1))).reshape((*lead, *shape)))
        start = stop
    return found


def host_vjp(gradient: Node, output: Node, *inputs: Node) -> tuple[Any, ...]:
    """Ask the row of the function."""
    vjp = output.arg.row.vjp
    return (None,) * len(inputs) if vjp is None else tuple(vjp(gradient, output, *inputs))


def expand_call(node: Node, target: Target) -> Node:
    """Let a GPU with tensor cores compute by kernels, in float64 where it multiplies in less."""
    kernels = node.arg.row.kernels
    if kernels is None or not target.tensor_cores or not node.size:
        return node
    made = kernels(node, target)
    return node if made is None else made.cast(node.dtype)


HOST_ROWS = table(
    Op(
        "host_call",
        Role.HOST,
        -1,
        CONTINUOUS,
        lambda node, *arrays: run(node.arg, *arrays),
        host_vjp,
        shape=lambda call, *shapes: call.shape(*shapes),
        batch_arg=same,
        expand_on=expand_call,
    )
)


FLIPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
SCALES = {"backward": lambda n: 1.0, "ortho": lambda n: n**-0.5, "forward": lambda n: 1 / n}
BELOW = getattr(np.fft, "_pocketfft_umath", None)  # NumPy 1 has another


def transformed(name: str, x: Array, axis: int, size: int, norm: Any) -> Array:
    """Transform one axis from or to `size` points.

    The checks of NumPy's functions take longer than few points do: those below are called.
    """
    if BELOW is None:
        return getattr(np.fft, name)(x, size, axis, norm)
    scale = SCALES[FLIPPED[norm] if name in ("ifft", "irfft") else norm](size)
    dtype, count = np.result_type(x.dtype, np.complex64), size
    if name == "rfft":
        name, count = "rfft_n_odd" if size % 2 else "rfft_n_even", size // 2 + 1
    elif name == "irfft":
        dtype = x.real.dtype
    at = x.ndim + axis
    found: Array = np.empty((*x.shape[:at], count, *x.shape[at + 1 :]), dtype)
    factor = found.real.dtype.type(scale)  # a number of Python's would make it float64's transform
    return getattr(BELOW, name)(x, factor, found, axes=[(axis,), (), (axis,)])


def fft(x: Array, axis: int, is_inverse: bool, norm: Any) -> Array:
    """Transform complex numbers."""
    return transformed("ifft" if is_inverse else "fft", x, axis, x.shape[axis], norm)


def fft_vjp(g: Node, y: Node, x: Node) -> list[Node]:
    """Transform back."""
    axis, is_inverse, norm = y.arg.options
    return [host_call("fft", g, options=(axis, not is_inverse, FLIPPED[norm]))]


def rfft(x: Array, axis: int, norm: Any) -> Array:
    """Transform real numbers to the first n // 2 + 1 frequencies."""
    return as_pairs(transformed("rfft", x, axis, x.shape[axis], norm))


def rfft_shape(x: Shape, axis: int, norm: str) -> Shape:
    """Halve the axis."""
    at = len(x) + axis
    return (*x[:at], x[at] // 2 + 1, *x[at + 1 :], 2)


def rfft_vjp(g: Node, y: Node, x: Node) -> list[Node]:
    """Transform back; the frequencies that stand for two count half."""
    axis, norm = y.arg.options
    size = x.shape[axis]
    halved = is_twofold(g, axis, size).where(g * 0.5, g)
    return [host_call("irfft", halved, options=(axis, size, FLIPPED[norm]))]


def irfft(pairs: Array, axis: int, size: int, norm: Any) -> Array:
    """Transform size // 2 + 1 frequencies back to real numbers."""
    return transformed("irfft", as_complex(pairs), axis, size, norm)


def irfft_shape(x: Shape, axis: int, size: int, norm: str) -> Shape:
    """Give the axis its size."""
    at = len(x) - 1 + axis
    return (*x[:at], size, *x[at + 1 : -1])


def irfft_vjp(g: Node, y: Node, x: Node) -> list[Node]:
    """Transform forwards; the frequencies that stand for two count double."""
    axis, size, norm = y.arg.options
    found = host_call("rfft", g, options=(axis, FLIPPED[norm]))
    return [is_twofold(found, axis, size).where(found * 2.0, found)]


def is_twofold(node: Node, axis: int, size: int) -> Node:
    """Tell which frequencies have a mirror image: not the first, nor the last of an even size."""
    place = node.iota(node.rank - 1 + axis)
    is_inner = (place * 2).binary("less", size)
    return is_inner.binary("logical_and", place.binary("not_equal", 0))


MOST = 64  # points of a step that has another one behind it
BY_TABLE = 3  # steps in registers that take as long as one by a matrix
MOST_SHORT = 1 << 25  # points whose places are counted in 32 bits: 32 times as many are
MOST_PRIME = 512  # points that are no product: each then takes as many operations


@lru_cache(maxsize=1024)
def steps_of(size: int) -> tuple[int, ...]:
    """Find how many points each step transforms; nothing if there is no way."""
    ways: list[tuple[int, ...]] = [(size,)] if size <= MOST else []
    for n in range(2, min(MOST + 1, size)):
        if size % n == 0 and steps_of(size // n):
            ways.append((n, *steps_of(size // n)))
    if ways:
        taken = [sum(1 if n in FIRST else BY_TABLE for n in way) for way in ways]
        return min(zip(taken, map(max, ways), ways, strict=True))[2]
    return (size,) if size <= MOST_PRIME else ()


def rotations(number: Node, size: int, is_inverse: bool, dtype: DType) -> Node:
    """Turn numbers of size-ths of a circle into rotations: two axes more, (part in, part out).

    A rotation is [[cos, sin], [-sin, cos]], and -sin(x) = cos(x + pi / 2). What is left of a
    number beside its nearest quarter is exact, so that the angle is rounded once.
    """
    shape = (*number.shape, 2, 2)
    quarter = (number * 8 + size).binary("floordiv", 2 * size)
    left = (number * 4 - quarter * size).cast(float64) * (math.pi / 2 / size)
    both = [x.reshape((*number.shape, 1, 1)).expand(shape) for x in (left.cast(dtype), quarter)]
    angle, turn = both
    sign = 1 if is_inverse else -1
    parts = turn.iota(number.rank, turn.dtype) - turn.iota(number.rank + 1, turn.dtype)
    turn = turn + parts * sign
    is_odd = turn.binary("bitwise_and", 1).binary("equal", 1)
    found = is_odd.where(butterflies.sine(angle), butterflies.cosine(angle))
    is_negative = (turn + 1).binary("bitwise_and", 2).binary("equal", 2)
    return is_negative.where(-found, found)


def numbered(shape: Shape, axis: int, size: int, like: Node) -> Node:
    """Number places of which each is some size-ths of a circle, in 32 bits if that is enough."""
    whole_circle = constant(0, shape, like.dtype, like.device)
    return whole_circle.iota(axis, int32 if size < MOST_SHORT else int64)


def transform(
    x: Node, axis: int, size: int, is_inverse: bool, wanted: int, parts: int = 2, scale: float = 1.0
) -> Node:
    """Transform an axis of (..., parts) of `size` points, those that are missing 0.

    Gives the first frequencies, as many as are `wanted`. Numbers of one part are real, as results
    may be. A step transforms the points that lie `rest` apart, and the next ones what lies between:
    axes stay in order, so that neighbours stay neighbours in memory.
    """
    lead, after, given = x.shape[:axis], x.shape[axis + 1 : -1], x.shape[-1]
    points = steps_of(size)[0]
    rest = size // points
    made, columns = (parts, wanted) if rest == 1 else (2, points)
    missing = ceil_div(x.shape[axis], rest) * rest - x.shape[axis]
    if points in FIRST:
        missing = size - x.shape[axis]
    x = x.pad(((0, 0),) * axis + ((0, missing),) + ((0, 0),) * (len(after) + 1))
    x = x.reshape((product(lead), x.shape[axis] // rest, rest, product(after), given))
    table = turns(x, rest, points, is_inverse) if rest > 1 else None
    if points in FIRST:
        sign = 1 if is_inverse else -1
        y = butterflies.step(x, table, sign, columns, made, scale if rest == 1 else 1.0)
    else:
        y = multiplied(x, points, is_inverse, columns, made)
        y = y * scale if table is None else turned(y, table)
    if rest > 1:
        y = transform(y, 1, rest, is_inverse, ceil_div(wanted, points), parts, scale)
        y = y.reshape((product(lead), y.shape[1] * points, product(after), parts))
        y = y.slice(tuple(map(whole, (y.shape[0], wanted, *y.shape[2:]))))
    return y.reshape((*lead, wanted, *after, parts))


def turns(x: Node, rest: int, points: int, is_inverse: bool) -> Node:
    """Make the rotations between two steps: (rest, points, 2)."""
    j, k = (numbered((rest, points), n, rest * points, x) for n in (0, 1))
    table = rotations(j * k, rest * points, is_inverse, x.dtype)
    return table.slice(tuple(map(whole, (rest, points, 1, 2)))).reshape((rest, points, 2)).stored()


def multiplied(x: Node, points: int, is_inverse: bool, columns: int, made: int) -> Node:
    """Multiply an axis, of which the end may be missing, by a matrix, as butterflies.step does."""
    rows, given = x.shape[1], x.shape[-1]
    shape = rows, columns
    i, k = (numbered(shape, n, points, x) for n in range(2))
    matrix = rotations(i * k, points, is_inverse, x.dtype)
    matrix = matrix.slice((*map(whole, shape), whole(given), whole(made))).stored()
    return x.contract(matrix, ((0, 1, 2, 3, 4), (1, 5, 4, 6), (0, 2, 5, 3, 6)))


def whole(size: int) -> tuple[int, int, int]:
    """Give the range of a whole axis, or of its beginning."""
    return 0, size, 1


def turned(y: Node, table: Node) -> Node:
    """Turn frequencies of the points that lie between: (L, between, frequencies, after, 2)."""
    lead, rest, points, after, _ = y.shape
    a, b = (
        each.reshape((1, rest, points, 1)).expand((lead, rest, points, after))
        for each in (butterflies.cut(table, 2, part) for part in (0, 1))
    )
    re, im = butterflies.times((butterflies.cut(y, 4, 0), butterflies.cut(y, 4, 1)), a, b)
    is_real = y.iota(4).binary("equal", 0)
    return is_real.where(*[each.reshape((*each.shape, 1)).expand(y.shape) for each in (re, im)])


def products(
    target: Target,
    x: Node,
    axis: int,
    size: int,
    is_inverse: bool,
    scale: float,
    wanted: int,
    parts: int = 2,
) -> Node | None:
    """Transform an axis of pairs by steps, if it has any; by none that multiplies in less."""
    steps = steps_of(size)
    if not steps:
        return None
    if target.tf32 and not FIRST.keys() >= {*steps}:
        x = x.cast(float64)
    return transform(x, axis, size, is_inverse, wanted, parts, scale)


def fft_kernels(node: Node, target: Target) -> Node | None:
    """Transform complex numbers, once they are pairs: the body of a loop is seen before."""
    (x,), (axis, is_inverse, norm) = node.inputs, node.arg.options
    if not node.arg.in_pairs:
        return None
    at = x.rank - 1 + axis
    scale = SCALES[FLIPPED[norm] if is_inverse else norm](x.shape[at])
    return products(target, x, at, x.shape[at], is_inverse, scale, x.shape[at])


def rfft_kernels(node: Node, target: Target) -> Node | None:
    """Transform real numbers, but for the frequencies that are mirror images.

    Of an even number of them each two are a complex one: z[k] = x[2 k] + i x[2 k + 1].
    """
    (x,), (axis, norm) = node.inputs, node.arg.options
    at, size = x.rank + axis, x.shape[axis]
    scale = SCALES[norm](size)
    if size % 2 or not steps_of(size // 2):
        return products(target, x.reshape((*x.shape, 1)), at, size, False, scale, node.shape[at])
    found = products(target, paired_along(x, at), at, size // 2, False, scale, size // 2)
    if found is None:
        return None
    ahead = join([found, cut_to(found, at, 1)], at)
    even, odd = mirrored(ahead, at, 0.5)
    return even + rotated(odd, at, size, -1, quarters=-1)


def irfft_kernels(node: Node, target: Target) -> Node | None:
    """Transform frequencies back: the real parts, where those with a mirror image count double."""
    (x,), (axis, size, norm) = node.inputs, node.arg.options
    at = x.rank - 1 + axis
    scale = SCALES[FLIPPED[norm]](size)
    inner = is_twofold(x, at - x.rank + 1, size)
    if size % 2 or not steps_of(size // 2):
        twice = inner.where(x * 2.0, x)
        found = products(target, twice, at, size, True, scale, size, 1)
        return None if found is None else found.reshape(node.shape)
    is_real = x.iota(x.rank - 1).binary("equal", 0)
    even, odd = mirrored(is_real.binary("logical_or", inner).where(x, 0.0), at, 1.0)
    pairs = even + rotated(odd, at, size, 1, quarters=1)
    pairs = cut_to(pairs, at, size // 2)
    found = products(target, pairs, at, size // 2, True, scale, size // 2)
    if found is None:
        return None
    rest = range(at + 1, found.rank - 1)
    return found.permute((*range(at + 1), found.rank - 1, *rest)).reshape(node.shape)


def paired_along(x: Node, axis: int) -> Node:
    """Let each two real numbers along an axis be a complex one."""
    pairs = x.reshape((*x.shape[:axis], x.shape[axis] // 2, 2, *x.shape[axis + 1 :]))
    return pairs.permute((*range(axis + 1), *range(axis + 2, pairs.rank), axis + 1))


def cut_to(x: Node, axis: int, count: int) -> Node:
    """Take the beginning of an axis."""
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return x.slice(tuple(map(whole, shape)))


def mirrored(x: Node, axis: int, factor: float) -> tuple[Node, Node]:
    """Add complex numbers along an axis and the conjugates of their mirror images, and subtract."""
    is_real = x.iota(x.rank - 1).binary("equal", 0)
    other = x.flip((axis,))
    other = is_real.where(other, -other)
    return (x + other) * factor, (x - other) * factor


def rotated(x: Node, axis: int, size: int, sign: int, quarters: int) -> Node:
    """Turn complex numbers by their places in size-ths of a circle, and by quarters of it."""
    count = x.shape[axis]
    place = numbered((count,), 0, size, x)
    turn = rotations(place * 4 + quarters * sign * size, 4 * size, sign > 0, x.dtype).stored()
    ones = (1,) * (x.rank - axis - 2)
    parts = []
    for part in (0, 1):
        own = butterflies.cut(x, x.rank - 1, part).reshape((*x.shape[:-1], 1)).expand(x.shape)
        factor = butterflies.cut(turn, 1, part).reshape((count, *ones, 2))
        parts.append(own * factor.broadcast_to(x.shape))
    return parts[0] + parts[1]


TRANSFORMS = functions(
    HostFunction("fft", fft, lambda x, *options: x, fft_vjp, kernels=fft_kernels),
    HostFunction("rfft", rfft, rfft_shape, rfft_vjp, kernels=rfft_kernels),
    HostFunction("irfft", irfft, irfft_shape, irfft_vjp, kernels=irfft_kernels),
)
