"""A table of the tensors that are alive, by the identity of their nodes, in the order of recording.

Tensors are held by weak references without callbacks: entering one costs no Python call, nor does
its end. What is gone stays in the table until `sweep`, and is never handed out.

Those that wait to be computed are listed apart: a program may hold any number of computed ones, of
a data set or a buffer of past steps, and each computation asks which wait.
"""

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from picograd.graph.node import Node

SMALLEST = 128  # entries from which it is worth looking for those that are gone


class LiveTable:
    """See the module docstring; `data` has the references. Callers hold `pending.LOCK`.

    `waiting` has those of tensors that were not computed when they were entered, by their nodes.
    """

    __slots__ = ("data", "limit", "waiting")

    def __init__(self) -> None:
        self.data: dict[int, weakref.ref[Any]] = {}
        self.waiting: dict[int, weakref.ref[Any]] = {}
        self.limit: int = SMALLEST

    def __len__(self) -> int:
        return len(self.tensors())

    def __contains__(self, key: int) -> bool:
        return self.get(key) is not None

    def get(self, key: int) -> Any:
        """Find the tensor of a node by its identity; None if there is none, or it is gone."""
        reference = self.data.get(key)
        return None if reference is None else reference()

    def set(self, node: Node, tensor: Any) -> None:
        """Enter the tensor of a node, as the last one."""
        key = id(node)
        for table in self.data, self.waiting:
            table.pop(key, None)  # of a node that is gone: another one has its identity
        self.data[key] = weakref.ref(tensor)
        if node.inputs and node.realized is None:
            self.waiting[key] = self.data[key]

    def move(self, key: int, to: int, tensor: Any) -> None:
        """Enter a tensor that was computed under another identity, as the last one."""
        data = self.data
        found = data.get(key)
        if found is not None and found() is tensor:
            data.pop(key, None)
        data.pop(to, None)
        data[to] = weakref.ref(tensor)
        self.waiting.pop(key, None)

    def follow(self, key: int, to: int, tensor: Any) -> None:
        """Enter a tensor under the node that it got, which waits, as the last one."""
        data, waiting = self.data, self.waiting
        found = data.get(key)
        if found is not None and found() is tensor:
            data.pop(key, None)
            waiting.pop(key, None)
        data.pop(to, None)
        waiting.pop(to, None)
        data[to] = waiting[to] = weakref.ref(tensor)

    def drop(self, key: int) -> None:
        """Take an entry off."""
        self.data.pop(key, None)
        self.waiting.pop(key, None)

    def owners(self, keys: Iterable[int]) -> Iterator[Any]:
        """Give the tensors of nodes that wait, by identity, one by one: no others are held."""
        for key in keys:
            reference = self.waiting.get(key)
            tensor = None if reference is None else reference()
            if tensor is not None:
                yield tensor

    def pending(self) -> list[Node]:
        """List the nodes of tensors that wait to be computed, in order. Constants never do."""
        found, table = [], self.waiting
        for key, reference in pairs_of(table):
            tensor = reference()
            node: Any = None if tensor is None else tensor.node
            if id(node) == key and node.inputs and node.realized is None:
                found.append(node)
            else:
                table.pop(key, None)
        return found

    def identities(self) -> list[int]:
        """List the identities of the nodes of tensors that are alive."""
        return [key for key, reference in pairs_of(self.data) if reference() is not None]

    def tensors(self) -> list[Any]:
        """List the tensors that are alive, in order."""
        found = [reference() for reference in list(self.data.values())]  # others may record
        return [tensor for tensor in found if tensor is not None]

    def sweep(self) -> None:
        """Let go what is gone, once that may be half of the table."""
        if len(self.data) > self.limit:
            for table in self.data, self.waiting:
                found = table.copy().items()  # a handler of signals, or what is let go, may record
                for key in [key for key, reference in found if reference() is None]:
                    table.pop(key, None)
            self.limit = max(SMALLEST, 2 * len(self.data))


def pairs_of(table: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """List the entries of a dictionary that the collector or another thread may change meanwhile.

    A copy is one step of the interpreter. A list of `items` makes a tuple for each, and the
    collector runs between tuples: what it lets go leaves the dictionary that is walked over.
    """
    return table.copy().items()
