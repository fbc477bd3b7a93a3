"""Classes of users that derive from Tensor: results have the class, `__torch_function__` is asked.

    class Named(Tensor): ...
    (Named([1.0]) + 1).sum()                  is a Named, as in PyTorch

Nothing of this is there before the first such class is defined: then `Watched`, which asks, stands
before `Tensor` among its bases, and the public functions of modules look for its tensors. Objects
that are no tensors and define `__torch_function__` are asked where a function cannot read them.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from types import FunctionType, MethodType
from typing import Any

from picograd.errors import StateError
from picograd.tensor.core.recording import Recorded

ASKS = "__torch_function__"
MODULES = (
    "picograd", "picograd.nn.functional", "picograd.tensor.math.special",
    "picograd.tensor.linalg.decompositions", "picograd.tensor.linalg.fourier",
)  # fmt: skip
WHOLE = ("checkpoint", "hessian", "jacobian", "jit", "jvp", "scan", "vjp", "vmap")  # of functions
UNASKED = (  # functions that take what a class is of as it is
    "as_tensor", "asarray", "broadcast_shapes", "from_numpy", "is_tensor", "manual_seed",
    "set_printoptions",
)  # fmt: skip
ASKING: ContextVar[Any] = ContextVar("ASKING", default=True)  # else the function that is called
# what operators are called in PyTorch, where a class is asked about them
NAMED = {
    "__abs__": "abs", "__add__": "add", "__ge__": "ge", "__gt__": "gt",
    "__iadd__": "add_", "__imul__": "mul_", "__invert__": "bitwise_not", "__isub__": "sub_",
    "__itruediv__": "div_", "__le__": "le", "__lt__": "lt", "__matmul__": "matmul",
    "__mod__": "remainder", "__mul__": "mul", "__ne__": "ne", "__neg__": "neg", "__pow__": "pow",
    "__radd__": "add", "__rmul__": "mul", "__sub__": "sub", "__truediv__": "div",
}  # fmt: skip
OPERATORS = (
    *NAMED, "__and__", "__eq__", "__floordiv__", "__getitem__", "__iand__", "__ifloordiv__",
    "__ilshift__", "__imod__", "__ior__", "__ipow__", "__irshift__", "__ixor__", "__lshift__",
    "__or__", "__rand__", "__rfloordiv__",
    "__rlshift__", "__rmatmul__", "__rmod__", "__ror__", "__rpow__", "__rrshift__", "__rshift__",
    "__rsub__", "__rtruediv__", "__rxor__", "__setitem__", "__xor__",
)  # fmt: skip
BETWEEN = (  # methods of two tensors, of which the first may be a plain one
    "add", "add_", "addcdiv", "addcmul", "atan2", "bmm", "copy_", "cross", "div", "div_", "dot",
    "eq", "ge", "gt", "le", "lerp", "lt", "masked_fill", "matmul", "maximum", "minimum", "mm",
    "mul", "mul_", "mv", "ne", "outer", "pow", "sub", "sub_", "where",
)  # fmt: skip
NOT_ASKED = ("as_subclass", "requires_grad_", "size")


@contextmanager
def not_asking(function: Any = None) -> Iterator[None]:
    """Let functions give plain tensors, and ask no class: PyTorch's DisableTorchFunctionSubclass.

    >>> from picograd.tensor.core.subclasses import not_asking
    >>> class Named(Tensor): ...
    >>> with not_asking():
    ...     type(Named([1.0]) + 1).__name__
    'Tensor'
    """
    token = ASKING.set(function)
    try:
        yield
    finally:
        ASKING.reset(token)


class Watched:
    """This class stands before `Tensor` among the bases of a user's class; `fill` adds methods."""

    __slots__ = ()

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Make the tensor here if a `__new__` of the user's passes data on."""
        made: Any = Recorded.__new__(cls)  # type: ignore[type-var]
        if args or options:
            Recorded.kind.__init__(made, *args, **options)
        return made

    def __init__(self, *args: Any, **options: Any) -> None:
        if not hasattr(self, "_node"):
            super().__init__(*args, **options)

    def __iter__(self: Any) -> Iterator[Any]:
        return iter(self.unbind(0))


def asked_kinds(values: Any) -> list[Any]:
    """List the classes to ask about operands, also in lists: a derived one before its base."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            kinds = asked_kinds(value)
        else:
            kinds = [type(value)] if is_asked(type(value)) else []
        for kind in kinds:
            if kind not in found:
                before = [at for at, each in enumerate(found) if issubclass(kind, each)]
                found.insert(before[0] if before else len(found), kind)
    return found


def kinds_to_ask(values: Any) -> list[Any]:
    """List the classes to ask about operands, here: none inside `not_asking`."""
    return asked_kinds(values) if ASKING.get() is True else []


# what stands between a function and its caller
CALLERS = {
    f"picograd.tensor.core.{name}" for name in ("calling", "guard", "spelling", "subclasses")
}


def kinds_at(args: tuple[Any, ...], options: dict[str, Any]) -> list[Any]:
    """List the classes to ask about the operands of a call that failed.

    None inside another function of tensors, which fails too then: programs named that one.
    """
    kinds = asked_kinds((*args, *options.values()))
    if ASKING.get() is None:  # switched off: only what is no tensor is asked
        kinds = [kind for kind in kinds if not issubclass(kind, Watched)]
    frame: Any = sys._getframe(2) if kinds else None
    while frame is not None and frame.f_globals.get("__name__") in CALLERS:
        frame = frame.f_back
    caller = "" if frame is None else str(frame.f_globals.get("__name__"))
    return [] if caller.startswith("picograd.tensor.") else kinds


def is_asked(kind: Any) -> bool:
    """Tell whether the class of an operand is to be asked."""
    if kind is Recorded.kind or kind in (int, float, bool, str):
        return False
    is_array = issubclass(kind, Recorded) or hasattr(kind, "__dlpack__")  # which functions read
    return issubclass(kind, Watched) or (not is_array and hasattr(kind, ASKS))


def ask(function: Callable[..., Any], kinds: Any, args: Any, options: Any) -> Any:
    """Ask classes in turn what a function gives; as it is, if there are none."""
    if not kinds:
        return function(*args, **options)
    while (shown := getattr(function, "shown", function)) is not function:
        function = shown  # spelt otherwise, then public
    for kind in kinds:
        found = getattr(kind, ASKS)(function, tuple(kinds), args, options)
        if found is not NotImplemented:
            return found
    name = getattr(function, "__name__", function)
    names = ", ".join(each.__name__ for each in kinds)
    raise TypeError(f"{name}: {names} implement no __torch_function__ for it")


def answer(cls: Any, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
    """Call a function as it is on plain tensors; what is new gets the class."""
    is_foreign = ASKING.get() == function  # of another library, which asks once more
    if is_foreign or not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with not_asking(function):
        found = function(*args, **(options or {}))
    if function == Recorded.kind.grad.__get__ or not issubclass(cls, Watched):
        return found
    return with_class(found, cls, args)


def with_class(found: Any, cls: Any, args: Any) -> Any:
    """Give tensors a class; one that was given stays as it is, and another shows its memory."""
    if isinstance(found, Recorded):
        if isinstance(found, cls):
            return found
        is_new = type(found) is Recorded.kind and not any(found is each for each in args)
        made: Any = found if is_new else found.view(found.shape)  # type: ignore[attr-defined]
        made.__class__ = cls
        return made
    if isinstance(found, (list, tuple)) and any(map(is_nest, found)):
        values = [with_class(each, cls, args) for each in found]
        return type(found)(*values) if hasattr(found, "_fields") else type(found)(values)
    return found


def is_nest(value: Any) -> bool:
    """Tell whether an entry of a result is a tensor, or has some."""
    return isinstance(value, (Recorded, tuple))


def watched(function: Any, is_operator: bool = False, shown: Any = None) -> Any:
    """Make a method or function that asks the classes of its operands first."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if ASKING.get() is not True:
            return function(*args, **options)
        kinds = asked_kinds((*args, *options.values()) if options else args)
        if not kinds:
            return function(*args, **options)
        if is_operator and len(kinds) < 2 and is_unknown(args[1:2]):
            return NotImplemented
        return ask(shown or call, kinds, args, options)

    vars(call).pop("shown", None)
    return call


class Public(functools.partial[Any]):
    """This class is a function of a module, which takes no `self` where a class has it.

    `act = picograd.tanh` in a class body is called by `self.act(x)`, as PyTorch's is, which is one
    of C. So are the calls of this class: one of Python would take as long again as short calls.
    """

    __slots__ = ()

    def __new__(cls, function: Any) -> Any:
        """Take the name, the text and the signature of a function."""
        shown = (*functools.WRAPPER_ASSIGNMENTS, "__defaults__", "__kwdefaults__")
        return functools.update_wrapper(super().__new__(cls, function), function, shown)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self

    def __repr__(self) -> str:
        return repr(vars(self)["__wrapped__"])

    def __reduce__(self) -> Any:
        return str(vars(self)["__qualname__"])

    def ask(self) -> None:
        """From now on, ask the classes of its operands first."""
        asking = watched(self.func, shown=self)
        self.__setstate__((asking, (), {}, vars(self)))  # type: ignore[attr-defined]


def publish(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Let the functions of a module be no methods of classes that have them."""
    for name in names:
        plain = namespace.get(name)
        if isinstance(plain, FunctionType):
            namespace[name] = made = Public(plain)
            made.__module__, made.__qualname__ = namespace["__name__"], name  # for pickle
            if "." not in plain.__qualname__:  # else one of methods, of which a class is asked
                vars(plain)["shown"] = made


def is_unknown(others: Any) -> bool:
    """Tell whether an operator leaves its other operand to Python."""
    known = (Recorded, int, float, complex, list, tuple)
    return any(not isinstance(each, known) and not hasattr(each, "__array__") for each in others)


def watched_property(name: str, plain: Any) -> Any:
    """Make a property that asks the class, as `x.T` and `x.grad = None` do."""

    def asks(kind: Any) -> bool:
        is_plain = getattr(getattr(kind, ASKS), "__func__", None) is PLAIN and name not in TENSORS
        return not is_plain and ASKING.get() is True

    def get(tensor: Any) -> Any:
        kind = type(tensor)
        if asks(kind):
            return ask(plain.__get__, (kind,), (tensor,), {})
        return plain.__get__(tensor, kind)

    def put(tensor: Any, value: Any) -> None:
        if asks(type(tensor)):
            ask(plain.__set__, (type(tensor),), (tensor, value), {})
        else:
            plain.__set__(tensor, value)

    return property(get, plain.fset and put, plain.fdel, plain.__doc__)


TENSORS = ("T", "H", "mT", "mH", "data", "real", "imag")  # properties that give tensors
PLAIN: Any = None  # the `__torch_function__` of Tensor


@functools.cache
def fill() -> None:
    """Give `Watched` the methods of Tensor, and let functions of modules look for its tensors."""
    kind: Any = Recorded.kind
    global PLAIN
    PLAIN = kind.__torch_function__.__func__
    for name in BETWEEN:
        setattr(kind, name, watched(getattr(kind, name)))
    for name in (*dir(kind), *OPERATORS):
        is_public = not name.startswith("_") and name not in NOT_ASKED
        value = inspect.getattr_static(kind, name, None)
        if isinstance(value, property) and is_public:
            setattr(Watched, name, watched_property(name, value))
        elif isinstance(value, FunctionType) and (is_public or name in OPERATORS):
            shown = getattr(kind, NAMED.get(name, name))
            setattr(Watched, name, watched(value, name in OPERATORS and "item" not in name, shown))
    Watched.__hash__ = kind.__hash__  # type: ignore[method-assign]
    for path in MODULES:
        module = importlib.import_module(path)
        for name in {*module.__all__}.difference(WHOLE, UNASKED):
            function = getattr(module, name, None)  # made now, if nobody asked for it
            if isinstance(function, Public):
                function.ask()
    for own in kind.__subclasses__():  # `weight * x`: Python asks the class of x last
        for name in OPERATORS if own.__module__ == "picograd.nn.parameter" else ():
            shown = getattr(kind, NAMED.get(name, name))
            setattr(own, name, watched(getattr(own, name), True, shown))


class Shown:
    """This class is a method or function that the innermost mode is asked about, before classes.

    It is equal to what it stands for: a mode finds it in a table that was made before.
    """

    def __init__(self, function: Any, shown: Any = None) -> None:
        self.function, self.shown = function, shown or self
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call it, or ask."""
        if not MODES.get():
            return self.function(*args, **options)
        return ask_mode(self.shown, kinds_to_ask((*args, *options.values())), args, options)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __eq__(self, other: object) -> bool:
        return other is self or other == self.function

    def __hash__(self) -> int:
        return hash(self.function)


def ask_mode(function: Any, kinds: list[Any], args: Any, options: Any) -> Any:
    """Ask the innermost mode what a function gives, outside its own block; then classes."""
    *outer, mode = MODES.get()
    token = MODES.set(tuple(outer))
    try:
        found = mode.__torch_function__(function, tuple(kinds), args, options)
    finally:
        MODES.reset(token)
    if found is NotImplemented and not kinds:
        name = getattr(function, "__name__", function)
        raise TypeError(f"{name}: {type(mode).__name__} gives NotImplemented, and no class is left")
    return ask(function, kinds, args, options) if found is NotImplemented else found


class TorchFunctionMode:
    """This class is a block whose `__torch_function__` is asked about functions called in it.

    That are methods of tensors, operators and the functions of modules. A mode that is asked is
    outside its own block meanwhile. Methods and functions are others inside: none costs more else.

    >>> class Log(picograd.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, function, types, args=(), kwargs=None):
    ...         print(function.__name__)
    ...         return function(*args, **(kwargs or {}))
    >>> x = picograd.ones(2)
    >>> with Log():
    ...     y = picograd.exp(x) + 1
    exp
    add
    """

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Say what a function gives."""
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self) -> Any:
        ask_of = inspect.getattr_static(self, ASKS)
        if isinstance(ask_of, (classmethod, staticmethod)):
            fix = "leave out the decorator"
            raise StateError("TorchFunctionMode", f"{ASKS} is not a method of its object", fix)
        if not SHOWN:
            show_all()
        SHOWN.setdefault("blocks", []).append(self)
        MODES.set((*MODES.get(), self))
        return self

    def __exit__(self, *error: Any) -> None:
        """End the block."""
        MODES.set(MODES.get()[:-1])
        SHOWN["blocks"].pop()
        if not SHOWN["blocks"]:
            for put_back in reversed(SHOWN["put_back"]):
                put_back()
            SHOWN.clear()


MODES: ContextVar[tuple[Any, ...]] = ContextVar("MODES", default=())
SHOWN: dict[str, list[Any]] = {}  # while a block of a mode is open, in any thread


def replace(owner: Any, name: str, made: Any) -> None:
    """Change an attribute until `SHOWN` puts it back."""
    if name in vars(owner):
        back = functools.partial(setattr, owner, name, vars(owner)[name])
    else:
        back = functools.partial(delattr, owner, name)
    SHOWN["put_back"].append(back)
    setattr(owner, name, made)


def show_all() -> None:
    """Let methods and functions ask modes, until `SHOWN` puts them back."""
    fill()
    SHOWN["put_back"] = put_back = []
    spaces = [vars(importlib.import_module(path)).values() for path in MODULES]
    public: Any = {id(each): each for each in chain(*spaces) if type(each) is Public}
    for function in public.values():
        before: Any = function.func, (), {}, vars(function)
        put_back.append(functools.partial(function.__setstate__, before))
        function.__setstate__((Shown(function.func, function), *before[1:]))
    maker = importlib.import_module("picograd.tensor.making.from_data")
    replace(maker, "tensor", Shown(maker.tensor, importlib.import_module("picograd.tensor")))
    kind: Any = Recorded.kind
    known: dict[str, Shown] = {}
    methods = [name for name in dir(kind) if not name.startswith("_")]
    for owner in (kind, Watched, *kind.__subclasses__()):
        for name in (*methods, *OPERATORS):  # operators are shown as the methods they are
            value = inspect.getattr_static(owner, name, None)
            if (owner is kind or name in vars(owner)) and isinstance(value, FunctionType):
                made = Shown(value, known.get(NAMED.get(name, name)))
                replace(owner, name, made)
                known.setdefault(name, made)


def adopt(cls: Any) -> None:
    """Let a class of the user's be asked: `Watched` comes before Tensor among its bases.

    Parameters are not, as in PyTorch, unless they say so.
    """
    is_ours = cls.__module__.partition(".")[0] == "picograd"
    if is_ours or issubclass(cls, Watched):
        return
    bases = cls.__bases__
    place = next(at for at, each in enumerate(bases) if issubclass(each, Recorded))
    if bases[place] is not Recorded.kind and ASKS not in vars(cls):
        return
    fill()
    cls.__bases__ = (*bases[:place], Watched, *bases[place:])
