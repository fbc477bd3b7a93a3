"""memory: place temporaries in one arena by their lifetimes.

A temporary lives from the step that writes it first to the step that reads it last. The arena can
not be smaller than what lives at one step. Most plans come close to that by a *sweep* over the
steps, forward or backward, in which each temporary takes the smallest free block that fits. Where
neither does, temporaries are placed one by one at the lowest offset where nothing that lives at the
same time is in the way: large ones first, or those of the fullest step first, then those of the
next, where those come first that live longest, or are largest. All of it takes n log n.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf

from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.plan import PlanSlot

ALIGNMENT = 256  # bytes; what cudaMalloc guarantees, and several cache lines on a CPU
PAGE = 4096  # bytes: a load waits for a store that is a multiple of this away
LONG = 4 * PAGE
CLOSE = 1.005  # times what lives at one step: an arena that is not worth another search
SPREAD = 1.01  # times an arena where long temporaries begin whole pages apart
WORTH = 1 << 17  # bytes above that are worth orders which take as long as all before
ROUNDS = 64  # gaps too small that are passed, one temporary: then it is placed above all
Part = tuple[int, int, int]  # a slot, that of the array it is part of, and bytes before it there
Placement = tuple[list[int], int]  # an offset each, and the size of the arena


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One temporary: its size and the first and last step that touch it."""

    nbytes: int
    first: int
    last: int


def place_slots(
    slots: list[PlanSlot], lives: Mapping[int, tuple[int, int]], parts: Sequence[Part]
) -> dict[str, int]:
    """Give the temporaries that live their offsets, parts theirs in an array: the arenas' sizes.

    A part says its slot, that of the array, and how many bytes it begins behind that; parts of
    parts come first.
    """
    known = dict(lives)
    for part, whole, _ in parts:
        (earlier, later), (first, last) = known.pop(part), known[whole]
        known[whole] = min(earlier, first), max(later, last)
    by_device: dict[str, list[int]] = {}
    for number in sorted(known):
        if slots[number].kind == "temporary":
            by_device.setdefault(slots[number].device, []).append(number)
    arenas = {}
    for device, numbers in by_device.items():
        lifetimes = [Lifetime(slots[n].nbytes, *known[n]) for n in numbers]
        offsets, arenas[device] = place_temporaries(lifetimes)
        for number, offset in zip(numbers, offsets, strict=True):
            slots[number] = slots[number].at(offset)
    for part, whole, away in reversed(parts):
        slots[part] = slots[part].at(slots[whole].offset + away)
    return arenas


def place_temporaries(lifetimes: Sequence[Lifetime]) -> Placement:
    """Find an offset for each temporary, and the size of the arena, in bytes.

    Long ones do not begin whole pages apart, if the arena is about as small then.
    """
    sizes = [round_up(max(life.nbytes, 1), ALIGNMENT) for life in lifetimes]
    spread = [*map(off_page, sizes)]
    other = place_sizes(spread, lifetimes)
    firsts = [x.first for x in lifetimes]
    lasts = [x.last for x in lifetimes]
    least = max(bytes_alive(sizes, firsts, lasts))
    if spread == sizes or other[1] <= least * SPREAD:
        return other
    found = place_sizes(sizes, lifetimes, other[1] / SPREAD + 1)
    return other if other[1] <= found[1] * SPREAD else found


def off_page(size: int) -> int:
    """Give a long temporary room for its neighbour to begin elsewhere in a page."""
    return size + ALIGNMENT if size >= LONG and not size % PAGE else size


def place_sizes(
    sizes: Sequence[int], lifetimes: Sequence[Lifetime], limit: float = inf
) -> Placement:
    """Place temporaries of these sizes in an arena that is as small as can be.

    One that reaches a limit is as good as any other that does.
    """
    firsts, lasts = [x.first for x in lifetimes], [x.last for x in lifetimes]
    alive = max(bytes_alive(sizes, firsts, lasts))
    wanted = alive * CLOSE
    backward = [-step for step in lasts], [-step for step in firsts]
    found = place_by_time(sizes, firsts, lasts)
    if found[1] > wanted:
        found = smaller(found, place_by_time(sizes, *backward))
    for order in orders(sizes, firsts, lasts) if found[1] > wanted else ():
        most = min(found[1], limit)
        found = smaller(found, place_in_order(sizes, firsts, lasts, order, most))
        if found[1] <= wanted or found[1] < alive + WORTH:
            break
    return found


def orders(
    sizes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]
) -> Iterator[list[int]]:
    """Yield the orders in which temporaries may be placed one by one, best first."""
    numbers = range(len(sizes))
    yield sorted(numbers, key=lambda n: (-sizes[n], n))
    full = fullest(sizes, firsts, lasts)
    yield sorted(numbers, key=lambda n: (full[n], firsts[n] - lasts[n], n))
    yield sorted(numbers, key=lambda n: (full[n], -sizes[n], n))


def fullest(
    sizes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]
) -> list[tuple[int, int]]:
    """Find the fullest step in each life: minus the bytes that live there, and which it is."""
    alive = bytes_alive(sizes, firsts, lasts)
    leaves = 1 << max(lasts, default=0).bit_length()  # of a tree as below
    least = [(0, 0)] * (2 * leaves)
    for step, count in enumerate(alive[:leaves]):
        least[leaves + step] = -count, step
    for node in reversed(range(1, leaves)):
        least[node] = min(least[2 * node], least[2 * node + 1])
    found = []
    for first, last in zip(firsts, lasts):
        above = [least[node] for node in covering(first + leaves, last + leaves + 1)]
        found.append(min(above))
    return found


def smaller(one: Placement, other: Placement) -> Placement:
    """Choose the smaller arena."""
    return other if other[1] < one[1] else one


def bytes_alive(sizes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]) -> list[int]:
    """Count the bytes that live at each step."""
    changes = [0] * (max(lasts, default=0) + 2)
    for size, first, last in zip(sizes, firsts, lasts):
        changes[first] += size
        changes[last + 1] -= size
    return [*accumulate(changes)]


def place_by_time(sizes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]) -> Placement:
    """Place temporaries in the order of their first steps, each in the smallest block that fits."""
    offsets = [0] * len(sizes)
    arena = Blocks()
    ending = sorted(range(len(sizes)), key=lasts.__getitem__)
    ended = 0
    for number in sorted(range(len(sizes)), key=lambda n: (firsts[n], -sizes[n])):
        while lasts[ending[ended]] < firsts[number]:
            done = ending[ended]
            arena.give_back(offsets[done], offsets[done] + sizes[done])
            ended += 1
        offsets[number] = arena.take(sizes[number])
    return offsets, arena.top


class Blocks:
    """The free blocks of an arena that grows: neighbours are one block."""

    def __init__(self) -> None:
        self.top = 0
        self.by_size: list[tuple[int, int]] = []  # (bytes, start), sorted
        self.stops: dict[int, int] = {}  # by start
        self.starts: dict[int, int] = {}  # by stop

    def take(self, size: int) -> int:
        """Take memory from the smallest block with room, else above the top."""
        found = bisect_left(self.by_size, (size, 0))
        if found < len(self.by_size):
            _, start = self.by_size[found]
            stop = self.remove(start)
            if start + size < stop:
                self.insert(start + size, stop)
            return start
        start = self.starts.get(self.top, self.top)
        if start < self.top:
            self.remove(start)
        self.top = start + size
        return start

    def give_back(self, start: int, stop: int) -> None:
        """Free memory that was taken."""
        if start in self.starts:
            start = self.starts[start]
            self.remove(start)
        if stop in self.stops:
            stop = self.remove(stop)
        self.insert(start, stop)

    def insert(self, start: int, stop: int) -> None:
        """Add a block."""
        self.stops[start], self.starts[stop] = stop, start
        insort(self.by_size, (stop - start, start))

    def remove(self, start: int) -> int:
        """Take a block off the lists; tells where it stops."""
        stop = self.stops.pop(start)
        del self.starts[stop]
        del self.by_size[bisect_left(self.by_size, (stop - start, start))]
        return stop


def place_in_order(
    sizes: Sequence[int],
    firsts: Sequence[int],
    lasts: Sequence[int],
    order: Sequence[int],
    limit: float = inf,
) -> Placement:
    """Place temporaries one by one, each at the lowest offset that is free while it lives.

    An arena that reaches a limit is not looked at further.

    The steps are the leaves of a binary tree (node n has 2n and 2n + 1 below it), and a lifetime is
    few of its nodes. A node knows which addresses are taken by whatever lives at one of its steps,
    and which by what lives at all of them.
    """
    offsets, top = [0] * len(sizes), 0
    leaves = 1 << max(lasts, default=0).bit_length()
    some = defaultdict[int, Spans](Spans)
    every = defaultdict[int, Spans](Spans)
    for number in order:
        first, last = firsts[number] + leaves, lasts[number] + leaves
        nodes = covering(first, last + 1)
        known = [some[node] for node in nodes if node in some]
        above = {*path(first), *path(last)}
        known += [every[node] for node in above if node in every]
        start = lowest_gap(known, sizes[number])
        offsets[number], stop = start, start + sizes[number]
        top = max(top, stop)
        if top >= limit:
            break
        for node in nodes:
            every[node].add(start, stop)
            for each in path(node):
                if not some[each].add(start, stop):
                    break  # what is above knows it too
    return offsets, top


def covering(first: int, stop: int) -> list[int]:
    """List the nodes of a binary tree that together have the leaves first..stop-1 below them."""
    found = []
    while first < stop:
        if first & 1:
            found.append(first)
            first += 1
        if stop & 1:
            stop -= 1
            found.append(stop)
        first, stop = first >> 1, stop >> 1
    return found


def path(node: int) -> Iterator[int]:
    """Yield a node of a binary tree and all above it."""
    while node:
        yield node
        node >>= 1


class Spans:
    """Stretches of addresses, disjoint and sorted."""

    __slots__ = ("starts", "stops")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.stops: list[int] = []

    def add(self, start: int, stop: int) -> bool:
        """Add a stretch; tells whether some of it is new."""
        first, end = bisect_left(self.stops, start), bisect_right(self.starts, stop)
        if first < end:
            start, stop = min(self.starts[first], start), max(self.stops[end - 1], stop)
            if end == first + 1 and self.starts[first] == start and self.stops[first] == stop:
                return False
        self.starts[first:end], self.stops[first:end] = [start], [stop]
        return True

    def next_gap(self, start: int, size: int) -> int:
        """Find the lowest address from `start` on with room outside of the stretches."""
        number = bisect_right(self.stops, start)
        while number < len(self.starts) and self.starts[number] < start + size:
            start = self.stops[number]
            number += 1
        return start


def lowest_gap(known: Sequence[Spans], size: int) -> int:
    """Find the lowest address with room outside of all stretches, or one above them all."""
    start = agreed = rounds = 0
    while agreed < len(known) and rounds < ROUNDS * len(known):
        found = known[rounds % len(known)].next_gap(start, size)
        agreed = agreed + 1 if found == start else 1
        start, rounds = found, rounds + 1
    is_found = agreed == len(known)
    return start if is_found else max(spans.stops[-1] for spans in known)
