"""Host calls: what NumPy computes when the plan runs (LAPACK, Fourier transforms) is one op.

    host_call(inputs...)    arg = HostCall(name of a row of FUNCTIONS, its options)

A row is the whole meaning of a function: shape rule, NumPy function, gradient. Its inputs have one
dtype, float or complex, which is that of the result: where some of several results are real, they
are the real parts. In a plan, complex numbers are a last axis of (real, imaginary) (`in_pairs`).

Leading axes are batches: a function works on the last axes of arrays that have the same ones before
them, and names axes by negative numbers, so that `vmap` adds an axis in front and changes nothing
else. What a function gives as several arrays lies one behind the other in the last axis of one
(`packed`), and is cut apart by views (`unpacked`): their gradients are joined where they meet.
Adding a function is adding a row to the table of host_matrices.py, host_fourier.py, host_gamma.py.

Host calls of Fourier transforms along one axis, named by a negative number.

Where one of input and result is real, a complex array has a last axis more, of (real, imaginary),
which axes do not count. A transform is linear: its gradient is the transform back, with the
normalisation of the other direction.

Host calls of the incomplete gamma functions of float64, element by element.

Definitions: NIST Digital Library of Mathematical Functions, 8.2. They take as many steps as their
arguments need. Their gradient is made of other operations (tensor/math/gamma.py).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.errors import LinAlgError
from picograd.graph.batch_rules import same
from picograd.graph.node import Node
from picograd.graph.row import COMPLEX_KIND, DTypeRule, Op, Role, table
from picograd.graph.shape import Shape
from picograd.helpers import product
from picograd.late_methods import dataclass

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


TRANSFORMS = functions(
    HostFunction("fft", fft, lambda x, *options: x, fft_vjp),
    HostFunction("rfft", rfft, rfft_shape, rfft_vjp),
    HostFunction("irfft", irfft, irfft_shape, irfft_vjp),
)


STEPS = 100_000  # more than an incomplete gamma function of any argument below 1e8 takes
TINY = 1e-300
CLOSE = 4 * np.finfo(np.float64).eps  # a factor that has settled still moves by one or two


def lower_series(a: Array, x: Array) -> Array:
    """Sum x^n / ((a + 1) ... (a + n)): the series of the lower function, good for x < a + 1."""
    term = np.ones_like(a)
    total = term.copy()
    for step in range(1, STEPS):
        term = term * x / (a + step)
        total = total + term
        if not (np.abs(term) > 1e-17 * np.abs(total)).any():
            break
    return total / a


def upper_fraction(a: Array, x: Array) -> Array:
    """Evaluate the continued fraction of the upper function, good for x >= a + 1 (Lentz, 1976)."""
    b = x + 1 - a
    c = np.full_like(b, 1 / TINY)
    d = 1 / np.where(b == 0, TINY, b)
    total = d.copy()
    for step in range(1, STEPS):
        factor = step * (a - step)
        b = b + 2
        d = factor * d + b
        c = b + factor / c
        d = 1 / np.where(d == 0, TINY, d)
        change = d * np.where(c == 0, TINY, c)
        total = total * change
        if not (np.abs(change - 1) > CLOSE).any():
            break
    return total


def log_gamma(a: Array) -> Array:
    """Compute log(gamma(a)) of every element."""
    return np.vectorize(math.lgamma, otypes=[float])(a)


def lower_share(a: Array, x: Array) -> tuple[Array, Array]:
    """Compute the regularised lower and upper incomplete gamma functions of float64 arrays."""
    if not a.ndim:  # NumPy's arithmetic makes numbers of these
        lower, upper = lower_share(a.reshape(1), x.reshape(1))
        return lower.reshape(()), upper.reshape(())
    finite_a = np.isfinite(a)
    finite_x = np.isfinite(x)
    lower = np.full(a.shape, np.nan)
    lower[(a > 0) & (x == 0)] = 0.0
    lower[(a >= 0) & finite_a & (x == np.inf)] = 1.0
    lower[(a == 0) & (x > 0)] = 1.0
    lower[(a == np.inf) & (x >= 0) & finite_x] = 0.0
    upper = 1 - lower
    inside = (a > 0) & (x > 0) & finite_a & finite_x
    for is_low in (True, False):
        here = inside & ((x < a + 1) == is_low)
        if here.any():
            each, at = a[here], x[here]
            with np.errstate(all="ignore"):
                scale = np.exp(each * np.log(at) - at - log_gamma(each))
                share = scale * (lower_series if is_low else upper_fraction)(each, at)
            lower[here] = share if is_low else 1 - share
            upper[here] = 1 - share if is_low else share
    return lower, upper


INCOMPLETE = functions(
    HostFunction("igamma", lambda a, x: lower_share(a, x)[0], lambda a, x: x),
    HostFunction("igammac", lambda a, x: lower_share(a, x)[1], lambda a, x: x),
)
