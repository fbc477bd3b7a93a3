"""One definition of a function is all its spellings: `Tensor.f`, `picograd.f`, in place `f_`.

`@recorded` stands on a definition on nodes, `@composed` on one of tensors. Both give it back as it
is, for the files that import it, and add a row to FUNCTIONS. Of the rows
`picograd/tensor/methods.py` makes the methods of `Tensor`, `picograd/tensor/functions.py` the
functions of `picograd`, and `docs/stubs.py` the files that type checkers read.

    @recorded(in_place=True)
    def exp(x: Node) -> Node:

Parameters have PyTorch's names; `picograd/tensor/core/calling.py` reads the other ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Definition = TypeVar("Definition", bound=Callable[..., Any])


@dataclass(frozen=True)
class Function:
    """This class is one row: a definition, and how it is seen from outside."""

    name: str
    definition: Callable[..., Any]
    is_recorded: bool = True  # on nodes, else on tensors
    method: bool = True
    function: bool = True
    in_place: bool = False
    view: str = ""  # the result shows the tensor's memory: "if" its strides allow it, or "always"
    pieces: bool = False  # the results are views, parts of the tensor
    returns: Any = None  # the named tuple of its results
    also: tuple[tuple[str, str], ...] = ()  # other names of parameters, and which they are


FUNCTIONS: dict[str, Function] = {}


def recorded(*names: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition on nodes under names, its own unless given; `seen` fills the row."""

    def decorate(definition: Definition) -> Definition:
        for name in names or (definition.__name__,):
            FUNCTIONS[name] = Function(name, definition, **seen)
        return definition

    return decorate


def composed(*names: str, **seen: Any) -> Callable[[Definition], Definition]:
    """Show a definition of tensors, made of their methods."""
    return recorded(*names, is_recorded=False, **seen)
