"""added_scores: scores that are a sum of products have one tile, to which each product is added.

    score0 = q @ k^T;  score1 = r @ t^T;  edit(score0 + score1)
 -> score0 = q @ k^T;  score0 += r @ t^T;  edit(score0)

As in latent attention, whose positions have queries and keys of their own. Nothing is copied side
by side for it, and what rotates does so for its own columns.
"""

from collections.abc import Iterator
from dataclasses import replace

from picograd.codegen.stream_masks import refs_of
from picograd.codegen.streams import Stream, replaced
from picograd.schedule.loop import Expr
from picograd.schedule.score_lowering import under_casts


def with_added_scores(stream: Stream) -> Stream:
    """Let scores that are read only as a sum share a tile: the first one's."""
    if len(stream.scores) < 2:
        return stream
    numbers = {score.number for score in stream.scores}
    first: dict[int, int] = {}

    def find(expr: Expr) -> Expr | None:
        summed = [under_casts(each) for each in summands(expr)]
        own = [each.arg for each in summed if each.op == "ref" and each.arg in numbers]
        if len(own) < 2 or len(set(own)) != len(summed):
            return None
        first.update(dict.fromkeys(own, min(own)))
        return Expr("ref", (), min(own), summed[0].dtype)

    computes = [replace(each, body=replaced(each.body, find)) for each in stream.computes]
    products = [replace(each, weight=replaced(each.weight, find)) for each in stream.products]
    added = {number: top for number, top in first.items() if number != top}
    read = refs_of([each.body for each in computes])
    if not added or not read.isdisjoint(added) or not numbers <= read | added.keys():
        return stream
    scores = [replace(each, added=added.get(each.number)) for each in stream.scores]
    return replace(stream, computes=tuple(computes), products=tuple(products), scores=tuple(scores))


def summands(expr: Expr) -> Iterator[Expr]:
    """Yield what a sum is of, sums in it included; the expression itself if it is no sum."""
    stack = [expr]
    while stack:
        each = stack.pop()
        inner = under_casts(each)
        if inner.op == "add":
            stack += inner.args
        else:
            yield each
