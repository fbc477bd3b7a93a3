"""shifts: values whose gradient is zero, as what is made of them does not change with them.

    e = exp(s - m);  e @ v / sum(e)        the same for every m: the greatest of a row by custom

A maximum that a softmax by hand subtracts keeps exponentials in range, and no more. Followed back,
its gradient is a sum that cancels, and places of ties that are searched for. Of what is subtracted
of exponents it is found how all that follows changes: by a power of the same factor, which sums
over other axes keep, and quotients cancel.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.row import NUMBERS, Role, ops_of
from picograd.late_methods import dataclass

EXPONENTIALS = {name for name, row in OPS.items() if row.is_exponential}
SUMS, PRODUCTS = ops_of(Role.REDUCE), ops_of(Role.CONTRACT)
MOST = 8  # values looked at in a graph


@dataclass(frozen=True, slots=True)
class Change:
    """How a value changes with another: a summand of it, or the exponential of it as a factor.

    `power` times: e(shift) ** power. It may be another one at each place of the dimensions `own`,
    which are in the order of those of the shift: a transposed factor is another one.
    """

    exponential: str  # the op; empty for a summand
    power: int
    own: tuple[int, ...]


class Unknown(Exception):
    """A value changes in a way that no `Change` is."""


def cancelled(order: Sequence[Node], outputs: Collection[Node]) -> set[int]:
    """Find what outputs do not change with, by identity; `order` lists inputs first."""
    found: dict[int, Node] = {}
    for node in order:
        if node.op in EXPONENTIALS and node.inputs:
            shift = shift_of(node)
            if shift is not None:
                found[id(shift)] = shift
    if len(found) > MOST:
        return set()
    kept = set()
    for key, shift in found.items():
        if is_cancelled(shift, order, outputs):
            kept.add(key)
    return kept


def shift_of(exponential: Node) -> Node | None:
    """Find what is subtracted of an exponent, of many of its elements at once."""
    less = below_conversions(exponential.inputs[0])
    is_difference = less.inputs and less.row.factors == (1, -1)
    if not is_difference:
        return None
    shift = less.inputs[1]
    while shift.inputs:
        is_shown = shift.row.is_repeating or shift.row.is_same_bytes
        if not is_shown:
            break
        (shift,) = shift.inputs
    is_shared = shift.size < less.size
    return shift if shift.inputs and is_shared else None


def below_conversions(node: Node) -> Node:
    """Find what is converted."""
    while node.row.keeps_value and node.inputs:
        (node,) = node.inputs
    return node


def is_cancelled(shift: Node, order: Sequence[Node], outputs: Collection[Node]) -> bool:
    """Tell whether nothing changes with a value in the end."""
    dims = tuple(d for d, size in enumerate(shift.shape) if size != 1)
    changes = {id(shift): Change("", 1, dims)}
    for node in order:
        inputs = [changes.get(id(child)) for child in node.inputs]
        is_followed = any(inputs) and id(node) not in changes
        is_passed = node.dtype.is_differentiable and node.row.is_differentiable
        if not is_followed or not is_passed:
            continue
        try:
            change = changed(node, inputs)
        except Unknown:
            return False
        if change.power:
            changes[id(node)] = change
    return changes.keys().isdisjoint(map(id, outputs))


def changed(node: Node, inputs: Sequence[Change | None]) -> Change:
    """Tell how a node changes as its inputs do; raises Unknown."""
    row = node.row
    known = [change for change in inputs if change is not None]
    first = known[0]
    if row.keeps_value and node.dtype.is_float:
        return first
    if row.role is Role.VIEW and row.dimensions is not None:
        return moved(first, node)
    if row.is_exponential and not first.exponential:
        return replace(first, exponential=node.op)
    if any(replace(each, power=first.power) != first for each in known):
        raise Unknown
    if row.factors:
        return added(first, inputs, row.factors)
    if not first.exponential:
        raise Unknown
    powers = [0 if change is None else change.power for change in inputs]
    if node.op in SUMS and node.arg[0] == "sum" and set(first.own).isdisjoint(node.arg[1]):
        return replace(first, own=without(first.own, node.arg[1]))
    if node.op in PRODUCTS:
        return multiplied(node, inputs)
    if row.linear == (0, 1):
        return replace(first, power=sum(powers))
    if row.linear == (0,) and len(powers) == 2:  # a quotient
        return replace(first, power=powers[0] - powers[1])
    if row.linear == (1, 2):
        return chosen(node, inputs, first)
    raise Unknown


def moved(change: Change, node: Node) -> Change:
    """Number dimensions as a view shows them."""
    rule = node.row.dimensions
    found = None if rule is None else rule(node)
    if found is None or not set(change.own) <= set(found):
        raise Unknown
    return replace(change, own=tuple(map(found.index, change.own)))


def without(own: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Number dimensions as they are without some others."""
    return tuple(d - sum(axis < d for axis in axes) for d in own)


def added(first: Change, inputs: Sequence[Change | None], factors: Sequence[int]) -> Change:
    """Add shifts up; of scaled values all must be scaled alike."""
    if not first.exponential:
        powers = [0 if change is None else change.power for change in inputs]
        return replace(first, power=sum(map(int.__mul__, powers, factors)))
    if any(change != first for change in inputs):
        raise Unknown
    return first


def multiplied(node: Node, inputs: Sequence[Change | None]) -> Change:
    """Find how a product changes: no place of a shift may be summed over, nor may two meet."""
    *labels, out = node.arg
    pairs = zip(inputs, labels, strict=True)
    known = [(change, names) for change, names in pairs if change is not None]
    several = {tuple(names[d] for d in change.own) for change, names in known}
    own = several.pop()
    if several or not set(own) <= set(out):
        raise Unknown
    places = tuple(map(list(out).index, own))
    return replace(known[0][0], power=sum(each.power for each, _ in known), own=places)


def chosen(node: Node, inputs: Sequence[Change | None], first: Change) -> Change:
    """A choice between values that change alike, or 0, which no factor changes."""
    for child, change in zip(node.inputs[1:], inputs[1:], strict=True):
        while change is None and child.inputs and child.row.is_repeating:
            (child,) = child.inputs
        is_zero = child.op in NUMBERS and child.arg == 0
        if change != first and not (change is None and is_zero):
            raise Unknown
    return first
