"""Nested tuples, named tuples, lists and dicts taken apart into their leaves, and put together."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from picograd.errors import ChoiceError

# types of programs: what takes one apart into items and a context, and what builds one of these
Flatten = Callable[[Any], tuple[Sequence[Any], Any]]
Unflatten = Callable[[list[Any], Any], Any]
REGISTERED: dict[type, tuple[Flatten, Unflatten]] = {}


def is_container(value: Any) -> bool:
    """Tell whether a value is taken apart rather than a leaf."""
    kind = type(value)
    return isinstance(value, (tuple, list, dict)) or kind in REGISTERED


def items_of(tree: Any) -> Sequence[Any]:
    """List what is directly in a container."""
    kind = type(tree)
    if kind in REGISTERED:
        flatten, _ = REGISTERED[kind]
        items, _ = flatten(tree)
        return items
    return list(tree.values()) if isinstance(tree, dict) else tree


def leaves_of(tree: Any) -> list[Any]:
    """List the leaves, depth first.

    >>> leaves_of({"a": [1, 2], "b": (3,)})
    [1, 2, 3]
    """
    if not is_container(tree):
        return [tree]
    return [leaf for item in items_of(tree) for leaf in leaves_of(item)]


def rebuilt(tree: Any, leaves: Sequence[Any]) -> Any:
    """Build a tree of the same structure with other leaves, in the order of `leaves_of`."""
    return fill(tree, iter(leaves))


def fill(tree: Any, leaves: Iterator[Any]) -> Any:
    """Replace the leaves by the next ones of an iterator."""
    if not is_container(tree):
        return next(leaves)
    if type(tree) in REGISTERED:
        flatten, unflatten = REGISTERED[type(tree)]
        inside, context = flatten(tree)
        filled_items = [fill(item, leaves) for item in inside]
        return unflatten(filled_items, context)
    if isinstance(tree, dict):
        filled = {key: fill(item, leaves) for key, item in tree.items()}
        return filled if type(tree) is dict else copy_of(tree, filled)
    items = [fill(item, leaves) for item in tree]
    kind = type(tree)
    if is_named_tuple(tree):
        return kind(*items)
    return kind(items)


def copy_of(tree: dict[Any, Any], filled: dict[Any, Any]) -> Any:
    """Fill a copy of a special dict (ordered, default) with other values."""
    result = tree.copy()
    result.update(filled)
    return result


def is_named_tuple(value: Any) -> bool:
    """Tell whether a tuple takes its items one by one."""
    return isinstance(value, tuple) and type(value).__new__ is not tuple.__new__


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to every leaf.

    >>> mapped(lambda n: n + 1, (1, {"a": 2}))
    (2, {'a': 3})
    """
    leaves = [function(leaf) for leaf in leaves_of(tree)]
    return rebuilt(tree, leaves)


def prefix_leaves(op: str, what: str, prefix: Any, tree: Any) -> list[Any]:
    """Spread a prefix over the leaves of a tree: one value serves everything below it.

    >>> prefix_leaves("vmap", "in_dims", (0, None), ((1, 2), 3))
    [0, 0, None]
    """
    if not is_container(prefix):
        count = len(leaves_of(tree))
        return [prefix] * count
    same = is_container(tree) and len(items_of(prefix)) == len(items_of(tree))
    if isinstance(prefix, dict) or isinstance(tree, dict):
        same = same and isinstance(prefix, dict) and isinstance(tree, dict)
        same = same and prefix.keys() == tree.keys()
    if not same:
        text = f"{what}={prefix!r} does not have the structure of what it describes"
        raise ChoiceError(op, text, f"give one entry per item, or one {what} for all")
    pairs = (
        [(prefix[key], tree[key]) for key in tree]
        if isinstance(tree, dict)
        else list(zip(items_of(prefix), items_of(tree)))
    )
    return [leaf for each, item in pairs for leaf in prefix_leaves(op, what, each, item)]
