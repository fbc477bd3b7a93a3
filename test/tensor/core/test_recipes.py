"""Recipes: what is kept of an operation, and of which nothing is."""

import pytest

import picograd
from picograd import Tensor
from picograd.number import given
from picograd.tensor.core.recipes import RECIPES, as_read, keep, note_pure, recipe_of
from picograd.tensor.core.repeated import PURE
from picograd.tensor.indexing import selecting
from picograd.tensor.math import elementwise, primitives
from picograd.tensor.shaping import movement

pytestmark = pytest.mark.usefixtures("cpu_by_default")


def test_steps_and_results():
    node = Tensor([1.0, 2.0])._node
    steps, numbers, rows, is_one, demands = recipe_of(primitives.exp, [node])
    assert [step[0] for step in steps] == ["exp"]
    assert (numbers, rows, is_one, demands) == ((), ((1, True),), True, ())
    _, _, rows, *_ = recipe_of(elementwise.compare, ["less", node, node])
    assert rows == ((1, False),)  # bools have no gradients


def test_a_number_is_an_operand():
    node, number = Tensor([1.0, 2.0])._node, given(2.5)
    _, numbers, *_ = recipe_of(elementwise.arithmetic, ["mul", node, number])
    assert numbers == ((1, 2, 2.5, type(number)),)


def test_nothing_is_kept_of_others():
    node = Tensor([1.0, 2.0])._node
    half = Tensor([1.0, 2.0], dtype=picograd.float16)._node
    assert recipe_of(movement.reshape, [node, (2,)]) is None  # the operand itself
    assert recipe_of(primitives.exp, [object()]) is None
    found = recipe_of(elementwise.arithmetic, ["maximum", half, given(0.3)])
    assert found is None or found[1][0][1] == 2  # a number that is rounded is not the operand's


def test_what_is_demanded_is_kept():
    node, index, wrong = (Tensor(each)._node for each in ([1.0, 2.0], [0, 1], [0, 2]))
    *_, demands = recipe_of(selecting.read, [node, [index]])
    assert demands
    for at, demand in demands:
        assert at == 1
        assert demand(index)
        with pytest.raises(picograd.errors.AxisError):
            demand(wrong)


def test_rooms_are_noted():
    assert {primitives.exp, elementwise.arithmetic, movement.permute} <= PURE
    note_pure(len)
    assert len not in PURE


def test_operands_are_read():
    tensor = Tensor([1.0])
    read = {id(tensor): "node"}.get
    assert as_read(tensor, lambda each: read(id(each))) == "node"
    assert type(as_read(1.5, None)) is type(given(1.5))


def test_nothing_is_kept_where_recording_computed_what_is_read():
    """The call has the key of a buffer then, which may have a recipe: machine code records it."""
    again, key = Tensor([[1.0, 2.0], [3.0, 4.0]]), (selecting.gather, "a key that waits")
    for found in (again, True, None, [(selecting.gather, "a key of buffers")]):
        keep([key], lambda *_, found=found: found, selecting.gather, (again,), lambda each: each)
    assert key not in RECIPES
