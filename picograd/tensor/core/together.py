"""Functions of tensors that are recorded as one: a step of a cell is what many operations make.

    @together
    def step(x, state): ...         recorded by its operations; from the third call on stamped out

As `@repeated` does for functions on nodes (tensor/core/repeated.py), which keeps the steps: what
such a function records follows from its arguments, tensors or None, and plain values.
"""

import functools
from collections.abc import Callable
from typing import Any

from picograd.engine.tracing import RUNNING
from picograd.graph.node import Node
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.recording import Recorded, apply_each, fill
from picograd.tensor.core.repeated import repeated

Recording = Callable[..., tuple[Any, ...]]


def together(function: Recording) -> Recording:
    """Record a function that gives a tuple of tensors in one go, unless settings say otherwise."""

    @repeated
    def on_nodes(*operands: Any) -> Any:
        shown = [shown_as(each) if type(each) is Node else each for each in operands]
        found = tuple([tensor._node for tensor in function(*shown)])
        return found if len(found) > 1 else found[0]

    on_nodes.__name__ = function.__name__

    @functools.wraps(function)
    def call(*operands: Any) -> tuple[Any, ...]:
        if RUNNING.traces or RUNNING.active or REGIONS.dtypes:
            return function(*operands)
        found = apply_each(on_nodes, *operands)
        return found if type(found) is tuple else (found,)

    return call


def shown_as(node: Node) -> Any:
    """Make a tensor of a node that another has: it lives for the recording alone."""
    tensor = Recorded.kind.__new__(Recorded.kind)
    fill(tensor, node, False)
    return tensor
