"""The rows of complex numbers: how they are made of real ones, and taken apart.

    complex(real, imag)       view_as_complex(pairs)      pairs: a last axis of (real, imaginary)
    real(z)    imag(z)        view_as_real(z)

These are all ops that compute something with complex numbers: arithmetic on them is recorded in
real arithmetic (graph/complex_rules.py), and only ops that move elements, store or pass them take
them as they are. The schedule sees none: they are split before it.

A gradient is that of the real and the imaginary part: the conjugate of Wirtinger's derivative,
which is PyTorch's convention.

Complex numbers as pairs of real ones: a graph for the schedule, which knows no complex dtype.

    z = buffer complex64(3)    ->    whole = buffer float32(3, 2)
                                     re, im = whole[:, 0], whole[:, 1]

Memory of complex numbers is read as real numbers with a last axis of (real, imaginary); what is
stored is put together again. Ops that move elements move both parts. A graph without complex
numbers stays the one it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from picograd.buffer import Storage
from picograd.dtype import DType
from picograd.errors import DTypeError
from picograd.graph.batch_rules import same
from picograd.graph.node import Gradients, Node, Nodes, ends_of
from picograd.graph.row import (
    COMPLEX_KIND,
    FLOAT,
    MEMORY,
    NUMBERS,
    DTypeRule,
    Op,
    Role,
    View,
    table,
)
from picograd.graph.shape import Strides, equal_shape
from picograd.late_methods import dataclass

Array = Any
COMPLEX = DTypeRule((COMPLEX_KIND,), wanted="a complex dtype")


def of_parts(node: Node, real: Array, imag: Array) -> Array:
    """Put real and imaginary parts together."""
    found: Array = np.empty(node.shape, np.result_type(real, np.complex64))
    found.real, found.imag = real, imag
    return found


def of_pairs(node: Node, pairs: Array) -> Array:
    """Read a last axis of two as complex numbers."""
    pairs = np.ascontiguousarray(pairs)
    return pairs.view(np.result_type(pairs.dtype, np.complex64))[..., 0]


def as_pairs(node: Node, z: Array) -> Array:
    """Give parts a last axis."""
    return np.ascontiguousarray(z).view(z.real.dtype).reshape(*z.shape, 2)


def of_real(g: Node, y: Node, z: Node) -> Gradients:
    """Pass the gradient on to the real part."""
    return (g.paired(g.const_like(0)),)


def of_imag(g: Node, y: Node, z: Node) -> Gradients:
    """Pass the gradient on to the imaginary part."""
    return (g.const_like(0).paired(g),)


def view_as_real(z: Node) -> Node:
    """Give complex numbers a last axis of (real, imaginary)."""
    dtype = z.dtype.real
    return Node("view_as_real", (z,), dtype, (*z.shape, 2), dtype, z.device)


def view_as_complex(pairs: Node) -> Node:
    """Read a last axis of (real, imaginary) as complex numbers."""
    dtype = pairs.dtype.complex
    return Node("view_as_complex", (pairs,), dtype, pairs.shape[:-1], dtype, pairs.device)


def doubled(node: Node, strides: Strides) -> Strides:
    """Count strides of complex numbers in real ones."""
    return tuple([2 * step for step in strides])


def halved(node: Node, strides: Strides) -> Strides | None:
    """Count strides of real numbers in complex ones; pairs must lie together."""
    *lead, last = strides
    is_paired = last == 1 and not any(step % 2 for step in lead)
    return tuple([step // 2 for step in lead]) if is_paired else None


REAL_VIEW = View(
    doubled,
    lambda node, strides: 0,
    show=lambda z, dtype: z.parts()[0],
    back=lambda z, dtype, value: value.paired(z.parts()[1]),
)
IMAG_VIEW = View(
    doubled,
    lambda node, strides: 1,
    show=lambda z, dtype: z.parts()[1],
    back=lambda z, dtype, value: z.parts()[0].paired(value),
)
PAIRS_VIEW = View(
    lambda node, strides: (*doubled(node, strides), 1),
    show=lambda z, dtype: view_as_real(z),
    back=lambda z, dtype, value: view_as_complex(value),
)
COMPLEX_VIEW = View(
    halved,
    show=lambda pairs, dtype: view_as_complex(pairs),
    back=lambda pairs, dtype, value: view_as_real(value),
)


def parts(name: str, rule: DTypeRule, numpy: Any, vjp: Any, shape: Any, view: View) -> Op:
    """Make a row of what shows parts, or the whole; its argument is the dtype of its value."""
    return Op(name, Role.PARTS, 1, rule, numpy, vjp, shape=shape, batch_arg=same, view=view)


COMPLEX_ROWS = table(
    Op(
        "complex",
        Role.PAIR,
        2,
        FLOAT,
        of_parts,
        lambda g, y, real, imag: g.parts(),
        shape=equal_shape,
        batch_arg=same,
    ),
    parts("real", COMPLEX, lambda node, z: z.real, of_real, equal_shape, REAL_VIEW),
    parts("imag", COMPLEX, lambda node, z: z.imag, of_imag, equal_shape, IMAG_VIEW),
    parts(
        "view_as_real",
        COMPLEX,
        as_pairs,
        lambda g, y, z: (view_as_complex(g),),
        lambda arg, z: (*z, 2),
        PAIRS_VIEW,
    ),
    parts(
        "view_as_complex",
        FLOAT,
        of_pairs,
        lambda g, y, pairs: (view_as_real(g),),
        lambda arg, pairs: pairs[:-1],
        COMPLEX_VIEW,
    ),
)


MOVING = (  # roles of what does to complex numbers what it does to each part
    Role.NUMBER,
    Role.VIEW,
    Role.FOLD,
    Role.PASS,
    Role.COPY,
    Role.GATHER,
    Role.SCATTER,
    Role.PART,
    Role.REDUCE,
    Role.ELEMENTWISE,  # where, and casts to the same dtype
)
KEEPING = (Role.PASS, Role.COPY)  # of what has the bytes of its input


@dataclass(eq=False, slots=True)
class Pair:
    """The real and imaginary parts, and both as they lie in memory once that is asked for."""

    real: Node
    imag: Node
    whole: Node | None = None

    def stored(self) -> Node:
        """Give both parts along a last axis."""
        if self.whole is None:
            shape = (*self.real.shape, 2)
            real, imag = (
                part.reshape((*part.shape, 1)).expand(shape) for part in (self.real, self.imag)
            )
            is_real = real.iota(len(shape) - 1).binary("equal", 0)
            self.whole = is_real.where(real, imag)
        return self.whole


def pair_of(whole: Node) -> Pair:
    """Take parts from a last axis of two."""
    lead, shape = tuple((0, size, 1) for size in whole.shape[:-1]), whole.shape[:-1]
    real, imag = (whole.slice((*lead, (at, at + 1, 1))).reshape(shape) for at in (0, 1))
    return Pair(real, imag, whole)


def split_complex(roots: Nodes, order: Nodes, is_leaf: Callable[[Node], bool]) -> list[Node]:
    """Write a graph, listed inputs first, in real numbers; complex roots get a last axis of two."""
    done: dict[int, Node | Pair] = {}
    for node in order:
        if is_leaf(node):
            done[id(node)] = leaf_pair(node) if node.dtype.is_complex else node
        else:
            done[id(node)] = in_real(node, [done[id(child)] for child in node.inputs])
    found = [done[id(root)] for root in roots]
    return [each.stored() if isinstance(each, Pair) else each for each in found]


def has_complex(order: Nodes) -> bool:
    """Tell whether there is a complex number among nodes."""
    return any(dtype.is_complex for dtype in {node.dtype for node in order})


def leaf_pair(node: Node) -> Pair:
    """Read memory of complex numbers as real ones."""
    if node.realized is None and node.op not in MEMORY:
        raise refused(node)
    storage = node.arg if node.realized is None else Storage(node.realized)
    shape, dtype = (*node.shape, 2), node.dtype.real
    return pair_of(Node("buffer", (), storage, shape, dtype, node.device))


def in_real(node: Node, inputs: list[Node | Pair]) -> Node | Pair:
    """Write one node in real numbers."""
    role = node.row.role
    if role is Role.PAIR:
        real, imag = inputs
        return Pair(real, imag)  # type: ignore[arg-type]
    if role is Role.PARTS:
        (source,) = inputs
        return pair_of(source) if isinstance(source, Node) else shown(node, source)
    if role is Role.COMPOSITE and any(isinstance(each, Pair) for each in inputs):
        return inputs[-1]  # the value beside a gradient of its own: others take real numbers
    if not node.dtype.is_complex:
        return node.with_inputs(tuple(map(real_node, inputs, [node] * len(inputs))))
    if role is Role.HOST:
        return on_wholes(node, inputs, replace(node.arg, in_pairs=True))
    if role is Role.WRITE:
        return on_wholes(node, inputs, node.arg)
    if role not in MOVING or (role is Role.SCATTER and node.arg[1] not in (None, "sum")):
        raise refused(node)
    return moved(node, inputs)


def on_wholes(node: Node, inputs: Sequence[Node | Pair], arg: Any) -> Pair:
    """Do to real and imaginary parts as they lie in memory what is done to complex numbers."""
    wholes = tuple([each.stored() for each in inputs if isinstance(each, Pair)])
    shape, dtype = (*node.shape, 2), node.dtype.real
    return pair_of(Node(node.op, wholes, arg, shape, dtype, node.device))


def shown(node: Node, pair: Pair) -> Node:
    """Give the part at which a view begins; the whole if it begins at none."""
    offset = node.row.view.offset  # type: ignore[union-attr]
    return pair.stored() if offset is None else (pair.real, pair.imag)[offset(node, ())]


def real_node(found: Node | Pair, node: Node) -> Node:
    """Give an input of an op that gives real numbers: a real one."""
    if isinstance(found, Pair):
        raise refused(node)
    return found


def moved(node: Node, inputs: Sequence[Node | Pair]) -> Pair:
    """Do to each part what is done to complex numbers."""
    first = inputs[0] if inputs else None
    if node.row.role in KEEPING and isinstance(first, Pair) and first.whole is not None:
        return on_wholes(node, [first], node.arg)
    args = (node.arg, node.arg)
    if type(node.arg) is DType:
        args = (node.dtype.real, node.dtype.real)
    elif node.op in NUMBERS:
        args = ends_of(node.arg)
    real = [each.real if isinstance(each, Pair) else each for each in inputs]
    imag = [each.imag if isinstance(each, Pair) else each for each in inputs]
    return Pair(*(
        Node(node.op, tuple(part), arg, node.shape, node.dtype.real, node.device)
        for part, arg in zip((real, imag), args)
    ))  # fmt: skip


def refused(node: Node) -> DTypeError:
    """Word the error of an op that complex numbers have no meaning for."""
    return DTypeError(node.op, "is not defined for complex numbers", "take .real, .imag or .abs()")
