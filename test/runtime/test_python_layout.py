"""Where slots lie: found by a mark, refused where that is not certain."""

import ctypes
import weakref

import pytest

from picograd.errors import InternalError
from picograd.runtime import python_layout
from picograd.runtime.python_layout import is_possible, offsets, place_of, words_of


class Base:
    __slots__ = ("first", "second", "__weakref__")


class Derived(Base):
    __slots__ = ("third",)


@pytest.mark.skipif(not is_possible(), reason="another interpreter")
def test_slots_are_where_python_puts_them():
    found = offsets(Derived(), "first", "second", "third")
    made = Derived()
    made.first, made.second, made.third = "a", "b", "c"
    for name, value in (("first", "a"), ("second", "b"), ("third", "c")):
        offset = found[f"Derived.{name}"]
        assert words_of(made)[offset // 8] == id(value)
    assert place_of(made, Derived) == 8
    assert weakref.ref(made)() is made


def test_looking_leaves_a_slot_as_it_was():
    made = Base()
    made.first = "kept"
    offsets(made, "first")
    assert made.first == "kept"


def test_two_places_are_refused():
    made, value = Base(), object()
    made.first = made.second = value
    with pytest.raises(InternalError, match="refers to its parts in another way"):
        place_of(made, value)


def test_an_interpreter_without_a_function_gets_no_code(monkeypatch):
    monkeypatch.setitem(python_layout.INTERFACE, "PyNoSuch_Function", ("void",))
    assert not is_possible()
    assert not hasattr(ctypes.pythonapi, "PyNoSuch_Function")
