"""Dataclasses that write their methods late are those of `dataclasses` to whoever uses them."""

import copy
import dataclasses
import itertools
import pickle
import random
from typing import Any, ClassVar

import pytest

from picograd.late_methods import Fields, dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """This class has a default and one that is made."""

    kinds: ClassVar[int] = 1
    start: int
    end: int = 4
    parts: list[int] = dataclasses.field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("it ends before it starts")


@dataclass
class Base:
    """This class may change, and be written before the one that is made of it."""

    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(slots=True)
class Derived(Base):
    """This class adds to it."""

    size: int = 0

    def __init__(self, size: int) -> None:
        Base.__init__(self, "derived")
        self.size = size


@dataclass(eq=False)
class Alone:
    """This class is compared by identity."""

    value: int


def test_methods_are_those_of_dataclasses() -> None:
    first, second = Range(1), Range(1, parts=[2])
    assert first == second
    assert hash(first) == hash(second)
    assert repr(second) == "Range(start=1, end=4, parts=[2])"
    assert first.parts is not Range(1).parts
    assert [each.name for each in dataclasses.fields(Range)] == ["start", "end", "parts"]
    assert (Range.kinds, Range.__match_args__) == (1, ("start", "end", "parts"))
    assert dataclasses.replace(first, end=9) == Range(1, 9)
    assert Range.__init__.__qualname__ == "Range.__init__"
    with pytest.raises(TypeError, match="unexpected keyword argument 'stop'"):
        Range(1, stop=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="ends before"):
        Range(5)
    assert not hasattr(first, "__dict__")


@pytest.mark.parametrize("use", [repr, hash, lambda each: each == each])
def test_any_method_may_be_the_first(use: Any) -> None:
    @dataclass(frozen=True, slots=True)
    class Made:
        value: int = 1

    made: Any = object.__new__(Made)
    object.__setattr__(made, "value", 3)
    use(made)
    assert made == Made(3) != Made()


def test_frozen_objects_are_copied_and_not_changed() -> None:
    made: Any = Range(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'end'"):
        made.end = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'end'"):
        del made.end
    for same in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same == made

    class Named(Range):
        """This class may have attributes beside the fields."""

    named: Any = Named(1)
    named.name = "first"
    with pytest.raises(dataclasses.FrozenInstanceError):
        named.start = 2
    assert (named.name, named.start) == ("first", 1)


def test_own_methods_stay() -> None:
    made = Derived(3)
    assert (repr(made), made.size, made == Derived(3)) == (
        "Derived(name='derived', size=3)",
        3,
        True,
    )
    assert repr(Base("own")) == "<own>"
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)
    assert len({Alone(1), Alone(1)}) == 2


def test_a_default_that_is_no_argument_is_set_beside_slots() -> None:
    @dataclass(slots=True)
    class Counter:
        name: str
        count: int = dataclasses.field(init=False, default=3)

    made = Counter("of steps")
    assert made.count == 3
    with pytest.raises(TypeError):
        Counter("of steps", 4)  # type: ignore[call-arg]


def test_a_method_put_around_one_that_was_never_called_calls_it() -> None:
    @dataclass(frozen=True, slots=True)
    class Made:
        value: int = 1

    first: Any = Made.__init__
    seen = []

    def noted(self: Any, *args: Any) -> None:
        seen.append(args)
        first(self, *args)

    Made.__init__ = noted  # type: ignore[method-assign]
    assert (Made(3).value, Made(4).value) == (3, 4)
    assert seen == [(3,), (4,)]


def test_fields_are_read_when_somebody_asks() -> None:
    """Before that, a class has its slots, and what its fields begin with is not among them."""

    @dataclass(slots=True)
    class Made:
        name: str
        parts: list[int] = dataclasses.field(default_factory=list)
        count: int = 2

    assert Made.__slots__ == ("name", "parts", "count")  # type: ignore[attr-defined]
    assert isinstance(vars(Made)["__dataclass_fields__"], Fields)
    assert [each.type for each in dataclasses.fields(Made)] == [str, list[int], int]
    first, second = Made("first"), Made("second")
    assert (first.parts, first.count) == ([], 2) and first.parts is not second.parts
    assert dataclasses.is_dataclass(Made) and dataclasses.asdict(first)["name"] == "first"


def test_another_thread_sees_all_fields_or_none() -> None:
    """Those of bases alone would be written into methods."""

    @dataclass
    class First:
        one: int

    @dataclass
    class Second:
        two: int

    @dataclass
    class Made(Second, First):
        three: int

    seen = []

    class Looking(Fields):
        def __get__(self, instance: Any, cls: Any) -> dict[str, Any]:
            seen.append(set(vars(Made)["__dataclass_fields__"].known))
            return super().__get__(instance, cls)

    vars(Second)["__dataclass_fields__"].__class__ = Looking
    kind: Any = Made
    assert [each.name for each in dataclasses.fields(kind)] == ["one", "two", "three"]
    assert seen and not any(seen)


def test_methods_are_those_that_dataclasses_writes() -> None:
    """Random classes: every kind of field, frozen or not, with slots or without."""
    draw = random.Random(0)
    kinds: list[Any] = [
        lambda: dataclasses.field(default=3, compare=False),
        lambda: dataclasses.field(default_factory=list),
        lambda: dataclasses.field(init=False, default=4),
        lambda: dataclasses.field(init=False, default_factory=dict, hash=False),
        lambda: 5,
    ]
    for number in range(40):
        options = {"frozen": draw.random() < 0.5, "slots": draw.random() < 0.5}
        chosen = [draw.choice(kinds) for _ in range(draw.randrange(5))]
        made = []
        for decorate in (dataclass, dataclasses.dataclass):
            names = {"first": int, **{f"f{n}": Any for n in range(len(chosen))}}
            space = {f"f{n}": make() for n, make in enumerate(chosen)}
            space |= {"__annotations__": names, "__doc__": "", "__module__": __name__}
            kind: Any = decorate(**options)  # type: ignore[call-overload]
            made.append(kind(type(f"Made{number}", (), space)))
        ours, theirs = ([kind(1), kind(1), kind(2)] for kind in made)
        assert list(map(repr, ours)) == list(map(repr, theirs))
        for one, two in itertools.product(range(3), repeat=2):
            assert (ours[one] == ours[two]) == (theirs[one] == theirs[two])
        assert [hashed(each) for each in ours] == [hashed(each) for each in theirs]
        with pytest.raises(TypeError) as wrong:
            made[0]()
        with pytest.raises(TypeError) as wanted:
            made[1]()
        assert str(wrong.value).split("()")[1] == str(wanted.value).split("()")[1]


def hashed(value: object) -> object:
    try:
        return hash(value)
    except TypeError:
        return None
