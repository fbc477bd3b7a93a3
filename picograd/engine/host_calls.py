"""Host calls on little memory of this host, computed by NumPy at once: no key, no plan, no tape.

A plan of one host call hands the host's memory to NumPy and takes back what it gives; all that is
around that takes longer than a small matrix does. A graph of such calls, of views of their inputs
and results, and of nothing that a kernel would round, has the same bits either way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.config import config
from picograd.conversion import from_bits, to_bits
from picograd.engine import carried
from picograd.engine.backends import get_device
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.watch import PROFILES
from picograd.graph.host_call import run
from picograd.graph.interpret import evaluate
from picograd.graph.node import Node
from picograd.graph.row import OPS, Role, ops_of
from picograd.target import is_host

CALLS = ops_of(Role.HOST)
FEW = 16  # nodes
SMALL = 1 << 16  # elements of an array: kernels move more of them faster
MOVING = {Role.HOST, Role.VIEW, Role.PASS, Role.PAIR, Role.PARTS, Role.NUMBER}


def compute(roots: Sequence[Node], live: Any) -> bool:
    """Compute host calls and views; False, and nothing, where the roots are made of more."""
    order = order_of(roots)
    if order is None or config.debug or PROFILES or carried.entries(carried.GRADIENTS):
        return False
    cpu: Any = get_device("cpu")
    values: dict[int, Any] = {}
    for node in order:
        values[id(node)] = value_of(node, values, cpu)
    names = {id(root) for root in roots}
    for node in order:
        if node.realized is None and (id(node) in names or is_kept(node)):
            bits = to_bits(values[id(node)], node.dtype)
            is_own = node.op in CALLS and bits.base is None  # what a call gives no other node has
            node.realized = cpu.adopt(bits if is_own else np.array(bits, order="C"), node.dtype)
            tensor = live.get(id(node))
            if tensor is not None:
                tensor.settle()
        carried.NEW.pop(id(node), None)
    return True


def order_of(roots: Sequence[Node]) -> list[Node] | None:
    """List what is under roots, inputs first; None where there is no call, or anything else."""
    seen: dict[int, Node] = {}
    waiting = [(root, False) for root in roots]
    order, has_call = [], False
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen[id(node)] = node
        is_memory = leaf_buffer(node) is not None
        if len(seen) > FEW or not (is_memory or can_move(node)) or not is_host(node.device):
            return None
        if is_memory:
            order.append(node)
            continue
        has_call = has_call or node.op in CALLS
        waiting.append((node, True))
        waiting += [(child, False) for child in node.inputs]
    return order if has_call else None


def can_move(node: Node) -> bool:
    """Tell whether NumPy gives a node the bits that kernels would, as soon as they."""
    row = OPS.get(node.op)  # what stands for several nodes has none
    return row is not None and row.role in MOVING and node.size <= SMALL


def value_of(node: Node, values: dict[int, Any], cpu: Any) -> Any:
    """Find the array of a node."""
    buffer = leaf_buffer(node)
    if buffer is None:
        inputs = [values[id(child)] for child in node.inputs]
        return run(node.arg, *inputs) if node.op in CALLS else evaluate(node, inputs)
    bits = cpu.view(buffer).view(buffer.dtype.storage)[: buffer.count]
    return from_bits(bits, buffer.dtype).reshape(node.shape)


def is_kept(node: Node) -> bool:
    """Tell whether a node is a call whose value is worth its memory."""
    return node.op in CALLS and node.arg.row.is_kept
