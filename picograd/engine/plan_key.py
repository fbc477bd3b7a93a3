"""The structural key of a graph: two graphs with one key run the same plan on other buffers.

One walk numbers the nodes under the roots (inputs first), stopping at leaves and at nodes that are
already realized. The key holds operations, arguments, shapes, dtypes and the numbers of inputs;
buffers and runtime scalars enter as numbers, in order of first appearance, so that which leaves
are the *same* buffer is part of the key while which buffer it is, is not.

A constant that a user gave is a runtime scalar of the plan too. It stays a constant of the graph:
only where a plan is missing, `with_scalars` puts the scalar in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from picograd.buffer import Buffer, Overwritten, RuntimeScalar
from picograd.graph.bounded import End, EndedNode
from picograd.graph.composites import NO_GRADIENT, CustomGradient
from picograd.graph.node import Node
from picograd.graph.row import MEMORY, NUMBERS, SCALARS
from picograd.graph.starts import MOVING, placed, starts_of
from picograd.helpers import Key
from picograd.late_methods import dataclass
from picograd.number import GIVEN, Given, GivenInt

NO_KEY = Key(())


@dataclass(slots=True)
class GraphKey:
    """What one walk over a graph finds; leaves and scalars in the order the key numbers them."""

    key: Key
    order: list[Node]
    leaves: list[Node]
    buffers: list[Buffer]
    scalars: list[RuntimeScalar | Given | GivenInt]
    numbers: dict[int, int]  # position in `order` by the identity of a node
    places: dict[int, int] = field(default_factory=dict)  # of buffers and scalars, likewise
    family: Any = None  # of graphs that differ in sizes, once it was looked for


def leaf_buffer(node: Node) -> Buffer | None:
    """Find the buffer of a leaf or realized node; None for a node still to compute."""
    if node.realized is not None:
        return node.realized
    return node.arg.buffer if node.op in MEMORY else None


def is_gone(node: Node) -> bool:
    """Tell whether a leaf is of contents that were overwritten."""
    return node.realized is None and type(node.arg) is Overwritten


def walk_pending(
    roots: Sequence[Node], seen: set[Node] | None = None, order: list[Node] | None = None
) -> list[Node]:
    """List the nodes under `roots`, inputs first, not looking behind leaves or realized nodes.

    As `toposort`, but that folded formulas stay what they are. What was `seen` is left out; the
    nodes of the list are, afterwards. An `order` that is given is added to.
    """
    order = [] if order is None else order
    seen = set() if seen is None else seen
    stack: list[Node | None] = [*reversed(roots)]
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        if node is None:  # what is below it has all that it reads in the list
            done: Any = pop()
            order.append(done)
        elif node not in seen:
            seen.add(node)
            inputs = node.inputs
            if not inputs or node.realized is not None or (len(inputs) == 1 and inputs[0] in seen):
                order.append(node)
            else:
                push(node)
                push(None)
                stack += inputs[::-1]
    return order


def graph_key(roots: Sequence[Node]) -> GraphKey:
    """Walk the graph once, in the order of `walk_pending`; see the module docstring."""
    order = walk_pending(roots)
    found, rows = GraphKey(NO_KEY, order, [], [], [], {}), []  # type: ignore[var-annotated]
    add_rows(order, 0, found, rows)
    return with_key(found, rows, roots)


def with_key(found: GraphKey, rows: list[Any], roots: Sequence[Node]) -> GraphKey:
    """Give a key to what was found of a graph."""
    numbers = found.numbers
    found.key = Key((tuple(rows), tuple([numbers[id(root)] for root in roots])))
    return found


def add_rows(order: Sequence[Node], start: int, found: GraphKey, rows: list[Any]) -> None:
    """Describe nodes, listed inputs first and numbered from a start on: a row each."""
    numbers, places, buffers = found.numbers, found.places, found.buffers
    for number, node in enumerate(order, start):
        inputs, op, held = node.inputs, node.op, node.realized
        if inputs and held is None:
            arg = node.arg
            if len(inputs) == 1:
                read: Any = numbers[id(inputs[0])]
            elif len(inputs) == 2:
                read = numbers[id(inputs[0])], numbers[id(inputs[1])]
            else:
                read = tuple([numbers[id(child)] for child in inputs])
            if op in MOVING and starts_of(node):
                arg = placed(node, partial(name_start, found.scalars, places))
            elif type(arg) is CustomGradient:
                arg = NO_GRADIENT
            row: tuple[Any, ...] = (op, read, arg, node.shape, node.dtype.name, node.device)
            if type(node) is EndedNode:
                row += ends_of(node, partial(name_count, found))
        else:
            if held is None and op in MEMORY:
                held = node.arg.buffer
            if held is None:
                row = leaf_row(node, found)
            else:
                place = places.setdefault(id(held), len(buffers))
                if place == len(buffers):
                    buffers.append(held)
                found.leaves.append(node)
                row = place, node.shape, node.dtype.name, node.device
        numbers[id(node)] = number
        rows.append(row)


def leaf_row(node: Node, found: GraphKey) -> tuple[Any, ...]:
    """Describe a leaf without memory; notes its scalar."""
    if node.op in SCALARS or (node.op in NUMBERS and type(node.arg) in GIVEN):
        number = name_of(found.scalars, found.places, node.arg)
        return "scalar", number, node.shape, node.dtype.name, node.device
    return node.op, hashable(node), node.shape, node.dtype.name, node.device


def name_of(found: list[Any], places: dict[int, Any], held: Any) -> int:
    """Give the number of a buffer or runtime scalar, a new one where it was not met before."""
    number: int = places.setdefault(id(held), len(found))
    if number == len(found):
        found.append(held)
    return number


def ends_of(node: EndedNode, name: Callable[[End], int]) -> tuple[Any, ...]:
    """List where arrays end, those of a node and of what it sums."""
    found: list[Any] = []
    for ends in (node.ends, *node.sources):
        listed = [(end.axis, end.step, end.size, name(end)) for end in ends]
        found.append(tuple(listed))
    return tuple(found)


def name_count(found: GraphKey, end: End) -> int:
    """Name the runtime scalar of an end by its number."""
    scalars, places = found.scalars, found.places
    return name_of(scalars, places, end.count)


def name_start(scalars: list[Any], places: dict[int, Any], start: GivenInt) -> tuple[str, int]:
    """Name the position of a slice by its number among the scalars."""
    number = name_of(scalars, places, start)
    return "at", number


def with_scalars(roots: Sequence[Node], found: GraphKey) -> list[Node]:
    """Copy a graph over runtime scalars in the place of the constants that a user gave."""
    done: dict[int, Node] = {}
    for node in found.order:
        if node.inputs and node.realized is None:
            inputs = [done[id(child)] for child in node.inputs]
            done[id(node)] = node.with_inputs(tuple(inputs))
        else:
            done[id(node)] = with_scalar(node)
    return [done[id(root)] for root in roots]


def with_scalar(node: Node) -> Node:
    """Give the runtime scalar of a constant that a user gave; other leaves as they are."""
    if node.op not in NUMBERS or type(node.arg) not in GIVEN or node.realized is not None:
        return node  # a number too may have been computed
    return Node("scalar", (), node.arg, (), node.dtype, node.device).broadcast_to(node.shape)


def hashable(node: Node) -> Any:
    """The argument of a node as a key: constants keep apart 1, 1.0, True, -0.0 and nan."""
    if node.op in NUMBERS:
        return type(node.arg).__name__, repr(node.arg)
    return node.arg
