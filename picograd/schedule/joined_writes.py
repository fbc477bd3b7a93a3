"""joined_writes: of two writes of one array in turn, the first need not be made.

    m.mul_(0.9).add_(g, alpha=0.1)

    a = assign(m, m * 0.9);  b = assign(a, a + g * 0.1)  ->  b = assign(m, m * 0.9 + g * 0.1)

Nothing but one elementwise operation may read what the first one wrote: that is computed where it
is read, as any other value is. What reads an array as it was runs before the write, or has a copy.
"""

from collections.abc import Sequence

from picograd.graph.node import Node
from picograd.graph.row import WRITES, Role
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target


def join_writes(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Leave out writes that others overwrite; `order` lists inputs first.

    A root that is left out stands for its memory, which the last write fills.
    """
    later = {id(node.inputs[0]): node for node in order if is_whole_write(node)}
    first = [node for node in order if is_whole_write(node) and id(node) in later]
    if not first:
        return list(roots)
    needed = needed_writes(order)
    new: dict[int, Node] = {}
    memory: dict[int, Node] = {}  # that the writes left out would have written
    last: dict[int, Node] = {}
    for node in reversed(first):
        write = later[id(node)]
        if id(node) not in needed:
            last[id(node)] = last.get(id(write), write)
    for node in first:
        if id(node) in last:
            write = later[id(node)]
            base = memory[id(write)] = memory.get(id(node), node.inputs[0])
            new[id(node)] = node.inputs[1]
            new[id(write)] = write.with_inputs((base, write.inputs[1]))
    if not new:
        return list(roots)
    return replaced([last.get(id(root), root) for root in roots], order, new)


def is_whole_write(node: Node) -> bool:
    """Tell whether a node is to write a whole array."""
    return node.op in WRITES and node.arg is None and node.realized is None


def needed_writes(order: Sequence[Node]) -> set[int]:
    """Find the writes whose contents more is made of than one value, element by element."""
    found: set[int] = set()
    readers: dict[int, Node] = {}
    written: set[int] = set()  # by one write already: the contents that two branches go on from
    for node in order:
        if node.realized is not None:
            continue
        inputs = node.inputs
        if is_whole_write(node):
            if id(inputs[0]) in written:
                found.add(id(inputs[0]))
            written.add(id(inputs[0]))
            inputs = inputs[1:]
        elif node.row.role is Role.ELEMENTWISE:
            others = [id(x) for x in inputs if readers.setdefault(id(x), node) is not node]
            found.update(others)
            continue
        found.update(map(id, inputs))
    return found
