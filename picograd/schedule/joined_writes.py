"""joined_writes: writes of whole arrays, and what elementwise work reads of them.

Of two writes of one array in turn, the first need not be made.

    m.mul_(0.9).add_(g, alpha=0.1)

    a = assign(m, m * 0.9);  b = assign(a, a + g * 0.1)  ->  b = assign(m, m * 0.9 + g * 0.1)

Nothing but one elementwise operation may read what the first one wrote: that is computed where it
is read, as any other value is. What reads an array as it was runs before the write, or has a copy.

What other writes are made of is the value, not what was written: one kernel makes both of it.

    g.mul_(scale);  m.lerp_(g, 0.1)

    a = assign(g, g * s);  b = assign(m, m + (a - m) * 0.1)
    a = assign(g, g * s);  b = assign(m, m + (g * s - m) * 0.1)
"""

from collections.abc import Collection, Sequence

from picograd.graph.node import Node
from picograd.graph.row import WRITES, Role
from picograd.schedule.order import nodes_of
from picograd.schedule.values import is_leaf
from picograd.schedule.weighted_sums import replaced
from picograd.target import Target

LIGHT = 6  # operations of a value that is computed again where it is read


def join_writes(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Leave out writes that others overwrite; `order` lists inputs first.

    A root that is left out stands for its memory, which the last write fills.
    """
    writes = list(filter(is_whole_write, nodes_of(order, WRITES)))
    later = {id(node.inputs[0]): node for node in writes}
    first = [node for node in writes if id(node) in later]
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


def read_values(roots: Sequence[Node], order: Sequence[Node], target: Target) -> list[Node]:
    """Let writes be made of values that other writes leave, where nothing else reads what is left.

    Both are of one shape, and the value is light: an array that a number scales.
    """
    writes = list(filter(is_whole_write, nodes_of(order, WRITES)))
    if len(writes) < 2:
        return list(roots)
    bases = {id(node.inputs[0]) for node in writes}
    light: dict[int, Node] = {}
    for node in writes:
        value = node.inputs[1]
        if id(node) not in bases and is_light(value):
            light[id(node)] = value
    readers = made_of(light, order) if light else []
    for number in read_apart(roots, readers):
        light.pop(number, None)
    new: dict[int, Node] = {}
    for node in readers:
        if light.keys().isdisjoint(map(id, node.inputs)):
            continue
        inputs = [light.get(id(source), source) for source in node.inputs]
        new[id(node)] = node.with_inputs(tuple(inputs))
    return replaced(roots, order, new) if new else list(roots)


def made_of(some: Collection[int], order: Sequence[Node]) -> list[Node]:
    """List the nodes that are made of some, which are known by their identities."""
    found: list[Node] = []
    known = set(some)
    for node in order:
        if not known.isdisjoint(map(id, node.inputs)) and not is_leaf(node):
            known.add(id(node))
            found.append(node)
    return found


def is_light(value: Node) -> bool:
    """Tell whether a value takes few operations on arrays in memory, and numbers."""
    waiting, count = [value], 0
    while waiting:
        node = waiting.pop()
        row = node.row
        if is_leaf(node):
            continue
        if row.role is Role.ELEMENTWISE and count < LIGHT:
            count += 1
            waiting += node.inputs
            continue
        is_number = row.is_repeating and node.inputs[0].size == 1
        if not (is_number or row.role is Role.NUMBER):
            return False
    return count > 0


def read_apart(roots: Sequence[Node], order: Sequence[Node]) -> set[int]:
    """Find what is read by more than elementwise work of its shape that ends in whole writes.

    `order` lists the readers that matter, inputs first.
    """
    found = {id(root) for root in roots if not is_whole_write(root)}
    for node in reversed(order):
        is_write = is_whole_write(node)
        row = node.row
        is_plain = row.role is Role.ELEMENTWISE or row.is_same_bytes
        is_near = is_write or (is_plain and id(node) not in found)
        sources = node.inputs[1:] if is_write else node.inputs
        for source in sources:
            if not is_near or source.shape != node.shape:
                found.add(id(source))
    return found
