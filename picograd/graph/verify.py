"""Verifier and printer of Graph IR."""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.dtype import bool_
from picograd.errors import check
from picograd.graph import parts
from picograd.graph.ends import every_end, problem_of_ends
from picograd.graph.host_call import result_shape
from picograd.graph.node import Node, toposort
from picograd.graph.ops import OPS
from picograd.graph.recurrence import problem_of_recurrence
from picograd.graph.shape import (
    Shape,
    contract_shape,
    conv_sizes,
    fold_shape,
    gather_shape,
    pad_shape,
    reduce_shape,
    slice_shape,
    window_shape,
)
from picograd.helpers import product


def format_graph(roots: Node | Sequence[Node]) -> str:
    """Print a graph, one node a line, inputs first, numbered in that order.

    %2 = add(%0, %1) float32(3, 4)
    """
    order = toposort([roots] if isinstance(roots, Node) else roots)
    numbers = {id(node): number for number, node in enumerate(order)}
    device = order[0].device if order else ""
    lines = []
    for number, node in enumerate(order):
        args = [f"%{numbers[id(child)]}" for child in node.inputs]
        if node.arg is not None:
            args.append(format_arg(node))
        place = "" if node.device == device else f" on {node.device}"
        state = " realized" if node.realized is not None else ""
        kind = f"{node.dtype.name}{node.shape}"
        ends = "".join(f", {end} ends" for end in every_end(node))
        lines.append(f"%{number} = {node.op}({', '.join(args)}) {kind}{place}{state}{ends}")
    return "\n".join(lines)


def format_arg(node: Node) -> str:
    """Print the argument of a node; what has an address is named by its kind, to stay stable."""
    if node.op in ("buffer", "scalar"):
        return type(node.arg).__name__
    if node.op in ("cast", "bitcast"):
        return str(node.arg.name)
    return repr(node.arg)


def verify(roots: Node | Sequence[Node]) -> None:
    """Raise InternalError with the printed graph unless every invariant of Graph IR holds."""
    listed = [roots] if isinstance(roots, Node) else list(roots)
    for node in toposort(listed):
        problem = problem_of(node)
        if problem:
            check(False, f"{node}: {problem}", format_graph(listed))


def problem_of(node: Node) -> str:
    """Describe what is wrong with one node, or nothing."""
    row = OPS.get(node.op)
    if row is None:
        return "unknown op"
    if row.arity >= 0 and len(node.inputs) != row.arity:
        return f"takes {row.arity} inputs, has {len(node.inputs)}"
    if not isinstance(node.shape, tuple) or any(
        type(size) is not int or size < 0 for size in node.shape
    ):
        return "the shape is not a tuple of sizes"
    if node.op != "copy" and any(child.device != node.device for child in node.inputs):
        return "an input is on another device"
    problem = dtype_problem(node)
    if problem:
        return problem
    wanted = wanted_shape(node)
    if wanted is not None and wanted != node.shape:
        return f"the shape should be {wanted}"
    problem = problem_of_ends(node)
    if problem:
        return problem
    return ARG_CHECKS[node.op](node) if node.op in ARG_CHECKS else ""


def data_inputs(node: Node) -> tuple[Node, ...]:
    """Inputs that share the row's dtype: not conditions, indices, targets or offsets."""
    if node.op == "where":
        return node.inputs[1:]
    if OPS[node.op].kind == "recur":  # checked on its own
        return ()
    if node.op == "scatter":
        return node.inputs[:2]
    if node.op in ("gather", "cross_entropy", "scan_chunks", "scatter_runs", "radix_move"):
        return node.inputs[:1]
    return node.inputs


def dtype_problem(node: Node) -> str:
    """Check input dtypes against the row, and the result against the inputs."""
    row, data = OPS[node.op], data_inputs(node)
    if not data:
        return ""
    dtype = data[0].dtype
    if any(child.dtype is not dtype for child in data):
        return "input dtypes differ"
    if dtype.kind not in row.dtype_rule.kinds:
        return f"takes {row.dtype_rule.wanted}, not {dtype.name}"
    if node.op == "where" and node.inputs[0].dtype is not bool_:
        return "the condition is not bool"
    if node.op in ("gather", "scatter"):
        first, count = len(data), len(node.arg if node.op == "gather" else node.arg[0])
        if not all(index.dtype.is_integer for index in node.inputs[first : first + count]):
            return "an index is not an integer"
        if not all(each.dtype is bool_ for each in node.inputs[first + count :]):
            return "what says where to write is not bool"
    if node.op in ("cast", "bitcast"):
        return "" if node.arg is node.dtype else "the dtype is not the argument"
    free = node.op in ("argmax", "argmin", "random_bits", "sort", "sort_keys", "radix_count")
    if not free and node.dtype is not row.dtype_rule.result(dtype):
        return "the dtype does not follow from the inputs"
    return ""


def conv_shape(node: Node) -> Shape:
    """Output shape of a convolution."""
    x, weight = (child.shape for child in node.inputs)
    return (x[0], x[1], weight[1], *conv_sizes(x[3:], weight[3:], node.arg))


SHAPES: dict[str, Callable[[Node, Shape], Shape]] = {
    "permute": lambda node, x: tuple(x[axis] for axis in node.arg),
    "reshape": lambda node, x: node.arg,
    "expand": lambda node, x: node.arg,
    "slice": lambda node, x: slice_shape(node.arg),
    "flip": lambda node, x: x,
    "pad": lambda node, x: pad_shape(x, node.arg[0]),
    "window": lambda node, x: window_shape(x, node.arg),
    "fold": lambda node, x: fold_shape(x, *node.arg),
    "reduce": lambda node, x: reduce_shape(x, node.arg[1]),
    "contract": lambda node, x: contract_shape(x, node.inputs[1].shape, node.arg),
    "conv": lambda node, x: conv_shape(node),
    "gather": lambda node, x: gather_shape(x, node.inputs[1].shape, node.arg),
    "scatter": lambda node, x: x,
    "put": lambda node, x: x,
    "scan": lambda node, x: x,
    "scan_chunks": lambda node, x: x,
    "sort": lambda node, x: x,
    "sort_keys": lambda node, x: x,
    "radix_move": lambda node, x: x,
    "scatter_runs": lambda node, x: x,
    "scalar": lambda node, x: (),
    "host_call": lambda node, x: result_shape(node.arg, node.inputs),
}


def wanted_shape(node: Node) -> Shape | None:
    """Shape that follows from the inputs; None where the node chooses it."""
    first = node.inputs[0].shape if node.inputs else ()
    if node.op in SHAPES:
        return SHAPES[node.op](node, first)
    row = OPS[node.op]
    if row.is_elementwise or row.kind == "effect":
        differing = [child.shape for child in node.inputs if child.shape != first]
        return differing[0] if differing else first
    return None


def check_expand_arg(node: Node) -> str:
    """Only axes of size 1 are repeated."""
    x = node.inputs[0].shape
    fits = len(x) == node.rank and all(a in (1, b) for a, b in zip(x, node.shape))
    return "" if fits else f"cannot expand {x}"


def check_reshape_arg(node: Node) -> str:
    """The number of elements stays."""
    return "" if product(node.inputs[0].shape) == node.size else "the element count changes"


def check_permute_arg(node: Node) -> str:
    """Every axis appears once."""
    return "" if sorted(node.arg) == list(range(node.inputs[0].rank)) else "not a permutation"


def check_reduce_arg(node: Node) -> str:
    """A known monoid over sorted axes."""
    monoid, axes = node.arg
    if monoid not in ("sum", "prod", "max", "min"):
        return f"unknown monoid {monoid!r}"
    inside = all(0 <= axis < node.inputs[0].rank for axis in axes)
    return "" if inside and list(axes) == sorted(set(axes)) else f"bad axes {axes}"


def check_labels(node: Node) -> str:
    """Labels name the axes, and agree on sizes."""
    a, b = node.inputs
    sizes: dict[Any, int] = {}
    for child, names in zip((a, b), node.arg):
        if len(names) != child.rank or len(set(names)) != child.rank:
            return f"labels {names} do not name {child.shape}"
        for label, size in zip(names, child.shape):
            if sizes.setdefault(label, size) != size:
                return f"label {label} has two sizes"
    return ""


def check_slice_arg(node: Node) -> str:
    """Ranges lie inside, with steps of at least 1."""
    x = node.inputs[0].shape
    fits = len(node.arg) == len(x) and all(
        0 <= start <= stop <= size and step >= 1 for (start, stop, step), size in zip(node.arg, x)
    )
    return "" if fits else f"ranges do not fit {x}"


def check_recurrence(node: Node) -> str:
    """The inputs fit the body, and the body is a graph without faults."""
    problem = problem_of_recurrence(node)
    if problem:
        return problem
    found = [(inner, problem_of(inner)) for inner in node.arg.body.order]
    return next((f"in the body, {inner}: {text}" for inner, text in found if text), "")


def check_put_arg(node: Node) -> str:
    """The value has the shape of the view, whose steps show no element twice."""
    base, value = node.inputs
    if any(op not in parts.SHOW for op, _ in node.arg):
        return "a step is no view of distinct elements"
    view = parts.shown(base, node.arg)
    return "" if view.shape == value.shape else f"the view has shape {view.shape}"


ARG_CHECKS: dict[str, Callable[[Node], str]] = {
    "expand": check_expand_arg,
    "reshape": check_reshape_arg,
    "permute": check_permute_arg,
    "reduce": check_reduce_arg,
    "contract": check_labels,
    "slice": check_slice_arg,
    "put": check_put_arg,
    "recur": check_recurrence,
    "outcome": problem_of_recurrence,
}
