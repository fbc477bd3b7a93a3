"""Places along axes seen as those of pages, which a table in memory numbers."""

from picograd.dtype import int64
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index
from picograd.schedule.loop import Expr
from picograd.schedule.pages import pages_of


def test_an_index_over_pages():
    place, table = Axis("i", 96), 0
    number = Expr("load", (), (table, axis_index(place) // 32), int64)
    index = atom_index(Dynamic(number, 0, 9)) * 2048 + axis_index(place) % 32 * 64
    found = pages_of(index, [place])
    assert (found.page.size, found.place.size) == (3, 32)
    assert dict(found.index.terms)[found.place] == 64
    moved = index + axis_index(place) // 32  # the number of a page moves it, too
    assert pages_of(moved, [place]) is None
    mixed = index + axis_index(place) % 32 // 4
    assert pages_of(mixed, [place]) is None
    each = Expr("load", (), (table, axis_index(place)), int64)
    assert pages_of(atom_index(Dynamic(each, 0, 9)) * 64, [place]) is None  # of one row each
