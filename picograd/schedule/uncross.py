"""uncross: copy arrays whose memory runs across the rows that are worked on side by side.

    x = permute(a, (2, 1, 0))                          x = contiguous(permute(a, (2, 1, 0)))
    x - x.max(1, keepdim)                      ->      x - x.max(1, keepdim)

A CPU reduces neighbouring rows in vectors: those along the last axis that stays. Where memory runs
along another one that stays, every element is read from a cache line of its own, by each pass over
the rows again. A copy turns whole lines round in vectors (`codegen/templates/map.py`), which takes
less than one such pass. Sums alone choose the order of their rows, and need none.
"""

from collections.abc import Collection, Sequence

from picograd.graph.node import Node
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.schedule.group import Group
from picograd.schedule.repack import steps_of
from picograd.schedule.turned_products import permutation_of
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

LEAST = 16384  # elements: fewer stay in the first-level cache, or nearly
SHORTEST = 8  # elements along either axis: fewer are no vectors
BETWEEN = (Role.ELEMENTWISE, Role.PASS)


def uncross(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Rewrite permuted arrays that are worth a copy; `order` lists inputs first."""
    if target.has_blocks:
        return list(roots)
    walk = Walk()
    for node in order:
        walk.visit(node)
    return replaced(roots, order, walk.new) if walk.new else list(roots)


class Walk:
    """This class knows the permuted arrays that nodes are made of, by the nodes' identities."""

    def __init__(self) -> None:
        self.whole: dict[int, Node] = {}  # element by element
        self.reduced: dict[int, Node] = {}  # of rows that memory runs across
        self.new: dict[int, Node] = {}

    def visit(self, node: Node) -> None:
        """Look at a node: all before it are known."""
        role = node.row.role
        if role is Role.VIEW and node.size >= LEAST and not is_leaf(node) and is_permuted(node):
            self.whole[id(node)] = node
        elif not self.whole or is_leaf(node):
            return
        elif role is Role.REDUCE or role is Role.SCAN:
            self.look(node)
        elif role is Role.VIEW:
            self.follow(node, self.reduced)
        elif role in BETWEEN:
            self.follow(node, self.reduced)
            self.follow(node, self.whole)
            view = self.whole.get(id(node))
            if view is not None and view is self.reduced.get(id(node)):
                self.copy(view)

    def follow(self, node: Node, made_of: dict[int, Node]) -> None:
        """Note what a node is made of by that of its inputs."""
        for child in node.inputs:
            view = made_of.get(id(child))
            if view is not None:
                made_of[id(node)] = view

    def look(self, node: Node) -> None:
        """See whether memory runs across the rows of a reduction, or of running sums."""
        view = self.whole.get(id(node.inputs[0]))
        if view is None:
            return
        is_scan = node.row.role is Role.SCAN
        over = node.arg[1:2] if is_scan else node.arg[1]
        if not crosses(view, over):
            return
        if is_scan:
            self.copy(view)
        self.reduced[id(node)] = view

    def copy(self, view: Node) -> None:
        """Replace an array by a copy."""
        if id(view) not in self.new:
            seen = view.again()
            made = Node("contiguous", (seen,), None, view.shape, view.dtype, view.device)
            self.new[id(view)] = made


def is_permuted(node: Node) -> bool:
    """Tell whether a view shows dimensions in another order than memory has."""
    if type(node) is not Node or permutation_of(node) is None:
        return False
    return near_axis(node) not in (None, node.rank - 1)


def near_axis(view: Node) -> int | None:
    """Find the dimension along which memory runs."""
    found = steps_of(view)
    if found is None:
        return None
    near = (d for d, step in enumerate(found[0]) if step == 1 and view.shape[d] > 1)
    return next(near, None)


def crosses(view: Node, over: Collection[int]) -> bool:
    """Tell whether memory runs along a dimension that a reduction keeps, but not the last."""
    near = near_axis(view)
    kept = [d for d, size in enumerate(view.shape) if d not in over and size > 1]
    if near not in kept or near == kept[-1]:
        return False
    return min(view.shape[near], view.shape[kept[-1]]) >= SHORTEST


def turns(maps: Group, reduced: Collection[int], target: Target) -> bool:
    """Tell whether maps read memory across the rows of a reduction: they turn it themselves."""
    if target.has_blocks or product(maps.shape) < LEAST:
        return False
    read = [child.node for member in maps.members for child in member.inputs]
    views = [node for node in read if node.row.role is Role.VIEW and node.shape == maps.shape]
    return any(is_permuted(view) and crosses(view, reduced) for view in views)
