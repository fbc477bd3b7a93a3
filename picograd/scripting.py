"""PyTorch's names around compilers and scripts: kernels are fused anyway, so these change nothing.

`picograd.jit` is the function that traces; PyTorch's module of that name is in its attributes:
`picograd.jit.script(model)` is `model`.
"""

import operator
from collections.abc import Callable
from contextlib import ContextDecorator
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar

from picograd.engine import tracing
from picograd.errors import DTypeError, StateError
from picograd.futures import Future
from picograd.tensor.core.subclasses import ask, asked_kinds
from picograd.tensor.tensor import Tensor

T = TypeVar("T")


def compile(model: Any = None, **options: Any) -> Any:
    """Give a function back, or a module that holds one: kernels are fused as they run.

    `picograd.jit` also skips the Python of a function, and asks more of it.

    >>> import picograd
    >>> layer = picograd.nn.Linear(2, 2)
    >>> picograd.compile(layer, mode="max-autotune")._orig_mod is layer
    True
    """
    if model is None:
        return lambda model: compile(model, **options)
    if not callable(model):
        text = f"the model must be a module or a function, not {type(model).__name__}"
        raise DTypeError("compile", text, "pass what is called with the inputs")
    is_module = isinstance(model, import_module("picograd.nn.module").Module)
    return import_module("picograd.nn.compiled").OptimizedModule(model) if is_module else model


def same(value: T = None, *options: Any, **more: Any) -> T:  # type: ignore[assignment]
    """Give the first argument back."""
    return value


def decorator(*given: Any, **options: Any) -> Any:
    """Serve as `@name` and as `@name(...)`, changing nothing."""
    is_bare = len(given) == 1 and callable(given[0]) and not options
    return given[0] if is_bare else same


def script(obj: T, *options: Any, **more: Any) -> T:
    """Give a module or function back, which runs as it is."""
    return obj


def trace(func: T, example_inputs: Any = None, *options: Any, **more: Any) -> T:
    """Give a module or function back, which runs as it is."""
    return func


def is_scripting() -> bool:
    """Tell that no script is compiled."""
    return False


def is_tracing() -> bool:
    """Tell whether `picograd.jit` traces the function this is called in."""
    return tracing.is_tracing()


def annotate(the_type: Any, the_value: T) -> T:
    """Give a value back."""
    return the_value


def isinstance_of(obj: Any, target_type: Any) -> bool:
    """Tell whether an object is of a type."""
    return isinstance(obj, target_type)


class ScriptModule:
    """This class stands for compiled modules and functions, and no object is one.

    A class of a program that derives from it derives from `nn.Module` instead.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        module = import_module("picograd.nn.module").Module
        cls.__bases__ = tuple(module if base is ScriptModule else base for base in cls.__bases__)
        super(cls, cls).__init_subclass__(**options)


ScriptFunction = ScriptModule


class Final:
    """This class marks attributes that do not change: `Final[int]`."""

    def __class_getitem__(cls, item: T) -> T:
        """Give the type back."""
        return item


is_compiling = is_dynamo_compiling = is_exporting = is_tracing


def refuse_archive(*given: Any, **options: Any) -> NoReturn:
    """Raise: there are no archives of compiled programs."""
    problem = "a compiled program is no file here"
    raise StateError("jit", problem, "save the weights: picograd.save(model.state_dict(), path)")


def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError unless a condition holds; the message may be a function that makes it."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "a check failed")


_check_with = _check_value = _check_index = _check_type = _check


def _check_is_size(size: Any, *message: Any, **options: Any) -> None:
    """Raise RuntimeError for a negative size."""
    _check(size >= 0, f"a size is {size}")


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError unless a condition holds for every element."""
    _check(cond.all().item(), message)


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Call one of two functions with the operands: which one, is read where the program runs.

    >>> import picograd
    >>> picograd.cond(Tensor(3.0) > 2, lambda x: x + 1, lambda x: x - 1, (Tensor([1.0]),)).tolist()
    [2.0]
    """
    return (true_fn if pred else false_fn)(*operands)


def sym_ite(b: bool, t: T, f: T) -> T:
    """Choose one of two numbers."""
    return t if b else f


sym_int, sym_float, sym_not, sym_max, sym_min = int, float, operator.not_, max, min


def sym_sum(*args: Any) -> Any:
    """Add up numbers, or tensors element by element: those of one list, or each an argument.

    >>> import picograd
    >>> picograd.sym_sum([1, 2]), picograd.sym_sum(1, 2, 3)
    (3, 6)
    """
    is_listed = len(args) == 1 and isinstance(args[0], list | tuple)
    return sum(args[0] if is_listed else args)


def typename(obj: Any) -> str:
    """Name the type of an object with its module.

    >>> import picograd
    >>> picograd.typename(picograd.nn.Linear)
    'picograd.nn.linear.Linear'
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless a condition holds.

    >>> import picograd
    >>> picograd._assert(1 < 2, "numbers are in order")
    """
    if kinds := asked_kinds([condition]):
        ask(_assert, kinds, (condition, message), {})
    elif not condition:
        raise AssertionError(message)


def fork(func: Callable[..., T], *args: Any, **options: Any) -> Future[T]:
    """Call a function, and give what is known to be done: kernels wait for each other anyway.

    >>> import picograd
    >>> picograd.jit.wait(picograd.jit.fork(max, 1, 2))
    2
    """
    made: Future[T] = Future()
    made.set_result(func(*args, **options))
    return made


def wait(future: Future[T]) -> T:
    """Give what a function that was forked returned."""
    return future.wait()


def list_backends(*excluded: Any) -> list[str]:
    """Name what `compile` may be told to use: PyTorch's default, which changes nothing."""
    return ["inductor"]


def optimize(*given: Any, **options: Any) -> Any:
    """Make what compiles: PyTorch's older way to ask for its compiler."""
    return compile()


class set_stance(ContextDecorator):
    """This class takes how PyTorch's compiler acts, for good or for a block: none acts here.

    >>> import picograd
    >>> with picograd.compiler.set_stance("force_eager"):
    ...     picograd.compile(len)([1, 2])
    2
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, *error: object) -> None:
        """End the block."""


set_logs = same  # of torch._logging
triton = SimpleNamespace()  # settings of torch._inductor that programs choose
mark_dynamic = mark_static = mark_static_address = same  # of torch._dynamo
cudagraph_mark_step_begin = reset = same
# of torch.compiler and torch._dynamo
disable = _disable_dynamo = allow_in_graph = assume_constant_result = decorator

JIT: dict[str, Any] = {
    "__path__": [],  # so that Python asks for PyTorch's modules below
    "__spec__": ModuleSpec("picograd.jit", None, is_package=True),
    "script": script,
    "trace": trace,
    "fork": fork,
    "wait": wait,
    "_fork": fork,
    "_wait": wait,
    "Future": Future,
    "trace_module": trace,
    "TracerWarning": UserWarning,
    "Error": RuntimeError,
    "freeze": same,
    "optimize_for_inference": same,
    "ignore": decorator,
    "unused": decorator,
    "export": decorator,
    "script_if_tracing": decorator,
    "_script_if_tracing": decorator,
    "_overload": decorator,
    "_overload_method": decorator,
    "interface": decorator,
    "script_method": decorator,
    "ScriptModule": ScriptModule,
    "RecursiveScriptModule": ScriptModule,
    "ScriptFunction": ScriptModule,
    "Final": Final,
    "is_scripting": is_scripting,
    "is_tracing": is_tracing,
    "annotate": annotate,
    "isinstance": isinstance_of,
    "save": refuse_archive,
    "_get_trace_graph": refuse_archive,
    "load": refuse_archive,
}
