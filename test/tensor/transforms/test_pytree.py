"""Nested containers taken apart and put together."""

from collections import OrderedDict, defaultdict, namedtuple

import pytest

import picograd
from picograd import Tensor
from picograd.errors import ChoiceError
from picograd.tensor.transforms.pytree import leaves_of, mapped, prefix_leaves, rebuilt
from picograd.utils._pytree import register_pytree_node

Point = namedtuple("Point", "x y")


def test_round_trip() -> None:
    for tree in (1, (1, [2, {"a": 3}]), Point(1, (2,)), OrderedDict(b=1, a=[2]), (), {}):
        leaves = leaves_of(tree)
        assert rebuilt(tree, leaves) == tree and type(rebuilt(tree, leaves)) is type(tree)
    table = defaultdict(list, a=1)
    assert type(mapped(str, table)) is defaultdict and mapped(str, table)["a"] == "1"


def test_prefixes() -> None:
    tree = (1, {"a": 2, "b": [3, 4]})
    assert prefix_leaves("f", "dims", 0, tree) == [0, 0, 0, 0]
    assert prefix_leaves("f", "dims", (0, {"b": 1, "a": None}), tree) == [0, None, 1, 1]
    for wrong in ((0,), (0, (1, 2)), (0, {"a": 1}), ([0], 1)):
        with pytest.raises(ChoiceError, match="structure"):
            prefix_leaves("f", "dims", wrong, tree)


def test_types_of_programs_are_trees_of_transforms_too() -> None:
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    register_pytree_node(Pair, lambda pair: ((pair.x, pair.y), None), lambda items, _: Pair(*items))
    slope = picograd.func.grad(lambda pair: pair.x * pair.y)(Pair(Tensor(2.0), Tensor(3.0)))
    assert (slope.x.item(), slope.y.item()) == (3.0, 2.0)
    lots = picograd.vmap(lambda pair: pair.x * pair.y)(Pair(picograd.arange(3), picograd.arange(3)))
    assert lots.tolist() == [0, 1, 4]
