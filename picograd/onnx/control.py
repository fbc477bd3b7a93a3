"""ONNX operators with subgraphs: If, Loop, Scan. They run in Python, step by step."""

from typing import Any

import numpy as np

from picograd.onnx.table import Call, Value, operator
from picograd.tensor.public import stack


@operator("If")
def if_(call: Call, condition: Value, then_branch: Any, else_branch: Any) -> tuple[Value, ...]:
    """Run one of two subgraphs; the condition is known on the host."""
    is_true = bool(call.host(condition).item())
    return tuple(call.run(then_branch if is_true else else_branch, []))


@operator("Loop")
def loop(call: Call, most: Value, condition: Value, *carried: Value, body: Any) -> Any:
    """Run a subgraph again and again; what it gives beside its state is stacked."""
    limit = 1 << 62 if most is None else int(call.host(most).item())
    goes_on = condition is None or bool(call.host(condition).item())
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
    state = list(inputs[:count])
    slices = []
    for k, value in enumerate(inputs[count:]):
        parts = list(call.tensor(value).unbind((scan_input_axes or [0] * num_scan_inputs)[k]))
        backwards = (scan_input_directions or [0] * num_scan_inputs)[k]
        slices.append(parts[::-1] if backwards else parts)
    rows = []
    for each in zip(*slices):
        found = call.run(body, [*state, *each])
        state = found[:count]
        rows.append(found[count:])
    extra = len(body.output) - count
    outputs = []
    for k in range(extra):
        column = [row[k] for row in rows]
        backwards = (scan_output_directions or [0] * extra)[k]
        axis = (scan_output_axes or [0] * extra)[k]
        outputs.append(joined(call, column[::-1] if backwards else column, axis))
    return (*state, *outputs)


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
