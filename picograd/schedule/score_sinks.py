"""score_sinks: which sinks of a region share a kernel, and when the whole region needs no memory.

    online    m = max(x);  l = sum(exp(x - m));  o = (exp(x - m) / l) @ v
              The three stream over one side together: the maximum is the greatest so far, and what
              was summed by an earlier one is scaled by exp(earlier - present). That is exact since
              `o` is linear in the weights, the weights in the exponentials, and m is only in these.
    ready     a product or a sum whose maxima and totals are known, as in the gradients: others of
              the same side that do not wait for one another share a kernel.

Each kernel computes the region again from the operands of its product; rows are in memory once
(maxima, totals, sums), scores never.

score_rows: what a stream reads one value a row of is summed in its own kernel.

    d[i] = sum(g[i] * o[i])          in the kernel of dq, which has the rows i; that of dk and dv
    dq   = (w * (g v^T - d)) k       reads d from memory, as it reads maxima and totals

Without that a kernel of its own would sum rows of the result and its gradient, of which the stream
brings one anyway.
"""

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from dataclasses import field

from picograd.dtype import bool_
from picograd.graph.row import Role
from picograd.helpers import product, reached
from picograd.late_methods import dataclass
from picograd.schedule.group import Facts, Group, Reasons
from picograd.schedule.index import Axis, Indices
from picograd.schedule.scores import LEAST_SIDE, Region, Sink, lone_axis
from picograd.schedule.viewindex import view_source

NO_LIMIT = 1 << 31
MOST_MADE = 8  # nodes between the sinks of a stream and what its weights are divided by


@dataclass(frozen=True, slots=True)
class Limits:
    """What a target has kernels for: `least` rows, so many columns of the products of one."""

    least: int = LEAST_SIDE
    most_columns: int = NO_LIMIT
    join: Callable[["Matcher"], None] | None = None  # what makes streams of several softmaxes


@dataclass(eq=False, slots=True)
class Stream:
    """Sinks of one kernel to be: they stream over `over`, at every point of `rows`."""

    region: Region
    side: int
    sinks: list[Sink]
    total: Facts | None = None  # what the weights are divided by, online
    further: int = 0  # softmaxes beside the first
    columns: dict[str, Axis] = field(default_factory=dict)  # of their products, which are alike
    group: Group | None = None

    @property
    def over(self) -> tuple[Axis, ...]:
        """The axes streamed over."""
        return self.cut(self.side)[1]

    @property
    def rows(self) -> tuple[Axis, ...]:
        """The axes of the results, but for the columns of products."""
        return self.cut(self.side)[0]

    def cut(self, side: int) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """Part the axes of the region in those that a side leaves, and its own."""
        own = self.region.sides[side]
        rest = tuple(x for x in self.region.axes if x not in own)
        return rest, tuple(x for x in self.region.axes if x in own)

    def is_across(self, facts: Facts) -> bool:
        """Tell whether a sink of this stream reduces the other side (schedule/both_sides.py)."""
        return any(x.facts is facts and x.side != self.side for x in self.sinks)

    @property
    def at(self) -> dict[int, Indices]:
        """The places of the nodes of the region."""
        return self.region.at


@dataclass(frozen=True, slots=True)
class Weight:
    """Weights as a linear function of exponentials: divided by `total`, with `peak` subtracted."""

    exponential: Facts
    total: Facts | None
    peak: Facts | None
    path: frozenset[int]  # the nodes on the way, where `total` and `peak` may be read
    is_masked: bool = False
    quotient: Facts | None = None  # what divides by the total


@dataclass(slots=True)
class Matcher:
    """This class finds the streams of one region."""

    region: Region
    waits: dict[int, int]  # of each node, by number: the sinks it is made of, a bit each
    bits: dict[int, int]  # of each sink
    streams: list[Stream] = field(default_factory=list)
    problem: str = ""
    most_columns: int = NO_LIMIT

    def match(self) -> None:
        """Put every sink in a stream; `problem` says why that is impossible."""
        region = self.region
        if any(self.is_compared(facts) for facts in region.members):
            self.problem = "they are compared with what is reduced of them, as they are stored"
            return
        sinks = {sink.facts.number: sink for sink in region.sinks}
        sums = [x for x in region.sinks if is_sum(x)]
        weights = {x.facts.number: self.weight(x.facts.inputs[0]) for x in sums}
        taken: set[int] = set()
        for sink in sums:
            found = weights[sink.facts.number]
            if found is None or found.total is not None:
                continue
            stream = self.online(sink, found, taken)
            taken |= {x.facts.number for x in stream.sinks}
            self.streams.append(stream)
        are_known = all(is_product(x) or is_sum(x) or is_kept(x) for x in region.sinks)
        if not (taken or (are_known and region.is_outer)):
            self.problem = "no sum of exponentials was found, less the maximum of their row"
        left = [sink for sink in sinks.values() if sink.facts.number not in taken]
        for sink in sorted(left, key=is_kept):
            self.ready(sink)

    def is_compared(self, facts: Facts) -> bool:
        """Tell whether a score is compared with what reduces scores, whose digits are others."""
        outside = [x for x in facts.inputs if x.number not in self.region.at]
        is_truth = facts.node.dtype is bool_
        return is_truth and any(self.waits[each.number] for each in outside)

    def online(self, total: Sink, known: Weight, taken: Collection[int]) -> Stream:
        """Find what streams together with a sum of exponentials."""
        members, side = [total], total.side
        own = self.bits[total.facts.number]
        if known.peak is not None and known.peak.number not in taken:
            peaks = [x for x in self.region.sinks if x.facts is known.peak and x.side == side]
            members = [*peaks, total]
            own |= self.bits[known.peak.number]
        stream = Stream(self.region, side, members, total.facts)
        for sink in self.region.sinks:
            if not is_product(sink) or sink.side != side or sink.facts.number in taken:
                continue
            weight = self.weight(sink.facts.inputs[sink.operand])
            if weight is None or weight.exponential is not known.exponential:
                continue
            read = weight.total, weight.peak
            if weight.peak is not known.peak or not self.is_free(sink, read, weight.path, own):
                continue
            if weight.total in (None, stream.total) or self.take_divisor(stream, weight, own):
                sink.is_divided, sink.is_masked = weight.total is not None, weight.is_masked
                members.append(sink)
        return stream

    def take_divisor(self, stream: Stream, weight: Weight, own: int) -> bool:
        """Let a stream compute what its weights are divided by, if that is made of its sinks.

        As a total with one more summand of the row, a sink of attention. All that lies between is
        computed with it: what others read of it is there then.
        """
        if stream.total is not stream.sinks[-1].facts or weight.quotient is None:
            return False
        made: dict[int, Sink] = {}
        quotient = weight.quotient
        stack = [(quotient.inputs[1], self.region.at[quotient.number])]
        while stack:
            found = shown(*stack.pop())
            if found is None:
                return False
            facts, places = found
            waits = self.waits[facts.number]
            if facts.number in self.bits or not waits & own:
                continue
            if facts.node.row.role is not Role.ELEMENTWISE or waits & ~own:
                return False
            if not are_rows(places, stream) or len(made) == MOST_MADE:
                return False
            sink = Sink(facts, stream.side, 0, places=places)
            made[facts.number] = sink
            stack += [(source, places) for source in facts.inputs]
        if not made:
            return False
        ordered = sorted(made)
        stream.sinks += [made[number] for number in ordered]
        stream.total = weight.total
        return True

    def is_free(
        self, sink: Sink, known: Container[Facts | None], path: Container[int], own: int
    ) -> bool:
        """Tell whether a product waits for its `own` streams in its weights alone, by their `path`.

        There it may read what is `known` of them: peaks and totals.
        """
        other = sink.facts.inputs[1 - sink.operand]
        if self.waits[other.number] & own:
            return False
        for reader, source in outer_reads(sink.facts.inputs[sink.operand], self.region.at):
            is_known = base_of(source) in known and reader.number in path
            if self.waits[source.number] & own and not is_known:
                return False
        return True

    def weight(self, facts: Facts) -> Weight | None:
        """Follow weights down to the exponentials that they are linear in."""
        total: Facts | None = None
        quotient: Facts | None = None
        is_masked = False
        path: set[int] = set()
        while not facts.node.row.is_exponential:
            path.add(facts.number)
            inside = [n for n, x in enumerate(facts.inputs) if x.number in self.region.at]
            row = facts.node.row
            if len(inside) != 1 or not (is_passing(facts) or inside[0] in row.linear):
                return None
            if row.linear == (1, 2):
                is_masked = True
                if not is_zero(facts.inputs[3 - inside[0]]):
                    return None
            if row.linear == (0,) and len(facts.inputs) == 2:  # a quotient
                base = base_of(facts.inputs[1])
                if self.waits[base.number]:
                    if total is not None:
                        return None
                    total, quotient = base, facts
            facts = facts.inputs[inside[0]]
        peak, under = None, facts.inputs[0]
        path.add(facts.number)
        while is_passing(under):
            under = under.inputs[0]
        if under.node.row.factors == (1, -1):
            base = base_of(under.inputs[1])
            is_peak = base.number in self.bits and not is_sum_of(base)
            if is_peak and under.inputs[0].number in self.region.at:
                peak = base
                path.add(under.number)
        return Weight(facts, total, peak, frozenset(path), is_masked, quotient)

    def ready(self, sink: Sink) -> None:
        """Put a sink in a stream of its side whose sinks do not wait for it, nor it for them."""
        number = sink.facts.number
        for stream in self.streams:
            every = (*stream.sinks, sink)
            are_sums = all(is_product(x) or is_sum(x) or is_kept(x) for x in every)
            if stream.total is not None or stream.side != sink.side or not are_sums:
                continue
            others = [x.facts.number for x in stream.sinks]
            is_apart = not any(
                self.waits[number] & self.bits[x] or self.waits[x] & self.bits[number]
                for x in others
            )
            if is_apart and sum(map(columns_of, every)) <= self.most_columns:
                stream.sinks.append(sink)
                return
        if is_kept(sink):
            self.problem = "no stream beside which it could be stored has its maximum"
        self.streams.append(Stream(self.region, sink.side, [sink]))


def is_product(sink: Sink) -> bool:
    """Tell whether a sink is a product."""
    return sink.facts.node.row.role is Role.CONTRACT


def columns_of(sink: Sink) -> int:
    """Count the columns of a product of weights, none of a sum."""
    if not is_product(sink):
        return 0
    node, other = sink.facts.node, 1 - sink.operand
    sizes = zip(node.arg[other], node.inputs[other].shape, strict=True)
    return product(size for name, size in sizes if name not in node.arg[sink.operand])


def is_sum_of(facts: Facts) -> bool:
    """Tell whether a node is a sum of rows."""
    return facts.node.row.role is Role.REDUCE and facts.node.arg[0] == "sum"


def is_sum(sink: Sink) -> bool:
    """Tell whether a sink is a sum of rows."""
    return is_sum_of(sink.facts)


def is_kept(sink: Sink) -> bool:
    """Tell whether a sink is a member of the region that is stored."""
    return sink.facts.node.row.role is Role.PASS


def is_made(sink: Sink) -> bool:
    """Tell whether a sink is computed of others of its stream."""
    return sink.facts.node.row.role is Role.ELEMENTWISE


def is_passing(facts: Facts) -> bool:
    """Tell whether a node has the values of its input, in another shape or dtype."""
    row = facts.node.row
    return row.role in (Role.VIEW, Role.PASS) or (row.keeps_value and facts.node.dtype.is_float)


def base_of(facts: Facts) -> Facts:
    """Find what views and conversions show."""
    while is_passing(facts) and facts.inputs and not facts.is_source:
        facts = facts.inputs[0]
    return facts


def is_zero(facts: Facts) -> bool:
    """Tell whether a value is 0 everywhere."""
    base = base_of(facts)
    return base.node.row.role is Role.NUMBER and base.node.arg == 0


def waits_of(values: Sequence[Facts], bits: dict[int, int]) -> dict[int, int]:
    """Note for every node, listed inputs first, which sinks it is made of."""
    found: dict[int, int] = {}
    for facts in values:
        known = bits.get(facts.number, 0)
        for source in facts.inputs:
            known |= found[source.number]
        found[facts.number] = known
    return found


def find_streams(
    every: Sequence[Region],
    values: Sequence[Facts],
    missing: Callable[[Stream], str],
    reasons: Reasons,
    limits: Limits,
) -> list[Stream]:
    """List the kernels that stream over `every` region; `reasons` says what kept others in memory.

    `missing` says why the target has no kernel for a stream; `limits` are its own.
    """
    regions = [r for r in every if r.sinks and (r.has_exponential or r.is_outer)]
    sinks = [sink.facts.number for region in regions for sink in region.sinks]
    bits = {number: 1 << n for n, number in enumerate(dict.fromkeys(sinks))}
    waits = waits_of(values, bits) if bits else {}
    found: list[Stream] = []
    for region in regions:
        if not any(is_product(sink) for sink in region.sinks):
            continue
        matcher = Matcher(region, waits, bits, most_columns=limits.most_columns)
        if not region.problem:
            matcher.match()
            if limits.join is not None:
                limits.join(matcher)
        problem = region.problem or matcher.problem
        problem = problem or next(filter(None, map(missing, matcher.streams)), "")
        if problem:
            first = region.members[0]
            reasons.note(f"kept scores {first.node.shape} in memory: {problem}", first.number)
        else:
            found += matcher.streams
    softmaxes = [stream for stream in found if stream.region.has_exponential]
    return next(filter(are_apart, (found, softmaxes)), [])


def are_apart(streams: Sequence[Stream]) -> bool:
    """Tell whether none sums scores that another streams over, as queries by latent keys do."""
    members = {facts.number for stream in streams for facts in stream.region.members}
    return not any(sink.facts.number in members for stream in streams for sink in stream.sinks)


MADE = (Role.ELEMENTWISE, Role.VIEW, Role.DRAW, Role.POSITION, Role.NUMBER, Role.PASS)


def mark(streams: Sequence[Stream], values: Sequence[Facts], wanted: Collection[Facts]) -> None:
    """Tell the nodes of streams what they are, and what is as large and made for scores alone.

    A mask of positions, or of random bits, is computed again by every stream rather than stored.
    """
    for stream in streams:
        for facts in stream.region.members:
            facts.is_score = True
        for sink in stream.sinks:
            sink.facts.stream = stream
    least = min(stream.region.members[0].node.size for stream in streams)
    others: set[int] = {facts.number for facts in wanted}  # what somebody else reads
    for stream in streams:
        products = [x for x in stream.region.members if x.node.row.role is Role.CONTRACT]
        for facts in (*products, *(sink.facts for sink in stream.sinks)):
            others.update(x.number for x in facts.inputs if x.number not in stream.at)
    for facts in reversed(values):
        if not facts.is_source and facts.number not in others and not facts.is_score:
            row = facts.node.row
            is_made = row.role in MADE and not row.is_stored and facts.node.size >= least
            facts.is_score = is_made and facts.stream is None
        if not facts.is_score and not facts.is_source:
            others.update(source.number for source in facts.inputs)


def ordered(values: Sequence[Facts], streams: Sequence[Stream]) -> list[Facts]:
    """List nodes inputs first, and what a stream reads before its first sink."""
    before: dict[int, list[Facts]] = {}
    for stream in streams:
        reads = reads_of(stream)
        own = {sink.facts.number for sink in stream.sinks}
        reads = [x for x in reads if base_of(x).number not in own]
        for sink in stream.sinks:
            before[sink.facts.number] = reads
    order: list[Facts] = []
    seen: set[int] = set()
    for facts in values:
        if facts.number in before:
            pull(facts, before, seen, order)
        elif facts.number not in seen:
            seen.add(facts.number)
            order.append(facts)
    return order


def pull(top: Facts, before: dict[int, list[Facts]], seen: set[int], order: list[Facts]) -> None:
    """List a node after all that it reads, and what a stream reads before its first sink."""
    stack = [(top, False)]
    while stack:
        facts, is_done = stack.pop()
        if is_done:
            order.append(facts)
        elif facts.number not in seen:
            seen.add(facts.number)
            stack.append((facts, True))
            below = () if facts.is_source else facts.inputs
            stack += [(x, False) for x in (*before.get(facts.number, ()), *below)]


def outer_reads(top: Facts, inside: Container[int]) -> Iterator[tuple[Facts, Facts]]:
    """Yield what the part of a region under a node reads from outside: the reader, and what."""
    stack = [top]
    for facts in reached(stack):
        for source in facts.inputs:
            if source.number in inside:
                stack.append(source)
            else:
                yield facts, source


def reads_of(stream: Stream) -> list[Facts]:
    """List what the sinks of a stream read from outside of its region, operands included."""
    return [x for sink in stream.sinks for _, x in outer_reads(sink.facts, stream.at)]


def deepest(stream: Stream, own: Collection[int]) -> int:
    """Find the depth of the deepest group that the sinks of a stream read, but for their own."""
    return max([x.depth for x in reads_of(stream) if id(base_of(x)) not in own], default=0)


MOST_BYTES = 512  # of a row that is summed: a fragment of registers


def sum_rows(values: Sequence[Facts], streams: Sequence[Stream]) -> None:
    """Make sums of rows sinks of the streams that read them, which know all else they read."""
    taken = {sink.facts.number for stream in streams for sink in stream.sinks}
    found: list[tuple[Stream, Sink]] = []
    ready = [stream for stream in streams if stream.total is None]
    for stream in ready:
        for sink in row_sums(stream):
            number = sink.facts.number
            if number not in taken:
                taken.add(number)
                found.append((stream, sink))
    bits = {sink.facts.number: 1 << n for n, (_, sink) in enumerate(found)}
    waits = waits_of(values, bits) if bits else {}
    for stream, sink in found:
        number = sink.facts.number
        rest = [x for x in reads_of(stream) if base_of(x) is not sink.facts]
        if not any(waits[x.number] & bits[number] for x in rest):
            stream.sinks.insert(0, sink)


def row_sums(stream: Stream) -> Iterator[Sink]:
    """Yield the sums that a stream reads one value a row of."""
    for sink in stream.sinks:
        for reader, source in outer_reads(sink.facts, stream.at):
            places = stream.at.get(reader.number)
            if places is None or reader.node.row.role is not Role.ELEMENTWISE:
                continue
            found = shown_sum(source, places)
            if found is not None and is_of_rows(*found, stream):
                facts, places = found
                yield Sink(facts, stream.side, 0, places=places)


def shown_sum(facts: Facts, places: Indices) -> tuple[Facts, Indices] | None:
    """Find the sum that views show, and which element of it they show at some places."""
    found = shown(facts, places)
    if found is None or found[0].is_source:
        return None
    return found if is_sum_of(found[0]) else None


def shown(facts: Facts, places: Indices) -> tuple[Facts, Indices] | None:
    """Find what views show, and which element of it they show at some places."""
    while not facts.is_source and facts.node.row.role in (Role.VIEW, Role.PASS):
        row = facts.node.row
        if row.is_stored or not row.is_showing or row.is_shifting:
            return None
        if row.role is Role.VIEW:  # else it gives another name
            places = view_source(facts.node, places)
        (facts,) = facts.inputs
    return facts, places


def are_rows(places: Indices, stream: Stream) -> bool:
    """Tell whether there is an element for every row, and no other."""
    axes = [lone_axis(place) for place in places if place.terms]
    rows = stream.rows
    return set(axes) == set(rows) and len(axes) == len(rows)


def is_of_rows(facts: Facts, places: Indices, stream: Stream) -> bool:
    """Tell whether there is a sum for every row, of no more columns than kernels hold."""
    itemsize = stream.sinks[0].facts.node.dtype.itemsize
    _, over = facts.node.arg
    shape = facts.inputs[0].node.shape
    columns = product(shape[d] for d in over)
    return are_rows(places, stream) and columns * itemsize <= MOST_BYTES
