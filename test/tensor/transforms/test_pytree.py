"""Nested containers taken apart and put together."""

from collections import OrderedDict, defaultdict, namedtuple

import pytest

from picograd.errors import DTypeError
from picograd.tensor.transforms.pytree import leaves_of, mapped, prefix_leaves, rebuilt

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
        with pytest.raises(DTypeError, match="structure"):
            prefix_leaves("f", "dims", wrong, tree)
