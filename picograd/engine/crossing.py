"""What one device computes for another: a plan is for one device, whose kernels it plans for."""

from picograd.engine.carried import FREE
from picograd.engine.plan_key import leaf_buffer
from picograd.graph.node import Node, Nodes


def is_in_memory(node: Node) -> bool:
    """Tell whether a node, views aside, is computed: a copy of it is no plan of its device."""
    while node.realized is None and node.op in FREE:
        node = node.inputs[0]
    return leaf_buffer(node) is not None


def sources(order: Nodes) -> list[Node]:
    """List pending nodes of one device that another reads; they read no such ones themselves.

    `order` lists inputs first.
    """
    found: dict[Node, None] = {}
    above: set[Node] = set()  # what depends on them
    for node in order:
        if node.realized is not None or not node.inputs:
            continue
        source = node.inputs[0]
        if not above.isdisjoint(node.inputs):
            above.add(node)
        elif source.device != node.device and not is_in_memory(source):
            above.add(node)
            found[source] = None
    return [node for node in found if node.device == next(iter(found)).device]
