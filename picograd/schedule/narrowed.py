"""narrowed: of a product that only a slice reads, the rows of that slice alone are computed.

    (x @ head)[:, -1]                     ->  x[:, -1] @ head
    (x + silu(norm(x) @ a) @ b)[:, -1]    ->  the same of x[:, -1]

The scores of the next token are those of the last place, but a model is written for all of them:
what it makes of the others is not looked at. Each axis of a value that all its readers cut alike is
as long as they see it; so are those of what it is made of, as far as elements are made of elements
at the same place of that axis. What others read whole stays, and is cut where it is read.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

from picograd.graph.bounded import ends_of
from picograd.graph.node import Node
from picograd.graph.row import MOVING, NUMBERS, VIEWS, Role, ops_of
from picograd.schedule.order import nodes_of
from picograd.schedule.values import is_leaf
from picograd.schedule.views import dimension_map
from picograd.schedule.weighted_sums import change
from picograd.target import Target

FEW = 4  # a slice of at most a fourth: rows that begin between tiles take longer than that saves
FREE, BLOCKED = -1, -2  # axes that an operand has not, and those that are no axis of it
CONTRACTIONS = ops_of(Role.CONTRACT)
Range = tuple[Any, int, int]  # first, end, step; the first may be passed to the kernel
Cuts = dict[int, Range]  # by axis
WHOLE: Cuts = {}


def narrow(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Compute only what slices read of products; `order` lists inputs first."""
    if not any(map(few_shown, nodes_of(order, MOVING))):
        return list(roots)
    cuts = find_cuts(roots, order)
    if not any(is_worth_it(node, cuts) for node in nodes_of(order, CONTRACTIONS)):
        return list(roots)
    made: dict[int, Node] = {}  # of what is cut, and of what is made of that
    for node in order:
        own = cuts[id(node)]
        is_cutting = is_slice(node) and bool(cuts[id(node.inputs[0])])
        if not own and not is_cutting:
            change(node, made)
            continue
        inputs = []
        for place, source in enumerate(node.inputs):
            if is_cutting:
                wanted = shown(node) | own
            else:
                wanted = passed(node, own, place)
            known = cuts[id(source)]
            left = {axis: cut for axis, cut in wanted.items() if axis not in known}
            inside = sliced(made.get(id(source), source), left)
            inputs.append(inside)
        if is_cutting:
            made[id(node)] = inputs[0]
        else:
            made[id(node)] = rebuilt(node, own, tuple(inputs))
    return [made.get(id(root), root) for root in roots]


def find_cuts(roots: Sequence[Node], order: Sequence[Node]) -> dict[int, Cuts]:
    """Find for each node which of its axes all its readers cut alike, and it may be cut along."""
    cuts: dict[int, Cuts] = {id(root): WHOLE for root in roots}
    for node in reversed(order):
        own = cuts[id(node)]
        if own:
            own = {axis: cut for axis, cut in own.items() if may_cut(node, axis)}
            cuts[id(node)] = own
        if not own and not is_slice(node):  # it reads all
            for source in node.inputs if node.realized is None else ():
                cuts[id(source)] = WHOLE
            continue
        for place, source in enumerate(node.inputs):
            asked = few_shown(node) | passed(node, own, place)
            known = cuts.get(id(source), asked)
            cuts[id(source)] = common(known, asked)
    return cuts


def common(first: Cuts, second: Cuts) -> Cuts:
    """Find the axes that two readers cut alike."""
    found: Cuts = {}
    for axis, cut in first.items():
        if axis in second and is_same(cut, second[axis]):
            found[axis] = cut
    return found


def is_slice(node: Node) -> bool:
    """Tell whether a node shows a range of each axis of its input."""
    is_placed = node.op in MOVING and node.realized is None
    return is_placed and node.row.is_showing and type(node) is Node


def shown(node: Node) -> Cuts:
    """Find the axes of which a slice does not show all."""
    found: Cuts = {}
    for axis, size in enumerate(node.inputs[0].shape):
        cut = node.arg[axis]
        if cut != (0, size, 1):
            found[axis] = cut
    return found


def few_shown(node: Node) -> Cuts:
    """Find the axes of which a slice shows few elements."""
    if not is_slice(node):
        return WHOLE
    found: Cuts = {}
    for axis, cut in shown(node).items():
        whole = node.inputs[0].shape[axis]
        if 0 < node.shape[axis] * FEW <= whole:
            found[axis] = cut
    return found


def axes_read(node: Node, place: int) -> Sequence[int]:
    """Find for each axis of a node which axis of an operand has the elements it is made of."""
    role = node.row.role
    if role is Role.ELEMENTWISE:
        return range(len(node.shape))
    if role is Role.REDUCE:
        return [axis for axis in range(node.inputs[0].rank) if axis not in node.arg[1]]
    if role is Role.CONTRACT:
        labels, out = node.arg[place], node.arg[2]
        return [labels.index(label) if label in labels else FREE for label in out]
    if role is Role.VIEW and node.row.is_same_bytes:
        known = {place: axis for axis, place in enumerate(places(node.inputs[0].shape))}
        return [known.get(place, BLOCKED) for place in places(node.shape)]
    if role is Role.VIEW:
        mapping = dimension_map(node)
        if mapping is not None:
            missing = FREE if node.row.is_repeating else BLOCKED
            return [missing if axis < 0 else axis for axis in mapping]
    return [BLOCKED] * len(node.shape)


def places(shape: Sequence[int]) -> list[tuple[int, int]]:
    """List for each axis how many elements of those before it there are, and how many it has.

    An axis that has both in another shape of the same elements is the same.
    """
    before = accumulate(shape, mul, initial=1)
    return list(zip(before, shape))


def may_cut(node: Node, axis: int) -> bool:
    """Tell whether elements of a node at one place of an axis are made of those there."""
    if is_leaf(node) or type(node) is not Node or ends_of(node):
        return False
    if not node.inputs:
        return node.op in NUMBERS
    return all(axes_read(node, place)[axis] != BLOCKED for place in range(len(node.inputs)))


def passed(node: Node, cuts: Cuts, place: int) -> Cuts:
    """Find how an operand is cut of which a node that is cut is made."""
    axes = axes_read(node, place) if cuts else ()
    return {axes[axis]: cut for axis, cut in cuts.items() if axes[axis] >= 0}


def is_same(one: Range, other: Range) -> bool:
    """Tell whether two ranges are the same, by where they begin in this run or in every one."""
    first, second = one[0], other[0]
    if first is second or type(first) is type(second) is int:
        return first == second and one[1:] == other[1:]
    return False


def is_worth_it(product: Node, cuts: dict[int, Cuts]) -> bool:
    """Tell whether few of the elements of a product are read."""
    own = cuts[id(product)]
    return bool(own) and prod(shape_of(product, own)) * FEW <= product.size


def shape_of(node: Node, cuts: Cuts) -> tuple[int, ...]:
    """Give the shape of a node that is cut."""
    sizes = list(node.shape)
    for axis, cut in cuts.items():
        sizes[axis] = len(range(*cut))
    return tuple(sizes)


def sliced(node: Node, cuts: Cuts) -> Node:
    """Cut a value where it is read."""
    if not cuts:
        return node
    ranges = [(0, size, 1) for size in node.shape]
    for axis, cut in cuts.items():
        ranges[axis] = cut
    return node.slice(tuple(ranges))


def rebuilt(node: Node, cuts: Cuts, inputs: tuple[Node, ...]) -> Node:
    """Make a node of what its inputs have become: along some axes, as long as it is read."""
    if not cuts:
        return node.with_inputs(inputs)
    shape = shape_of(node, cuts)
    if node.op in VIEWS and node.row.is_same_bytes:
        return inputs[0].reshape(shape)
    if node.row.is_repeating:
        return inputs[0].expand(shape)
    return Node(node.op, inputs, node.arg, shape, node.dtype, node.device)
