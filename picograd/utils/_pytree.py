"""PyTorch's `torch.utils._pytree`: nested containers as leaves and a structure."""

from collections.abc import Callable, Iterable
from typing import Any

from picograd.tensor.transforms.pytree import is_container, leaves_of, mapped, rebuilt


class TreeSpec:
    """This class is the structure of a tree: `num_leaves`, and what `tree_unflatten` fills.

    >>> leaves, spec = tree_flatten({"a": [1, 2]})
    >>> leaves, spec.num_leaves, tree_unflatten([3, 4], spec)
    ([1, 2], 2, {'a': [3, 4]})
    """

    def __init__(self, tree: Any) -> None:
        self.tree = mapped(lambda leaf: None, tree)
        self.num_leaves = len(leaves_of(tree))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self.tree == other.tree

    def __hash__(self) -> int:
        kind = type(self.tree)
        return hash((self.num_leaves, kind))

    def __repr__(self) -> str:
        return f"TreeSpec({self.tree})"

    def is_leaf(self) -> bool:
        """Tell whether the tree is one leaf."""
        return not is_container(self.tree)


Leaves = list[Any]


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[Leaves, TreeSpec]:
    """List the leaves of a tree, and its structure."""
    leaves = leaves_of(tree)
    structure = TreeSpec(tree)
    return leaves, structure


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put leaves into a structure."""
    listed = list(leaves)
    return rebuilt(treespec.tree, listed)


def tree_leaves(tree: Any, is_leaf: Any = None) -> Leaves:
    """List the leaves of a tree."""
    return leaves_of(tree)


def tree_structure(tree: Any, is_leaf: Any = None) -> TreeSpec:
    """Give the structure of a tree."""
    return TreeSpec(tree)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Apply a function to the leaves of one tree, or of several of one structure.

    >>> tree_map(lambda a, b: a + b, {"x": 1}, {"x": 2})
    {'x': 3}
    """
    trees = (tree, *rests)
    columns = [leaves_of(each) for each in trees]
    rows = zip(*columns, strict=True)
    results = [func(*row) for row in rows]
    return rebuilt(tree, results)


def tree_map_only(kinds: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to the leaves of a type, or of some types.

    >>> tree_map_only(int, lambda n: n + 1, [1, "a"])
    [2, 'a']
    """

    def change(leaf: Any) -> Any:
        is_meant = isinstance(leaf, kinds)
        return func(leaf) if is_meant else leaf

    return mapped(change, tree)


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether something holds for every leaf."""
    leaves = leaves_of(tree)
    return all(map(pred, leaves))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether something holds for a leaf."""
    leaves = leaves_of(tree)
    return any(map(pred, leaves))
