"""Whether `picograd.jit` or `vmap` is tracing: while one is, nothing may be realized or read.

A trace is a list of the nodes whose realization was asked for; `jit` realizes them all in one plan
when the traced function returns. `vmap` rewrites them for a batch.

What a function reads besides its arguments and the tensors of its graph is noted here by those who
own it: modules that are called, optimizers that step, gradients that are looked at (`Trace`). Who
changes such state replaces `STATE.token`, so that a replay knows by one comparison that nothing
changed ([0010](docs/design/0010-what-a-trace-depends-on.md)).
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from picograd.buffer import RuntimeScalar
from picograd.engine.debug import user_line
from picograd.engine.followed import leave, leave_unless_inside
from picograd.errors import PicogradError, TraceError
from picograd.late_methods import dataclass


class Changes:
    """A token that is replaced whenever state changes that a trace may depend on."""

    __slots__ = ("token",)

    def __init__(self) -> None:
        self.token: object = object()


@dataclass(slots=True)
class Gradient:
    """What became of one tensor's `grad` in a trace: its first value, and whether it was read."""

    tensor: Any
    first: Any
    is_read: bool
    is_given: bool = False  # it was set to a tensor, as `backward` does


@dataclass(slots=True)
class Trace:
    """What one trace of `jit` notes while the function runs."""

    drawn: list[RuntimeScalar] = field(default_factory=list)
    gradients: dict[int, Gradient] = field(default_factory=dict)
    objects: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # tensors made here that later calls continue
    birth: Any = field(default_factory=object)  # what objects remember that are made here
    refusals: list[str] = field(default_factory=list)  # why the next call must trace again
    checks: list[tuple[Any, ...]] = field(default_factory=list)  # see `note_check`
    constants: dict[int, Any] = field(default_factory=dict)  # leaves of data that it spells out
    made: list[Any] = field(default_factory=list)  # weak references to the tensors made here
    own: set[int] = field(default_factory=set)  # identities of tensors that the function made
    changed: dict[int, Any] = field(default_factory=dict)  # tensors that were given another node
    moved: dict[int, Any] = field(default_factory=dict)  # the last nodes in what memory they had
    stand_ins: dict[int, Any] = field(default_factory=dict)  # what has the memory that they had
    spent: list[Any] = field(default_factory=list)  # nodes whose gradients were taken for good
    numbers: Any = None  # the numbers that are followed; None where all are what they are
    variables: dict[Any, Any] = field(default_factory=dict)  # places of Python's state among them
    undo: list[Any] = field(default_factory=list)  # what to call after an error, the last first
    callers: dict[int, Any] = field(default_factory=dict)  # the tensors that stand-ins stand for
    asked: set[str] = field(default_factory=set)  # what code asks of tensors, beside their values


class Running(threading.local):
    """The traces that run in this thread, the innermost last: what each is, and those of `jit`."""

    def __init__(self) -> None:
        self.active: list[str] = []
        self.traces: list[Trace] = []
        self.steps: list[list[tuple[Any, PicogradError]]] = []  # checks of loops that are traced
        self.writes: list[list[tuple[Any, Any, Any]]] = []  # see `noting_writes`


STATE = Changes()


RUNNING = Running()
# What threads have open that changes what is recorded, or is told of it: traces, and regions of
# `autocast` or of hooks. Empty: no thread need look for its own.
OPEN: list[Any] = []
OUTSIDE = {
    "picograd.jit": "return the tensor and read it outside the jitted function",
    "picograd.scan": "return it in y and read it after the loop; choose with where, not if",
    "vmap": "compute it with tensor operations (where, masks), or read it outside the function",
}


def is_tracing() -> bool:
    """Tell whether a jitted function is being traced."""
    return bool(RUNNING.active)


def is_tracing_jit() -> bool:
    """Tell whether `picograd.jit` itself traces, not a loop or samples inside it."""
    return RUNNING.active[-1:] == ["picograd.jit"] and bool(RUNNING.traces)


def check_not_tracing(what: str) -> None:
    """Raise TraceError, naming the user's line, when a value is needed while tracing."""
    if RUNNING.active:
        problem = f"the value of a traced tensor is not known while {RUNNING.active[-1]} traces"
        raise trace_error(what, problem, OUTSIDE[RUNNING.active[-1]])


def trace_error(op: str, problem: str, fix: str) -> TraceError:
    """Word an error of what a trace cannot do: it names the user's line."""
    line = user_line()
    return TraceError(op, f"{problem}, at {line}" if line else problem, fix)


@contextmanager
def tracing(what: str = "picograd.jit") -> Iterator[None]:
    """Trace inside this block: realizations wait until it ends."""
    leave() if what != "picograd.scan" else leave_unless_inside()
    RUNNING.active.append(what)
    OPEN.append(what)
    try:
        yield
    finally:
        RUNNING.active.pop()
        OPEN.pop()


@contextmanager
def noting_writes() -> Iterator[list[tuple[Any, Any, Any]]]:
    """Note the tensors that are written inside this block, weakly: nodes before, next values."""
    notes: list[tuple[Any, Any, Any]] = []
    RUNNING.writes.append(notes)
    OPEN.append("writes")
    try:
        yield notes
    finally:
        RUNNING.writes.pop()
        OPEN.pop()
        if RUNNING.writes:
            RUNNING.writes[-1].extend(notes)


def note_write(tensor: Any, value: Any) -> None:
    """Note that a tensor is written, where somebody asks."""
    if RUNNING.writes:
        RUNNING.writes[-1].append((weakref.ref(tensor), tensor._node, value))


@contextmanager
def noting() -> Iterator[Trace]:
    """Note what the function reads and draws inside this block."""
    leave()
    trace = Trace()
    RUNNING.traces.append(trace)
    OPEN.append("notes")
    try:
        yield trace
    finally:
        RUNNING.traces.pop()
        OPEN.pop()


def note_draw(scalar: RuntimeScalar) -> RuntimeScalar:
    """Remember a number that every run of a jitted plan draws again, and return it."""
    for trace in RUNNING.traces:
        trace.drawn.append(scalar)
    return scalar


def note_constant(leaf: Any) -> Any:
    """Remember a leaf that the function makes of numbers: every call makes the same; returns it."""
    for trace in RUNNING.traces:
        trace.constants[id(leaf)] = leaf
    return leaf


def is_constant(leaf: Any) -> bool:
    """Tell whether the function that is traced makes a leaf of numbers that it spells out."""
    return bool(RUNNING.traces) and id(leaf) in RUNNING.traces[-1].constants


def caller_of(tensor: Any, asked: str = "") -> Any:
    """Find what the caller passed where a trace has a stand-in; notes what is asked of it."""
    for trace in RUNNING.traces:
        if id(tensor) in trace.callers:
            trace.asked.update([asked] if asked else ())
            tensor = trace.callers[id(tensor)]
    return tensor


def is_leaf_outside(tensor: Any) -> bool:
    """Tell whether what the caller passed is a leaf: a trace's stand-in of it always is."""
    passed = caller_of(tensor)
    return passed is tensor or passed.is_leaf


def note_change() -> None:
    """Tell the traces that state was changed which they may depend on."""
    STATE.token = object()


def note_object(value: Any) -> None:
    """Remember an object with a `_trace_state` that the function uses, and its state before."""
    for trace in RUNNING.traces:
        if id(value) not in trace.objects:
            trace.objects[id(value)] = value, value._trace_state()


def note_made(tensor: Any) -> None:
    """Remember a tensor that the function makes."""
    reference = weakref.ref(tensor)
    for trace in RUNNING.traces:
        trace.made.append(reference)
        trace.own.add(id(tensor))


def note_stand_in(tensor: Any, made: Any) -> None:
    """Remember that a tensor has the memory of another, and is of the function if that is."""
    for trace in RUNNING.traces:
        if id(tensor) not in trace.own:
            trace.made.pop()
            trace.own.discard(id(made))
            if trace.moved.get(id(tensor)) is made._node:
                trace.stand_ins[id(tensor)] = made


def note_changed(tensor: Any) -> None:
    """Remember a tensor that the function gives another value.

    Not one that it made: a view that was written and dropped must not outlive the function.
    """
    for trace in RUNNING.traces:
        if id(tensor) not in trace.own:
            trace.changed[id(tensor)] = tensor


def note_moved(tensor: Any) -> None:
    """Remember a tensor that has other memory now: what showed the old goes on showing that."""
    if tensor._views or tensor._view is not None:
        note_change()  # traces that write by a view depend on what it shows
    for trace in RUNNING.traces:
        if id(tensor) not in trace.own:
            trace.moved.setdefault(id(tensor), tensor._node)


def birth() -> Any:
    """Give what tells in which trace an object was made; None outside of all."""
    return RUNNING.traces[-1].birth if RUNNING.traces else None


def is_born_here(mark: Any) -> bool:
    """Tell whether an object was made in the trace that runs: every call makes it anew."""
    return mark is not None and mark is birth()


def note_kept(tensor: Any, owner: Any = None) -> None:
    """Remember a tensor made while tracing that later calls find where it was put: state.

    If its owner was made here too, only if that outlives the function.
    """
    held = None if owner is None else weakref.ref(owner)
    for trace in RUNNING.traces:
        trace.kept.append((tensor, held))


def note_undo(function: Any) -> None:
    """Remember what to call where the function fails: state of Python becomes what it was."""
    for trace in RUNNING.traces:
        trace.undo.append(function)


def note_refusal(reason: str) -> None:
    """Remember why this run of the function cannot stand for the next one."""
    for trace in RUNNING.traces:
        trace.refusals.append(reason)


def note_check(failed: Any, error: PicogradError, checked: Any, look: Any) -> None:
    """Remember a bool node that must be false; a replay raises the error when it is not.

    `look`, unless None, raises for wrong values of the node that is checked.
    """
    for trace in RUNNING.traces[-1:]:
        trace.checks.append((failed, error, checked, look))


@contextmanager
def noting_checks() -> Iterator[list[tuple[Any, PicogradError]]]:
    """Collect what a step of a loop has to check: bool nodes that must be false, and errors."""
    found: list[tuple[Any, PicogradError]] = []
    RUNNING.steps.append(found)
    try:
        yield found
    finally:
        RUNNING.steps.pop()


def note_spent(node: Any) -> None:
    """Remember that the gradients of a node were taken, and not to be taken once more."""
    for trace in RUNNING.traces:
        trace.spent.append(node)


def note_gradient(tensor: Any, is_read: bool, is_given: bool = False) -> None:
    """Remember that a tensor's gradient is read or set; the first of both counts."""
    for trace in RUNNING.traces:
        noted = trace.gradients.get(id(tensor))
        if noted is None:
            noted = trace.gradients[id(tensor)] = Gradient(tensor, tensor._grad, is_read)
        noted.is_given |= is_given
