"""Products of which some results have fewer terms than others, on a CPU: each kind by itself.

    out[place, phase, c] = sum of x[place + tap, k] * w[2 tap - phase, k, c], 0 where that is no tap
    -> for phase: out[place, phase, c] = sum over the taps that the phase has

Gradients of images under a stride are such: of 3 taps and a stride of 2 one phase has 1 tap along
an axis, the other 2, so that 9 of 16 products are left.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from picograd.codegen.operands import step_of
from picograd.schedule.index import Axis, Index, axes_of, axis_index, constant, substitute
from picograd.schedule.loop import Compute, Condition, Part, rewrite, walk

MOST_PHASES = 9
Values = Mapping[Axis, Index]


def parts_of(part: Part) -> list[Part]:
    """Split a product by its phases; the product itself if it has none."""
    hero, *others = part.computes
    is_plain = not part.ends and not any(each.reduce or each.seen for each in others)
    tests = [test for expr in walk(hero.body) if expr.op == "guard" for test in expr.arg]
    found = dict(phases(hero, tests)) if is_plain else {}
    count = 1
    for phase in found:
        count *= phase.size
    if not found or count > MOST_PHASES:
        return [part]
    made = [of_phase(part, found, tests, places) for places in all_places(found)]
    every = [each for each in made if each is not None]
    return every if len(every) == len(made) else [part]


def phases(hero: Compute, tests: list[Condition]) -> Iterator[tuple[Axis, Axis]]:
    """Yield axes of the results that count what is between two taps, and the axes of those."""
    for index, _, _ in tests:
        for phase in axes_of(index) & {*hero.axes}:
            (tap,) = axes_of(index) - {phase} if len(axes_of(index)) == 2 else (phase,)
            step = step_of(index, tap) or 0
            if tap in hero.reduce and step_of(index, phase) == -1 and phase.size <= step:
                yield phase, tap


def all_places(found: Mapping[Axis, Axis]) -> Iterator[dict[Axis, Index]]:
    """Yield each combination of phases."""
    for each in product(*[range(phase.size) for phase in found]):
        yield dict(zip(found, map(constant, each)))


def of_phase(
    part: Part, found: Mapping[Axis, Axis], tests: list[Condition], places: Values
) -> Part | None:
    """Write the product of one phase, over the taps that it has; None if it has none."""
    values, taps = dict(places), {}
    for phase, tap in found.items():
        own = [test for test in tests if axes_of(test[0]) == {phase, tap}]
        known = [n for n in range(tap.size) if holds(own, {**places, tap: constant(n)})]
        if not known:
            return None
        taps[tap] = Axis(tap.name, known[-1] - known[0] + 1)
        values[tap] = axis_index(taps[tap]) + known[0]
    rows = tuple([axis for axis in part.rows if axis not in found])
    computes = tuple([moved(compute, values, taps) for compute in part.computes])
    return replace(part, rows=rows, computes=computes)


def holds(tests: list[Condition], values: Values) -> bool:
    """Tell whether conditions hold at a point."""
    return all(low <= substitute(index, values).const <= high for index, low, high in tests)


def moved(compute: Compute, values: Values, taps: Mapping[Axis, Axis]) -> Compute:
    """Write a compute at some values of axes, which it has no more."""
    axes = tuple([axis for axis in compute.axes if axis not in values])
    reduce = tuple([taps.get(axis, axis) for axis in compute.reduce])
    store = compute.store and (compute.store[0], substitute(compute.store[1], values))
    body = rewrite(compute.body, values)
    return replace(compute, axes=axes, reduce=reduce, body=body, store=store)
