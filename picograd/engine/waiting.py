"""waiting: values that nobody asked for yet, in groups, so that a computation looks at few.

A program may hold any number of them: the hidden states of a loop, the first values of another
network. Each computation has to know which of them read what it computes. Each is a group, which
knows what it is made of as far as other groups, which it lies *behind*:

    h1    what it is made of
    h2    behind h1: what it is made of, down to h1

Groups are numbered as they come. Of two that follow one another, and know about as much, one is
made, which has both as its parts. A computation looks at the groups that have something of it, at
those behind them, and at their parts. So it looks at few, where few are near.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any
from weakref import ref

from picograd.graph.node import Node
from picograd.helpers import reached

Names = set[ref[Node]]  # of nodes; that of one which is gone is like no other
GROWN = 4  # times what groups knew when all were made: then they are made anew
FEW = 1000  # nodes that are no reason to
DEEP = 40  # parts of parts: where some were taken out, others may be far down


class Near:
    """What is near to a computation: numbers of groups in order, and their values."""

    def __init__(self, computed: Names) -> None:
        self.computed = computed
        self.numbers: list[int] = []
        self.nodes: list[Node] = []
        self.gone: Names = set()  # what these groups knew

    def has(self, group: "Group") -> bool:
        """Tell whether a group, or a part of it, is near."""
        is_read = not self.computed.isdisjoint(group.names)
        return is_read or any(self.is_among(first, last) for first, last in group.before)

    def is_among(self, first: int, last: int) -> bool:
        """Tell whether one of some groups is near."""
        place = bisect_left(self.numbers, first)
        return place < len(self.numbers) and self.numbers[place] <= last

    def take(self, group: "Group") -> None:
        """Take out a value."""
        node = None if group.member is None else group.member()
        self.numbers.append(group.first)
        self.nodes += [] if node is None else [node]
        self.gone |= group.names


class Group:
    """A value that waits, or two parts; what that is made of, and numbers it is behind."""

    __slots__ = ("before", "depth", "first", "last", "member", "names", "parts")

    def __init__(self, number: int, node: Node | None = None) -> None:
        self.first = self.last = number
        self.member = None if node is None else ref(node)
        self.parts: Sequence[Group] = ()
        self.depth = 0
        self.names: Names = set()
        self.before: set[tuple[int, int]] = set()

    def take_near(self, near: Near) -> "Group | None":
        """Take out what is near; gives what is left."""
        if not near.has(self):
            return self
        if not self.parts:
            near.take(self)
            return None
        left = [part for each in self.parts if (part := each.take_near(near)) is not None]
        if len(left) < 2:
            return left[0] if left else None
        self.parts = left
        self.names -= near.gone
        return self

    def leaves(self) -> "Iterator[Group]":
        """List the groups of one value."""
        stack = [self]
        while stack:
            group = stack.pop()
            stack += reversed(group.parts)
            if not group.parts:
                yield group


def joined(one: Group, other: Group) -> Group:
    """Make a group of two that follow one another."""
    group = Group(one.first)
    group.last, group.parts = other.last, (one, other)
    group.depth = 1 + max(one.depth, other.depth)
    group.names = one.names | other.names
    outer = one.before | other.before
    group.before = {each for each in outer if not group.first <= each[0] <= each[1] <= group.last}
    return group


def balanced(leaves: Sequence[Group]) -> Group:
    """Make a group of many, with as few parts of parts as that takes."""
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    return joined(balanced(leaves[:half]), balanced(leaves[half:]))


class Groups:
    """All groups, in the order in which they came."""

    def __init__(self) -> None:
        self.all: list[Group] = []
        self.limit, self.count = FEW, 0
        # what groups know, or knew a while ago: what machine code computes is not among it
        self.known: dict[ref[Node], None] = {}
        self.most = FEW  # of these, until those of groups that are gone are let go

    def add(self, nodes: Iterable[Node], near: Near | None = None) -> None:
        """Add values, each of which is a group; what is near is taken out at once."""
        for node in nodes:
            group = self.made(node, frozenset() if near is None else near.computed)
            if near is not None and near.has(group):
                near.take(group)
                continue
            self.all.append(group)
            while len(self.all) > 1 and 2 * weight(self.all[-1]) >= weight(self.all[-2]):
                other = self.all.pop()
                group = joined(self.all[-1], other)
                self.all[-1] = balanced([*group.leaves()]) if group.depth > DEEP else group

    def made(self, node: Node, computed: "Set[ref[Node]]") -> Group:
        """Make the group of a value: what it is made of, as far as other groups.

        Of one that is made of what is computed, that alone.
        """
        self.count += 1
        group = Group(self.count, node)
        stack = [*node.inputs]
        for each in reached(stack):
            if each.realized is not None or not each.inputs:
                continue
            name = ref(each)
            if name in computed:
                group.names = {name}
                break
            known = self.group_of(name)
            if known is None:
                group.names.add(name)
                stack += each.inputs
            else:
                group.before.add((known.first, known.last))
        self.known.update(dict.fromkeys(group.names))
        return group

    def group_of(self, name: ref[Node]) -> Group | None:
        """Find the group that knows a node."""
        return next((each for each in reversed(self.all) if name in each.names), None)

    def take_near(self, computed: Iterable[Node], new: Sequence[Node] = ()) -> list[Node]:
        """Take out the values that may be made of some nodes; `new` ones are added, or given."""
        near = Near(set(map(ref, computed)) if self.all or new else set())
        self.all = [left for each in self.all if (left := each.take_near(near)) is not None]
        self.add(new, near)
        if len(self.known) > self.most:
            self.known.clear()
            for each in self.all:
                self.known.update(dict.fromkeys(each.names))
            self.most = FEW + GROWN * len(self.known)
        return near.nodes

    def nodes(self) -> list[Node]:
        """List the values that wait."""
        members = [leaf.member for group in self.all for leaf in group.leaves()]
        return [node for each in members if each is not None and (node := each()) is not None]

    def shrink(self, table: "dict[ref[Node], Any]") -> None:
        """Forget values that wait no more: not in a table of those that do."""
        if self.size() <= self.limit:
            return
        nodes, self.all = self.nodes(), []
        self.add([node for node in nodes if ref(node) in table])
        self.limit = FEW + GROWN * self.size()

    def size(self) -> int:
        """Count the nodes that groups know."""
        return sum([len(each.names) for each in self.all])


def weight(group: Group) -> int:
    """Compare groups by what they know, and how many they are."""
    return len(group.names) + group.last - group.first + 1
