"""PyTorch's `torch.utils._pytree`: nested containers as leaves and a structure.

Types are taken apart that SUPPORTED_NODES has; of others, such as classes derived from dict, a
value is a leaf. `is_leaf` says of more values that they are.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from picograd.errors import ValueRangeError
from picograd.late_methods import dataclass
from picograd.tensor.core.sizes import Size
from picograd.tensor.transforms.pytree import REGISTERED, Flatten, Unflatten, is_named_tuple

Leaves = list[Any]
PyTree = Context = Any
KeyPath = tuple[Any, ...]
Test = Callable[[Any], bool]


class NodeDef(NamedTuple):
    """This class is how values of a type are taken apart and built."""

    type: Any
    flatten_fn: Flatten
    unflatten_fn: Unflatten
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None


@dataclass(frozen=True)
class SequenceKey:
    """This class is a place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class MappingKey:
    """This class is a key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """This class is a name of a named tuple, or of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class TreeSpec:
    """This class is the structure of a tree: the type of its root, and of what is below it.

    >>> leaves, spec = tree_flatten({"a": [1, 2]})
    >>> leaves, spec.num_leaves, tree_unflatten([3, 4], spec)
    ([1, 2], 2, {'a': [3, 4]})
    """

    def __init__(self, type: Any, context: Any, children_specs: Iterable["TreeSpec"]) -> None:
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_children = len(self.children_specs)
        self.num_nodes: int = 1 + sum(each.num_nodes for each in self.children_specs)
        self.num_leaves: int = sum(each.num_leaves for each in self.children_specs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self.parts() == other.parts()

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), *self.children_specs))

    def __repr__(self) -> str:
        name = getattr(self.type, "__name__", self.type)
        return f"TreeSpec({name}, {self.context}, {self.children_specs})"

    def parts(self) -> tuple[Any, ...]:
        """Give what equal structures have in common."""
        return self.type, self.context, self.children_specs

    def is_leaf(self) -> bool:
        """Tell whether the tree is one leaf."""
        return self.type is None

    def children(self) -> list["TreeSpec"]:
        """List the structures of what is directly in the root."""
        return list(self.children_specs)

    def child(self, index: int) -> "TreeSpec":
        """Give one of them."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Put leaves into the structure. Raises ValueRangeError for another number of them."""
        listed = list(leaves)
        if len(listed) != self.num_leaves:
            text = f"there are {len(listed)} leaves, and the structure has {self.num_leaves}"
            raise ValueRangeError("tree_unflatten", text, "pass one for each")
        return self.filled(iter(listed))

    def filled(self, leaves: Iterator[Any]) -> Any:
        """Build the tree of the next leaves."""
        if self.is_leaf():
            return next(leaves)
        items = [each.filled(leaves) for each in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(items, self.context)

    def flatten_up_to(self, tree: Any) -> Leaves:
        """List what another tree has in the places of the leaves. Raises ValueRangeError.

        >>> tree_structure((1, 2)).flatten_up_to(([3], 4))
        [[3], 4]
        """
        if self.is_leaf():
            return [tree]
        kind = _get_node_type(tree)
        items: Sequence[Any] = ()
        context: Any = None
        if kind == self.type:
            items, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if kind != self.type or context != self.context or len(items) != self.num_children:
            text = f"{tree!r} does not have the structure {self}"
            raise ValueRangeError("tree_map", text, "pass trees of one structure")
        pairs = zip(self.children_specs, items)
        return [leaf for spec, item in pairs for leaf in spec.flatten_up_to(item)]


class LeafSpec(TreeSpec):
    """This class is the structure of one leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def __repr__(self) -> str:
        return "*"


def register_pytree_node(
    cls: type,
    flatten_fn: Flatten,
    unflatten_fn: Unflatten,
    *,
    flatten_with_keys_fn: Any = None,
    **naming: Any,
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
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def _list_flatten(d: Any) -> tuple[Leaves, Any]:
    """Take a list or tuple apart."""
    return list(d), None


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Take a list apart into places and items."""
    return [(SequenceKey(at), item) for at, item in enumerate(d)], None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    """Build a list."""
    return list(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[Leaves, Any]:
    """Take a dict apart, as programs do that register types like it."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Take a dict apart into keys and items."""
    return [(MappingKey(key), item) for key, item in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    """Build a dict of values and their keys."""
    return dict(zip(context, values))


def _namedtuple_flatten(d: Any) -> tuple[Leaves, Any]:
    """Take a named tuple apart."""
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Take a named tuple apart into names and items."""
    return [(GetAttrKey(name), item) for name, item in zip(d._fields, d)], type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Any) -> Any:
    """Build a named tuple of a type."""
    return context(*values)


def default_flatten(d: Any) -> tuple[Leaves, Any]:
    """Take a dict with a default apart."""
    return list(d.values()), [d.default_factory, list(d)]


SUPPORTED_NODES: dict[Any, NodeDef] = {
    each.type: each
    for each in (
        NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
        NodeDef(tuple, _list_flatten, lambda items, _: tuple(items), _list_flatten_with_keys),
        NodeDef(Size, _list_flatten, lambda items, _: Size(items), _list_flatten_with_keys),
        NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
        NodeDef(
            NamedTuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys
        ),
        NodeDef(
            OrderedDict,
            _dict_flatten,
            lambda items, keys: OrderedDict(zip(keys, items)),
            _dict_flatten_with_keys,
        ),
        NodeDef(
            defaultdict,
            default_flatten,
            lambda items, context: defaultdict(context[0], zip(context[1], items)),
            _dict_flatten_with_keys,
        ),
        NodeDef(
            deque,
            lambda d: (list(d), d.maxlen),
            lambda items, most: deque(items, maxlen=most),
            _list_flatten_with_keys,
        ),
    )
}


def _get_node_type(tree: Any) -> Any:
    """Name how a value is taken apart, if it is."""
    kind = type(tree)
    return NamedTuple if kind not in SUPPORTED_NODES and is_named_tuple(tree) else kind


is_namedtuple = is_named_tuple


def is_structseq_instance(value: object) -> bool:
    """Tell that no value is a sequence of C with names."""
    return False


def tree_is_leaf(tree: Any, is_leaf: Test | None = None) -> bool:
    """Tell whether a value is a leaf."""
    is_meant = is_leaf is not None and is_leaf(tree)
    return is_meant or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def walked(tree: Any, is_leaf: Test | None, leaves: list[tuple[KeyPath, Any]], at: Any) -> TreeSpec:
    """Give the structure of a tree, and list its leaves; `at` is the path to it, or None."""
    if tree_is_leaf(tree, is_leaf):
        leaves.append((at, tree))
        return LeafSpec()
    node = SUPPORTED_NODES[_get_node_type(tree)]
    items, context = node.flatten_fn(tree)
    paths = [at] * len(items)
    if at is not None:
        named = node.flatten_with_keys_fn or (lambda tree: _list_flatten_with_keys(items))
        paths = [(*at, key) for key, _ in named(tree)[0]]
    pairs = zip(items, paths)
    children = [walked(each, is_leaf, leaves, path) for each, path in pairs]
    return TreeSpec(node.type, context, children)


def tree_flatten(tree: Any, is_leaf: Test | None = None) -> tuple[Leaves, TreeSpec]:
    """List the leaves of a tree, and its structure."""
    leaves: list[tuple[KeyPath, Any]] = []
    spec = walked(tree, is_leaf, leaves, None)
    return [leaf for _, leaf in leaves], spec


def tree_flatten_with_path(
    tree: Any, is_leaf: Test | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """List the leaves of a tree with the keys that lead to each, and its structure.

    >>> leaves, _ = tree_flatten_with_path({"a": [1, 2]})
    >>> [(keystr(path), leaf) for path, leaf in leaves]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    leaves: list[tuple[KeyPath, Any]] = []
    spec = walked(tree, is_leaf, leaves, ())
    return leaves, spec


def keystr(kp: KeyPath) -> str:
    """Write the keys that lead to a leaf."""
    return "".join(map(str, kp))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put leaves into a structure."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Test | None = None) -> Leaves:
    """List the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Test | None = None) -> Iterator[Any]:
    """Walk through the leaves of a tree."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Test | None = None) -> TreeSpec:
    """Give the structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Test | None = None) -> Any:
    """Apply a function to the leaves of one tree, or of several of one structure.

    >>> tree_map(lambda a, b: a + b, {"x": 1}, {"x": 2})
    {'x': 3}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *map(spec.flatten_up_to, rests)))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Test | None = None) -> Any:
    """Call a function of the leaves for what it does; gives the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Test | None = None
) -> Any:
    """Apply a function to the path and the value of each leaf.

    >>> tree_map_with_path(lambda path, leaf: f"{keystr(path)}={leaf}", [1, 2])
    ['[0]=1', '[1]=2']
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [list(each) for each in zip(*pairs)] or [[], []]
    others = map(spec.flatten_up_to, rests)
    return spec.unflatten(map(func, *columns, *others))


def map_only(kinds: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Make a decorator of functions that leave leaves as they are which are of other types."""

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda leaf: func(leaf) if is_of(leaf, kinds) else leaf

    return decorate


def is_of(leaf: Any, kinds: Any) -> bool:
    """Tell whether a leaf is of a type, or of some, or a function says so."""
    is_test = callable(kinds) and not isinstance(kinds, type)
    return bool(kinds(leaf)) if is_test else isinstance(leaf, kinds)


def tree_map_only(
    kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Test | None = None
) -> Any:
    """Apply a function to the leaves of a type, or of some types.

    >>> tree_map_only(int, lambda n: n + 1, [1, "a"])
    [2, 'a']
    """
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    kinds: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Test | None = None
) -> Any:
    """Call a function of the leaves of a type for what it does; gives the tree."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Test, tree: Any, is_leaf: Test | None = None) -> bool:
    """Tell whether something holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Test, tree: Any, is_leaf: Test | None = None) -> bool:
    """Tell whether something holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, pred: Test, tree: Any, is_leaf: Test | None = None) -> bool:
    """Tell whether something holds for every leaf of a type."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if is_of(leaf, kinds))


def tree_any_only(kinds: Any, pred: Test, tree: Any, is_leaf: Test | None = None) -> bool:
    """Tell whether something holds for a leaf of a type."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if is_of(leaf, kinds))
