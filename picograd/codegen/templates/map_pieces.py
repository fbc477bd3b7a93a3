"""Pieces of an elementwise loop on a CPU: it is cut where guards begin and end.

What elements are chosen from is then known in each piece, and only that is computed there.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from picograd.codegen.templates.grid import Cut
from picograd.codegen.tile import For, Step, Store
from picograd.helpers import product
from picograd.schedule.index import Axis, axes_of, axis_index
from picograd.schedule.loop import Part, walk

LEAST_PIECE, MOST_PIECES = 16, 9  # elements of a piece between guards, and pieces
LONG_PIECE, MOST_LONG = 32, 64  # the same where every piece is several vectors long


def in_pieces(part: Part, space: Cut) -> list[Cut]:
    """Cut dimensions where guards begin and end: each piece computes what is in it alone.

    So joined arrays are not all computed at every element, and then chosen from.
    """
    spaces = [space]
    for place, axis in reversed(list(enumerate(space.dims))):
        if axis in axes_in(space):
            continue
        inner = product(each.size for each in space.dims[place + 1 :])
        pieces = pieces_of(part, axis, len(spaces), inner)
        found: list[Cut] = []
        for _, first, size in pieces:
            within = Axis(f"{axis.name}_in", size)  # one for all, so that `joined` sees it
            found += [moved(each, place, axis, first, within) for each in spaces]
        spaces = found or spaces
    return spaces


def moved(space: Cut, place: int, axis: Axis, first: int, within: Axis) -> Cut:
    """Walk a piece of a dimension."""
    dims = list(space.dims)
    dims[place] = within
    axes = dict(space.axes)
    axes[axis] = axis_index(within) + first
    return replace(space, dims=tuple(dims), axes=axes)


def pieces_of(part: Part, axis: Axis, count: int, inner: int) -> list[tuple[Axis, int, int]]:
    """List where the pieces of an axis begin, and their sizes; none if it is better left whole.

    `count` pieces are there so far, and `inner` elements at a place of the axis. Short pieces pay
    where more is left out than a fill.
    """
    places = edges(part, axis)
    firsts = [0, *places]
    ends = [*places, axis.size]
    sizes = [end - first for first, end in zip(firsts, ends)]
    least = min(sizes) * inner
    most = MOST_PIECES if least < LONG_PIECE else MOST_LONG
    number = len(sizes)
    if number < 2 or number * count > most:
        return []
    if least < LEAST_PIECE:
        is_small = axis.size * inner < LEAST_PIECE * number
        if is_small or not has_choices(part):
            return []
    return list(zip([axis] * number, firsts, sizes))


def has_choices(part: Part) -> bool:
    """Tell whether elements are chosen from several that are computed."""
    found = set()
    for compute in part.computes:
        guards = [id(expr) for expr in walk(compute.body) if expr.op == "guard"]
        found.update(guards)
    return len(found) > 1


def axes_in(space: Cut) -> set[Axis]:
    """List the axes that a cut divides."""
    return {atom for index in space.axes.values() for atom in axes_of(index)}


def edges(part: Part, axis: Axis) -> list[int]:
    """List the places along an axis where a guard on it alone begins or ends."""
    found = set()
    for compute in part.computes:
        for expr in walk(compute.body):
            if expr.op != "guard":
                continue
            for index, lo, hi in expr.arg:
                if index.terms == ((axis, 1),):
                    found.add(lo - index.const)
                    found.add(hi + 1 - index.const)
    return sorted(place for place in found if 0 < place < axis.size)


def joined(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Walk what pieces have in common once: the pieces of a row are written one after another.

    Stores over (i, j) and (i, k) -> `for i: stores over (j), (k)`, where nothing else is done.
    """
    stores = [step for step in steps if isinstance(step, Store)]
    least = min([len(store.dims) for store in stores], default=0)
    if len(stores) < len(steps) or least < 2:
        return tuple(steps)
    found: list[Step] = []
    for axis, group in groupby(stores, lambda store: store.dims[0]):
        alike = list(group)
        if len(alike) == 1:
            found += alike
            continue
        inner = [replace(store, dims=store.dims[1:]) for store in alike]
        found.append(For(axis, joined(inner)))
    return tuple(found)
