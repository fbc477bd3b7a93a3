"""Elements of a row that several of its computes need, and that are dear: computed once, kept.

    sum[j] exp(x - max), exp(x - max) / sum      ->      e = exp(x - max), sum[j] e, e / sum

Whether the elements are kept, or computed in each pass after all, is for the rows to say.
"""

from dataclasses import replace

from picograd.codegen.templates.threads import EXPENSIVE
from picograd.schedule.index import Axis
from picograd.schedule.loop import Compute, Expr, Part, rewrite, walk


def share_elements(part: Part) -> Part:
    """Give the dearest elements that several computes have in common computes of their own."""
    while (found := dearest(part)) is not None:
        part = with_element(part, *found)
    return part


def dearest(part: Part) -> tuple[Expr, list[int]] | None:
    """Find the dearest element that several computes have in common, and these."""
    users: dict[Expr, list[int]] = {}
    for number, compute in enumerate(part.computes):
        for expr in dear_parts(part, compute):
            users.setdefault(expr, []).append(number)
    found = [(expr, numbers) for expr, numbers in users.items() if is_worth_it(part, numbers)]
    return max(found, key=lambda each: len(walk(each[0])), default=None)


def dear_parts(part: Part, compute: Compute) -> list[Expr]:
    """List what is dear of each element of a row, wherever it is."""
    rows = set(part.rows)
    order = walk(compute.body)
    is_guarded = any(expr.op == "guard" for expr in order)
    is_inside = bool(compute.reduce) or not set(compute.axes) <= rows
    if is_guarded or not is_inside:
        return []
    return [expr for expr in order if expr.op in EXPENSIVE]


def is_worth_it(part: Part, users: list[int]) -> bool:
    """Tell whether several computes over the same elements have something in common."""
    if len(set(users)) < 2:
        return False
    spaces = set()
    for number in users:
        compute = part.computes[number]
        spaces.add(frozenset(points_of(compute)))
    first, *others = spaces
    return not others and len(first) > len(part.rows)


def points_of(compute: Compute) -> tuple[Axis, ...]:
    """List the axes of all that a compute looks at."""
    return (*compute.axes, *compute.reduce)


def with_element(part: Part, element: Expr, users: list[int]) -> Part:
    """Put a compute of an element before the first that uses it.

    Where the rows themselves name the same expression, of no element, it stays theirs.
    """
    first = users[0]
    axes = points_of(part.computes[first])
    inner = [axis for axis in axes if axis not in part.rows]
    new = Compute((*part.rows, *inner), (), None, element, element.dtype)
    kept = Expr("ref", (), first, element.dtype)

    def shifted(expr: Expr) -> Expr | None:
        """Count the computes from the new one on further."""
        if expr.op != "ref" or expr.arg < first:
            return None
        return Expr("ref", (), expr.arg + 1, expr.dtype)

    moved = rewrite(element, {}, shifted)

    def shared(expr: Expr) -> Expr | None:
        return kept if expr == moved else None

    after = []
    for number, compute in enumerate(part.computes[first:], first):
        body = rewrite(compute.body, {}, shifted)
        is_user = number in users
        if is_user:
            body = rewrite(body, {}, shared)
        after.append(replace(compute, body=body))
    return replace(part, computes=(*part.computes[:first], new, *after))
