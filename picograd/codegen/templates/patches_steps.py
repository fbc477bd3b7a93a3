"""Steps that transform patches of 6 x 6 places and back (contract_patches.py), on a CPU.

    image[lane][place], turned[place][lane] = channels of an operand, in a block and its border
    seen[matrix][patch][channel]            = both axes of its patches, transformed: 36 matrices
    back[item * results][lane]              = products of these, transformed back, both axes

The algebra is that of graph/conv_winograd.py. Vectors run along channels: what lies along an image
is turned round before and after.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from picograd.codegen import cuts
from picograd.codegen.operands import bind, guarded, size_of, strides
from picograd.codegen.templates.contract_thin import loops, pack
from picograd.codegen.terms import Term, tile_at
from picograd.codegen.tile import Assign, Step
from picograd.dtype import float32
from picograd.graph.conv_winograd import PATCH, STEP
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, position_over
from picograd.schedule.loop import Condition, Expr

TAPS = 3
MATRICES = PATCH**2
APART = 1  # rows between matrices: those of a place do not share a set of the cache
Terms = Callable[..., Sequence[Any]]
Spot = Callable[[Index, Index, Index], Sequence[Index]]  # of a matrix, a patch and a lane


class Same(dict[float, float]):
    """Numbers as they are."""

    def __missing__(self, number: float) -> float:
        return number


def transformed(terms: Terms, elements: Iterable[Term]) -> Iterator[tuple[int, Expr]]:
    """Number the terms of some elements."""
    for number, made in enumerate(terms(Same(), *elements)):
        yield number, made.expr


def tile(name: str, *place: Index) -> Term:
    """Read a tile."""
    return tile_at(name, place, float32)


@dataclass(frozen=True, slots=True)
class Operand:
    """An array of which patches are transformed."""

    expr: Expr
    channel: Axis
    taps: tuple[Axis, ...]  # its patches begin where the first of these is
    size: int  # of a patch, along an axis
    terms: Terms


@dataclass(frozen=True, slots=True)
class Field:
    """The patches of a block of places: they begin `STEP` places apart."""

    places: tuple[Axis, ...]  # of all images: images, down, across
    piece: cuts.Piece  # those of a block
    down: Axis  # patches of an image
    across: Axis
    lane: Axis  # channels that are transformed at once

    @property
    def planes(self) -> tuple[Axis, ...]:
        """Axes of the images of a block."""
        return self.piece.dims[:-2]

    @property
    def patch_axes(self) -> tuple[Axis, ...]:
        """Axes of the patches of a block."""
        return *self.planes, self.down, self.across

    @property
    def count(self) -> int:
        """Count the patches."""
        return size_of(self.patch_axes)

    def spread(self, size: int) -> tuple[int, int]:
        """Places of an image that patches of a size have, down and across."""
        more = size - STEP
        return STEP * self.down.size + more, STEP * self.across.size + more

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """List the memory of what is between an operand and its matrices, by names of tiles."""
        lanes, (down, across) = self.lane.size, self.spread(PATCH)
        places = size_of(self.planes) * down * across
        return {"image": (lanes, places), "turned": (places, lanes), "half": (PATCH, across, lanes)}

    def image(self, operand: Operand, first: Index, inside: Sequence[Condition] = ()) -> list[Step]:
        """Evaluate channels of an operand from the first on, with their border: neighbours."""
        height, width = self.spread(operand.size)
        spread = Axis("v", height), Axis("h", width)
        values: dict[Axis, Index] = {operand.channel: first + axis_index(self.lane)}
        values |= dict.fromkeys(operand.taps, constant(0))
        tests = list(inside)
        for axis in self.places[:-2]:
            values[axis] = self.piece.values.get(axis, axis_index(axis))
            tests.append((values[axis], 0, axis.size - 1))
        more = operand.size - STEP
        for axis, dim, reach in zip(self.places[-2:], self.piece.dims[-2:], spread):
            values[axis] = cuts.first_of(self.piece, axis, dim) + axis_index(reach)
            tests.append((values[axis], 0, axis.size - 1 + more))
        expr = guarded(bind(operand.expr, values), tests)
        dims, lane = (*self.planes, *spread), axis_index(self.lane)
        if strides(operand.expr, (operand.channel,))[operand.channel] == 1:
            return [pack("turned", (*dims, self.lane), expr, (position_over(dims), lane))]
        whole = Axis("place", size_of(dims))
        at = axis_index(whole)
        turn = Assign("turned", (self.lane, whole), tile("image", lane, at).expr, (at, lane))
        return [pack("image", (self.lane, *dims), expr, (lane, position_over(dims))), turn]

    def seen(self, operand: Operand, name: str, where: Spot) -> tuple[Step, ...]:
        """Transform the patches of these channels: `where` each of them goes."""
        *planes, down, across = self.patch_axes
        height, width = self.spread(operand.size)
        place, lane, first = Axis("h", width), axis_index(self.lane), Axis("first", PATCH)
        corner = (position_over(planes) * height + axis_index(down) * STEP) * width
        steps: list[Step] = []

        def row(number: int) -> Term:
            return tile("turned", corner + axis_index(place) + number * width, lane)

        def column(number: int) -> Term:
            at = axis_index(across) * STEP + number
            return tile("half", axis_index(first), at, lane)

        for number, expr in transformed(operand.terms, map(row, range(operand.size))):
            spot = constant(number), axis_index(place), lane
            steps.append(pack("half", (place, self.lane), expr, spot))
        patch = position_over(self.patch_axes)
        for number, expr in transformed(operand.terms, map(column, range(operand.size))):
            matrix = axis_index(first) * PATCH + number
            steps.append(pack(name, (first, across, self.lane), expr, where(matrix, patch, lane)))
        return loops((*planes, down), steps)  # what is between both stays in the first-level cache


@dataclass(frozen=True, slots=True)
class Back:
    """Products that are transformed back to `count` x `count` results each."""

    items: tuple[Axis, ...]  # a matrix has one row for each
    rows: int  # of a matrix
    out: Axis
    terms: Terms
    count: int

    def steps(
        self, first_row: Index, place: Callable[[Index, int], Index], name: str, where: Index
    ) -> tuple[Step, ...]:
        """Transform products from a row on; results go to a `place` and to lanes `where`."""
        item, out = position_over(self.items), axis_index(self.out)
        first, second = Axis("first", self.count), Axis("second", PATCH)
        steps: list[Step] = []

        def row(number: int) -> Term:
            matrix = axis_index(second) + number * PATCH
            return tile("product", first_row + matrix * self.rows + item, out)

        def column(number: int) -> Term:
            return tile("back_half", axis_index(first), constant(number), out)

        for number, expr in transformed(self.terms, map(row, range(PATCH))):
            at = constant(number), axis_index(second), out
            steps.append(pack("back_half", (second, self.out), expr, at))
        for number, expr in transformed(self.terms, map(column, range(PATCH))):
            spot = place(axis_index(first), number), where
            steps.append(pack(name, (first, self.out), expr, spot))
        return loops(self.items, steps)
