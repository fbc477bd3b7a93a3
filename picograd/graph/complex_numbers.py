"""The rows of complex numbers: how they are made of real ones, and taken apart.

    complex(real, imag)       view_as_complex(pairs)      pairs: a last axis of (real, imaginary)
    real(z)    imag(z)        view_as_real(z)

These are all ops that compute something with complex numbers: arithmetic on them is recorded in
real arithmetic (graph/complex_rules.py), and only ops that move elements, store or pass them take
them as they are. The schedule sees none (graph/split_complex.py).

A gradient is that of the real and the imaginary part: the conjugate of Wirtinger's derivative,
which is PyTorch's convention.
"""

from typing import Any

import numpy as np

from picograd.graph.batch_rules import same
from picograd.graph.node import Node
from picograd.graph.row import COMPLEX_KIND, FLOAT, DTypeRule, Op, Role, View, table
from picograd.graph.shape import Strides, equal_shape

Array = Any
Gradients = tuple[Node | None, ...]
COMPLEX = DTypeRule((COMPLEX_KIND,), wanted="a complex dtype")


def of_parts(node: Node, real: Array, imag: Array) -> Array:
    """Put real and imaginary parts together."""
    found: Array = np.empty(node.shape, np.result_type(real, np.complex64))
    found.real, found.imag = real, imag
    return found


def as_pairs(node: Node, z: Array) -> Array:
    """Give parts a last axis."""
    return np.stack([z.real, z.imag], -1)


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
        lambda node, pairs: of_parts(node, pairs[..., 0], pairs[..., 1]),
        lambda g, y, pairs: (view_as_real(g),),
        lambda arg, pairs: pairs[:-1],
        COMPLEX_VIEW,
    ),
)
