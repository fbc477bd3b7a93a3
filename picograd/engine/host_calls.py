"""Host calls on little memory of this host, computed by NumPy at once: no key, no plan, no tape.

A plan of one host call hands the host's memory to NumPy and takes back what it gives; all that is
around that takes longer than a small matrix does. A graph of such calls, of views of their inputs
and results, and of nothing that a kernel would round, has the same bits either way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.config import config
from picograd.conversion import convert, from_bits, to_bits
from picograd.dtype import DType
from picograd.engine import carried
from picograd.engine.backends import get_device
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.watch import PROFILES
from picograd.graph.host_call import results, run
from picograd.graph.interpret import evaluate
from picograd.graph.node import Node
from picograd.graph.row import OPS, Role, ops_of
from picograd.helpers import product
from picograd.target import is_host

CALLS = ops_of(Role.HOST)
FEW = 16  # nodes
SMALL = 1 << 16  # elements of an array: kernels move more of them faster
SHOWING = {Role.HOST, Role.PARTS}  # move nothing
MOVING = {*SHOWING, Role.VIEW, Role.PASS, Role.PAIR, Role.NUMBER}


class Values:
    """This class is what was found of nodes, by their identity.

    `given` are buffers of leaves that stand for others, `fresh` arrays that calls gave, and that
    are no node's memory yet.
    """

    __slots__ = ("device", "fresh", "found", "given")

    def __init__(self, order: Sequence[Node], given: dict[int, Buffer]) -> None:
        self.given = given
        self.found: dict[int, Any] = {}
        self.fresh: dict[int, Any] = {}
        self.device: Any = get_device("cpu")
        for node in order:
            self.found[id(node)] = self.value_of(node)

    def value_of(self, node: Node) -> Any:
        """Find the array of a node."""
        buffer = self.given.get(id(node)) or leaf_buffer(node)
        if buffer is not None:
            return from_bits(self.device.shown(buffer, node.shape), node.dtype)
        inputs = [self.found[id(child)] for child in node.inputs]
        if node.op not in CALLS:
            found = evaluate(node, inputs)
            return convert(found, node.dtype) if node.row.keeps_value else found
        found = run(node.arg, *inputs)
        base = found if found.base is None else found.base
        self.fresh[id(base)] = base
        return found

    def memory_of(self, node: Node) -> Buffer:
        """Make a buffer of a value; only what others have too is copied."""
        bits = to_bits(self.found[id(node)], node.dtype)
        base = bits if bits.base is None else bits.base
        if self.fresh.pop(id(base), None) is None:
            bits = np.array(bits, order="C")
        return self.device.adopt(bits, node.dtype)


class Recipe:
    """This class is a graph of host calls and views over stand-ins for memory, to be evaluated.

    Most are one call of memory, whose results the roots are but for shape and dtype: then `call` is
    its node, of stand-ins at `places`, and `parts` tells which of the results a root is.
    """

    __slots__ = ("call", "order", "parts", "places", "roots", "stand_ins")

    def __init__(self, roots: list[Node], order: list[Node], stand_ins: list[Node]) -> None:
        self.roots, self.order, self.stand_ins = roots, order, stand_ins
        calls = [node for node in order if node.op in CALLS]
        read = [memory_under(each) for each in calls[0].inputs]
        is_sole = len(calls) == 1 and all(each in stand_ins for each in read)
        self.call = calls[0] if is_sole else None
        self.places = [stand_ins.index(each) for each in read] if is_sole else []
        self.parts: list[int | None] = []

    def evaluate(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Compute the roots over other memory."""
        call = self.call
        if call is None:
            given = {id(one): buffer for one, buffer in zip(self.stand_ins, buffers)}
            values = Values(self.order, given)
            return [values.memory_of(root) for root in self.roots]
        cpu: Any = get_device("cpu")
        shown = [
            cpu.shown(buffers[place], node.shape, node.dtype.storage)
            for place, node in zip(self.places, call.inputs)
        ]
        found = results(call.arg, *shown)
        listed = found if isinstance(found, tuple) else (found,)
        if not self.parts:
            self.parts = [part_under(root, call, listed) for root in self.roots]
            if None in self.parts or len(set(self.parts)) < len(self.parts):
                self.call = None
                return self.evaluate(buffers)
        return [
            cpu.adopt(in_dtype(listed[part], root.dtype), root.dtype)  # type: ignore[index]
            for root, part in zip(self.roots, self.parts)
        ]


def in_dtype(found: Any, dtype: DType) -> Any:
    """Convert a result to a dtype; pairs of real numbers are complex ones.

    NumPy gives a number that is no array, whose memory goes, where there is no axis.
    """
    found = np.asarray(found)
    if dtype.is_complex and found.dtype.kind != "c":
        return np.ascontiguousarray(found).view(dtype.storage)
    return found.astype(dtype.storage, copy=False)


def memory_under(node: Node) -> Node:
    """Find what complex numbers are read from that a node shows as pairs of real ones."""
    if node.row.role is not Role.PARTS:
        return node
    below = node.inputs[0]
    is_whole = node.size * node.dtype.itemsize == below.size * below.dtype.itemsize
    return below if is_whole else node


def part_under(root: Node, call: Node, found: Sequence[Any]) -> int | None:
    """Find which result of a call a node is, in another shape or dtype; None where it is none."""
    node = memory_under(root)
    if root.dtype.storage != root.dtype.numpy.name or (node is not root and node is not call):
        return None
    while node is not call:
        below = node.inputs[0]
        if below is call and len(found) > 1:
            return part_at(node, found)
        is_reshape = node.arg == node.shape and node.size == below.size > 0
        if not is_reshape and not node.row.keeps_value:
            return None
        node = below
    return 0 if len(found) == 1 else None


def part_at(node: Node, found: Sequence[Any]) -> int | None:
    """Find which of several results a slice cuts out."""
    rank, start = node.rank - 1, 0
    for number, each in enumerate(found):
        stop = start + product(each.shape[rank:])
        if type(node.arg) is tuple and node.arg[-1] == (start, stop, 1):
            return number
        start = stop
    return None


def may_compute() -> bool:
    """Tell whether nobody has to see a plan, or what gradients read stored by it."""
    return not (config.debug or PROFILES or carried.formulas_waited_for())


def compute(roots: Sequence[Node], live: Any) -> bool:
    """Compute roots of host calls and views; False, and nothing, where there is more to do."""
    order = order_of(roots)
    if order is None or not may_compute():
        return False
    values = Values(order, {})
    tensors = {id(root): live.get(id(root)) for root in roots}
    for node in order:
        if node.realized is None and (id(node) in tensors or is_kept(node)):
            node.realized = values.memory_of(node)
            tensor = tensors.get(id(node))
            if tensor is not None:
                tensor.settle()
        carried.NEW.pop(id(node), None)
    return True


def order_of(roots: Sequence[Node]) -> list[Node] | None:
    """List what is under roots, inputs first; None where there is no call, or anything else."""
    first = roots[0]
    if len(roots) == 1 and first.op in CALLS and all(map(leaf_buffer, first.inputs)):
        return [*first.inputs, first] if is_host(first.device) else None  # as most are
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
    if row is None or not (row.role in MOVING or row.keeps_value):
        return False
    return node.size <= SMALL or row.role in SHOWING


def is_kept(node: Node) -> bool:
    """Tell whether a node is a call whose value is worth its memory."""
    return node.op in CALLS and node.arg.row.is_kept
