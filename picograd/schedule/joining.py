"""joining: where a value could be a member of the group that computes what it reads."""

from collections import defaultdict
from collections.abc import Callable
from math import prod

from picograd.dtype import float32
from picograd.graph.bounded import ends_of, sources_of
from picograd.graph.conv_forms import is_weight_gradient
from picograd.graph.node import Node
from picograd.graph.row import VIEWS, Role
from picograd.schedule.cost import FEW_CHANNELS, FEW_PRODUCTS, OperandWork, machine, operand_work
from picograd.schedule.group import (
    FREE,
    GROUP_LIMIT,
    MEMBER_LIMIT,
    PRODUCTS,
    Facts,
    Group,
    Labels,
    Sink,
    operations_of,
    place,
    place_in,
    waits_for_rows,
)
from picograd.schedule.heroes import (
    has_every_axis,
    is_product,
    product_depth,
    product_sides,
    times_packed,
    uses_tensor_cores,
)
from picograd.schedule.rescaled_sums import is_rescaled
from picograd.schedule.views import strip_views
from picograd.target import Target

Place = tuple[Group, str, Labels]
NOTHING: frozenset[int] = frozenset()
LEAST_TURNED = 16384  # elements: fewer stay in the first-level cache, or nearly
SHORTEST_TURNED = 16  # elements on both sides of a square, to use lines of memory whole
TILE = 64  # rows and columns of a tile of results
LEAST_DEPTH = 208  # of K: with their sums convolutions of 147 and 200 took 2 and 1 % longer
LONG_ARRAY = 64 << 20  # bytes that are worth one more reading, where memory is most wanted


def find_place(facts: Facts, target: Target) -> Place | None:
    """Find the home group, level and labels with which a floating node could be its member."""
    home, labels = facts.home, facts.labels
    if home is None or labels is None or not has_room(home, facts):
        return None
    if not home.is_open or home.device != facts.node.device:
        return None
    if home.is_product and facts.has_window:
        return None
    if facts.is_grand:
        return (home, "scalar", labels) if facts.node.size == 1 else None
    if facts.is_rowed and (home.summed or home.pooled):
        levels = (("after", home.after),)
        placed = place_in(facts.node.shape, labels, home, levels)
    else:
        placed = place(facts.node.shape, labels, home)
    if placed is None:
        return None
    is_kept = home.is_row or (home.is_streamed and not facts.is_rowed)
    if placed[0] == "elem" and (not is_kept or is_over_logits(home, facts)):
        return None
    if home.kind == "map" and crosses(home, placed[1], target):
        return None
    return home, *placed


def crosses(home: Group, labels: Labels, target: Target) -> bool:
    """Tell whether a value runs in memory across what maps of its kernel read and write.

    A kernel walks in one order, so one of both would be an element of each line it meets. A kernel
    of its own reads squares and turns them.
    """
    near = [d for d in labels if d == FREE or home.shape[d] > 1][-1:]
    last = [d for d, size in enumerate(home.shape) if size > 1][-1:]
    least = LEAST_TURNED << 4 * target.has_blocks  # on a GPU one more launch takes as long
    if not near or near[0] == FREE or near == last or prod(home.shape) < least:
        return False
    return min(home.shape[near[0]], home.shape[last[0]]) >= SHORTEST_TURNED


def is_over_logits(home: Group, facts: Facts) -> bool:
    """Tell whether a value is better written over a long array that the plan made, by a map.

    So is the gradient of a loss over its logits (in_place.py): one reading of them more, and one
    array of their size less.
    """
    if facts.node.size * facts.node.dtype.itemsize < LONG_ARRAY:
        return False
    is_made = home.members[0].inputs[0].depth > 0
    return is_made and any(member.is_grand for member in home.members)


def has_room(home: Group, facts: Facts) -> bool:
    """Tell whether one more member keeps a kernel short."""
    if len(home.members) >= MEMBER_LIMIT:
        return False
    if home.operations + facts.cost > GROUP_LIMIT:  # what several members share is computed once
        home.operations = operations_of(*home.members, facts) - facts.cost
    return home.operations + facts.cost <= GROUP_LIMIT


class Counts:
    """Operations of floating values that one kernel computes together: those of one sink."""

    def __init__(self) -> None:
        self.together: dict[Sink, int] = {}
        self.entered = defaultdict[Sink, set[int]](set)  # values that the kernel reads

    def add(self, facts: Facts, cost: int) -> int:
        """Count the operations of the nodes so far that one kernel computes with this one.

        Each once, and the cost of each value that they read: never less than what the node takes,
        where the sum over its inputs counts a value that several of them read as often. What is
        read through several views is computed at other places for each.
        """
        sink = facts.sink
        total = self.together.get(sink, 0) + cost
        entered = self.entered[sink]
        for source in facts.inputs:
            is_apart = source.is_loaded or source.sink != sink
            is_apart = is_apart or (source.is_moved and source.node.op in VIEWS)
            if is_apart and source.number not in entered:
                entered.add(source.number)
                total += source.cost
        self.together[sink] = total
        return total

    def leave(self, facts: Facts) -> None:
        """Take off what a value that is stored was made of; what floats beside it is left.

        A sum of many products stores some of them between its additions, which count on.
        """
        if not facts.length:
            return
        left = self.together.get(facts.sink, 0) - facts.cost
        self.together[facts.sink] = max(left, 0)
        self.entered.pop(facts.sink, None)


class Maps:
    """The newest group of maps of each domain, with the values that its members read.

    Values that read the same are stored by one group: what reads several of them may join it.
    """

    def __init__(self) -> None:
        self.newest: dict[tuple[object, ...], tuple[Group, frozenset[int]]] = {}

    def group_of(self, facts: Facts, opened: Callable[..., Group]) -> Group:
        """Find the maps beside which a value is stored, or open a group of them by a function."""
        node, depth = facts.node, facts.depth + 1
        domain = node.shape, depth, node.device
        group, reads = self.newest.get(domain, (None, NOTHING))
        is_apart = facts.has_window or reads.isdisjoint(facts.loads)
        if group is None or is_apart or not group.is_adoptable or not has_room(group, facts):
            group, reads = opened("map", depth, node.shape, (), node.device), NOTHING
        self.newest[domain] = group, reads | facts.loads
        return group


def narrower(facts: Facts) -> Facts | None:
    """Find what a value is converted from, if that takes fewer bytes and is computed as well."""
    node = facts.node
    if not node.row.keeps_value:
        return None
    source = facts.inputs[0]
    is_narrow = source.node.dtype.itemsize < node.dtype.itemsize
    return source if is_narrow and source.node.row.is_elementwise and not source.is_loaded else None


def is_own_map(operand: Facts, base: Facts) -> bool:
    """Tell whether an operand is views of elementwise work that nothing but its product reads.

    Floats of 16 bits are stored: that rounds them.
    """
    if base.is_loaded or not base.node.row.is_elementwise or base.node.dtype.is_narrow_float:
        return False
    facts = operand
    while facts is not base and facts.kernels == 1:
        facts = facts.inputs[0]
    is_own = facts is base and base.kernels == 1
    return is_own and bool(base.loads) and not base.has_window and not base.is_moved


def is_spread(base: Facts, node: Node) -> bool:
    """Tell whether an operand is a number for many channels: its convolution would be windows, each
    summed anew."""
    if base.is_loaded or base.node.inputs or node.row.role is not Role.CONV:
        return False
    is_long = prod(node.inputs[1].shape[2:]) > FEW_PRODUCTS and not is_weight_gradient(node)
    return node.shape[2] > FEW_CHANNELS or is_long


def packed_work(product: Facts, number: int, target: Target) -> OperandWork | None:
    """Estimate what an operand costs that only its product reads, if that may compute it itself.

    None for what must be in memory, and for what a group before it computes for nothing.
    """
    operand = product.inputs[number]
    base = strip_views(operand)
    if product.node.op not in PRODUCTS or not target.packs_operands:
        return None
    if not is_own_map(operand, base) or find_place(base, target) is not None:
        return None
    times = times_packed(product.node, number, base.size)
    known = operations_of(base), len(base.loads), base.size, base.node.dtype.itemsize
    return operand_work(times, *known, machine(target))


def places_of(source: Facts) -> Labels | None:
    """Find where the elements of a product's result are, if a value is computed of each."""
    home, labels = source.home, source.labels
    if home is None or labels is None or not home.is_product:
        return None
    if waits_for_rows(source) or source.has_window or not has_room(home, source):
        return None
    placed = place(source.node.shape, labels, home)
    return None if placed is None else placed[1]


def summed_places(
    facts: Facts, axes: tuple[int, ...], target: Target
) -> tuple[tuple[int, ...], Labels] | None:
    """Find over what a reduction reduces the product it reads, and its labels there.

    That must be all rows of the result, or all columns, and what others reduce it over.
    """
    home, places = facts.inputs[0].home, places_of(facts.inputs[0])
    if home is None or places is None or home.pooled:
        return None
    hero = home.members[0]
    if ends_of(hero.node) or sources_of(facts.node):
        return None
    if sum(member.level == "hero" for member in home.members) > 1:
        return None
    over = {places[d] for d in axes} - {FREE}
    kept = set(home.kept) - over
    is_side = bool(kept) and kept in product_sides(hero.node)
    is_wanted = set(home.summed) == over if home.summed else is_side
    if not is_wanted or not is_product(hero) or not has_every_axis(hero.inputs[1]):
        return None
    if target.has_blocks and not has_many_tiles(hero, over, target):
        return None
    return tuple(sorted(over)), places


def has_many_tiles(hero: Facts, over: set[int], target: Target) -> bool:
    """Tell whether blocks of a GPU have results of a product in registers, all of K of each, whose
    sums they add up: float32 without tensor cores, of more tiles than there are processors."""
    node = hero.node
    if node.dtype is not float32 or uses_tensor_cores(hero, target):
        return False
    if product_depth(node) < LEAST_DEPTH:
        return False
    is_deep = prod(node.shape[d] for d in over) >= TILE * target.multiprocessors
    return is_deep and node.size >= 2 * TILE**2 * target.multiprocessors


def is_ready(facts: Facts, home: Group, target: Target) -> bool:
    """Tell whether a group may reduce what it computes of its rows: now, or below a maximum."""
    if home.is_row or (target.has_blocks and is_rescaled(facts, home)):
        return True
    return home.is_streamed and not waits_for_rows(facts.inputs[0])
