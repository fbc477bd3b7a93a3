"""Views that alias, on nodes: how a view was made, and how a write through it reaches its base.

The graph is pure: a tensor that views another has a node of its own. What makes it a view is
remembered beside it (`View`), and a write through it becomes a new value of the base: every step
of the view is taken back, the value written over the elements that it shows. `recording.write`
does that, and gives all other live views of the base their new nodes.

The steps of a view are found by recording it on a stand-in for its base: a chain of moves.

    x[1]     slice, reshape
    x.T      permute
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from picograd.buffer import Storage
from picograd.dtype import DType, int64
from picograd.engine.followed import EVENTS
from picograd.engine.tracing import RUNNING, caller_of
from picograd.errors import ShapeError
from picograd.graph import build, parts
from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.graph.shape import Shape, Strides
from picograd.helpers import product, row_major
from picograd.late_methods import dataclass
from picograd.number import GivenInt, once_varied
from picograd.tensor.core.repeated import REPEATED, Operands, Unlike
from picograd.tensor.indexing import indexing, selecting
from picograd.tensor.shaping import bits, movement
from picograd.traced_number import SIZED, TracedNumber

STRIDES: dict[Any, Strides | None] = {}  # of views, by what they follow from
STRIDES_LIMIT = 4096
PLAIN = {int, GivenInt, slice, type(None), type(...)}  # items of an index that say what they choose


@dataclass(slots=True)
class View:
    """How a tensor shows the elements of another, its base, which may be a view itself.

    `passes` is False where gradients stop: for `detach`, and inside no_grad (`in_no_grad`).
    `always` holds for what is a view whatever its strides are; else a reshape may be a copy.
    """

    base: Any
    function: Callable[..., Node]
    operands: tuple[Any, ...]
    passes: bool
    in_no_grad: bool
    always: bool
    known: tuple[Strides | None] | None = None  # the strides, once they are asked
    moves: dict[Any, list[Node] | None] | None = None  # by what the base is

    def on(self, node: Node) -> Node:
        """Record this view of another value of its base."""
        moves = self.moves.get((node.shape, node.dtype, node.device)) if self.moves else None
        if moves is None or self.function is not show_items or RUNNING.active or SIZED:
            return self.function(node, *self.operands)
        return moved(node, moves)

    def steps(self, shown: Node | None = None) -> list[Node] | None:
        """List the moves that make the view of a stand-in; None if it computes or gathers.

        `shown` is the view of its base as that is now, where it may be at hand.
        """
        base: Node = self.base.node
        start = Node("buffer", (), Storage(None), base.shape, base.dtype, base.device)
        key = base.shape, base.dtype, base.device
        if RUNNING.active or SIZED:
            return moves_between(start, self.on(start))
        if self.moves is None:
            self.moves = {}
        if key not in self.moves:
            chain = None if shown is None else moves_between(base, shown)
            shown = self.on(start) if chain is None else moved(start, chain)
            self.moves[key] = moves_between(start, shown)
        return self.moves[key]

    def strides(self, shown: Node | None = None) -> Strides | None:
        """Find the strides in elements of the memory shown; None for a copy.

        `shown` is the node of the view, where that is at hand.
        """
        if self.known is None and self.function is build.detach:
            self.known = (strides_of(self.base),)
        if self.known is None:
            key = self.key()
            if key is None:
                self.known = (self.find_strides(shown),)
            else:
                if key not in STRIDES:
                    if len(STRIDES) >= STRIDES_LIMIT:
                        STRIDES.clear()
                    STRIDES[key] = self.find_strides(shown)
                self.known = (STRIDES[key],)
        return self.known[0]

    def key(self) -> Any:
        """Say what the strides follow from; None where that is not known, or sizes vary."""
        if RUNNING.active or SIZED:
            return None
        base = self.base
        operands = self.operands
        cut = None
        if operands and is_definition(operands[0]):  # one of the pieces that it cuts
            cut = operands[0]
            operands = operands[1:]
        try:
            told = cut, Operands().key(operands)
        except Unlike:
            return None
        return self.function, told, self.always, base.shape, base.dtype, strides_of(base)

    def find_strides(self, now: Node | None) -> Strides | None:
        """Follow the strides through the steps of the view."""
        if self.function is movement.diagonal:
            return self.diagonal_strides()
        if self.function is strided:
            return tuple(self.operands[1])
        if type(now) is not Node:  # what a stand-in reads may not be looked at
            now = None
        shown = (now or self.on(self.base.node)).dtype
        if shown is not self.base.dtype and not (shown.is_complex or self.base.dtype.is_complex):
            return self.bit_strides(shown.itemsize)
        steps = self.steps(now)
        strides: Strides | None = strides_of(self.base)
        for step in [] if steps is None else steps:
            rule = step.row.view
            if strides is not None and rule is not None:
                strides = rule.strides(step, strides)
        if steps is not None and strides is not None:
            return strides
        return row_major(self.on(self.base.node).shape) if self.always else None

    def bit_strides(self, width: int) -> Strides:
        """Count the strides in elements of another width; those of the last axis lie together."""
        strides, own = strides_of(self.base), self.base.dtype.itemsize
        if own == width:
            return strides
        return (*(each * own // width for each in strides[:-1]), 1)

    def of_diagonal(self) -> tuple[int, int, int]:
        """Give the offset and axes of `diagonal`, where they were left out too."""
        return (*self.operands, *(0, 0, 1)[len(self.operands) :])

    def diagonal_strides(self) -> Strides:
        """Move along two axes at once; that axis comes last."""
        strides = strides_of(self.base)
        _, first, second = self.of_diagonal()
        a, b = first % len(strides), second % len(strides)
        rest = [each for axis, each in enumerate(strides) if axis not in (a, b)]
        return (*rest, strides[a] + strides[b])


def is_definition(function: Any) -> bool:
    """Tell whether a function knows nothing but what it is given."""
    if type(function) is not FunctionType:
        return False
    return function.__closure__ is None or function in REPEATED


def offset_of(tensor: Any) -> int | None:
    """Find the first element that a tensor shows in the memory it is in; None if unknown."""
    views: list[tuple[View, DType]] = []
    while (view := tensor._view) is not None and view.strides() is not None:
        views.append((view, tensor.dtype))
        tensor = view.base
    before: int | None = 0
    for each, dtype in reversed(views):
        before = offset_in(each, before, dtype)
    return before


def offset_in(view: View, before: int | None, dtype: DType) -> int | None:
    """Find the first element that a view of a dtype shows, whose base begins at `before`."""
    if before is None:
        return None
    strides, arg, own = strides_of(view.base), view.operands, view.base.dtype
    if dtype is not own:
        before = before * own.itemsize // dtype.itemsize
        if not (dtype.is_complex or own.is_complex):
            return before
    if view.function is movement.diagonal:
        offset, first, second = view.of_diagonal()
        along = strides[second if offset > 0 else first]
        return before + abs(offset) * along
    if view.function is strided:
        return arg[2] + before if strides == row_major(view.base.shape) else None
    steps = view.steps()
    if steps is None:
        return None
    for step in steps:
        rule: Any = step.row.view
        moved = rule.strides(step, strides)
        if moved is None or before is None:
            return None
        before += 0 if rule.offset is None else rule.offset(step, strides)
        strides = moved
    return before


def strides_of(tensor: Any) -> Strides:
    """Find the strides of a tensor as PyTorch's would be; that of a copy are row-major.

    Those of what it shows are found first, so that views of views may be as many as they like.
    """
    unknown, below = [], tensor._view and tensor._view.base
    while below is not None and below._view is not None and below._view.known is None:
        unknown.append(below)
        below = below._view.base
    for each in reversed(unknown):
        each._view.strides(getattr(each, "_node", None))
    found = None if tensor._view is None else tensor._view.strides(getattr(tensor, "_node", None))
    return row_major(tensor.shape) if found is None else found


def as_passed(tensor: Any, asked: str) -> Any:
    """Find what has the layout that code asks for: an argument of a trace has the caller's."""
    views, root = [], tensor
    while root._view is not None:
        views.append(root._view)
        root = root._view.base
    passed = caller_of(root, asked) if RUNNING.traces else root
    if passed is root or (strides_of(passed) == row_major(passed.shape) and not offset_of(passed)):
        return tensor
    if not views:
        return passed
    view = replace(composed(views), base=passed)
    return SimpleNamespace(_view=view, shape=tensor.shape, dtype=tensor.dtype)


def is_repeating(tensor: Any) -> bool:
    """Tell whether a tensor shows one element several times along an axis, as `expand` does."""
    return any(not step and size > 1 for step, size in zip(strides_of(tensor), tensor.shape))


def is_folded(shape: Shape, strides: Strides) -> bool:
    """Tell whether elements may be shown twice: a step is no further than finer axes reach."""
    if any(type(each) is TracedNumber for each in (*shape, *strides)):
        return any(not step and size > 1 for step, size in zip(strides, shape))
    reached = 0
    for step, size in sorted(zip(strides, shape)):
        if size > 1 and step <= reached:
            return True
        reached += step * (size - 1)
    return False


def is_overlapping(first: Any, second: Any, is_fitted: bool = False) -> bool:
    """Tell whether two tensors of one memory share some elements, but are not the same.

    As PyTorch does: of dense tensors alone, by the ranges that they lie in. `is_fitted` where one
    is given the axes of the other before.
    """
    ranges = [range_of(first), range_of(second)]
    if None in ranges:
        return False
    (start, end), (begin, stop) = ranges  # type: ignore[misc]
    if (start, end) == (begin, stop):
        return steps_of(first, is_fitted) != steps_of(second, is_fitted)
    return bool(start < stop and begin < end)


def steps_of(tensor: Any, is_fitted: bool) -> Strides:
    """List the strides of a tensor; those of axes of one element mean nothing once it is fitted."""
    strides = strides_of(tensor)
    if not is_fitted:
        return strides
    return tuple([step for step, size in zip(strides, tensor.shape) if size != 1])


def range_of(tensor: Any) -> tuple[int, int] | None:
    """Find where a dense tensor begins and ends in its memory; None for one with gaps."""
    offset = offset_of(tensor)
    size = math.prod(tensor.shape)
    is_traced = any(type(n) is TracedNumber for n in (offset, *tensor.shape))
    if offset is None or is_traced or not size:
        return None
    axes = sorted((s, n) for s, n in zip(strides_of(tensor), tensor.shape) if n > 1)
    reached = 1
    for step, count in axes:
        if step != reached:
            return None
        reached *= count
    return offset, offset + size


def composed(views: Sequence[View]) -> View:
    """Make one view of a chain of them, the last first."""
    return View(views[-1].base, show, (views[::-1],), True, False, True)


def show(node: Node, views: Sequence[View]) -> Node:
    """Record a chain of views."""
    for view in views:
        node = view.on(node)
    return node


def check_target(op: str, tensor: Any) -> None:
    """Raise ShapeError for a write through a view that shows one element several times."""
    view = tensor._view
    if view.function is build.detach and view.base._view is None:
        return
    shape = tensor.shape
    if 0 not in shape and is_repeating(tensor):
        text = f"several elements of the expanded tensor {shape} are one element in memory"
        raise ShapeError(op, text, "call .clone() first")


def written(view: View, base: Node, value: Node, is_repeated: bool = False) -> Node:
    """Compute the base after a value was written through its view, which may repeat elements."""
    moves = moves_of(view)
    if moves is not None:
        return parts.put(base, value, tuple((step.op, step.arg) for step in moves))
    steps = view.steps()
    show = view.on if steps is None else lambda node: moved(node, passing(steps))
    return scattered(show, base, value, is_repeated)


def passing(steps: Sequence[Node]) -> list[Node]:
    """List the moves that change where elements are."""
    return [step for step in steps if step.row.role is not Role.PASS]


def moves_of(view: View) -> list[Node] | None:
    """List the moves of a view that can be taken back; None if some cannot."""
    steps = view.steps()
    moves = [] if steps is None else passing(steps)
    rules = [step.row.view for step in moves]
    can = steps is not None and all(rule is not None and rule.back is not None for rule in rules)
    return moves if can else None


def moves_between(base: Node, shown: Node) -> list[Node] | None:
    """List the moves that lead from a node to what shows it; None where others are among them."""
    chain, node = [], shown
    while node is not base:
        if not node.inputs or node.row.view is None:
            return None
        chain.append(node)
        node = node.inputs[0]
    return chain[::-1]


def moved(node: Node, steps: Sequence[Node]) -> Node:
    """Apply the moves of a view to a node of another dtype."""
    for step in steps:
        node = Node(step.op, (node,), step.arg, step.shape, node.dtype, node.device)
    return node


def scattered(show: Callable[[Node], Node], base: Node, value: Node, is_repeated: bool) -> Node:
    """Write a value through a view of any kind: what it shows of the positions is an index.

    Where a view shows elements several times, those that change are written alone: what another
    window still shows as it was must not undo them.
    """
    count = product(base.shape)
    places = Node("iota", (), 0, (count,), int64, base.device).reshape(base.shape)
    size = (value.size,)
    index = show(places).reshape(size)
    inside = changed(show(base), value).reshape(size) if is_repeated else None
    flat = base.reshape((count,))
    flat = flat.scatter(value.reshape(size), [index], (0,), None, inside)
    return flat.reshape(base.shape)


def changed(before: Node, after: Node) -> Node:
    """Mark where two values differ; NaN does not differ from NaN."""
    is_same = after.binary("equal", before)
    if before.dtype.is_differentiable:
        was_nan, is_nan = (
            each.binary("equal", each).binary("equal", False) for each in (before, after)
        )
        both_nan = was_nan.binary("logical_and", is_nan)
        is_same = is_same.binary("logical_or", both_nan)
    return is_same.binary("equal", False)


def is_basic(items: Any) -> bool:
    """Tell whether an index expression is made of numbers, ranges, None and ... alone: a view.

    An integer tensor without axes is a number too.
    """
    if PLAIN.issuperset(map(type, items)):
        return True
    kinds = (int, np.integer, slice, type(None), type(...), indexing.Span)
    return all(
        (isinstance(item, kinds) and not isinstance(item, bool)) or is_number(item)
        for item in items
    )


def is_number(item: Any) -> bool:
    """Tell whether an index is an integer tensor without axes."""
    return isinstance(item, Node) and not item.shape and item.dtype.is_integer


def shows_all(tensor: Any) -> bool:
    """Tell whether a view has the elements of its base, in the order in which they lie there."""
    is_whole = tensor.numel() == tensor._view.base.numel() and not offset_of(tensor)
    return is_whole and strides_of(tensor) == row_major(tensor.shape)


def is_part(tensor: Any, base: Any, items: Sequence[Any]) -> bool:
    """Tell whether a tensor shows what plain items choose of another: `x[i] += 1` gives it back."""
    view = tensor._view
    is_telling = RUNNING.active or EVENTS.learning is not None  # another part may come
    if view.base is not base or view.function is not show_items or is_telling:
        return False
    own = view.operands[0]
    kinds = {*map(type, items), *map(type, own)}
    return kinds <= PLAIN and own == items


def strided(node: Node, shape: Shape, strides: Shape, offset: int) -> Node:
    """Read the flattened tensor at offset + sum(position * stride): what `as_strided` shows."""
    first = once_varied(offset, "as_strided", shape, strides)
    index = build.const(first, shape, int64, node.device)
    for axis, stride in enumerate(strides):
        index = index + index.iota(axis) * stride
    return node.reshape((math.prod(node.shape),)).gather([index], (0,))


def seen_as(memory: Any, dtype: DType) -> Any:
    """Show memory as elements of a dtype: flat, if of another, but for what is left at its end."""
    if memory.dtype is dtype:
        return memory
    own, width = memory.dtype.itemsize, dtype.itemsize
    count = memory.numel() * own // width
    end = count * width // own
    flat = memory.reshape(-1)
    part = flat[:end]
    return part.view(dtype)


def is_shown(tensor: Any) -> bool:
    """Tell whether a tensor is a view, or live ones show it."""
    return tensor._view is not None or any(each() is not None for each in tensor._views or ())


def show_items(node: Node, items: Sequence[Any]) -> Node:
    """Show what an index of numbers and ranges chooses; numbers may be tensors of no axes."""
    return selecting.read(node, [shown_item(item) for item in items])


def shown_item(item: Any) -> Any:
    """Give the node of an index that a view keeps."""
    if isinstance(item, indexing.Span):
        return replace(item, start=item.start._node)
    return item._node if is_tensor(item) else item


def is_tensor(item: Any) -> bool:
    """Tell whether an index is a tensor; a traced number notes what it is asked for."""
    return not isinstance(item, TracedNumber) and hasattr(item, "_view")


def is_chosen(view: View) -> bool:
    """Tell whether integer tensors choose what a view shows."""
    return view.function is show_items and any(
        is_tensor(item) or isinstance(item, indexing.Span) for item in view.operands[0]
    )


def written_together(views: Sequence[View], base: Node, value: Node, is_repeated: bool) -> Node:
    """Compute a base after a write through a chain of views, the last first, as one.

    Where that is no chain of moves, its places are; but complex numbers have none that are parts,
    and there and back again is no move.
    """
    view = views[0] if len(views) == 1 else composed(views)
    is_complex = {dtype.is_complex for dtype in (value.dtype, *(e.base.dtype for e in views))}
    is_back = value.dtype.is_complex is base.dtype.is_complex
    if len(is_complex) > 1 and (is_back or moves_of(view) is None):
        return written_each(views, base, value, is_repeated)
    return written(view, base, value, is_repeated)


def written_each(views: Sequence[View], base: Node, value: Node, is_repeated: bool = False) -> Node:
    """Compute a base after a write through a chain of views, the last first: one after the other.

    What a tensor chooses is written by that choice, which is checked, and cheaper than positions;
    bits are read back as the dtype that they have in memory.
    """
    before = [base]
    for view in reversed(views[1:]):
        before.append(view.on(before[-1]))
    for view, node in zip(views, reversed(before)):
        if is_chosen(view):
            value = selecting.write(node, [shown_item(each) for each in view.operands[0]], value)
        elif view.function is bits.show_bits:
            value = bits.show_bits(value, node.dtype)
        else:
            value = written(view, node, value, is_repeated)
    return value
