"""Updates: what a step of an optimizer writes, told by its formulas instead of by nodes.

A step writes every parameter and its state, a node each for the new value and for the write. Nobody
sees these: a step is computed at once. So it is told by its folded formulas, and by which of their
inputs it writes:

    Update(formula of x and g, targets (0,), [x])      x = result 0 of the formula

The plan is found by the formulas (engine/quick.py); the nodes are made where that does not know it.
"""

import operator
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from sys import getrefcount
from typing import Any

from picograd.buffer import Buffer, Overwritten, Storage
from picograd.errors import check
from picograd.graph.build import assign
from picograd.graph.formula import Formula, results_of
from picograd.graph.node import Node
from picograd.helpers import Key
from picograd.late_methods import dataclass


@dataclass(slots=True)
class Update:
    """A folded formula, which of its inputs get its results, and the tensors whose they are.

    `kind` tells what of its inputs the formula does not: their shapes and dtypes.
    """

    whole: Node
    targets: tuple[int, ...]
    tensors: list[Any]
    kind: Key
    sources: list[Any]  # the tensors of all inputs

    def written(self) -> Iterator[Node]:
        """List the leaves whose memory is written."""
        inputs = self.whole.inputs
        return (inputs[place] for place in self.targets)

    def writes(self) -> list[Node]:
        """Make the nodes of the writes."""
        return [*map(assign, self.written(), results_of(self.whole))]

    def pairs(self) -> list[tuple[Any, Node]]:
        """List the tensors with their new values."""
        return list(zip(self.tensors, results_of(self.whole)))

    def can_write(self) -> bool:
        """Tell whether each tensor has memory of its own, for values as they are."""
        formula: Formula = self.whole.arg
        kinds = [(leaf.shape, leaf.dtype) for leaf in self.written()]
        is_alike = kinds == list(formula.kinds)
        return is_alike and have_own_memory(self.tensors, self.written())


@dataclass(slots=True)
class Alone:
    """Has a leaf as a tensor does."""

    _node: object


def have_own_memory(tensors: Iterable[Any], leaves: Iterable[Node]) -> bool:
    """Tell whether tensors are leaves of memory that no view shows and no write waits for."""
    for tensor, leaf in zip(tensors, leaves):
        if tensor._node is not leaf or leaf.op != "buffer" or leaf.realized is not None:
            return False
        if tensor._views is not None:
            tensor._views = [each for each in tensor._views if each() is not None] or None
        if tensor._view is not None or tensor._views is not None or type(leaf.arg) is not Storage:
            return False
        if tensor._tracks and (leaf.leaf is None or leaf.leaf() is not tensor):
            return False
    return True


def holders(tensor: Any) -> int:
    """Count the references to the leaf of a tensor, as `move_on` does."""
    older = tensor._node
    return getrefcount(older)


ALONE = holders(Alone(object()))  # differs between versions of Python


def move_on(
    tensors: Sequence[Any], buffers: Sequence[Any], counts: Iterable[int], live: Any
) -> None:
    """Give tensors that were written the next version of their memory.

    Leaves stay where none but those that are counted have them: no graph sees what becomes of them.
    Older graphs name what is gone.
    """
    for tensor, buffer, count in zip(tensors, buffers, counts):
        older = tensor._node
        storage: Storage = older.arg
        if getrefcount(older) > ALONE + count:
            leaf = Node(older.op, (), storage, older.shape, older.dtype, older.device)
            leaf.leaf = weakref.ref(tensor)
            tensor._node, tensor._history = leaf, None
            live.move(id(older), id(leaf), tensor)
            # last: where the handler of a signal raises before, no tensor names what is gone
            older.arg = Overwritten(storage, storage.version)
        if storage.source is None:
            storage.version += 1
        else:
            storage.count_writes()
        storage.buffer = buffer


def settle(updates: Sequence[Update], buffers: Sequence[Buffer], live: Any) -> None:
    """Give the tensors of updates, which have leaves too, the next version of their memory."""
    tensors = [tensor for each in updates for tensor in each.tensors]
    check(len(tensors) == len(buffers), "an update has a result for each of its tensors")
    move_on(tensors, buffers, repeat(1), live)


def told_of(optimizer: Any) -> tuple[list[Any], list[Any]]:
    """List all that a step of an optimizer depends on: tensors, and options that are code."""
    state = optimizer.state
    found, flags = [*state], []
    for values in state.values():
        found += values.values()
    for group in optimizer.param_groups:
        found += group.parameters
        for numbers in group.numbers.values():
            found += numbers.values()
        flags.append(group.flags())
    kind = type(optimizer)
    return found, [*flags, kind.prepare, kind.decay, kind.update]


def steps_as(optimizer: Any, told: tuple[list[Any], list[Any]], found: Any) -> bool:
    """Tell whether an optimizer steps as it was told, skipping its step where `found` says so."""
    (tensors, flags), (known, others) = told_of(optimizer), told
    if len(tensors) != len(known) or flags != others or optimizer.found_inf is not found:
        return False
    return all(map(operator.is_, tensors, known))
