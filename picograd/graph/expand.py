"""Expansion of composites into primitives, done before scheduling so that fusion sees through."""

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter

from picograd.graph.bounded import ended, ends_of, sources_of
from picograd.graph.node import Node, toposort
from picograd.graph.ops import OPS
from picograd.graph.row import EXPANDING
from picograd.target import SERIAL, Target

realized = attrgetter("realized")


def expand_composites(
    roots: Sequence[Node],
    kept: Collection[str] = (),
    leaf: Callable[[Node], Node] | None = None,
    target: Target = SERIAL,
    order: Iterable[Node] | None = None,
) -> list[Node]:
    """Replace every composite under `roots`; nodes without one below stay the same objects.

    softmax(x) -> div(exp(sub(x, max)), sum(...)). A realized node is a leaf: it is left alone, with
    everything below it. An op that is primitive in some cases (scatter) expands to itself in those.
    Sorts, scans and scatters become what suits the target. Iterative and memoised: each node is
    visited once, as `order` lists them if that is known. Ops in `kept` are left as they are; `leaf`
    gives what stands for a node without inputs, or one that is realized.
    """
    done: dict[int, Node] = {}
    alive: list[Node] = []  # expansions: their identities are keys
    expanding = EXPANDING.difference(kept)
    for node in toposort(roots, realized) if order is None else order:
        if node.realized is not None or not node.inputs:
            done[id(node)] = node if leaf is None else leaf(node)
        elif node.op in expanding:
            expand_one(node, kept, leaf, target, done, alive)
        else:
            done[id(node)] = node
            for child in node.inputs:  # most nodes stay as they are
                if done[id(child)] is not child:
                    done[id(node)] = node.with_inputs(tuple([done[id(x)] for x in node.inputs]))
                    break
    return [done[id(root)] for root in roots]


def expand_one(
    root: Node,
    kept: Collection[str],
    leaf: Callable[[Node], Node] | None,
    target: Target,
    done: dict[int, Node],
    alive: list[Node],
) -> None:
    """Note in `done` what stands for a node, and for the nodes of its expansion."""
    expansions: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        if id(node) in done:
            stack.pop()
            continue
        if node.realized is not None or not node.inputs:
            done[id(node)] = node if leaf is None else leaf(node)
            continue
        if node.op in EXPANDING and id(node) not in expansions:
            # what lies beyond the ends of its inputs would be summed in another form
            is_kept = node.op in kept or any(sources_of(node))
            made = None if is_kept else OPS[node.op].expansion(node, target)
            expansions[id(node)] = node if made is None else made
            alive.append(expansions[id(node)])
        instead = expansions.get(id(node), node)
        waiting = node.inputs if instead is node else (instead,)
        found = [done[id(child)] for child in waiting if id(child) in done]
        if len(found) < len(waiting):
            stack += waiting[::-1]
            continue
        stack.pop()
        done[id(node)] = (
            node.with_inputs(tuple(found)) if instead is node else ended(found[0], ends_of(node))
        )
