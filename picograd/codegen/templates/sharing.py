"""Elements of a row that several of its computes need, and that are dear: computed once, kept.

    sum[j] exp(x - max), exp(x - max) / sum      ->      e = exp(x - max), sum[j] e, e / sum

Whether the elements are kept, or computed in each pass after all, is for the rows to say.
"""

from dataclasses import replace

from picograd.codegen.templates.threads import is_expensive
from picograd.schedule.index import Axis, axes_of
from picograd.schedule.loop import Compute, Expr, Part, rewrite, walk

HELD_BYTES = 4  # of elements that are as wide in registers


def share_elements(part: Part, least: int = 0) -> Part:
    """Give the dearest elements that several computes have in common computes of their own.

    So are loads of so many bytes or more, if any: a compiler may else read them again.
    """
    while (found := dearest(part, least)) is not None:
        part = with_element(part, *found)
    return part


def dearest(part: Part, least: int) -> tuple[Expr, list[int]] | None:
    """Find the dearest element that several computes have in common, and these."""
    users: dict[Expr, list[int]] = {}
    for number, compute in enumerate(part.computes):
        for expr in dear_parts(part, compute, least):
            users.setdefault(expr, []).append(number)
    best, most = None, 0
    for expr, numbers in users.items():
        size = len(walk(expr))
        if size > most and is_worth_it(part, numbers):
            best, most = (expr, numbers), size
    return best


def dear_parts(part: Part, compute: Compute, least: int) -> list[Expr]:
    """List what is dear of each element of a row, wherever it is."""
    rows = set(part.rows)
    order = walk(compute.body)
    is_guarded = any(expr.op == "guard" for expr in order)
    is_inside = bool(compute.reduce) or not set(compute.axes) <= rows
    if is_guarded or not is_inside:
        return []
    found = []
    for expr in order:
        is_dear = is_expensive(expr.op)
        if is_dear or (least and is_held(part, expr, least)):
            found.append(expr)
    return found


def is_held(part: Part, expr: Expr, least: int) -> bool:
    """Tell whether an expression is a load of an element that each row has its own of."""
    if expr.op != "load" or expr.dtype.itemsize < least:
        return False
    axes = axes_of(expr.arg[1])
    return not axes.isdisjoint(part.rows) and not axes <= set(part.rows)


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
