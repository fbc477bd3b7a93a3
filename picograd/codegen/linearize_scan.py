"""Scan -> Program of a CUDA block: a thread for each point of the dims, or the block for a row.

A block scans a row in tiles of neighbours for each thread:

    thread   scans its own neighbours, the more the longer it takes to combine two
    warp     a butterfly: after step d every lane knows the total of its group of 2d lanes, and what
             comes before it inside the group
    block    the totals of the warps meet in shared memory; every thread adds those before its own
    row      the total of the tiles so far is carried along

The order of combinations is fixed by the shape, so the same inputs give the same bits.

Scan -> Program on the CPU, and what both languages need: combining, and where to start.

One element after the other: a running total for each point of the dims, on the stack. Nothing is
reassociated, so the same inputs give the same bits.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from picograd.codegen.block_cuda import Block, enter_dims, inside, lane_of, loops, put
from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.layout import Blocked, Walk, scan_lanes
from picograd.codegen.polynomial import horner
from picograd.codegen.value import Value
from picograd.dtype import DType, float64
from picograd.helpers import ceil_div, product
from picograd.schedule.index import Axis, Index, axis_index, constant, flatten, substitute
from picograd.schedule.loop import Scan, rewrite
from picograd.schedule.monoid import COMBINE, identity

# log((1+s)/(1-s)) = s (2 + t P(t)), t = s^2 <= 1/9; relative error of P 9e-17 (mpmath)
LOG_TO_TWO = (
    0.6666666666666666, 0.40000000000014585, 0.2857142856710876, 0.22222222717427864,
    0.18181789436132859, 0.15385570064958623, 0.13314144209654935, 0.12001072809590713,
    0.08800738486144674, 0.1616404561194353,
)  # fmt: skip

SHORT_ROW = 16  # elements of rows that LLVM scans side by side; longer ones it unrolls for nothing


Nest = Callable[..., None]  # loops over dims where conditions hold, and a body: of linearize_cpu.py


def combine(emitter: Emitter, monoid: str, a: int, b: int) -> int:
    """Combine two values, `a` before `b`; never reassociated."""
    dtype = emitter.dtype(a)
    if monoid in ("max", "min") and dtype.is_float:
        return extreme(emitter, monoid, a, b)
    if monoid == "logaddexp":
        return running_logaddexp(emitter, a, b)
    return emitter.apply(COMBINE[monoid], a, b)


def running_logaddexp(emitter: Emitter, a: int, b: int) -> int:
    """Compute log(exp(a) + exp(b)) from the larger one.

    Chosen by comparisons: LLVM takes minutes for `maximum` and `minimum` of a running value.
    """
    dtype = emitter.dtype(a)
    is_less = emitter.apply("less", a, b)
    high, low = (
        emitter.apply("where", is_less, b, a, dtype=dtype),
        emitter.apply("where", is_less, a, b, dtype=dtype),
    )
    gap = emitter.apply("sub", low, high)
    # in float64 the shorter formula, of 2 units in the last place: the sum rounds more
    share = emitter.apply("exp" if dtype is not float64 else "portable_exp", gap)
    total = emitter.apply("add", high, log_of_one_plus(emitter, share))
    infinite = emitter.const(float("inf"), dtype)  # inf - inf is NaN
    is_infinite = emitter.apply("equal", emitter.apply("abs", high), infinite)
    is_same = emitter.apply("and", is_infinite, emitter.apply("equal", a, b))
    return emitter.apply("where", is_same, high, total, dtype=dtype)


def extreme(emitter: Emitter, monoid: str, a: int, b: int) -> int:
    """Choose b unless a is beyond it; NaN stays.

    Only a comparison and a choice wait for `a`, the running value: half of what LLVM's `maximum`
    takes, which also orders -0 and 0.
    """
    pair = (a, b) if monoid == "max" else (b, a)
    is_reached = emitter.apply("less_equal", *pair)
    is_next = emitter.apply("or", is_reached, emitter.apply("isnan", b))
    return emitter.apply("where", is_next, b, a, dtype=emitter.dtype(a))


def log_of_one_plus(emitter: Emitter, share: int) -> int:
    """Compute log(1 + x) = log((1 + s) / (1 - s)) for 0 <= x <= 1 and s = x / (2 + x)."""
    x = Value(emitter, share)
    s = x / (x + 2.0)
    return (s * horner((2.0, *LOG_TO_TWO), s * s)).position


def start_of(emitter: Emitter, step: Scan, dtype: DType) -> int:
    """Give the value a scan starts from."""
    if step.start is not None:
        return emitter.cast(emitter.value(step.start), dtype)
    return nothing(emitter, step.monoid, dtype)


def nothing(emitter: Emitter, monoid: str, dtype: DType) -> int:
    """Give the identity of a monoid."""
    return emitter.const(identity(monoid, dtype), dtype)


def scan_cpu(emitter: Emitter, nest: Nest, step: Scan) -> None:
    """Write the loops: the axis outside, neighbouring columns inside, as vectors."""
    dtype = compute_dtype(step.body.dtype)
    size = product(axis.size for axis in step.inner)
    totals = emitter.add("array", dtype, arg=size)
    flat = flatten([axis_index(a) for a in step.inner], [a.size for a in step.inner])
    uniform = [c for c in step.conditions if step.axis not in emitter.index_axes(c[0])]

    def clear() -> None:
        start = start_of(emitter, step, dtype)
        emitter.put(totals, emitter.index(flat), start)

    def body() -> None:
        place = emitter.index(flat)
        old = emitter.get(totals, place)
        value = emitter.cast(emitter.value(step.body), dtype)
        new = combine(emitter, step.monoid, old, value)
        emitter.put(totals, place, new)
        emitter.store(emitter.slots[step.slot], emitter.index(step.target), new)

    nest(step.inner, uniform, clear)
    is_loop = not step.inner and step.axis.size > SHORT_ROW
    is_unrolled = None if is_loop else False
    nest((step.axis, *step.inner), step.conditions, body, is_unrolled)


WARP = 32


def scan_cuda(block: Block, step: Scan) -> None:
    """Write a scan: a thread for each point of the dims, or the block for one row."""
    if step.inner:
        scan_columns(block, step)
    else:
        scan_row(block, step)


def scan_columns(block: Block, step: Scan) -> None:
    """Let every thread walk the axis of its own column."""
    emitter, dtype = block.emitter, compute_dtype(step.body.dtype)
    total, zero = emitter.add("array", dtype, arg=1), emitter.integer(0)
    with ExitStack() as stack:
        found, values, once = enter_dims(block, stack, step.inner)
        tests = [(substitute(i, values), lo, hi) for i, lo, hi in step.conditions]
        uniform = [c for c in tests if step.axis not in emitter.index_axes(c[0])]
        outside = emitter.both(once, emitter.conditions([*found.conditions, *uniform]))
        inside(block, stack, found, outside)
        start = None if step.start is None else rewrite(step.start, values)
        first = nothing(emitter, step.monoid, dtype) if start is None else emitter.value(start)
        emitter.put(total, zero, emitter.cast(first, dtype))
        stack.enter_context(emitter.axis_loop(step.axis))
        mask = emitter.both(outside, emitter.conditions([c for c in tests if c not in uniform]))
        emitter.scopes[-1].mask = mask
        value = emitter.cast(emitter.value(rewrite(step.body, values)), dtype)
        new = combine(emitter, step.monoid, emitter.get(total, zero), value)
        emitter.put(total, zero, new)
        place = emitter.index(substitute(step.target, values))
        emitter.store(emitter.slots[step.slot], place, new, mask)


def scan_row(block: Block, step: Scan) -> None:
    """Let the block scan a row, tile after tile."""
    emitter, dtype = block.emitter, compute_dtype(step.body.dtype)
    lanes = scan_lanes(step.monoid, step.axis.size)
    width = block.threads * lanes
    tile, within = (Axis("tile", ceil_div(step.axis.size, width)), Axis("in", width))
    layout = Blocked((width,), (block.threads,), (lanes,))
    held = emitter.add("array", dtype, arg=lanes)
    carry, zero = emitter.add("array", dtype, arg=1), emitter.integer(0)
    emitter.put(carry, zero, start_of(emitter, step, dtype))
    with emitter.axis_loop(tile):
        place = axis_index(tile) * width + axis_index(within)
        row = RowTile(block, step, place, within, layout)
        row.read(held)
        for lane in range(1, lanes):
            old = emitter.get(held, emitter.integer(lane - 1))
            new = emitter.get(held, emitter.integer(lane))
            new = combine(emitter, step.monoid, old, new)
            emitter.put(held, emitter.integer(lane), new)
        total = emitter.get(held, emitter.integer(lanes - 1))
        before, total = across_warp(block, step.monoid, total)
        carried = emitter.get(carry, zero)
        warps, total = across_block(block, step.monoid, carried, total)
        emitter.put(carry, zero, total)
        row.write(held, combine(emitter, step.monoid, warps, before))


class RowTile:
    """This class walks one tile of a row: to read it into registers, and to write it back."""

    def __init__(
        self, block: Block, step: Scan, place: Index, within: Axis, layout: Blocked
    ) -> None:
        self.block: Block = block
        self.step: Scan = step
        self.layout: Blocked = layout
        at = {step.axis: place}
        self.expr, target = rewrite(step.body, at), substitute(step.target, at)
        tests = [(substitute(i, at), lo, hi) for i, lo, hi in step.conditions]
        if place.hi >= step.axis.size:
            tests.append((place, 0, step.axis.size - 1))
        found, self.values = block.walked(layout, (within,), [self.expr], [target], tests)
        self.found: Walk = found
        self.target: Index = substitute(target, self.values)
        first_lane = {found.vector[0]: constant(0)} if found.vector else {}
        self.tests: list[tuple[Index, int, int]] = [
            (substitute(substitute(i, self.values), first_lane), lo, hi) for i, lo, hi in tests
        ]

    def enter(self, stack: ExitStack) -> int | None:
        """Open the loops and the scope of a point; give its mask."""
        loops(self.block, stack, self.found.loops, len(self.found.coordinates))
        mask = self.block.emitter.conditions([*self.found.conditions, *self.tests])
        inside(self.block, stack, self.found, mask)
        return mask

    def registers(self) -> Sequence[Index]:
        """Registers of the present point: one, or one for each lane."""
        where, vector = self.found.register(1), self.found.vector
        if vector is None:
            return (where,)
        return [substitute(where, {vector[0]: constant(lane)}) for lane in range(vector[1])]

    def read(self, held: int) -> None:
        """Fill the registers; what is outside the row is the identity."""
        emitter = self.block.emitter
        dtype = emitter.dtype(held)
        with ExitStack() as stack:
            mask = self.enter(stack)
            value = emitter.cast(emitter.value(rewrite(self.expr, self.values)), dtype)
            if mask is not None:
                fill = nothing(emitter, self.step.monoid, dtype)
                value = emitter.apply("where", mask, value, fill, dtype=dtype)
            for lane, where in enumerate(self.registers()):
                one = lane_of(emitter, value, lane)
                emitter.put(held, emitter.index(where), one)

    def write(self, held: int, before: int) -> None:
        """Store the registers, combined with everything before this thread's."""
        emitter, monoid = self.block.emitter, self.step.monoid
        dtype = emitter.dtype(held)
        with ExitStack() as stack:
            mask = self.enter(stack)
            made = []
            for where in self.registers():
                value = emitter.get(held, emitter.index(where))
                made.append(combine(emitter, monoid, before, value))
            value = made[0]
            if len(made) > 1:
                value = emitter.add("pack", dtype, made, lanes=len(made))
            put(self.block, emitter.slots[self.step.slot], self.target, value, mask)


def across_warp(block: Block, monoid: str, total: int) -> tuple[int, int]:
    """Scan one value a lane: what comes before the lane, and the total of the warp."""
    emitter = block.emitter
    dtype, distance = emitter.dtype(total), 1
    before = nothing(emitter, monoid, dtype)
    while distance < WARP:
        bit = axis_index(block.thread) // distance % 2
        is_upper = emitter.conditions([(bit, 1, 1)])
        other = emitter.add("shuffle_xor", dtype, (total,), distance)
        longer = combine(emitter, monoid, other, before)
        if is_upper is not None:
            before = emitter.apply("where", is_upper, longer, before, dtype=dtype)
        total = combine(emitter, monoid, total, other)
        distance *= 2
    return before, total


def across_block(block: Block, monoid: str, carried: int, total: int) -> tuple[int, int]:
    """Combine the warps' totals in order: what comes before this warp, and after the last."""
    emitter = block.emitter
    dtype, thread = emitter.dtype(total), axis_index(block.thread)
    warps = block.threads // WARP
    if warps == 1:
        return carried, combine(emitter, monoid, carried, total)
    place = emitter.add("shared", dtype, arg=block.scratch_for(warps * dtype.itemsize))
    emitter.add("barrier", None)
    is_first_lane = emitter.conditions([(thread % WARP, 0, 0)])
    emitter.store(place, emitter.index(thread // WARP), total, is_first_lane)
    emitter.add("barrier", None)
    before = whole = carried
    for number in range(warps):
        is_own = emitter.conditions([(thread // WARP, number, number)])
        if is_own is not None:
            before = emitter.apply("where", is_own, whole, before, dtype=dtype)
        whole = combine(emitter, monoid, whole, emitter.load(place, emitter.integer(number)))
    return before, whole
