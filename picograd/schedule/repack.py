"""repack: copy operands of products so that their rows begin where lines of the cache do.

    a @ b  ->  contiguous(pad(a))[:, :k] @ b           where that takes less time, copies included

The copy engine of a GPU brings rows that begin elsewhere at less than half its speed, and those
that begin between its chunks of 16 bytes not at all (`cost.repack_work`). A copy is a kernel as any
other: what an operand is computed from is fused into it, and all products of a value share it.

Operands of convolutions are copied, too, where channels are no whole chunks, or lie as a view deals
them: forward and gradients read one copy.

uncross: copy arrays whose memory runs across the rows that are worked on side by side.

    x = permute(a, (2, 1, 0))                          x = contiguous(permute(a, (2, 1, 0)))
    x - x.max(1, keepdim)                      ->      x - x.max(1, keepdim)

A CPU reduces neighbouring rows in vectors: those along the last axis that stays. Where memory runs
along another one that stays, every element is read from a cache line of its own, by each pass over
the rows again. A copy turns whole lines round in vectors (`codegen/templates/map.py`), which takes
less than one such pass. Sums alone choose the order of their rows, and need none.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product as choices

from picograd.graph.conv_few import ALIGNED, FEW, cut_to, padded_to
from picograd.graph.conv_forms import is_weight_gradient, multiplies, stored
from picograd.graph.node import Node, is_renaming
from picograd.graph.row import EXPONENTIALS, VIEWS, Role, ops_of
from picograd.graph.starts import starts_of
from picograd.helpers import product, round_up
from picograd.late_methods import dataclass
from picograd.schedule.channels_last import (
    NARROW,
    below_views,
    can_be_boxes,
    computed_order,
    multiplied,
    nearest,
    shown_by,
    strip_widening,
)
from picograd.schedule.cost import LINE_BYTES, Rows, RowState, repack_work, saves_boxes
from picograd.schedule.group import PRODUCTS, Group
from picograd.schedule.index import Axis, Index, axis_index, flatten
from picograd.schedule.scores import MOST_DEPTH
from picograd.schedule.values import is_leaf
from picograd.schedule.viewindex import SOURCES, view_source
from picograd.schedule.views import Order, dimension_map, followed_order
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

NO_ORDERS: Mapping[int, Order] = {}
BETWEEN = (Role.ELEMENTWISE, Role.VIEW, Role.PASS)


def permutation_of(node: Node) -> tuple[int, ...] | None:
    """Find the order in which a view shows dimensions; None if it does anything else."""
    if node.row.role is not Role.VIEW or node.row.is_same_bytes:
        return None
    source = node.inputs[0]
    mapping = dimension_map(node)
    if mapping is None or node.size != source.size:
        return None
    is_whole = sorted(mapping) == list(range(source.rank))
    return tuple(mapping) if is_whole else None


CONTRACTIONS, CONVOLUTIONS = map(ops_of, (Role.CONTRACT, Role.CONV))

Key = tuple[int, tuple[int, ...]]  # an array, and the order of its dimensions
SECTOR_BYTES, CHUNK_BYTES = 32, 16
SUMMED = "summed"
LEAST = 16  # rows and columns of a product that is worth looking at


@dataclass(frozen=True, slots=True)
class Layout:
    """How an operand lies in memory: its dimensions from the farthest to the nearest."""

    order: tuple[int, ...]
    near: int  # how many of them, at the end, are one row
    state: RowState


def repack(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite products whose operands are worth a copy; `order` lists inputs first."""
    if not target.copies_boxes or not any(node.op in PRODUCTS for node in order):
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
        self.orders: dict[int, Order] = {}  # of values that lie as convolutions left them
        self.chunks: dict[tuple[int, int], Node] = {}  # copies, by array and nearest dimension
        self.images: set[int] = set()  # what is made of those, in whatever order

    def visit(self, node: Node) -> None:
        """Look at a node: all before it are known."""
        if is_leaf(node):
            return
        self.follow(node)
        order = followed_order(node, self.orders)
        if node.op in CONVOLUTIONS:
            if type(node) is Node and can_be_boxes(node, self.target):
                self.look_at_images(node)
            is_turned = id(node.inputs[0]) in self.orders
            order = computed_order(node, self.target, is_turned)
        if node.op in CONVOLUTIONS or not self.images.isdisjoint(map(id, node.inputs)):
            self.images.add(id(node))
        if order is not None:
            self.orders[id(node)] = order
        if node.op in CONTRACTIONS and type(node) is Node:
            self.look(node)

    def follow(self, node: Node) -> None:
        """Note weights, and what is made of them at the places of their elements."""
        is_made = node.op in EXPONENTIALS
        if node.row.role in BETWEEN and self.weights:
            below = map(id, node.inputs)
            is_made = is_made or not self.weights.isdisjoint(below)
        if is_made:
            self.weights.add(id(node))

    def look(self, node: Node) -> None:
        """Choose which operands of a product are copied."""
        values = multiplied(node.inputs)
        if not self.can_be_boxes(node, values):
            return
        layouts = []
        for number, value in enumerate(values):
            roles = roles_of(node, number)
            found = layout_of(value, roles, self.orders)
            if found is None:
                return
            layouts.append(replace(found, state=RowState.NONE) if is_widened(value) else found)
        pairs = list(zip(values, layouts, strict=True))
        rows = [self.rows_of(*pair) for pair in pairs]
        itemsize = values[0].dtype.itemsize
        chosen = best_copies(sizes_of(node), itemsize, rows, self.target)
        if not any(chosen):
            return
        depth = self.depth_of(node, pairs) if all(chosen) else 0
        inputs = list(node.inputs)
        for number, is_copied in enumerate(chosen):
            if is_copied:
                roles = roles_of(node, number)
                deep = roles.index(SUMMED) if depth else 0
                copied = self.copy(*pairs[number], deep, depth)
                inputs[number] = rewrapped(inputs[number], copied)
        self.new[id(node)] = node.with_inputs(tuple(inputs))

    def look_at_images(self, node: Node) -> None:
        """Copy the operands of a convolution whose rows no boxes can be, if that saves time."""
        kernel = node if is_weight_gradient(node) else node.inputs[1]
        taps = product(kernel.shape[3:])
        inputs, moved = list(node.inputs), 0
        new: dict[tuple[int, int], Node] = {}
        views: dict[int, Node] = {}
        for number, axes in enumerate(nearest(node)):
            value = node.inputs[number]
            if min(value.shape[axis] for axis in axes) < FEW:
                return
            if self.has_whole_chunks(strip_widening(value), axes, taps == 1):
                continue
            chain, base, near = below_views(value, axes, number == 1, is_whole=True)
            last = max(near)
            role = Role.PASS if is_leaf(base) else base.row.role
            copied = self.chunks.get((id(base), last))
            if copied is None:
                copied = whole_chunks(base.again() if role is Role.VIEW else base, last)
                new[id(base), last] = copied
                read = 0 if role is Role.ELEMENTWISE else base.size
                moved += (read + copied.size) * base.dtype.itemsize
            shown = cut_to(copied, (last,), base.shape)
            if role is Role.VIEW:
                views[id(base)] = shown
            inputs[number] = shown_by(chain, shown)
        points = node.size * product(node.inputs[1].shape[2:])
        if inputs != list(node.inputs) and saves_boxes(points, moved, self.target):
            self.chunks |= new
            self.new |= views  # whoever reads a view reads its copy
            self.new[id(node)] = node.with_inputs(tuple(inputs))

    def has_whole_chunks(self, value: Node, nearest: Sequence[int], is_any: bool) -> bool:
        """Tell whether rows along one of some dimensions begin at chunks, or can be made to.

        Images that are read as a matrix may have rows along any dimension.
        """
        if id(value) not in self.images:
            return all(value.shape[axis] % ALIGNED == 0 for axis in nearest)
        axes = [Axis(f"d{d}", n) for d, n in enumerate(value.shape)]
        place = place_of(value, axes, self.orders)
        if place is None:
            return False
        near = axes if is_any else [axes[axis] for axis in nearest]
        steps = [step for atom, step in place.terms if atom not in near or step != 1]
        is_along = len(steps) < len(place.terms)
        return is_along and not any(step % ALIGNED for step in (*steps, place.const))

    def can_be_boxes(self, node: Node, values: Sequence[Node]) -> bool:
        """Tell whether tensor cores multiply such operands, and no other template takes them."""
        first, second = (value.dtype for value in values)
        is_narrow = first.kind == second.kind == NARROW
        is_one = first is second and multiplies(first, self.target)
        if not (is_narrow or is_one):
            return False
        _, m, n, _ = sizes_of(node)
        return min(m, n) >= LEAST and not self.may_stream(node, values)

    def may_stream(self, node: Node, values: Sequence[Node]) -> bool:
        """Tell whether a product may be part of a kernel that streams over scores."""
        batch, m, n, k = sizes_of(node)
        is_weighted = any(id(value) in self.weights for value in values)
        if is_weighted and min(m, n) <= MOST_DEPTH:
            return True
        return batch > 1 and k <= MOST_DEPTH

    def rows_of(self, value: Node, layout: Layout) -> Rows:
        """Say what the estimate needs to know of an operand; what is copied already is free."""
        is_there = key_of(value.permute(layout.order)) in self.copies
        moved = 0 if is_there else value.size + padded_size(value, layout)
        return Rows(layout.state, moved * value.dtype.itemsize)

    def depth_of(self, node: Node, pairs: Sequence[tuple[Node, Layout]]) -> int:
        """Count K with the zeros that end rows along it; 0 where K must stay as it is.

        Zeros of both operands may be multiplied: boxes of whole chunks are brought sooner than
        those that end amid one.
        """
        depth = 0
        for number, (value, layout) in enumerate(pairs):
            roles = roles_of(node, number)
            nearest = layout.order[-1]
            if roles.count(SUMMED) != 1 or layout.near != 1:
                return 0
            if roles[nearest] == SUMMED:
                length = value.shape[nearest]
                depth = padded(length, value.dtype.itemsize)
        for number, (value, layout) in enumerate(pairs):
            turned = value.permute(layout.order)
            made = self.copies.get(key_of(turned))
            deep = roles_of(node, number).index(SUMMED)
            place = layout.order.index(deep)
            if made is not None and made.shape[place] < depth:
                return 0  # a product before wanted fewer rows of zeros
        return depth

    def copy(self, value: Node, layout: Layout, deep: int = 0, depth: int = 0) -> Node:
        """Copy an operand to rows of whole lines; give a view of the same shape.

        If there is a `depth`, the view has so many places in dimension `deep`, 0 beyond the value.
        """
        turned = value.permute(layout.order)
        rank = turned.rank - layout.near
        far, near = turned.shape[:rank], turned.shape[rank:]
        length = product(near)
        key = key_of(turned)
        seen = [*far, length]
        if depth:
            seen[layout.order.index(deep)] = depth
        if key not in self.copies:
            wide_length = padded(length, value.dtype.itemsize)
            sizes = *seen[:-1], wide_length
            pads = tuple((0, size - n) for size, n in zip(sizes, (*far, length), strict=True))
            wide = turned.reshape((*far, length)).pad(pads)
            made = wide.stored()
            self.copies[key] = made
        ranges = tuple((0, count, 1) for count in seen)
        view = self.copies[key].slice(ranges)
        back = map(layout.order.index, range(value.rank))
        shape = tuple(seen) if depth else turned.shape
        return view.reshape(shape).permute(tuple(back))


def whole_chunks(value: Node, near: int) -> Node:
    """Copy an array so that a dimension is the nearest, and rows along it begin at chunks."""
    rest = [d for d in range(value.rank) if d != near]
    return stored(padded_to(value, near, ALIGNED), (*rest, near))


def is_widened(value: Node) -> bool:
    """Tell whether 16-bit floats are converted from 8 bits: no box does that."""
    while not is_leaf(value) and value.dtype.bits == 16:
        if not (value.op in SOURCES or is_renaming(value) or value.row.keeps_value):
            return False
        value = value.inputs[0]
    return value.dtype.bits <= 8


def key_of(turned: Node) -> Key:
    """Tell copies apart."""
    axes = None if is_leaf(turned) else permutation_of(turned)
    return (id(turned), ()) if axes is None else (id(turned.inputs[0]), axes)


def best_copies(
    sizes: tuple[int, ...], itemsize: int, rows: Sequence[Rows], target: Target
) -> tuple[bool, ...]:
    """Choose which operands are copied: what takes the least time."""

    def work(copied: tuple[bool, ...]) -> float:
        return repack_work(sizes, itemsize, rows, copied, target)

    return min(choices((False, True), repeat=2), key=work)


def rewrapped(cast: Node, value: Node) -> Node:
    """Convert a value as another was converted."""
    return value if cast.dtype is value.dtype else value.cast(cast.dtype)


def padded(length: int, itemsize: int) -> int:
    """Elements of a row that is whole lines."""
    return round_up(length, LINE_BYTES // itemsize)


def padded_size(value: Node, layout: Layout) -> int:
    """Count the elements of a copy."""
    rank = value.rank - layout.near
    length = product(value.shape[d] for d in layout.order[rank:])
    row = padded(length, value.dtype.itemsize)
    return value.size // length * row


def sizes_of(node: Node) -> tuple[int, int, int, int]:
    """Batch, M, N and K of a product."""
    sizes: dict[int, int] = {}
    for labels, child in zip(node.arg, node.inputs):
        sizes.update(zip(labels, child.shape, strict=True))
    first, second, kept = map(set, node.arg)
    both = first & second
    roles = both & kept, first - second, second - first, both - kept
    counts = []
    for names in roles:
        counts.append(product(sizes[name] for name in names))
    batch, m, n, k = counts
    return batch, m, n, k


def roles_of(node: Node, number: int) -> tuple[str, ...]:
    """Say of each dimension of an operand whether it is summed, shared or its own."""
    own, kept = node.arg[number], node.arg[2]
    other = node.arg[1 - number]
    found = []
    for name in own:
        if name not in kept:
            found.append(SUMMED)
        else:
            found.append("shared" if name in other else "own")
    return tuple(found)


def layout_of(
    value: Node, roles: Sequence[str], orders: Mapping[int, Order] = NO_ORDERS
) -> Layout | None:
    """See how an operand lies in memory; None if its rows do not run along memory."""
    found = steps_of(value, orders)
    if found is None:
        return None
    steps, offset = found
    shape, itemsize = value.shape, value.dtype.itemsize
    far = [(size > 1, -step) for size, step in zip(shape, steps, strict=True)]
    order = sorted(range(value.rank), key=far.__getitem__)
    wide = [d for d in order if shape[d] > 1]
    has_rows = wide and steps[wide[-1]] == 1
    if not has_rows or any(steps[d] <= 0 for d in wide):
        return None
    near = row_length(wide, shape, steps, roles)
    places = [offset]
    places += [steps[d] for d in wide[:-near]]
    state = state_of([place * itemsize for place in places])
    if itemsize == 2 or roles[wide[-1]] == SUMMED:
        return Layout(tuple(order), near, state)
    # TF32 and 8 bits are read along K alone.
    deep = [d for d in order if roles[d] == SUMMED]
    rest = [d for d in order if roles[d] != SUMMED]
    near = sum(shape[d] > 1 for d in deep)
    return Layout((*rest, *deep), near, RowState.NONE) if near else None


def row_length(
    wide: Sequence[int], shape: Sequence[int], steps: Sequence[int], roles: Sequence[str]
) -> int:
    """Count the dimensions that are one row: of one role, each beside the one before it."""
    near = 1
    while near < len(wide):
        inner, outer = wide[-near], wide[-near - 1]
        is_beside = steps[outer] == steps[inner] * shape[inner]
        if roles[inner] != roles[outer] or not is_beside:
            break
        near += 1
    return near


def state_of(places: Sequence[int]) -> RowState:
    """Tell where rows begin, of the places in bytes where each may.

    Rows that begin at sectors of a line are brought almost as fast as those that begin at lines.
    """
    if all(place % SECTOR_BYTES == 0 for place in places):
        return RowState.LINES
    is_possible = all(place % CHUNK_BYTES == 0 for place in places)
    return RowState.CHUNKS if is_possible else RowState.NONE


def place_of(value: Node, axes: Sequence[Axis], orders: Mapping[int, Order]) -> Index | None:
    """Find where the element at each position of some axes lies in memory.

    Values lie in one of the `orders`, by their identities, or row-major.
    """
    indices = tuple(map(axis_index, axes))
    while not is_leaf(value):
        if value.op in SOURCES:
            if starts_of(value):
                return None
            indices = view_source(value, indices)
        elif not is_renaming(value):
            break
        value = value.inputs[0]
    order = orders.get(id(value), range(value.rank))
    return flatten([indices[d] for d in order], [value.shape[d] for d in order])


def steps_of(value: Node, orders: Mapping[int, Order] = NO_ORDERS) -> tuple[list[int], int] | None:
    """Find how far apart the elements of each dimension lie in memory, and where the first is."""
    axes = [Axis(f"d{d}", n) for d, n in enumerate(value.shape)]
    place = place_of(value, axes, orders)
    if place is None or any(atom not in axes for atom, _ in place.terms):
        return None
    steps = dict(place.terms)
    return [steps.get(axis, 0) for axis in axes], place.const


LEAST_ELEMENTS = 16384  # elements: fewer stay in the first-level cache, or nearly
SHORTEST = 8  # elements along either axis: fewer are no vectors
UNMOVED = Role.ELEMENTWISE, Role.PASS
ROWS = Role.REDUCE, Role.SCAN


def uncross(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite permuted arrays that are worth a copy; `order` lists inputs first."""
    if target.has_blocks:
        return list(roots)
    walk = Walk()
    for node in order:
        walk.visit(node)
    return replaced(roots, order, walk.new) if walk.new else list(roots)


class Walk:
    """This class knows the permuted arrays that nodes are made of, by the nodes' identities."""

    def __init__(self) -> None:
        self.whole: dict[int, Node] = {}  # element by element
        self.reduced: dict[int, Node] = {}  # of rows that memory runs across
        self.new: dict[int, Node] = {}

    def visit(self, node: Node) -> None:
        """Look at a node: all before it are known."""
        is_view = node.op in VIEWS
        if not is_view and not self.whole:
            return
        if is_leaf(node):
            return
        role = node.row.role
        is_large = is_view and node.size >= LEAST_ELEMENTS
        if is_large and is_permuted(node):
            self.whole[id(node)] = node
        elif role in ROWS:
            self.look(node)
        elif is_view:
            self.follow(node, self.reduced)
        elif role in UNMOVED:
            self.follow(node, self.reduced)
            self.follow(node, self.whole)
            view = self.whole.get(id(node))
            if view is not None and view is self.reduced.get(id(node)):
                self.copy(view)

    def follow(self, node: Node, made_of: dict[int, Node]) -> None:
        """Note what a node is made of by that of its inputs."""
        for child in node.inputs:
            view = made_of.get(id(child))
            if view is not None:
                made_of[id(node)] = view

    def look(self, node: Node) -> None:
        """See whether memory runs across the rows of a reduction, or of running sums."""
        view = self.whole.get(id(node.inputs[0]))
        if view is None:
            return
        is_scan = node.row.role is Role.SCAN
        over = node.arg[1:2] if is_scan else node.arg[1]
        if not crosses(view, over):
            return
        if is_scan:
            self.copy(view)
        self.reduced[id(node)] = view

    def copy(self, view: Node) -> None:
        """Replace an array by a copy."""
        if id(view) not in self.new:
            seen = view.again()
            made = seen.stored()
            self.new[id(view)] = made


def is_permuted(node: Node) -> bool:
    """Tell whether a view shows dimensions in another order than memory has."""
    if type(node) is not Node or permutation_of(node) is None:
        return False
    return near_axis(node) not in (None, node.rank - 1)


def near_axis(view: Node) -> int | None:
    """Find the dimension along which memory runs."""
    found = steps_of(view)
    if found is None:
        return None
    near = (d for d, step in enumerate(found[0]) if step == 1 and view.shape[d] > 1)
    return next(near, None)


def crosses(view: Node, over: Collection[int]) -> bool:
    """Tell whether memory runs along a dimension that a reduction keeps, but not the last."""
    near = near_axis(view)
    kept = [d for d, size in enumerate(view.shape) if d not in over and size > 1]
    if near not in kept or near == kept[-1]:
        return False
    return min(view.shape[near], view.shape[kept[-1]]) >= SHORTEST


def turns(maps: Group, reduced: Collection[int], target: Target) -> bool:
    """Tell whether maps read memory across the rows of a reduction: they turn it themselves."""
    if target.has_blocks or product(maps.shape) < LEAST_ELEMENTS:
        return False
    read = [child.node for member in maps.members for child in member.inputs]
    views = [node for node in read if node.row.role is Role.VIEW and node.shape == maps.shape]
    return any(is_permuted(view) and crosses(view, reduced) for view in views)
