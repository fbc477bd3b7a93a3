"""repack: copy operands of products so that their rows begin where lines of the cache do.

    a @ b  ->  contiguous(pad(a))[:, :k] @ b           where that takes less time, copies included

The copy engine of a GPU brings rows that begin elsewhere at less than half its speed, and those
that begin between its chunks of 16 bytes not at all (`cost.repack_work`). A copy is a kernel as any
other: what an operand is computed from is fused into it, and all products of a value share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as choices

from picograd.graph.conv_forms import multiplies
from picograd.graph.node import Node, is_renaming
from picograd.graph.row import Role, ops_of
from picograd.graph.starts import starts_of
from picograd.helpers import product, round_up
from picograd.schedule.cost import LINE_BYTES, Rows, RowState, repack_work
from picograd.schedule.index import Axis, axis_index, flatten
from picograd.schedule.scores import EXPONENTIALS, MOST_DEPTH
from picograd.schedule.turned_products import permutation_of
from picograd.schedule.values import is_leaf
from picograd.schedule.viewindex import SOURCES, view_source
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

CONTRACTIONS, CONVOLUTIONS = map(ops_of, (Role.CONTRACT, Role.CONV))
BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)
Key = tuple[int, tuple[int, ...]]  # an array, and the order of its dimensions
CHUNK_BYTES = 16
LEAST = 16  # rows and columns of a product that is worth looking at


@dataclass(frozen=True, slots=True)
class Layout:
    """How an operand lies in memory: its dimensions from the farthest to the nearest."""

    order: tuple[int, ...]
    near: int  # how many of them, at the end, are one row
    state: RowState


def repack(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite products whose operands are worth a copy; `order` lists inputs first."""
    if not target.copies_boxes or not any(node.op in CONTRACTIONS for node in order):
        return list(roots)
    packer = Packer(target)
    for node in order:
        packer.visit(node)
    return replaced(roots, order, packer.new) if packer.new else list(roots)


class Packer:
    """This class is the state of the walk."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.new: dict[int, Node] = {}  # operands' copies, by products
        self.copies: dict[Key, Node] = {}
        self.weights: set[int] = set()  # made of exponentials: scores that may be nowhere
        self.ordered: set[int] = set()  # values that lie as convolutions left them

    def visit(self, node: Node) -> None:
        """Look at a node: all before it are known."""
        if is_leaf(node):
            return
        for held, ops in ((self.weights, EXPONENTIALS), (self.ordered, CONVOLUTIONS)):
            is_between = node.row.role in BETWEEN
            if node.op in ops or (is_between and not held.isdisjoint(map(id, node.inputs))):
                held.add(id(node))
        if node.op in CONTRACTIONS and type(node) is Node:
            self.look(node)

    def look(self, node: Node) -> None:
        """Choose which operands of a product are copied."""
        sizes = sizes_of(node)
        values = [narrowest(child) for child in node.inputs]
        dtype = values[0].dtype
        is_one = dtype is values[1].dtype and multiplies(dtype, self.target)
        is_ordered = any(id(value) in self.ordered for value in values)
        if not is_one or is_ordered or min(sizes[1:3]) < LEAST or self.may_stream(node, sizes):
            return
        layouts = [layout_of(value, *labels_of(node, n)) for n, value in enumerate(values)]
        pairs = [(v, layout) for v, layout in zip(values, layouts) if layout is not None]
        if len(pairs) < 2:
            return
        rows = [self.rows_of(value, layout) for value, layout in pairs]
        found = best_copies(sizes, dtype.itemsize, rows, self.target)
        if any(found):
            inputs = [
                rewrapped(child, self.copy(value, layout)) if is_copied else child
                for child, (value, layout), is_copied in zip(node.inputs, pairs, found)
            ]
            self.new[id(node)] = node.with_inputs(tuple(inputs))

    def may_stream(self, node: Node, sizes: tuple[int, ...]) -> bool:
        """Tell whether a product may be part of a kernel that streams over scores."""
        batch, m, n, k = sizes
        is_weighted = not self.weights.isdisjoint(map(id, map(narrowest, node.inputs)))
        return (is_weighted and min(m, n) <= MOST_DEPTH) or (batch > 1 and k <= MOST_DEPTH)

    def rows_of(self, value: Node, layout: Layout) -> Rows:
        """Say what the estimate needs to know of an operand; what is copied already is free."""
        is_there = key_of(value.permute(layout.order)) in self.copies
        moved = 0 if is_there else value.size + padded_size(value, layout)
        return Rows(layout.state, moved * value.dtype.itemsize)

    def copy(self, value: Node, layout: Layout) -> Node:
        """Copy an operand to rows of whole lines; give a view of the same shape."""
        turned = value.permute(layout.order)
        near = turned.shape[len(turned.shape) - layout.near :]
        far = turned.shape[: len(turned.shape) - layout.near]
        length = product(near)
        key = key_of(turned)
        if key not in self.copies:
            room = padded(length, value.dtype.itemsize) - length
            wide = turned.reshape((*far, length)).pad((*((0, 0) for _ in far), (0, room)))
            made = Node("contiguous", (wide,), None, wide.shape, wide.dtype, wide.device)
            self.copies[key] = made
        seen = self.copies[key]
        seen = seen.slice(tuple((0, n, 1) for n in (*far, length))).reshape(turned.shape)
        back = tuple(layout.order.index(d) for d in range(value.rank))
        return seen.permute(back)


def key_of(turned: Node) -> Key:
    """Tell copies apart."""
    axes = None if is_leaf(turned) else permutation_of(turned)
    return (id(turned), ()) if axes is None else (id(turned.inputs[0]), axes)


def best_copies(
    sizes: tuple[int, ...], itemsize: int, rows: Sequence[Rows], target: Target
) -> tuple[bool, ...]:
    """Choose which operands are copied: what takes the least time."""
    found = sorted(
        choices((False, True), repeat=2),
        key=lambda copied: repack_work(sizes, itemsize, rows, copied, target),
    )
    return found[0]


def narrowest(node: Node) -> Node:
    """Find what a chain of conversions to wider dtypes converts."""
    while not is_leaf(node) and node.row.keeps_value and node.inputs:
        if node.dtype.bits <= node.inputs[0].dtype.bits:
            break
        node = node.inputs[0]
    return node


def rewrapped(cast: Node, value: Node) -> Node:
    """Convert a value as another was converted."""
    return value if cast.dtype is value.dtype else value.cast(cast.dtype)


def padded(length: int, itemsize: int) -> int:
    """Elements of a row that is whole lines."""
    return round_up(length, LINE_BYTES // itemsize)


def padded_size(value: Node, layout: Layout) -> int:
    """Count the elements of a copy."""
    length = product(value.shape[d] for d in layout.order[len(layout.order) - layout.near :])
    return value.size // length * padded(length, value.dtype.itemsize)


def sizes_of(node: Node) -> tuple[int, int, int, int]:
    """Batch, M, N and K of a product."""
    labels, others, kept = node.arg
    first = dict(zip(labels, node.inputs[0].shape, strict=True))
    second = dict(zip(others, node.inputs[1].shape, strict=True))
    batch = product(n for name, n in first.items() if name in second and name in kept)
    m = product(n for name, n in first.items() if name not in second)
    n = product(n for name, n in second.items() if name not in first)
    k = product(n for name, n in first.items() if name in second and name not in kept)
    return batch, m, n, k


def labels_of(node: Node, number: int) -> tuple[tuple[int, ...], frozenset[int]]:
    """Say of each dimension of an operand which role it has, and which are summed."""
    labels, others, kept = node.arg[number], node.arg[1 - number], node.arg[2]
    roles = tuple((name in kept) + (name in others) * 2 for name in labels)
    return roles, frozenset(d for d, name in enumerate(labels) if name not in kept)


def layout_of(value: Node, roles: Sequence[int], summed: frozenset[int]) -> Layout | None:
    """See how an operand lies in memory; None if its rows do not run along memory."""
    found = steps_of(value)
    if found is None:
        return None
    steps, offset = found
    shape, itemsize = value.shape, value.dtype.itemsize
    order = sorted(range(value.rank), key=lambda d: (shape[d] > 1, -steps[d]))
    wide = [d for d in order if shape[d] > 1]
    if not wide or any(steps[d] <= 0 for d in wide) or steps[wide[-1]] != 1:
        return None
    near = 1
    while near < len(wide):  # dimensions of one role that follow one another are one row
        inner, outer = wide[-near], wide[-near - 1]
        if roles[inner] != roles[outer] or steps[outer] != steps[inner] * shape[inner]:
            break
        near += 1
    places = [offset, *(steps[d] for d in wide[:-near])]
    state = state_of([place * itemsize for place in places])
    if itemsize == 4 and wide[-1] not in summed:  # TF32 is read along K alone
        deep = [d for d in order if d in summed]
        order = [*(d for d in order if d not in summed), *deep]
        near, state = sum(shape[d] > 1 for d in deep), RowState.NONE
        if not near:
            return None
    return Layout(tuple(order), near, state)


def state_of(places: Sequence[int]) -> RowState:
    """Tell where rows begin, of the places in bytes where each may."""
    if all(place % LINE_BYTES == 0 for place in places):
        return RowState.LINES
    is_possible = all(place % CHUNK_BYTES == 0 for place in places)
    return RowState.CHUNKS if is_possible else RowState.NONE


def steps_of(value: Node) -> tuple[list[int], int] | None:
    """Find how far apart the elements of each dimension lie in memory, and where the first is."""
    axes = [Axis(f"d{d}", n) for d, n in enumerate(value.shape)]
    indices = tuple([axis_index(axis) for axis in axes])
    while not is_leaf(value) and (value.op in SOURCES or is_renaming(value)):
        if starts_of(value):
            return None
        indices = view_source(value, indices) if value.op in SOURCES else indices
        value = value.inputs[0]
    place = flatten(indices, value.shape)
    steps = dict(place.terms)
    if any(atom not in axes for atom in steps):
        return None
    return [steps.get(axis, 0) for axis in axes], place.const
