"""The NumPy interpreter of Graph IR: slow, obvious, and the oracle of every later stage.

Values are arrays of `dtype.numpy`; floats that NumPy lacks are held in float32, rounded after each
op. 16-bit floats are computed in float32 and rounded once an op. With `float64`, every float is
held and computed in float64, so that the result stands in for exact arithmetic; complex numbers in
complex128.
"""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.conversion import convert, from_bits
from picograd.dtype import DType
from picograd.errors import DeviceError
from picograd.graph.bounded import left_out, sources_of
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, toposort
from picograd.graph.recurrence import steps_of
from picograd.graph.row import Role, ops_of
from picograd.graph.scanning import identity
from picograd.late_methods import dataclass
from picograd.target import is_host

Array = Any
CONVOLUTIONS = ops_of(Role.CONV)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a loop computed: the carries in the order of steps, all values by position.

    Rows beyond its steps, up to `length`, are zero.
    """

    carries: list[list[Array]]
    steps: list[list[Array]]
    is_reverse: bool
    length: int

    def find(self, kind: str, number: int) -> Array:
        """Find one outcome, as graph/recurrence.py describes it."""
        if kind == "stack":
            return self.stacked([found[number] for found in self.steps])
        rows = [carries[number] for carries in self.carries]
        if kind == "carry":
            return rows[-1]
        if self.is_reverse:
            rows.reverse()
        return self.stacked(rows)

    def stacked(self, rows: list[Array]) -> Array:
        """Stack rows, and as many of zeros as there could have been more steps."""
        missing = self.length - len(self.steps)
        unwritten = [np.zeros_like(rows[0])] * missing
        return np.stack([*rows, *unwritten])


def interpret(
    nodes: Sequence[Node], float64: bool = False, values: Mapping[Node, Array] | None = None
) -> list[Array]:
    """Compute nodes in NumPy. `values` gives the contents of some nodes, such as leaves on a GPU.

    Realized nodes and buffers on the CPU are read from memory.
    """
    given = {} if values is None else values
    roots = expand_composites(nodes, CONVOLUTIONS)  # whose other forms are compared with this
    done: dict[int, Array] = {}

    def is_leaf(node: Node) -> bool:
        return node in given or node.realized is not None

    with np.errstate(all="ignore"):
        for node in toposort(roots, is_leaf):
            if node in given:
                result = np.asarray(given[node]).reshape(node.shape)
            elif node.realized is not None or node.row.role is Role.MEMORY:
                result = read(node.realized or node.arg.buffer).reshape(node.shape)
            elif node.row.role is Role.LOOP:
                firsts = [done[id(child)] for child in node.inputs]
                done[id(node)] = run_recurrence(node, firsts, float64)
                continue
            else:
                result = evaluate(node, inputs_of(node, done))
            done[id(node)] = rounded(result, node.dtype, float64)
    return [done[id(root)] for root in roots]


def inputs_of(node: Node, done: Mapping[int, Array]) -> list[Array]:
    """Find the values of a node's inputs: what lies beyond their ends is left out."""
    inputs = [done[id(child)] for child in node.inputs]
    monoid = node.arg[0] if node.row.role is Role.REDUCE else "sum"
    for number, ends in enumerate(sources_of(node)):
        fill = identity(monoid, node.inputs[number].dtype)
        inputs[number] = left_out(inputs[number], ends, fill)
    return inputs


def run_recurrence(node: Node, inputs: list[Array], float64: bool) -> Outcomes:
    """Run a loop step by step, keeping every value of every step."""
    spec = node.arg
    body, count = spec.body, len(spec.body.carries)
    given = steps_of(node)
    steps = spec.length if given is None else int(given.value)
    unwritten: list[list[Array]] = [[]] * steps
    outcomes = Outcomes([inputs[:count]], unwritten, spec.is_reverse, spec.length)
    positions = range(steps)
    for position in reversed(positions) if spec.is_reverse else positions:
        held = [
            array[position] if leaf.arg == "x" else array
            for leaf, array in zip(body.leaves, inputs)
        ]
        held[:count] = outcomes.carries[-1]
        found = interpret(body.order, float64, dict(zip(body.leaves, held)))
        outcomes.steps[position] = found
        outcomes.carries.append([found[number] for number in body.nexts])
    return outcomes


def evaluate(node: Node, inputs: list[Array]) -> Array:
    """Apply the NumPy meaning of one op."""
    row = node.row
    if row.reinterpret is not None:
        return row.reinterpret(inputs[0], node.inputs[0].dtype, node.dtype)
    meaning = row.numpy
    wide = [widened(x) for x in inputs]
    if meaning is None:
        raise NotImplementedError(node.op)
    return meaning(*wide) if row.is_elementwise else meaning(node, *wide)


def widened(x: Array) -> Array:
    """Compute 16-bit floats in float32; what a loop computed is no array."""
    return x.astype(np.float32) if getattr(x, "dtype", None) == np.float16 else x


def rounded(x: Array, dtype: DType, float64: bool) -> Array:
    """Round or wrap values to a dtype; with `float64`, floats and complex numbers stay."""
    if not (float64 and dtype.is_differentiable):
        return convert(x, dtype)
    return np.asarray(x).astype(np.complex128 if dtype.is_complex else np.float64)


def read(buffer: Buffer) -> Array:
    """Copy the contents of a CPU buffer: of an array that is its handle, or of its address."""
    if isinstance(buffer.handle, np.ndarray):
        return from_bits(np.array(buffer.handle), buffer.dtype)
    if not is_host(buffer.device):
        raise DeviceError("interpret", f"cannot read {buffer}", "pass its contents in `values`")
    raw = ctypes.string_at(buffer.address, buffer.nbytes)
    return from_bits(np.frombuffer(raw, np.dtype(buffer.dtype.storage)), buffer.dtype)
