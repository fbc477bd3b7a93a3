"""Values that are known while operations are recorded: in memory already, or constants.

Checks of values (a divisor, a probability) look at these; they never compute anything. What must be
checked in any case, an index, is the matter of `demands`.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from picograd.dtype import int32, int64
from picograd.engine import pending
from picograd.engine.carried import is_detached
from picograd.engine.followed import EVENTS
from picograd.engine.foreign import VIEWS, seen_through
from picograd.engine.native_calls import CODED
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import NUMPY_AXES, buffer_to_numpy, buffer_view, flat_view, is_watched
from picograd.engine.tracing import RUNNING, is_constant, is_tracing
from picograd.errors import ValueRangeError
from picograd.graph.interpret import evaluate
from picograd.graph.node import RESULT, Node
from picograd.graph.row import MEMORY, NUMBERS
from picograd.number import GIVEN
from picograd.target import is_host
from picograd.traced_number import TracedNumber


class Looks(threading.local):
    """How often a thread looked at values: what a function records then hangs on them.

    What is demanded of nodes is listed instead where a list is: it can be demanded of others.
    """

    count = 0
    demands: list[tuple[Node, Callable[[Node], bool]]] | None = None


LOOKS = Looks()
CHECKED = 4096  # values up to this many are looked at
STEPS = 64  # views of a view that are followed
COUNTED = 12  # operations on positions: more are compiled


def known_values(node: Node, most: int = CHECKED) -> Any:
    """Give values that are constant or lie in memory of the CPU, also below views; or None.

    No more than `most`. The array may be the memory itself: it is to be read at once. While a
    function is traced only what it spells out itself is known.
    """
    LOOKS.count += 1
    if node.size > most:
        return None
    source, views = below_views(node)
    if source.op in NUMBERS:
        return np.broadcast_to(np.asarray(source.arg), node.shape)
    if is_tracing() and not is_constant(source):
        return None
    buffer = leaf_buffer(source)
    if buffer is None or not (is_host(node.device) or is_tracing()):
        return None
    if source.dtype.is_narrow_float or not is_host(node.device):  # widened, or fetched, in a copy
        values = buffer_to_numpy(buffer, source.shape) if source.size <= most else None
    else:
        values = flat_view(buffer).reshape(source.shape)
    return None if values is None else seen_through(values, views)


def shown_values(node: Node) -> Any:
    """Copy what a view shows of the host's memory or of a number, where a look is all that takes;
    or None.

    So a piece of what was computed is read without a plan, and what is recorded around it goes on.
    """
    piece = piece_of(node)
    if piece is None or node.size > CHECKED or node.rank > NUMPY_AXES or is_watched():
        return None
    source, views = piece
    if source.op in NUMBERS:
        if node.dtype.is_narrow_float or not is_host(node.device):
            return None
        return np.full(node.shape, source.arg, node.dtype.numpy)
    buffer = source.arg.buffer
    if buffer.dtype.is_narrow_float or not is_host(buffer.device):
        return None
    return np.array(seen_through(flat_view(buffer).reshape(source.shape), views), order="C")


def shown_number(node: Node) -> int | float | None:
    """Read the one element of a piece of the host's memory, or count it; None where that is more
    than a look.
    """
    number: int | float | None = None if CODED.number is None else CODED.number(node)
    if number is None:
        values = shown_values(node)
        values = counted_values(node) if values is None else values
        number = None if values is None else values.item()
    return number


def counted_values(node: Node) -> Any:
    """Count one element that follows from positions and numbers alone, such as the last of an
    `arange`; or None.

    So writes that wait, which a plan would run first, go on waiting. A way that is learnt or
    followed has to see the read.
    """
    if not pending.WRITTEN or node.size != 1 or is_watched():
        return None
    if EVENTS.learning is not None or EVENTS.record is not None:
        return None
    return counted(node, iter(range(COUNTED)))


def counted(node: Node, left: Iterator[int]) -> Any:
    """Compute integers that need no memory, from as many operations as are left at most."""
    is_small = type(node) is Node and node.dtype is int64 and node.size <= CHECKED
    if not is_small or node.realized is not None or next(left, None) is None:
        return None
    if node.op in NUMBERS:
        is_free = type(node.arg) is not TracedNumber and getattr(node.arg, "source", None) is None
        return np.full(node.shape, int(node.arg)) if is_free else None
    if node.row.bounds is None or node.row.numpy is None:
        return None
    inputs = []
    for child in node.inputs:
        inputs.append(counted(child, left))
        if inputs[-1] is None:
            return None
    return evaluate(node, inputs)


def piece_of(node: Node) -> tuple[Node, list[Node]] | None:
    """Find the memory or number that a view shows a piece of, and the views, the last one first;
    or None.
    """
    source, views = node, []
    while type(source) is Node and source.realized is None and source.op in VIEWS:
        views.append(source)
        source = source.inputs[0]
    is_number = source.op in NUMBERS and source.realized is None and type(source.arg) not in GIVEN
    is_memory = source.op in MEMORY and source.arg.buffer is not None
    if all(map(is_detached, views)) or not (is_number or is_memory):
        return None
    if EVENTS.learning is not None:
        if not {id(made) for made, _, _ in EVENTS.learning.made}.isdisjoint(map(id, views)):
            return None  # that of the next step is no view of memory while it is followed
    return source, views


def number_at_hand(node: Node) -> int | None:
    """Give the one number of an index that lies in memory of the host; None for any other.

    A way that is learnt does not look: the next time it may be another.
    """
    if node.shape or node.dtype not in (int64, int32):
        return None
    if EVENTS.learning is not None or RUNNING.traces or is_tracing():
        return None
    number = shown_number(node)
    return None if number is None else int(number)


def below_views(node: Node) -> tuple[Node, list[Node]]:
    """Follow a node down to what it shows; gives that, and the views, the last one first."""
    views: list[Node] = []
    while node.realized is None and node.inputs and len(views) < STEPS and node.op != RESULT:
        row = node.row
        is_shown = row.view is not None and row.is_showing
        if not is_shown and not row.is_stored and not is_widening(node):
            break
        views.append(node)
        node = node.inputs[0]
    return node, views


def values_below(node: Node, views: Sequence[Node]) -> Any:
    """Give what views of a node show in memory; None where it is not there."""
    source, more = below_views(node)
    buffer = leaf_buffer(source)
    whole = None if buffer is None else buffer_view(buffer, source.shape)
    return None if whole is None else seen_through(whole, [*views, *more])


def check_between(op: str, what: str, node: Node, low: float, high: float) -> None:
    """Raise ValueRangeError for a known value outside [low, high]; NaN is outside."""
    values = known_values(node)
    if values is not None and values.size and not ((values >= low) & (values <= high)).all():
        text = f"{what} has values outside [{low}, {high}]"
        raise ValueRangeError(op, text, "pass probabilities")


def is_widening(node: Node) -> bool:
    """Tell whether a node casts integers to a signed dtype that has them all."""
    if not node.row.keeps_value:
        return False
    source, dtype = node.inputs[0].dtype, node.dtype
    fits = dtype.kind == "int" and source.bits < dtype.bits
    return source is dtype or (source.is_integer and fits)
