"""Steps of K that a tile of a product has: the others would multiply zeros.

    b[k, n] = guard(0 <= 2 * tap - phase + 1 <= 2; ...)      tap of k, phase of n

An operand is 0 where its guards fail. If they test axes that have one position in a tile, such as
the phase of a gradient under a stride, a tile has a range of steps outside of which a guard fails
everywhere. It may have none at all: then it is 0.
"""

from itertools import product

from picograd.codegen.boxes import Depth
from picograd.codegen.operands import Contraction, narrow, role, size_of
from picograd.codegen.windows import unguarded
from picograd.dtype import int64
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Dynamic,
    Index,
    atom_index,
    axes_of,
    constant,
    flatten,
    substitute,
)
from picograd.schedule.loop import Condition, Expr

MOST_RANGES = 16  # a tile takes longer to choose from more
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reach:
    """The first step that a tile has and where they stop.

    Tiles have a `share` of all steps; a share of them is `empty`.
    """

    first: Index
    stop: Index
    share: float
    empty: float


def reach_of(
    c: Contraction, depth: Depth, corners: tuple[Index, Index], block: tuple[int, int]
) -> Reach | None:
    """Find the steps that tiles of a block have; None if all have all."""
    found = ranges_of(c, depth, corners, block)
    if found is None:
        return None
    number, ranges = found
    first = choose(number, [each[0] for each in ranges])
    stop = choose(number, [each[1] for each in ranges])
    steps = sum(stop - first for first, stop in ranges)
    empty = sum(first == stop for first, stop in ranges)
    return Reach(first, stop, steps / (len(ranges) * depth.count), empty / len(ranges))


def ranges_of(
    c: Contraction, depth: Depth, corners: tuple[Index, Index], block: tuple[int, int]
) -> tuple[Index, list[Range]] | None:
    """List the ranges of steps (first, stop) that tiles have, and which of them a tile has.

    None if all have all steps.
    """
    sides = zip((c.a, c.b), (c.rows, c.columns), corners, block, strict=True)
    for expr, axes, corner, size in sides:
        fixed = axes_of_tiles(axes, size)
        _, conditions = unguarded(narrow(expr, 8))
        known = {*fixed, *depth.outer}
        tests = [each for each in conditions if axes_of(each[0]) <= known]
        tested = set().union(*(axes_of(place) for place, *_ in tests))
        chosen = tuple(axis for axis in fixed if axis in tested)
        if not chosen or size_of(chosen) > MOST_RANGES:
            continue
        values = role(axes, corner).values
        sizes = tuple(axis.size for axis in chosen)
        number = flatten([values[axis] for axis in chosen], sizes)
        ranges = []
        for position in product(*map(range, sizes)):
            found = range_at(tests, bound(chosen, position), depth)
            ranges.append(found)
        return number, ranges
    return None


def bound(axes: tuple[Axis, ...], position: tuple[int, ...]) -> dict[Axis, Index]:
    """Give axes their positions."""
    return dict(zip(axes, map(constant, position), strict=True))


def axes_of_tiles(axes: tuple[Axis, ...], size: int) -> tuple[Axis, ...]:
    """Find the axes that have one position in each tile of `size` flat positions."""
    wide = tuple(axis for axis in axes if axis.size > 1)
    places = range(len(wide))
    whole = [place for place in places if size_of(wide[place:]) % size == 0]
    return wide[: max(whole, default=0)]


def range_at(tests: list[Condition], fixed: dict[Axis, Index], depth: Depth) -> Range:
    """Find the steps from the first to the last where all tests hold, where some axes are fixed."""
    holding = []
    sizes = [range(axis.size) for axis in depth.outer]
    for number, position in enumerate(product(*sizes)):
        values = fixed | bound(depth.outer, position)
        if all(holds(test, values) for test in tests):
            holding.append(number)
    if not holding:
        return 0, 0
    first, last = holding[0], holding[-1]
    return first * depth.blocks, (last + 1) * depth.blocks


def holds(test: Condition, values: dict[Axis, Index]) -> bool:
    """Tell whether a condition holds where all of its axes have values."""
    index, low, high = test
    place = substitute(index, values)
    return low <= place.const <= high


def choose(number: Index, values: list[int]) -> Index:
    """Write values[number]."""
    low, high = min(values), max(values)
    *others, last = values
    found = constant(last)
    for place, value in reversed([*enumerate(others)]):
        here = constant(value)
        if found == here:
            continue
        options = [Expr("index", (), index, int64) for index in (here, found)]
        test = number, 0, place
        expr = Expr("guard", tuple(options), (test,), int64)
        chosen = Dynamic(expr, low, high)
        found = atom_index(chosen)
    return found
