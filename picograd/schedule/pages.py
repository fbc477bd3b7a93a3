"""pages: places along axes whose rows a table in memory finds, page by page.

    x[table[i // n], i % n]    ->    x[table[page], place]    for i = page * n + place

A cache of keys in pages is read so: within a page rows are beside one another, and what comes next
is anywhere.
"""

from collections.abc import Sequence

from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Div,
    Dynamic,
    Index,
    Mod,
    axes_of,
    axis_index,
    substitute,
    unflatten,
)
from picograd.schedule.loop import dynamics_of, indices_of, rewrite, walk

LEAST_PLACES = 8  # of a page: so many rows repeat the swizzle of shared memory


@dataclass(frozen=True, slots=True)
class Paged:
    """An index over the number of a page and a place in it; no place moves what a table says."""

    index: Index
    page: Axis
    place: Axis


def tables_in(index: Index) -> list[tuple[Dynamic, int]]:
    """List what moves an index and is read at places of axes, and how far it moves it."""
    found = []
    for atom, step in index.terms:
        if isinstance(atom, Dynamic) and axes_in(atom):
            found.append((atom, step))
    return found


def axes_in(atom: Dynamic) -> set[Axis]:
    """Find the axes that a value which is read depends on."""
    found: set[Axis] = set()
    for expr in walk(atom.expr):
        for index in indices_of(expr):
            found |= axes_of(index)
    return found


def pages_of(index: Index, far: Sequence[Axis]) -> Paged | None:
    """See places along axes, the last the fastest, as those of pages; None if they are none."""
    count = product(axis.size for axis in far)
    for size in sizes_of(index, far):
        page = Axis("page", ceil_div(count, size))
        place = Axis("place", size)
        flat = axis_index(page) * size + axis_index(place)
        shape = tuple([axis.size for axis in far])
        values = dict(zip(far, unflatten(flat, shape), strict=True))
        found = substitute(index, values, lambda expr: rewrite(expr, values))  # noqa: B023
        if is_paged(found, page, place):
            return Paged(found, page, place)
    return None


def sizes_of(index: Index, far: Sequence[Axis]) -> list[int]:
    """List how many places a page may have, most first."""
    found = {product(axis.size for axis in far[number:]) for number in range(len(far) + 1)}
    for atom, _ in tables_in(index):
        inside = [each for expr in walk(atom.expr) for each in indices_of(expr)]
        found.update(divisor for each in inside for divisor in divisors_in(each))
    return sorted((n for n in found if n % LEAST_PLACES == 0), reverse=True)


def divisors_in(index: Index) -> list[int]:
    """List what an index divides by."""
    found = []
    for atom, _ in index.terms:
        if isinstance(atom, Div | Mod):
            found += [atom.n, *divisors_in(atom.index)]
    return found


def is_paged(index: Index, page: Axis, place: Axis) -> bool:
    """Tell whether only tables know of pages, and nothing but the index itself of places."""
    plain = [atom for atom, _ in index.terms if not isinstance(atom, Dynamic)]
    inside = set().union(*(axes_in(atom) for atom in dynamics_of(index)))
    moved = [atom for atom in plain if atom_reads(atom, page)]
    mixed = [atom for atom in plain if atom is not place and atom_reads(atom, place)]
    return place not in inside and not moved and not mixed


def atom_reads(atom: Axis | Div | Mod, axis: Axis) -> bool:
    """Tell whether an atom depends on an axis."""
    return atom is axis if isinstance(atom, Axis) else axis in axes_of(atom.index)
