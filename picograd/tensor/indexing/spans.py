"""Ranges of an axis that start where an integer tensor says: x[pos:pos + 1], x.narrow(0, pos, 2).

The shape of the result has to be known when the operation is recorded, so both ends must be one
tensor but for a constant: `distance` compares them as sums of terms,

    2 * pos + 4  -  2 * pos     ->  4
    end - start                 ->  unknown

A range is read by a gather and written by a scatter at its positions, so that one recording
serves every start. Eager code looks at the start and follows PyTorch, which cuts a slice off at the
end of the axis; what `jit` traces is checked at every call: a range that leaves the axis raises at
the next look at the device, and a write through it writes nothing.
"""

from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine.tracing import is_tracing, trace_error
from picograd.errors import AxisError, DTypeError
from picograd.graph.node import Node
from picograd.graph.room import check_host
from picograd.graph.row import NUMBERS
from picograd.tensor.core.demands import report
from picograd.tensor.indexing.indexing import Span

Terms = dict[int, int]  # how often a node, known by its id, is added
MOST = 64  # nodes of an end that are looked at


def terms_of(node: Node) -> tuple[Terms, int]:
    """Read a whole number as a sum of multiples of nodes, and a constant."""
    found: Terms = {}
    rest = 0
    waiting = [(node, 1)]
    for _ in range(MOST):
        if not waiting:
            break
        each, factor = waiting.pop()
        each = behind(each)
        number = number_of(each)
        parts = None if number is not None else summands(each)
        if number is not None:
            rest += factor * number
        elif parts is None:
            found[id(each)] = found.get(id(each), 0) + factor
        else:
            waiting += [(part, factor * times) for part, times in parts]
    for each, factor in waiting:
        found[id(each)] = found.get(id(each), 0) + factor
    terms = {key: factor for key, factor in found.items() if factor}
    return terms, rest


def behind(node: Node) -> Node:
    """Look behind what leaves a whole number as it is."""
    while is_same_number(node) and node.realized is None:
        source = node.inputs[0]
        if not source.dtype.is_integer:
            break
        node = source
    return node


def is_same_number(node: Node) -> bool:
    """Tell whether a node of one element is the number that its input is."""
    row = node.row
    return row.keeps_value or row.is_same_bytes or row.is_repeating or row.is_stored


def number_of(node: Node) -> int | None:
    """Give the value of a constant; None for another node."""
    node = behind(node)
    if node.op not in NUMBERS or node.realized is not None:
        return None
    return int(node.arg)


def summands(node: Node) -> list[tuple[Node, int]] | None:
    """Take a sum apart: nodes, and how often each is added; None for what is no sum."""
    if node.realized is not None or not node.dtype.is_integer:
        return None
    inputs = node.inputs
    if node.row.factors:
        return list(zip(inputs, node.row.factors))
    if node.op == "mul":
        left, right = map(number_of, inputs)
        if right is not None:
            return [(inputs[0], right)]
        if left is not None:
            return [(inputs[1], left)]
    return None


def distance(start: Node, stop: Node) -> int | None:
    """Find how far two whole numbers are apart, if that is the same whatever they are."""
    first, last = terms_of(start), terms_of(stop)
    return last[1] - first[1] if first[0] == last[0] else None


def is_whole(node: Any) -> bool:
    """Tell whether something is an integer tensor of one element."""
    return isinstance(node, Node) and node.size == 1 and node.dtype.is_integer


def span_of(start: Any, stop: Any, step: Any) -> Any:
    """Make a span of the ends of a slice, of which one or both are nodes, or a plain slice.

    A slice whose length is not known is read on the host, which raises TraceError in a trace.
    """
    for end in (start, stop, step):
        if isinstance(end, Node) and not is_whole(end):
            text = f"an end of a slice is a {end.dtype.name} tensor of shape {end.shape}"
            raise DTypeError("getitem", text, "use an integer tensor of one element")
    if is_whole(start) and is_whole(stop) and step in (None, 1):
        length = distance(start, stop)
        if length is not None:
            return Span(start.reshape(()), max(length, 0))
    if is_tracing():
        text = "the length of a slice depends on the value of a traced tensor"
        fix = "end it a number after its start, x[pos:pos + 2], or mask what is not wanted"
        raise trace_error("getitem", text, fix)
    return None


def narrow_span(start: Node, length: int, size: int) -> Span:
    """Make a span of what `narrow` is given."""
    if not is_whole(start):
        text = f"the start is a {start.dtype.name} tensor of shape {start.shape}"
        raise DTypeError("narrow", text, "use an integer tensor of one element")
    if not 0 <= length <= size:
        text = f"{length} elements do not fit an axis of size {size}"
        raise AxisError("narrow", text, "stay inside the axis")
    return Span(start.reshape(()), length, True)


def positions(span: Span, size: int, axis: int, is_checked: bool) -> tuple[Node, Node | None]:
    """List the positions of a span, and a bool node that is true where it leaves its axis."""
    start, length = span.start.cast(int64), span.length
    if length > size:
        text = f"{length} elements do not fit axis {axis} of size {size}"
        raise AxisError("getitem", text, "take fewer")
    first = start.binary("less", 0).where(start + size, start)
    failed = None
    if not is_checked:
        failed = either(
            first.binary("less", 0), first.const_like(size - length).binary("less", first)
        )
        if not span.is_narrow:  # from the last elements past the end, to the first ones
            ends = (start + length).const_like(-1).binary("less", start + length)
            failed = either(failed, ends.binary("logical_and", start.binary("less", 0)))
        text = f"{length} elements from a tensor leave axis {axis} of size {size}"
        report(failed, AxisError("getitem", text, "start inside the axis"))
        first = first.binary("maximum", 0).binary("minimum", size - length)
    row = first.reshape((1,)).expand((length,))
    return row + row.iota(0), failed


def either(a: Node, b: Node) -> Node:
    """Tell where one of two conditions holds."""
    return a.binary("logical_or", b)


def numbers_of(numbers: range) -> "np.ndarray[Any, Any]":
    """List the numbers of a range."""
    try:
        check_host("getitem", len(numbers))
        return np.arange(numbers.start, numbers.stop, numbers.step)
    except OverflowError:
        raise AxisError("getitem", f"{numbers} leaves every axis", "use a smaller one") from None
