"""How calls reach a definition on nodes: arguments by name are put in place, tensors become nodes.

`axis` is another name of `dim`, `keepdims` of `keepdim`, and the first parameter of a function of
`picograd` may be called `input`; such functions take `out`, too. Errors of Python's own become
picograd's (`picograd/tensor/core/guard.py`).
"""

import functools
import inspect
import operator
import sys
from collections.abc import Callable
from types import FunctionType, GenericAlias, UnionType
from typing import Any

from picograd.dtype import DType, to_dtype
from picograd.errors import DTypeError
from picograd.graph.node import Node
from picograd.tensor.core.annotations import Axis, DTypeLike, Tensor, TensorLike
from picograd.tensor.core.function import Function
from picograd.tensor.core.guard import RAW, explained, guarded
from picograd.tensor.core.operands import Axes, Operand
from picograd.tensor.core.recording import apply, apply_each, pieces, rewrite, showing
from picograd.tensor.core.spelling import IDLE, spelled, write_out

OTHER = {"axis": "dim", "keepdims": "keepdim"}  # a second name of a parameter -> its own
REQUIRED: Any = object()  # the default of a parameter that has none
WORDS = {  # what a definition on nodes sees -> what users pass
    Node: Tensor,
    Operand: TensorLike,
    Axes: Axis,
    DType | None: DTypeLike | None,
}


def method_of(row: Function) -> Any:
    """Make the method of `Tensor`."""
    if row.is_recorded:
        return named(taking(row, Spelling(row), False), row, f"Tensor.{row.name}")
    return spelled(guarded(row.definition), row.name, True)


def function_of(row: Function, module: str) -> Any:
    """Make the function that a module shows."""
    if row.is_recorded:
        made = named(taking(row, Spelling(row, "input"), True), row, row.name)
    else:
        made = spelled(guarded(row.definition), row.name)
    made.__module__, made.__qualname__, made.__name__ = module, row.name, row.name
    return made


def in_place_of(row: Function) -> Any:
    """Make the method that writes the result back."""

    def call(tensor: Any, *args: Any, **options: Any) -> Any:
        return rewrite(tensor, row.name, getattr(tensor, row.name)(*args, **options))

    call.__name__, call.__qualname__ = f"{row.name}_", f"Tensor.{row.name}_"
    call.__doc__ = f"Write the result of `{row.name}` back, in place."
    vars(call)["form_of"] = row.name
    return guarded(call)


def recording_of(row: Function) -> Callable[..., Any]:
    """Choose what records a definition; note if its results are views."""
    definition: Any = row.definition
    if row.view:
        showing(*[definition] * (row.view == "if"), always=[definition] * (row.view == "always"))
    if row.pieces:
        return pieces
    if definition.__annotations__["return"] is Node:
        return apply
    if row.returns is None:
        return apply_each

    def record(*operands: Any) -> Any:
        found = apply_each(*operands)
        return row.returns._make(found) if type(found) is tuple else found

    return record


class Spelling:
    """This class puts the arguments of calls in their places; a missing or unknown one is an error.

    `first` is another name of the first parameter.
    """

    def __init__(self, row: Function, first: str = "") -> None:
        code = row.definition.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.op, self.most = row.name, code.co_argcount
        self.names = code.co_varnames[:count]
        self.spread = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
        by_name = row.definition.__kwdefaults__ or {}
        given = row.definition.__defaults__ or ()
        required = [REQUIRED] * (self.most - len(given))
        keywords = [by_name.get(name, REQUIRED) for name in self.names[self.most :]]
        self.defaults = (*required, *given, *keywords)
        self.places = {name: place for place, name in enumerate(self.names)}
        others = [*OTHER.items(), *row.also, (first or self.names[0], self.names[0])]
        for other, name in others:
            if name in self.places:
                self.places.setdefault(other, self.places[name])
        self.dtype = self.places.get("dtype", count)
        self.plain = sys.maxsize if self.spread else min(self.most, self.dtype)

    def read(self, *args: Any, **options: Any) -> list[Any]:
        """List the arguments of a call by place."""
        if self.spread:
            args = (*args, options.pop(self.spread)) if self.spread in options else args
        elif len(args) > self.most:
            text = f"takes {self.most} positional arguments but {len(args)} were given"
            raise TypeError(f"{self.op}() {text}")
        filled = [*args, *self.defaults[len(args) :]]
        seen = dict(zip(range(len(args)), self.names))
        for name, value in options.items():
            place = self.places.get(name)
            if place is None:
                if name not in IDLE:
                    raise TypeError(f"{self.op}() got an unexpected keyword argument '{name}'")
            elif place in seen:
                first, second = sorted((seen[place], name))
                text = f"both {first} and {second} were given"
                raise DTypeError(self.op, text, "pass one of them")
            else:
                filled[place], seen[place] = value, name
        if any(value is REQUIRED for value in filled):
            name = self.names[filled.index(REQUIRED)]
            raise TypeError(f"{self.op}() missing a required argument: '{name}'")
        if self.dtype < len(filled) and filled[self.dtype] is not None:
            filled[self.dtype] = to_dtype(filled[self.dtype])
        return filled


def taking(row: Function, spelling: Spelling, has_out: bool) -> FunctionType:
    """Make the function of tensors that records a definition on nodes."""
    core, record = by_place(row.definition, spelling), recording_of(row)
    plain, read = spelling.plain, spelling.read

    def call(*args: Any, **options: Any) -> Any:
        try:
            if not options and len(args) <= plain:
                return record(core, *args)
            out = options.pop("out", None) if has_out else None
            result = record(core, *read(*args, **options))
        except RAW as error:
            raise explained(call, error, args, options)  # noqa: B904
        return result if out is None else write_out(row.name, result, out)

    vars(call)["read"] = read
    return call  # type: ignore[return-value]


def by_place(definition: Any, spelling: Spelling) -> Any:
    """Give a definition whose parameters that go by name go by place, too."""
    code = definition.__code__
    if not code.co_kwonlyargcount:
        return definition
    code = code.replace(co_argcount=len(spelling.names), co_kwonlyargcount=0)
    defaults = tuple(each for each in spelling.defaults if each is not REQUIRED)
    space, closure = definition.__globals__, definition.__closure__
    return FunctionType(code, space, definition.__name__, defaults, closure)


def named(call: FunctionType, row: Function, path: str) -> FunctionType:
    """Name a function made of a row; its signature is the definition's, in the words of users."""
    shown = row.definition
    call.__name__, call.__qualname__, call.__doc__ = row.name, path, shown.__doc__
    call.__module__ = shown.__module__
    space, closure = shown.__globals__, shown.__closure__
    seen = FunctionType(shown.__code__, space, row.name, shown.__defaults__, closure)
    seen.__kwdefaults__ = shown.__kwdefaults__
    words = {name: in_words(word) for name, word in shown.__annotations__.items()}
    if row.returns is not None:
        words["return"] = Any if "|" in str(words["return"]) else row.returns
    seen.__annotations__ = words
    vars(call)["__wrapped__"] = seen
    return call


def in_words(word: Any) -> Any:
    """Turn a type of a definition on nodes into the one that users see."""
    if word in WORDS or not isinstance(word, UnionType | GenericAlias):
        return WORDS.get(word, word)
    parts = tuple(in_words(each) for each in word.__args__)
    if isinstance(word, UnionType):
        return functools.reduce(operator.or_, parts)
    origin: Any = word.__origin__
    return origin[parts]
