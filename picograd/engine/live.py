"""A table of the tensors that are alive, by the identity of their nodes, in the order of recording.

Tensors are held by weak references without callbacks: entering one costs no Python call, nor does
its end. What is gone stays in the table until `sweep`, and is never handed out.
"""

import weakref
from typing import Any

SMALLEST = 128  # entries from which it is worth looking for those that are gone


class LiveTable:
    """See the module docstring; `data` has the references. Callers hold `pending.LOCK`."""

    __slots__ = ("data", "limit")
    limit: int

    def __init__(self) -> None:
        self.data: dict[int, weakref.ref[Any]] = {}
        self.limit = SMALLEST

    def __len__(self) -> int:
        return len(self.tensors())

    def __contains__(self, key: int) -> bool:
        return self.get(key) is not None

    def get(self, key: int) -> Any:
        """Find the tensor of a node by its identity; None if there is none, or it is gone."""
        reference = self.data.get(key)
        return None if reference is None else reference()

    def set(self, key: int, tensor: Any) -> None:
        """Enter a tensor, as the last one."""
        if key in self.data:
            del self.data[key]  # of a node that is gone: another one has its identity
        self.data[key] = weakref.ref(tensor)

    def move(self, key: int, to: int, tensor: Any) -> None:
        """Enter a tensor under another identity, as the last one."""
        data = self.data
        found = data.get(key)
        if found is not None and found() is tensor:
            del data[key]
        data.pop(to, None)
        data[to] = weakref.ref(tensor)

    def drop(self, key: int) -> None:
        """Take an entry off."""
        self.data.pop(key, None)

    def identities(self) -> list[int]:
        """List the identities of the nodes of tensors that are alive."""
        return [key for key, reference in list(self.data.items()) if reference() is not None]

    def tensors(self) -> list[Any]:
        """List the tensors that are alive, in order."""
        found = [reference() for reference in list(self.data.values())]  # others may record
        return [tensor for tensor in found if tensor is not None]

    def sweep(self) -> None:
        """Let go what is gone, once that may be half of the table."""
        if len(self.data) > self.limit:
            for key in [key for key, reference in self.data.items() if reference() is None]:
                del self.data[key]
            self.limit = max(SMALLEST, 2 * len(self.data))
