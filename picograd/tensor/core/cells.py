"""Writes of numbers or rows, which a loop in Python chose, into memory of the host: at once.

    table[i, j] = 0.5           table[i + 1] = table[i]           table[i, j] = table[i - 1, j] + 1
    table[i, a:b] = 0.5         table[a:b] = rows                 table[i] += table[j]
    table[:, j] = 0.5           table[a:b, ::2] = columns         table[i].copy_(row)

Recorded, each would be a write of the whole table that waits, and a round of the loop another graph
for each order of its branches. Nothing is recorded here, where nothing tells the difference: no
gradient, trace, view or waiting reader is there, and a way that is followed has not begun.
"""

import operator
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from picograd.buffer import Storage
from picograd.engine import carried, foreign, pending
from picograd.engine.carried import ALONE, entries, held
from picograd.engine.followed import EVENTS, leave
from picograd.engine.native_calls import CODED
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import NUMBER_KINDS, flat_view, is_watched, number_in
from picograd.engine.tracing import RUNNING
from picograd.graph.node import Node, is_plain_leaf
from picograd.graph.ops import OPS
from picograd.graph.row import NUMBERS
from picograd.helpers import product
from picograd.number import WHOLE, GivenInt
from picograd.target import is_host
from picograd.tensor.core.aliasing import is_part, show_items
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.known_values import shown_values

FEW = 16  # operations of a value that is computed for this alone, views aside
OFTEN = 1  # writes from which on a table that waits is computed
Renew = Callable[[Any], None]
EXACT = 1 << 53  # integers up to this are floats, too
INDICES = {int, GivenInt, *WHOLE}
MOST = 64  # elements that are written one by one
SHORT = 1 << 14  # elements of a range that is copied
STEPS: dict[Any, Any] = {  # by what a row is in NumPy
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
}  # fmt: skip
Place = int | tuple[Any, ...]  # where elements begin; or an index of NumPy's, of those apart


def write(table: Any, items: Any, value: Any, renew: Renew) -> bool:
    """Write what an index of whole numbers chooses; False, and nothing, where that cannot be.

    `renew` gives the live views of a tensor their new nodes.
    """
    if RUNNING.active or RUNNING.traces or is_followed(table) or table._view is not None:
        return False
    if type(items) is not tuple:
        items = (items,)
    chosen = place(table._node.shape, items) or places_apart(table._node.shape, items)
    if chosen is None or is_watched():
        return False
    offset, rest = chosen
    with pending.LOCK:
        views = views_of(table)
        if views and (EVENTS.learning is not None or not all(map(is_seen, views))):
            return False
        if any(value is view for view in views) and is_part(value, table, list(items)):
            if not is_resting() or type(table._node.arg) is not Storage:
                return False
            table._node.arg.version += 1  # `x[i] += 1` gives it back: see `put_back`
            return True
        if items and type(items[-1]) is slice and getattr(value, "_view", None) is not None:
            return False  # it is looked whether they overlap
        return is_written(table, views, offset, rest, value, renew)


def shown_by(view: Any) -> tuple[Any, Place, list[Any], list[Node]] | None:
    """Find the table of which a view shows some elements, where these are, views and readers.

    None where a write through it may be part of a way, or be seen by others.
    """
    shows = view._view
    if RUNNING.active or RUNNING.traces or EVENTS.learning is not None or not is_resting():
        return None
    if shows.function is not show_items or is_watched():
        return None
    table = shows.base
    if table._view is not None or is_followed(table) or leaf_buffer(table._node) is None:
        return None
    shape, items, views = table._node.shape, tuple(shows.operands[0]), views_of(table)
    chosen = place(shape, items) or places_apart(shape, items)
    readers = few_readers(table, views)
    if chosen is None or readers is None or not all(map(is_seen, views)):
        return None
    return table, chosen[0], views, readers


def write_view(view: Any, node: Node, renew: Renew) -> bool:
    """Compute a value and write it over what a view shows of a table, where that may be."""
    found = shown_by(view)
    if found is None or not is_cheap(node, found[0]._node):
        return False
    table, offset, views, readers = found
    values = None if readers else values_at_hand(node)
    if values is not None:
        move_on(table, views, renew)
    else:
        pending.compute([node, *readers])  # which see what was before
        values = values_at_hand(node)
        if values is None or address_of(table, views, renew) is None:
            return False
    elements_of(table, offset, node.shape)[...] = values
    return True


def values_at_hand(node: Node) -> Any:
    """Give values that lie in memory, or that a look gives, as an array; None for others."""
    while carried.is_detached(node) and node.realized is None:
        node = node.inputs[0]
    buffer = leaf_buffer(node)
    if buffer is None:
        return shown_values(node)
    return flat_view(buffer).reshape(node.shape) if is_host(buffer.device) else None


def elements_of(table: Any, offset: Place, shape: Any) -> Any:
    """Show elements of a table in memory as an array, for as long as the memory is held."""
    buffer: Any = leaf_buffer(table._node)
    whole = flat_view(buffer)
    if type(offset) is int:
        return whole[offset : offset + product(shape)].reshape(shape)
    return whole.reshape(table._node.shape)[offset]


def step_view(view: Any, op: str, other: Any, renew: Renew) -> bool:
    """Add a number to the row or cell that a view shows, or subtract it, or multiply by it.

    Of two float32 numbers the sum, and the product, in float64 rounds to that in float32. The
    number of a tensor is computed before.
    """
    meaning, dtype, count = OPS[op].numpy, view._node.dtype, view._node.size
    step, kind = STEPS.get(meaning), NUMBER_KINDS.get(dtype.name)
    if view._view is None or kind is None:
        return False
    if isinstance(other, type(view)):
        if other._node.shape:
            is_plain = step is not None or (meaning is np.divide and dtype.is_float)
            return is_plain and step_by_row(view, meaning, other, renew)
        other = number_before(view, other)
    if step is None or count > MOST:
        return False
    if not fits(dtype, other) or dtype.kind == "bool" or (found := shown_by(view)) is None:
        return False
    table, offset, views, readers = found
    if readers or type(offset) is tuple:
        return False
    buffer: Any = leaf_buffer(table._node)
    number = kind(other).value
    cells = (kind * count).from_address(buffer.address + offset * dtype.itemsize)
    values = [step(each, number) for each in cells]
    if not all(fits(dtype, each) for each in values):
        return False
    move_on(table, views, renew)
    cells[:] = values
    return True


@pending.locked
def step_by_row(view: Any, step: Any, other: Any, renew: Renew) -> bool:
    """Change what a view shows of a table by a tensor in memory, element by element; or copy that,
    without a step.

    One operation of NumPy's rounds as one of a kernel does.
    """
    is_known = step is None or view._node.dtype.kind != "bool"
    if not is_known or not are_fitting(view._node, other._node) or other._tracks or foreign.SHARED:
        return False
    if other._view is not None and not are_apart(view, other):
        return False
    values = values_at_hand(other._node)
    found = None if values is None else shown_by(view)
    if found is None or found[3] or leaf_buffer(found[0]._node) is leaf_buffer(other._node):
        return False
    table, offset, views, _ = found
    move_on(table, views, renew)
    elements = elements_of(table, offset, view._node.shape)
    if step is None:
        elements[...] = values
    else:
        with np.errstate(all="ignore"):
            step(elements, values, out=elements)
    return True


def are_fitting(node: Node, other: Node) -> bool:
    """Tell whether a few numbers of one dtype fit those that they change."""
    is_alike = other.dtype is node.dtype and other.device == node.device
    return is_alike and other.shape == node.shape[node.rank - other.rank :] and node.size <= SHORT


def are_apart(view: Any, other: Any) -> bool:
    """Tell whether two views are of other tensors, or show pieces of one table that lie apart, each
    without gaps.
    """
    if end_of(view) is not end_of(other):
        return True
    shows, table = (view._view, other._view), view._view.base
    if any(each is None or each.function is not show_items for each in shows):
        return False
    if other._view.base is not table or table._view is not None:
        return False
    pieces = [place(table._node.shape, tuple(each.operands[0])) for each in shows]
    if None in pieces:
        return False
    (first, rest), (second, others) = pieces  # type: ignore[misc]
    return first + product(rest) <= second or second + product(others) <= first


def end_of(tensor: Any) -> Any:
    """Find the tensor whose memory a view shows in the end."""
    while tensor._view is not None:
        tensor = tensor._view.base
    return tensor


def number_before(view: Any, other: Any) -> Any:
    """Compute the number that is about to change what a view shows; None where it is left."""
    node, base = other._node, view._view.base
    if node.shape or node.dtype is not view._node.dtype or node.device != view._node.device:
        return None
    is_free = EVENTS.learning is None and is_resting() and not (RUNNING.active or RUNNING.traces)
    if not is_free or other._tracks or is_followed(base) or is_watched():
        return None
    if foreign.SHARED or entries(pending.WRITES) or leaf_buffer(base._node) is None:
        return None
    if leaf_buffer(node) is None:
        if not is_cheap(node, base._node):
            return None
        pending.compute([node])
        leave()  # no way begins inside an event
    buffer = leaf_buffer(other._node)
    return None if buffer is None else number_in(buffer)


def is_followed(table: Any) -> bool:
    """Tell whether gradients pass a table, or may not be left out: not a leaf in `no_grad`."""
    return table._tracks and (MODE.enabled or not table.is_leaf)


def views_of(table: Any) -> list[Any]:
    """List the live views of a tensor."""
    return [view for each in table._views or () if (view := each()) is not None]


def is_seen(view: Any) -> bool:
    """Tell whether a view waits, no other shows it, and no gradient passes it."""
    return view._views is None and not view._tracks and view._node.realized is None


def is_written(
    table: Any, views: list[Any], offset: Place, rest: Any, value: Any, renew: Renew
) -> bool:
    """Write over some elements; False, and nothing, where that cannot be."""
    kind = type(value)
    if kind is type(table):
        return write_values(table, views, offset, rest, value, renew)
    if isinstance(value, np.generic):
        value = value.item()
    elif kind not in (float, int, bool):
        return False
    return is_resting() and write_number(table, views, offset, rest, value, renew)


def is_resting() -> bool:
    """Tell whether no way has begun: what is written is no part of one."""
    log = EVENTS.learning
    return EVENTS.record is None and (log is None or not (log.events or log.event))


def place(shape: Any, items: tuple[Any, ...]) -> tuple[int, Any] | None:
    """Find where the elements that whole numbers choose begin, and the shape of these.

    The last item may be a range, of few elements; None for any other index.
    """
    if len(items) > len(shape):
        return None
    offset, rest = 0, shape[len(items) :]
    for number, (item, size) in enumerate(zip(items, shape), 1):
        if type(size) is not int:
            return None
        if type(item) is slice and number == len(items) and item.step is None:
            if not INDICES.issuperset(map(type, (item.start or 0, item.stop or 0))):
                return None
            at, stop, _ = item.indices(size)
            rest = stop - at, *rest
            if not 0 < product(rest) <= SHORT:
                return None
        elif type(item) not in INDICES or not -size <= (at := operator.index(item)) < size:
            return None
        offset = offset * size + (at + size if at < 0 else at)
    return offset * product(shape[len(items) :]), rest


def places_apart(shape: Any, items: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any] | None:
    """Find which elements whole numbers and ranges choose, few and apart, as NumPy takes them.

    None for any other index.
    """
    if any(item is Ellipsis for item in items):
        at = next(number for number, item in enumerate(items) if item is Ellipsis)
        whole = slice(None), *[slice(None)] * (len(shape) - len(items))
        items = *items[:at], *whole[: len(shape) - len(items) + 1], *items[at + 1 :]
    if len(items) > len(shape):
        return None
    rest = []
    for item, size in zip(items, shape):
        if type(size) is not int:
            return None
        if type(item) is slice:
            ends = item.start or 0, item.stop or 0, 1 if item.step is None else item.step
            if not INDICES.issuperset(map(type, ends)) or ends[2] < 1:
                return None
            rest.append(len(range(*item.indices(size))))
        elif type(item) not in INDICES or not -size <= item < size:
            return None
    found = *rest, *shape[len(items) :]
    return (items, found) if 0 < product(found) <= SHORT else None


def write_number(
    table: Any, views: list[Any], offset: Place, rest: Any, value: Any, renew: Renew
) -> bool:
    """Write one number over some elements."""
    dtype, count = table._node.dtype, product(rest)
    kind = NUMBER_KINDS.get(dtype.name)
    if kind is None or not fits(dtype, value):
        return False
    address = address_of(table, views, renew)
    if address is None:
        return False
    if count == 1 and type(offset) is int:
        kind.from_address(address + offset * dtype.itemsize).value = value
    else:
        with np.errstate(over="ignore"):  # of a number that the dtype has no room for
            elements_of(table, offset, rest)[...] = value
    return True


def fits(dtype: Any, value: Any) -> bool:
    """Tell whether a number has the kind of a dtype, or is told by it exactly."""
    kind = type(value)
    if dtype.is_float:
        return kind is float or (kind is int and -EXACT <= value <= EXACT)
    if kind is bool or dtype.kind not in ("int", "uint"):
        return kind is bool and dtype.kind == "bool"
    least, most = dtype.ends
    return kind is int and least <= value <= most


def write_values(
    table: Any, views: list[Any], offset: Place, rest: Any, value: Any, renew: Renew
) -> bool:
    """Write the elements of another tensor, which has the last axes of what is written."""
    dtype, node, count = table._node.dtype, value._node, pending.recorded()
    is_fitting = node.dtype is dtype and node.device == table._node.device
    is_fitting = is_fitting and node.shape == rest[len(rest) - len(node.shape) :]
    if not is_fitting or value._tracks or not is_free(table, views, value):
        return False
    values = values_at_hand(node) if is_resting() else None
    if values is None:
        if foreign.SHARED or not is_cheap(node, table._node):
            return False
        leave()  # what is computed here ends no way
        if leaf_buffer(table._node) is None:
            pending.compute([table._node])
        pending.compute([node])
        values = values_at_hand(value._node)
    is_known = pending.recorded() == count  # free, as before: nothing was recorded meanwhile
    address = address_of(table, views, renew, is_known) if is_resting() else None
    if address is None or values is None:
        return False
    elements_of(table, offset, rest)[...] = values
    return True


def is_cheap(node: Node, table: Node) -> bool:
    """Tell whether a value is computed from memory by few operations, none of a leaf that asks.

    The table that it is for will be in memory.
    """
    stack, seen, count = [node], {node, table}, 0
    while stack:
        each = stack.pop()
        owner = None if each.leaf is None else each.leaf()
        if each.is_asked or (owner is not None and owner._tracks):
            return False
        if each.realized is None and each.inputs:
            count += each.op not in carried.FREE
            for child in each.inputs:
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        if count > FEW:
            return False
    return True


def is_free(table: Any, views: list[Any], *values: Any) -> bool:
    """Tell whether a table is in memory of the host that nobody still has to read, or to write.

    One that waits is as good where it was written before.
    """
    return few_readers(table, views, *values) == []


def few_readers(table: Any, views: list[Any], *values: Any) -> list[Node] | None:
    """List what waits and reads a table in memory of the host, few and cheap; None for others.

    Its views, and values that are about to be written, do not count.
    """
    node = table._node
    if not is_host(node.device) or entries(pending.WRITES) or foreign.is_shared(node):
        return None
    if leaf_buffer(node) is None:
        is_due = table._version >= OFTEN or is_fill(node)
        return [] if table.is_leaf and is_due else None
    del node  # counted else
    if has_memory_alone(table, views):  # whatever waits
        return []
    node, buffer = table._node, leaf_buffer(table._node)
    if waiting := pending.waiting_nodes():
        passed = {id(each._node) for each in (*views, *values)}
        waiting = [each for each in waiting if id(each) not in passed]
        waiting = carried.readers_among(waiting, {node}, {id(buffer)}) if waiting else []
    is_cheaply = len(waiting) <= FEW and all(is_cheap(each, node) for each in waiting)
    return waiting if is_cheaply else None


def is_fill(node: Node) -> bool:
    """Tell whether a table that waits is one number, or a copy of memory: machine code fills it in.

    Numbers not near steps that may be followed: these have one plan, from the first on.
    """
    if CODED.compute is None:
        return False
    if node.row.is_stored:
        source = node.inputs[0]
        return is_resting() and (leaf_buffer(source) is not None or is_plain_leaf(source))
    if EVENTS.after is not None:
        return False
    while node.op in carried.FREE and node.realized is None:
        node = node.inputs[0]
    return node.op in NUMBERS


def address_of(table: Any, views: list[Any], renew: Renew, is_known: bool = False) -> int | None:
    """Move a table on to its next value, which is about to be written, and give its address.

    None where others read or write what it is now, unless that `is_known`, or it is in no memory
    of the host.
    """
    if leaf_buffer(table._node) is None and is_free(table, views):
        pending.compute([table._node])
    is_here = leaf_buffer(table._node) is not None  # who holds it is counted
    if not is_here or not is_resting() or not (is_known or is_free(table, views)):
        return None
    buffer = leaf_buffer(table._node)
    move_on(table, views, renew)
    return None if buffer is None else buffer.address


def move_on(table: Any, views: list[Any], renew: Renew) -> None:
    """Give a table in memory its next value, in the same leaf where that may stay."""
    table._history = None
    CODED.count_computation()  # machine code makes the next views
    if has_alone(table, views):
        table._node.arg.count_writes()
        return
    node = table._node
    after = pending.next_leaf(node)
    after.leaf = weakref.ref(table)
    pending.LIVE.move(id(node), id(after), table)
    table._node = after
    if views:
        renew(table)


def has_alone(table: Any, views: list[Any]) -> bool:
    """Tell whether a table and its views alone hold its leaf, and what is between: it may stay."""
    if held(table, "_node") != ALONE + len(views) or type(table._node.arg) is not Storage:
        return False
    return all(shows_alone(view, table._node) for view in views)


def has_memory_alone(table: Any, views: list[Any]) -> bool:
    """Tell whether nothing else leads to the memory of a table: no node that waits, either."""
    if not has_alone(table, views) or held(table._node, "arg") != ALONE:
        return False
    return held(table._node.arg, "buffer") == ALONE


def shows_alone(view: Any, leaf: Node) -> bool:
    """Tell whether nobody but a view holds what leads from it to a leaf."""
    if held(view, "_node") != ALONE:
        return False
    node = view._node
    while node.op in carried.FREE and held(node, "inputs") == ALONE:
        if node.inputs[0] is leaf:
            return True
        if getrefcount(node.inputs[0]) != ALONE:
            return False
        node = node.inputs[0]
    return False
