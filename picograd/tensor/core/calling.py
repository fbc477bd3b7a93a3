"""How calls reach a definition on nodes: arguments by name are put in place, tensors become nodes.

NumPy's names of arguments are other names of ours (`OTHER`, `NUMPY`), and the first parameter of a
function of `picograd` may be called `input`; such functions, and methods with options, take `out`.
Errors of Python's own become picograd's (`picograd/tensor/core/guard.py`).
"""

import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import FunctionType, UnionType
from typing import Any, Union, get_args, get_origin

from picograd.dtype import DType, to_dtype
from picograd.engine.followed import EVENTS, MISS, SCALING
from picograd.errors import DTypeError
from picograd.graph.node import Node
from picograd.tensor.core.annotations import Axis, DTypeLike, Tensor, TensorLike
from picograd.tensor.core.argument_kinds import check_arguments, checks_of, with_numbers
from picograd.tensor.core.function import Function, innermost
from picograd.tensor.core.guard import RAW, explained, guarded
from picograd.tensor.core.operands import Axes, Operand
from picograd.tensor.core.recipes import note_pure
from picograd.tensor.core.recording import (
    Recorded,
    apply,
    apply_each,
    become,
    maybe_in_place,
    pieces,
    rewrite,
    showing,
)
from picograd.tensor.core.repeated import repeated
from picograd.tensor.core.spelling import (
    IDLE,
    NUMPY,
    OTHER,
    RENAMED,
    parameter_names,
    spelled,
    taking_older,
    write_out,
)
from picograd.tensor.core.subclasses import Public, ask, kinds_at

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
        spelling = Spelling(row)  # NumPy calls methods with `out`: numpy.mean(tensor)
        call = taking(row, spelling, not spelling.takes_one)
        return named(taking_older(call, row.name), row, f"Tensor.{row.name}")
    made = spelled(guarded(row.definition, row.name), row.name, True)
    made.__name__, made.__qualname__ = row.name, f"Tensor.{row.name}"
    return staticmethod(made) if row.static else made


def function_of(row: Function, module: str) -> Any:
    """Make the function that a module shows."""
    made: Any = guarded(row.definition, row.name)
    inner = made
    if row.is_recorded:
        inner = taking(row, Spelling(row, "input"), True)
        made = named(taking_older(inner, row.name), row, row.name)
        made = writing_over(made, row) if row.inplace else made
    elif parameter_names(made):
        made = taking_older(spelled(made, row.name), row.name)
    made.__module__, made.__qualname__, made.__name__ = module, row.name, row.name
    shown = Public(made)
    vars(inner)["shown"] = vars(made)["shown"] = shown  # what a class is asked about
    return shown


def late_functions(
    space: dict[str, Any], rows: Mapping[str, Function]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Write `__getattr__` and `__dir__` of a module that makes its functions when asked for them.

    Making all takes a tenth of `import picograd`.
    """

    def find(name: str) -> Any:
        if name not in rows:
            raise AttributeError(f"module {space['__name__']!r} has no attribute {name!r}")
        return space.setdefault(name, function_of(rows[name], space["__name__"]))

    return find, lambda: sorted({*space, *space["__all__"]})


def writing_over(function: Any, row: Function) -> Any:
    """Let a function take `inplace` after its other arguments: then it writes over its input."""
    most = row.written.__code__.co_argcount

    def call(*args: Any, **options: Any) -> Any:
        inplace = options.pop("inplace", False)
        if len(args) > most:
            *given, inplace = args
            args = tuple(given)
        result = function(*args, **options)
        given = args[0] if args else next(iter(options.values()))
        return maybe_in_place(row.name, given, result, inplace)

    shown = inspect.signature(function)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = inspect.Parameter("inplace", kind, default=False, annotation=bool)
    vars(call)["__signature__"] = shown.replace(parameters=[*shown.parameters.values(), added])
    call.__doc__ = function.__doc__
    return call


def overwriting(row: Function, module: str) -> Any:
    """Make the function of a module that always writes its result over its input: `relu_`."""
    function = function_of(row, module)

    def call(input: Any, *args: Any, **options: Any) -> Any:
        return rewrite(input, row.name, function(input, *args, **options))

    call.__module__, call.__qualname__ = module, f"{row.name}_"
    call.__name__ = call.__qualname__
    call.__doc__ = f"Write the result of `{row.name}` over the input, and return it."
    shown = inspect.signature(function)
    parameters = [each for each in shown.parameters.values() if each.name != "inplace"]
    vars(call)["__signature__"] = shown.replace(parameters=parameters)
    return Public(guarded(call))


def in_place_of(row: Function) -> Any:
    """Make the method that writes the result back, or gives the tensor the axes of a view."""

    def call(tensor: Any, *args: Any, **options: Any) -> Any:
        return rewrite(tensor, row.name, getattr(tensor, row.name)(*args, **options))

    def view(tensor: Any, *args: Any, **options: Any) -> Any:
        return become(f"{row.name}_", tensor, operator.methodcaller(row.name, *args, **options))

    call.__name__, call.__qualname__ = f"{row.name}_", f"Tensor.{row.name}_"
    call.__doc__ = f"Write the result of `{row.name}` back, in place."
    if row.view:
        view.__name__, view.__qualname__, call = call.__name__, call.__qualname__, view
        call.__doc__ = f"Give this tensor the axes that `{row.name}` gives; the memory stays."
    vars(call)["form_of"] = row.name
    return guarded(call)


def recording_of(row: Function) -> Callable[..., Any]:
    """Choose what records a definition; note if its results are views."""
    definition: Any = row.definition
    if row.view:
        showing(*[definition] * (row.view == "if"), always=[definition] * (row.view == "always"))
    if row.pieces:
        return pieces
    if (itself := row.itself) is not None:
        return lambda core, x, *more: x if itself(x, *more) else apply(core, x, *more)
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
        code = row.written.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.op, self.most = row.name, code.co_argcount
        self.names = code.co_varnames[:count]
        self.spread = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
        by_name = row.written.__kwdefaults__ or {}
        given = row.written.__defaults__ or ()
        required = [REQUIRED] * (self.most - len(given))
        keywords = [by_name.get(name, REQUIRED) for name in self.names[self.most :]]
        self.defaults = (*required, *given, *keywords)
        self.known: dict[tuple[Any, ...], list[int | None]] = {}  # places by kind of call
        self.places = {name: place for place, name in enumerate(self.names)}
        also = RENAMED.get(row.name, {})
        others = {**OTHER, **dict(row.also), **also, first: "input", **(NUMPY if first else {})}
        for other, name in others.items():
            name = self.names[0] if name == "input" else name
            if name in self.places:
                self.places.setdefault(other, self.places[name])
        self.dtype = self.places.get("dtype", sys.maxsize)
        self.takes_one = count == 1 and not self.spread
        self.plain = sys.maxsize if self.spread else min(self.most, self.dtype)

    def read(self, args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
        """List the arguments of a call by place."""
        if self.spread in options:
            args = (*args, options.pop(self.spread))
        count, call = len(args), (len(args), *options)
        places = self.known.get(call)
        if places is None:
            places = self.known[call] = self.places_of(count, options)
        filled = [*args, *self.defaults[count:]]
        for place, value in zip(places, options.values()):
            if place is not None:
                filled[place] = value
        if self.dtype < len(filled) and filled[self.dtype] is not None:
            filled[self.dtype] = to_dtype(filled[self.dtype])
        return filled

    def places_of(self, count: int, options: Iterable[str]) -> list[int | None]:
        """Find the places of arguments by name, beside so many others; None for what is idle."""
        if count > self.most and not self.spread:
            text = f"takes {self.most} positional arguments but {count} were given"
            raise TypeError(f"{self.op}() {text}")
        names: dict[int, str] = dict(enumerate(self.names[:count]))
        places = []
        for name in options:
            place = self.places.get(name)
            if place is None and name not in IDLE:
                raise TypeError(f"{self.op}() got an unexpected keyword argument '{name}'")
            if place in names:
                first, second = sorted((names[place], name))
                text = f"both {first} and {second} were given"
                raise DTypeError(self.op, text, "pass one of them")
            places.append(place)
            names |= {} if place is None else {place: name}
        required = [place for place, each in enumerate(self.defaults) if each is REQUIRED]
        missing = [repr(self.names[place]) for place in required if place not in names]
        if missing:
            text = f"missing {len(missing)} required argument(s): {' and '.join(missing)}"
            raise TypeError(f"{self.op}() {text}")
        return places


ADDING = ("cumprod", "cumsum", "nansum", "prod", "sum")  # `out` says in which dtype they add up


def taking(row: Function, spelling: Spelling, has_out: bool) -> FunctionType:
    """Make the function of tensors that records a definition on nodes."""
    core, record = by_place(row.definition, spelling), recording_of(row)
    note_pure(core)
    plain, read = spelling.plain, spelling.read
    if record is apply and spelling.takes_one and not has_out:  # `apply` checks the tensor itself
        return lambda x: apply(core, x)  # type: ignore[return-value]
    checks, adds = checks_of(row.definition, spelling.names), row.name in ADDING
    first = min([each.place for each in checks], default=sys.maxsize)
    words = row.definition.__annotations__

    def call(*args: Any, **options: Any) -> Any:
        if EVENTS.take is not None and (made := EVENTS.take(call, args, options)) is not MISS:
            return made
        out = None
        try:
            if not options and 0 < len(args) <= plain:
                given = args if len(args) <= first else check_arguments(row.name, checks, args)
                return record(core, *given)
            out = options.pop("out", None) if has_out else None
            if adds and len(args) <= spelling.dtype and isinstance(out, Recorded):
                options.setdefault("dtype", out.dtype)
            listed = read(args, options)
            if checks:
                listed = check_arguments(row.name, checks, listed)
            result = record(core, *listed)
        except RAW as error:
            if kinds := kinds_at(args, options):
                return ask(call, kinds, args, options)
            options |= {} if out is None else {"out": out}
            if again := with_numbers(words, spelling.names, args, options):
                return call(*again[0], **again[1])
            raise explained(call, error, args, options, row.name)  # noqa: B904
        return result if out is None else write_out(row.name, result, out)

    vars(call)["bind"] = lambda *args, **options: read(args, options)
    if row.definition in SCALING:
        SCALING.add(call)
    return call  # type: ignore[return-value]


def by_place(definition: Any, spelling: Spelling) -> Any:
    """Give a definition whose parameters that go by name go by place, too."""
    written: Any = innermost(definition)
    code = written.__code__
    if not code.co_kwonlyargcount:
        return definition
    code = code.replace(co_argcount=len(spelling.names), co_kwonlyargcount=0)
    defaults = tuple(each for each in spelling.defaults if each is not REQUIRED)
    space, closure = written.__globals__, written.__closure__
    made = FunctionType(code, space, written.__name__, defaults, closure)
    return made if written is definition else repeated(made)


def named(call: FunctionType, row: Function, path: str) -> FunctionType:
    """Name a function made of a row; its signature is the definition's, in the words of users."""
    shown = row.written
    call.__name__, call.__qualname__, call.__doc__ = row.name, path, shown.__doc__
    call.__module__ = shown.__module__
    vars(call)["__wrapped__"] = signature_of(row, "." not in path)
    return call


@cache
def signature_of(row: Function, is_function: bool) -> FunctionType:
    """Make a function that has the signature of a definition, in the words of users."""
    shown: Any = row.written
    code, space, closure = shown.__code__, shown.__globals__, shown.__closure__
    words = {name: in_words(word) for name, word in shown.__annotations__.items()}
    if is_function and code.co_argcount:  # PyTorch calls the first one so
        first, *others = code.co_varnames
        code = code.replace(co_varnames=("input", *others))
        words["input"] = words.pop(first)
    seen = FunctionType(code, space, row.name, shown.__defaults__, closure)
    seen.__kwdefaults__ = shown.__kwdefaults__
    if row.pieces:
        words["return"] = tuple[Tensor, ...]
    if row.returns is not None:
        words["return"] = Any if "|" in str(words["return"]) else row.returns
    seen.__annotations__ = words
    return seen


@cache
def in_words(word: Any) -> Any:
    """Turn a type of a definition on nodes into the one that users see."""
    parts: Any = tuple(in_words(each) for each in get_args(word))
    if word in WORDS or Node not in get_args(word):
        return WORDS.get(word, word)
    origin: Any = get_origin(word)
    return Union[parts] if origin in (Union, UnionType) else origin[parts]
