"""Parts: `put` writes a value over the elements that a view shows.

    out = put(base, value, steps)      out = base, and the view of out that `steps` make is `value`

A step is (op, argument) of a view that shows no element twice: slice, permute, reshape, flip. Where
the result is assigned to the base's own memory the scheduler stores the part alone
(schedule/updates.py); elsewhere the op expands to a choice between the value, spread to its places,
and the base.
"""

from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.errors import check
from picograd.graph.node import Gradients, Node
from picograd.graph.row import ANY, NUMBERS, OPS, Op, Role, Starts, table
from picograd.graph.shape import first_shape

Array = Any
Step = tuple[str, Any]
Steps = tuple[Step, ...]


def shown(node: Node, steps: Steps) -> Node:
    """Record the view that steps make of a node."""
    for op, arg in steps:
        view = OPS[op].view
        check(view is not None and view.show is not None, f"{op} is no step of a part", node)
        node = view.show(node, arg)  # type: ignore[union-attr,misc]
    return node


def put(base: Node, value: Node, steps: Steps) -> Node:
    """Write a value of the view's shape; a view of all elements leaves nothing of the base.

    A value of no elements is noted for its gradient alone.
    """
    if not value.size and (value.op in NUMBERS or value.dtype is not base.dtype):
        return base
    is_all = value.size == base.size > 0
    if is_all or value.dtype is not base.dtype:  # parts of complex numbers
        return taken_back(base, value, steps)
    return Node("put", (base, value), steps, base.shape, base.dtype, base.device)


def expand_put(node: Node) -> Node:
    """Choose between the value and the base."""
    base, value = node.inputs
    return taken_back(base, value, node.arg) if value.size else base


def taken_back(base: Node, value: Node, steps: Steps) -> Node:
    """Take the steps of a view back, the last first: the base after the value was written."""
    before = [base]
    for step in steps[:-1]:
        before.append(shown(before[-1], (step,)))
    for (op, arg), source in zip(reversed(steps), reversed(before)):
        value = OPS[op].view.back(source, arg, value)  # type: ignore[union-attr,misc]
    return value


def places(shape: tuple[int, ...], steps: Steps) -> Array:
    """List the positions in the flattened base that the view shows."""
    found: Array = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    node = Node("placeholder", (), None, shape, int64, "cpu")
    for step in steps:
        view = shown(node, (step,))
        if view is not node:
            found, node = view.row.numpy(view, found), view  # type: ignore[misc]
    return found


def put_numpy(node: Node, base: Array, value: Array) -> Array:
    """Update a copy."""
    out = base.copy()
    out.reshape(-1)[places(base.shape, node.arg)] = value
    return out


def put_vjp(gradient: Node, output: Node, base: Node, value: Node) -> Gradients:
    """Split the gradient between the value and what it left of the base."""
    return put(gradient, value.const_like(0), output.arg), shown(gradient, output.arg)


def check_put(node: Node) -> str:
    """The value has the shape of the view, whose steps show no element twice."""
    base, value = node.inputs
    views = [OPS[op].view for op, _ in node.arg]
    if any(view is None or view.back is None for view in views):
        return "a step is no view of distinct elements"
    view = shown(base, node.arg)
    return "" if view.shape == value.shape else f"the view has shape {view.shape}"


def next_steps(steps: Steps, size: int) -> Steps:
    """Count the axes of the steps of a part one further."""
    found: list[Step] = []
    for op, arg in steps:
        rule = OPS[op].batch_arg
        found.append((op, arg if rule is None else rule(arg, size)))
    return tuple(found)


def step_starts(steps: Steps) -> list[Any]:
    """List the positions in the arguments of steps."""
    rules = [(OPS[op].starts, arg) for op, arg in steps]
    return [start for rule, arg in rules if rule is not None for start in rule.found(arg)]


def changed_steps(steps: Steps, change: Any) -> Steps:
    """Give steps with what a change makes of positions."""
    rules = [(op, OPS[op].starts, arg) for op, arg in steps]
    return tuple([(op, rule.changed(arg, change) if rule else arg) for op, rule, arg in rules])


PART_ROWS = table(
    Op(
        "put",
        Role.PART,
        2,
        ANY,
        put_numpy,
        put_vjp,
        expand_put,
        shape=first_shape,
        check=check_put,
        batch_arg=next_steps,
        starts=Starts(step_starts, changed_steps),
    )
)
