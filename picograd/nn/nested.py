"""Nested states, such as an optimizer's, as flat tensors and a description that JSON can hold.

`{"model": {...}, "optimizer": {...}, "epoch": 3}` becomes tensors named by their path and a text:
dicts, lists and tuples of tensors, numbers, strings and None come back as they were.
"""

import json
from collections.abc import Mapping
from typing import Any

from picograd.errors import DTypeError
from picograd.tensor.tensor import Tensor

PLAIN = (bool, int, float, str, type(None))


def is_nested(state: Mapping[Any, Any]) -> bool:
    """Tell whether a state holds others, so that names alone cannot describe it."""
    return any(isinstance(value, Mapping) for value in state.values())


def flatten(state: Any) -> tuple[dict[str, Tensor], str]:
    """Take a nested state apart. Raises DTypeError for what a file cannot hold.

    >>> tensors, text = flatten({"a": {0: Tensor([1.0])}, "epoch": 3})
    >>> list(tensors)
    ['a.0']
    >>> unflatten(tensors, text)["epoch"]
    3
    """
    tensors: dict[str, Tensor] = {}
    try:
        return tensors, json.dumps(_describe(state, "", tensors))
    except RecursionError:
        problem = "the state is nested too deeply, or holds itself"
        raise DTypeError("save", problem, "make it flatter") from None


def _describe(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Describe a value as [kind, content], moving its tensors to `tensors`."""
    if isinstance(value, Tensor):
        name = path
        while name in tensors:  # {"a.b": x, "a": {"b": y}}
            name += "_"
        tensors[name] = value
        return ["tensor", name]
    if isinstance(value, PLAIN):
        return ["plain", value]
    inner = f"{path}." if path else ""
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, (str, int))]
        if wrong:
            raise DTypeError("save", f"{path} has the key {wrong[0]!r}", "use text or ints")
        items = value.items()
        return ["dict", [[key, _describe(item, f"{inner}{key}", tensors)] for key, item in items]]
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_describe(x, f"{inner}{at}", tensors) for at, x in enumerate(value)]]
    problem = f"{path} is a {type(value).__name__}"
    raise DTypeError("save", problem, "keep tensors, numbers and text in nested states")


def unflatten(tensors: Mapping[str, Tensor], text: str) -> Any:
    """Put a nested state together again; ValueError for a text that `flatten` did not write."""
    try:
        return _build(json.loads(text), tensors)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("the description of the nested state is not readable") from None


def _build(description: Any, tensors: Mapping[str, Tensor]) -> Any:
    kind, content = description
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _build(item, tensors) for key, item in content}
    if kind == "plain":
        return content
    items = [_build(item, tensors) for item in content]
    return tuple(items) if kind == "tuple" else items
