"""Host calls: what NumPy computes when the plan runs (LAPACK, Fourier transforms) is one op.

    host_call(inputs...)    arg = HostCall(name of a row of FUNCTIONS, its options)

A row is the whole meaning of a function: shape rule, NumPy function, gradient. Its inputs have one
dtype, float32 or float64, which is that of the result. Leading axes are batches: a function works
on the last axes of arrays that have the same ones before them, and names axes by negative numbers,
so that `vmap` adds an axis in front and changes nothing else. What a function gives as several
arrays lies one behind the other in the last axis of one (`packed`), and is cut apart by views
(`unpacked`): their gradients are joined where they meet. Adding a function is adding a row to the
table of host_matrices.py, host_fourier.py or host_gamma.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from picograd.errors import LinAlgError
from picograd.graph.batch_rules import same
from picograd.graph.node import Node
from picograd.graph.row import FLOAT, Op, Role, table
from picograd.graph.shape import Shape
from picograd.helpers import product

Array = Any
Gradients = Sequence[Any]


@dataclass(frozen=True, slots=True)
class HostCall:
    """The argument of a `host_call` node: equal calls of equal inputs have equal values."""

    name: str
    options: tuple[Any, ...] = ()

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
    return Node("host_call", inputs, arg, result_shape(arg, inputs), first.dtype, first.device)


def result_shape(call: HostCall, inputs: Sequence[Node]) -> Shape:
    """Find the shape that follows from the inputs and options."""
    return call.row.shape(*(node.shape for node in inputs), *call.options)


def run(call: HostCall, *arrays: Array) -> Array:
    """Call the function on arrays; LinAlgError, naming it, where it refuses their values."""
    try:
        with np.errstate(all="ignore"):
            return call.row.numpy(*arrays, *call.options)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{call.name}", str(error), "check the matrix") from None


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
        FLOAT,
        lambda node, *arrays: run(node.arg, *arrays),
        host_vjp,
        shape=lambda call, *shapes: call.row.shape(*shapes, *call.options),
        batch_arg=same,
    )
)
