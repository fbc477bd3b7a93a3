"""waiting: values that nobody asked for yet, in groups, so that a computation looks at few.

A program may hold any number of them: the hidden states of a loop, the first values of another
network. Each computation has to know which of them read what it computes. Those that came together
are a group. It knows what they are made of as far as other groups, which it lies *behind*:

    h1, h2, h3    a group: h3, h2, h1 and what they are made of
    h4            another, behind the first: what it is made of, down to h3

A computation looks at the groups that have something of it, and those behind them. Of two groups
that came one after the other and are about as large one is made, so there are few.
"""

from collections.abc import Iterable, Sequence, Set
from typing import Any
from weakref import ref

from picograd.graph.node import Node
from picograd.helpers import reached

GROWN = 4  # times what groups knew when all were made: then they are made anew
FEW = 1000  # nodes that are no reason to


class Group:
    """Values that wait, what they are made of (by id), and the groups that they are behind.

    An id may be that of another node by now: then values are looked at in vain, or not found.
    """

    __slots__ = ("before", "members", "names")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.members = [ref(node) for node in nodes]
        self.names: set[int] = set()
        self.before: set[Group] = set()


class Groups:
    """All groups, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[Group] = []
        self.limit = FEW

    def add(self, nodes: Sequence[Node]) -> None:
        """Let values be a group, or part of the last one."""
        if not nodes:
            return
        group = Group(nodes)
        stack = [source for node in nodes for source in node.inputs]
        for each in reached(stack):
            if each.realized is not None or not each.inputs:
                continue
            known = self.group_of(each)
            if known is None:
                group.names.add(id(each))
                stack += each.inputs
            else:
                group.before.add(known)
        self.all.append(group)
        while len(self.all) > 1 and 2 * len(self.all[-1].names) >= len(self.all[-2].names):
            self.join_last()

    def group_of(self, node: Node) -> Group | None:
        """Find the group that knows a node."""
        name = id(node)
        return next((each for each in reversed(self.all) if name in each.names), None)

    def join_last(self) -> None:
        """Make one group of the last two: no other is behind them."""
        last = self.all.pop()
        group = self.all[-1]
        group.members += last.members
        group.names |= last.names
        group.before |= last.before - {group}

    def take_near(self, computed: Set[int]) -> list[Node]:
        """Take out the values that may be made of nodes, given by id."""
        near: set[Group] = set()
        for group in self.all:
            if not (near.isdisjoint(group.before) and computed.isdisjoint(group.names)):
                near.add(group)
        if near:
            self.all = [each for each in self.all if each not in near]
        return [node for group in near for each in group.members if (node := each()) is not None]

    def shrink(self, table: "dict[ref[Node], Any]") -> None:
        """Forget values that wait no more: not in a table of those that do."""
        size = sum([len(each.names) for each in self.all])
        if size <= self.limit:
            return
        members = [each for group in self.all for each in group.members if each in table]
        self.all = []
        self.add([node for each in members if (node := each()) is not None])
        self.limit = FEW + GROWN * sum([len(each.names) for each in self.all])
