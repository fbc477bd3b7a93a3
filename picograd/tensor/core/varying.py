"""Numbers of a way that may be others each time: those that events were given, and those made of
them. ways.py says how events are told.
"""

from collections.abc import Sequence
from typing import Any

from picograd.graph.node import Node
from picograd.number import LARGEST, LOST, Given, Note, made_of
from picograd.tensor.core.repeated import parts_of

VARYING = NUMBER, FACTOR = 6, 7  # kinds of what an event is given

NAMED = (0.0, 1.0, -1.0)
LARGEST_INT = 1 << 53  # ints up to this are floats, too


class Varying:
    """This class finds the numbers of users in a template, event by event.

    `notes` tell of which others numbers were computed.
    """

    def __init__(self, notes: dict[int, Note]) -> None:
        self.notes = notes
        self.numbered: dict[int, Any] = {}  # those that were found, by identity
        self.may_vary = LOST not in notes

    def add(self, event: Any, nodes: Sequence[Node]) -> None:
        """Note which numbers of an event's nodes are the floats that it was given.

        None may vary where it is not known of which others a number was made.
        """
        given: dict[Any, Any] = dict(enumerate(event.args))
        given.update(event.options)
        floats, fixed = {}, set()
        for at, (_, told) in given.items():
            if type(told) is float:
                floats[at] = repr(told)
            elif type(told) is int and abs(told) <= LARGEST_INT:
                fixed.add(repr(float(told)))
        varying = {at for at in floats if given[at][0] in VARYING}
        names = {*floats.values()}
        if varying and (len(names) < len(floats) or names & fixed):
            self.may_vary = False  # which is which?
        places = {}
        for at, name in floats.items():
            if type(at) is int or at in varying:
                places[name] = at
            else:
                fixed.add(name)
        for node in nodes:
            for part in parts_of(node.arg):
                if type(part) is not Given or id(part) in self.numbered:
                    continue
                is_whole = node.arg is part
                if self.is_derived(event, part):
                    self.may_vary &= is_whole
                    continue
                self.numbered[id(part)] = part
                name = repr(float(part))
                at = places.pop(name, None)
                self.may_vary &= at is not None or name in fixed
                if at in varying:
                    self.may_vary &= is_whole
                    event.numbers.append((at, id(part)))
        self.may_vary &= varying.isdisjoint(places.values())

    def is_derived(self, event: Any, part: Any) -> bool:
        """Note how a number was computed of those that were found, if it was."""
        if id(part) not in self.notes:
            return False
        notes = made_of([part], self.numbered, self.notes)
        if not notes or notes[-1][0] is not part:
            return False
        event.derived += notes
        self.numbered |= {id(number): number for number, _, _ in notes}
        return True


def as_factor(told: tuple[int, Any]) -> tuple[int, Any]:
    """Let a number that was told be another the next time, if that may be."""
    _, value = told
    return (FACTOR, value) if is_factor(value) else told


def is_factor(value: Any) -> bool:
    """Tell whether a value is a float like any other for those who multiply by it."""
    if type(value) is not float or value in NAMED:
        return False
    return -LARGEST < value < LARGEST
