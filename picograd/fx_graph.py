"""Graphs of `fx`: nodes that name one another, listed in order, and their text in Python."""

import builtins
import functools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from picograd.errors import StateError
from picograd.late_methods import dataclass


class Standin:
    """This class stands for the value of a node while a program is traced."""


class PythonCode(NamedTuple):
    """This class is the text of a graph."""

    src: str


def map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Change the nodes in nested arguments."""
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return type(a)(*(map_arg(each, fn) for each in a))
    if isinstance(a, (list, tuple)):
        return type(a)(map_arg(each, fn) for each in a)
    if isinstance(a, dict):
        return {key: map_arg(each, fn) for key, each in a.items()}
    if isinstance(a, slice):
        return slice(*(map_arg(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a) if isinstance(a, (Node, Standin)) else a


def found_in(args: Any, kwargs: Any) -> list[Any]:
    """List the nodes, or the proxies, in nested arguments."""
    found: list[Any] = []
    map_arg((args, kwargs), found.append)
    return found


@dataclass(eq=False)
class Node:
    """This class is an operation of a graph: `op` says what `target` is, `args` name other nodes.

    `op` is placeholder, get_attr, call_function, call_method, call_module or output.
    """

    graph: "Graph"
    name: str
    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    type: Any = None

    def __post_init__(self) -> None:
        self.meta: dict[str, Any] = {}

    def __repr__(self) -> str:
        return self.name

    @property
    def next(self) -> "Node | None":
        """Find the node after this one; None after the last."""
        at = self.graph.nodes.index(self) + 1
        return self.graph.nodes[at] if at < len(self.graph.nodes) else None

    @property
    def prev(self) -> "Node | None":
        """Find the node before this one; None before the first."""
        at = self.graph.nodes.index(self)
        return self.graph.nodes[at - 1] if at else None

    def prepend(self, x: "Node") -> None:
        """Move a node before this one."""
        if x is not self:
            self.graph.nodes.remove(x)
            self.graph.nodes.insert(self.graph.nodes.index(self), x)

    def append(self, x: "Node") -> None:
        """Move a node after this one."""
        if x is not self:
            self.graph.nodes.remove(x)
            self.graph.nodes.insert(self.graph.nodes.index(self) + 1, x)

    @property
    def all_input_nodes(self) -> list["Node"]:
        """List the nodes among the arguments, each once."""
        return list(dict.fromkeys(found_in(self.args, self.kwargs)))

    @property
    def users(self) -> dict["Node", None]:
        """Find the nodes that read this one."""
        return {each: None for each in self.graph.nodes if self in each.all_input_nodes}

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Read another node in the place of one."""

        def change(each: Node) -> Node:
            return new_input if each is old_input else each

        self.args = map_arg(self.args, change)
        self.kwargs = map_arg(self.kwargs, change)

    def replace_all_uses_with(self, replace_with: "Node") -> list["Node"]:
        """Let all that read this node read another; give them."""
        users = [each for each in self.users if each is not replace_with]
        for each in users:
            each.replace_input_with(self, replace_with)
        return users


class Graph:
    """This class lists nodes in the order in which they are computed.

    >>> from picograd import Tensor, fx, nn
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> node = graph.output(graph.call_method("exp", (x,)))
    >>> fx.GraphModule(nn.Module(), graph)(Tensor([0.0])).tolist()
    [1.0]
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None) -> None:
        self.nodes: list[Node] = []
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._names: set[str] = set()  # also of nodes that were taken away
        self._at: int | None = None  # where new nodes go; None at the end

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add an operation."""
        text = name or (target if isinstance(target, str) else target.__name__)
        base = text.replace(".", "_").replace("*", "").strip("_") or "_"
        base = base if base.isidentifier() else f"_{base}"
        number, found = 1, base
        while found in self._names or hasattr(builtins, found):
            found, number = f"{base}_{number}", number + 1
        self._names.add(found)
        node = Node(self, found, op, target, tuple(args), dict(kwargs or {}), type_expr)
        self.nodes.insert(len(self.nodes) if self._at is None else self._at, node)
        if self._at is not None:
            self._at += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a parameter, or what else a path of the module leads to."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    call_function = functools.partialmethod(create_node, "call_function")
    call_method = functools.partialmethod(create_node, "call_method")
    call_module = functools.partialmethod(create_node, "call_module")

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add what the function gives."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Any], Any] = lambda x: x) -> Node:
        """Add a node of another graph; its inputs are changed."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: "Graph", val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Add the nodes of another graph, those of `val_map` replaced; give what it gives."""
        for node in g.nodes:
            if node.op == "output":
                found = map_arg(node.args[0], val_map.__getitem__)
                return (found, node) if return_output_node else found
            if node not in val_map:
                val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """List the nodes of one kind, in their order; with a target those of that alone."""
        found = [node for node in self.nodes if node.op == op]
        return [node for node in found if target is None or node.target == target]

    def python_code(self, root_module: str = "self", **options: Any) -> "PythonCode":
        """Write the graph as a method in Python, to be read: nothing runs it."""
        return PythonCode(source_of(self, root_module))

    def print_tabular(self) -> None:
        """Print a row for each node: its kind, name, target and arguments."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            print("  ".join(map(str.ljust, row, widths)).rstrip())

    def erase_node(self, to_erase: Node) -> None:
        """Take a node away. Raises StateError if it is read."""
        if to_erase.users:
            names = ", ".join(map(str, to_erase.users))
            problem = f"{to_erase} is read by {names}"
            raise StateError("erase_node", problem, "call replace_all_uses_with first")
        self.nodes.remove(to_erase)

    @contextmanager
    def _inserting(self, at: int | None) -> Iterator[None]:
        before, self._at = self._at, at
        try:
            yield
        finally:
            self._at = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """Add new nodes before one in a block; without one at the start."""
        return self._inserting(0 if n is None else self.nodes.index(n))

    def inserting_after(self, n: Node | None = None) -> Any:
        """Add new nodes after one in a block; without one at the end."""
        return self._inserting(None if n is None else self.nodes.index(n) + 1)

    def eliminate_dead_code(self, is_impure_node: Any = None) -> bool:
        """Take away what nothing reads; tell whether there was any."""
        before = len(self.nodes)
        for node in reversed(list(self.nodes)):
            if node.op not in ("placeholder", "output") and not node.users:
                self.nodes.remove(node)
        return len(self.nodes) < before

    def lint(self) -> None:
        """Raise StateError for a node that is read before it is computed."""
        known: set[Node] = set()
        for node in self.nodes:
            for each in node.all_input_nodes:
                if each not in known:
                    problem = f"{node} reads {each}, which does not come before it"
                    raise StateError("lint", problem, "use inserting_before and inserting_after")
            known.add(node)

    def __repr__(self) -> str:
        lines = [f"%{n.name} : {n.op}[{n.target}]({n.args}, {n.kwargs})" for n in self.nodes]
        return "graph():\n    " + "\n    ".join(lines)


class Match(NamedTuple):
    """This class says where a pattern was found: its last node, and the node of each of its own."""

    anchor: Node
    nodes_map: dict[Node, Node]


def find_matches(graph: Graph, pattern: Graph) -> list[Match]:
    """Find a pattern in a graph, in its order; matches share no node that they would replace.

    Arguments of the pattern stand for any node. Nothing outside may read what is inside a match.
    """
    (output,) = pattern.find_nodes(op="output")
    wanted = output.args[0]
    if not isinstance(wanted, Node) or wanted.op == "placeholder":
        problem = f"the pattern gives {wanted}, not the result of an operation"
        raise StateError("fx.replace_pattern", problem, "let it compute one value")
    readers: dict[Node, list[Node]] = {}
    for reader in graph.nodes:
        for each in reader.all_input_nodes:
            readers.setdefault(each, []).append(reader)
    taken: set[Node] = set()
    matches = []
    for node in graph.nodes:
        known: dict[Node, Node] = {}
        if not is_alike(wanted, node, known):
            continue
        inside = {known[each] for each in known if each.op != "placeholder"}
        read = [each for one in inside - {node} for each in readers[one]]
        if taken.isdisjoint(inside) and inside.issuperset(read):
            taken |= inside
            matches.append(Match(node, known))
    return matches


def is_alike(pattern: Any, value: Any, known: dict[Node, Node]) -> bool:
    """Tell whether an argument is as a pattern says, and note which node stands for which."""
    if isinstance(pattern, Node):
        if not isinstance(value, Node):
            return False
        if pattern in known:
            return known[pattern] is value
        known[pattern] = value
        if pattern.op == "placeholder":
            return True
        is_one = pattern.op == value.op and pattern.target == value.target
        mine, others = (pattern.args, pattern.kwargs), (value.args, value.kwargs)
        return is_one and is_alike(mine, others, known)
    if isinstance(pattern, dict) and isinstance(value, dict):
        keys = pattern.keys() == value.keys()
        return keys and all(is_alike(pattern[key], value[key], known) for key in pattern)
    if isinstance(pattern, (list, tuple)) and isinstance(value, (list, tuple)):
        is_long = len(pattern) == len(value)
        return is_long and all(is_alike(*pair, known) for pair in zip(pattern, value))
    if isinstance(pattern, slice) and isinstance(value, slice):
        ends, found = [[each.start, each.stop, each.step] for each in (pattern, value)]
        return is_alike(ends, found, known)
    return type(pattern) is type(value) and bool(pattern == value)


# how source spells functions of `operator`; others are called by their names
SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lt": "<", "le": "<=", "eq": "==",
    "ne": "!=", "gt": ">", "ge": ">=",
}  # fmt: skip


def source_of(graph: Graph, root: str) -> str:
    """Write a graph as a method in Python."""
    places, lines = ["self"], []
    for node in graph.nodes:
        given = [argument_text(each) for each in node.args]
        if node.op == "placeholder":
            default = "".join(f" = {each}" for each in given)
            word = f" : {getattr(node.type, '__name__', node.type)}" if node.type else ""
            places.append(f"{node.target}{word}{default}")
        elif node.op == "output":
            lines.append(f"return {given[0]}")
        else:
            lines.append(f"{node.name} = {call_text(node, given, root)}")
    return f"def forward({', '.join(places)}):\n    " + "\n    ".join(lines or ["pass"]) + "\n"


def call_text(node: Node, given: list[str], root: str) -> str:
    """Write what a node computes."""
    named = [f"{name} = {argument_text(each)}" for name, each in node.kwargs.items()]
    function, listed = node.target, ", ".join([*given, *named])
    if node.op in ("get_attr", "call_module"):
        path = functools.reduce(member_text, function.split("."), root)
        return path if node.op == "get_attr" else f"{path}({listed})"
    if node.op == "call_method":
        return f"{given[0]}.{function}({', '.join([*given[1:], *named])})"
    if function is getattr:
        return f"{given[0]}.{node.args[1]}"
    if function is operator.getitem:
        return f"{given[0]}[{given[1]}]"
    name = getattr(function, "__name__", str(function))
    if getattr(function, "__module__", "") == "_operator" and name in SIGNS:
        return f" {SIGNS[name]} ".join(given)
    space = getattr(function, "__module__", None) or ""
    path = "operator" if space == "_operator" else space.removeprefix("builtins")
    return f"{path}.{name}({listed})".lstrip(".")


def member_text(path: str, name: str) -> str:
    """Write a member of what a path leads to; those of a list are called by numbers."""
    return f"{path}.{name}" if name.isidentifier() else f'getattr({path}, "{name}")'


def argument_text(value: Any) -> str:
    """Write an argument: nodes by their names."""
    if isinstance(value, tuple):
        listed = [argument_text(each) for each in value]
        return f"({', '.join(listed)}{',' * (len(listed) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(argument_text, value))}]"
    if isinstance(value, dict):
        pairs = [f"{key!r}: {argument_text(each)}" for key, each in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(map(argument_text, parts))})"
    return repr(value)
