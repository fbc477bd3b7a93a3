"""How windows slide is read off indices; what they share is told from what they do not."""

from cases import guard, load, op

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.sliding import is_plain, slid, slides_of, within
from picograd.codegen.tile import Accumulate, Tile
from picograd.dtype import bfloat16, float32
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Compute, Expr

STEP, NEAR, LANE = Axis("step", 256), Axis("near", 4), Axis("lane", 8)
TAP = Axis("tap", 3)
LAYOUT = Blocked((256, 4, 8, 3), (256, 1, 1, 1), (1, 1, 8, 1))


def term(step: int, gap: int) -> Expr:
    place = axis_index(NEAR) * step + axis_index(TAP) * gap
    here = axis_index(STEP) * 64 + axis_index(LANE)
    seen = guard(load(0, bfloat16, place * 8 + here), 0.0, (place, 0, 5))
    wide = Expr("cast", (seen,), None, float32)
    return op("mul", wide, load(1, float32, axis_index(TAP) * 8 + axis_index(LANE)))


def test_steps_and_gaps() -> None:
    for step, gap in ((1, 1), (2, 1), (1, 3)):
        (slide,) = slides_of(term(step, gap), (STEP, NEAR), (TAP,))
        assert (slide.element, slide.step, slide.gap) == (NEAR, step, gap)
        assert slide.places.size == 3 * step + 2 * gap + 1
    assert slides_of(term(4, 6), (NEAR,), (TAP,)) == (), "places between would not be read"
    for step, gap in ((3, 1), (1, 4)):
        assert slides_of(term(step, gap), (NEAR,), (TAP,)) == (), "no window shares a place"


def test_windows_and_weights_are_read_once() -> None:
    tiles: list[Tile] = []
    step = Accumulate("acc", (STEP, NEAR, LANE), (TAP,), "sum", term(1, 1), True, LAYOUT)
    found = slid(step, tiles, ((axis_index(STEP), 0, 200),))
    assert found is not None
    assert [tile.shape for tile in tiles] == [(256, 6, 8), (256, 3, 8)]
    *reads, last = found
    assert all(each.expr.op in ("cast", "guard") for each in reads), "the condition is on loads"
    assert [each.op for each in last.expr.args] == ["tile", "tile"]
    apart = Accumulate("acc", (STEP, LANE), (TAP,), "sum", term(1, 1), True, LAYOUT)
    assert slid(apart, tiles) is None, "an element a thread"


def test_taps_that_no_element_slides_along_are_no_places() -> None:
    row = Axis("row", 3)
    place = (axis_index(NEAR) + axis_index(TAP)) * 8
    here = axis_index(STEP) * 64 + axis_index(LANE)
    for step, is_slid in ((0, True), (1024, False)):
        term = load(0, float32, place + here + axis_index(row) * step)
        layout = LAYOUT.with_alone((row.size,))
        found = Accumulate("acc", (STEP, NEAR, LANE), (TAP, row), "sum", term, True, layout)
        assert (slid(found, []) is not None) == is_slid


def test_a_guarded_load_is_not_chosen_from() -> None:
    tests = ((axis_index(STEP), 0, 9),)
    inner = within(term(1, 1).args[0], tests)
    assert inner.op == "cast" and inner.args[0].arg[:1] == tests
    assert within(term(1, 1), tests).op == "guard"


def test_what_reads_more_than_windows_and_taps_is_not_plain() -> None:
    scaled = op("add", term(1, 1), load(2, float32, axis_index(LANE)))
    plain, more = (Compute((NEAR,), (), None, each, float32) for each in (term(1, 1), scaled))
    assert is_plain([plain]) and not is_plain([plain, more])
