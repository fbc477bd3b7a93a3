"""Gradients of attention on Hopper: streams over scores whose maxima and totals are known.

    for each tile of rows: hold the rows of every product of scores in shared memory
      pipeline over blocks of the stream that a mask shows:
        scores = rows @ streamed^T                     wgmma, all products at once
        powers = exp(score - maximum) / total          one multiply-add, one power of 2
        weights of each product, of powers and scores  elements of the fragments
        result += weights @ streamed                   wgmma, the weights in registers
      store results

    dq        rows are queries: scores q k^T and g v^T, the result ds k
    dk, dv    rows are keys: the same scores across, the results ds^T q and p^T g

What has one value a row, such as maxima, is in registers of that row; what has one value a place of
the stream comes to shared memory with the boxes, computed by a warp of its own: 0 behind the end.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from picograd.codegen.dot import Dot
from picograd.codegen.operands import bind_roles, guarded, role, size_of
from picograd.codegen.stream_masks import (
    Power,
    exponentials_of,
    is_multiple,
    needs_guard,
    or_lowest,
    power_of,
    power_of_two,
    refs_of,
    settled,
    shown_of,
    unmasked,
    unrounded,
    unrounded_sum,
    without_factor,
)
from picograd.codegen.streams import Product, Stream, is_tile, placed_in, read, replaced
from picograd.codegen.templates.attention_frame import GRAIN, SPAN, Frame, Schedule, side_by_side
from picograd.codegen.templates.attention_leave import Leaving
from picograd.codegen.templates.attention_splits import REGISTERS, finish
from picograd.codegen.templates.attention_vectors import Vectors
from picograd.codegen.tile import Accumulate, Assign, For, Step, Store, TilePart, When
from picograd.helpers import round_up
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, binary, cast, const, walk
from picograd.schedule.score_masks import hiding

GROUPS = 2  # warpgroups of 64 rows
MOST_LIVE = 232  # registers of a thread for fragments (the others: addresses, values of rows)
SIZES = 128, 112, 96, 64, 32  # of a block of the stream


def schedules(stream: Stream) -> Iterator[Schedule]:
    """List how blocks may work: small ones, then those of the most places there are registers for.

    A thread holds half a value for each column of what is summed and of each score, and a quarter
    for each place of the weights, which are packed.
    """
    widths = [round_up(size_of(each.columns), GRAIN) for each in stream.products]
    is_twice = is_read_twice(stream)
    scores = len(stream.edited) + bool(stream.sums) + is_twice

    def live(size: int) -> int:
        return sum(widths) // 2 + scores * size // 2 + len(widths) * size // 4

    yield from side_by_side(stream, live)
    for size in SIZES:
        is_fit = live(size) <= MOST_LIVE and (size <= SPAN or not is_twice)
        if is_fit or size == SIZES[-1]:
            yield Schedule(GROUPS, size, REGISTERS[GROUPS])


def is_read_twice(stream: Stream) -> bool:
    """Tell whether scores are read beside the powers that are made of them: both are held.

    Where there are no powers, each weight is made of scores by itself.
    """
    weights = [each.weight for each in stream.products]
    weights += [stream.computes[number].body for number in stream.sums]
    powers = exponentials_of(weights)
    if not powers:
        return len(stream.edited) > 1
    inside = refs_of(powers)
    zero = const(0.0, stream.computes[0].dtype)
    none = dict.fromkeys(powers, zero)
    without = [replaced(weight, none.get) for weight in weights]
    return not inside.isdisjoint(refs_of(without))


class Writer:
    """This class writes the part; see the module docstring."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.stream = frame.stream
        self.vectors = Vectors(frame)
        self.names: dict[int, str] = {}
        for score in self.stream.edited:
            number = score.number
            name = frame.add_scores(f"score{number}", frame.dtype)
            self.names[number] = name

    def part(self) -> TilePart:
        """Write the program of a block."""
        frame = self.frame
        stream = self.stream
        numbers = range(len(stream.scores))
        steps: list[Step] = [self.multiply(number) for number in numbers]
        steps += self.weigh()
        begun = frame.begin()
        begun += self.sum_rows()
        begun += self.clear_hidden()
        begun += self.vectors.hold_rows()
        values = self.vectors.fill_places()
        pipeline = frame.pipeline(values, steps)
        leaving = Leaving(frame)
        after = finish(leaving)
        return frame.part(begun, pipeline, after)

    def sum_rows(self) -> list[Step]:
        """Sum rows that are no scores, before the stream."""
        frame = self.frame
        steps: list[Step] = []
        for number in self.stream.early:
            compute = self.stream.computes[number]
            column = Axis("column", round_up(size_of(compute.reduce), GRAIN))
            beside = role(compute.reduce, axis_index(column))
            body = bind_roles(compute.body, frame.rows, beside)
            element = guarded(body, (*frame.rows.conditions, *beside.conditions))
            name = frame.add_rows(f"value{number}", compute.dtype)
            layout = frame.fragment(column.size)
            monoid = str(compute.monoid)
            rows = (frame.row,)
            columns = (column,)
            steps.append(Accumulate(name, rows, columns, monoid, element, layout=layout))
        return steps

    def with_rows(self, body: Expr) -> Expr:
        """Read sums of rows that are no scores where they are."""
        here = self.frame.point[:1]
        early = self.stream.early

        def find(expr: Expr) -> Expr | None:
            is_early = expr.op == "ref" and expr.arg in early
            return read(f"value{expr.arg}", here, expr.dtype) if is_early else None

        return replaced(body, find)

    def multiply(self, number: int) -> Step:
        """Write the product of a block of scores."""
        frame = self.frame
        score = self.stream.scores[number]
        held = frame.hold(score.row, score.depth)
        ring = frame.streamed(score.streamed, score.depth)
        depth = frame.depth(score.depth)
        name = self.names[score.number if score.added is None else score.added]
        is_first = score.added is None
        return Dot(name, held, ring, depth, "wgmma", b_is_nk=True, is_first=is_first)

    # -- elements of a block ----------------------------------------------------------------------

    def weigh(self) -> list[Step]:
        """Write powers, then sums and products: those of the fewest scores first."""
        stream = self.stream
        factors = self.frame.factors
        every = (*stream.sums, *stream.kept)
        bodies = {number: stream.computes[number].body for number in every}
        for each in stream.products:
            number = each.number
            bodies[number], factors[number] = without_factor(each.weight)
        drawn = self.vectors.keep_drawn(bodies.values())
        for number, body in bodies.items():
            bodies[number] = self.with_rows(replaced(body, self.vectors.drawn.get))
        steps = [*drawn, *self.share_power(bodies)]
        settled_bodies = {number: settled(body) for number, body in bodies.items()}
        whole = self.all_prepared(settled_bodies)
        edge = self.all_prepared(bodies)

        def count(each: Product) -> int:
            return len(self.read_by(whole[each.number]))

        for number in stream.sums:
            steps += self.add_up(number, whole[number], edge[number])
        for each in sorted(stream.products, key=count):
            number = each.number
            steps += self.multiply_weights(each, whole[number], edge[number])
        for number in stream.kept:
            steps += self.keep(number, whole[number], edge[number])
        return steps

    def all_prepared(self, bodies: Mapping[int, Expr]) -> dict[int, Expr]:
        """Prepare every body; see `prepared`."""
        return {number: self.prepared(body) for number, body in bodies.items()}

    def read_by(self, expr: Expr) -> set[str]:
        """List the tiles of scores that an expression reads."""
        reads = [part for part in walk(expr) if part.op == "tile"]
        names = {each.arg[0] for each in reads}
        return names.intersection(self.names.values())

    def share_power(self, bodies: dict[int, Expr]) -> list[Step]:
        """Compute the power that every weight is a multiple of once, of scores that masks hide.

        Where they do, it is 0, so that masks of the weights are left out; it is 0 for all of a row
        that they hide, whose maximum is -inf, if they were.
        """
        frame = self.frame
        found = exponentials_of(bodies.values())
        powers = list(map(Power.of, found))
        are_multiples = [is_multiple(body, found) for body in bodies.values()]
        if len(powers) != 1 or not all(are_multiples):
            return []
        (power,) = powers
        masks = hiding(power.score)
        visible = {number: unmasked(body, masks) for number, body in bodies.items()}
        is_masked = visible != bodies
        value = read("power", frame.point, frame.dtype)
        shared = dict.fromkeys(found, value)
        for number, body in visible.items():
            bodies[number] = replaced(body, shared.get)
        core = shown_of(power.score)
        if self.is_shared(core, bodies.values()):
            return self.share_core(core, power, bodies, is_masked)
        name, steps = self.edit(power.score, bodies)
        edited = read(name, frame.point, frame.dtype)
        score = binary("mul", edited, power.factor)
        less = self.prepared(power.less(is_masked))
        frame.add_scores("power", frame.dtype)
        return [*steps, Assign("power", frame.dims, power_of_two(score, less))]

    def is_shared(self, core: Expr, bodies: Iterable[Expr]) -> bool:
        """Tell whether weights read an edit that powers are made of, and no score but by it."""
        own = refs_of([core])
        if core.op == "ref" or len(own) != 1:
            return False
        bodies = list(bodies)
        rest = [replaced(body, {core: const(0.0, core.dtype)}.get) for body in bodies]
        return not own.isdisjoint(refs_of(bodies)) and own.isdisjoint(refs_of(rest))

    def share_core(
        self, core: Expr, power: Power, bodies: dict[int, Expr], is_masked: bool
    ) -> list[Step]:
        """Edit scores where they are, before any mask; what it hides has powers of 0."""
        frame = self.frame
        (number,) = refs_of([core])
        name = self.names[number]
        shared = {core: read(name, frame.point, core.dtype)}
        for each, body in bodies.items():
            bodies[each] = replaced(body, shared.get)
        edited = self.prepared(core)
        if any(map(needs_guard, walk(edited))):
            edited = guarded(edited, frame.conditions)
        whole, edge = self.shown_and_hidden(replaced(power.score, shared.get))
        less = self.prepared(power.less(is_masked))
        plain, hidden = (
            Assign("power", frame.dims, power_of_two(binary("mul", each, power.factor), less))
            for each in (whole, edge)
        )
        frame.add_scores("power", frame.dtype)
        return [Assign(name, frame.dims, edited), *frame.chosen([plain], [hidden])]

    def edit(self, score: Expr, bodies: Mapping[int, Expr]) -> tuple[str, list[Step]]:
        """Edit scores, where they are if nobody else reads them; -inf where they are hidden."""
        frame = self.frame
        whole, edge = self.shown_and_hidden(score)
        own = refs_of([score])
        others = refs_of(bodies.values())
        is_free = len(own) == 1 and own.isdisjoint(others)
        if is_free:
            name = self.names[own.pop()]
        else:
            name = frame.add_scores("edited", frame.dtype)
        is_there = is_free and is_tile(whole)
        plain = Assign(name, frame.dims, whole)
        hidden = Assign(name, frame.dims, edge)
        steps = frame.chosen([] if is_there else [plain], [hidden])
        return name, steps

    def shown_and_hidden(self, score: Expr) -> tuple[Expr, Expr]:
        """Write a score where nothing hides it, and where masks and ends do."""
        frame = self.frame
        whole = unrounded(self.prepared(settled(score)))
        edge = cast(self.prepared(score), frame.dtype)
        return whole, or_lowest(edge, frame.conditions)

    def add_up(self, number: int, whole: Expr, edge: Expr) -> list[Step]:
        """Add the elements of a block to a sum of rows."""
        frame = self.frame
        dtype = self.stream.computes[number].dtype
        name = frame.add_scores(f"element{number}", dtype)
        guard = guarded(edge, frame.conditions)
        plain = Assign(name, frame.dims, whole)
        masked = Assign(name, frame.dims, guard)
        element = read(name, frame.point, dtype)
        added = frame.add_up(number, element, frame.sum_before(number))
        return [*frame.chosen([plain], [masked]), *added]

    def multiply_weights(self, each: Product, whole: Expr, edge: Expr) -> list[Step]:
        """Round the weights of a product to a left operand, and multiply."""
        frame = self.frame
        name = frame.add_weight(each)
        edge = unrounded_sum(edge)
        if any(map(needs_guard, walk(edge))):
            edge = guarded(edge, frame.conditions)
        plain = Assign(name, frame.dims, unrounded_sum(whole))
        masked = Assign(name, frame.dims, edge)
        steps = frame.chosen([plain], [masked])
        value = frame.streamed(each.value, each.columns)
        dot = Dot(f"value{each.number}", name, value, frame.size, frame.unit)
        return [*steps, dot]

    def keep(self, number: int, whole: Expr, edge: Expr) -> list[Step]:
        """Store what is kept of every place, under the products of its block."""
        frame = self.frame
        hidden = self.stored(number, edge)
        plain = replace(hidden, expr=whole, conditions=())
        return frame.chosen([plain], [hidden])

    def stored(self, number: int, value: Expr) -> Store:
        """Store a value of every place where there is one."""
        frame = self.frame
        compute = self.stream.computes[number]
        slot, index = placed_in(compute, frame.rows, frame.over)
        conditions = frame.conditions
        is_wide = frame.size >= SPAN  # else a box has columns of the next block too
        box = frame.box_of(compute, self.stream.over, frame.first) if is_wide else None
        return Store(slot, index, frame.dims, value, conditions, frame.scored, box)

    def clear_hidden(self) -> list[Step]:
        """Store 0 of what is kept in blocks that masks hide, if anybody looks at it there.

        Nothing is brought for them.
        """
        frame = self.frame
        first, stop = frame.shown()
        here = axis_index(frame.block)
        outside = [here - stop] if stop is not None else []
        outside += [first - here - 1] if first is not None else []
        steps: list[Step] = []
        mosts = set(frame.bounds()[0])
        for number in self.stream.kept:
            compute = self.stream.computes[number]
            seen = {frame.bounded(index, True) for index, _, _ in compute.seen}
            if mosts <= seen:
                continue
            dtype = compute.dtype
            zero = const(0.0, dtype)
            store = self.stored(number, zero)
            for where in outside:
                hidden = where, 0, max(where.hi, 0)
                body = When((hidden,), (store,))
                steps.append(For(frame.block, (body,)))
        return steps

    # -- expressions ------------------------------------------------------------------------------

    def prepared(self, body: Expr) -> Expr:
        """Write a body at one place of a block: powers of 2, vectors, and scores in tiles."""
        frame = self.frame
        found = self.vectors.read(replaced(body, power_of))

        def find(expr: Expr) -> Expr | None:
            if expr.op != "ref":
                return None
            return read(self.names[expr.arg], frame.point, expr.dtype)

        return bind_roles(replaced(found, find), frame.rows, frame.over)
