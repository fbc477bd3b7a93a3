"""Trees under torch.utils._pytree's names."""

import collections
import typing

import pytest

import picograd
from picograd.utils import _pytree as trees

TREE = {"a": [1, (2, 3)], "b": None}


def test_trees_are_taken_apart_and_put_together() -> None:
    leaves, spec = trees.tree_flatten(TREE)
    assert leaves == [1, 2, 3, None] == trees.tree_leaves(TREE)
    assert trees.tree_unflatten(leaves, spec) == TREE
    assert spec == trees.tree_structure(TREE) and spec.num_leaves == 4 and not spec.is_leaf()
    assert hash(spec) == hash(trees.tree_structure(TREE))


@pytest.mark.parametrize("name", ["picograd", "torch"])
def test_functions_give_what_pytorch_gives(name: str) -> None:
    lib = pytest.importorskip(f"{name}.utils._pytree")
    assert lib.tree_map(lambda x: (x, x), [1, {"k": 2}]) == [(1, 1), {"k": (2, 2)}]
    assert lib.tree_map(lambda x, y: x - y, (5, 7), (1, 2)) == (4, 5)
    assert lib.tree_map_only(int, lambda x: -x, [1, "s"]) == [-1, "s"]
    assert lib.tree_all(lambda x: x > 0, [1, [2]]) and lib.tree_any(lambda x: x > 1, [1, [2]])


@pytest.mark.parametrize("name", ["picograd", "torch"])
def test_structures_are_pytorchs(name: str) -> None:
    """Leaves that a test names, containers of Python's library, paths, and parts of a structure."""
    lib = pytest.importorskip(f"{name}.utils._pytree")

    class Special(dict):
        pass

    class Point(typing.NamedTuple):
        x: int
        y: int

    tree = [collections.OrderedDict(a=1), collections.deque([2], 3), Point(4, (5, 6)), Special(b=7)]
    leaves, spec = lib.tree_flatten(tree, is_leaf=lambda each: isinstance(each, Point))
    assert leaves == [1, 2, Point(4, (5, 6)), Special(b=7)] and spec.num_leaves == 4
    made = lib.tree_unflatten([10, 20, 30, 40], spec)
    assert made == [collections.OrderedDict(a=10), collections.deque([20], 3), 30, 40]
    assert type(made[0]) is collections.OrderedDict and made[1].maxlen == 3
    named, whole = lib.tree_flatten_with_path({"k": [1, Point(2, 3)]})
    assert [lib.keystr(path) for path, _ in named] == ["['k'][0]", "['k'][1].x", "['k'][1].y"]
    assert whole.type is dict and whole.context == ["k"] and whole != spec
    assert lib.tree_structure(3) == lib.LeafSpec() and lib.tree_structure(3).is_leaf()
    assert lib.tree_map(lambda a, b: (a, b), [1, 2], [[3], 4]) == [(1, [3]), (2, 4)]
    assert lib._get_node_type(tree) in lib.SUPPORTED_NODES and lib.tree_is_leaf(Special())
    assert lib.tree_map_only((int, str), str, [1, 2.0]) == ["1", 2.0]
    assert lib.tree_any_only(int, lambda n: n > 1, [1, "a"]) is False
    with pytest.raises(ValueError):
        lib.tree_map(lambda a, b: a, [1, 2], [1])
    with pytest.raises(ValueError):
        lib.tree_unflatten([1], spec)


def test_sizes_are_taken_apart_as_tuples_are() -> None:
    size = picograd.ones(2, 3).shape
    leaves, spec = trees.tree_flatten(size)
    assert leaves == [2, 3] and type(trees.tree_unflatten(leaves, spec)) is type(size)
    assert type(trees.tree_map(lambda n: n + 1, {"shape": size})["shape"]) is type(size)
