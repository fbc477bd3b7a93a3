"""merge: launches that need not wait for one another become one.

    products     of one depth: the gradients of a layer; on a GPU blocks of one fill what the last
                 blocks of the other leave idle, and what is not read soon, gradients of a shortcut,
                 waits for others of its kind. Not long ones of few tiles, whose blocks share sums,
                 or of one matrix, whose best tiles have other threads; on a CPU they would be in
                 memory at once, with operands packed for both: the smaller result comes first
    small work   beside other maps and reductions, earlier or later if what it reads and writes
                 allows it: a check of labels, the powers of an optimizer, running statistics
reductions       on a GPU, that nothing in the plan reads: gradients of biases, of norms' weights

A launch is small if reading its inputs once more takes no longer than launching a kernel: it may
run where they are no longer in a cache.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import field

from picograd.graph.row import Role
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.schedule.arrange import PART_LIMIT, Launch, has_words
from picograd.schedule.cost import MULTIPLIED, MULTIPLIED_IN_BLOCKS, is_small, machine
from picograd.schedule.group import GROUP_LIMIT, PRODUCTS, Facts, Group
from picograd.schedule.heroes import count_matrices, is_product, product_depth, uses_tensor_cores
from picograd.schedule.one_row import is_of_one_row
from picograd.schedule.write_order import overwritten, reads_of
from picograd.target import Target

MERGED = ("map", "reduce")
PRODUCT_LIMIT = 4  # products of one kernel: more compile slowly
TRIES = 4  # launches looked at on each side
LONG = 500  # times a launch that a product takes on a CPU: it gains nothing by sharing one
LONG_IN_BLOCKS = 8  # the same on a GPU
SEVERAL, TILE = 8, 64  # matrices of a product, whose tiles are small; rows and columns of these
PRODUCT_WAIT = 6  # the same for products
WAIT_LIMIT = 2  # depths that a large reduction waits for others: what it reads stays in memory


@dataclass(eq=False, slots=True)
class Bounds:
    """What a launch waits for, and what waits for it."""

    sources: set[Launch] = field(default_factory=set)
    readers: set[Launch] = field(default_factory=set)
    written: set[int] = field(default_factory=set)  # numbers of the leaves it writes in place
    nbytes: int = 0  # that it reads


def merge_launches(launches: list[Launch], target: Target) -> list[Launch]:
    """Merge launches, listed by depth, and list those that are left."""
    found = Merger(merge_products(launches, target), target).merge()
    for launch in found if target.has_blocks else ():
        if launch.kind in PRODUCTS:
            launch.parts.sort(key=result_size, reverse=True)
    return found


def merge_products(launches: list[Launch], target: Target) -> list[Launch]:
    """Let products of one depth share a launch."""
    found: list[Launch] = []
    hosts: dict[tuple[int, str, bool], Launch] = {}
    for launch in launches:
        is_product = launch.kind in PRODUCTS
        is_row = is_product and is_of_one_row(hero_of(launch), target)
        is_sure = is_row or (is_product and may_share(hero_of(launch), target))
        key = launch.depth, launch.device, is_row
        host = hosts.get(key) if is_sure else None
        if host is not None and fits(host, launch, PRODUCT_LIMIT):
            absorb(host, launch)
            continue
        if is_sure:
            hosts[key] = launch
        found.append(launch)
    return sorted(found, key=lambda launch: (launch.depth, long_result(launch, target)))


def result_size(part: list[Group]) -> int:
    """Count the elements of the result of a product that is part of a launch.

    On a GPU blocks of the first part begin first. Gradients of images are many short ones, those of
    weights few long ones, beside which there is room: whatever order a program asks for them in.
    """
    return next(member for member in part[0].members if member.level == "hero").node.size


def long_result(launch: Launch, target: Target) -> int:
    """Count the elements of a long product's result on a CPU; 0 for other launches."""
    hero = hero_of(launch) if launch.kind in PRODUCTS and not target.has_blocks else None
    return hero.node.size if hero is not None and is_long(hero, target) else 0


def hero_of(launch: Launch) -> Facts:
    """Find the product of a launch."""
    return next(member for member in launch.parts[0][0].members if member.level == "hero")


def may_share(hero: Facts, target: Target) -> bool:
    """Tell whether a product may be one of several in a kernel.

    Those of 16-bit floats differ in threads and shared memory on tensor cores.
    """
    is_apart = uses_tensor_cores(hero, target) or is_long(hero, target)
    return not is_apart and is_product(hero)


def is_long(hero: Facts, target: Target) -> bool:
    """Tell whether a product takes so long that a launch of its own costs nothing.

    On a CPU convolutions pack no operands; on a GPU theirs have tiles alike, and so have products
    of several matrices with a tile for each processor: none of them shares sums with others.
    """
    made = machine(target)
    has_tiles = hero.node.size >= TILE**2 * made.workers
    if target.has_blocks and has_tiles and count_matrices(hero.node) >= SEVERAL:
        return False
    multiplied = hero.node.size * product_depth(hero.node) / made.workers
    rate = MULTIPLIED_IN_BLOCKS if target.has_blocks else MULTIPLIED
    launches = LONG_IN_BLOCKS if target.has_blocks else LONG
    is_contraction = hero.node.row.role is Role.CONTRACT
    return is_contraction and multiplied / rate > launches * made.launch


def fits(host: Launch, launch: Launch, parts: int) -> bool:
    """Tell whether one kernel is not too large for both."""
    is_short = host.operations + launch.operations <= GROUP_LIMIT
    is_few = len(host.parts) + len(launch.parts) <= parts
    return is_short and is_few and has_words(host, launch.words)


def absorb(host: Launch, launch: Launch) -> None:
    """Move the parts of a launch into another."""
    if launch.kind == "reduce" and host.kind == "map":
        host.kind, host.parts = "reduce", launch.parts + host.parts
    else:
        host.parts = host.parts + launch.parts
    host.leaves |= launch.leaves
    host.contents |= launch.contents
    host.words |= launch.words
    host.elements += launch.elements
    host.operations += launch.operations


class Merger:
    """This class finds hosts for small launches."""

    def __init__(self, launches: list[Launch], target: Target) -> None:
        self.launches, self.machine, self.target = launches, machine(target), target
        self.has_blocks = target.has_blocks
        self.bounds = {launch: Bounds() for launch in launches}
        self.reads: dict[int, list[Launch]] = {}  # of each leaf
        self.writes: dict[int, list[Launch]] = {}
        self.is_plain = all(each.kind not in ("loop", "host") for each in launches)
        places = {group.number: each for each in launches for group in groups_of(each)}
        for launch in launches:
            own = self.bounds[launch]
            for facts in {f for group in groups_of(launch) for f in reads_of(group)}:
                own.nbytes += facts.node.size * facts.node.dtype.itemsize
                if facts.group is not None:
                    source = places[facts.group.number]
                    own.sources.add(source)
                    self.bounds[source].readers.add(launch)
            for leaf in launch.leaves:
                self.reads.setdefault(leaf, []).append(launch)
            own.written = {x for group in groups_of(launch) for x in overwritten(group)}
            for leaf in own.written:
                self.writes.setdefault(leaf, []).append(launch)

    def merge(self) -> list[Launch]:
        """Merge each small launch with one that is small too, or else with any."""
        every = [launch for launch in self.launches if launch.kind in MERGED]
        small = [launch for launch in every if self.is_small(launch)]
        gone: set[Launch] = set()
        scatters = self.merge_scatters(gone) if self.has_blocks else []
        for launch in small:
            if is_movable(launch):
                host = self.find(launch, scatters, gone) if launch.kind == "map" else None
                host = host or self.find(launch, small, gone) or self.find(launch, every, gone)
                if host is not None:
                    self.move(launch, host)
                    gone.add(launch)
        for launch in every if self.has_blocks else ():
            if launch not in gone and self.may_wait(launch):
                host = self.find(launch, every, gone, launch.depth + WAIT_LIMIT)
                if host is not None:
                    self.move(launch, host)
                    gone.add(launch)
        self.merge_late(gone)
        return self.followed([launch for launch in self.launches if launch not in gone])

    def merge_scatters(self, gone: set[Launch]) -> list[Launch]:
        """Let small writes at indices share a launch with others of their depth; list those left.

        Keys and values of a token go to a cache so: the query is turned in the same launch.
        """
        left: list[Launch] = []
        for launch in self.launches:
            if launch.kind != "scatter" or not is_update(launch):
                continue
            written = [x for group in groups_of(launch) for m in group.members for x in m.inputs]
            nbytes = sum(each.node.size * each.node.dtype.itemsize for each in written)
            if not is_small(nbytes, self.machine):
                continue
            beside = [each for each in left[-TRIES:] if each.depth == launch.depth]
            host = next((each for each in beside if self.may_join(launch, each)), None)
            if host is None:
                left.append(launch)
            else:
                self.move(launch, host)
                gone.add(launch)
        return left

    def merge_late(self, gone: set[Launch]) -> None:
        """Let products of a GPU that are not read soon wait for others: they are `gone` then."""
        products = [
            launch
            for launch in self.launches
            if self.has_blocks
            and launch.kind in PRODUCTS
            and may_share(hero_of(launch), self.target)
        ]
        for launch in products:
            alike = [each for each in products if each.kind == launch.kind]
            host = self.find(launch, alike, gone, launch.depth + PRODUCT_WAIT)
            if host is not None and is_movable(launch):
                self.move(launch, host)
                gone.add(launch)

    def followed(self, launches: list[Launch]) -> list[Launch]:
        """Let launches of a strand follow one another, where they wait for nothing else."""
        strands: dict[int, list[Launch]] = {}  # what is left of each, backwards
        for launch in reversed(launches):
            if strand_of(launch):
                strands.setdefault(strand_of(launch), []).append(launch)
        found: dict[Launch, None] = {}
        for launch in launches:
            found[launch] = None
            rest = strands.get(strand_of(launch), [])
            while rest and (rest[-1] in found or self.is_ready(rest[-1], found)):
                found[rest.pop()] = None
        return list(found)

    def is_ready(self, launch: Launch, found: dict[Launch, None]) -> bool:
        """Tell whether all that a launch waits for is among others."""
        return is_movable(launch) and self.bounds[launch].sources <= found.keys()

    def may_wait(self, launch: Launch) -> bool:
        """Tell whether a launch is reductions that nothing in the plan reads."""
        return launch.kind == "reduce" and not self.bounds[launch].readers and is_movable(launch)

    def is_small(self, launch: Launch) -> bool:
        """Tell whether a launch takes no longer than launching it."""
        size = max(product(group.shape) for group in groups_of(launch))
        return is_small(self.bounds[launch].nbytes + 4 * size, self.machine)

    def find(
        self, launch: Launch, hosts: Sequence[Launch], gone: set[Launch], last: int = 1 << 60
    ) -> Launch | None:
        """Find a host: one that runs at the same time, or after it up to a depth, or before."""
        own = self.bounds[launch]
        least = max((source.depth for source in own.sources), default=0) + 1
        most = min([reader.depth - 1 for reader in own.readers] + [last])
        start = bisect_left(hosts, launch.depth, key=lambda each: each.depth)
        later = [each for each in hosts[start : start + TRIES] if each.depth <= most]
        earlier = hosts[max(start - TRIES, 0) : start][::-1]
        for host in (*later, *(each for each in earlier if each.depth >= least)):
            if host is not launch and host not in gone and self.may_join(launch, host):
                return host
        return None

    def may_join(self, launch: Launch, host: Launch) -> bool:
        """Tell whether a launch may run as part of another, where memory is written in place."""
        limit = PRODUCT_LIMIT if host.kind in PRODUCTS else PART_LIMIT
        if host.device != launch.device or not fits(host, launch, limit):
            return False
        if strand_of(launch) != strand_of(host):
            return False
        own, other = self.bounds[launch], self.bounds[host]
        if not own.written.isdisjoint(host.leaves) or not other.written.isdisjoint(launch.leaves):
            return False
        if own.written and (not self.is_plain or host.depth > launch.depth):
            return False
        written = [each for leaf in launch.leaves for each in self.writes.get(leaf, ())]
        if any(each is not launch and each.depth <= host.depth for each in written):
            return False
        readers = [each for leaf in own.written for each in self.reads.get(leaf, ())]
        return all(each is launch or each.depth < host.depth for each in readers)

    def move(self, launch: Launch, host: Launch) -> None:
        """Make a launch part of another."""
        absorb(host, launch)
        own, both = self.bounds[launch], self.bounds[host]
        both.sources |= own.sources
        both.readers |= own.readers
        both.written |= own.written
        both.nbytes += own.nbytes
        for source in own.sources:
            self.bounds[source].readers.add(host)
            self.bounds[source].readers.discard(launch)
        for reader in own.readers:
            self.bounds[reader].sources.add(host)
            self.bounds[reader].sources.discard(launch)
        for table, leaves in ((self.reads, launch.leaves), (self.writes, own.written)):
            for leaf in leaves:
                table[leaf] = [host if each is launch else each for each in table[leaf]]


def groups_of(launch: Launch) -> Iterator[Group]:
    """Yield the groups of a launch."""
    for part in launch.parts:
        yield from part


def strand_of(launch: Launch) -> int:
    """Give the strand that all maps of a launch are of, or 0."""
    return launch.parts[0][0].strand


def is_update(launch: Launch) -> bool:
    """Tell whether all that a launch does is to write parts of arrays in place."""
    return all(each.is_update for group in groups_of(launch) for each in group.members)


def is_movable(launch: Launch) -> bool:
    """Tell whether only what it reads and writes ties a launch to its place.

    Assignments of parts have an order of their own, and so has the copy that a scatter writes into.
    """
    members = [member for group in groups_of(launch) for member in group.members]
    is_plain = not any(m.is_update or m.node.row.role is Role.SCATTER for m in members)
    return is_plain and not launch.contents
