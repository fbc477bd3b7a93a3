"""PyTorch's `torch.library`: operators that programs define, and `torch.ops`, where they are.

Compiled libraries of PyTorch's operators are not loaded.
"""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, NoReturn

from picograd.errors import DataError, GradientError
from picograd.late_names import find
from picograd.nn import functional
from picograd.tensor import public
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.custom import Function

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "impl", "register_autograd", "register_fake",
    "register_kernel",
]  # fmt: skip

Decorator = Callable[[Any], Any]


class CustomOpDef:
    """This class is an operator: a function, whose gradient `register_autograd` may give."""

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self.name, self.function = name, function
        self.kind: type[Function]
        self.register_autograd(self.refuse_gradient)
        OPERATORS[name] = self

    def refuse_gradient(self, ctx: Any, *gradients: Any) -> NoReturn:
        """Raise: what the function computes is not recorded for gradients."""
        raise GradientError(self.name, "it has no gradient", "give one by register_autograd")

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compute, and record the gradient."""
        if self.function is None:
            problem, fix = "it was declared and has no function", "give it one by library.impl"
            raise DataError(self.name, problem, fix)
        given = signature(self.function).bind(*args, **options)
        given.apply_defaults()
        return self.kind.apply(*given.arguments.values())

    default = property(lambda self: self)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None
    ) -> None:
        """Give the gradient: `backward(ctx, *gradients)`; `setup_context(ctx, inputs, output)`."""
        parts = {
            "forward": staticmethod(lambda *args: self.function(*args)),  # type: ignore[misc]
            "setup_context": staticmethod(setup_context or (lambda ctx, inputs, output: None)),
            "backward": staticmethod(backward),
        }
        self.kind = type(self.name, (Function,), parts)

    def register_fake(self, function: Any = None, /, **options: Any) -> Any:
        """Take a function of shapes, which nothing here asks for."""
        return function or (lambda given: given)

    def register_kernel(self, device_types: Any, function: Any = None, /) -> Any:
        """Take a function for a device: the one for the CPU is the operator, if it has none."""
        return function or (lambda given: given)


OPERATORS: dict[str, CustomOpDef] = {}


def custom_op(name: str, function: Any = None, /, **about: Any) -> Any:
    """Make an operator of a function, also as a decorator; `torch.ops.space.name` finds it.

    >>> import picograd
    >>> @picograd.library.custom_op("mine::twice", mutates_args=())
    ... def twice(x: picograd.Tensor) -> picograd.Tensor:
    ...     return x * 2
    >>> picograd.ops.mine.twice(picograd.ones(2)).tolist()
    [2.0, 2.0]
    """
    return CustomOpDef(name, function) if function else lambda given: CustomOpDef(name, given)


triton_op = custom_op  # its function is called as it is, kernels of Triton are not


def wrap_triton(kernel: Any) -> Any:
    """Give a kernel back: it runs where Triton takes its operands."""
    return kernel


def operator(op: Any) -> CustomOpDef:
    """Find an operator by its name, or make one that is declared only."""
    name = op if isinstance(op, str) else op.name
    return OPERATORS.get(name) or CustomOpDef(name)


def define(qualname: str, *schema: Any, **options: Any) -> None:
    """Declare an operator."""
    operator(qualname)


def impl(qualname: str, types: Any, function: Any = None, **options: Any) -> Any:
    """Give an operator its function, also as a decorator."""

    def take(given: Any) -> Any:
        operator(qualname).function = given
        return given

    return take(function) if function else take


def register_autograd(op: Any, backward: Callable[..., Any], /, **more: Any) -> None:
    """Give an operator its gradient."""
    operator(op).register_autograd(backward, **more)


def register_fake(op: Any, function: Any = None, /, **more: Any) -> Any:
    """Take a function of shapes, which nothing here asks for."""
    return function or (lambda given: given)


register_kernel = impl_abstract = register_fake


class Library:
    """This class declares operators of one space: `Library("mine", "DEF")`."""

    def __init__(self, ns: str, kind: str = "DEF", dispatch_key: str = "") -> None:
        self.ns, self.kind = ns, kind

    def define(self, schema: str, *given: Any, **options: Any) -> str:
        """Declare an operator by its schema, and give its name."""
        name = schema.partition("(")[0].partition(".")[0].strip()
        define(f"{self.ns}::{name}")
        return name

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        """Give an operator its function; those of shapes ("Meta") are not asked for."""
        name = op_name if isinstance(op_name, str) else op_name.name
        if dispatch_key != "Meta":
            impl(name if "::" in name else f"{self.ns}::{name}", (), fn)


def index_of(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Index the first axes; None leaves one as it is."""
    return x[tuple(slice(None) if index is None else index for index in indices)]


def inner(name: str) -> Any:
    """Find an operator of `aten` alone; those of PyTorch's own use, `_name`, raise when called."""
    if not name.startswith("_") or name.startswith("__"):
        return find(name)
    return lambda *inputs, **options: find(name)


def slice_of(x: Tensor, dim: int = 0, *bounds: int | None) -> Tensor:
    """Take a slice of an axis: from, to, step."""
    start, end, step = (*bounds, None, None, None)[:3]
    return x.movedim(dim, 0)[start:end:step].movedim(0, dim)


PRIVATE: dict[str, Any] = {
    "_pin_memory": Tensor.pin_memory, "_to_copy": Tensor.to, "alias": Tensor.view_as,
    "index": index_of, "slice": slice_of,
}  # fmt: skip


class Overloaded:
    """This class is a function of `aten`, all of whose overloads (`aten.add.Tensor`) are itself."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.function(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Overloaded) and other.function == self.function

    def __hash__(self) -> int:
        return hash(self.function)


class Space:
    """This class has the operators of one space; those of `aten` are picograd's functions."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        found = OPERATORS.get(f"{self.name}::{name}")
        if found is None and self.name == "aten":
            rooms = [room for room in (functional, public, Tensor) if hasattr(room, name)]
            known = [getattr(room, name) for room in rooms]
            known += [PRIVATE[name]] if name in PRIVATE else []
            return Overloaded(known[-1] if known else inner(name))
        if found is None:
            raise AttributeError(f"there is no operator {self.name}::{name}")
        return found


class Operators:
    """This class is `torch.ops`: `ops.space.name`."""

    def load_library(self, path: Any) -> NoReturn:
        """Raise OSError: operators that were compiled for PyTorch are not loaded."""
        problem = f"{path} has operators compiled for PyTorch"
        raise DataError("ops.load_library", problem, "use what the package has in Python")

    def __getattr__(self, name: str) -> Space:
        if name.startswith("__"):
            raise AttributeError(name)
        return Space(name)


ops = Operators()
