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
from picograd.graph.ops import OPS
from picograd.schedule.loop import Expr
from picograd.schedule.score_lowering import under_casts


def with_added_scores(stream: Stream) -> Stream:
    """Let scores that are read only as a sum share a tile: the first one's."""
    numbers = {score.number for score in stream.scores}
    first: dict[int, int] = {}

    def find(expr: Expr) -> Expr | None:
        summed = [under_casts(each) for each in summands(expr)]
        refs = [each for each in summed if each.op == "ref"]
        own = {each.arg for each in refs}
        is_sum = len(own) == len(summed) > 1
        if not (is_sum and own <= numbers):
            return None
        top = min(own)
        first.update(dict.fromkeys(own, top))
        return Expr("ref", (), top, refs[0].dtype)

    if len(numbers) < 2:
        return stream
    computes = []
    for compute in stream.computes:
        body = replaced(compute.body, find)
        computes.append(replace(compute, body=body))
    products = []
    for product in stream.products:
        weight = replaced(product.weight, find)
        products.append(replace(product, weight=weight))
    added = {number: top for number, top in first.items() if number != top}
    read = refs_of([each.body for each in computes])
    is_whole = read.isdisjoint(added) and numbers <= read | added.keys()
    if not (added and is_whole):
        return stream
    scores = []
    for score in stream.scores:
        into = added.get(score.number)
        scores.append(replace(score, added=into))
    return replace(stream, computes=tuple(computes), products=tuple(products), scores=tuple(scores))


def summands(expr: Expr) -> Iterator[Expr]:
    """Yield what a sum is of, sums in it included; the expression itself if it is no sum."""
    stack = [expr]
    while stack:
        each = stack.pop()
        inner = under_casts(each)
        if inner.op in OPS and OPS[inner.op].factors == (1, 1):
            stack += inner.args
        else:
            yield each
