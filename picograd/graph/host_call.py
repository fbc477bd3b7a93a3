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
"""

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

    `is_kept`: the first plan that computes the call stores it, since several results are cut out of
    it or its gradient reads it. `can_fail`: it refuses some values, by NumPy's LinAlgError; outside
    of traces it is computed where it is called, so that the error is one of the user's line.
    """

    name: str
    numpy: Callable[..., Array]
    shape: Callable[..., Shape]
    vjp: Callable[..., Gradients] | None = None
    is_kept: bool = False
    can_fail: bool = False


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
    try:
        with np.errstate(all="ignore"):
            if not call.in_pairs:
                return call.row.numpy(*arrays, *call.options)
            return as_pairs(call.row.numpy(*map(as_complex, arrays), *call.options))
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{call.name}", str(error), "check the matrix") from None


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
