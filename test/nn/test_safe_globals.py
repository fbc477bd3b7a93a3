"""Classes that programs declare to be safe for `load`."""

import io
from collections import deque
from dataclasses import dataclass

import pytest

import picograd
from picograd import Tensor, serialization
from picograd.errors import StateError
from picograd.nn import safe_globals


@dataclass
class Settings:
    width: int
    weight: Tensor


class Slotted:
    __slots__ = ("size",)


def content(value: object) -> io.BytesIO:
    file = io.BytesIO()
    picograd.save(value, file)
    file.seek(0)
    return file


def test_objects_of_declared_classes_are_read() -> None:
    settings = content({"settings": Settings(3, Tensor([1.0, 2.0]))})
    with pytest.raises(StateError, match="refused"):
        picograd.load(settings, weights_only=True)
    settings.seek(0)
    with serialization.safe_globals([Settings]):
        found = picograd.load(settings, weights_only=True)["settings"]
    assert (found.width, found.weight.tolist()) == (3, [1.0, 2.0])
    assert serialization.get_safe_globals() == []


def test_functions_and_names_may_be_declared() -> None:
    serialization.add_safe_globals([(deque, "collections.deque")])
    assert list(picograd.load(content(deque()), weights_only=True)) == []
    serialization.clear_safe_globals()
    with pytest.raises(StateError, match="deque is refused"):
        picograd.load(content(deque()), weights_only=True)


def test_slots_are_set() -> None:
    made = safe_globals.make(Slotted, ())
    safe_globals.set_state(made, (None, {"size": 4}))
    assert made.size == 4 and not safe_globals.is_safe(Slotted)
