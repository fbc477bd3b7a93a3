"""Reverse-mode differentiation, graph -> graph: nothing runs, so unread gradients cost nothing.

shifts: values whose gradient is zero, as what is made of them does not change with them.

    e = exp(s - m);  e @ v / sum(e)        the same for every m: the greatest of a row by custom

A maximum that a softmax by hand subtracts keeps exponentials in range, and no more. Followed back,
its gradient is a sum that cancels, and places of ties that are searched for. Of what is subtracted
of exponents it is found how all that follows changes: by a power of the same factor, which sums
over other axes keep, and quotients cancel; a logarithm makes a summand of it, which the maximum
that is added again cancels. What is subtracted before a softmax changes nothing at once.
"""

import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from picograd.buffer import Overwritten, Sample
from picograd.errors import GradientError, internal
from picograd.graph.composites import CustomGradient
from picograd.graph.node import Node, Nodes, substituted, toposort
from picograd.graph.ops import OPS
from picograd.graph.recurrence_gradient import recur_vjp
from picograd.graph.row import EXPONENTIALS, NUMBERS, Role, ops_of
from picograd.helpers import paused_collection
from picograd.late_methods import dataclass
from picograd.number import is_given

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


def cancelled(order: Nodes, outputs: Collection[Node]) -> set[int]:
    """Find what outputs do not change with, by identity; `order` lists inputs first."""
    found: dict[int, Node] = {}
    for node in order:
        if node.inputs and (node.op in EXPONENTIALS or node.row.is_shiftless):
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


def is_cancelled(shift: Node, order: Nodes, outputs: Collection[Node]) -> bool:
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
    if row.is_shiftless and not first.exponential and node.arg not in first.own:
        return replace(first, power=0)
    if any(replace(each, power=first.power) != first for each in known):
        raise Unknown
    if row.factors:
        return added(first, inputs, row.factors)
    if not first.exponential:
        raise Unknown
    if node.op == OPS[first.exponential].logarithm:
        return replace(first, exponential="")
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


CHEAP = (  # roles of what the gradient of a loop rather computes again
    Role.ELEMENTWISE, Role.VIEW, Role.FOLD, Role.NUMBER, Role.POSITION, Role.INPUT, Role.PASS,
    Role.MEMORY, Role.SCALAR, Role.DRAW, Role.COPY, Role.WRITE,
)  # fmt: skip
Hook = Callable[[Node], Node]


class Refused:
    """This class stands in a VJP's result for a gradient there is no formula for.

    None says that the gradient is zero; this one raises when the gradient is wanted.
    """

    __slots__ = ("op", "what")

    def __init__(self, op: str, what: str) -> None:
        self.op: str = op
        self.what: str = what

    def error(self) -> GradientError:
        """Make the error of asking for it."""
        text = f"has no derivative with respect to {self.what}"
        return GradientError(self.op, text, "call .detach() on it")


Watcher = Callable[[Node, Sequence["Node | Refused | None"]], None]
StepHook = Callable[[Sequence["Node | Refused | None"], Node], Sequence["Node | Refused | None"]]
WATCHERS: list[Watcher] = []  # what sees the gradients of every node's inputs
HOOKS: "weakref.WeakKeyDictionary[Node, Hook]" = weakref.WeakKeyDictionary()
# what sees the gradients of one node's inputs, and may replace them
AFTER: "weakref.WeakKeyDictionary[Node, StepHook]" = weakref.WeakKeyDictionary()


def with_hooks(nodes: Sequence[Node], copies: list[Node]) -> list[Node]:
    """Let the hooks of nodes see the gradients of their copies too; gives the copies."""
    tables: tuple[Any, ...] = HOOKS, AFTER
    for table in tables:
        table.update({now: table[was] for was, now in zip(nodes, copies) if was in table})
    return copies


def gradient(
    outputs: Sequence[tuple[Node, Node]],
    targets: Nodes,
    is_end: Callable[[Node], bool] = lambda node: False,
) -> list[Node | None]:
    """Differentiate sum(output * cotangent) with respect to each target; None where no path leads.

    One topological order, walked once backwards; only nodes between outputs and targets get a
    gradient. Rules emit nodes, so the result can be differentiated again. No walk goes below what
    lets no gradient through, or what `is_end` says: there may be all that was recorded before.
    """
    for output, cotangent in outputs:
        same = cotangent.dtype is output.dtype and cotangent.device == output.device
        if cotangent.shape != output.shape or not same:
            raise GradientError(
                "backward",
                f"the gradient given is {cotangent.dtype.name}{cotangent.shape}, the output "
                f"{output.dtype.name}{output.shape}",
                "give one of the output's shape, dtype and device",
            )
    order = toposort(
        [output for output, _ in outputs], lambda node: not is_passed(node) or is_end(node)
    )
    needed = reaching(order, targets)
    kept = {id(target) for target in targets}
    if not (HOOKS and any(node in HOOKS for node in order)):  # a hook wants to see even zeros
        needed -= cancelled(order, [output for output, _ in outputs]) - kept
    gradients: dict[int, Node] = {}
    for output, cotangent in outputs:
        accumulate(gradients, output, cotangent)
    given = {id(cotangent) for _, cotangent in outputs}
    with paused_collection():
        walk_back(order, gradients, needed, kept, given)
    found = [gradients.get(id(target)) for target in targets]
    if any(is_overwritten(node) for node in order):
        check_versions(order, [node for node in found if node is not None])
    return found


def is_passed(node: Node) -> bool:
    """Tell whether a gradient can flow from a node to its inputs."""
    return node.dtype.is_differentiable and OPS[node.op].is_differentiable


def is_overwritten(node: Node) -> bool:
    """Tell whether a leaf's contents were changed in place since it was recorded."""
    return type(node.arg) is Overwritten


def check_versions(order: Nodes, gradients: Nodes) -> None:
    """Raise GradientError if a gradient needs a value that was changed in place; only then."""
    readers = {id(child): node.op for node in order for child in node.inputs}
    for node in toposort(gradients, lambda node: node.realized is not None):
        if is_overwritten(node):
            reader = readers.get(id(node), "a custom function")
            text = (
                "one of the variables needed for gradient computation has been modified by an "
                f"in-place operation: the {node.dtype.name} tensor of shape {node.shape} "
                f"read by {reader} {node.arg.describe()}"
            )
            fix = "change it after backward(), or compute with its clone()"
            raise GradientError("backward", text, fix)


def walk_back(
    order: Nodes,
    gradients: dict[int, Node],
    needed: set[int],
    wanted: set[int],
    given: Collection[int],
) -> None:
    """Pass every node's gradient on to its inputs, keeping those of `wanted` nodes.

    A node's gradient is complete when the walk comes to it: its hook sees it, and may replace it.
    Of what is never chosen it is zeros all the way, but for those that were `given`, to which the
    result may be differentiated.
    """
    zeros: dict[int, Node] = {}
    is_hooked = bool(HOOKS)
    for node in reversed(order):
        if id(node) not in needed or id(node) not in gradients:
            continue
        flowing = gradients[id(node)]
        if is_hooked and node in HOOKS:
            flowing = gradients[id(node)] = HOOKS[node](flowing)
        if id(node) not in wanted:
            del gradients[id(node)]
        if not any(id(child) in needed for child in node.inputs):
            continue
        is_zeros = id(flowing) in zeros and is_unseen(node)
        if is_zeros:
            for child in node.inputs:
                if id(child) in needed:
                    accumulate(gradients, child, child.const_like(0))
        else:
            pass_back(gradients, node, flowing, needed)
        if is_zeros or is_settled(node):
            found = [gradients[id(child)] for child in node.inputs if id(child) in gradients]
            zeros |= {id(each): each for each in found if id(each) not in given and is_zero(each)}


def is_zero(node: Node) -> bool:
    """Tell whether a node is the number 0 everywhere."""
    return node.op in NUMBERS and not is_given(node.arg) and node.arg == 0


def is_settled(node: Node) -> bool:
    """Tell whether a node is a choice by a constant condition."""
    return node.row.linear == (1, 2) and node.inputs[0].op in NUMBERS


def is_unseen(node: Node) -> bool:
    """Tell whether nobody sees the gradients of a node's inputs, or has a formula for them."""
    return not WATCHERS and node not in AFTER and type(node.arg) is not CustomGradient


def reaching(order: Nodes, targets: Nodes) -> set[int]:
    """Find the nodes a gradient must pass: targets, and what depends on them differentiably."""
    needed = {id(target) for target in targets}
    for node in order:
        if id(node) in needed or not is_passed(node):
            continue
        for child in node.inputs:
            if id(child) in needed and child.dtype.is_differentiable:
                needed.add(id(node))
                break
    return needed


def pass_back(gradients: dict[int, Node], node: Node, flowing: Node, needed: set[int]) -> None:
    """Apply the VJP of one node and add the results to its inputs' gradients."""
    row = OPS[node.op]
    parts: Sequence[Node | Refused | None]
    if row.role is Role.LOOP:  # it needs the walk itself
        parts = recur_vjp(flowing, node, gradient, is_cheap)
    elif row.exact is not None:
        parts = pass_exact(node, row.exact, flowing)
    elif row.vjp is not None:
        parts = row.vjp(flowing, node, *node.inputs)
    else:
        return
    for watch in WATCHERS:
        watch(node, parts)
    if node in AFTER:
        parts = AFTER[node](parts, flowing)
    for child, part in zip(node.inputs, parts):
        if part is None or id(child) not in needed:
            continue
        if isinstance(part, Refused):
            raise part.error()
        if part.shape != child.shape or part.dtype is not child.dtype:
            internal(f"the gradient of {node} has {part} for its input {child}")
        accumulate(gradients, child, part)


def pass_exact(node: Node, form: Callable[[Node], Node], flowing: Node) -> list[Node | None]:
    """Differentiate the exact form of a node, made of leaves that stand for its inputs.

    Over the inputs themselves a view could be recorded as one of what they show: past them.
    """
    leaves = [Node("buffer", (), Sample(), x.shape, x.dtype, x.device) for x in node.inputs]
    exact = form(node.with_inputs(tuple(leaves)))
    order = toposort([exact])
    gradients = {id(exact): flowing}
    wanted = {id(leaf) for leaf in leaves}
    walk_back(order, gradients, reaching(order, leaves), wanted, {id(flowing)})
    values = {id(leaf): x for leaf, x in zip(leaves, node.inputs)} | {id(flowing): flowing}
    parts = [gradients.get(id(leaf)) for leaf in leaves]
    found = iter(substituted([part for part in parts if part is not None], values))
    return [None if part is None else next(found) for part in parts]


def is_cheap(node: Node) -> bool:
    """Tell whether the gradient of a loop computes a value of its body again: it is not kept."""
    row = node.row
    return row.is_pointwise or row.role in CHEAP


def accumulate(gradients: dict[int, Node], node: Node, part: Node) -> None:
    """Add to the gradient of a node."""
    found = gradients.get(id(node))
    if found is not None and node.dtype.kind == "float8":  # too coarse to add up in
        part, found = part.accumulated(), found.accumulated()
    gradients[id(node)] = part if found is None else (found + part).cast(node.dtype)
