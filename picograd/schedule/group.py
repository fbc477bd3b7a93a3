"""Group: nodes that share a kernel, and Facts: what fusion knows about each node.

A *member* of a group is a node the group computes as a value of its own: a reduction, a contraction
or something that is stored. Every other node is *floating*: it is computed where it is read, by
composing indices. Two rules make cycles impossible without any search: a group loads only from
groups of strictly smaller depth, and a node joins a group only if all its other sources are.

Labels. `facts.labels` places a node in the domain of `facts.home`, the deepest group it reads:
one entry per dimension, the domain dimension it runs along, or -1 where it is free. Labels that
cover the whole domain put a node at element level, the kept dimensions at row level.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from picograd.graph.node import Node
from picograd.graph.row import Role, ops_of
from picograd.helpers import reached
from picograd.late_methods import dataclass
from picograd.schedule.cost import RowWork

Labels = tuple[int, ...]
Sink = tuple[int, int]  # a node by identity, and which operand of it; -1: the node itself
FREE = -1
AFTER = ("sums", "pool", "after")  # levels of what reductions of a product's result give
OWN = (Role.WRITE, Role.SCATTER)  # of what is stored where it is told
PRODUCTS = ops_of(Role.CONTRACT) | ops_of(Role.CONV)
# of what computes cheap operands itself
LONE = (Role.SCATTER, Role.SCAN, Role.SORT, Role.ELIMINATION, Role.BINS)
CHAIN_LIMIT = 100  # operations, and nodes in a row, before a floating chain is stored
MEMBER_LIMIT = 128  # values of one kernel: each may read all before it, which is quadratic
GROUP_LIMIT = 400  # scalar operations in one kernel; more compile slowly and gain nothing


@dataclass(frozen=True, slots=True)
class Windowed:
    """A dimension of a product's result, and the windows along it that are reduced.

    Element `k` of window `n` is at n * stride + k * dilation - before.
    """

    dimension: int
    count: int  # of windows
    kernel: int  # elements of a window
    stride: int
    dilation: int
    before: int  # elements of padding
    size: int  # elements without padding

    @property
    def extent(self) -> int:
        """Elements from the first of a window to its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def covered(self) -> int:
        """Elements up to the last that is in a window; two at least, which need an axis."""
        return min(max(self.end, 2), self.size)

    @property
    def end(self) -> int:
        """Where the last window ends, with padding."""
        return (self.count - 1) * self.stride + self.extent - self.before

    @property
    def is_beside(self) -> bool:
        """Tell whether windows lie side by side, none of them on padding."""
        is_inside = not self.before and self.end <= self.size
        return is_inside and self.extent <= self.stride

    @property
    def is_whole(self) -> bool:
        """Tell whether windows follow one another from the first element to the last."""
        is_full = self.dilation == 1 and self.kernel == self.stride
        return is_full and not self.before and self.end == self.size


@dataclass(eq=False, slots=True)
class Group:
    """One kernel to be, or one part of it: see the module docstring."""

    number: int
    kind: str  # "map", "reduce", "host", "loop", or the hero of the op whose kernel it is
    depth: int
    shape: tuple[int, ...]  # of the domain: the reduction's input, else the output
    reduced: tuple[int, ...]  # dimensions of the domain that are reduced
    device: str
    members: list["Facts"] = field(default_factory=list)
    operations: int = 0
    has_readers: bool = False
    leaves: set[int] = field(default_factory=set)  # numbers of the leaves it loads
    contents: set[int] = field(default_factory=set)  # numbers of the assignments it loads
    strand: int = 0  # of maps that may be a chain: schedule/strands.py
    reads: tuple[int, list["Facts"]] = (-1, [])  # at a depth: schedule/write_order.py
    numbers: set[int] = field(default_factory=set)  # runtime scalars it reads
    is_flat: bool = True  # it reads arrays in their order
    words: set[int] = field(default_factory=set)  # what it is passed: scalars, arrays
    has_window: bool = False  # a member reduces windows
    work: RowWork | None = None  # of a reduction: what working on its rows again takes
    is_streamed: bool = False  # a reduction that stores elements while it reads them, once
    is_alone: bool = False  # sums for each tap of windows, which share nothing with others
    summed: tuple[int, ...] = ()  # of a product: dimensions that reductions of its result take
    pooled: tuple["Windowed", ...] = ()  # and those with windows that are

    @property
    def kept(self) -> tuple[int, ...]:
        """Dimensions of more than one element that the group does not reduce."""
        return tuple(d for d, n in enumerate(self.shape) if n != 1 and d not in self.reduced)

    @property
    def after(self) -> tuple[int, ...]:
        """Dimensions of more than one element that reductions of a product's result keep."""
        return tuple(d for d in self.kept if d not in self.summed)

    @property
    def inner(self) -> tuple[int, ...]:
        """Reduced dimensions of more than one element."""
        return tuple(d for d in self.reduced if self.shape[d] != 1)

    @property
    def is_row(self) -> bool:
        """Tell whether a kernel that reduced a row should work on it again."""
        return self.work is not None and self.work.is_together and not self.is_streamed

    @property
    def is_product(self) -> bool:
        """Tell whether it is a contraction or convolution, and what joined it."""
        return self.kind in PRODUCTS

    @property
    def is_open(self) -> bool:
        """Tell whether anything may join its kernel."""
        return self.kind in ("map", "reduce", "attention") or self.is_product

    @property
    def is_half_full(self) -> bool:
        """Tell whether each member more leaves no room for what is made of those it has."""
        return self.operations > GROUP_LIMIT or 2 * len(self.members) >= MEMBER_LIMIT

    @property
    def is_adoptable(self) -> bool:
        """Tell whether it is plain maps over one domain, which may become rows of a reduction."""
        if self.kind != "map" or self.has_window:
            return False
        return all(
            m.level == "row" and m.group is self and m.node.row.role not in OWN
            for m in self.members
        )


@dataclass(eq=False, slots=True)
class Facts:
    """What fusion knows about one node."""

    node: Node
    number: int
    inputs: tuple["Facts", ...] = ()
    is_source: bool = False  # a leaf: always loaded
    is_loaded: bool = False  # readers find it in memory
    memory: int = -1  # of a leaf, and what is assigned to it: which memory they are contents of
    kernels: int = 0  # that would read it: schedule/readers.py
    size: int = 0  # elements
    is_operand: bool = False  # a product reads it, from memory
    is_multiplied: bool = False  # floats meet others there, through views or wider
    tap_rows: float = 0  # of windows that are multiplied: in how many of one it is read
    is_shifted: bool = False  # it is read at other places: by a slice, a pad, a window
    sink: Sink = (0, -1)  # where its readers end: nodes with one sink are computed together
    ends: tuple[Sink, ...] = ()  # of a product: where each of its readers ends
    hops: tuple[int, ...] = ()  # of a loop: views between each input and where it lies in memory
    depth: int = 0  # of the deepest group it reads
    home: Group | None = None  # that group, if there is one and only one
    labels: Labels | None = None  # its place in the domain of `home`, if it can be told
    is_score: bool = False  # in memory nowhere: it is computed where a stream reads it
    is_boxed: bool = False  # a copy engine brings it: stored row-major
    has_pages: bool = False  # so it does with pages, which a gather says: that is not stored
    stream: Any = None  # of a reduction of scores: what streams with it (schedule/score_sinks.py)
    over: Labels | None = None  # of a reduction in a chain: the places of its input's dimensions
    is_grand: bool = False  # reads a value reduced over all rows of `home`
    is_rowed: bool = False  # reads a value of whole rows of `home`
    cost: int = 0  # scalar operations to compute it where it is read
    length: int = 0  # longest chain of floating nodes below it
    loads: frozenset[int] = frozenset()  # members and leaves it reads, of at least half its size
    is_moved: bool = False  # reads shifted elements: sharing by equal indices cannot be assumed
    has_window: bool = False  # contains a window reduction
    mixings: int = 0  # reshapes, one below the other, that mix dimensions: each doubles an index
    windows: frozenset[int] = frozenset()  # dimensions that `window` appended
    order: tuple[int, ...] | None = None  # preferred storage order, outermost first
    group: Group | None = None  # the group it is a member of
    level: str = ""  # of a member: "reduce", "grand", "elem", "row", "scalar", "column", or AFTER's
    overwrites: int = -1  # of an assignment: number of the leaf whose memory it takes
    target: "Facts | None" = None  # of an assignment: the contents it follows
    is_output: bool = False  # the user reads it: stored row-major in a slot of its own
    is_row_major: bool = False  # a copy reads it: stored row-major
    is_stored: bool = False  # some other kernel, or the user, reads it

    @property
    def is_repeated(self) -> bool:
        """Tell whether it is computed at several places, and so is what it is made of."""
        return self.is_shifted and self.is_moved and self.kernels > 1

    @property
    def is_update(self) -> bool:
        """Tell whether it is an assignment of a part (schedule/updates.py)."""
        return self.target is not None and self.node.arg is not None


@dataclass(slots=True)
class Reasons:
    """Why nodes were kept apart, as lines, and with the numbers of values left in memory by it."""

    lines: list[str] = field(default_factory=list)
    causes: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def note(self, reason: str, *values: int) -> None:
        """Keep the reason of a decision."""
        self.lines.append(reason)
        self.causes.append((reason, values))

    def note_copy(self, facts: Facts, when: str = "later") -> None:
        """Keep that what an assignment writes is not written in place."""
        shape = facts.node.shape
        what = f"{facts.node.arg.shape} of {shape}" if facts.is_update else f"{shape}"
        self.note(f"assign {what} is copied: the old value is read {when}", facts.number)

    def note_loop(self, reasons: Sequence[str]) -> None:
        """Keep the reasons of a loop's body, whose arrays are not those of the plan around it."""
        self.lines += [f"in the loop: {reason}" for reason in reasons]

    def told(self, locations: Mapping[int, Any]) -> tuple[Any, Mapping[int, tuple[str, ...]]]:
        """Give the lines, and by slot why it is stored; of what was there before, what it met."""
        found: dict[int, tuple[str, ...]] = {}
        for reason, values in self.causes:
            for slot in sorted(locations[number].slot for number in values if number in locations):
                found[slot] = (*found.get(slot, ()), reason)
        return tuple(self.lines), found


def is_stored(member: Facts) -> bool:
    """Tell whether a member's value goes to memory."""
    if member.is_stored or member.is_output or member.is_row_major:
        return True
    role = member.node.row.role
    return role in OWN or role in LONE


def waits_for_rows(facts: Facts) -> bool:
    """Tell whether a value is known only when rows of its home have been reduced."""
    if facts.is_rowed or facts.group is None:
        return facts.is_rowed
    return facts.level != "elem" if facts.group.kind == "reduce" else facts.level in AFTER


def is_long(facts: Facts) -> bool:
    """Tell whether a floating chain has grown beyond the limit."""
    if facts.length > CHAIN_LIMIT:
        return True
    if facts.cost <= CHAIN_LIMIT:
        return False
    return facts.is_moved or recount(facts, CHAIN_LIMIT) > CHAIN_LIMIT


def recount(facts: Facts, limit: int) -> int:
    """Count the operations of the distinct floating nodes under `facts`; stops beyond a limit."""
    stack, total = [facts], 0
    for found in reached(stack):
        if not found.is_loaded:
            total += found.node.row.cost
            stack += found.inputs
        if total > limit:
            return total
    facts.cost = total
    return total


def operations_of(*facts: Facts) -> int:
    """Count the operations of distinct nodes: `facts`, and what floats under them; views: none."""
    stack, total, own = [*facts], 0, {*facts}
    for found in reached(stack):
        if found.is_loaded and found not in own:
            continue
        row = found.node.row
        total += row.cost if row.is_elementwise else 0
        stack += found.inputs
    return total


def place(shape: tuple[int, ...], labels: Labels, group: Group) -> tuple[str, Labels] | None:
    """Complete labels in the domain of `group`: level and labels, or None if it does not fit."""
    every = [d for d, n in enumerate(group.shape) if n != 1]
    rows = [d for d in every if d not in group.reduced] if group.reduced else every
    return place_in(shape, labels, group, (("row", rows), ("elem", every)))


def place_in(
    shape: tuple[int, ...],
    labels: Labels,
    group: Group,
    levels: Sequence[tuple[str, Sequence[int]]],
) -> tuple[str, Labels] | None:
    """Complete labels at the first of some levels whose dimensions they can cover."""
    taken = [label for label, n in zip(labels, shape, strict=True) if label >= 0 and n != 1]
    if len(taken) != len(set(taken)):
        return None  # an outer product of a value with itself leaves its domain
    used = set(labels) - {FREE}
    free = [d for d, n in enumerate(shape) if n != 1 and labels[d] == FREE]
    for level, wanted in levels:
        if len(wanted) - len(used) != len(free) or not used.issubset(wanted):
            continue
        if not free:
            return level, labels
        missing = [d for d in wanted if d not in used]
        if all(shape[f] == group.shape[m] for f, m in zip(free, missing, strict=True)):
            full = list(labels)
            for f, m in zip(free, missing, strict=True):
                full[f] = m
            return level, tuple(full)
    return None


def identity_labels(shape: tuple[int, ...]) -> Labels:
    """Labels of a node that runs over the domain itself."""
    return tuple(d if n != 1 else FREE for d, n in enumerate(shape))


class Ties:
    """Numbers that belong together, of groups say: one tie after the other."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.above = {number: number for number in numbers}

    def head(self, number: int) -> int:
        """Find the number that stands for those it belongs to."""
        above = self.above
        while above[number] != number:
            farther = above[above[number]]
            above[number] = farther
            number = farther
        return number

    def tie(self, one: int, other: int) -> None:
        """Let two numbers belong together."""
        heads = self.head(one), self.head(other)
        first, second = sorted(heads)
        self.above[second] = first
