"""Calls of host functions: on memory at hand they are computed where they stand.

What is recorded first, and asked for then, passes the tables of what waits, of plans and of the
ways of a program. That takes longer than NumPy does for a small matrix or a short signal. So what
a function records of memory without gradients is found once for all memory of the same shapes, over
stand-ins, and evaluated over what it is given. Memory that somebody else may write, NumPy's, is
read there and then, without a copy.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from picograd.buffer import Buffer, Storage
from picograd.config import config
from picograd.dtype import default_float
from picograd.engine import host_calls, pending
from picograd.engine.followed import EVENTS, event
from picograd.engine.host_calls import Recipe
from picograd.engine.tracing import is_tracing
from picograd.graph.node import Node
from picograd.graph.row import MEMORY
from picograd.tensor.core import saved_hooks
from picograd.tensor.core.autocast import REGIONS
from picograd.tensor.core.autograd import MODE
from picograd.tensor.core.following import is_waited_for
from picograd.tensor.core.recording import Recorded, apply, fill, read, wrap

RECIPES: dict[Any, Recipe | None] = {}
MOST = 4096  # recipes


@pending.locked  # what is read is still there when the result is entered
def called(function: Callable[..., Node], *operands: Any) -> Any:
    """Record a function of nodes that calls the host; what it reads may be at hand."""
    found = at_once(function, operands)
    return apply(function, *operands) if found is None else found[0]


@pending.locked
def factors(function: Callable[..., Sequence[Node]], *operands: Any) -> tuple[Any, ...]:
    """Record a function of several results, as `called` does."""
    found = at_once(function, operands)
    return record_several(function, operands) if found is None else tuple(found)


@event
def record_several(function: Callable[..., Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    """Record a function of several results."""
    tensors = [each for each in operands if isinstance(each, Recorded)]
    source = max(tensors, key=lambda each: each._tracks)
    return several(source, function(*map(read, operands)))


def several(source: Recorded, nodes: Sequence[Node]) -> tuple[Any, ...]:
    """Wrap several results of one tensor, which are factors of matrices."""
    tracks = source._tracks and MODE.enabled
    if tracks and REGIONS.dtypes:
        saved_hooks.refuse("a factorization")
    return tuple(wrap(node, tracks and node.dtype.is_differentiable) for node in nodes)


def at_once(function: Callable[..., Any], operands: Sequence[Any]) -> list[Any] | None:
    """Compute a function of memory of this host; None where that is not all, or more waits."""
    if not is_quiet():
        return None
    key: list[Any] = [function, config.epoch, default_float()]
    nodes = []
    for each in operands:
        if not isinstance(each, Recorded):
            key += type(each), each
            continue
        node = each._node
        if node.op not in MEMORY or (each._tracks and MODE.enabled):
            return None
        key += node.shape, node.dtype, node.device
        nodes.append(node)
    recipe = recipe_of(tuple(key), function, operands)
    if recipe is None or not host_calls.may_compute():
        return None
    with pending.LOCK:
        found = recipe.evaluate([node.arg.buffer for node in nodes])
        return [memory(root, buffer) for root, buffer in zip(recipe.roots, found)]


def is_quiet() -> bool:
    """Tell whether nothing else has to be told of a computation, or to run with it."""
    if EVENTS.take is not None or EVENTS.after is not None or EVENTS.learning is not None:
        return False
    return not (is_tracing() or REGIONS.dtypes or is_waited_for())


def recipe_of(key: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Recipe | None:
    """Find what a function records of operands like these; None where more than calls do."""
    try:
        if key in RECIPES:
            return RECIPES[key]
    except TypeError:  # an option that is no number or word
        return None
    given = [stand_in(each._node) if isinstance(each, Recorded) else each for each in operands]
    made = function(*given)
    roots = [made] if isinstance(made, Node) else list(made)
    order = host_calls.order_of(roots)
    if len(RECIPES) >= MOST:
        RECIPES.clear()
    stand_ins = [each for each in given if isinstance(each, Node)]
    RECIPES[key] = None if order is None else Recipe(roots, order, stand_ins)
    return RECIPES[key]


def stand_in(node: Node) -> Node:
    """Make a leaf of memory that is nowhere."""
    nowhere = Storage(Buffer(node.device, node.dtype, node.size, 0))
    return Node("buffer", (), nowhere, node.shape, node.dtype, node.device)


def memory(node: Node, buffer: Buffer) -> Any:
    """Make a tensor of the value of a node."""
    leaf = Node("buffer", (), Storage(buffer), node.shape, node.dtype, node.device)
    tensor = Recorded.kind.__new__(Recorded.kind)
    fill(tensor, leaf, False)
    leaf.leaf = weakref.ref(tensor)
    pending.enter(leaf, tensor)
    return tensor
