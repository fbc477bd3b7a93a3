"""Long rows that begin between vectors of 16 bytes: from the first whole vector on, and the rest.

    max[j:50257] x[50257*i + j]
        ->  max[m:50248] x[(50257*i + 7)//8*8 + m]
            max[r:9] x[50257*i + (first + 50248 + r) % 50257], and the greater of both

All rows have the same number of vectors so, wherever they begin: what is left, at both ends, is
one short row, which goes round from the end to the beginning.
"""

from collections.abc import Iterator
from dataclasses import replace

from picograd.schedule.cost import LONG_ROW
from picograd.schedule.index import Axis, Index, axes_of, axis_index, substitute
from picograd.schedule.loop import Compute, Expr, Part, rewrite, walk
from picograd.schedule.monoid import COMBINE

VECTOR_BYTES = 16


def cut_uneven(part: Part, widths: dict[int, int]) -> tuple[Part, int]:
    """Cut rows into vectors and the rest; the elements of a vector, or 0 where rows stay whole.

    `widths` are the bytes of an element by slot.
    """
    axis = axis_of(part)
    if axis is None:
        return part, 0
    places = [place for place in places_of(part) if axis in axes_of(place[1])]
    lanes = VECTOR_BYTES // max((widths[slot] for slot, _ in places), default=VECTOR_BYTES)
    begins = [index - axis_index(axis) for _, index in places]
    is_along = all(axis not in axes_of(begin) for begin in begins)
    if lanes == 1 or not is_along or not all(is_even(b - begins[0], lanes) for b in begins):
        return part, 0
    if is_even(begins[0], lanes) and axis.size % lanes == 0:
        return part, 0
    main = Axis(f"{axis.name}_in", (axis.size - lanes + 1) // lanes * lanes)
    rest = Axis(f"{axis.name}_out", axis.size - main.size)
    first = (begins[0] + (lanes - 1)) // lanes * lanes - begins[0]
    after = begins[0] * -1 % lanes + main.size
    moves = {main: first + axis_index(main), rest: (after + axis_index(rest)) % axis.size}
    return apart(part, axis, moves), lanes


def is_even(index: Index, lanes: int) -> bool:
    """Tell whether an index is a multiple of the elements of a vector."""
    return index.const % lanes == 0 and all(factor % lanes == 0 for _, factor in index.terms)


def axis_of(part: Part) -> Axis | None:
    """Find the axis along which each compute of elements goes, if there is one, of long rows."""
    axes = {axis for each in part.computes for axis in (*each.axes, *each.reduce)} - set(part.rows)
    if len(axes) != 1 or not part.rows:
        return None
    (axis,) = axes
    forms = {(part.rows, (axis,)), ((*part.rows, axis), ())}
    is_plain = all((c.axes, c.reduce) in forms for c in part.computes if is_of(c, axis))
    is_ended = any(axis in axes_of(end[0]) for end in part.ends)
    is_ended = is_ended or any(compute.seen for compute in part.computes)
    return axis if is_plain and not is_ended and axis.size > LONG_ROW else None


def is_of(compute: Compute, axis: Axis) -> bool:
    """Tell whether a compute is of elements, or of all of a row."""
    return axis in (*compute.axes, *compute.reduce)


def places_of(part: Part) -> Iterator[tuple[int, Index]]:
    """Yield the slot and index of whatever is read or stored."""
    for compute in part.computes:
        if compute.store:
            yield compute.store
        yield from (expr.arg[:2] for expr in walk(compute.body) if expr.op == "load")


def apart(part: Part, axis: Axis, moves: dict[Axis, Index]) -> Part:
    """Write each compute of elements once along each of some axes, and join what they reduce to."""
    computes: list[Compute] = []
    numbers: list[dict[Axis | None, int]] = []  # of each compute: along each axis, and joined

    def along(compute: Compute, new: Axis | None) -> Compute:
        move = {axis: moves[new]} if new else {}

        def renumbered(expr: Expr) -> Expr | None:
            if expr.op != "ref":
                return None
            found = numbers[expr.arg]
            return Expr("ref", (), found[None if None in found else new], expr.dtype)

        body = rewrite(compute.body, move, renumbered)
        store = compute.store and (compute.store[0], substitute(compute.store[1], move))
        axes, reduce = (
            tuple(new if new and each is axis else each for each in some)
            for some in (compute.axes, compute.reduce)
        )
        return replace(compute, axes=axes, reduce=reduce, body=body, store=store)

    for compute in part.computes:
        found: dict[Axis | None, int] = {}
        for new in moves if is_of(compute, axis) else (None,):
            found[new] = len(computes)
            made = along(compute, new)
            computes.append(replace(made, store=None) if axis in compute.reduce else made)
        if axis in compute.reduce:
            refs = tuple(Expr("ref", (), number, compute.dtype) for number in found.values())
            joined = Expr(COMBINE[compute.monoid or "sum"], refs, None, compute.dtype)
            found[None] = len(computes)
            computes.append(replace(compute, reduce=(), monoid=None, body=joined))
        numbers.append(found)
    return replace(part, computes=tuple(computes))
