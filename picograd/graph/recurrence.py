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

In a bounded graph (graph/bounded.py) the xs of a loop end where its steps do: `length` is the
bound, rows beyond the steps hold nothing.

A cotangent of a `recur` node is a sum of `flow` nodes (arg as the outcome's), which its gradient
takes apart again: graph/recurrence_gradient.py.
"""

import weakref
from dataclasses import replace
from typing import Any

from picograd.buffer import RuntimeScalar
from picograd.dtype import DType, float32
from picograd.graph.axes import Axes, Derived, NoRule
from picograd.graph.batch_rules import Found, from_front, refused, to_front
from picograd.graph.bounded import Bounded, End, ended, fit_all, sources_of
from picograd.graph.composites import CustomGradient
from picograd.graph.node import Node, Nodes, is_plain_leaf, toposort
from picograd.graph.row import ANY, INPUTS, NUMBERS, Op, Role, Sizes, table
from picograd.late_methods import dataclass
from picograd.traced_number import SIZED, TracedNumber

Key = tuple[Any, ...]
OUTSIDE = (Role.MEMORY, Role.WRITE, Role.SCALAR)  # what no body reads by itself


class Body:
    """One step: placeholder leaves, what the carries become, and every node, numbered.

    Equal bodies are one object (`make_body`), so that comparing and hashing them costs nothing.
    `order` starts with the carries, xs and constants; `gradients` caches derived bodies.
    """

    __slots__ = ("__weakref__", "carries", "constants", "gradients", "key", "nexts", "order", "xs")

    def __init__(
        self, leaves: tuple[Nodes, Nodes, Nodes], nexts: tuple[int, ...], order: Nodes, key: Key
    ) -> None:
        self.carries, self.xs, self.constants = map(tuple, leaves)
        self.nexts: tuple[int, ...] = nexts
        self.order: tuple[Node, ...] = tuple(order)
        self.key: Key = key
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
    leaves: tuple[Nodes, Nodes, Nodes], nexts: Nodes, results: Nodes
) -> tuple[Body, dict[int, int]]:
    """Make a body, or find the one of equal structure.

    Returns it with the number of every node given, by identity.
    """
    flat = [*leaves[0], *leaves[1], *leaves[2]]
    given = {id(node) for node in flat}
    inner = toposort([*nexts, *results], lambda node: id(node) in given)
    order = [*flat, *(node for node in inner if id(node) not in given)]
    numbers = {id(node): number for number, node in enumerate(order)}
    places = tuple(numbers[id(node)] for node in nexts)
    if SIZED and any(type(size) is TracedNumber for node in order for size in node.shape):
        return Body(leaves, places, order, ()), numbers  # to compare sizes is to read them
    rows = tuple([row_key(node, numbers) for node in order])
    key = (tuple(map(len, leaves)), rows, places)
    body = BODIES.get(key)
    if body is None:
        body = BODIES[key] = Body(leaves, places, order, key)
    return body, numbers


def row_key(node: Node, numbers: dict[int, int]) -> Key:
    """What tells one node of a body from another."""
    arg = node.arg
    if node.op in NUMBERS:
        arg = type(arg).__name__, repr(arg)
    elif type(arg) is CustomGradient:  # all compare equal, yet their gradients differ
        arg = id(arg)
    inputs = tuple([numbers[id(child)] for child in node.inputs])
    return node.op, inputs, arg, node.shape, node.dtype.name, node.device


def steps_of(loop: Node) -> RuntimeScalar | None:
    """Find the number of steps of a loop, where that is known at run time only."""
    return next((end.count for ends in sources_of(loop) for end in ends), None)


def recur(body: Body, length: int, is_reverse: bool, inputs: Nodes) -> Node:
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
    is_number = node.op in NUMBERS
    if number < len(body.leaves) or is_number:
        value = node if is_number else loop.inputs[number]
        return value.broadcast_to((spec.length, *node.shape))
    if number in body.nexts:
        return carries_after(loop, outcome(loop, "history", body.nexts.index(number)))
    return outcome(loop, "stack", number)


def close(roots: Nodes, leaves: Nodes) -> tuple[list[Node], dict[int, Node]]:
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
        if is_plain_leaf(node):
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


def problem_of_outcome(node: Node) -> str:
    """Describe what is wrong with an outcome, or nothing (for verify)."""
    loop, (kind, number) = node.inputs[0], node.arg
    if type(loop.arg) is not Recurrence:
        return "the outcome of what is no loop"
    body = loop.arg.body
    known = len(body.order) if kind == "stack" else len(body.carries)
    if not 0 <= number < known:
        return f"the body has no {kind} {number}"
    wanted = outcome(loop, kind, number)
    same = wanted.shape == node.shape and wanted.dtype is node.dtype
    return "" if same else f"the outcome is {wanted.dtype.name}{wanted.shape}"


def problem_of_loop(node: Node) -> str:
    """Describe what is wrong with a loop, or nothing; its body's nodes are looked at apart."""
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
        if node.row.role in OUTSIDE or node.realized is not None:
            return f"the body reads memory: {node}"
        if node.op in INPUTS and id(node) not in known:
            return f"the body has a placeholder that is not its own: {node}"
    return ""


def outcome_vjp(gradient: Node, output: Node, loop: Node) -> tuple[Node | None, ...]:
    """Pass the cotangent on to the loop, with the name of the outcome."""
    return (Node("flow", (gradient,), output.arg, (), float32, loop.device),)


def apart(gradient: Node, output: Node, *inputs: Node) -> tuple[Node | None, ...]:
    """Stand for the gradient of a loop, which needs the walk itself: graph/gradient.py has it."""
    raise NotImplementedError(output.op)


def batch_recur(batch: Any, node: Node, found: Found) -> Node:
    """Vectorise the body of a loop; what is stacked over time keeps time as the first axis."""
    body, size = node.arg.body, batch.size
    inner, leaves = batch.inner(), []
    for leaf in body.leaves:
        wide = placeholder(leaf.arg, (size, *leaf.shape), leaf.dtype, leaf.device)
        inner.done[id(leaf)] = leaf, wide
        leaves.append(wide)
    results = [inner.full(each) for each in body.order]
    first, last = len(body.carries), len(body.carries) + len(body.xs)
    groups = leaves[:first], leaves[first:last], leaves[last:]
    made, numbers = make_body(groups, [results[number] for number in body.nexts], results)
    inputs = batch.filled(node, found)
    inputs[first:last] = [from_front(each, 1) for each in inputs[first:last]]
    loop = recur(made, node.arg.length, node.arg.is_reverse, inputs)
    batch.numbers[id(loop)] = [numbers[id(each)] for each in results]
    return loop


def batch_outcome(batch: Any, node: Node, found: Found) -> Node:
    """Read what a vectorised loop computes."""
    (kind, number), loop = node.arg, batch.filled(node, found)[0]
    if kind == "stack":
        number = batch.numbers[id(loop)][number]
    result = outcome(loop, kind, number)
    return result if kind == "carry" else to_front(result, 1)


# loops of sizes that vary


def link_recur(axes: Axes, node: Node) -> None:
    """Follow time, the first axis of what is stacked."""
    stacks = stacked_inputs(node)
    for source in stacks[1:]:
        axes.link(source, 0, stacks[0], 0)


def link_outcome(axes: Axes, node: Node) -> None:
    """Follow time; a history has a row more, as have those of the other carries."""
    loop = node.inputs[0]
    stacks = stacked_inputs(loop)
    if node.arg[0] == "stack" and stacks:
        axes.link(node, 0, stacks[0], 0)
    elif node.arg[0] == "history":
        axes.link(node, 0, axes.histories.setdefault(id(loop), node), 0)


def derived_outcome(axes: Axes, node: Node) -> list[Derived]:
    """Time, the first axis of a history."""
    if node.arg[0] != "history":
        return []
    return [(0, source, 0) for source in stacked_inputs(node.inputs[0])[:1]]


def outcome_bound(axes: Axes, node: Node, bounds: dict[int, int]) -> list[tuple[int, int]]:
    """Add the row of a history before the first step."""
    stacks = stacked_inputs(node.inputs[0])
    bound = bounds.get(axes.find(stacks[0], 0)) if stacks else None
    return [] if bound is None or node.arg[0] != "history" else [(axes.find(node, 0), bound + 1)]


def bound_recur(graph: Bounded, node: Node) -> Node:
    """Lay out rows for the most steps; the loop runs those that there are."""
    stacks = stacked_inputs(node)
    others = [source for source in node.inputs if not any(source is each for each in stacks)]
    inner = [axis for source in stacks for axis in graph.axes.dynamic_axes(source)[1:]]
    if inner or any(map(graph.axes.dynamic_axes, others)):
        raise NoRule("sizes of one step of a loop")
    graph.need_plain(stacks[0], 0)
    end = End(0, 1, 0, graph.count(graph.axes.find(stacks[0], 0)))
    arg = replace(node.arg, length=graph.bound(stacks[0], 0))
    rest = arg, node.shape, node.dtype, node.device
    made = Node("recur", tuple(graph.inputs(node)), *rest)
    kinds = [leaf.arg for leaf in node.arg.body.leaves]
    return ended(made, (), tuple([(end,) if kind == "x" else () for kind in kinds]))


def bound_outcome(graph: Bounded, node: Node) -> Node:
    """Read what a loop computes, with rows for the most steps."""
    (loop,) = graph.inputs(node)
    return fit_all(outcome(loop, *node.arg), graph.shape(node))


NONE = (0, 0)  # of the inputs: each has a dtype of its own
RECURRENCE_ROWS = table(
    Op("placeholder", Role.INPUT, 0, ANY, is_showing=True),
    Op("recur", Role.LOOP, -1, ANY, None, apart, data=NONE, check=problem_of_loop,
        batch=batch_recur, sizes=Sizes(link_recur, bound_recur)),
    Op("outcome", Role.RESULT, 1, ANY, lambda node, outcomes: outcomes.find(*node.arg), outcome_vjp,
        data=NONE, check=problem_of_outcome, batch=batch_outcome,
        sizes=Sizes(link_outcome, bound_outcome, derived=derived_outcome, natural=outcome_bound)),
    Op("flow", Role.FLOW, 1, ANY, data=NONE,
        batch=refused("a cotangent of a loop exists only while its gradient is taken")),
)  # fmt: skip
