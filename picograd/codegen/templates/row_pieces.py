"""Rows of whose elements a point stores several: 16 of an image that patches become, say.

The points of a row are few, and their threads hold all of its elements until those are reduced.
"""

from collections.abc import Mapping, Sequence

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import rebind
from picograd.codegen.templates.threads import threads_along
from picograd.codegen.tile import Store
from picograd.schedule.index import Axes, Axis, Index
from picograd.schedule.loop import Compute, Conditions, Part

HELD = 32  # elements that a thread is to hold
MOST_THREADS = 512  # of a row: with more, a thread has too few registers for a patch
MOST_REGISTERS = 32  # of elements that wait to be stored until rows are reduced


def stored_of(part: Part) -> list[Compute]:
    """List what is stored of elements of rows."""
    along = set(part.rows)
    return [each for each in part.computes if each.store and set(each.axes) - along]


def pieces_of(part: Part) -> int:
    """Count the elements of a row that a point stores of one array."""
    places = []
    for each in stored_of(part):
        slot, _ = each.store or (-1, None)
        places.append((slot, each.axes))
    return max(map(places.count, places), default=1)


def threads_of_pieces(part: Part, points: int) -> int:
    """Choose the threads of a row of so many points that have several elements; 0: of one."""
    pieces = pieces_of(part)
    if pieces == 1:
        return 0
    wanted = threads_along(points * pieces, HELD)
    return min(wanted, threads_along(points, 1), MOST_THREADS)


def seen_at(compute: Compute, axes: Mapping[Axis, Index]) -> Conditions:
    """List the conditions under which a compute is stored, over the axes of a kernel."""
    found = []
    for test, low, high in compute.seen:
        found.append((rebind(test, axes), low, high))
    return tuple(found)


def stores_ahead(stores: Sequence[Store], dims: Axes) -> tuple[list[Store], list[Store]]:
    """Part the stores of elements from others if they fill registers: they go before those."""
    found = [each for each in stores if each.dims != dims]
    layouts = [each.layout for each in found]
    held = sum(each.register_count for each in layouts if isinstance(each, Blocked))
    if held <= MOST_REGISTERS:
        return [], list(stores)
    return found, [each for each in stores if each.dims == dims]
