"""ScanStep -> Program on the CPU, and what both languages need: combining, and where to start.

One element after the other: a running total for each point of the dims, on the stack. Nothing is
reassociated, so the same inputs give the same bits.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from picograd.codegen.emit import Emitter, compute_dtype
from picograd.codegen.tile import ScanStep
from picograd.dtype import DType, float64
from picograd.helpers import product
from picograd.schedule.index import Axis, axis_index, flatten
from picograd.schedule.loop import Condition
from picograd.schedule.monoid import COMBINE, identity

SHORT_ROW = 16  # elements of rows that LLVM scans side by side; longer ones it unrolls for nothing


class Nests(Protocol):
    """What the CPU linearizer offers to a scan."""

    emitter: Emitter

    def nest(
        self,
        dims: Sequence[Axis],
        conditions: Sequence[Condition],
        body: Callable[[], None],
        is_unrolled: bool | None = False,
    ) -> None:
        """Emit loops over dims where all conditions hold, and a body."""


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
    exp = steady("exp", dtype)
    share = emitter.apply(exp, gap)
    total = emitter.apply("add", high, log_of_one_plus(emitter, share))
    infinite = emitter.const(float("inf"), dtype)  # inf - inf is NaN
    size = emitter.apply("abs", high)
    is_infinite = emitter.apply("equal", size, infinite)
    is_same = emitter.apply("and", is_infinite, emitter.apply("equal", a, b))
    return emitter.apply("where", is_same, high, total, dtype=dtype)


def steady(op: str, dtype: DType) -> str:
    """Choose the shorter formula in float64, of 2 units in the last place: the sum rounds more."""
    if dtype is not float64:
        return op
    return f"portable_{op}"


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
    """Compute log(1 + x) = log(w) x / (w - 1) for w = 1 + x rounded: exact for small x (Kahan)."""
    dtype = emitter.dtype(share)
    one = emitter.const(1.0, dtype)
    whole = emitter.apply("add", share, one)
    kept = emitter.apply("sub", whole, one)
    is_lost = emitter.apply("equal", kept, emitter.const(0.0, dtype))
    scale = emitter.apply("div", share, emitter.apply("where", is_lost, one, kept, dtype=dtype))
    log = steady("log", dtype)
    value = emitter.apply("mul", emitter.apply(log, whole), scale)
    return emitter.apply("where", is_lost, share, value, dtype=dtype)


def start_of(emitter: Emitter, step: ScanStep, dtype: DType) -> int:
    """Give the value a scan starts from."""
    if step.start is not None:
        return emitter.cast(emitter.value(step.start), dtype)
    return nothing(emitter, step.monoid, dtype)


def nothing(emitter: Emitter, monoid: str, dtype: DType) -> int:
    """Give the identity of a monoid."""
    name = "max" if monoid == "logaddexp" else monoid
    return emitter.const(identity(name, dtype), dtype)


def scan_cpu(builder: Nests, step: ScanStep) -> None:
    """Write the loops: the axis outside, neighbouring columns inside, as vectors."""
    emitter, dtype = builder.emitter, compute_dtype(step.expr.dtype)
    size = product(axis.size for axis in step.dims)
    totals = emitter.add("array", dtype, arg=size)
    flat = flatten([axis_index(a) for a in step.dims], [a.size for a in step.dims])
    uniform = [c for c in step.conditions if step.axis not in emitter.index_axes(c[0])]

    def clear() -> None:
        start = start_of(emitter, step, dtype)
        emitter.add("set", None, (totals, emitter.index(flat), start))

    def body() -> None:
        place = emitter.index(flat)
        old = emitter.add("get", dtype, (totals, place))
        value = emitter.cast(emitter.value(step.expr), dtype)
        new = combine(emitter, step.monoid, old, value)
        emitter.add("set", None, (totals, place, new))
        pointer = emitter.slots[step.slot]
        emitter.store(pointer, emitter.index(step.target), new)

    builder.nest(step.dims, uniform, clear)
    is_loop = not step.dims and step.axis.size > SHORT_ROW
    is_unrolled = None if is_loop else False
    builder.nest((step.axis, *step.dims), step.conditions, body, is_unrolled)
