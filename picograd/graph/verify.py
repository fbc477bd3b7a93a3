"""Verifier and printer of Graph IR."""

from picograd.dtype import DType
from picograd.errors import check
from picograd.graph.bounded import every_end, problem_of_ends
from picograd.graph.node import Node, Nodes, toposort
from picograd.graph.ops import OPS
from picograd.graph.recurrence import Recurrence
from picograd.graph.row import Role


def format_graph(roots: Node | Nodes) -> str:
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
    if node.row.role in (Role.MEMORY, Role.SCALAR):
        return type(node.arg).__name__
    return str(node.arg.name) if type(node.arg) is DType else repr(node.arg)


def verify(roots: Node | Nodes) -> None:
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
    if row.role is not Role.COPY and any(child.device != node.device for child in node.inputs):
        return "an input is on another device"
    for check_of in dtype_problem, shape_problem, problem_of_ends, row.check, problem_inside:
        problem = check_of(node) if check_of is not None else ""
        if problem:
            return problem
    return ""


def dtype_problem(node: Node) -> str:
    """Check input dtypes against the row, and the result against the inputs."""
    row, data = node.row, node.inputs[slice(*node.row.data)]
    if not data:
        return ""
    dtype, rule = data[0].dtype, row.dtype_rule
    if any(child.dtype is not dtype for child in data):
        return "input dtypes differ"
    if dtype.kind not in rule.kinds:
        return f"takes {rule.wanted}, not {dtype.name}"
    is_named = type(node.arg) is DType
    if node.dtype is not (node.arg if is_named else rule.result(dtype)):
        return (
            f"the dtype {'is not the argument' if is_named else 'does not follow from the inputs'}"
        )
    return ""


def shape_problem(node: Node) -> str:
    """Check the shape against that which follows from the argument and the inputs."""
    rule = node.row.shape
    if rule is None:
        return ""
    wanted = rule(node.arg, *(child.shape for child in node.inputs))
    return "" if wanted == node.shape else f"the shape should be {wanted}"


def problem_inside(node: Node) -> str:
    """Describe what is wrong with a node of a loop's body."""
    body = node.arg.body.order if type(node.arg) is Recurrence else ()
    found = [(inner, problem_of(inner)) for inner in body]
    return next((f"in the body, {inner}: {text}" for inner, text in found if text), "")
