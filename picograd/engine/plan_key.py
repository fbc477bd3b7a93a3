"""The structural key of a graph: two graphs with one key run the same plan on other buffers.

One walk numbers the nodes under the roots (inputs first), stopping at leaves and at nodes that are
already realized. The key holds operations, arguments, shapes, dtypes and the numbers of inputs;
buffers and runtime scalars enter as numbers, in order of first appearance, so that which leaves
are the *same* buffer is part of the key while which buffer it is, is not.

A constant that a user gave is a runtime scalar of the plan too. It stays a constant of the graph:
only where a plan is missing, `with_scalars` puts the scalar in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from picograd.buffer import Buffer, RuntimeScalar
from picograd.graph.ends import End, EndedNode
from picograd.graph.node import Node, toposort
from picograd.graph.starts import MOVING, placed, starts_of
from picograd.number import GIVEN, Given, GivenInt


class Key:
    """A structural key, hashed once: a cache asks for the hash again and again."""

    __slots__ = ("hash", "rows")

    def __init__(self, rows: tuple[Any, ...]) -> None:
        self.rows, self.hash = rows, hash(rows)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key) or self.hash != other.hash:
            return False
        return self.rows == other.rows

    def __repr__(self) -> str:
        return repr(self.rows)


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


def leaf_buffer(node: Node) -> Buffer | None:
    """Find the buffer of a leaf or realized node; None for a node still to compute."""
    if node.realized is not None:
        return node.realized
    if node.op == "buffer":
        buffer: Buffer | None = node.arg.buffer
        return buffer
    return None


buffer_of = attrgetter("realized")  # a computed node's; None otherwise. As a leaf's test: fast


def walk_pending(roots: Sequence[Node]) -> list[Node]:
    """List the nodes under `roots`, inputs first, not looking behind leaves or realized nodes."""
    return toposort(roots, buffer_of)


def graph_key(roots: Sequence[Node], order: list[Node] | None = None) -> GraphKey:
    """Walk the graph once, in the order of `walk_pending`; see the module docstring."""
    order = walk_pending(roots) if order is None else order
    numbers = {id(node): position for position, node in enumerate(order)}
    found = GraphKey(NO_KEY, order, [], [], [], numbers)
    buffer_numbers: dict[int, int] = {}
    scalar_numbers: dict[int, int] = {}
    rows: list[Any] = []
    for node in order:
        op, inputs, place = node.op, node.inputs, (node.shape, node.dtype.name, node.device)
        if inputs and node.realized is None:
            if len(inputs) == 1:
                read: Any = numbers[id(inputs[0])]
            else:
                read = tuple([numbers[id(child)] for child in inputs])
            arg = node.arg
            if op in MOVING and starts_of(node):
                arg = placed(node, partial(name_start, found.scalars, scalar_numbers))
            row: tuple[Any, ...] = (op, read, arg, place)
            if type(node) is EndedNode:
                row += ends_of(node, partial(name_count, found.scalars, scalar_numbers))
            rows.append(row)
            continue
        buffer = leaf_buffer(node)
        if buffer is not None:
            number = buffer_numbers.setdefault(id(buffer), len(found.buffers))
            if number == len(found.buffers):
                found.buffers.append(buffer)
            found.leaves.append(node)
            rows.append((number, place))
        elif op == "scalar" or (op == "const" and type(node.arg) in GIVEN):
            number = scalar_numbers.setdefault(id(node.arg), len(found.scalars))
            if number == len(found.scalars):
                found.scalars.append(node.arg)
            rows.append(("scalar", number, place))
        else:
            rows.append((op, hashable(node), place))
    found.key = Key((tuple(rows), tuple([numbers[id(root)] for root in roots])))
    return found


def ends_of(node: EndedNode, name: Callable[[End], int]) -> tuple[Any, ...]:
    """List where arrays end, those of a node and of what it sums."""
    found: list[Any] = []
    for ends in (node.ends, *node.sources):
        listed = [(end.axis, end.step, end.size, name(end)) for end in ends]
        found.append(tuple(listed))
    return tuple(found)


def name_count(scalars: list[Any], numbers: dict[int, int], end: End) -> int:
    """Name the runtime scalar of an end by its number."""
    number = numbers.setdefault(id(end.count), len(scalars))
    if number == len(scalars):
        scalars.append(end.count)
    return number


def name_start(scalars: list[Any], numbers: dict[int, int], start: GivenInt) -> tuple[str, int]:
    """Name the position of a slice by its number among the scalars."""
    number = numbers.setdefault(id(start), len(scalars))
    if number == len(scalars):
        scalars.append(start)
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
    if node.op != "const" or type(node.arg) not in GIVEN or node.realized is not None:
        return node  # a number too may have been computed
    scalar = Node("scalar", (), node.arg, (), node.dtype, node.device)
    return scalar.broadcast_to(node.shape)


def hashable(node: Node) -> Any:
    """The argument of a node as a key: constants keep apart 1, 1.0, True, -0.0 and nan."""
    if node.op == "const":
        return type(node.arg).__name__, repr(node.arg)
    return node.arg
