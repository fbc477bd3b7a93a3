"""PyTorch's `torch.utils._pytree`: nested containers as leaves and a structure."""

from collections.abc import Callable, Iterable
from typing import Any

from picograd.tensor.transforms.pytree import (
    REGISTERED,
    Flatten,
    Unflatten,
    is_container,
    leaves_of,
    mapped,
    rebuilt,
)


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
        return hash((self.num_leaves, type(self.tree)))

    def __repr__(self) -> str:
        return f"TreeSpec({self.tree})"

    def is_leaf(self) -> bool:
        """Tell whether the tree is one leaf."""
        return not is_container(self.tree)


Leaves = list[Any]
PyTree = Any


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **naming: Any
) -> None:
    """Let objects of a type be trees, for `vmap` and `func` too.

    `flatten_fn(object)` gives items and a context, `unflatten_fn(items, context)` an object.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ([p.x, p.y], None), lambda items, _: Pair(*items))
    >>> tree_map(lambda n: n + 1, Pair(1, 2)).y
    3
    """
    REGISTERED[cls] = flatten_fn, unflatten_fn


_register_pytree_node = register_pytree_node


def _dict_flatten(d: dict[Any, Any]) -> tuple[Leaves, Any]:
    """Take a dict apart, as programs do that register types like it."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    """Build a dict of values and their keys."""
    return dict(zip(context, values))


def _namedtuple_flatten(d: Any) -> tuple[Leaves, Any]:
    """Take a named tuple apart."""
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Any) -> Any:
    """Build a named tuple of a type."""
    return context(*values)


_dict_flatten_with_keys, _namedtuple_flatten_with_keys = _dict_flatten, _namedtuple_flatten


def tree_flatten(tree: Any, is_leaf: Any = None) -> tuple[Leaves, TreeSpec]:
    """List the leaves of a tree, and its structure."""
    return leaves_of(tree), TreeSpec(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put leaves into a structure."""
    return rebuilt(treespec.tree, list(leaves))


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
    results = [func(*row) for row in zip(*columns, strict=True)]
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
    return all(map(pred, leaves_of(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether something holds for a leaf."""
    return any(map(pred, leaves_of(tree)))
