"""pairing: products of the same rows and columns that one kernel computes beside one another.

    silu(x @ a) * (x @ b)        two products, read by one elementwise value: neither is stored

A task has the blocks of both in its cache when it computes what reads them. They are products of
one depth of the plan, so that neither waits for the other, and a reader of each ends in one sink.

On a GPU they share their left operand, and a block has a tile of each in registers. Where they do
not, the second waits for the first, whose result is stored, and computes what reads both.
"""

from picograd.dtype import float32
from picograd.graph.bounded import ends_of
from picograd.graph.row import Role
from picograd.helpers import product
from picograd.schedule.cost import has_whole_tasks, is_small, machine
from picograd.schedule.group import Facts, Group, Sink
from picograd.schedule.heroes import is_product, product_depth, product_sides, uses_tensor_cores
from picograd.schedule.joining import has_room
from picograd.schedule.one_row import is_of_one_row
from picograd.schedule.views import strip_views
from picograd.target import Target

PRODUCT_LIMIT = 4  # products of one kernel: more compile slowly
TWINS, TILE = 2, 64  # products of one kernel of a GPU, and the least sides of their tiles
WHOLE = 8  # elements of 16 bits that an engine copies at once
# Of such tiles, without tensor cores: of fewer it is better that blocks share K (measured, H200).
WAVES = 8
MANY_ROWS = 256  # of tensor cores: of 128 one kernel took 5 % longer than two (H200)

Shape = tuple[int, ...]
Key = tuple[Sink, int, Shape, str]


class Pairs:
    """This class knows the newest product of each sink, depth and shape."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.newest: dict[Key, Group] = {}

    def find(self, facts: Facts, depth: int) -> Group | None:
        """Find the group of a product that a reader of this one reads too."""
        has_blocks = self.target.has_blocks
        may, suits = (may_be_twin, is_twin) if has_blocks else (may_pair, is_beside)
        for key in keys_of(facts, depth):
            group = self.newest.get(key)
            if group is None or not may(facts, self.target):
                continue
            if suits(group, facts):
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
        if self.target.has_blocks:
            is_noted = may_wait(facts, self.target) or may_be_twin(facts, self.target)
        else:
            is_noted = may_pair(facts, self.target)
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


def may_be_twin(facts: Facts, target: Target) -> bool:
    """Tell whether blocks of a GPU may have a tile of a product beside one of another.

    It is a matrix product of many whole tiles, of float32 without tensor cores, or of 16-bit floats
    that an engine copies; or one of one row, which has no tiles.
    """
    node = facts.node
    if ends_of(node):
        return False
    if is_of_one_row(facts, target):
        return is_product(facts) and not facts.is_score
    if not may_wait(facts, target) or product_depth(node) < TILE:
        return False
    first, second = product_sides(node)
    rows = product(node.shape[d] for d in first)
    columns = product(node.shape[d] for d in second)
    wave = TILE**2 * target.multiprocessors
    last = max((d for d, n in enumerate(node.shape) if n != 1), default=0)
    labels_a, labels_b, _ = node.arg
    is_matrix = last in second and len(set(labels_a) & set(labels_b)) == 1
    if not is_matrix or min(rows, columns) < TILE or rows * columns < wave:
        return False
    if not uses_tensor_cores(facts, target):
        return node.dtype is float32 and rows * columns >= WAVES * wave
    is_half = all(strip_views(source).node.dtype.bits == 16 for source in facts.inputs)
    depth = product_depth(node)
    is_whole = columns % WHOLE == depth % WHOLE == 0
    return target.copies_boxes and is_half and is_whole and rows >= MANY_ROWS


def is_twin(group: Group, facts: Facts) -> bool:
    """Tell whether the one product of a group has the left operand of another."""
    heroes = [member for member in group.members if member.level == "hero"]
    hero, node = heroes[0].node, facts.node
    if len(heroes) >= TWINS or hero.inputs[0] is not node.inputs[0]:
        return False
    # Three arrays of 16 bits that leave by way of shared memory took 3 % of a step longer (H200).
    if node.inputs[0].dtype.bits == 16 and heroes[0].kernels + facts.kernels > TWINS:
        return False
    is_alike = hero.arg[0] == node.arg[0] and hero.arg[2] == node.arg[2]
    is_same = hero.inputs[1].dtype is node.inputs[1].dtype and hero.dtype is node.dtype
    return is_alike and is_same and has_room(group, facts)


def is_beside(group: Group, facts: Facts) -> bool:
    """Tell whether a product has the rows and columns of a group, which has room for it."""
    heroes = [member for member in group.members if member.level == "hero"]
    if group.summed or len(heroes) >= PRODUCT_LIMIT:
        return False
    first, second = product_sides(heroes[0].node)
    is_alike = product_sides(facts.node) in ((first, second), (second, first))
    return is_alike and has_room(group, facts)
