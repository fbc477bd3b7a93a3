"""rescaled_sums: the maximum of a long row and a sum of exponentials below it are one reading.

    m = max(x),  s = sum(exp(x - m))        a kernel each, on a GPU, where rows are few and long

Blocks that share a row know the maximum of their own piece. What each sums below that is scaled
when pieces are put together: exp(x - m) = exp(x - p) * exp(p - m). So both are one kernel
(codegen/templates/rescaled_sums.py), and a softmax of such rows takes two.
"""

from picograd.graph.node import Node
from picograd.graph.row import EXPONENTIALS, NUMBERS, SCALARS, Role
from picograd.schedule.group import Facts, Group

STEPS = 16  # nodes between a maximum and what is subtracted: infinities may be 0 there
BETWEEN = (Role.ELEMENTWISE, Role.VIEW)


def is_rescaled(facts: Facts, home: Group) -> bool:
    """Tell whether a reduction is a sum of exponentials below the maximum that its group finds."""
    powers = facts.inputs[0].node
    is_made = powers.realized is None and powers.op in EXPONENTIALS
    below = powers.inputs[0] if is_made and facts.node.arg[0] == "sum" else None
    if below is None or below.realized is not None or below.row.factors != (1, -1):
        return False
    x, shift = below.inputs
    peaks = [each.node for each in home.members if is_peak(each, x)]
    return len(peaks) == 1 and is_made_of(shift, peaks[0])


def is_peak(member: Facts, x: Node) -> bool:
    """Tell whether a member is the maximum of rows of a value."""
    return member.level == "reduce" and member.node.arg[0] == "max" and member.node.inputs[0] is x


def is_made_of(shift: Node, peak: Node) -> bool:
    """Tell whether what is subtracted depends on a maximum alone."""
    pending, count = [shift], 0
    while pending:
        node = pending.pop()
        count += 1
        if node is peak:
            continue
        is_number = node.op in NUMBERS or node.op in SCALARS
        is_between = node.realized is None and node.row.role in BETWEEN
        if count > STEPS or not (is_between or is_number):
            return False
        pending += node.inputs
    return True
