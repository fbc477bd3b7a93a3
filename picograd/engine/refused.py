"""What waits to be computed, and cannot be: it must not keep others from being computed.

Writes in place run with the first computation that follows them, whatever that asks for; so do live
tensors that read what is written, and checks. If one of these is made of what is gone, or no plan
of it can be made, it waits no more. The computation that met it raises the error, and so does
whoever asks for the tensor; all else goes on.
"""

from collections.abc import Sequence
from typing import Any

from picograd.engine import carried
from picograd.engine.carried import become_leaf
from picograd.engine.live import LiveTable
from picograd.engine.plan_key import graph_key, is_gone, leaf_buffer, walk_pending
from picograd.engine.realize import find_plan
from picograd.graph.node import Node


def forget_lost(written: Sequence[Node], *tables: Any) -> bool:
    """Let what was written wait no more where it is made of what is gone; False if nothing is.

    An error of a signal's handler may come between the run of a plan and the notes of it. Only
    those who read such a tensor hear of it.
    """
    gone = [(each, next(filter(is_gone, walk_pending([each])), None)) for each in written]
    lost = [(node, leaf.arg) for node, leaf in gone if leaf is not None]
    for node, past in lost:
        become_leaf(node, past)
        for table in tables:
            table.pop(node, None)
    return bool(lost)


def forget_refused(
    problem: Exception, waiting: Sequence[Node], checks: list[Any], live: LiveTable, *tables: Any
) -> None:
    """Let what waits wait no more where no plan can be made of it, after an error.

    What was written, and is in no table, is tried again by whoever asks for its tensor. Where
    memory ran out nothing is refused: there may be more the next time.
    """
    if isinstance(problem, MemoryError):
        return
    carried.forget_hints()
    found = [*filter(is_refused, waiting)]
    checks[:] = [each for each in checks if each[0] not in found]
    for node in found:
        if any(node in table for table in tables):
            for table in tables:
                table.pop(node, None)
        else:  # a tensor that reads what is written, and would have been computed before
            live.drop(id(node))


def is_refused(node: Node) -> bool:
    """Tell whether no plan can be made of a node."""
    if leaf_buffer(node) is not None:
        return False
    try:
        find_plan(graph_key([node]), [node])
    except Exception:
        return True
    return False
