"""Which names the code of a function reads: found from its instructions, without running it.

`paths` are what it reads by name: ("scale",) for a global or a variable of an outer function,
("settings", "scale") for an attribute of one. `own` are paths from the first argument on, which is
`self` in a method, and may be anything in another function. `attributes` are all attributes read,
`loose` those read of anything else: of a local variable, or of what a call returned, or by
`getattr`; of these, `asked`, an attribute may be missing. `is_computed` where code computes a name
(`getattr(x, name)`, `vars(x)`): it may read any. `texts` are what may be names in `globals()`.
"""

import dis
import weakref
from collections.abc import Sequence
from dataclasses import field
from types import CodeType
from typing import Any

from picograd.late_methods import dataclass

Path = tuple[str, ...]
ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
OUTER = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
LOCAL = ("",)  # what a path begins with that is read of a local variable
ASKING = ("getattr", "hasattr")  # functions that are given a name
COMPUTING = ("vars", "attrgetter", "methodcaller", "dir", "__dict__", "__getattribute__")
CALL = "PRECALL" if "PRECALL" in dis.opmap else "CALL"  # by the version of Python
CALLS = (CALL, "CALL_FUNCTION", "CALL_METHOD")
JUMPS = ("JUMP", "POP_JUMP", "FOR_ITER", "SEND")


@dataclass(slots=True)
class Names:
    """This class holds what one function reads; see the module docstring."""

    paths: set[Path] = field(default_factory=set)
    own: set[Path] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    is_computed: bool = False


KNOWN: "weakref.WeakKeyDictionary[CodeType, Names]" = weakref.WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """Find what a function and the functions defined inside it read."""
    known = KNOWN.get(code)
    if known is None:
        known = Names()
        first, outer = code.co_varnames[:1], code.co_freevars
        stack = [code]
        while stack:
            each = stack.pop()
            read(each, known, first, outer)
            stack += [const for const in each.co_consts if isinstance(const, CodeType)]
        KNOWN[code] = known
    return known


def read(code: CodeType, found: Names, first: Path, outer: Path) -> None:
    """Follow the instructions: a name, then the attributes read of it, one after the other.

    `first` is the first argument, `outer` are the variables of functions around the whole.
    """
    path: Path = ()
    instructions = list(dis.get_instructions(code))
    for at, each in enumerate(instructions):
        if each.argval in COMPUTING and each.opname in (*ATTRIBUTE, *OUTER):
            found.is_computed |= instructions[at + 1].argval != "update"  # sets them
        elif each.argval in ASKING and each.opname in OUTER:
            name = asked_name(instructions[at + 1 :])
            found.is_computed |= name is None
            found.asked.add(name or "")
            found.loose.add(name or "")
            found.attributes.add(name or "")
        elif each.argval == "globals" and each.opname in OUTER:
            found.texts.update(text for text in code.co_consts if isinstance(text, str))
        if each.opname in ATTRIBUTE:
            found.attributes.add(each.argval)
            path = (*(path or LOCAL), each.argval)
        elif not is_copy(each):  # `settings.count += 1` reads of a copy
            finish(path, found, first)
            path = start(each, outer)
    finish(path, found, first)


def is_copy(instruction: Any) -> bool:
    """Tell whether an instruction puts on the stack once more what is on top of it."""
    name = instruction.opname
    return name == "DUP_TOP" or (name == "COPY" and instruction.arg == 1)


def asked_name(following: Sequence[Any]) -> str | None:
    """Find the second argument of a call that the following instructions make, if it is a text.

    By the height of the stack: what lifts it from one to two is the second argument, at last.
    """
    height, name = 0, None
    for each in following:
        if each.opname.startswith(JUMPS):
            return None
        if each.opname in CALLS and each.arg == height:
            return name
        before = height
        height += dis.stack_effect(each.opcode, each.arg, jump=False)
        if height == 2:
            is_text = before == 1 and isinstance(each.argval, str) and each.opname == "LOAD_CONST"
            name = each.argval if is_text else None
    return None


def start(instruction: Any, outer: Path) -> Path:
    """Begin a path at an instruction that loads a variable; local ones are marked."""
    name = instruction.argval
    if "DEREF" in instruction.opname and name not in outer:  # of the function around a lambda
        return (*LOCAL, name)
    if instruction.opname in OUTER:
        return (name,)
    if instruction.opname.startswith("LOAD_FAST"):
        last = name[-1] if isinstance(name, tuple) else name  # two loads in one instruction
        return (*LOCAL, last)
    return ()


def finish(path: Path, found: Names, first: tuple[str, ...]) -> None:
    """File a path that is complete."""
    if path[:1] == LOCAL:
        if path[1:2] == first:
            found.own.add(path[2:])
        else:
            found.loose.update(path[1:])
    elif path:
        if path[:1] == first:  # read by a function inside the method
            found.own.add(path[1:])
        found.paths.add(path)
