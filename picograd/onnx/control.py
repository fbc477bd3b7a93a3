"""ONNX operators with subgraphs: If, Loop, Scan.

If and Loop run in Python, step by step; so does a Scan that is no loop of the graph.
"""

from typing import Any

import numpy as np

from picograd.errors import DTypeError, ShapeError, TraceError
from picograd.onnx.table import Call, Value, operator
from picograd.tensor.public import stack
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.scan import scan as recorded_scan


@operator("If")
def if_(call: Call, condition: bool, then_branch: Any, else_branch: Any) -> tuple[Value, ...]:
    """Run one of two subgraphs; the condition is known on the host."""
    return tuple(call.run(then_branch if condition else else_branch, []))


@operator("Loop")
def loop(call: Call, most: int | None, condition: bool | None, *carried: Value, body: Any) -> Any:
    """Run a subgraph again and again; what it gives beside its state is stacked."""
    limit = 1 << 62 if most is None else most
    goes_on = condition is None or condition
    state: list[Value] = list(carried)
    rows: list[list[Value]] = []
    step = 0
    while goes_on and step < limit:
        again, *found = call.run(body, [np.asarray(step, np.int64), np.asarray(True), *state])
        goes_on = bool(call.host(again).item())
        state = found[: len(carried)]
        rows.append(found[len(carried) :])
        step += 1
    extra = len(body.output) - 1 - len(carried)
    return (*state, *(joined(call, [row[k] for row in rows], 0) for k in range(extra)))


@operator("Scan", since=9)
def scan(
    call: Call,
    *inputs: Value,
    body: Any,
    num_scan_inputs: int,
    scan_input_axes: Any = None,
    scan_input_directions: Any = None,
    scan_output_axes: Any = None,
    scan_output_directions: Any = None,
) -> Any:
    """Run a subgraph over slices of the inputs, forwards or backwards."""
    count = len(inputs) - num_scan_inputs
    extra = len(body.output) - count
    rows = []
    axes = scan_input_axes or [0] * num_scan_inputs
    turns = scan_input_directions or [0] * num_scan_inputs
    for each, axis, is_turned in zip(inputs[count:], axes, turns):
        row = call.tensor(each).movedim(axis, 0)
        rows.append(row.flip(0) if is_turned else row)
    state, columns = over_rows(call, body, list(inputs[:count]), rows)
    outputs = []
    axes = scan_output_axes or [0] * extra
    turns = scan_output_directions or [0] * extra
    for column, axis, is_turned in zip(columns, axes, turns):
        column = column.flip(0) if is_turned else column
        outputs.append(column.movedim(0, axis))
    return (*state, *outputs)


def over_rows(
    call: Call, body: Any, state: list[Value], rows: list[Tensor]
) -> tuple[list[Value], list[Tensor]]:
    """Run a body over rows, as one loop of the graph where it can be; gives last state, columns."""
    count = len(state)

    def step(old: list[Value], row: list[Tensor]) -> tuple[list[Value], list[Value]]:
        found = [call.tensor(each) for each in call.run(body, [*old, *row])]
        return found[:count], found[count:]

    start = [call.tensor(each) for each in state]
    try:
        return recorded_scan(step, start, rows)
    except (TraceError, ShapeError, DTypeError):  # a state that grows, values that decide
        pass
    steps = []
    unbound = [each.unbind(0) for each in rows]
    for row in zip(*unbound):
        state, found = step(state, list(row))
        steps.append(found)
    columns = []
    for place in range(len(body.output) - count):
        column = [found[place] for found in steps]
        columns.append(joined(call, column, 0))
    return state, columns


@operator("Scan")
def scan_before(
    call: Call,
    lengths: Value,
    *inputs: Value,
    body: Any,
    num_scan_inputs: int,
    directions: Any = None,
) -> Any:
    """Run a subgraph over slices of every sample of a batch."""
    batch = inputs[0].shape[0]
    found = [
        scan(
            call, *(call.tensor(each)[n] for each in inputs), body=body,
            num_scan_inputs=num_scan_inputs, scan_input_directions=directions,
        )
        for n in range(batch)
    ]  # fmt: skip
    return tuple(joined(call, [sample[k] for sample in found], 0) for k in range(len(found[0])))


def joined(call: Call, values: list[Value], axis: int) -> Value:
    """Stack the values of all steps."""
    if not values:
        return call.tensor(np.zeros((0,), np.float32))
    return stack([call.tensor(each) for each in values], axis)
