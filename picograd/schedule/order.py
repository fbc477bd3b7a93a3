"""order: the nodes of a graph, inputs first, and what was found out of all of them.

Rewrites that change nothing hand the list on. Most look for ops that are not in it, and some ask
for the same: which values there are, and which scores.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from picograd.graph.expand import realized
from picograd.graph.node import Node, toposort
from picograd.schedule.group import Facts
from picograd.target import Target

Rewrite = Callable[[Sequence[Node], Sequence[Node], Target], list[Node]]


class Order(list[Node]):
    """Nodes, inputs first; of their `facts` and `regions` of scores, what is known."""

    __slots__ = ("by_op", "facts", "regions", "settled")

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        super().__init__(nodes)
        self.by_op = defaultdict[str, list[Node]](list)
        self.facts: dict[int, Facts] | None = None
        self.regions: Sequence[Any] | None = None
        self.settled: set[Rewrite] = set()  # which changed nothing
        for node in self:
            self.by_op[node.op].append(node)

    def rewritten(self, rewrite: Rewrite, roots: list[Node], target: Target) -> list[Node]:
        """Rewrite the graph under `roots`, unless that changed nothing before."""
        if rewrite in self.settled:
            return roots
        self.settled.add(rewrite)
        return rewrite(roots, self, target)


def order_of(roots: Sequence[Node]) -> Order:
    """List the nodes under roots, not below realized ones."""
    return Order(toposort(roots, realized))


def ops_in(order: Sequence[Node]) -> Collection[str]:
    """List the ops of some nodes, each once."""
    if isinstance(order, Order):
        return order.by_op.keys()
    return {node.op for node in order}


def nodes_of(order: Sequence[Node], ops: Collection[str]) -> list[Node]:
    """List the nodes of some ops; those of each op inputs first."""
    if not isinstance(order, Order):
        return [node for node in order if node.op in ops]
    found: list[Node] = []
    for op, nodes in order.by_op.items():
        if op in ops:
            found += nodes
    return found
