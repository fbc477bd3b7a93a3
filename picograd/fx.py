"""PyTorch's names for rewriting programs that concern programs which are not rewritten."""

from typing import Any, NoReturn, TypeVar

from picograd.errors import StateError
from picograd.nn.module import Module

T = TypeVar("T")
__path__: list[str] = []  # so that Python asks for PyTorch's modules below


def wrap(fn_or_name: T) -> T:
    """Give a function back: nothing looks into it.

    >>> import picograd.fx
    >>> picograd.fx.wrap("len")
    'len'
    """
    return fn_or_name


class Proxy:
    """This class stands for values of programs that are rewritten: there are none."""


class Node:
    """This class stands for operations of such programs."""


class Graph:
    """This class stands for their graphs."""


class GraphModule(Module):
    """This class stands for modules made from such programs."""


class Tracer:
    """This class stands for what reads programs."""


class Interpreter:
    """This class stands for what runs their graphs."""


class Transformer(Interpreter):
    """This class stands for what rewrites their graphs."""


def symbolic_trace(root: Any, concrete_args: Any = None) -> NoReturn:
    """Raise: programs are run, not read."""
    fix = "draw_dot(output) shows the graph, picograd.plan its kernels"
    raise StateError("fx", "programs are run and recorded, not rewritten", fix)
