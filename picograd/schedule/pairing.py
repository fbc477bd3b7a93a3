"""pairing: products of the same rows and columns that one kernel computes beside one another.

    silu(x @ a) * (x @ b)        two products, read by one elementwise value: neither is stored

A task has the blocks of both in its cache when it computes what reads them. They are products of
one depth of the plan, so that neither waits for the other, and a reader of each ends in one sink.

On a GPU the second waits for the first, whose result is stored, and computes what reads both.
"""

from picograd.graph.row import Role
from picograd.helpers import product
from picograd.schedule.cost import has_whole_tasks, is_small, machine
from picograd.schedule.group import Facts, Group, Sink
from picograd.schedule.heroes import is_product, product_depth, product_sides
from picograd.schedule.joining import has_room
from picograd.target import Target

PRODUCT_LIMIT = 4  # products of one kernel: more compile slowly

Shape = tuple[int, ...]
Key = tuple[Sink, int, Shape, str]


class Pairs:
    """This class knows the newest product of each sink, depth and shape."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.newest: dict[Key, Group] = {}

    def find(self, facts: Facts, depth: int) -> Group | None:
        """Find the group of a product that a reader of this one reads too."""
        if not may_pair(facts, self.target):
            return None
        for key in keys_of(facts, depth):
            group = self.newest.get(key)
            if group is not None and suits(group, facts):
                return group
        return None

    def depth_of(self, facts: Facts, depth: int) -> int:
        """Find the depth of a product: on a GPU behind one with which it shares a reader.

        The reader is part of this kernel then, and no kernel of its own that waits for both.
        """
        if self.target.has_blocks and may_wait(facts, self.target):
            while any(key in self.newest for key in keys_of(facts, depth)):
                depth += 1
        return depth

    def note(self, facts: Facts) -> None:
        """Remember the group of a product."""
        group = facts.group
        is_noted = (
            may_wait(facts, self.target) if self.target.has_blocks else may_pair(facts, self.target)
        )
        if group is None or not is_noted:
            return
        for key in keys_of(facts, facts.depth):
            self.newest[key] = group


def keys_of(facts: Facts, depth: int) -> list[Key]:
    """List what products must have in common, for each sink of a product."""
    node = facts.node
    return [(end, depth, node.shape, node.device) for end in facts.ends]


def may_pair(facts: Facts, target: Target) -> bool:
    """Tell whether a product is one whose blocks a task packs, and computes whole."""
    node = facts.node
    if not target.packs_operands:
        return False
    if node.row.role is not Role.CONTRACT or not is_product(facts):
        return False
    first, second = product_sides(node)
    rows = product(node.shape[d] for d in first)
    columns = product(node.shape[d] for d in second)
    return has_whole_tasks(rows, columns, product_depth(node), target)


def may_wait(facts: Facts, target: Target) -> bool:
    """Tell whether work on the result may be part of the kernel of a product.

    Small products share a launch instead.
    """
    node = facts.node
    if node.row.role is not Role.CONTRACT or facts.is_score or not is_product(facts):
        return False
    nbytes = sum(each.size * each.dtype.itemsize for each in (node, *node.inputs))
    return not is_small(nbytes, machine(target))


def suits(group: Group, facts: Facts) -> bool:
    """Tell whether a product has the rows and columns of a group, which has room for it."""
    heroes = [member for member in group.members if member.level == "hero"]
    if group.summed or len(heroes) >= PRODUCT_LIMIT:
        return False
    first, second = product_sides(heroes[0].node)
    is_alike = product_sides(facts.node) in ((first, second), (second, first))
    return is_alike and has_room(group, facts)
