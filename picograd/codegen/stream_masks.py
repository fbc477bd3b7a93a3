"""stream_masks: what masks by position hide of a stream, and where they need not be looked at.

    where(j <= i, score, -inf)      hides (i, j) unless i - j is 0 or more: a *choice*

A choice shows a score where some indices are all 0 or more. Of a block of places, bounds of these
indices tell whether it is shown whole, in part or not at all.

stream_powers: exponentials in the weights of a stream, written as powers of 2.

    exp(x - m) / l    ->    2^(x * log2(e) - (m * log2(e) + log2(l)))

What is subtracted has one value a row. Of a hidden row it is so much that 0 is left.

stream_formulas: the formulas of a stream written with fewer operations, for GPUs.

    (a / 8) * b * 20    ->    (a * b) * 2.5          numbers are gathered behind a product

A division by a number is a product by its inverse: its last digit may differ.
"""

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain

from picograd.codegen.operands import expr_axes, size_of
from picograd.codegen.streams import Stream, replaced
from picograd.dtype import bool_, float32, int32, int64
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Atom,
    Axis,
    Div,
    Dynamic,
    Index,
    atom_index,
    axes_of,
    constant,
    substitute,
)
from picograd.schedule.loop import Condition, Expr, Part, binary, cast, const, rewrite, walk
from picograd.schedule.monoid import identity
from picograd.schedule.score_masks import (
    FARTHEST,
    LOWEST,
    bare,
    filled,
    hidden_where,
    hiding,
    is_constant,
    is_number,
    needed_where,
    weighing,
    whole_where,
)
from picograd.shared_parts import once_a_node

MOST_VALUES = 8  # of an array, that bound an index


@dataclass(frozen=True, slots=True)
class Choice:
    """A `where` that shows one of its operands, at least where `seen` are all 0 or more."""

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
    seen = hidden_where(condition) if is_swapped else whole_where(condition)
    if seen is None:
        return None
    shown, other = (no, yes) if is_swapped else (yes, no)
    return Choice(expr, tuple(seen), shown, other)


def choices(root: Expr) -> list[Choice]:
    """List the choices by position in an expression."""
    return [choice for choice in map(choice_of, walk(root)) if choice is not None]


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


def bared(root: Expr) -> Expr:
    """Write masks without where they are known to hold: for blocks that have something else."""
    return rewrite(root, {}, lambda expr: bare(expr))


def emptied(stream: Stream) -> list[Index]:
    """List indices of which one below 0 says that a place adds nothing to any sum of a stream.

    Exponentials are 0 where scores are -inf; else the weights have to be 0, and what is kept.
    """
    if stream.peak is not None:
        every = [hiding(stream.computes[number].body) for number in stream.peaks]
    else:
        bodies = [each.weight for each in stream.weighed]
        bodies += [stream.computes[number].body for number in (*stream.sums, *stream.kept)]
        every = list(map(weighing, bodies))
    first, *others = [[x for part in each for x in needed_where(part)] for each in every]
    found = [x for x in first if all(x in each for each in others)]
    return [*found, *stream.shown]


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


def unmasked(weight: Expr, hidden: Collection[Expr]) -> Expr:
    """Leave masks out of a weight that hide only scores that are -inf: it is 0 there anyway."""

    def find(expr: Expr) -> Expr | None:
        row = OPS.get(expr.op)
        if row is None or row.linear != (1, 2):
            return None
        conditions, shown = filled(expr, 0.0)
        if shown is None or conditions[0] not in hidden:
            return None
        return unmasked(shown, hidden)

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
    choose = min if op == "minimum" else max
    lo, hi = choose(x.lo for x in indices), choose(x.hi for x in indices)
    is_near = all(-FARTHEST < x.lo <= x.hi < FARTHEST for x in indices)
    each = [Expr("index", (), index, int32 if is_near else int64) for index in indices]
    return atom_index(Dynamic(reduce(partial(binary, op), each), lo, hi))


def extreme(
    index: Index, values: Mapping[Axis, Index], free: Container[Axis], is_most: bool
) -> Index:
    """Bound an index over all positions of the `free` axes, once `values` are put in.

    Exact where it is a sum of positions and given numbers, else as far as its own bounds tell.
    """
    kept, rest = [], constant(index.const)
    for atom, factor in index.terms:
        is_high = is_most == (factor > 0)
        found = few_values(atom, values, free, is_high)
        if found:
            rest += extreme_of("maximum" if is_high else "minimum", found) * factor
        else:
            kept.append((atom, factor))
    moved = substitute(Index(tuple(kept), 0), values, lambda expr: rewrite(expr, values))
    for atom, factor in moved.terms:
        is_lone = isinstance(atom, Axis | Dynamic)
        is_known = is_lone and not any(axis in free for axis in atom_axes(atom))
        bound = atom.bounds[is_most == (factor > 0)]
        rest += atom_index(atom) * factor if is_known else bound * factor
    return rest + moved.const


def atom_axes(atom: Atom) -> set[Axis]:
    """Find every axis that an atom of an index depends on."""
    return expr_axes(atom.expr) if isinstance(atom, Dynamic) else axes_of(atom_index(atom))


def few_values(
    atom: Atom, values: Mapping[Axis, Index], free: Container[Axis], is_high: bool
) -> list[Index]:
    """List the elements of an array that are read at `free` positions, of which quotients count
    a few; none if that is not so.

    Rows behind the end have none: there they are the least, or the most.
    """
    if not isinstance(atom, Dynamic) or atom.expr.op != "load":
        return []
    slot, place = atom.expr.arg
    moved = substitute(place, values)
    moving = [term for term in moved.terms if any(axis in free for axis in atom_axes(term[0]))]
    places = [moved] if moving else []
    for quotient, factor in moving:
        steps = few_steps(quotient, free)
        rest = atom_index(quotient) * factor
        places = [each - rest + step * factor for each in places for step in steps]
    if len(places) > MOST_VALUES:
        return []
    found = []
    for at in places:
        value = Expr("load", (), (slot, at), atom.expr.dtype)
        if at.lo < place.lo or at.hi > place.hi:
            fill = const(atom.bounds[not is_high], value.dtype)
            is_there = at, place.lo, place.hi
            value = Expr("guard", (value, fill), (is_there,), value.dtype)
        found.append(atom_index(Dynamic(value, *atom.bounds)))
    return found


def few_steps(quotient: Atom, free: Container[Axis]) -> list[Index]:
    """List the values of a quotient over all positions of the `free` axes; none if not a few."""
    if not isinstance(quotient, Div):
        return []
    low, high = (extreme(quotient.index, {}, free, is_most) for is_most in (False, True))
    count = (high - low) // quotient.n + 1
    if count.terms or count.const > MOST_VALUES:
        return []
    steps = [low // quotient.n + number for number in range(count.const)]
    return list(dict.fromkeys([*steps, high // quotient.n]))


def edges(
    stream: Stream, least: Callable[[Index], Index], conditions: Sequence[Condition]
) -> list[Index]:
    """List indices that are all 0 or more where a block needs neither masks nor guards.

    `least` bounds an index over the block; `conditions` are those of its rows and places. What an
    operand of a product chooses by its depth or columns masks no score.
    """
    found: dict[Index, None] = {}
    known = {*stream.batch, *stream.rows, *stream.over}
    for number, compute in enumerate(stream.computes):
        if not (compute.reduce or number in stream.kept):
            continue
        for choice in choices(compute.body):
            seen = [Expr("index", (), index, int64) for index in choice.seen]
            if all(expr_axes(each) <= known for each in seen):
                found.update(dict.fromkeys(map(least, choice.seen)))
    for where, _, hi in conditions:
        room = where * -1 + hi
        found[least(room)] = None
    return [index for index in found if index.lo < 0]


def refs_of(exprs: Iterable[Expr]) -> set[int]:
    """Find the numbers of the scores that expressions are made of."""
    parts = chain.from_iterable(map(walk, exprs))
    return {part.arg for part in parts if part.op == "ref"}


def exponentials_of(exprs: Iterable[Expr]) -> set[Expr]:
    """Find the exponentials in expressions: see `exponentials_in`."""
    return set(chain.from_iterable(map(exponentials_in, exprs)))


def outermost(root: Expr, find: Callable[[Expr], Expr | None]) -> Expr:
    """Replace the outermost parts of an expression that `find` knows; shared ones are seen once."""
    done: dict[int, Expr] = {}

    def changed(expr: Expr) -> Expr:
        if id(expr) not in done:
            found = find(expr)
            if found is None:
                args = tuple(map(changed, expr.args))
                found = Expr(expr.op, args, expr.arg, expr.dtype)
            done[id(expr)] = found
        return done[id(expr)]

    return changed(root)


def unrounded(expr: Expr) -> Expr:
    """Take conversions off: weights are rounded once, where they are packed."""
    while expr.args and OPS[expr.op].keeps_value:
        (expr,) = expr.args
    return expr


def is_given(expr: Expr) -> bool:
    """Tell whether a value is one for all of a launch."""
    return is_constant(expr) or expr.op == "scalar"


@once_a_node
def unrounded_sum(expr: Expr) -> Expr:
    """Take conversions off a weight, and off what it is the sum of, a multiple, or a part."""
    expr = unrounded(expr)
    row = OPS.get(expr.op)
    if row is None:
        return expr
    if row.linear == (1, 2) and is_constant(expr.args[2]):  # dropout, or a mask
        where, shown, fill = expr.args
        shown = unrounded_sum(shown)
        fill = const(fill.arg, shown.dtype)
        return Expr(expr.op, (where, shown, fill), None, shown.dtype)
    if row.linear == (0, 1) and is_given(expr.args[1]):
        inner = unrounded_sum(expr.args[0])
        return Expr(expr.op, (inner, expr.args[1]), None, inner.dtype)
    if len(row.factors) < 2:
        return expr
    parts = tuple(map(unrounded_sum, expr.args))
    dtypes = {part.dtype for part in parts}
    return Expr(expr.op, parts, expr.arg, parts[0].dtype) if len(dtypes) == 1 else expr


def exponentials_in(body: Expr) -> list[Expr]:
    """List the largest parts of a body that are exp(x - m), or that over a total."""
    found: list[Expr] = []

    def find(expr: Expr) -> Expr | None:
        if parts_of(expr) is None:
            return None
        found.append(expr)
        return expr

    outermost(body, find)
    return found


@once_a_node
def is_multiple(body: Expr, of: set[Expr]) -> bool:
    """Tell whether a body is 0 wherever the one of `of` in it is."""
    if body in of:
        return True
    row = OPS.get(body.op)
    if row is not None and len(row.factors) > 1:
        return all(is_multiple(part, of) for part in body.args)
    if row is None or not row.linear:
        return False
    parts = [body.args[place] for place in row.linear]
    has_multiple = any(is_multiple(part, of) for part in parts)
    if row.linear == (1, 2):
        has_zero = any(is_number(part, 0.0) for part in parts)
        return has_zero and has_multiple
    return has_multiple


Parts = tuple[Expr, Expr, Expr | None, float]


def parts_of(expr: Expr) -> Parts | None:
    """Read exp(x - m), or that over a total: x, m, the total, and the base of the exponential."""
    total: Expr | None = None
    inner = expr
    row = OPS.get(expr.op)
    is_quotient = row is not None and row.linear == (0,)
    if is_quotient and len(expr.args) == 2:
        above, total = expr.args
        inner = unrounded(above)
    if not is_power(inner) or len(inner.args) != 1:
        return None
    (less,) = inner.args
    row = OPS.get(less.op)
    is_difference = row is not None and row.factors == (1, -1)
    if not is_difference or less.dtype.bits != 32:
        return None
    score, peak = less.args
    base = OPS[inner.op].numpy(1.0)  # type: ignore[misc]
    return score, peak, total, float(base)


@dataclass(frozen=True, slots=True)
class Power:
    """A power of 2 of `factor` times `score`, less what has one value a row."""

    score: Expr
    factor: Expr
    peak: Expr
    exponent: Expr

    @staticmethod
    def of(expr: Expr) -> "Power":
        """Read exp(x - m), or that over a total, as such a power."""
        found = parts_of(expr) or internal("an exponential of a difference", expr)
        score, peak, total, base = found
        inner, scale = unscaled(score)
        bits = math.log2(base)
        exponent = scaled(peak, bits)
        if total is not None:
            logarithm = Expr("log", (total,), None, total.dtype)
            total_bits = scaled(logarithm, math.log2(math.e))
            exponent = binary("add", exponent, total_bits)
        return Power(inner, const(scale * bits, peak.dtype), peak, exponent)

    def less(self, is_safe: bool) -> Expr:
        """Write what is subtracted; if it is to be safe, so much of a hidden row that 0 is left."""
        if not is_safe:
            return self.exponent
        dtype = self.peak.dtype
        lowest = const(-math.inf, dtype)
        highest = const(math.inf, dtype)
        is_low = Expr("equal", (self.peak, lowest), None, bool_)
        return Expr("where", (is_low, highest, self.exponent), None, dtype)


def without_factor(weight: Expr) -> tuple[Expr, float]:
    """Take the numbers off that a weight is multiplied by last: the result is, instead."""
    factor = 1.0
    weight = unrounded(weight)
    while weight.op in OPS and OPS[weight.op].linear == (0, 1):
        first, second = weight.args
        if not is_constant(second):
            break
        factor *= float(second.arg)
        weight = unrounded(first)
    return weight, factor


def is_power(expr: Expr) -> bool:
    """Tell whether an expression is an exponential."""
    row = OPS.get(expr.op)
    return row is not None and row.is_exponential


def power_of_two(score: Expr, less: Expr) -> Expr:
    """Write the power of 2 of a score less what is of its row."""
    exponent = binary("sub", score, less)
    return Expr("quick_exp2", (exponent,), None, exponent.dtype)


def needs_guard(expr: Expr) -> bool:
    """Tell whether an expression must not be computed where conditions do not hold."""
    return expr.op == "load" or is_power(expr)


def power_of(expr: Expr) -> Expr | None:
    """Write exp(x - m), or that over a total, as one power of 2: what is subtracted is of a row."""
    if parts_of(expr) is None:
        return None
    power = Power.of(expr)
    factor = power.factor
    scaled_score = binary("mul", cast(power.score, factor.dtype), factor)
    exponent = binary("sub", scaled_score, power.less(False))
    return Expr("quick_exp2", (exponent,), None, exponent.dtype)


def with_few_operations(part: Part) -> Part:
    """Gather the numbers in the formulas of a part, of products in each factor by itself."""
    computes = [replace(c, body=with_few(c.body, c.monoid == "sum")) for c in part.computes]
    return replace(part, computes=tuple(computes))


def with_few(body: Expr, is_summed: bool) -> Expr:
    """Gather the numbers in a formula: see `with_few_operations`."""
    row = OPS.get(body.op)
    if body.op == "guard":
        args = [with_few(body.args[0], is_summed), body.args[1]]
    elif is_summed and row is not None and row.linear == (0, 1):
        args = [rewrite(each, {}, gathered) for each in body.args]
    else:
        return rewrite(body, {}, gathered)
    return Expr(body.op, tuple(args), body.arg, body.dtype)


def gathered(expr: Expr) -> Expr | None:
    """Gather the numbers of a product, or of a division by a number, whose parts have theirs."""
    row = OPS.get(expr.op)
    if row is None or not is_computed_in_float32(expr):
        return None
    if row.linear == (0,):
        return multiplied(*expr.args)
    if row.linear != (0, 1):
        return None
    first, second = expr.args
    if is_constant(first):
        first, second = second, first
    if is_constant(second):
        factor = float(second.arg)
        return scaled(first, factor)
    a, left = parted(first)
    b, right = parted(second)
    factor = left * right
    return None if factor == 1 else scaled(binary(expr.op, a, b), factor)


def is_computed_in_float32(expr: Expr) -> bool:
    """Tell whether an expression combines two floats of 32 bits or fewer."""
    dtype = expr.dtype
    is_narrow = dtype.is_float and dtype.bits <= float32.bits
    return is_narrow and len(expr.args) == 2


def multiplied(value: Expr, divisor: Expr) -> Expr | None:
    """Write a division by a number as a product."""
    if not is_constant(divisor):
        return None
    number = float(divisor.arg)
    return scaled(value, 1 / number) if number else None


def parted(expr: Expr) -> tuple[Expr, float]:
    """Part an expression and the number that it is multiplied by last."""
    row = OPS.get(expr.op)
    if row is None or row.linear != (0, 1):
        return expr, 1.0
    inner, factor = expr.args
    return (expr, 1.0) if not is_constant(factor) else (inner, float(factor.arg))


def or_lowest(score: Expr, conditions: tuple[Condition, ...]) -> Expr:
    """Write -inf for a score where conditions do not hold."""
    fill = const(identity("max", score.dtype), score.dtype)
    return Expr("guard", (score, fill), conditions, score.dtype) if conditions else score
