"""Pieces of memory that a program cuts out: they may begin elsewhere each time.

So `x[i]` of what is in memory is no part of a way (ways.py): it is recorded, and the piece is met
as a tensor in memory is, by the views that it is told by. How events are told is said there, too.
"""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from picograd.buffer import Storage
from picograd.engine import carried, foreign
from picograd.engine.followed import CUTTING, met_with
from picograd.engine.foreign import is_shared
from picograd.graph.node import Node, is_plain_leaf
from picograd.graph.starts import placed, starts_of
from picograd.number import GIVEN
from picograd.tensor.core.autograd import leaf_of
from picograd.tensor.core.recording import Recorded

IS, MADE, MET, NEW, MANY, NAMED = range(6)  # how a value is told: see ways.py
BASIC = frozenset((int, slice, type(None), EllipsisType))
VIEWS = 8  # of a tensor that is met, of memory
Told = tuple[int, Any]
Facts = tuple[Any, ...]


def facts_of(tensor: Any) -> Facts | None:
    """Tell what counts of a tensor that was not met before; None for one that cannot be told.

    It is in memory, or shows what is: the last of the facts are the views.
    """
    node = tensor._node
    views, end = shown_by(node)
    is_leaf = leaf_of(node) is tensor  # a parameter shows the memory of what it was made of
    if end is None or (views and tensor._tracks and not is_leaf):
        return None
    if not views and tensor._view is not None:
        return None
    is_theirs = bool(foreign.SHARED) and is_shared(end)
    if tensor._tracks and (tensor._hooks is not None or is_theirs):
        return None
    asks = tensor._tracks, tensor._is_frozen, is_leaf, is_theirs
    return type(tensor), node.shape, node.dtype, node.device, *asks, views


def shown_by(node: Node) -> tuple[tuple[Any, ...], Node | None]:
    """Describe the views by which a node shows memory, or a constant, and find that; or None."""
    if node.realized is not None or type(node.arg) is Storage:
        return (), node
    views: list[Any] = []
    while node.op in carried.FREE and node.realized is None and len(views) < VIEWS:
        # plans take a position that a user gave as an argument
        arg = placed(node, lambda start: "at")
        views.append((node.op, arg, node.shape))
        node = node.inputs[0]
    if is_plain_leaf(node) and type(node.arg) not in GIVEN:
        value = repr(node.arg)
        views.append((node.op, value, node.dtype, node.shape))
        return tuple(views), node
    is_memory = type(node.arg) is Storage and node.realized is None
    return tuple(views), node if is_memory else None


def may_cut(function: Any, args: tuple[Any, ...]) -> bool:
    """Tell whether a call may cut a piece out of memory that begins where a user says.

    It may begin elsewhere the next time. So it is no part of a way, and the piece is met.
    """
    if function not in CUTTING or len(args) != 2 or not isinstance(args[0], Recorded):
        return False
    tensor, items = args
    node = tensor._node
    if tensor._tracks or type(node) is not Node:
        return False
    _, end = shown_by(node)
    if end is None:
        return False
    listed = items if type(items) is tuple else (items,)
    is_basic = all(type(item) in BASIC for item in listed)
    return is_basic and any(map(is_placed, listed))


def is_placed(item: Any) -> bool:
    """Tell whether an index begins where a user says."""
    start = item.start if type(item) is slice else item
    return type(start) is int


def may_be_placed(several: Sequence[Told]) -> bool:
    """Tell whether an index among what an event is given may begin where a user says."""
    for kind, told in several:
        if kind == MANY and may_be_placed(told[1]):
            return True
        plain = told if type(told) is tuple else (told,)
        if kind == IS and any(type(each) in (int, tuple) for each in plain):
            return True
    return False


def piece(function: Any, args: tuple[Any, ...]) -> Any:
    """Cut a piece; None where it is none."""
    found = function(*args)
    views, end = shown_by(found._node)
    if end is None:
        return None
    met = met_with(found._node, views)
    return found if any(map(starts_of, met)) else None
