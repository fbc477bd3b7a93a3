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
        lanes = self.lane.size
        down, across = self.spread(PATCH)
        places = size_of(self.planes) * down * across
        return {"image": (lanes, places), "turned": (places, lanes), "half": (PATCH, across, lanes)}

    def image(self, operand: Operand, first: Index, inside: Sequence[Condition] = ()) -> list[Step]:
        """Evaluate channels of an operand from the first on, with their border: neighbours."""
        height, width = self.spread(operand.size)
        spread = Axis("v", height), Axis("h", width)
        channel = first + axis_index(self.lane)
        values: dict[Axis, Index] = {operand.channel: channel}
        for tap in operand.taps:
            values[tap] = constant(0)
        tests = list(inside)
        *images, down, across = self.places
        for axis in images:
            number = self.piece.values.get(axis, axis_index(axis))
            values[axis] = number
            tests.append((number, 0, axis.size - 1))
        more = operand.size - STEP
        dims = self.piece.dims[-2:]
        for axis, dim, reach in zip((down, across), dims, spread):
            begin = cuts.first_of(self.piece, axis, dim)
            values[axis] = begin + axis_index(reach)
            last = axis.size - 1 + more
            tests.append((values[axis], 0, last))
        expr = guarded(bind(operand.expr, values), tests)
        dims = (*self.planes, *spread)
        place, lane = position_over(dims), axis_index(self.lane)
        steps = strides(operand.expr, (operand.channel,))
        if steps[operand.channel] == 1:
            return [pack("turned", (*dims, self.lane), expr, (place, lane))]
        read = pack("image", (self.lane, *dims), expr, (lane, place))
        whole = Axis("place", size_of(dims))
        at = axis_index(whole)
        seen = tile("image", lane, at).expr
        turn = Assign("turned", (self.lane, whole), seen, (at, lane))
        return [read, turn]

    def seen(self, operand: Operand, name: str, where: Spot) -> tuple[Step, ...]:
        """Transform the patches of these channels: `where` each of them goes."""
        *planes, down, across = self.patch_axes
        height, width = self.spread(operand.size)
        place, first = Axis("h", width), Axis("first", PATCH)
        lane = axis_index(self.lane)
        corner = position_over(planes) * height + axis_index(down) * STEP
        corner = corner * width + axis_index(place)
        elements = range(operand.size)
        steps: list[Step] = []

        def row(number: int) -> Term:
            at = corner + number * width
            return tile("turned", at, lane)

        def column(number: int) -> Term:
            at = axis_index(across) * STEP + number
            return tile("half", axis_index(first), at, lane)

        for number, expr in transformed(operand.terms, map(row, elements)):
            spot = constant(number), axis_index(place), lane
            steps.append(pack("half", (place, self.lane), expr, spot))
        patch = position_over(self.patch_axes)
        dims = first, across, self.lane
        for number, expr in transformed(operand.terms, map(column, elements)):
            matrix = axis_index(first) * PATCH + number
            to = where(matrix, patch, lane)
            steps.append(pack(name, dims, expr, to))
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
        out = axis_index(self.out)
        begin = first_row + position_over(self.items)
        first, second = Axis("first", self.count), Axis("second", PATCH)
        elements = range(PATCH)
        steps: list[Step] = []

        def row(number: int) -> Term:
            matrix = axis_index(second) + number * PATCH
            return tile("product", begin + matrix * self.rows, out)

        def column(number: int) -> Term:
            return tile("back_half", axis_index(first), constant(number), out)

        for number, expr in transformed(self.terms, map(row, elements)):
            at = constant(number), axis_index(second), out
            steps.append(pack("back_half", (second, self.out), expr, at))
        for number, expr in transformed(self.terms, map(column, elements)):
            spot = place(axis_index(first), number), where
            steps.append(pack(name, (first, self.out), expr, spot))
        return loops(self.items, steps)
