"""Which tiles of a part have last digits that nobody sees, and what functions compute them.

A value that only 16-bit results are made of is rounded to 8 or 11 bits; one that is only a term of
a long sum is off by less than the sum itself is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from picograd.codegen.quick import RELAXED, TERMS, exact_parts, name_of, relaxed
from picograd.codegen.tile import (
    Accumulate,
    Assign,
    Barrier,
    For,
    LastBlock,
    Step,
    Store,
    TilePart,
    When,
    steps_inside,
)
from picograd.helpers import product
from picograd.schedule.loop import Expr, Kernel, dynamics_of, indices_of, rewrite, walk

MANY_TERMS = 16  # of a sum, whose own error is above that of its terms
ROUNDED, SUMMED, SEEN = 1, 2, 3  # how much is seen of a tile, by the reader that sees the most
FUNCTIONS: dict[int, Iterable[str]] = {ROUNDED: tuple(RELAXED), SUMMED: tuple(TERMS)}
LEAST = "term_exp", "relaxed_exp"  # of numbers up to 0 one with fewer instructions will do
NESTED = For | When | LastBlock | Barrier


def seen_digits(part: TilePart, kernel: Kernel) -> dict[str, int]:
    """Tell how much is seen of the tiles of a part; nothing where steps do more than compute."""
    steps = list(flattened(part.steps))
    seen: dict[str, int] = {}
    before: dict[str, int] | None = None
    while seen != before:  # what is seen of a tile is seen of those that it is made of
        before = dict(seen)
        for step in reversed(steps):  # readers come after what they read
            if not isinstance(step, Assign | Accumulate | Store) or reads_places(step):
                return {}
            need, order = need_of(step, kernel, seen), walk(step.expr)
            exact = exact_parts(order)
            for each in order:
                if each.op == "tile":
                    name = each.arg[0]
                    wanted = SEEN if id(each) in exact else need
                    seen[name] = max(seen.get(name, 0), wanted)
    return seen


def quick_enough(
    step: Assign | Accumulate, seen: Mapping[str, int], greatest: Mapping[str, list[object]]
) -> Expr:
    """Write what a step computes by functions that are as exact as anybody sees."""
    need = seen.get(step.tile, SEEN)
    if isinstance(step, Accumulate) and is_long_sum(step):
        need = min(need, SUMMED)

    def least(expr: Expr) -> Expr | None:
        if expr.op not in LEAST or not is_below(expr.args[0], greatest):
            return None
        return Expr("least_exp", expr.args, None, expr.dtype)

    found = relaxed(step.expr, FUNCTIONS.get(need, ()))
    is_seen = need == SEEN or not greatest
    return found if is_seen else rewrite(found, {}, least)


def greatest_of(part: TilePart) -> dict[str, list[object]]:
    """Find the tiles that hold the greatest of some elements, and the ways these are computed."""
    found: dict[str, list[object]] = {}
    for step in flattened(part.steps):
        if isinstance(step, Accumulate) and step.monoid == "max":
            found[step.tile] = [outline(step.expr)]
        elif isinstance(step, Assign):
            sources = [found.get(name) for name in greatest_in(step.expr)]
            if sources and all(sources):
                found[step.tile] = [each for source in sources for each in source or ()]
    return found


def greatest_in(expr: Expr) -> list[str]:
    """Name the tiles of which an expression is the greater, or the finite elements, else 0."""
    name = name_of(expr)
    parts = expr.args[2:] if name == "where" else expr.args if name == "maximum" else ()
    return [each.arg[0] if each.op == "tile" else "" for each in parts]


def outline(expr: Expr) -> list[object]:
    """List what an expression does and reads, wherever: slots and tiles, numbers, operations."""
    return [(each.op, each.dtype, held(each)) for each in walk(expr)]


def held(expr: Expr) -> object:
    """Tell what an operation has beside its arguments: of what is read the name, not the place."""
    if indices_of(expr):
        return expr.arg[0] if expr.op in ("load", "tile") else None
    return repr(expr.arg)


def is_below(expr: Expr, greatest: Mapping[str, list[object]]) -> bool:
    """Tell whether an expression is an element less the greatest of all that are made as it is."""
    if name_of(expr) != "sub":
        return False
    element, row = expr.args
    if row.op != "tile":
        return False
    return outline(element) in greatest.get(row.arg[0], ())


def flattened(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield steps, and for those that run others these."""
    for step in steps:
        if isinstance(step, NESTED):
            yield from flattened(steps_inside(step))
        else:
            yield step


def need_of(step: Assign | Accumulate | Store, kernel: Kernel, seen: Mapping[str, int]) -> int:
    """Tell how much a step lets be seen of what it reads."""
    if isinstance(step, Store):
        return ROUNDED if kernel.slots[step.slot].dtype.bits == 16 else SEEN
    need = seen.get(step.tile, 0)
    return min(need, SUMMED) if isinstance(step, Accumulate) and is_long_sum(step) else need


def is_long_sum(step: Accumulate) -> bool:
    """Tell whether a step sums so many terms that their last digits are lost."""
    return step.monoid == "sum" and product(axis.size for axis in step.over) >= MANY_TERMS


def reads_places(step: Assign | Accumulate | Store) -> bool:
    """Tell whether a step reads memory or tiles to know where to write, or whether."""
    places = list(step.index or ()) if isinstance(step, Assign) else []
    if isinstance(step, Store):
        places = [step.index, *(index for index, _, _ in step.conditions)]
    return any(any(dynamics_of(place)) for place in places)


def tiles_read(expr: Expr) -> set[str]:
    """List the tiles that an expression reads."""
    return {each.arg[0] for each in walk(expr) if each.op == "tile"}
