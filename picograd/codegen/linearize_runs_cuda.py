"""RunStep -> Program of a CUDA block: the thread at the end of a run of equal keys reduces it.

The run first..stop-1 is combined in order, after what the slice holds. Whole groups of `fan`
updates in the middle of a long run are taken from the levels above:

    level 0          . . . |         |         | . .
    level 1                 . . |         | .             one value for `fan` of level 0
    level 2                      . . . . .                one value for `fan` of level 1

so that a run of n updates takes 2 * fan * log(n) steps, and one of fewer than `fan` updates is
combined one by one. The groups lie at multiples of `fan`: the order depends on the keys alone.
Of runs with bounds each has its threads, however long; the lanes of a warp that share one, as
many as there are for each column, take elements in turn.

Scatter: updates one after the other, or all at once where that makes no difference.
"""

from contextlib import ExitStack
from dataclasses import replace

from picograd.codegen.block_cuda import Block, enter_dims, inside
from picograd.codegen.linearize_cuda_reduce import WARP, combine
from picograd.codegen.templates.grid import rebind
from picograd.codegen.tile import RunStep
from picograd.codegen.value import Value
from picograd.dtype import bool_, uint32
from picograd.schedule.index import Bindings, substitute
from picograd.schedule.loop import Runs, Scatter, dynamics_of, rewrite
from picograd.schedule.monoid import identity


def runs_cuda(block: Block, step: RunStep) -> None:
    """Write a reduction of runs."""
    emitter = block.emitter
    with ExitStack() as stack:
        found, values, once = enter_dims(block, stack, step.dims)
        tests = [(substitute(i, values), lo, hi) for i, lo, hi in step.conditions]
        mask = emitter.both(once, emitter.conditions([*found.conditions, *tests]))
        stack.enter_context(emitter.when(mask))
        inside(block, stack, found, None)
        place = emitter.index(substitute(step.place, values))
        lane = emitter.index(substitute(step.lane, values))
        run, runs = Run(block, step.runs, values, lane), step.runs
        if runs.stop is None:
            stack.enter_context(emitter.when(run.ends_at(place)))
        with emitter.scope({runs.number: place}):
            target = emitter.index(rebind(runs.target, values))
        slot = emitter.slots[runs.slot]
        if runs.monoid is None:
            emitter.store(slot, target, run.element(0, place))
            return
        total = run.reduced(emitter.load(slot, target), place)
        if runs.lanes > 1:
            stack.enter_context(emitter.when((Value(emitter, lane) < 1).position))
        emitter.store(slot, target, total)


class Run:
    """This class writes the reduction of the run that ends at one position."""

    def __init__(self, block: Block, step: Runs, values: Bindings, lane: int) -> None:
        self.emitter, self.step, self.lane = block.emitter, step, lane
        self.dtype = block.emitter.index_dtype
        levels = ((step.axis, step.body), *step.levels)
        self.levels = [(axis, rewrite(expr, values)) for axis, expr in levels]
        self.total: int = -1

    def element(self, level: int, place: int) -> int:
        """Compute the value at a position of a level."""
        axis, expr = self.levels[level]
        with self.emitter.scope({axis: place}):
            return self.emitter.value(expr)

    def ends_at(self, place: int) -> int:
        """Tell whether the key after a position is another one."""
        emitter, axis = self.emitter, self.step.axis
        here = Value(emitter, place)
        has_next, following = here < axis.size - 1, here + 1
        with emitter.scope({axis: place}):
            own = emitter.value(self.step.key)
        with emitter.scope({axis: following.position}):
            emitter.scopes[-1].mask = emitter.both(emitter.scopes[-1].mask, has_next.position)
            other = emitter.value(self.step.key)
        is_other = Value(emitter, own).raw("not_equal", Value(emitter, other), dtype=bool_)
        return (~has_next | is_other).position

    def reduced(self, start: int, place: int) -> int:
        """Combine a value with the run that ends at a position, or has its number.

        Lanes begin with nothing, and their totals are combined before the value is.
        """
        emitter, zero, runs = self.emitter, self.emitter.integer(0), self.step
        dtype, monoid = emitter.dtype(start), self.step.monoid or "sum"
        self.total = emitter.add("array", dtype, arg=1)
        is_shared = runs.lanes > 1
        nothing = emitter.const(identity(monoid, dtype), dtype) if is_shared else start
        emitter.put(self.total, zero, nothing)
        with emitter.scope({runs.number: place}):
            first = emitter.cast(emitter.value(runs.first), self.dtype)
            if runs.stop:
                stop = emitter.cast(emitter.value(runs.stop), self.dtype)
            else:
                stop = emitter.raw("add", self.dtype, place, emitter.integer(1))
        self.walk(0, first, stop)
        found = emitter.get(self.total, zero)
        if not is_shared:
            return found
        mask = WARP // 2
        while mask >= WARP // runs.lanes:
            other = emitter.add("shuffle_xor", dtype, (found,), mask)
            found = combine(emitter, monoid, found, other)
            mask //= 2
        return combine(emitter, monoid, start, found)

    def walk(self, level: int, first: int, stop: int) -> None:
        """Combine positions first..stop-1 of a level: whole groups from the level above."""
        if level == len(self.levels) - 1:
            self.combine(level, first, stop)
            return
        emitter, fan = self.emitter, self.step.fan
        start, end = Value(emitter, first), Value(emitter, stop)
        up, down = (start + (fan - 1)).raw("quotient", fan), end.raw("quotient", fan)
        head = (up * fan).raw("minimum", end)
        tail = (down * fan).raw("maximum", head)
        self.combine(level, first, head.position)
        with emitter.when((up < down).position):
            self.walk(level + 1, up.position, down.position)
        self.combine(level, tail.position, stop)

    def combine(self, level: int, first: int, stop: int) -> None:
        """Combine positions first..stop-1 of a level one by one."""
        emitter, zero = self.emitter, self.emitter.integer(0)
        dtype = emitter.dtype(self.total)
        first = emitter.raw("add", self.dtype, first, self.lane) if self.step.lanes > 1 else first
        with emitter.loop(first, stop, self.step.lanes) as place:
            old = emitter.get(self.total, zero)
            value = emitter.cast(self.element(level, place), dtype)
            new = combine(emitter, self.step.monoid or "sum", old, value)
            emitter.put(self.total, zero, new)


def scatter_cuda(block: Block, step: Scatter) -> None:
    """Write a Scatter: updates in order, elements of one update spread over the threads."""
    emitter = block.emitter
    with ExitStack() as stack:
        found, values, once = enter_dims(block, stack, step.inner)
        for axis in step.serial:
            stack.enter_context(emitter.axis_loop(axis))
        tests = [(rebind(i, values), lo, hi) for i, lo, hi in step.conditions]
        if not step.serial:  # there is nothing to read for threads that have no update
            bounds = [test for test in tests if not dynamics_of(test[0])]
            tests = [test for test in tests if dynamics_of(test[0])]
            is_there = emitter.conditions([*found.conditions, *bounds])
            stack.enter_context(emitter.when(emitter.both(once, is_there)))
            once, found = None, replace(found, conditions=())
        mask = emitter.both(once, emitter.conditions([*found.conditions, *tests]))
        inside(block, stack, found, mask)
        value = emitter.value(rewrite(step.body, values))
        pointer, place = emitter.slots[step.slot], emitter.index(rebind(step.target, values))
        if step.monoid == "max" and not step.serial and emitter.dtype(pointer) is uint32:
            raised(block, (pointer, place, value), mask)
            return
        if step.monoid is not None:
            value = combine(emitter, step.monoid, emitter.load(pointer, place, mask), value)
        emitter.store(pointer, place, value, mask)


def raised(block: Block, update: tuple[int, int, int], mask: int | None) -> None:
    """Raise what is at a place that other threads may raise, too.

    It only grows, so that what was read before may be less, and never tells too much.
    """
    emitter, (pointer, place, value) = block.emitter, update
    with emitter.when(mask):
        is_more = emitter.apply("less", emitter.load(pointer, place), value)
        with emitter.when(is_more):
            emitter.add("atomic_max", None, update)
