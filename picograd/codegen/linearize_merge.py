"""MergeStep -> Program of a CUDA block: every thread finds the element of one output place.

Of the `ahead` elements before a place in its pair of runs, `low` come from the first run: the least
number for which first[low] > second[ahead - low - 1]. Bisection finds it with two loads a step
("merge path"); then the smaller of the two next elements is the one.
"""

from contextlib import ExitStack

from picograd.codegen.block_cuda import (
    Block,
    default_layout,
    inside,
    loops,
    write_once,
)
from picograd.codegen.tile import MergeStep
from picograd.dtype import bool_
from picograd.schedule.index import substitute
from picograd.schedule.loop import Expr, rewrite


def merge_cuda(block: Block, step: MergeStep) -> None:
    """Write a merge."""
    emitter, layout = block.emitter, default_layout(block, step.dims)
    found, values = block.walked(layout, step.dims, [], [])
    with ExitStack() as stack:
        once = write_once(block, layout)
        loops(block, stack, [axis for axis, _ in found.loops], False)
        tests = [
            (substitute(i, values), lo, hi) for i, lo, hi in step.conditions
        ]
        mask = emitter.both(
            once, emitter.conditions([*found.conditions, *tests])
        )
        stack.enter_context(emitter.when(mask))
        inside(block, stack, found, None)
        finder = Finder(block, step, rewrite(step.key, values))
        place = substitute(step.place, values)
        chosen = finder.chosen(
            emitter.index(place), emitter.index(place // (2 * step.run))
        )
        with emitter.scope({step.axis: chosen}):
            value = emitter.value(rewrite(step.expr, values))
        with emitter.scope({step.axis: emitter.index(place)}):
            target = emitter.index(substitute(step.target, values))
        emitter.store(emitter.slots[step.slot], target, value)


class Finder:
    """This class writes the bisection of one output place."""

    def __init__(self, block: Block, step: MergeStep, key: Expr) -> None:
        self.emitter, self.step, self.key = block.emitter, step, key
        self.dtype = block.emitter.index_dtype

    def add(self, a: int, b: int) -> int:
        """Add two positions."""
        return self.emitter.raw("add", self.dtype, a, b)

    def less(self, a: int, b: int) -> int:
        """Subtract one position from another."""
        return self.emitter.raw("sub", self.dtype, a, b)

    def element(self, place: int, mask: int | None = None) -> int:
        """Load the key at a place of the row."""
        with self.emitter.scope({self.step.axis: place}):
            self.emitter.scopes[-1].mask = self.emitter.both(
                self.emitter.scopes[-1].mask, mask
            )
            return self.emitter.value(self.key)

    def chosen(self, place: int, pair: int) -> int:
        """Find which element of the row comes at a place."""
        emitter, integer, run = (
            self.emitter,
            self.emitter.integer,
            self.step.run,
        )
        size = integer(self.step.axis.size)
        start = emitter.raw("mul", self.dtype, pair, integer(2 * run))
        middle = emitter.raw(
            "minimum", self.dtype, self.add(start, integer(run)), size
        )
        stop = emitter.raw(
            "minimum", self.dtype, self.add(start, integer(2 * run)), size
        )
        first, second = self.less(middle, start), self.less(stop, middle)
        ahead = self.less(place, start)
        low = self.bisect(start, middle, first, second, ahead)
        rest = self.less(ahead, low)
        left, right = self.add(start, low), self.add(middle, rest)
        has_left = emitter.raw("less", bool_, low, first)
        has_right = emitter.raw("less", bool_, rest, second)
        keys = self.element(left, has_left), self.element(right, has_right)
        is_ordered = emitter.raw("less_equal", bool_, *keys)
        is_left = emitter.raw(
            "or", bool_, emitter.raw("not", bool_, has_right), is_ordered
        )
        is_left = emitter.raw("and", bool_, has_left, is_left)
        return emitter.raw("where", self.dtype, is_left, left, right)

    def bisect(
        self, start: int, middle: int, first: int, second: int, ahead: int
    ) -> int:
        """Find how many of the elements before a place come from the first run."""
        emitter, zero, one = (
            self.emitter,
            self.emitter.integer(0),
            self.emitter.integer(1),
        )
        ends = emitter.add("array", self.dtype, arg=2)  # low, high
        low = emitter.raw("maximum", self.dtype, self.less(ahead, second), zero)
        high = emitter.raw("minimum", self.dtype, ahead, first)
        emitter.add("set", None, (ends, zero, low))
        emitter.add("set", None, (ends, one, high))
        steps = emitter.integer(self.step.run.bit_length())
        with emitter.loop(zero, steps, 1, None):
            low, high = (
                emitter.add("get", self.dtype, (ends, n)) for n in (zero, one)
            )
            with emitter.when(emitter.raw("less", bool_, low, high)):
                half = emitter.raw(
                    "quotient",
                    self.dtype,
                    self.add(low, high),
                    emitter.integer(2),
                )
                other = self.less(self.less(self.add(middle, ahead), half), one)
                left, right = (
                    self.element(self.add(start, half)),
                    self.element(other),
                )
                is_more = emitter.raw("less_equal", bool_, left, right)
                further = self.add(half, one)
                new_low = emitter.raw(
                    "where", self.dtype, is_more, further, low
                )
                new_high = emitter.raw("where", self.dtype, is_more, high, half)
                emitter.add("set", None, (ends, zero, new_low))
                emitter.add("set", None, (ends, one, new_high))
        return emitter.add("get", self.dtype, (ends, zero))
