"""Steps that transform patches: how far they reach, and the memory between them."""

from picograd.codegen import cuts
from picograd.codegen.operands import size_of
from picograd.codegen.templates.patches_steps import Field, Operand, transformed
from picograd.codegen.terms import Term
from picograd.dtype import float32
from picograd.graph.conv_winograd import PATCH, STEP, factor_terms, patch_terms, weight_terms
from picograd.schedule.index import Axis, axes_of, axis_index
from picograd.schedule.loop import Expr, walk

PLACES = Axis("n", 3), Axis("y", 15), Axis("x", 14)


def field_of(most: int) -> Field:
    """Make the patches of a block of so many places, or fewer."""
    piece = cuts.nested_cut(PLACES, most, {PLACES[1]: STEP}).pieces[0]
    down, across = (Axis(dim.name, -(-dim.size // STEP)) for dim in piece.dims[-2:])
    return Field(PLACES, piece, down, across, Axis("lane", 16))


def test_patches_reach_beyond_their_places() -> None:
    field = field_of(8 * 14)
    assert (field.down.size, field.across.size, field.count) == (2, 4, 8)
    assert field.spread(STEP) == (8, 16)
    assert field.spread(PATCH) == (10, 18)
    assert field.shapes()["turned"] == (180, 16)
    assert field_of(3 * 15 * 14).count == 3 * 4 * 4


def test_terms_are_numbered() -> None:
    elements = [Expr("load", (), (0, axis_index(axis)), float32) for axis in PLACES]
    for terms, count, made in ((patch_terms, 6, 6), (factor_terms, 4, 6), (weight_terms, 6, 3)):
        given = [Term(elements[n % 3]) for n in range(count)]
        assert [number for number, _ in transformed(terms, given)] == list(range(made))


def test_what_is_read_lies_in_the_block_and_its_border() -> None:
    """A whole image is guarded on both sides: patches end beyond it."""
    field, channel = field_of(15 * 14), Axis("c", 32)
    index = axis_index(channel) + sum(
        (axis_index(axis) * 32 for axis in PLACES[1:]), axis_index(PLACES[0])
    )
    load = Expr("load", (), (0, index), float32)
    operand = Operand(load, channel, (), PATCH, patch_terms)
    (step,) = field.image(operand, axis_index(Axis("run", 2)) * 16)
    assert size_of(step.dims) == 18 * 18 * 16
    (guard,) = [expr for expr in walk(step.expr) if expr.op == "guard"]
    assert {axis.name for test in guard.arg for axis in axes_of(test[0])} == {"v", "h"}
