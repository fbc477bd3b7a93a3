"""Calls of host functions: on memory at hand they are computed where they stand.

What is recorded first, and asked for then, passes the tables of what waits, of plans and of the
ways of a program. That takes longer than NumPy does for a small matrix or a short signal.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from picograd.buffer import Storage
from picograd.engine import foreign, host_calls, pending
from picograd.engine.carried import entries
from picograd.engine.followed import EVENTS
from picograd.engine.tracing import is_tracing
from picograd.graph.node import Node
from picograd.graph.row import MEMORY
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE, TRACKED
from picograd.tensor.core.recording import Recorded, apply, fill, read, several


def called(function: Callable[..., Node], *operands: Any) -> Any:
    """Record a function of nodes that calls the host; what it reads may be at hand."""
    found = at_once(function, operands)
    return apply(function, *operands) if found is None else found[0]


def factors(function: Callable[..., Sequence[Node]], source: Any, *options: Any) -> tuple[Any, ...]:
    """Record a function of several results, which are factors of the source, as `called` does."""
    found = at_once(function, (source, *options))
    return several(source, function(read(source), *options)) if found is None else found


def at_once(function: Callable[..., Any], operands: Sequence[Any]) -> tuple[Any, ...] | None:
    """Compute a function of memory of this host; None where that is not all, or more waits."""
    if not is_quiet() or not all(map(is_at_hand, operands)):
        return None
    nodes = [each._node if isinstance(each, Recorded) else each for each in operands]
    if foreign.are_read(nodes):
        return None
    made = function(*nodes)
    roots = [made] if isinstance(made, Node) else made
    with pending.LOCK:
        values = host_calls.values_of(roots)
        return None if values is None else tuple(memory(root, values) for root in roots)


def is_quiet() -> bool:
    """Tell whether nothing else has to be told of a computation, or to run with it."""
    if is_tracing() or REGIONS.dtypes or pending.WAITING:
        return False
    if EVENTS.take is not None or EVENTS.after is not None or EVENTS.learning is not None:
        return False
    return not (entries(pending.WRITES) or entries(pending.CHANGED))


def is_at_hand(operand: Any) -> bool:
    """Tell whether an operand is memory, and asks for no gradient; options are."""
    if not isinstance(operand, Recorded):
        return True
    return operand._node.op in MEMORY and not (operand._tracks and MODE.enabled)


def memory(node: Node, values: host_calls.Values) -> Any:
    """Make a tensor of the value of a node, which it remembers as what is computed later does."""
    node.realized = buffer = values.memory_of(node)
    storage = Storage(buffer)
    leaf = Node("buffer", (), storage, node.shape, node.dtype, node.device)
    tensor = Recorded.kind.__new__(Recorded.kind)
    fill(tensor, leaf, False)
    leaf.leaf = weakref.ref(tensor)
    if MODE.enabled and node.dtype.kind in TRACKED:
        storage.source, tensor._history = weakref.ref(node), node
    pending.enter(leaf, tensor)
    return tensor
