"""The rows of leaves, reductions and effects; products, indexing and views are beside them."""

from typing import Any

import numpy as np

from picograd.dtype import uint32
from picograd.graph.axes import compare_const, link_nothing, link_reduce, link_same, note_argument
from picograd.graph.batch_rules import refused, same, second_axes_next
from picograd.graph.bounded_rules import (
    bound_assign,
    bound_const,
    bound_iota,
    bound_random,
    bound_reduce,
    bound_same,
)
from picograd.graph.bounds import constant_bounds, position_bounds, reduced_bounds, same_element
from picograd.graph.factors import product_gradient
from picograd.graph.indexing import INDEX_ROWS
from picograd.graph.node import Gradients, Node
from picograd.graph.product_ops import PRODUCT_ROWS
from picograd.graph.random import HALF_BITS, SECOND_WORD, random_bits, random_halves
from picograd.graph.row import ANY, DTypeRule, Op, Role, Sizes, View, table
from picograd.graph.shape import equal_shape, reduce_shape
from picograd.graph.viewing import VIEW_ROWS
from picograd.helpers import lying_along

Array = Any
WORDS = DTypeRule(("uint", "int"), wanted="an integer dtype", gives=uint32)
REDUCTIONS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def draw_bits(node: Node, offset: Array, seed: Array) -> Array:
    """Draw 32 bits an element, or as few as the argument says."""
    if node.arg == HALF_BITS:
        return random_halves(seed, offset, node.shape)
    return random_bits(seed, offset, node.shape, node.arg == SECOND_WORD)


def broadcast_const(node: Node) -> Array:
    """Fill the shape with the value."""
    return np.full(node.shape, node.arg)


def iota(node: Node) -> Array:
    """Count along one axis."""
    places = np.arange(node.shape[node.arg])
    return np.broadcast_to(places.reshape(lying_along(node.arg, node.rank)), node.shape)


def reduce(node: Node, x: Array) -> Array:
    """Reduce with the monoid, in the dtype of `x`: the interpreter widens 16-bit floats."""
    monoid, axes = node.arg
    if monoid in ("sum", "prod"):
        return REDUCTIONS[monoid](x, axis=axes, dtype=x.dtype)
    return REDUCTIONS[monoid](x, axis=axes)


def reduce_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Broadcast a sum's gradient; send an extremum's to the extremes, split evenly among ties.

    An extremum that is NaN equals nothing: all gradients behind it are NaN, as in PyTorch.
    """
    monoid, axes = output.arg
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    wide = gradient.reshape(kept).expand(x.shape)
    if monoid == "sum":
        return (wide,)
    if monoid == "prod":
        return (product_gradient(wide, x, axes),)
    extreme = output.again().reshape(kept)
    is_extreme = x.binary("equal", extreme.expand(x.shape))
    share = gradient.accumulated()
    count = is_extreme.cast(share.dtype).reduce("sum", axes)
    share = (share / count).cast(x.dtype).reshape(kept)
    rest = (share * 0).expand(x.shape)
    return (is_extreme.where(share.expand(x.shape), rest),)


def same_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Pass the gradient on."""
    return (gradient,)


def copy_vjp(gradient: Node, output: Node, x: Node) -> Gradients:
    """Copy the gradient back to the input's device."""
    return (gradient.copy(x.device),)


def missing(node: Node, *arrays: Array) -> Array:
    """Stand for a meaning that depends on memory: the interpreter reads it."""
    raise NotImplementedError(node.op)


def check_reduce(node: Node) -> str:
    """A known monoid over sorted axes."""
    monoid, axes = node.arg
    if monoid not in REDUCTIONS:
        return f"unknown monoid {monoid!r}"
    inside = all(0 <= axis < node.inputs[0].rank for axis in axes)
    return "" if inside and list(axes) == sorted(set(axes)) else f"bad axes {axes}"


def kept_dimensions(node: Node) -> tuple[int, ...]:
    """The dimensions that a reduction leaves."""
    return tuple(d for d in range(len(node.inputs[0].shape)) if d not in node.arg[1])


def leaf(name: str, role: Role, numpy: Any, **columns: Any) -> Op:
    """Make the row of a node without inputs."""
    return Op(name, role, 0, ANY, numpy, **columns)


def effect(name: str, role: Role, arity: int, vjp: Any = None, **columns: Any) -> Op:
    """Make the row of an op whose value is its last input."""
    meaning = lambda node, *arrays: arrays[-1]  # noqa: E731
    return Op(name, role, arity, ANY, meaning, vjp, shape=equal_shape, **columns)


STRUCTURE = (
    table(
        leaf("buffer", Role.MEMORY, missing, is_showing=True),
        leaf("const", Role.NUMBER, broadcast_const, is_showing=True,
            sizes=Sizes(link_nothing, bound_const, note=note_argument, compare=compare_const),
            bounds=constant_bounds),
        leaf("iota", Role.POSITION, iota, sizes=Sizes(link_nothing, bound_iota),
            bounds=position_bounds),
        leaf("scalar", Role.SCALAR, lambda node: np.asarray(node.arg.value), is_showing=True,
            shape=lambda arg: ()),
        Op(
            "random_bits",
            Role.DRAW,
            2,
            WORDS,
            draw_bits,
            batch=refused(
                "the position in the random stream depends on the sample",
                'draw inside, with randomness="different"',
            ),
            cost=24,
            sizes=Sizes(link_nothing, bound_random),
        ),
        Op("reduce", Role.REDUCE, 1, ANY, reduce, reduce_vjp,
            shape=lambda arg, x: reduce_shape(x, arg[1]), check=check_reduce,
            batch_arg=second_axes_next, dimensions=kept_dimensions,
            sizes=Sizes(link_reduce, bound_reduce), bounds=reduced_bounds),
        effect("copy", Role.COPY, 1, copy_vjp, hero="copy", batch_arg=same, sizes=Sizes(link_same),
            bounds=same_element),
        effect("contiguous", Role.PASS, 1, same_vjp, batch_arg=same,
            sizes=Sizes(link_same, bound_same), bounds=same_element, is_stored=True),
        # the first input, but not before the second one could be there
        Op("after", Role.PASS, 2, ANY, lambda node, x, _: x, shape=equal_shape,
            batch=refused("it is in what convolutions and transforms become on a GPU"), cost=0),
        effect("detach", Role.PASS, 1, batch_arg=same, is_showing=True, is_same_bytes=True,
            view=View(lambda node, strides: strides), sizes=Sizes(link_same, bound_same),
            bounds=same_element),
        effect(
            "assign",
            Role.WRITE,
            2,
            batch=refused(
                "a tensor from outside would be overwritten by every sample",
                "return the value, or pass the tensor as an argument",
            ),
            sizes=Sizes(link_same, bound_assign),
        ),
    )
    | VIEW_ROWS
    | PRODUCT_ROWS
    | INDEX_ROWS
)  # fmt: skip
