"""values: which nodes of a graph are one value.

Equal nodes are computed once; what only gives its input another name is computed with that.
"""

from collections.abc import Iterable
from typing import Any

from picograd.graph.bounded import ends_of, sources_of
from picograd.graph.node import Node, is_renaming
from picograd.graph.row import INPUTS, KEEPING, MEMORY, NUMBERS, SCALARS, WRITES
from picograd.graph.starts import MOVING, placed, starts_of
from picograd.schedule.group import Facts

LEAVES = MEMORY | INPUTS
NAMING = NUMBERS | SCALARS | WRITES | MOVING  # whose arguments are told apart otherwise


def facts_of(order: Iterable[Node], roots: Iterable[Node]) -> dict[int, Facts]:
    """Map each node, listed inputs first, by identity to the facts of the first of equal value.

    What only gives its input another name has the facts of that, unless it is wanted in memory.
    """
    first: dict[Any, Facts] = {}
    found: dict[int, Facts] = {}
    asked = set(map(id, roots))
    for node in order:
        if node.realized is not None or node.op in LEAVES:
            key = leaf_key(node)
            same: Any = key, node.shape, node.dtype
            new = Facts(node, len(first), (), True, True, key)
            found[id(node)] = first.setdefault(same, new)
            continue
        inputs = tuple([found[id(child)] for child in node.inputs])
        if node.op in KEEPING and is_renaming(node) and id(node) not in asked:
            found[id(node)] = inputs[0]
            continue
        if type(node) is Node and node.op not in NAMING:
            same = node.op, inputs, node.arg, node.shape, node.dtype, node.device
        else:
            same = naming_key(node, inputs)
        new = Facts(node, len(first), inputs)
        found[id(node)] = first.setdefault(same, new)
    return found


def is_leaf(node: Node) -> bool:
    """Tell whether a node's value is in memory already."""
    return node.realized is not None or node.op in LEAVES


def leaf_key(node: Node) -> int:
    """Identity of the memory behind a leaf."""
    if node.realized is not None:
        return id(node.realized)
    if node.op in INPUTS:  # of a loop's body
        return id(node)
    return id(node.arg.buffer) if node.arg.buffer is not None else id(node.arg)


def naming_key(node: Node, inputs: tuple[Facts, ...]) -> Any:
    """Tell what is the same for nodes of equal value, whose argument may be told apart."""
    arg = node.arg
    if node.op in NUMBERS:
        arg = type(arg).__name__, repr(arg)
    elif node.op in SCALARS:
        arg = id(arg)
    elif node.op in WRITES:
        arg = id(node)
    elif node.op in MOVING and starts_of(node):
        arg = placed(node, id)
    ends = ends_of(node), sources_of(node)
    return (node.op, inputs, arg, node.shape, node.dtype, node.device, ends)


def let_go(values: Iterable[Facts]) -> None:
    """Undo what refers to itself: the memory that a graph reads would wait for the collector."""
    for facts in values:
        facts.group = facts.home = facts.stream = None
