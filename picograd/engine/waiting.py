"""waiting: values that nobody asked for yet, in groups, so that a computation looks at few.

A program may hold any number of them: the hidden states of a loop, the first values of another
network. Each computation has to know which of them read what it computes. Each is a group, which
knows what it is made of as far as other groups, which it lies *behind*:

    h1    what it is made of
    h2    behind h1: what it is made of, down to h1

Of two groups that came one after the other, and know about as much, one is made, which has both as
its parts. A computation looks at the groups that have something of it, at those behind them, and at
their parts. So it looks at few, where few are near.
"""

from collections.abc import Iterable
from typing import Any
from weakref import ref

from picograd.graph.node import Node
from picograd.helpers import reached

Names = set[ref[Node]]  # of nodes; that of one which is gone is like no other
GROWN = 4  # times what groups knew when all were made: then they are made anew
FEW = 1000  # nodes that are no reason to


class Group:
    """A value that waits, or two parts; what that is made of, and what it is behind."""

    __slots__ = ("before", "member", "names", "parts")

    def __init__(self, parts: "tuple[Group, ...]" = (), node: Node | None = None) -> None:
        self.parts = parts
        self.member = None if node is None else ref(node)
        self.names: Names = set().union(*[each.names for each in parts])
        self.before: set[Group] = set().union(*[each.before for each in parts]).difference(parts)

    def take_near(self, computed: Names, near: "set[Group]", found: list[Node]) -> Names:
        """Take out what may be made of nodes; gives what the group knew of that.

        `near` has the groups that may be, among those before.
        """
        if near.isdisjoint(self.before) and computed.isdisjoint(self.names):
            return set()
        near.add(self)
        gone: Names = set().union(*[each.take_near(computed, near, found) for each in self.parts])
        if self.member is not None:
            node, self.member = self.member(), None
            gone = self.names.copy()
            found += [] if node is None else [node]
        self.names -= gone
        return gone

    def nodes(self) -> list[Node]:
        """List the values."""
        node = None if self.member is None else self.member()
        listed = [] if node is None else [node]
        return [*listed, *(node for each in self.parts for node in each.nodes())]


class Groups:
    """All groups, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[Group] = []
        self.limit = FEW

    def add(self, nodes: Iterable[Node]) -> None:
        """Add values, each of which is a group."""
        for node in nodes:
            group = Group(node=node)
            stack = [*node.inputs]
            for each in reached(stack):
                if each.realized is not None or not each.inputs:
                    continue
                known = self.group_of(each)
                if known is None:
                    group.names.add(ref(each))
                    stack += each.inputs
                else:
                    group.before.add(known)
            self.all.append(group)
            while len(self.all) > 1 and 2 * len(self.all[-1].names) >= len(self.all[-2].names):
                self.all[-2:] = [Group(tuple(self.all[-2:]))]

    def group_of(self, node: Node) -> Group | None:
        """Find the group that knows a node."""
        name = ref(node)
        return next((each for each in reversed(self.all) if name in each.names), None)

    def take_near(self, computed: Iterable[Node]) -> list[Node]:
        """Take out the values that may be made of some nodes."""
        names = set(map(ref, computed)) if self.all else set()
        near: set[Group] = set()
        found: list[Node] = []
        for group in self.all:
            group.take_near(names, near, found)
        return found

    def shrink(self, table: "dict[ref[Node], Any]") -> None:
        """Forget values that wait no more: not in a table of those that do."""
        if self.size() <= self.limit:
            return
        nodes = [node for group in self.all for node in group.nodes()]
        self.all = []
        self.add([node for node in nodes if ref(node) in table])
        self.limit = FEW + GROWN * self.size()

    def size(self) -> int:
        """Count the nodes that groups know."""
        return sum([len(each.names) for each in self.all])
