"""The bits of a tensor read as another dtype: `view(dtype)`, of equal or of other width.

Memory is little-endian, as on every target: an element of 32 bits is two of 16, the low one first.
No gradient passes through bits.
"""

from typing import Any

from picograd.dtype import DType, bool_, to_dtype, uint8
from picograd.errors import ShapeError
from picograd.graph import build
from picograd.graph.complex_numbers import view_as_complex, view_as_real
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.tensor.making import creation

WHOLE = {bits: to_dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}


def show_bits(node: Node, dtype: DType) -> Node:
    """Show bits as another dtype; the last axis shrinks or grows with the width."""
    return reread("view", build.detach(node), dtype)


def is_dtype(value: Any) -> bool:
    """Tell whether the argument of `view` is a dtype rather than a size."""
    return isinstance(value, DType) or creation.is_dtype(value)


def reread(op: str, node: Node, dtype: DType) -> Node:
    """Read bits as another dtype; bool is a byte of 0 or 1."""
    if node.dtype is dtype:
        return node
    if node.dtype is bool_:
        node = node.cast(uint8)
    if node.dtype.is_complex or dtype.is_complex:
        return of_pairs(op, node, dtype)
    before, after = width(node.dtype), width(dtype)
    if before != after and not node.shape:
        raise ShapeError(
            op,
            f"a zero-dim {node.dtype.name} tensor has no axis to read as {dtype.name}",
            "use a dtype of the same width, or reshape to (1,)",
        )
    if before > after:
        node = split(build.bitcast(node, WHOLE[before]), WHOLE[after])
    elif before < after:
        if node.shape[-1] % (after // before):
            raise ShapeError(
                op,
                f"{node.shape[-1]} elements of {node.dtype.name} are no whole {dtype.name}",
                f"make the last axis a multiple of {after // before}",
            )
        node = join(build.bitcast(node, WHOLE[before]), WHOLE[after])
    if dtype is bool_:
        bits = build.bitcast(node, uint8)  # -0.0 has one
        return bits.cast(bool_)
    return build.bitcast(node, dtype)


def of_pairs(op: str, node: Node, dtype: DType) -> Node:
    """Read complex numbers, which are a real and an imaginary part one behind the other."""
    if not node.shape and width(node.dtype) == width(dtype):
        return of_pairs(op, node.reshape((1,)), dtype).reshape(())
    if node.dtype.is_complex:
        pairs = view_as_real(node)
        numbers = product(node.shape[-1:]) * 2
        flat = pairs.reshape((*node.shape[:-1], numbers))
        return reread(op, flat, dtype)
    flat = reread(op, node, dtype.real)
    if flat.shape[-1] % 2:
        problem = f"{flat.shape[-1]} numbers of {dtype.real.name} are no whole {dtype.name}"
        raise ShapeError(op, problem, "use a last axis whose parts are pairs")
    return view_as_complex(flat.reshape((*flat.shape[:-1], flat.shape[-1] // 2, 2)))


def width(dtype: DType) -> int:
    """Count the bits of an element in memory."""
    return dtype.itemsize * 8


def split(node: Node, narrow: DType) -> Node:
    """Cut each element into several: (..., n) -> (..., n * parts)."""
    parts = node.dtype.bits // narrow.bits
    shape = (*node.shape, parts)
    wide = node.reshape((*node.shape, 1)).expand(shape)
    shifts = wide.iota(len(node.shape), node.dtype) * narrow.bits
    moved = wide.binary("shift_right", shifts)
    low = moved.binary("bitwise_and", (1 << narrow.bits) - 1)
    flat = (*node.shape[:-1], node.shape[-1] * parts)
    return low.cast(narrow).reshape(flat)


def join(node: Node, wide: DType) -> Node:
    """Put neighbours together: (..., n * parts) -> (..., n)."""
    parts = wide.bits // node.dtype.bits
    shape = (*node.shape[:-1], node.shape[-1] // parts)
    rows = node.reshape((*shape, parts)).cast(wide)
    total = piece(rows, 0)
    for at in range(1, parts):
        shifted = piece(rows, at).binary("shift_left", at * node.dtype.bits)
        total = total.binary("bitwise_or", shifted)
    return total


def piece(rows: Node, at: int) -> Node:
    """Take one element of each row."""
    shape = rows.shape[:-1]
    whole = tuple((0, size, 1) for size in shape)
    taken = rows.slice((*whole, (at, at + 1, 1)))
    return taken.reshape(shape)
