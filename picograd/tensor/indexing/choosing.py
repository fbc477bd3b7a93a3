"""Elements of the host's memory that a mask chooses: read, written and listed at once.

    x[labels == k].mean(0)          order = rest[iou <= 0.3]          y[mask] = x[mask] @ w

Recorded, what is chosen would have another size each time, and what is chosen by several masks
another set of sizes: a plan for each. So NumPy chooses from little memory, and what reads it has a
plan of one size. Nothing is recorded where nothing tells the difference: there is no gradient,
trace or watcher.
"""

import weakref
from typing import Any

import numpy as np

from picograd.conversion import convert
from picograd.dtype import bool_, uint8
from picograd.engine import carried, pending
from picograd.engine.backends import get_device
from picograd.engine.carried import entries
from picograd.engine.followed import EVENTS, leave
from picograd.engine.native_calls import CODED
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import flat_view, is_watched, leaf
from picograd.engine.tracing import RUNNING
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.row import NUMBERS
from picograd.helpers import product
from picograd.target import is_host
from picograd.tensor.core import cells
from picograd.tensor.core.known_values import below_views, known_values
from picograd.tensor.core.recording import Recorded, wrap
from picograd.tensor.indexing import selecting

DEPTH = 3  # operations, one on another, of a mask that NumPy computes
SMALL = 1 << 14  # elements of what is chosen from
LAST: list["weakref.ref[Node]"] = []  # what a mask chose last
CHOSEN: "weakref.WeakSet[Node]" = weakref.WeakSet()  # whose sizes hang on values

Array = Any


def choose(x: Any, mask: Any) -> Any:
    """Give x[mask], or x[index]; None, and nothing is computed, where it has to be recorded."""
    if mask._node.dtype is not bool_:
        return chosen_again(x, mask)
    if is_held(x, mask):
        with pending.LOCK:
            (found,) = selecting.held(mask._node, values=x._node)
        return wrap(found, False)
    if not is_mask_of(x, mask) or x._tracks or type(x) is not Recorded.kind:
        return None
    with pending.LOCK:
        if not is_at_hand(x):
            return None
        truth = truth_of(mask)
        values = values_of(x._node, SMALL)
        return None if values is None else chosen(values[truth], x._node.dtype)


def chosen_again(x: Any, index: Any) -> Any:
    """Give x[index], where the index was chosen, too: it has another size each time."""
    node, below = x._node, index._node
    if not CHOSEN or type(below) is not Node or type(x) is not Recorded.kind or x._tracks:
        return None
    if below_views(below)[0] not in CHOSEN or not below.dtype.is_integer or not node.shape:
        return None
    if below.dtype is uint8 or node.size > SMALL or not is_unseen(node, below):
        return None
    with pending.LOCK:
        values: Array = values_of(node, SMALL) if is_at_hand(x) else None
        at = None if values is None or not is_at_hand(index) else values_of(below)
        if at is None or product(at.shape) * node.size > SMALL * node.shape[0]:
            return None
        if at.size and not -node.shape[0] <= at.min() <= at.max() < node.shape[0]:
            return None  # what is recorded says so
        return wrap(memory_of(values[at], node.dtype), False)


def places(x: Any) -> list[Array] | None:
    """List the positions of what is not zero, one array an axis; None where NumPy cannot tell."""
    node = x._node
    is_mask = node.dtype is bool_
    if node.size > selecting.SMALL_MASK or not node.shape or not is_unseen(node):
        return None
    if not is_mask and not is_at_hand(x):
        return None
    with pending.LOCK:
        values = truth_of(x) if is_mask else values_of(node)
        return None if values is None else selecting.places_of(values)


def write(table: Any, mask: Any, value: Any, renew: cells.Renew) -> bool:
    """Write table[mask] = value; False, and nothing, where that has to be recorded.

    `renew` gives the live views of a tensor their new nodes.
    """
    node, rank = table._node, len(mask._node.shape)
    if not is_mask_of(table, mask) or table._tracks or table._view is not None:
        return False
    rest = node.shape[rank:]
    is_sized = type(value) is type(table) and value._node.shape not in (rest, ())
    with pending.LOCK:
        is_recorded = table._views is None and CODED.update is not None  # in less time
        if not is_sized and (is_recorded or not cells.is_resting() or leaf_buffer(node) is None):
            return False  # recorded, it is a choice between two values, of no other size
        views = cells.views_of(table)
        if views and (EVENTS.learning is not None or not all(map(cells.is_seen, views))):
            return False
        if not may_write(table, value) or not (is_sized or values_of(mask._node) is not None):
            return False
        leave()  # what is computed here ends no way
        truth = truth_of(mask)
        values = values_to_write(table, value, truth, rest)
        if values is None or cells.address_of(table, views, renew) is None:
            return False
        buffer: Any = leaf_buffer(table._node)
        flat_view(buffer).reshape(node.shape)[truth] = values
    return True


def is_held(x: Any, mask: Any) -> bool:
    """Tell whether a large mask on a GPU has a place for each element, and nothing is recorded."""
    node, flags = x._node, mask._node
    if x._tracks or node.shape != flags.shape or flags.size < selecting.SMALL_MASK:
        return False
    is_free = not (RUNNING.active or RUNNING.traces or node.dtype.is_complex)
    is_beside = node.device == flags.device and not is_host(node.device)
    return is_free and is_beside and type(x) is Recorded.kind and type(node) is Node


def is_mask_of(x: Any, mask: Any) -> bool:
    """Tell whether an index is a mask of little memory, which may be looked at unseen."""
    node, flags = x._node, mask._node
    if flags.dtype is not bool_ or not flags.shape or node.size > SMALL:
        return False
    is_fitting = node.shape[: len(flags.shape)] == flags.shape
    return is_fitting and flags.size <= selecting.SMALL_MASK and is_unseen(flags, node)


def is_unseen(*nodes: Node) -> bool:
    """Tell whether nobody sees that the host looks at its memory now."""
    if RUNNING.active or RUNNING.traces or is_watched():
        return False
    return all(is_host(node.device) for node in nodes)


def is_at_hand(x: Any) -> bool:
    """Tell whether a tensor shows memory that no way has made: the next time it would be none."""
    node, learning = x._node, EVENTS.learning
    if type(node) is not Node or node.dtype.is_narrow_float or node.dtype.is_complex:
        return False
    if learning is not None and learning.is_made(x):
        return False
    return leaf_buffer(node) is not None or leaf_buffer(below_views(node)[0]) is not None


def may_write(table: Any, value: Any) -> bool:
    """Tell whether a value has the kind of a table, and both are in memory or soon computed."""
    node = table._node
    if type(node) is not Node or node.dtype.is_narrow_float:
        return False
    if leaf_buffer(node) is None and not (table.is_leaf and cells.is_cheap(node, node)):
        return False
    if type(value) is not type(table):
        return type(value) in (float, int, bool) and cells.fits(node.dtype, value)
    source = value._node
    is_alike = source.dtype is node.dtype and source.device == node.device
    return is_alike and type(source) is Node and not value._tracks and cells.is_cheap(source, node)


def values_to_write(table: Any, value: Any, truth: Array, rest: Any) -> Any:
    """Compute a table that waits, and what is written to it; None where that does not fit."""
    is_tensor = type(value) is type(table)
    if is_tensor and value._node.shape not in ((int(np.count_nonzero(truth)), *rest), rest, ()):
        return None
    for each in (table, value) if is_tensor else (table,):
        if leaf_buffer(each._node) is None:
            pending.compute([each._node])
    return values_of(value._node, SMALL) if is_tensor else value


def truth_of(mask: Any) -> Array:
    """Compute a mask: by NumPy where it is a few comparisons of memory.

    A way may end where it is computed otherwise.
    """
    node = mask._node
    is_there = leaf_buffer(node) is not None
    if not is_there and (EVENTS.learning is not None or EVENTS.record is not None):
        return selecting.computed_values(node)
    found = values_of(node)
    if found is None or is_there:
        return selecting.computed_values(node) if found is None else found
    is_shown = leaf_buffer(below_views(node)[0]) is not None  # a copy shows what it reads so far
    if not is_shown and not entries(carried.GRADIENTS):
        cpu: Any = get_device(node.device)
        node.realized = cpu.adopt(found, bool_)
        carried.NEW.pop(id(node), None)
        mask.settle()
    return found


def values_of(node: Node, most: int = selecting.SMALL_MASK, depth: int = DEPTH) -> Array:
    """Give values in memory, or comparisons of such: they are the same wherever computed."""
    if type(node) is not Node or node.dtype.is_narrow_float:
        return None
    buffer = leaf_buffer(node)
    if buffer is not None:
        return flat_view(buffer).reshape(node.shape)
    if node.op in NUMBERS and depth < DEPTH:
        return convert(node.arg, node.dtype)  # one for all
    values = known_values(node, most)
    if values is not None:  # a constant may have any class of NumPy
        return convert(values, node.dtype)
    row: Any = OPS.get(node.op)
    is_cast = row is not None and row.keeps_value
    is_known = depth < DEPTH if is_cast else node.dtype is bool_  # a cast may show what it reads
    if row is None or not (depth and is_known and row.is_elementwise):
        return None
    inputs: list[Array] = []
    for child in node.inputs:
        found = values_of(child, most, depth - 1)
        if found is None:
            return None
        inputs.append(found)
    made = convert(inputs[0], node.dtype) if is_cast else row.numpy(*inputs)
    return made if made.shape == node.shape or depth < DEPTH else np.full(node.shape, made)


def chosen(values: Array, dtype: Any) -> Any:
    """Make a tensor of what was chosen; what waits for a choice of another size is computed."""
    before = LAST[0]() if LAST else None
    made = memory_of(values, dtype)
    if before is not None and before.shape != made.shape:
        waiting = [node for node in pending.waiting_nodes() if is_computed(node, made.device)]
        if readers := carried.readers_among(waiting, {before}, {id(leaf_buffer(before))}):
            pending.compute(readers)
    LAST[:] = [weakref.ref(made)]
    return wrap(made, False)


def is_computed(node: Node, device: str) -> bool:
    """Tell whether a node is no view, of a device, and a tensor's that tracks no gradient."""
    owner = pending.owner(node)
    if node.device != device or owner is None or owner._tracks:
        return False
    return leaf_buffer(below_views(node)[0]) is None


def memory_of(values: Array, dtype: Any) -> Node:
    """Make a leaf over an array that nobody else has, and that was chosen."""
    cpu: Any = get_device("cpu")
    held = np.asarray(values)  # an index without axes gives a number, whose memory ends at once
    made = leaf(cpu.adopt(held, dtype), held.shape)
    CHOSEN.add(made)
    return made
