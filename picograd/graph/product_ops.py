"""The rows of contraction and convolution: products summed over shared axes.

Both are closed under VJP: the gradient of a contraction is two contractions, that of a convolution
two convolutions, so second derivatives need no other op.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from picograd.graph.axes import derived_conv, link_contract, link_conv
from picograd.graph.batch_rules import batch_contract, batch_conv
from picograd.graph.bounded_rules import bound_contract, bound_conv, conv_bound
from picograd.graph.conv_forms import expand_conv
from picograd.graph.node import Gradients, Node
from picograd.graph.row import FACTOR, NUMBERS, VIEWS, DTypeRule, Op, Role, Sizes, table
from picograd.graph.shape import ConvSpec, Shape, contract_shape, conv_shape, span
from picograd.helpers import product
from picograd.target import Target

Array = Any
CORRELATED = DTypeRule(("uint", "int", "float", "complex"), wanted="a dtype of numbers")


def contract(node: Node, a: Array, b: Array) -> Array:
    """Einstein summation; labels are renumbered because NumPy takes only small ones."""
    labels_a, labels_b, labels_out = node.arg
    number = {label: k for k, label in enumerate(dict.fromkeys(labels_a + labels_b))}
    lists = [[number[label] for label in labels] for labels in (labels_a, labels_b, labels_out)]
    return np.einsum(a, lists[0], b, lists[1], lists[2], optimize=a.dtype.kind == "f")


def contract_side(gradient: Node, other: Node, own: Shape, rest: Shape, out: Shape) -> Node:
    """Gradient of the operand labelled `own`; a label that only it has was summed alone."""
    shared = tuple(label for label in own if label in rest or label in out)
    return gradient.contract(other, (out, rest, shared))


def contract_vjp(gradient: Node, output: Node, a: Node, b: Node) -> Gradients:
    """Contract the gradient with the other operand, and repeat what was summed alone."""
    labels_a, labels_b, out = output.arg
    results = []
    for own, other, x, rest in ((labels_a, b, a, labels_b), (labels_b, a, b, labels_a)):
        part = contract_side(gradient, other, own, rest, out)
        present = {*rest, *out}
        kept = tuple(n if label in present else 1 for label, n in zip(own, x.shape))
        results.append(part.reshape(kept).expand(x.shape))
    return tuple(results)


REUSED = 128  # times that an element is multiplied, from which it may be written four times


def complex_contract(a: Node, b: Node, labels: tuple[Shape, Shape, Shape]) -> Node | None:
    """Multiply complex operands as real ones of twice the depth and twice the width.

        (re, im) of a[m, k]  times  ((re, im), (-im, re)) of b[k, n]

    One product, which is stored as complex numbers lie in memory. None if elements are read too
    seldom, or parts of neither operand lie along what is summed.
    """
    *names, out = labels
    summed = {*names[0]} & {*names[1]} - {*out}
    sizes = dict(zip((*names[0], *names[1]), (*a.shape, *b.shape), strict=True))
    multiplied = product([*sizes.values()])
    depth = max(sizes, default=0) + 1
    width, found = depth + 1, []
    sides = (a, names[0]), (b, names[1])
    for (x, own), (other, rest) in (sides, sides[::-1]):
        if {*own[-1:]} <= summed and 0 < REUSED * other.size <= multiplied and own:
            found.append((other.size, x, own, other, rest))
    if not found:
        return None
    _, x, own, other, rest = min(found, key=lambda each: each[0])
    matrix, rest = turning(other, rest, summed, (depth, width))
    pairs = Node("view_as_real", (x,), x.dtype.real, (*x.shape, 2), x.dtype.real, x.device)
    result = pairs.contract(matrix, ((*own, depth), rest, (*out, width)))
    dtype = x.dtype
    return Node("view_as_complex", (result,), dtype, result.shape[:-1], dtype, x.device)


def turning(z: Node, names: Shape, summed: set[int], parts: Shape) -> tuple[Node, Shape]:
    """Write numbers as what they do to pairs: axes beside what is summed and beside the rest."""
    kept = [place + 1 for place, name in enumerate(names) if name not in summed]
    deep = [place + 1 for place, name in enumerate(names) if name in summed]
    places = sorted([(max(deep, default=0), 0), (max(kept, default=0), 1)], reverse=True)
    shape, order = [*z.shape], [*names]
    for place, number in places:
        shape.insert(place, 1)
        order.insert(place, parts[number])
    row, column = map(order.index, parts)
    whole = tuple([2 if at in (row, column) else size for at, size in enumerate(shape)])
    real, imag = (part.reshape(tuple(shape)).expand(whole) for part in z.parts())
    left, right = real.iota(row), real.iota(column)
    beside = left.binary("less", right).where(imag, -imag)
    return left.binary("equal", right).where(real, beside), tuple(order)


WORTH_A_LAUNCH = 1 << 15  # multiply-adds


def expand_contract(node: Node, target: Target) -> Node | None:
    """Compute rows that are all alike once: those of an operand that is one number everywhere.

    The gradient of a sum is such an operand. On a CPU small products take less than the launch
    that repeats the rows.
    """
    *operands, out = node.arg
    depth = product([size for n, size in zip(operands[0], node.inputs[0].shape) if n not in out])
    if not target.has_blocks and node.size * depth < WORTH_A_LAUNCH:
        return None
    for number, (own, other) in enumerate((operands, operands[::-1])):
        x = node.inputs[number]
        alike = {n for n, size in zip(own, x.shape) if n in out and n not in other and size > 1}
        if alike and is_one_number(x):
            ranges = tuple([(0, 1 if n in alike else size, 1) for n, size in zip(own, x.shape)])
            factors = [*node.inputs]
            factors[number] = x.slice(ranges)
            lone = factors[0].contract(factors[1], node.arg)
            return lone.expand(node.shape)
    return None


def is_one_number(x: Node) -> bool:
    """Tell whether all elements show one number."""
    while x.size != 1 and x.realized is None and (x.op in VIEWS or x.row.is_same_bytes):
        if not x.row.is_showing:
            return False
        x = x.inputs[0]
    return x.size == 1 or x.op in NUMBERS


def spread(x: Array, spec: ConvSpec) -> Array:
    """Put zeros between the elements (input dilation), then pad or cut the borders."""
    for axis, (gap, (lo, hi)) in enumerate(zip(spec.input_dilation, spec.padding), start=3):
        size = span(x.shape[axis], gap)
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        wide = np.zeros(shape, x.dtype)
        wide[(slice(None),) * axis + (slice(None, None, gap),)] = x
        border = [(0, 0)] * x.ndim
        border[axis] = (max(lo, 0), max(hi, 0))
        keep = slice(max(-lo, 0), size - max(-hi, 0))
        x = np.pad(wide[(slice(None),) * axis + (keep,)], border)
    return x


def conv(node: Node, x: Array, weight: Array) -> Array:
    """Correlate: windows of the spread input against the weight."""
    spec = node.arg
    x = spread(x, spec)
    rank = x.ndim - 3
    steps = zip(spec.stride, spec.kernel_dilation, weight.shape[3:])
    for axis, (stride, gap, kernel) in enumerate(steps, start=3):
        rows = sliding_window_view(x, span(kernel, gap), axis=axis)
        x = rows[(slice(None),) * axis + (slice(None, None, stride),)][..., ::gap]
    axes = list(range(5, 5 + rank))
    kernels = list(range(5 + rank, 5 + 2 * rank))
    n, g, o, c = 0, 1, 2, 3
    weight_axes, out_axes = [g, o, c, *kernels], [n, g, o, *axes]
    return np.einsum(x, [n, g, c, *axes, *kernels], weight, weight_axes, out_axes, optimize=True)


def input_gradient(gradient: Node, spec: ConvSpec, weight: Node, sizes: Shape) -> Node:
    """Correlate the gradient, spread by the stride, with the flipped and transposed weight."""
    rank = len(sizes)
    padding = []
    rows = zip(sizes, gradient.shape[3:], weight.shape[3:])
    for k, (size, out, kernel) in enumerate(rows):
        reach = (kernel - 1) * spec.kernel_dilation[k]
        lo = reach - spec.padding[k][0]
        wanted = (size - 1) * spec.input_dilation[k] + 1 + reach
        padding.append((lo, wanted - span(out, spec.stride[k]) - lo))
    back = ConvSpec(spec.input_dilation, tuple(padding), spec.stride, spec.kernel_dilation)
    order = (0, 2, 1, *range(3, 3 + rank))  # (G, O, C, K) -> (G, C, O, K)
    return gradient.conv(weight.permute(order).flip(tuple(range(3, 3 + rank))), back)


def weight_gradient(gradient: Node, spec: ConvSpec, x: Node, kernel: Shape) -> Node:
    """Correlate the input with the gradient: batch and channels change places.

    Where the input is spread by more than the outputs are apart, the gradient with the input: no
    zeros are multiplied, and taps come out in reverse order.
    """
    is_spread = product(spec.input_dilation) > product(spec.stride)
    moved, fixed = (gradient, x) if is_spread else (x, gradient)
    gaps = (spec.stride, spec.input_dilation) if is_spread else (spec.input_dilation, spec.stride)
    padding = []
    for k, (size, places, taps) in enumerate(zip(moved.shape[3:], fixed.shape[3:], kernel)):
        reach, lo = span(taps, spec.kernel_dilation[k]), spec.padding[k][0]
        lo = reach - 1 - lo if is_spread else lo
        wanted = reach + span(places, gaps[1][k]) - 1
        padding.append((lo, wanted - span(size, gaps[0][k]) - lo))
    spatial = tuple(range(3, 3 + len(kernel)))
    columns = moved.permute((2, 1, 0, *spatial))  # (N, G, C, S) -> (C, G, N, S)
    rows = fixed.permute((1, 2, 0, *spatial))  # (N, G, O, S') -> (G, O, N, S')
    found = columns.conv(rows, ConvSpec(spec.kernel_dilation, tuple(padding), *gaps))
    if is_spread:  # (O, G, C, K)
        return found.permute((1, 0, 2, *spatial)).flip(spatial)
    return found.permute((1, 2, 0, *spatial))  # (C, G, O, K) -> (G, O, C, K)


def conv_vjp(gradient: Node, output: Node, x: Node, weight: Node) -> Gradients:
    """Two convolutions."""
    spec = output.arg
    for_input = input_gradient(gradient, spec, weight, x.shape[3:])
    return for_input, weight_gradient(gradient, spec, x, weight.shape[3:])


def check_labels(node: Node) -> str:
    """Labels name the axes, and agree on sizes."""
    sizes: dict[Any, int] = {}
    for child, names in zip(node.inputs, node.arg):
        if len(names) != child.rank or len(set(names)) != child.rank:
            return f"labels {names} do not name {child.shape}"
        for label, size in zip(names, child.shape):
            if sizes.setdefault(label, size) != size:
                return f"label {label} has two sizes"
    return ""


PRODUCT_ROWS = table(
    Op("contract", Role.CONTRACT, 2, FACTOR, contract, contract_vjp, hero="contract",
        of_complex=complex_contract, expand_on=expand_contract,
        shape=lambda labels, a, b: contract_shape(a, b, labels), check=check_labels,
        batch=batch_contract, sizes=Sizes(link_contract, bound_contract)),
    Op("conv", Role.CONV, 2, CORRELATED, conv, conv_vjp, hero="conv", expand_on=expand_conv,
        shape=lambda spec, x, weight: conv_shape(x, weight, spec), batch=batch_conv,
        sizes=Sizes(link_conv, bound_conv, derived=derived_conv, natural=conv_bound)),
)  # fmt: skip
