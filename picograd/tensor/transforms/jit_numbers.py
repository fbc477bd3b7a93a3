"""Numbers among the arguments of a jitted function: which its traces follow, which they depend on.

A trace follows every number (`picograd.traced_number`) until one is read as it is; from then on
that argument is *fixed* for calls of this structure: its value is part of the key.

A position that a graph holds (`x[i]`) is a plain int there. Its first trace stands for its value
alone; the trace of the second value shows whether all that follows from it is known: if it runs
the same plan, it stands for every value, else the argument is fixed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from picograd.number import GivenInt
from picograd.tensor.transforms.jit_arguments import numbers_in
from picograd.tensor.transforms.jit_replay import slots_of
from picograd.tensor.transforms.jit_trace import Capture
from picograd.tensor.transforms.jit_variables import wanted as stored_numbers
from picograd.traced_number import Difference, Numbers, TracedNumber, program, same

MOST_OUTCOMES = 4  # traces of calls that differ in what numbers read, until these are fixed
MOST_NUMBERS = 64  # among the arguments of a call that are followed; of more, the values count


def described(value: Any) -> Any:
    """Describe a number as a key: 0.0 and -0.0 are equal, and NaN is not."""
    return value if value and value == value else repr(value)


def known_numbers(numbers: Sequence[Any], fixed: Collection[int]) -> tuple[Any, ...]:
    """List the numbers of a call for its key: None for one that is followed."""
    if len(numbers) > MOST_NUMBERS:
        fixed = range(len(numbers))
    return tuple([
        described(value) if at in fixed else None
        for at, value in enumerate(numbers)
    ])  # fmt: skip


def places_of(known: Sequence[Any]) -> frozenset[int]:
    """List the places of the fixed numbers of a key."""
    return frozenset(at for at, value in enumerate(known) if value is not None)


def settle(capture: Capture, numbers: Numbers, others: Sequence[Capture]) -> dict[int, str]:
    """End a trace: say what its replays evaluate, and which numbers must be fixed, and why."""
    for place, scalar in enumerate(capture.scalars):
        source = scalar.source if type(scalar) is GivenInt else scalar
        if type(source) is TracedNumber and source.numbers is numbers:
            capture.traced.append((place, source.slot))
    numbers.close()
    wanted = numbers_in(capture.structure) + stored_numbers(capture.stores)
    for each in capture.outputs:
        if each.kind == "view":
            wanted += [slot for view in each.source[1] for slot in slots_of(view.operands)]
    if capture.sizes is not None:
        wanted += range(len(numbers.slots))
    wanted += [slot for _, slot in capture.traced]
    capture.program = program(numbers, wanted)
    guards = numbers.guards
    lines = {at: line for at, line in guards.items() if at < numbers.arguments}
    for other in others:
        lines |= compare(capture, other)
    if len(others) >= MOST_OUTCOMES:
        for slot, line in guards.items():
            lines |= dict.fromkeys(numbers.sources([slot]), line)
    return {at: line for at, line in lines.items() if at < numbers.arguments}


def compare(capture: Capture, other: Capture) -> dict[int, str]:
    """Free positions that another trace had other values of; they are fixed if its plan differs."""
    made = capture.program
    before = other.program
    plan = other.find_plan()
    is_gone = plan is None and other.plan is not None
    if is_gone or not made.is_like(before):
        return {}
    found = {at for at, value in made.exact.items() if not same(before.exact[at], value)}
    if plan is not capture.find_plan():
        return dict.fromkeys(found, "a slice, and more that is not followed")
    for at in found:
        del made.exact[at]
    return {}


def worded(found: Difference, names: Sequence[str]) -> str:
    """Say why a trace does not stand for the numbers of a call, naming the arguments."""
    which = " and ".join(dict.fromkeys(names[at] for at in found.sources))
    return f"argument {which}: {found.text}" if which else found.text


def changed_numbers(
    names: Sequence[str], before: Sequence[Any], after: Sequence[Any], lines: Mapping[int, str]
) -> str:
    """Say which fixed numbers are new, and where they are read."""
    texts = []
    for at, (was, now) in enumerate(zip(before, after)):
        if was is None or was == now:
            continue
        line = lines.get(at)
        texts.append(f"argument {names[at]} changed from {was!r} to {now!r}, read at {line}")
    return "; ".join(texts[:4]) or "other numbers are told apart by value"
