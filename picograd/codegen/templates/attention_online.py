"""Softmaxes of a forward stream of attention: what is done of the elements of a block.

    peak' = maximum(peak, scores);  factor = 2^(peak - peak')
    weights = 2^(scores - peak');   total = total * factor + sum(weights)
    result = result * factor        weights @ values is added by whoever multiplies

A stream has one, or some whose products of weights are one result, as where two are subtracted:
each has scores, a maximum, a total and a product of its own, and what they share is read once.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from picograd.codegen.operands import bind_roles, expr_axes, guarded
from picograd.codegen.stream_masks import (
    or_lowest,
    refs_of,
    scaled,
    settled,
    unmasked,
    unrounded,
    unrounded_sum,
    unscaled,
)
from picograd.codegen.streams import (
    Stream,
    is_ref,
    is_tile,
    read,
    replaced,
    subtracted,
    unconverted,
)
from picograd.codegen.templates.attention_frame import Frame
from picograd.codegen.templates.attention_vectors import Vectors
from picograd.codegen.tile import Accumulate, Assign, Step
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Condition, Expr, binary, cast, const, walk
from picograd.schedule.monoid import COMBINE
from picograd.schedule.score_masks import hiding

FEW_BLOCKS = 4  # of a split


def apart(stream: Stream) -> Iterator[Stream]:
    """Yield the softmaxes of a stream: what has the same peak."""
    for peak in stream.peaks:
        sums = [number for number in stream.sums if stream.peak_under(number) == peak]
        products = [x for x in stream.products if stream.peak_under(x.number) == peak]
        bodies = [stream.computes[peak].body, *(stream.computes[n].body for n in sums)]
        inside = refs_of(bodies)
        scores = [x for x in stream.scores if not inside.isdisjoint((x.number, x.added))]
        yield replace(
            stream,
            scores=tuple(scores),
            sums=tuple(sums),
            products=tuple(products),
            peak=peak,
            others=(),
        )


def peak_of(stream: Stream) -> Compute:
    """Find the maximum of a row."""
    if stream.peak is None:
        internal("scores are edited before the maximum of their row", stream)
    return stream.computes[stream.peak]


class Softmax:
    """This class writes what is done of the scores of one softmax of a block."""

    def __init__(self, frame: Frame, stream: Stream, vectors: Vectors) -> None:
        self.frame = frame
        self.stream = stream
        self.vectors = vectors
        self.row = frame.row
        self.place = frame.place
        self.point = frame.point
        self.dims = frame.dims
        self.dtype = frame.dtype
        (score,) = stream.edited
        self.score = frame.add_scores(f"score{score.number}", frame.dtype)
        self.peak = peak_of(stream)
        self.inner, self.scale = unscaled(self.peak.body)
        (self.peak_number,) = stream.peaks
        after = "" if stream.peak == frame.stream.peak else str(stream.peak)
        self.greatest = f"greatest{after}"
        self.safe = f"safe{after}"
        self.rescale = f"factor{after}"

    def work(self, weights: dict[int, str]) -> list[Step]:
        """Write what is done of a block: edits, the peak, the sums and the weights."""
        whole, edge = self.edit(True), self.edit(False)
        edited = self.frame.chosen(whole, edge, self.conditions)
        return [*edited, *self.weigh(weights)]

    def edit(self, is_whole: bool) -> list[Step]:
        """Edit the scores of a block where they are, and hide those that are not seen."""
        frame = self.frame
        body = settled(self.inner) if is_whole else self.inner
        found = self.vectors.read(replaced(body, self.of_score))
        found = bind_roles(found, frame.rows, frame.over)
        if is_whole:
            found = unconverted(found)
            if is_tile(found):
                return []
            return [Assign(self.score, self.dims, found)]
        score = cast(or_lowest(found, self.conditions), self.dtype)
        return [Assign(self.score, self.dims, score)]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Where edits are made: rows behind the end are nobody's, but nothing is read for them."""
        inner = self.vectors.read(self.inner)
        loads = [part for part in walk(inner) if part.op == "load"]
        is_reading = any(expr_axes(each).intersection(self.stream.rows) for each in loads)
        return self.frame.conditions if is_reading else self.frame.over.conditions

    # -- elements of a block ----------------------------------------------------------------------

    def of_score(self, expr: Expr) -> Expr | None:
        """Read a score."""
        (score,) = self.stream.edited
        if not is_ref(expr, score.number):
            return None
        return read(self.score, self.point, expr.dtype)

    def weigh(self, weights: dict[int, str]) -> list[Step]:
        """Write the peak, the sums and the weights of a block whose scores are edited."""
        frame, stream = self.frame, self.stream
        edited = self.peak.body
        score = read(self.score, self.point, self.dtype)
        known = {**self.vectors.drawn, edited: scaled(score, self.scale)}
        steps = self.find_peak(score)
        later = [stream.computes[number].body for number in stream.sums]
        later += [each.weight for each in stream.products]
        for place, number in enumerate(stream.sums, 1):
            compute = stream.computes[number]
            core = unrounded(compute.body)
            zero = {core: const(0.0, core.dtype)}
            is_last = not refs_of([replaced(each, zero.get) for each in later[place:]])
            name = self.score if is_last else frame.add_scores(f"element{number}", self.dtype)
            steps.append(Assign(name, self.dims, self.of_rows(self.element(core, known))))
            value = read(name, self.point, compute.dtype)
            known = {**(self.vectors.drawn if is_last else known), core: value}
            before = frame.sum_before(number)
            if stream.is_repaired(number):
                before = binary("mul", before, read(self.rescale, self.point[:1], before.dtype))
            steps += frame.add_up(number, value, before)
        for each in stream.products:
            name = weights[each.number] = frame.add_weight(each)
            value = self.element(each.weight, known)
            value = unrounded_sum(value)  # it is rounded once, where it is packed
            steps.append(Assign(name, self.dims, self.of_rows(value)))
        return [*steps, *self.repair()]

    def of_rows(self, element: Expr) -> Expr:
        """Compute an element where there is a row, if a split has few blocks to wait for.

        Half of a tile has none where they are few. Where many blocks follow, they are slower with
        it (docs/records/0012-attention).
        """
        frame = self.frame
        is_short = frame.split.size > 1 and frame.block.size <= FEW_BLOCKS
        is_new = is_short and not is_tile(element)
        return guarded(element, frame.rows.conditions) if is_new else element

    def element(self, body: Expr, known: Mapping[Expr, Expr]) -> Expr:
        """Write a body at one place: weights of what is hidden are 0 as exponentials of -inf."""

        def find(expr: Expr) -> Expr | None:
            if expr in known:
                return known[expr]
            inner = expr.args[0] if len(expr.args) == 1 else expr
            is_less = len(inner.args) == 2 and is_ref(inner.args[1], self.stream.peak)
            if is_less and OPS[expr.op].is_exponential:
                score, _ = inner.args
                return self.exponential(known[score])
            return self.of_score(expr)

        hidden = hiding(self.peak.body)
        visible = unmasked(body, hidden)
        found = replaced(visible, find)
        return bind_roles(found, self.frame.rows, self.frame.over)

    def exponential(self, score: Expr) -> Expr:
        """Write exp(score - peak) as a power of 2: one multiply-add, one special function."""
        safe = read(self.safe, self.point[:1], score.dtype)
        less = binary("sub", self.exponent(score), safe)
        return Expr("quick_exp2", (less,), None, score.dtype)

    def factor(self, peak: Expr, greatest: Expr) -> Expr:
        """Write what sums are scaled by whose peak was lower than the greatest."""
        highest, own = (self.exponent(scaled(each, self.scale)) for each in (greatest, peak))
        less = binary("sub", own, subtracted(greatest, highest))
        return Expr("quick_exp2", (less,), None, peak.dtype)

    def exponent(self, score: Expr) -> Expr:
        """Multiply by the logarithm, base 2, of the base of the exponentials."""
        base = 2.0 if self.stream.exponential == "exp2" else math.e
        return scaled(score, math.log2(base))

    def find_peak(self, score: Expr) -> list[Step]:
        """Find the greatest score so far, and by what sums of lower ones are scaled."""
        dtype, rows = score.dtype, (self.row,)
        name, here = f"value{self.stream.peak}", self.point[:1]
        for each in (self.greatest, self.safe, self.rescale):
            self.frame.add_rows(each, dtype)
        before = read(name, here, dtype)
        greatest = read(self.greatest, here, dtype)
        greater = binary(COMBINE["max"], before, greatest)
        highest = self.exponent(scaled(greatest, self.scale))
        factor = self.exponential(scaled(before, self.scale))
        layout = self.frame.scored
        return [
            Accumulate(self.greatest, rows, (self.place,), "max", score, layout=layout),
            Assign(self.greatest, rows, greater),
            Assign(self.safe, rows, subtracted(greatest, highest)),
            Assign(self.rescale, rows, factor),
            Assign(name, rows, greatest),
        ]

    def repair(self) -> list[Step]:
        """Scale the products of weights whose peak changed."""
        steps: list[Step] = []
        for each in self.stream.products:
            if not self.stream.is_repaired(each.number):
                continue
            column = Axis("column", self.frame.width(each))
            name = f"value{each.number}"
            index = axis_index(self.row), axis_index(column)
            before = read(name, index, self.dtype)
            factor = read(self.rescale, index[:1], self.dtype)
            steps.append(Assign(name, (self.row, column), binary("mul", before, factor)))
        return steps
