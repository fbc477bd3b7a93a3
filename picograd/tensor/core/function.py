"""One definition of a function is all its spellings: `Tensor.f`, `picograd.f`, in place `f_`.

`@recorded` stands on a definition on nodes, `@composed` on one of tensors. Both give it back as it
is, for the files that import it, and add a row to FUNCTIONS. Of the rows
`picograd/tensor/methods.py` makes the methods of `Tensor`, `picograd/tensor/public.py` the
functions of `picograd`, and `docs/stubs.py` the files that type checkers read.

    @recorded(in_place=True)
    def exp(x: Node) -> Node:

`@within("functional")` shows a definition in a module of functions, here `picograd.nn.functional`;
MODULES has these rows. `@method_within("functional")` makes it a method, too. Parameters have
PyTorch's names; `picograd/tensor/core/calling.py` reads the other ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from picograd.errors import DTypeError, check, not_a_tensor
from picograd.late_methods import dataclass

Definition = TypeVar("Definition", bound=Callable[..., Any])


@dataclass(frozen=True)
class Function:
    """This class is one row: a definition, and how it is seen from outside."""

    name: str
    definition: Callable[..., Any]
    is_recorded: bool = True  # on nodes, else on tensors
    method: bool = True
    static: bool = False  # a method of the class, which needs no tensor
    function: bool = True
    in_place: bool = False
    inplace: bool = False  # the function takes `inplace`, and then writes over its input
    view: str = ""  # the result shows the tensor's memory: "if" its strides allow it, or "always"
    itself: Callable[..., bool] | None = None  # of a call: is the result the tensor that is given?
    pieces: bool = False  # the results are views, parts of the tensor
    returns: Any = None  # the named tuple of its results
    also: tuple[tuple[str, str], ...] = ()  # other names of parameters, and which they are

    @property
    def written(self) -> Any:
        """The definition as it is written, below its decorators."""
        return innermost(self.definition)


def innermost(function: Any) -> Any:
    """Find the function below its decorators: `inspect.unwrap` in a third of its time."""
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    return function


Rows = dict[str, Function]
FUNCTIONS: Rows = {}
MODULES: dict[str, Rows] = {"functional": {}, "special": {}}


def adding(rows: Rows, names: tuple[str, ...], seen: Any) -> Callable[[Definition], Definition]:
    """Add a row for each name, the definition's own unless given; `seen` fills the rows."""

    def decorate(definition: Definition) -> Definition:
        for name in names or (definition.__name__,):
            check(name not in rows, f"two definitions are called {name}")
            rows[name] = Function(name, definition, **seen)
        return definition

    return decorate


def recorded(*names: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition on nodes as a method and a function."""
    return adding(FUNCTIONS, names, seen)


def composed(*names: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition of tensors, made of their methods."""
    return adding(FUNCTIONS, names, {"is_recorded": False, **seen})


def within(module: str, *names: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition of tensors as a function of a module; on nodes, say `is_recorded=True`."""
    return adding(MODULES[module], names, {"is_recorded": False, **seen})


def method_within(module: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition of tensors as a function of a module, and as a method."""

    def decorate(definition: Definition) -> Definition:
        return composed(function=False)(within(module, **seen)(definition))

    return decorate


def no_tensor(
    function: Callable[..., Any], operands: Sequence[Any], wrong: Any = None
) -> DTypeError:
    """Word the error of an operand that is no tensor: `picograd.exp(3)`."""
    op, given = getattr(function, "__name__", "op"), list(operands)
    if given and isinstance(given[0], str) and (op not in FUNCTIONS or given[0] == op):
        op = given.pop(0)  # what serves several ops is told which
    wrong = given[0] if wrong is None and given else wrong
    return not_a_tensor(op, "input", wrong)


def check_tensors(function: Callable[..., Any], operands: Sequence[Any], lacks: Any) -> None:
    """Raise for an operand that lacks what a tensor has: a number or list where one is due."""
    if lacks is not None and any(lacks is operand for operand in operands):
        raise no_tensor(function, operands, lacks) from None
