"""page_boxes: tiles whose rows are those of pages, each where a table in memory says.

    tile[i] = x[table[(first + i) // n], (first + i) % n]

A box has rows of one page. Numbers of pages are known a position of the pipeline ahead, so that no
box waits for memory twice.
"""

from collections.abc import Callable, Iterator
from math import gcd

from picograd.codegen.boxes import CopyBox, View
from picograd.codegen.layout import Swizzled
from picograd.codegen.operands import Role
from picograd.codegen.stream_masks import minimum_of
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, axis_index, constant
from picograd.schedule.loop import Expr
from picograd.schedule.pages import Paged, tables_in


@dataclass(frozen=True, slots=True)
class Paging:
    """What is read page by page, as dimensions of boxes; `known` reads what a table says ahead."""

    paged: Paged
    view: View
    batch: Role
    known: Callable[[Dynamic], Index]


def page_boxes(
    name: str, load: Expr, layout: Swizzled, paging: Paging, first: Index
) -> Iterator[CopyBox]:
    """Yield the boxes that fill a tile from a place on."""
    slot, _ = load.arg
    height, _ = layout.shape
    paged, view = paging.paged, paging.view
    size = paged.place.size
    rows = gcd(size, height)
    tensor = view.tensor(slot, load.dtype, (layout.span, rows))
    slab = Axis("slab", layout.slabs)
    column = axis_index(slab) * layout.span
    last = constant(paged.page.size - 1)
    for start in range(0, height, rows):
        place = first + start
        page = place // size
        if page.hi > last.const:  # behind the end nobody looks
            page = minimum_of([page, last])
        places = view.places_of({**paging.batch.values, paged.page: page})
        rest = [known_before(each, paging) for each in places]
        at = column, place % size, *rest
        yield CopyBox(name, tensor, at, slab, start=start * layout.span)


def known_before(index: Index, paging: Paging) -> Index:
    """Let what a table says be known before."""
    for atom, _ in tables_in(index):
        index += paging.known(atom) - atom_index(atom)
    return index
