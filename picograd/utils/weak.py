"""PyTorch's `torch.utils.weak`: dicts whose keys are objects, not what they equal, and may go.

`==` of tensors compares their elements, so that `weakref.WeakKeyDictionary` cannot hold them.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any
from weakref import ref

__all__ = [
    "TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary",
    "WeakTensorRefKey",
]  # fmt: skip


class WeakIdRef(ref):  # type: ignore[type-arg]
    """This class refers to an object weakly, and equals what refers to the very same object.

    >>> x = picograd.Tensor([1.0, 2.0])
    >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(x.clone())
    (True, False)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        """Give the object; None if it is gone."""
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        here, there = self(), other() if isinstance(other, ref) else None
        return self is other if here is None or there is None else here is there


WeakTensorRefKey = TensorWeakRef = WeakIdRef


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """This class maps objects, by identity, to values; an entry goes with its key.

    >>> x = picograd.Tensor([1.0, 2.0])
    >>> names = WeakIdKeyDictionary({x: "x"})
    >>> names[x], x.clone() in names
    ('x', False)
    >>> del x
    >>> len(names)
    0
    """

    def __init__(
        self, dict: Mapping[Any, Any] | None = None, ref_type: type[WeakIdRef] = WeakIdRef
    ) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        held = ref(self)

        def remove(key: WeakIdRef) -> None:
            owner = held()
            if owner is not None:
                owner.data.pop(key, None)

        self._remove = remove
        self.update(dict or {})

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what cannot be referred to weakly is no key
            return False

    def __iter__(self) -> Iterator[Any]:
        held = [key() for key in list(self.data)]
        return iter([key for key in held if key is not None])

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"

    def keyrefs(self) -> list[WeakIdRef]:
        """List the references that are keys."""
        return list(self.data)

    def copy(self) -> "WeakIdKeyDictionary":
        """Copy the entries."""
        return type(self)(dict(self.items()), self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> "WeakIdKeyDictionary":
        made = type(self)(None, self.ref_type)
        made.update((key, deepcopy(value, memo)) for key, value in self.items())
        return made

    def __or__(self, other: Mapping[Any, Any]) -> "WeakIdKeyDictionary":
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Mapping[Any, Any] | Iterable[Any]) -> "WeakIdKeyDictionary":
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary
