"""scores: matrices of scores that need not be in memory, found before fusion.

    s = q @ k.T;  w = softmax(edit(s));  o = w @ v        one kernel: s and w are nowhere

A *region* is all that is made of a product at the places of its elements: edits, masks,
exponentials, weights, their gradients. Products that meet elementwise share one. It has two sides,
the rows and the columns of the product, and ends in *sinks*: reductions over a side, and products
summed over one. If a region has no other reader, whatever it holds is computed where it is read,
and its sinks are kernels that stream over a side (schedule/score_sinks.py says which share one).
What others read, as gradients of a bias, is a sink too once it is asked for in memory: a kernel
that streams over it stores it.

Every element of a region has a place: `at` gives, for each node, its indices over the axes of the
region, so that views of scores are only other indices.
"""

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import field

from picograd.graph.node import Node
from picograd.graph.row import EXPONENTIALS, Role, ops_of
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.group import CHAIN_LIMIT, Facts
from picograd.schedule.heroes import label_sizes
from picograd.schedule.index import (
    Axis,
    Index,
    Indices,
    axis_index,
    constant,
    flatten,
    substitute,
    unflatten,
)
from picograd.schedule.order import nodes_of
from picograd.schedule.views import dimension_map

MOST_DEPTH = 256  # of a product that is computed again wherever its elements are read
FEW_MOVED = 256  # members of a region that join a smaller one: of many the smaller one moves
LEAST_SIDE = 16  # rows, and columns: fewer are faster as products of vectors, on a CPU
CONTRACTIONS = ops_of(Role.CONTRACT)
Sides = tuple[frozenset[Axis], frozenset[Axis]]


@dataclass(eq=False, slots=True)
class Sink:
    """A node that reads a region and reduces a side of it: `side` is the one that is streamed."""

    facts: Facts
    side: int
    operand: int  # which input is in the region
    is_divided: bool = False  # a product of weights that are divided by a total of the same stream
    is_masked: bool = False  # weights are 0 where a mask says so
    places: Indices = ()  # of a sum of rows that are no scores: which row it is of
    total: Facts | None = None  # that weights are divided by, if it is not the stream's first
    powers: tuple[Facts, ...] = ()  # of a product whose weights are a sum of softmaxes: theirs


@dataclass(eq=False, slots=True)
class Region:
    """See the module docstring."""

    axes: tuple[Axis, ...]
    sides: Sides
    at: dict[int, Indices] = field(default_factory=dict)
    members: list[Facts] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)
    problem: str = ""
    strict: str = ""  # the problem, if sinks reduce no more than a side and nobody reads members
    wide: dict[int, list[int]] = field(default_factory=dict)  # dimensions that a sink sums later
    shared: dict[int, Facts] = field(default_factory=dict)  # members that others read
    taken: set[int] = field(default_factory=set)  # sides that a sink reduces

    def end(self, sink: Sink) -> None:
        """Note what reduces a side."""
        self.sinks.append(sink)
        self.taken.add(sink.side)

    def refuse(self, problem: str) -> None:
        """Keep the region in memory; the first reason counts."""
        self.problem = self.problem or problem
        self.strict = self.strict or problem

    def be_strict(self) -> None:
        """Be as if the walk had been one without wide sinks and readers of members."""
        self.problem = self.strict
        self.sinks = [sink for sink in self.sinks if sink.facts.number not in self.wide]

    def side_in(self, axes: frozenset[Axis | None]) -> int | None:
        """Find the side that some axes have whole, the columns if both.

        Axes of a side that the first who reduces it leaves out are of the batch: one operand of
        the product is the same at all of them, as queries that are learned.
        """
        for number in (1, 0):
            own = self.sides[number] & axes
            if not own or (own != self.sides[number] and number in self.taken):
                continue
            if own == self.sides[number]:
                return number
            if product(axis.size for axis in own) >= LEAST_SIDE:
                self.narrow(number, own)
                return number
        return None

    def narrow(self, number: int, side: frozenset[Axis]) -> None:
        """Leave axes of a side to the batch."""
        sides = list(self.sides)
        sides[number] = side
        self.sides = sides[0], sides[1]

    @property
    def has_exponential(self) -> bool:
        """Tell whether a softmax may be in it."""
        return any(each.node.op in EXPONENTIALS for each in self.members)

    @property
    def is_outer(self) -> bool:
        """Tell whether all its products are larger than what they are made of."""
        return all(is_outer(x.node) for x in self.members if x.node.op in CONTRACTIONS)


def find_regions(
    values: Sequence[Facts],
    wanted: Collection[Facts],
    least: int = LEAST_SIDE,
    sizes: Container[int] | None = None,
    has_wide: bool = False,
) -> list[Region]:
    """List the regions of nodes, listed inputs first, those of so many elements; `wanted` are
    stored.

    Regions have `least` rows and columns or more, and `LEAST_SIDE` of one of them. If it
    `has_wide` ones, sinks may reduce more than a side, and others may read members: the rest is to
    be summed later, and those are to be asked for in memory.
    """
    finder = Finder(least, sizes, has_wide)
    for facts in values:
        finder.visit(facts)
    for facts in wanted:
        if facts.number in finder.homes:
            finder.share(facts, finder.homes[facts.number], "it is an output")
    return list(dict.fromkeys(finder.homes.values()))


class Finder:
    """This class is the state of the walk: the region of every node that is in one."""

    def __init__(self, least: int, sizes: Container[int] | None, has_wide: bool) -> None:
        self.least, self.has_wide = least, has_wide
        self.homes: dict[int, Region] = {}
        self.lengths: dict[int, int] = {}  # of the longest chain of members to each
        self.sizes = sizes

    def visit(self, facts: Facts) -> None:
        """Let a node open a region, spread one, end one, or keep one in memory."""
        if facts.is_source:
            return
        for source in facts.inputs:
            if source.number in self.homes:
                self.read(facts, [x for x in facts.inputs if x.number in self.homes])
                break
        if facts.node.op in CONTRACTIONS and facts.number not in self.homes:
            is_fit = self.sizes is None or facts.node.size in self.sizes
            if is_fit and is_seed(facts.node, self.least):
                self.open(facts)

    def read(self, facts: Facts, inside: Sequence[Facts]) -> None:
        """Look at what a node does that reads members of regions."""
        row = facts.node.row
        role = row.role
        if role is Role.ELEMENTWISE or (role is Role.PASS and not row.is_stored):
            self.spread(facts, *inside)
            return
        homes = [self.homes[x.number] for x in inside]
        if role is Role.VIEW:
            self.move(facts, homes[0])
        elif role in (Role.REDUCE, Role.CONTRACT) and len(homes) == len(set(homes)):
            for home in homes:
                self.end(facts, home)
        elif role is Role.PASS:
            self.keep(facts, homes[0])
        else:
            problem = f"{facts.node.op} {facts.node.shape} reads it"
            for source, home in zip(inside, homes, strict=True):
                self.share(source, home, problem)

    def share(self, facts: Facts, region: Region, problem: str) -> None:
        """Somebody else reads a member, which is a problem unless it is asked for in memory."""
        if self.has_wide:
            region.shared[facts.number] = facts
            region.strict = region.strict or problem
        else:
            region.refuse(problem)

    def keep(self, facts: Facts, region: Region) -> None:
        """A member that is asked for in memory is stored where its neighbours stream."""
        places = region.at[facts.inputs[0].number]
        nearest = next((axis for axis in map(lone_axis, reversed(places)) if axis), None)
        sides = [number for number, side in enumerate(region.sides) if nearest in side]
        if sides:
            region.end(Sink(facts, sides[0], 0))
        else:
            region.refuse(f"{facts.node.op} {facts.node.shape} stores it by other axes")

    def open(self, facts: Facts) -> None:
        """Open a region: its axes are the dimensions of the product."""
        labels_a, labels_b, out = facts.node.arg
        axes = [Axis(f"s{d}", n) for d, n in enumerate(facts.node.shape)]
        known = dict(zip(out, axes, strict=True))
        wide = {name: axis for name, axis in known.items() if axis.size > 1}
        first = [axis for name, axis in wide.items() if name not in labels_b]
        second = [axis for name, axis in wide.items() if name not in labels_a]
        sides = frozenset(first), frozenset(second)
        self.add(facts, Region(tuple(wide.values()), sides), tuple(map(axis_index, axes)))

    def add(self, facts: Facts, region: Region, at: Indices) -> None:
        """Make a node a member of a region."""
        number, lengths = facts.number, self.lengths
        region.at[number] = at
        region.members.append(facts)
        self.homes[number] = region
        lengths[number] = 1 + max([lengths.get(source.number, 0) for source in facts.inputs])
        if lengths[number] > CHAIN_LIMIT:
            region.refuse(f"it has more than {CHAIN_LIMIT} nodes in a row")

    def spread(self, facts: Facts, first: Facts, *others: Facts) -> None:
        """An elementwise node is where its inputs are: regions that meet in it become one."""
        for other in others:
            mine, theirs = self.homes[first.number], self.homes[other.number]
            if len(theirs.members) > FEW_MOVED + 4 * len(mine.members):
                self.unite(theirs, other, mine, first)
            else:
                self.unite(mine, first, theirs, other)
        region = self.homes[first.number]
        self.add(facts, region, region.at[first.number])

    def unite(self, region: Region, facts: Facts, other: Region, at: Facts) -> None:
        """Make two regions one, in which two nodes are at the same places."""
        here, there = region.at[facts.number], other.at[at.number]
        if region is other:
            if here != there:
                region.refuse("it is read at several places at once")
            return
        moved = matched(region, here, other, there)
        places = {id(there): substituted(there, moved)}  # most members are at one of few places
        sides = [
            frozenset(lone_axis(moved.get(x, constant(0))) for x in side) for side in other.sides
        ]
        if places[id(there)] != here or not self.agree(region, other, sides):
            region.refuse("it meets another product at other places")
        if other.problem:
            region.refuse(other.problem)
        region.strict = region.strict or other.strict
        for each in other.members:
            old = other.at[each.number]
            if id(old) not in places:
                places[id(old)] = substituted(old, moved)
            self.add(each, region, places[id(old)])
        for sink in other.sinks:
            side = sides[sink.side]
            sink.side = region.sides.index(side) if side in region.sides else 0
            region.end(sink)
        region.wide |= other.wide
        region.shared |= other.shared

    def agree(self, region: Region, other: Region, sides: Sequence[frozenset[Axis | None]]) -> bool:
        """Narrow the sides of a region to what they share with another's; tell whether they fit."""
        for number, mine in enumerate(region.sides):
            theirs = max(sides, key=lambda side: len(side & mine))
            shared = mine & theirs
            is_taken = (shared != mine and region.sinks) or (shared != theirs and other.sinks)
            if is_taken or (mine and not shared):
                return False
            region.narrow(number, shared)
        return True

    def move(self, facts: Facts, region: Region) -> None:
        """A view that shows every element once is at the same places, by other indices."""
        node, source = facts.node, facts.inputs[0].node
        at, mapping = region.at[facts.inputs[0].number], dimension_map(node)
        if node.size != source.size or node.row.is_shifting:
            problem = f"{node.op} {node.shape} shows parts of it, or repeats it"
            self.share(facts.inputs[0], region, problem)
        elif node.row.is_same_bytes or (node.shape == source.shape and node.row.is_repeating):
            self.add(facts, region, unflatten(flatten(at, source.shape), node.shape))
        elif mapping is not None and sorted(mapping) == list(range(len(at))):
            self.add(facts, region, tuple(at[d] for d in mapping))
        else:
            self.share(facts.inputs[0], region, f"{node.op} {node.shape} reads it")

    def end(self, facts: Facts, region: Region) -> None:
        """A reduction over a side, or a product summed over one, ends a region."""
        node = facts.node
        inside = [self.homes.get(source.number) is region for source in facts.inputs]
        operand = inside.index(True)
        at = region.at[facts.inputs[operand].number]
        alone: set[Axis | None] = set()  # a row of its own matrix at each of them
        if node.row.role is Role.REDUCE:
            monoid, over = node.arg
            is_fit = monoid in ("sum", "max", "min")
        else:
            labels, others = node.arg[operand], node.arg[1 - operand]
            out = node.arg[2]
            over = [d for d, name in enumerate(labels) if name not in out]
            summed = {*labels, *others} - set(out)
            shared = set(labels) & set(others)
            is_fit = summed <= shared and len(set(labels)) == len(labels)
            batch = shared - summed
            alone = {lone_axis(at[d]) for d, name in enumerate(labels) if name in batch}
        axes = {d: lone_axis(at[d]) for d in over if at[d].terms}
        side = region.side_in(frozenset(axes.values())) if is_fit else None
        later = [d for d, axis in axes.items() if side is None or axis not in region.sides[side]]
        if side is None or later:
            problem = f"{node.op} {node.shape} reads it, over other axes than one side"
            if side is None or not self.has_wide:
                self.share(facts.inputs[operand], region, problem)
                return
            region.strict = region.strict or problem
        rows = region.sides[1 - side]
        left = product(axis.size for axis in rows - alone)
        if alone & rows and left < LEAST_SIDE:
            problem = f"{node.op} {node.shape} multiplies each row by another matrix"
            self.share(facts.inputs[operand], region, problem)
            return
        if later:
            region.wide[facts.number] = later
        region.end(Sink(facts, side, operand))


def matched(region: Region, here: Indices, other: Region, there: Indices) -> dict[Axis, Index]:
    """Say which axis of one region each of another's is, if two nodes are at the same places.

    Axes that a view merged are taken in their order.
    """
    moved = {
        axis: mine
        for mine, theirs in zip(here, there, strict=True)
        if (axis := lone_axis(theirs)) is not None
    }
    if len(moved) < len(other.axes) == len(region.axes):
        for axis, mine in zip(other.axes, region.axes, strict=True):
            moved.setdefault(axis, axis_index(mine))
    return moved


def substituted(indices: Indices, moved: dict[Axis, Index]) -> Indices:
    """Put indices in the place of axes."""
    return tuple([substitute(index, moved) for index in indices])


def lone_axis(index: Index) -> Axis | None:
    """Find the axis that an index is."""
    if len(index.terms) != 1 or index.const:
        return None
    ((atom, factor),) = index.terms
    if factor != 1:
        return None
    return atom if isinstance(atom, Axis) else None


def openers(order: Sequence[Node], least: int) -> Iterator[Node]:
    """Yield the products that may open regions: of the sizes that scores may have."""
    sizes = score_sizes(order)
    for node in nodes_of(order, CONTRACTIONS) if sizes else ():
        if node.size in sizes and is_seed(node, least):
            yield node


def score_sizes(order: Sequence[Node]) -> set[int]:
    """Count the elements of scores: as many as an exponential, or a large product, has."""
    likely = EXPONENTIALS | CONTRACTIONS
    found = set()
    for node in nodes_of(order, likely):
        if node.realized is None and (node.op in EXPONENTIALS or is_outer(node)):
            found.add(node.size)
    return found


def is_outer(node: Node) -> bool:
    """Tell whether a product is one for each of a batch, larger than either operand.

    Whatever is elementwise may lie between it and the product that reads it: weights of sigmoids,
    squares, decays. One product of all rows with a matrix, as in a network of layers, is none.
    """
    labels_a, labels_b, out = node.arg
    sizes = zip(out, node.shape, strict=True)
    is_batch = any(n > 1 and name in labels_a and name in labels_b for name, n in sizes)
    return is_batch and node.size > max(each.size for each in node.inputs)


def is_seed(node: Node, least: int = LEAST_SIDE) -> bool:
    """Tell whether a node is a product whose elements are cheap to compute again."""
    if node.row.role is not Role.CONTRACT or not node.dtype.is_float:
        return False
    (labels_a, labels_b, out), sizes = node.arg, label_sizes(node)
    summed = sizes.keys() - set(out)
    if not summed <= set(labels_a) & set(labels_b):
        return False
    depth = product(sizes[name] for name in summed)
    rows = product(sizes[name] for name in out if name not in labels_b)
    columns = product(sizes[name] for name in out if name not in labels_a)
    is_large = min(rows, columns) >= least and max(rows, columns) >= LEAST_SIDE
    return 1 < depth <= MOST_DEPTH and is_large
