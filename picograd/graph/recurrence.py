"""The rows of recurrences: a loop over time steps is one node, whatever the number of steps.

    recur(first carries..., xs stacked over time..., constants...)    arg = Recurrence
    outcome(recur)    arg = (kind, number)    one array the loop computes:
        "carry", i      the carry after the last step
        "history", i    T + 1 rows: the carry before the first step and after each one
        "stack", n      T rows: the value of body node n at each position

The body of a step is a graph over `placeholder` leaves: carries, one slice of every x, constants.
Rows are in the order of positions; a reverse loop starts at the last one, so that its history
begins with the last carry and ends with the first. The value of a `recur` node itself is nothing
(shape (), float32); what nobody asks for by an outcome is not computed.

In a bounded graph (graph/ends.py) the xs of a loop end where its steps do: `length` is the bound,
rows beyond the steps hold nothing.

A cotangent of a `recur` node is a sum of `flow` nodes (arg as the outcome's), which its gradient
takes apart again: graph/recurrence_gradient.py.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from picograd.buffer import RuntimeScalar
from picograd.dtype import DType, float32
from picograd.graph.ends import sources_of
from picograd.graph.node import Node, toposort
from picograd.graph.row import ANY, Op, table

Key = tuple[Any, ...]


class Body:
    """One step: placeholder leaves, what the carries become, and every node, numbered.

    Equal bodies are one object (`make_body`), so that comparing and hashing them costs nothing.
    `order` starts with the carries, xs and constants; `gradients` caches derived bodies.
    """

    __slots__ = ("__weakref__", "carries", "constants", "gradients", "key", "nexts", "order", "xs")
    nexts: tuple[int, ...]
    order: tuple[Node, ...]
    carries: tuple[Node, ...]
    constants: tuple[Node, ...]
    xs: tuple[Node, ...]
    key: Key

    def __init__(
        self,
        leaves: tuple[Sequence[Node], Sequence[Node], Sequence[Node]],
        nexts: tuple[int, ...],
        order: Sequence[Node],
        key: Key,
    ) -> None:
        self.carries, self.xs, self.constants = map(tuple, leaves)
        self.nexts, self.order, self.key = nexts, tuple(order), key
        self.gradients: dict[Any, Any] = {}

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The placeholders, in the order of the inputs of `recur`."""
        return (*self.carries, *self.xs, *self.constants)

    def __repr__(self) -> str:
        counts = f"{len(self.carries)} carries, {len(self.xs)} xs, {len(self.constants)} constants"
        return f"Body({counts}, {len(self.order)} nodes)"


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The argument of a `recur` node; the body stands for itself, as bodies are unique."""

    body: Body
    length: int
    is_reverse: bool

    def __repr__(self) -> str:
        direction = " backwards" if self.is_reverse else ""
        return f"{self.length} steps{direction} of {self.body!r}"


BODIES: "weakref.WeakValueDictionary[Key, Body]" = weakref.WeakValueDictionary()


def placeholder(kind: str, shape: tuple[int, ...], dtype: DType, device: str) -> Node:
    """Make a leaf of a body: a "carry", a slice "x" of a stacked array, or a "constant"."""
    return Node("placeholder", (), kind, shape, dtype, device)


def make_body(
    leaves: tuple[Sequence[Node], Sequence[Node], Sequence[Node]],
    nexts: Sequence[Node],
    results: Sequence[Node],
) -> tuple[Body, dict[int, int]]:
    """Make a body, or find the one of equal structure.

    Returns it with the number of every node given, by identity.
    """
    flat = [*leaves[0], *leaves[1], *leaves[2]]
    given = {id(node) for node in flat}
    inner = toposort([*nexts, *results], lambda node: id(node) in given)
    order = [*flat, *(node for node in inner if id(node) not in given)]
    numbers = {id(node): number for number, node in enumerate(order)}
    rows = tuple([row_key(node, numbers) for node in order])
    places = tuple(numbers[id(node)] for node in nexts)
    key = (tuple(map(len, leaves)), rows, places)
    body = BODIES.get(key)
    if body is None:
        body = BODIES[key] = Body(leaves, places, order, key)
    return body, numbers


def row_key(node: Node, numbers: dict[int, int]) -> Key:
    """What tells one node of a body from another."""
    arg = node.arg
    if node.op == "const":
        arg = type(arg).__name__, repr(arg)
    elif node.op == "custom":  # all compare equal, yet their gradients differ
        arg = id(arg)
    inputs = tuple([numbers[id(child)] for child in node.inputs])
    return node.op, inputs, arg, node.shape, node.dtype.name, node.device


def steps_of(loop: Node) -> RuntimeScalar | None:
    """Find the number of steps of a loop, where that is known at run time only."""
    return next((end.count for ends in sources_of(loop) for end in ends), None)


def recur(body: Body, length: int, is_reverse: bool, inputs: Sequence[Node]) -> Node:
    """Record a loop of at least one step."""
    spec = Recurrence(body, length, is_reverse)
    device = inputs[0].device if inputs else body.order[0].device
    return Node("recur", tuple(inputs), spec, (), float32, device)


def stacked_inputs(loop: Node) -> tuple[Node, ...]:
    """List the inputs of a loop that have a row for each step."""
    body: Body = loop.arg.body
    first = len(body.carries)
    return loop.inputs[first : first + len(body.xs)]


def outcome(loop: Node, kind: str, number: int) -> Node:
    """Record one array a loop computes."""
    body: Body = loop.arg.body
    node = body.order[number] if kind == "stack" else body.carries[number]
    shape = outcome_shape(loop.arg.length, kind, node.shape)
    return Node("outcome", (loop,), (kind, number), shape, node.dtype, loop.device)


def outcome_shape(length: int, kind: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Add the rows of an outcome to the shape of one step."""
    rows = {"carry": (), "history": (length + 1,), "stack": (length,)}[kind]
    return (*rows, *shape)


def rows_of(node: Node, start: int, stop: int) -> Node:
    """Cut the leading axis."""
    rest = tuple((0, n, 1) for n in node.shape[1:])
    return node.slice(((start, stop, 1), *rest))


def carries_after(loop: Node, history: Node) -> Node:
    """Cut the carry after every position out of a history."""
    first = 0 if loop.arg.is_reverse else 1
    return rows_of(history, first, first + loop.arg.length)


def carries_before(loop: Node, history: Node) -> Node:
    """Cut the carry before every position out of a history."""
    first = 1 if loop.arg.is_reverse else 0
    return rows_of(history, first, first + loop.arg.length)


def first_row(loop: Node, history: Node) -> Node:
    """Cut the carry before the first step out of a history."""
    row = loop.arg.length if loop.arg.is_reverse else 0
    return rows_of(history, row, row + 1).reshape(history.shape[1:])


def stacked(loop: Node, number: int) -> Node:
    """Find the value of a body node at every position: T rows.

    A carry shares its history's memory; an x is the loop's own input.
    """
    spec: Recurrence = loop.arg
    body, node = spec.body, spec.body.order[number]
    if number < len(body.carries):
        return carries_before(loop, outcome(loop, "history", number))
    if number < len(body.carries) + len(body.xs):
        return loop.inputs[number]
    if number < len(body.leaves) or node.op == "const":
        value = node if node.op == "const" else loop.inputs[number]
        return value.broadcast_to((spec.length, *node.shape))
    if number in body.nexts:
        return carries_after(loop, outcome(loop, "history", body.nexts.index(number)))
    return outcome(loop, "stack", number)


def close(roots: Sequence[Node], leaves: Sequence[Node]) -> tuple[list[Node], dict[int, Node]]:
    """Replace what does not depend on `leaves` by constants: computed once, before the loop.

    Returns the roots over new placeholders, and the placeholder of every node replaced, by
    identity. Plain constants and position numbers stay in the body.
    """
    given = {id(node) for node in leaves}
    order = toposort(roots, lambda node: id(node) in given or node.realized is not None)
    varying = set(given)
    done: dict[int, Node] = {}
    constants: dict[int, Node] = {}

    def closed(node: Node) -> Node:
        if id(node) in done:
            return done[id(node)]
        if node.op in ("const", "iota") and node.realized is None:
            return node
        held = placeholder("constant", node.shape, node.dtype, node.device)
        done[id(node)] = constants[id(node)] = held
        return held

    for node in order:
        if id(node) in given:
            done[id(node)] = node
        elif any(id(child) in varying for child in node.inputs) and node.realized is None:
            varying.add(id(node))
            done[id(node)] = node.with_inputs(tuple([closed(child) for child in node.inputs]))
    return [closed(root) for root in roots], constants


def problem_of_recurrence(node: Node) -> str:
    """Describe what is wrong with a `recur` or `outcome` node, or nothing (for verify)."""
    if node.op == "outcome":
        loop, (kind, number) = node.inputs[0], node.arg
        if loop.op != "recur":
            return "the outcome of what is no loop"
        body = loop.arg.body
        known = len(body.order) if kind == "stack" else len(body.carries)
        if not 0 <= number < known:
            return f"the body has no {kind} {number}"
        wanted = outcome(loop, kind, number)
        same = wanted.shape == node.shape and wanted.dtype is node.dtype
        return "" if same else f"the outcome is {wanted.dtype.name}{wanted.shape}"
    spec: Recurrence = node.arg
    if spec.length < 1:
        return f"a loop of {spec.length} steps"
    return problem_of_inputs(node, spec) or problem_of_body(spec.body)


def problem_of_inputs(node: Node, spec: Recurrence) -> str:
    """Every placeholder has an input: xs with a row for each step."""
    leaves = spec.body.leaves
    if len(leaves) != len(node.inputs):
        return f"{len(node.inputs)} inputs for {len(leaves)} placeholders"
    for leaf, given in zip(leaves, node.inputs):
        shape = (spec.length, *leaf.shape) if leaf.arg == "x" else leaf.shape
        if given.shape != shape or given.dtype is not leaf.dtype:
            return f"{given} for a placeholder of {leaf.dtype.name}{shape}"
    return ""


def problem_of_body(body: Body) -> str:
    """Carries keep their shape and dtype; nothing but placeholders comes from outside."""
    for carry, number in zip(body.carries, body.nexts, strict=True):
        after = body.order[number]
        if after.shape != carry.shape or after.dtype is not carry.dtype:
            return f"a carry {carry} becomes {after}"
    known = {id(leaf) for leaf in body.leaves}
    for node in body.order:
        if node.op in ("buffer", "assign", "scalar") or node.realized is not None:
            return f"the body reads memory: {node}"
        if node.op == "placeholder" and id(node) not in known:
            return f"the body has a placeholder that is not its own: {node}"
    return ""


def outcome_vjp(gradient: Node, output: Node, loop: Node) -> tuple[Node | None, ...]:
    """Pass the cotangent on to the loop, with the name of the outcome."""
    return (Node("flow", (gradient,), output.arg, (), float32, loop.device),)


def apart(gradient: Node, output: Node, *inputs: Node) -> tuple[Node | None, ...]:
    """Stand for the gradient of a loop, which needs the walk itself: graph/gradient.py has it."""
    raise NotImplementedError(output.op)


RECURRENCE_ROWS = table(
    Op("placeholder", "leaf", 0, ANY),
    Op("recur", "recur", -1, ANY, None, apart),
    Op("outcome", "recur", 1, ANY, None, outcome_vjp),
    Op("flow", "recur", 1, ANY),
)
