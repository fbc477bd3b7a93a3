"""readers: how many kernels would read a value, and which values one kernel computes together.

    y = x + 1;  z = y * y + y       y has two readers, and both end in the kernel of z

A *sink* is where the readers of a value end if they are elementwise: an output, or one operand of
an operation that is not (a view shifts indices, a product wants its operand in memory). Values with
one sink are computed once in one kernel, whatever the number of their readers; a value with several
is a sink for those below it. One walk from the outputs down.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.schedule.group import PRODUCTS, Sink

PASSING = {name for name, row in OPS.items() if row.view is not None}  # that show their input


@dataclass(slots=True)
class Readers:
    """What the walk finds, by the identity of nodes."""

    counts: dict[int, int] = field(default_factory=dict)  # kernels that read it, its own included
    sinks: dict[int, Sink] = field(default_factory=dict)
    ends: dict[int, tuple[Sink, ...]] = field(default_factory=dict)  # of products: all sinks
    operands: set[int] = field(default_factory=set)  # what a product must find in memory
    shifted: set[int] = field(default_factory=set)  # what is read at other places


def find_readers(
    order: Iterable[Node], equal: Mapping[int, Node], wanted: set[int], leaves: set[int]
) -> Readers:
    """Walk nodes, listed outputs first; those in `wanted` are stored, `leaves` read nothing."""
    found = Readers()
    ends: dict[int, dict[Sink, None]] = {}
    for node in order:
        key = id(node)
        own = ends.pop(key, {})
        is_stored = key in wanted
        found.counts[key] = len(own) + is_stored
        sink = next(iter(own)) if len(own) == 1 and not is_stored else (key, -1)
        found.sinks[key] = sink
        if key in leaves:
            continue
        if node.op in PRODUCTS:
            found.ends[key] = tuple(own)
        sources = [id(equal[id(source)]) for source in node.inputs]
        if node.op in PRODUCTS or (node.op in PASSING and key in found.operands):
            found.operands.update(sources)
        if node.row.is_shifting:
            found.shifted.update(sources)
        is_through = node.op in ELEMENTWISE
        for number, source in enumerate(sources):
            end = sink if is_through else (key, number)
            ends.setdefault(source, {})[end] = None
    return found
