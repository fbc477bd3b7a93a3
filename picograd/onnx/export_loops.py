"""The loops of Graph IR as ONNX's `Scan`: running products and extremes, and recurrences."""

from typing import Any

import numpy as np
from onnx import helper

from picograd.dtype import DType, int64
from picograd.graph.node import Node, toposort
from picograd.graph.recurrence import Body, Recurrence
from picograd.graph.scanning import identity
from picograd.onnx.export_elementwise import ROWS as ELEMENTWISE
from picograd.onnx.export_rows import row
from picograd.onnx.values import NAMES
from picograd.onnx.writer import Size, Written, traced_of

COMBINED = {"prod": "mul", "max": "maximum", "min": "minimum", "logaddexp": "logaddexp"}


def info(name: str, dtype: DType, shape: Any) -> Any:
    """Describe an input or output; sizes that are no ints are left open."""
    sizes = [size if type(traced_of(size)) is int else None for size in shape]
    return helper.make_tensor_value_info(name, NAMES[dtype], sizes)


@row("scan")
def scan(e: Any, node: Node, x: Written) -> Written:
    """Combine up to each element: a running sum is ONNX's, others are a loop."""
    w, (monoid, axis), x = e.writer, node.arg, e.whole(node.inputs[0])
    if monoid == "sum":
        place = w.constant(np.asarray(axis))
        return Written(w.emit("CumSum", x.name, place), node.shape, node.dtype)
    rest = tuple(size for d, size in enumerate(node.shape) if d != axis)
    first = w.full(w.number(identity(monoid, node.dtype), node.dtype), rest)
    state, element = (Written(w.new_name(kind), rest, node.dtype) for kind in ("state", "row"))
    nodes: list[Any] = []
    with w.body(nodes):
        found = ELEMENTWISE[COMBINED[monoid]](w, node.dtype, state, element)
        ends = [w.emit("Identity", found.name) for _ in range(2)]
    inputs = [info(each.name, each.dtype, rest) for each in (state, element)]
    outputs = [info(name, node.dtype, rest) for name in ends]
    body = helper.make_graph(nodes, w.new_name("body"), inputs, outputs)
    settings = {"scan_input_axes": [axis], "scan_output_axes": [axis]}
    names = w.emit("Scan", first.name, x.name, outputs=2, body=body, num_scan_inputs=1, **settings)
    return Written(names[1], node.shape, node.dtype)


@row("recur")
def recur(e: Any, node: Node, *values: Written) -> Written:
    """Write a loop, with what is asked of it; its outcomes find their values by it."""
    w, spec = e.writer, node.arg
    body: Body = spec.body
    carries, count = len(body.carries), len(body.carries) + len(body.xs)
    given = [e.whole(each) for each in node.inputs]
    stacks = given[carries:count] or [steps(e, spec)]
    wanted = [each.arg for each in e.outcomes.get(id(node), ())]
    rows = [number for kind, number in wanted if kind == "stack"]
    rows += [body.nexts[number] for kind, number in wanted if kind == "history"]
    rows = list(dict.fromkeys(rows))
    inner, infos = body_of(e, body, given, stacks, [*body.nexts, *rows])
    graph = helper.make_graph(inner, w.new_name("body"), *infos)
    backwards = int(spec.is_reverse)
    names = w.emit(
        "Scan", *[each.name for each in (*given[:carries], *stacks)],
        outputs=carries + len(rows), body=graph, num_scan_inputs=len(stacks),
        scan_input_directions=[backwards] * len(stacks),
        scan_output_directions=[backwards] * len(rows) or None,  # an empty list has no type
    )  # fmt: skip
    names = names if isinstance(names, list) else [names]
    e.loops[id(node)] = given, dict(enumerate(names[:carries])), dict(zip(rows, names[carries:]))
    return Written("", (), node.dtype)


def steps(e: Any, spec: Recurrence) -> Written:
    """Make what a loop without stacked inputs runs over: as many numbers as it has steps."""
    w = e.writer
    return Written(w.full(w.number(0, int64), (spec.length,)).name, (spec.length,), int64)


def body_of(
    e: Any, body: Body, given: list[Written], stacks: list[Written], results: list[int]
) -> Any:
    """Write one step; gives its nodes, and what describes its inputs and outputs."""
    w, nodes = e.writer, []  # type: ignore[var-annotated]
    first, last = len(body.carries), len(body.carries) + len(body.xs)
    names = [w.new_name("state") for _ in range(first)]
    names += [w.new_name("row") for _ in stacks]
    shapes: list[tuple[DType, tuple[Size, ...]]] = [
        (leaf.dtype, leaf.shape) for leaf in body.leaves[:last]
    ]
    shapes = shapes if body.xs else [*shapes, (int64, ())]
    inputs = [info(name, *each) for name, each in zip(names, shapes)]
    with w.body(nodes), e.inside():
        for leaf, name in zip(body.leaves[:last], names):
            e.values[id(leaf)] = Written(name, leaf.shape, leaf.dtype)
        for leaf, value in zip(body.leaves[last:], given[last:]):
            e.values[id(leaf)] = value
        wanted = [body.order[number] for number in results]
        e.write(toposort(wanted, lambda each: id(each) in e.values))
        ends = [w.emit("Identity", e.whole(each).name) for each in wanted]
    outputs = [info(name, each.dtype, each.shape) for name, each in zip(ends, wanted)]
    return nodes, (inputs, outputs)


@row("outcome")
def outcome(e: Any, node: Node, loop: Written) -> Written:
    """Find what a loop computed; a history begins with what it was given."""
    w, (kind, number), source = e.writer, node.arg, node.inputs[0]
    given, carries, rows = e.loops[id(source)]
    body = source.arg.body
    if kind == "carry":
        return Written(carries[number], node.shape, node.dtype)
    if kind == "stack":
        return Written(rows[number], node.shape, node.dtype)
    first = w.reshape(given[number], (1, *body.carries[number].shape)).name
    after = rows[body.nexts[number]]
    parts = [after, first] if source.arg.is_reverse else [first, after]
    return Written(w.emit("Concat", *parts, axis=0), node.shape, node.dtype)
