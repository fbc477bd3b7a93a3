"""The NumPy interpreter of Graph IR: slow, obvious, and the oracle of every later stage.

Values are arrays of `dtype.numpy`; bfloat16 is held in float32, rounded to bfloat16 after each op.
16-bit floats are computed in float32 and rounded once an op. With `float64`, every float is held
and computed in float64, so that the result stands in for exact arithmetic.
"""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.dtype import DType, bfloat16
from picograd.errors import DeviceError
from picograd.graph.expand import expand_composites
from picograd.graph.node import Node, toposort
from picograd.graph.ops import OPS

Array = Any


def interpret(
    nodes: Sequence[Node],
    float64: bool = False,
    values: Mapping[Node, Array] | None = None,
) -> list[Array]:
    """Compute nodes in NumPy. `values` gives the contents of some nodes, such as leaves on a GPU.

    Realized nodes and buffers on the CPU are read from memory.
    """
    given = {} if values is None else dict(values)
    roots = expand_composites(nodes)
    done: dict[int, Array] = {}

    def is_leaf(node: Node) -> bool:
        return node in given or node.realized is not None

    with np.errstate(all="ignore"):
        for node in toposort(roots, is_leaf):
            if node in given:
                result = np.asarray(given[node]).reshape(node.shape)
            elif node.realized is not None or node.op == "buffer":
                result = read(node.realized or node.arg.buffer).reshape(
                    node.shape
                )
            else:
                result = evaluate(
                    node, [done[id(child)] for child in node.inputs], float64
                )
            done[id(node)] = convert(result, node.dtype, float64)
    return [done[id(root)] for root in roots]


def evaluate(node: Node, inputs: list[Array], float64: bool) -> Array:
    """Apply the NumPy meaning of one op."""
    if node.op == "bitcast":
        return from_bits(to_bits(inputs[0], node.inputs[0].dtype), node.dtype)
    row = OPS[node.op]
    meaning = row.numpy
    wide = [
        x.astype(np.float32) if x.dtype == np.float16 else x for x in inputs
    ]
    if meaning is None:
        raise NotImplementedError(node.op)
    return meaning(*wide) if row.is_elementwise else meaning(node, *wide)


def convert(x: Array, dtype: DType, float64: bool = False) -> Array:
    """Round or wrap values to a dtype."""
    x = np.asarray(x)
    if dtype.is_float:
        if float64:
            return x.astype(np.float64)
        return (
            round_bfloat16(x)
            if dtype is bfloat16
            else x.astype(dtype.numpy, copy=False)
        )
    if x.dtype.kind == "f" and dtype.is_integer:
        x = x.astype(
            np.uint64 if dtype.bits == 64 and dtype.kind == "uint" else np.int64
        )
    return x.astype(dtype.numpy, copy=False)


def round_bfloat16(x: Array) -> Array:
    """Round float32 to the nearest bfloat16, ties to even, kept in float32."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, rounded.view(np.float32)).reshape(x.shape)


def to_bits(x: Array, dtype: DType) -> Array:
    """Raw bytes of values, as `dtype.storage`."""
    x = np.ascontiguousarray(convert(x, dtype))
    if dtype is bfloat16:
        return (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return x


def from_bits(bits: Array, dtype: DType) -> Array:
    """Values from raw bytes."""
    if dtype is bfloat16:
        return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(
            np.float32
        )
    return bits.view(dtype.numpy)


def read(buffer: Buffer) -> Array:
    """Copy the contents of a CPU buffer: of an array that is its handle, or of its address."""
    if isinstance(buffer.handle, np.ndarray):
        return from_bits(np.array(buffer.handle), buffer.dtype)
    if not buffer.device.startswith("cpu"):
        raise DeviceError(
            "interpret",
            f"cannot read {buffer}",
            "pass its contents in `values`",
        )
    raw = ctypes.string_at(buffer.address, buffer.nbytes)
    return from_bits(
        np.frombuffer(raw, np.dtype(buffer.dtype.storage)), buffer.dtype
    )
