"""stream_masks: what masks by position hide of a stream, and where they need not be looked at.

    where(j <= i, score, -inf)      hides (i, j) unless i - j is 0 or more: a *choice*

A choice shows a score where some indices are all 0 or more. Of a block of places, bounds of these
indices tell whether it is shown whole, in part or not at all.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from picograd.codegen.operands import expr_axes, size_of
from picograd.codegen.streams import Stream, binary, replaced
from picograd.dtype import bool_, int64
from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, constant, substitute
from picograd.schedule.loop import Condition, Expr, const, rewrite, walk

LOWEST = float("-inf")
GIVEN = ("load", "scalar")  # numbers that are known before a kernel runs
FARTHEST = 1 << 29  # position of any row or place; four of them are below 2**31


def affine(expr: Expr) -> Index | None:
    """Write an integer expression as an index; None if it is no sum of positions."""
    row = OPS.get(expr.op)
    if expr.op == "index":
        found: Index | None = expr.arg
    elif is_constant(expr) and not expr.dtype.is_float:
        found = constant(int(expr.arg))
    elif expr.op in GIVEN and expr.dtype.is_integer:
        found = clamped(expr)
    elif row is not None and row.keeps_value and expr.dtype.is_integer:
        found = affine(expr.args[0])
    elif row is not None and row.factors and expr.dtype.is_integer:
        parts = [affine(each) for each in expr.args]
        found = constant(0)
        for part, factor in zip(parts, row.factors, strict=True):
            found = None if part is None or found is None else found + part * factor
    else:
        found = None
    return found


def clamped(expr: Expr) -> Index:
    """Use a length in memory as an index: beyond all positions it does not matter how far."""
    wide = expr if expr.dtype is int64 else Expr("cast", (expr,), None, int64)
    low, high = (const(bound, int64) for bound in (-FARTHEST, FARTHEST))
    value = binary("minimum", binary("maximum", wide, low), high)
    return atom_index(Dynamic(value, -FARTHEST, FARTHEST))


def seen_where(condition: Expr) -> list[Index] | None:
    """List indices that are all 0 or more where a condition holds, and only there, if known."""
    row = OPS.get(condition.op)
    if row is None:
        return None
    if row.logic == "both":
        return joined(map(seen_where, condition.args))
    if row.logic == "not":
        return hidden_where(condition.args[0])
    if row.least is None:
        return None
    first, second = map(affine, condition.args)
    if first is None or second is None:
        return None
    return [second - first - row.least]


def joined(parts: Iterable[list[Index] | None]) -> list[Index] | None:
    """Join lists of indices; None if one of them is unknown."""
    every: list[Index] = []
    for part in parts:
        if part is None:
            return None
        every += part
    return every


def hidden_where(condition: Expr) -> list[Index] | None:
    """List indices that are all 0 or more where a condition fails, and only there."""
    row = OPS.get(condition.op)
    if row is None or row.logic == "both":
        return None
    if row.logic == "either":
        return joined(map(hidden_where, condition.args))
    if row.logic == "not":
        return seen_where(condition.args[0])
    found = seen_where(condition)
    if found is None:
        return None
    (index,) = found
    return [index * -1 - 1]


@dataclass(frozen=True, slots=True)
class Choice:
    """A `where` that shows one of its operands where `seen` are all 0 or more."""

    expr: Expr
    seen: tuple[Index, ...]
    shown: Expr
    other: Expr


def choice_of(expr: Expr) -> Choice | None:
    """Read an expression as a choice by position."""
    row = OPS.get(expr.op)
    if row is None or row.linear != (1, 2):
        return None
    condition, yes, no = expr.args
    is_swapped = is_constant(yes) and not is_constant(no)
    seen = hidden_where(condition) if is_swapped else seen_where(condition)
    if seen is None:
        return None
    shown, other = (no, yes) if is_swapped else (yes, no)
    return Choice(expr, tuple(seen), shown, other)


def choices(root: Expr) -> list[Choice]:
    """List the choices by position in an expression."""
    found = map(choice_of, walk(root))
    return [choice for choice in found if choice is not None]


def settled(root: Expr) -> Expr:
    """Show scores without their choices by position: where all of those hold."""
    found = {choice.expr: choice for choice in choices(root)}
    done: dict[Expr, Expr] = {}

    def find(expr: Expr) -> Expr | None:
        choice = found.get(expr)
        if choice is not None:
            done[expr] = settled(choice.shown)
        return done.get(expr)

    return replaced(root, find) if found else root


def emptied(stream: Stream) -> list[Index]:
    """List indices of which one below 0 says that a place adds nothing to any sum of a stream.

    Exponentials are 0 where scores are -inf; else the weights have to be 0.
    """
    if stream.peak is not None:
        return hidden_scores(stream.computes[stream.peak].body)
    bodies = [each.weight for each in stream.products]
    bodies += [stream.computes[number].body for number in stream.sums]
    first, *others = map(zero_where, bodies)
    return [x for x in first if all(x in each for each in others)]


def seen_places(stream: Stream) -> int:
    """Count the places that a row sees at most: those between two ends that move with it."""
    count = size_of(stream.over)
    indices = emptied(stream)
    for number, index in enumerate(indices):
        for other in indices[:number]:
            between = index + other  # 0 or more, where both are
            if not between.terms:
                count = min(count, between.const + 1)
    return count


def filled(choice: Expr, fill: float) -> tuple[list[Index], Expr | None]:
    """Read a `where` that is a number but where indices are all 0 or more: these, and the rest."""
    condition, yes, no = choice.args
    if is_number(no, fill):
        return needed_where(condition), yes
    if is_number(yes, fill):
        fails = Expr("logical_not", (condition,), None, bool_)
        return needed_where(fails), no
    return [], None


def needed_where(condition: Expr) -> list[Index]:
    """List indices of which one below 0 says that a condition fails, whatever else it asks for."""
    row = OPS.get(condition.op)
    if row is None:
        return []
    if row.logic == "both":
        return [index for part in condition.args for index in needed_where(part)]
    if row.logic == "not":
        (inner,) = condition.args
        row = OPS.get(inner.op)
        if row is not None and row.logic == "either":
            fails = (Expr(condition.op, (part,), None, bool_) for part in inner.args)
            return [index for part in fails for index in needed_where(part)]
        if row is not None and row.logic == "not":
            return needed_where(inner.args[0])
    return seen_where(condition) or []


def zero_where(weight: Expr) -> list[Index]:
    """List indices of which one below 0 says that a weight is 0."""
    row = OPS.get(weight.op)
    if row is None:
        return []
    if row.linear == (1, 2):
        needed, shown = filled(weight, 0.0)
        return needed if shown is None else [*needed, *zero_where(shown)]
    if row.keeps_value or row.linear == (0, 1):
        return [x for each in weight.args for x in zero_where(each)]
    if row.linear == (0,) and len(weight.args) == 2:  # a quotient
        return zero_where(weight.args[0])
    if row.is_exponential and OPS[weight.args[0].op].factors == (1, -1):
        return hidden_scores(weight.args[0].args[0])
    return []


def hidden_scores(score: Expr) -> list[Index]:
    """List indices of which one below 0 says that a score is -inf."""
    row = OPS.get(score.op)
    if row is None:
        return []
    if row.linear == (1, 2):
        needed, shown = filled(score, LOWEST)
        return needed if shown is None else [*needed, *hidden_scores(shown)]
    if row.keeps_value or row.factors == (1, 1):
        return [x for each in score.args for x in hidden_scores(each)]
    return []


def is_constant(expr: Expr) -> bool:
    """Tell whether an expression is a number that is code."""
    row = OPS.get(expr.op)
    return row is not None and row.role is Role.NUMBER


def is_number(expr: Expr, value: float) -> bool:
    """Tell whether an expression is a number, whatever it is converted to."""
    while expr.op in OPS and OPS[expr.op].keeps_value:
        expr = expr.args[0]
    return is_constant(expr) and float(expr.arg) == value


def hiding(score: Expr) -> set[Expr]:
    """List the conditions where which fail a score is -inf."""
    row = OPS.get(score.op)
    if row is None:
        return set()
    if row.linear == (1, 2):
        condition, yes, no = score.args
        if is_number(no, LOWEST):
            return {condition, *hiding(yes)}
        if is_number(yes, LOWEST):
            fails = Expr("logical_not", (condition,), None, bool_)
            return {fails, *hiding(no)}
    if row.keeps_value or row.factors == (1, 1):
        return set().union(*map(hiding, score.args))
    return set()


def shown_of(score: Expr) -> Expr:
    """Find what masks show of a score, under all of them."""
    row = OPS.get(score.op)
    if row is not None and row.linear == (1, 2):
        shown = [each for each in score.args[1:] if not is_number(each, LOWEST)]
        if len(shown) == 1:
            return shown_of(shown[0])
    if row is not None and row.keeps_value and score.dtype is score.args[0].dtype:
        return shown_of(score.args[0])
    return score


def unmasked(weight: Expr, hidden: set[Expr]) -> Expr:
    """Leave masks out of a weight that hide only scores that are -inf: it is 0 there anyway."""

    def find(expr: Expr) -> Expr | None:
        row = OPS.get(expr.op)
        if row is None or row.linear != (1, 2):
            return None
        condition, yes, no = expr.args
        is_mask = condition in hidden and is_number(no, 0.0)
        return unmasked(yes, hidden) if is_mask else None

    return replaced(weight, find) if hidden else weight


def unscaled(score: Expr) -> tuple[Expr, float]:
    """Take a positive factor off a score, also from under what hides it."""
    row = OPS.get(score.op)
    if row is None:
        return score, 1.0
    if row.keeps_value:
        return unscaled(score.args[0])
    if row.linear == (0, 1) and is_constant(score.args[1]) and float(score.args[1].arg) > 0:
        inner, factor = unscaled(score.args[0])
        return inner, factor * float(score.args[1].arg)
    if row.linear == (1, 2):
        shown = next((n for n in (1, 2) if is_number(score.args[3 - n], LOWEST)), 0)
        if shown:
            inner, factor = unscaled(score.args[shown])
            lowest = const(LOWEST, inner.dtype)
            args = (inner, lowest) if shown == 1 else (lowest, inner)
            return Expr("where", (score.args[0], *args), None, inner.dtype), factor
    return score, 1.0


def scaled(expr: Expr, factor: float) -> Expr:
    """Multiply by a number; two numbers are multiplied now."""
    if expr.op in OPS and OPS[expr.op].linear == (0, 1) and is_constant(expr.args[1]):
        expr, factor = expr.args[0], factor * float(expr.args[1].arg)
    return binary("mul", expr, const(factor, expr.dtype))


def minimum_of(indices: Sequence[Index]) -> Index:
    """Write the least of some indices as one."""
    return extreme_of("minimum", indices)


def extreme_of(op: str, indices: Sequence[Index]) -> Index:
    """Write the least or the greatest of some indices as one."""
    indices = list(dict.fromkeys(indices))
    if len(indices) == 1:
        return indices[0]
    found = Expr("index", (), indices[0], int64)
    for index in indices[1:]:
        found = binary(op, found, Expr("index", (), index, int64))
    choose = min if op == "minimum" else max
    lo, hi = choose(x.lo for x in indices), choose(x.hi for x in indices)
    return atom_index(Dynamic(found, lo, hi))


def extreme(
    index: Index, values: Mapping[Axis, Index], free: Container[Axis], is_most: bool
) -> Index:
    """Bound an index over all positions of the `free` axes, once `values` are put in.

    Exact where it is a sum of positions and given numbers, else as far as its own bounds tell.
    """
    moved = substitute(index, values, lambda expr: rewrite(expr, values))
    kept, rest = [], moved.const
    for atom, factor in moved.terms:
        axes = expr_axes(atom.expr) if isinstance(atom, Dynamic) else {atom}
        is_lone = isinstance(atom, Axis | Dynamic)
        if is_lone and not any(axis in free for axis in axes):
            kept.append((atom, factor))
            continue
        low, high = atom.bounds
        is_high = is_most == (factor > 0)
        rest += factor * (high if is_high else low)
    return Index(tuple(kept), rest)


def edges(
    stream: Stream, least: Callable[[Index], Index], conditions: Sequence[Condition]
) -> list[Index]:
    """List indices that are all 0 or more where a block needs neither masks nor guards.

    `least` bounds an index over the block; `conditions` are those of its rows and places. What an
    operand of a product chooses by its depth or columns masks no score.
    """
    found: dict[Index, None] = {}
    known = {*stream.batch, *stream.rows, *stream.over}
    for compute in stream.computes:
        if not compute.reduce:
            continue
        for choice in choices(compute.body):
            seen = [Expr("index", (), index, int64) for index in choice.seen]
            if all(expr_axes(each) <= known for each in seen):
                found.update(dict.fromkeys(map(least, choice.seen)))
    for where, _, hi in conditions:
        room = where * -1 + hi
        found[least(room)] = None
    return [index for index in found if index.lo < 0]
