"""readers: how many kernels would read a value, and which values one kernel computes together.

    y = x + 1;  z = y * y + y       y has two readers, and both end in the kernel of z

A *sink* is where the readers of a value end if they are elementwise: an output, or one operand of
an operation that is not (a view shifts indices, a product wants its operand in memory). Values with
one sink are computed once in one kernel, whatever the number of their readers; a value with several
is a sink for those below it. One walk from the outputs down.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from math import prod

from picograd.graph.node import Node
from picograd.graph.row import SHOWING, VIEWS, Role, ops_of
from picograd.schedule.group import PRODUCTS, Facts, Sink
from picograd.schedule.views import dimension_map, is_window

ELEMENTWISE = ops_of(Role.ELEMENTWISE)


def find_readers(values: Sequence[Facts], wanted: Collection[Facts]) -> None:
    """Note in the facts of nodes, listed inputs first, who reads them; `wanted` are stored."""
    ends = defaultdict[int, dict[Sink, None]](dict)
    for facts in reversed(values):
        number, node = facts.number, facts.node
        own = ends.pop(number, {})
        is_stored = facts in wanted
        facts.kernels = len(own) + is_stored
        is_one = len(own) == 1 and not is_stored
        facts.sink = sink = next(iter(own)) if is_one else (number, -1)
        if facts.is_source:
            continue
        is_product, is_through = node.op in PRODUCTS, node.op in ELEMENTWISE
        if is_product:
            facts.ends = tuple(own)
        is_shown = facts.is_operand or facts.is_multiplied or facts.tap_rows > 0
        is_passing = is_shown and passes(node)
        is_operand = is_product or (facts.is_operand and is_passing)
        is_pair = is_through and len(facts.inputs) > 1 and node.dtype.is_float
        is_multiplied = is_pair or (facts.is_multiplied and is_passing)
        is_read = facts.tap_rows > 0 or (facts.is_multiplied and node.op in VIEWS)
        tap_rows = rows_of_taps(facts, is_passing) if is_read else 0
        if is_through:
            for source in facts.inputs:
                ends[source.number][sink] = None
        else:
            is_shifting = node.row.is_shifting
            for place, source in enumerate(facts.inputs):
                ends[source.number][number, place] = None
                if is_shifting:
                    source.is_shifted = True
        if not (is_operand or is_multiplied or tap_rows):
            continue
        for source in facts.inputs:
            if is_operand:
                source.is_operand = True
            if is_multiplied:
                source.is_multiplied = True
            if tap_rows > source.tap_rows:
                source.tap_rows = tap_rows


def rows_of_taps(facts: Facts, is_passing: bool = False) -> float:
    """Count the rows of windows, multiplied by something, in which each element of the input is."""
    node = facts.node
    if facts.is_multiplied and is_window(node):
        return prod(taps / stride for _, taps, stride, _ in node.arg[:-1])
    if not facts.tap_rows or not is_passing:
        return 0
    is_mixed = dimension_map(node) is None
    return 0 if is_mixed else facts.tap_rows


def passes(node: Node) -> bool:
    """Tell whether a product that reads a node reads its input from memory: a view, or wider."""
    if node.op in SHOWING:
        return True
    return node.row.keeps_value and node.dtype.bits > node.inputs[0].dtype.bits
