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
    if part.ends or any(each.reduce or each.seen for each in others):
        return [part]
    tests = tests_of(hero)
    found = dict(phases(hero, tests))
    places = list(all_places(found))
    if not 1 < len(places) <= MOST_PHASES:
        return [part]
    split: list[Part] = []
    for place in places:
        taps = taps_of(found, tests, place)
        if taps is None:  # nothing is summed there
            return [part]
        split.append(of_phase(part, place, taps))
    return split


def tests_of(hero: Compute) -> list[Condition]:
    """List the conditions of what a product multiplies."""
    found: list[Condition] = []
    for expr in walk(hero.body):
        if expr.op == "guard":
            found += expr.arg
    return found


def phases(hero: Compute, tests: list[Condition]) -> Iterator[tuple[Axis, Axis]]:
    """Yield axes of the results that count what is between two taps, and the axes of those."""
    for index, _, _ in tests:
        axes = axes_of(index)
        inner = axes & {*hero.axes}
        outer = axes & {*hero.reduce}
        if len(inner) != 1 or len(outer) != 1:
            continue
        (phase,) = inner
        (tap,) = outer
        step = step_of(index, tap) or 0
        if step_of(index, phase) == -1 and phase.size <= step:
            yield phase, tap


def all_places(found: Mapping[Axis, Axis]) -> Iterator[dict[Axis, Index]]:
    """Yield each combination of phases."""
    ranges = [range(phase.size) for phase in found]
    for each in product(*ranges):
        numbers = map(constant, each)
        yield dict(zip(found, numbers))


def taps_of(
    found: Mapping[Axis, Axis], tests: list[Condition], place: Values
) -> dict[Axis, tuple[int, int]] | None:
    """Find the first and the last tap that a phase has along each axis; None if it has none."""
    taps: dict[Axis, tuple[int, int]] = {}
    for phase, tap in found.items():
        own = [test for test in tests if axes_of(test[0]) == {phase, tap}]
        known = []
        for number in range(tap.size):
            values = {**place, tap: constant(number)}
            if holds(own, values):
                known.append(number)
        if not known:
            return None
        taps[tap] = known[0], known[-1]
    return taps


def holds(tests: list[Condition], values: Values) -> bool:
    """Tell whether conditions hold at a point."""
    for index, low, high in tests:
        place = substitute(index, values)
        if not low <= place.const <= high:
            return False
    return True


def of_phase(part: Part, place: Values, taps: Mapping[Axis, tuple[int, int]]) -> Part:
    """Write the product of one phase, over the taps that it has."""
    values = dict(place)
    own: dict[Axis, Axis] = {}
    for tap, (first, last) in taps.items():
        own[tap] = Axis(tap.name, last - first + 1)
        values[tap] = axis_index(own[tap]) + first

    def moved(compute: Compute) -> Compute:
        axes = tuple([axis for axis in compute.axes if axis not in place])
        reduce = tuple([own.get(axis, axis) for axis in compute.reduce])
        body = rewrite(compute.body, values)
        made = replace(compute, axes=axes, reduce=reduce, body=body)
        if compute.store is None:
            return made
        slot, index = compute.store
        index = substitute(index, values)
        return replace(made, store=(slot, index))

    rows = tuple([axis for axis in part.rows if axis not in place])
    computes = tuple(map(moved, part.computes))
    return replace(part, rows=rows, computes=computes)
