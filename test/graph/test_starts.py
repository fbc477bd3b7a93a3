"""Positions that a user gave have names in the argument of their node; lengths stay."""

from picograd.dtype import float32
from picograd.graph.node import Node, constant
from picograd.graph.starts import placed, starts_of
from picograd.graph.viewing import pad_vjp, slice_vjp
from picograd.number import GivenInt


def leaf(*shape: int) -> Node:
    return Node("iota", (), 0, shape, float32, "cpu")


def test_a_slice_tells_its_lengths() -> None:
    start = GivenInt(2)
    node = leaf(9, 5).slice(((start, 5, 1), (1, 4, 2)))
    assert starts_of(node) == [2] and node.shape == (3, 2)
    assert placed(node, lambda value: ("at", id(value))) == ((("at", id(start)), 3, 1), (1, 4, 2))


def test_a_pad_tells_what_it_adds() -> None:
    node = leaf(3).pad(((GivenInt(0), 6),), 1.5)
    assert starts_of(node) == [0]
    assert placed(node, lambda value: "at") == ((("at", 6),), "1.5")


def test_plain_numbers_are_structure() -> None:
    assert not starts_of(leaf(9).slice(((2, 5, 1),))) and not starts_of(leaf(3).pad(((1, 2),)))
    assert not starts_of(constant(0.0, (2,), float32, "cpu"))


def test_the_gradient_of_a_slice_begins_where_it_does() -> None:
    source, start = leaf(9), GivenInt(2)
    node = source.slice(((start, 5, 1),))
    (pad,) = slice_vjp(leaf(3), node, source)
    assert starts_of(pad) == [2] and starts_of(pad)[0] is start and pad.shape == (9,)
    (cut,) = pad_vjp(leaf(9), pad, leaf(3))
    assert starts_of(cut)[0] is start
