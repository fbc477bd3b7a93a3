"""Formula: a graph with open inputs, recorded once and stamped out over other nodes.

What an optimizer or `backward` records is the same at every step, on other nodes. Recording it
checks, promotes and folds; stamping it out only makes the nodes.

    formula_of([x, y], [x * y + 1])     mul 0 1, const 1, add 2 3; result 4
    .stamp([a, b])                      [a * b + 1]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from picograd.dtype import DType
from picograd.graph.node import Node, toposort
from picograd.graph.shape import Shape

Step = tuple[str, tuple[int, ...], tuple[Any, Shape, DType, str]]
LOOKED_THROUGH = ("const", "reshape", "permute")  # what Node's constructors fold depends on these
PLAIN_LEAVES = ("const", "iota")  # of one value: a formula may hold them


@dataclass(frozen=True, slots=True)
class Formula:
    """See the module docstring; a step reads inputs and earlier steps by their numbers."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def stamp(self, inputs: Sequence[Node]) -> list[Node]:
        """Make the results of other inputs, of the same shapes, dtypes and device."""
        nodes = list(inputs)
        for op, places, rest in self.steps:
            read = tuple([nodes[number] for number in places])
            nodes.append(Node(op, read, *rest))
        return [nodes[number] for number in self.results]


def formula_of(inputs: Sequence[Node], results: Sequence[Node]) -> Formula | None:
    """Keep how results were made of inputs; None if that is not all they depend on."""
    if any(node.op in LOOKED_THROUGH for node in inputs):
        return None
    numbers = dict(zip(map(id, inputs), range(len(inputs))))
    steps: list[Step] = []
    for node in toposort(results, lambda node: id(node) in numbers):
        if id(node) in numbers:
            continue
        if not is_pure(node):
            return None
        numbers[id(node)] = len(inputs) + len(steps)
        places = [numbers[id(child)] for child in node.inputs]
        rest = node.arg, node.shape, node.dtype, node.device
        steps.append((node.op, tuple(places), rest))
    found = [numbers[id(node)] for node in results]
    return Formula(tuple(steps), tuple(found))


def is_pure(node: Node) -> bool:
    """Tell whether a node has the value that its inputs give it, and not one of its own."""
    if node.realized is not None:
        return False
    return bool(node.inputs) or node.op in PLAIN_LEAVES
