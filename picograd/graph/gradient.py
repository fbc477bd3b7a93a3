"""Reverse-mode differentiation, graph -> graph: nothing runs, so unread gradients cost nothing."""

import weakref
from collections.abc import Callable, Sequence

from picograd.buffer import Overwritten, Sample
from picograd.errors import GradientError, internal
from picograd.graph.node import Node, substituted, toposort
from picograd.graph.ops import OPS
from picograd.graph.recurrence_gradient import recur_vjp
from picograd.graph.row import Role
from picograd.graph.shifts import cancelled
from picograd.helpers import paused_collection

CHEAP = (  # roles of what the gradient of a loop rather computes again
    Role.ELEMENTWISE,
    Role.VIEW,
    Role.FOLD,
    Role.NUMBER,
    Role.POSITION,
    Role.INPUT,
    Role.PASS,
    Role.MEMORY,
    Role.SCALAR,
    Role.DRAW,
    Role.COPY,
    Role.WRITE,
)
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


def gradient(
    outputs: Sequence[tuple[Node, Node]],
    targets: Sequence[Node],
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
    with paused_collection():
        walk_back(order, gradients, needed, kept)
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


def check_versions(order: Sequence[Node], gradients: Sequence[Node]) -> None:
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
    order: Sequence[Node], gradients: dict[int, Node], needed: set[int], wanted: set[int]
) -> None:
    """Pass every node's gradient on to its inputs, keeping those of `wanted` nodes.

    A node's gradient is complete when the walk comes to it: its hook sees it, and may replace it.
    """
    is_hooked = bool(HOOKS)
    for node in reversed(order):
        if id(node) not in needed or id(node) not in gradients:
            continue
        flowing = gradients[id(node)]
        if is_hooked and node in HOOKS:
            flowing = gradients[id(node)] = HOOKS[node](flowing)
        if id(node) not in wanted:
            del gradients[id(node)]
        if any(id(child) in needed for child in node.inputs):
            pass_back(gradients, node, flowing, needed)


def reaching(order: Sequence[Node], targets: Sequence[Node]) -> set[int]:
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
    walk_back(order, gradients, reaching(order, leaves), {id(leaf) for leaf in leaves})
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
