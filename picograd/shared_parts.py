"""Recursion over nodes whose parts are shared: `y = x + x; z = y + y` has four paths to x.

A function that calls itself for the parts of a node walks each path, of which there are
exponentially many, and each step of it is a frame of Python's. `once_a_node` asks each part once,
at any depth.
"""

from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Any, TypeVar

Found = TypeVar("Found")
DEEP = 40  # calls within calls, before the walk begins anew further down


class TooDeep(Exception):
    """This class is a part that is asked for too many calls below the outermost one."""

    def __init__(self, running: local, node: Any) -> None:
        self.running, self.node = running, node


def once_a_node(function: Callable[..., Found]) -> Callable[..., Found]:
    """Let a function that calls itself for the parts of a node ask each of them once.

    Answers are kept until the outermost call returns, of which the inner ones share what else is
    given. Where calls lie deep inside each other, the part is asked first, and what led to it once
    more: twice the work at most, as what was answered on the way is known.
    """
    running = local()

    def outermost(node: Any, *given: Any) -> Found:
        running.known, waiting = {}, [node]
        try:
            while waiting:
                running.depth = 0
                try:
                    running.known[waiting[-1]] = function(waiting[-1], *given)
                    waiting.pop()
                except TooDeep as deep:
                    if deep.running is not running:
                        raise
                    waiting.append(deep.node)
            found: Found = running.known[node]
            return found
        finally:
            running.known = None

    @wraps(function)
    def call(node: Any, *given: Any) -> Found:
        known = getattr(running, "known", None)
        if known is None:
            return outermost(node, *given)
        if node not in known:
            if running.depth == DEEP:
                raise TooDeep(running, node)
            running.depth += 1
            known[node] = function(node, *given)
            running.depth -= 1
        found: Found = known[node]
        return found

    return call
