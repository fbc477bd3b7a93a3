"""Trees under torch.utils._pytree's names."""

import pytest

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
