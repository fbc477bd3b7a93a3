"""Functions of tensors that are recorded as one: a step of a cell is what many operations make.

    @together
    def step(x, state): ...         recorded by its operations; from the third call on stamped out

As `@repeated` does for functions on nodes (tensor/core/repeated.py), which keeps the steps: what
such a function records follows from its arguments, tensors or None, and plain values. It looks at
no values of tensors, or is recorded each time.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from picograd.engine.tracing import RUNNING
from picograd.graph.node import Node
from picograd.tensor.core.autocast import REGIONS, listed
from picograd.tensor.core.function import within
from picograd.tensor.core.recording import Recorded, apply_each, fill
from picograd.tensor.core.repeated import repeated

F = TypeVar("F", bound=Callable[..., Any])


def together(function: F) -> F:
    """Record a function that gives a tensor, or a tuple of them, in one go.

    Settings that change what its operations record are followed operation by operation.
    """

    @repeated
    def on_nodes(*operands: Any) -> Any:
        shown = [shown_as(each) if type(each) is Node else each for each in operands]
        made = function(*shown)
        if type(made) is tuple:
            return tuple([each._node for each in made])
        return made._node

    on_nodes.__name__ = function.__name__
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    first = code.co_argcount - len(defaults)

    @functools.wraps(function)
    def call(*operands: Any, **options: Any) -> Any:
        has_tensor = any(isinstance(each, Recorded) for each in operands)
        if not has_tensor or RUNNING.traces or RUNNING.active or REGIONS.dtypes:
            return function(*operands, **options)
        if options:
            if len(operands) < first or not options.keys() <= {*names[len(operands) :]}:
                return function(*operands, **options)  # which says what is wrong
            rest = zip(names[len(operands) :], defaults[len(operands) - first :])
            operands = (*operands, *[options.get(name, default) for name, default in rest])
        return apply_each(on_nodes, *operands)

    return call  # type: ignore[return-value]


def in_functional(function: F) -> F:
    """Show a function in nn.functional: recorded in one go, and one operation to autocast."""
    return within("functional")(listed(together(function)))


def shown_as(node: Node) -> Any:
    """Make a tensor of a node that another has: it lives for the recording alone."""
    tensor = Recorded.kind.__new__(Recorded.kind)
    fill(tensor, node, False)
    return tensor
