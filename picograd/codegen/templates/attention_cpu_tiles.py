"""Tiles of attention on a CPU, and what fills them before the stream: rows in lanes of vectors."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import chain

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import Role, bind_roles, guarded, role, size_of
from picograd.codegen.stream_masks import exponentials_in, unmasked
from picograd.codegen.streams import Stream, read, replaced
from picograd.codegen.tile import Accumulate, Assign, Step, Tile
from picograd.dtype import DType, bool_, float32
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Compute, Condition, Expr, cast, const, rewrite, walk
from picograd.schedule.score_masks import hiding

Indices = tuple[Index, ...]
Element = Assign | Accumulate  # what computes elements


@dataclass(slots=True)
class Tiles:
    """The tiles of a task, by name; equal operands share one."""

    every: dict[str, Tile] = field(default_factory=dict)
    names: dict[tuple[str, Expr], str] = field(default_factory=dict)
    widths: dict[tuple[int, ...], tuple[Axis, ...]] = field(default_factory=dict)  # by sizes

    def add(self, name: str, shape: tuple[int, ...], dtype: DType, space: str = "shared") -> str:
        """Add a tile."""
        tile = Tile(name, shape, dtype, space)
        self.every[name] = tile
        return name

    def plain(self, operand: Expr, axes: Sequence[Axis], dtype: DType) -> Expr:
        """Write an operand over axes that others have too, so that equal ones are told."""
        sizes = tuple(axis.size for axis in axes)
        if sizes not in self.widths:
            own = [Axis("w", size) for size in sizes]
            self.widths[sizes] = tuple(own)
        common = self.widths[sizes]
        places = map(axis_index, common)
        moved = dict(zip(axes, places, strict=True))
        wide = cast(operand, dtype)
        return rewrite(wide, moved)


def pack(tile: str, dims: Sequence[Axis], expr: Expr, index: Indices) -> Assign:
    """Make a step that copies with explicit vectors where it can."""
    shape = tuple(axis.size for axis in dims)
    ones = (1,) * len(shape)
    vector = (*ones[:-1], 16)
    return Assign(tile, tuple(dims), expr, index, Blocked(shape, ones, vector))


def with_turned_reads(
    tiles: Tiles, steps: Sequence[Element], dims: tuple[Axis, Axis], conditions: Sequence[Condition]
) -> list[Step]:
    """Copy what steps read of every place, such as a mask: turned, so that rows lie in lanes."""
    place, lane = dims
    index = axis_index(place), axis_index(lane)
    shape = place.size, lane.size
    reads: dict[Expr, Expr] = {}
    packs: list[Step] = []
    every = chain.from_iterable(walk(step.expr) for step in steps)
    across = [part for part in every if is_across(part, place, lane)]
    for number, part in enumerate(dict.fromkeys(across)):
        is_bits = part.dtype is bool_
        dtype = float32 if is_bits else part.dtype  # bits are slow to turn
        name = tiles.add(f"beside{number}", shape, dtype)
        value = guarded(cast(part, dtype), conditions)
        packs.append(pack(name, (lane, place), value, index))
        found = read(name, index, dtype)
        if is_bits:
            zero = const(0.0, dtype)
            found = Expr("not_equal", (found, zero), None, bool_)
        reads[part] = found
    turned: list[Step] = []
    for step in steps:
        expr = replaced(step.expr, reads.get)
        new = replace(step, expr=expr)
        turned.append(new)
    return [*packs, *turned]


def shared_powers(stream: Stream, form: Callable[[Expr], Expr]) -> list[Expr]:
    """List the exponentials that several sums are made of, once bodies have a form."""
    bodies = [each.weight for each in stream.weighed]
    bodies += [stream.computes[number].body for number in stream.sums]
    count: Counter[Expr] = Counter()
    for body in bodies:
        powers = exponentials_in(form(body))
        count.update(dict.fromkeys(powers, 1))
    return [power for power, number in count.items() if number > 1]


def without_masks(stream: Stream, weight: Expr) -> Expr:
    """Leave masks out of a weight that is 0 anyway, where they hide scores of a peak."""
    if stream.peak is None:
        return weight
    peak = stream.computes[stream.peak]
    return unmasked(weight, hiding(peak.body))


def is_across(expr: Expr, place: Axis, lane: Axis) -> bool:
    """Tell whether places lie beside one another where an expression reads, and rows apart."""
    if expr.op != "load":
        return False
    _, index = expr.arg
    steps = dict(index.terms)
    return steps.get(place) == 1 and steps.get(lane, 0) > 1


def turned_sum(
    tiles: Tiles, number: int, compute: Compute, rows: Role, dims: tuple[Axis, Axis]
) -> list[Step]:
    """Sum rows that are no scores, for each panel and lane: turned, so that they lie in lanes."""
    dtype = compute.dtype
    panel, lane = dims
    width = size_of(compute.reduce)
    column = Axis("column", width)
    place = axis_index(column)
    body = bind_roles(compute.body, rows, role(compute.reduce, place))
    value = guarded(body, rows.conditions)
    sums = f"value{number}"
    turned = f"early{number}"
    shape = panel.size, lane.size
    wide = panel.size, width, lane.size
    tiles.add(sums, shape, dtype)
    tiles.add(turned, wide, dtype)
    index = axis_index(panel), place, axis_index(lane)
    first = pack(turned, (*dims, column), value, index)
    element = read(turned, index, dtype)
    monoid = str(compute.monoid)
    total = Accumulate(sums, dims, (column,), monoid, element)
    return [first, total]
