"""score_masks: the conditions that masks put on scores, and what they say of positions.

    where((j <= i) & kept[i, j], score, -inf)      hides (i, j) unless both hold

A score is -inf, and a weight 0, where a condition fails. Some conditions compare positions, and
numbers known before a kernel runs: those hold where indices are 0 or more.
"""

from collections.abc import Iterable
from itertools import chain

import numpy as np

from picograd.dtype import bool_, int64
from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.schedule.index import Dynamic, Index, atom_index, constant
from picograd.schedule.loop import Expr, const, dynamics_of, walk
from picograd.shared_parts import once_a_node

LOWEST = float("-inf")
GIVEN = ("load", "scalar")  # numbers that are known before a kernel runs
FARTHEST = 1 << 29  # position of any row or place; four of them are below 2**31


@once_a_node
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
    value = expr if expr.dtype is int64 else Expr("cast", (expr,), None, int64)
    for op, bound in (("maximum", -FARTHEST), ("minimum", FARTHEST)):
        value = Expr(op, (value, const(bound, int64)), None, int64)
    return atom_index(Dynamic(value, -FARTHEST, FARTHEST))


@once_a_node
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
    return None if first is None or second is None else [second - first - row.least]


def joined(parts: Iterable[list[Index] | None]) -> list[Index] | None:
    """Join lists of indices, each of them once; None if a list is unknown."""
    every: dict[Index, None] = {}
    for part in parts:
        if part is None:
            return None
        every.update(dict.fromkeys(part))
    return [*every]


@once_a_node
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


def distinct(parts: Iterable[list[Expr]]) -> list[Expr]:
    """Join lists of conditions, each of them once."""
    return list(dict.fromkeys(chain.from_iterable(parts)))


def negated(condition: Expr) -> Expr:
    """Write that a condition fails."""
    return Expr("logical_not", (condition,), None, bool_)


def is_found(index: Index) -> bool:
    """Tell whether an index is 0 or more by what a kernel found before this one."""
    parts = (part for atom in dynamics_of(index) for part in walk(atom.expr))
    return any(part.op == "load" for part in parts)


@once_a_node
def whole_where(condition: Expr) -> list[Index] | None:
    """List indices that are all 0 or more only where a condition holds, if some are known."""
    row = OPS.get(condition.op)
    if row is not None and row.logic == "either":
        parts = map(whole_where, condition.args)
        return next((part for part in parts if part is not None), None)
    if row is not None and row.logic == "both":
        return joined(map(whole_where, condition.args))
    return seen_where(condition)


def bare(condition: Expr) -> Expr:
    """Take off a condition where it is known to hold by what a kernel found before this one."""
    row = OPS.get(condition.op)
    if row is None or row.logic != "either":
        return condition
    known, rest = condition.args
    found = seen_where(known)
    return rest if found and all(map(is_found, found)) else condition


@once_a_node
def conjuncts(condition: Expr) -> list[Expr]:
    """List conditions that all hold where one does."""
    condition = bare(condition)
    row = OPS.get(condition.op)
    if row is not None and row.logic == "both":
        return distinct(map(conjuncts, condition.args))
    if row is not None and row.logic == "not":
        (inner,) = condition.args
        row = OPS.get(inner.op)
        if row is not None and row.logic == "either":
            return distinct(map(conjuncts, map(negated, inner.args)))
        if row is not None and row.logic == "not":
            return conjuncts(inner.args[0])
    return [condition]


def needed_where(condition: Expr) -> list[Index]:
    """List indices of which one below 0 says that a condition fails, whatever else it asks for."""
    every = [*conjuncts(condition)]
    for part in conjuncts(condition):
        every += [each for score in exceeding(part) for each in conjuncts(score)]
    return [index for part in every for index in seen_where(part) or []]


def exceeding(condition: Expr) -> list[Expr]:
    """List what a score that is compared has to be shown by: -inf exceeds no number."""
    row = OPS.get(condition.op)
    if row is None or row.least is None:
        return []
    least, score = condition.args
    return hiding(score) if is_constant(least) and least.dtype.is_float else []


def filled(choice: Expr, fill: float) -> tuple[list[Expr], Expr | None]:
    """Read a `where` that is a number but where a condition holds: that, and the rest."""
    condition, yes, no = choice.args
    if is_number(no, fill):
        return [condition], yes
    if is_number(yes, fill):
        return [negated(condition)], no
    return [], None


@once_a_node
def weighing(weight: Expr) -> list[Expr]:
    """List conditions where which fail a weight is 0."""
    row = OPS.get(weight.op)
    if row is None:
        return []
    if row.linear == (1, 2):
        needed, shown = filled(weight, 0.0)
        return needed if shown is None else distinct((needed, weighing(shown)))
    if len(row.factors) > 1:
        first, *others = [dict.fromkeys(weighing(each)) for each in weight.args]
        return [x for x in first if all(x in each for each in others)]
    if row.keeps_value or row.linear == (0, 1):
        return distinct(map(weighing, weight.args))
    if row.linear == (0,) and len(weight.args) == 2:  # a quotient
        return weighing(weight.args[0])
    if not is_zero_at_lowest(weight):
        return []
    score, *_ = weight.args
    under = OPS.get(score.op)  # None of what lies in memory, as a factor that is learned
    is_less = under is not None and under.factors == (1, -1)
    return hiding(score.args[0] if is_less else score)


def is_zero_at_lowest(weight: Expr) -> bool:
    """Tell whether an operation leaves 0 of a score of -inf, as exponentials and ReLU do."""
    score, *rest = weight.args or [weight]
    row = OPS[weight.op]
    is_of_one = row.role is Role.ELEMENTWISE and weight.dtype.is_float
    if not is_of_one or is_constant(score) or not all(map(is_constant, rest)):
        return False
    if row.numpy is None:
        return False
    with np.errstate(all="ignore"):
        value = row.numpy(np.float32(LOWEST), *[float(each.arg) for each in rest])
    return bool(value == 0)


@once_a_node
def hiding(score: Expr) -> list[Expr]:
    """List conditions where which fail a score is -inf."""
    row = OPS.get(score.op)
    if row is None:
        return []
    if row.linear == (1, 2):
        needed, shown = filled(score, LOWEST)
        return needed if shown is None else distinct((needed, hiding(shown)))
    if row.keeps_value:
        return hiding(score.args[0])
    if row.factors == (1, 1):
        return distinct(
            part for each in score.args for part in (hiding(each), hiding_numbers(each))
        )
    return []


def hiding_numbers(added: Expr) -> list[Expr]:
    """Write that a number in memory, which is added to a score, is not -inf."""
    number = added
    while number.op in OPS and OPS[number.op].keeps_value:
        (number,) = number.args
    if number.op != "load":
        return []
    return [Expr("not_equal", (added, const(LOWEST, added.dtype)), None, bool_)]


def is_of_numbers(condition: Expr) -> bool:
    """Tell whether a condition is that an added number is not -inf."""
    return len(condition.args) == 2 and is_number(condition.args[1], LOWEST)


def is_constant(expr: Expr) -> bool:
    """Tell whether an expression is a number that is code."""
    row = OPS.get(expr.op)
    return row is not None and row.role is Role.NUMBER


def is_number(expr: Expr, value: float) -> bool:
    """Tell whether an expression is a number, whatever it is converted to."""
    while expr.op in OPS and OPS[expr.op].keeps_value:
        expr = expr.args[0]
    return is_constant(expr) and float(expr.arg) == value
