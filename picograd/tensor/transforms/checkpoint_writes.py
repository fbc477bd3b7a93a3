"""What a checkpointed function writes in place, and writes once more when its gradient is taken."""

from collections.abc import Sequence
from typing import Any

from picograd.graph import build
from picograd.graph.node import Node, copied_on
from picograd.tensor.core.recording import write

Note = tuple[Any, Node, Node]  # a tensor, weakly; its node before a write, and the value written


class Writes:
    """This class is what a checkpointed function wrote: the statistics of a batch norm, say."""

    def __init__(self, notes: Sequence[Note], result: Any) -> None:
        self.notes = notes
        self.firsts: dict[int, Note] = {}  # the first note of each tensor that is still there
        self.afters: list[Node | None] = []  # by note, the node that the tensor has after it
        following: dict[int, Node] = {}
        for note in reversed(notes):
            tensor, before, _ = note
            key, target = id(tensor), tensor()
            if target is not None and target is not result and target.is_leaf:
                self.firsts[key] = note
                following.setdefault(key, target._node)
            self.afters.append(following.get(key))
            following[key] = before
        self.afters.reverse()

    def repeat(self, values: dict[int, Node], done: dict[int, Node]) -> None:
        """Write again, over what is there by now; `values` are in the place of the inputs.

        `done` has the copies that the gradient is taken of, so that what both need is computed
        once. If those read what was written, they show the values of then.
        """
        targets = {}
        for key, (tensor, _, _) in self.firsts.items():
            target = tensor()
            if target is not None and target.is_leaf:
                targets[key] = target
        befores = {key: self.firsts[key][1] for key in targets}
        if any(id(before) in done for before in befores.values()):
            done = dict(values)
        for key, before in befores.items():
            done[id(before)] = targets[key]._node
        made: dict[int, Node] = {}
        for (tensor, _, value), after in zip(self.notes, self.afters):
            (copied,) = copied_on([value], done)
            made[id(tensor)] = copied
            if after is not None:
                done[id(after)] = copied
        for key, target in targets.items():
            write(target, build.detach(made[key]), False)
