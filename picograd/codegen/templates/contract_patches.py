"""Convolutions of 3 x 3 taps and stride 1 on a CPU with fewer products: patches of 6 x 6 places.

    task (rows of weights, images or rows of them):
      for channels: image with its border; its patches, transformed: 36 matrices
                    for panel: weights, transformed: 36 panels; 36 products
      for panel: results of all patches, transformed back
      epilogue over the finished block

The algebra is that of graph/conv_winograd.py, F(4 x 4, 3 x 3), which a GPU's kernels write through
memory; here nothing of it leaves the cache. Vectors run along channels: what lies along an image is
turned round before and after.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from picograd.codegen import cuts
from picograd.codegen.operands import Contraction, bind, guarded, size_of, strides
from picograd.codegen.templates.contract_thin import guarded_steps, loops, pack
from picograd.codegen.terms import Term, tile_at
from picograd.codegen.tile import Assign, Dot, Step, Tile
from picograd.dtype import float32
from picograd.graph.conv_winograd import PATCH, STEP, factor_terms, patch_terms, result_terms
from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, position_over, unflatten
from picograd.schedule.loop import Condition, Expr, const

TAPS = 3
MATRICES = PATCH**2
APART = 1  # rows between matrices: those of a place do not share a set of the cache
Terms = Callable[..., Sequence[Any]]


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
class Convolution:
    """An image by weights of 3 x 3 taps: which axes and operands of a product these are."""

    product: Contraction  # its rows are places if outputs are neighbours in memory, else outputs
    is_last: bool  # they are
    image: Expr
    weight: Expr
    places: tuple[Axis, ...]  # of results: images, down, across
    outputs: tuple[Axis, ...]
    channel: Axis
    taps: tuple[Axis, ...]  # down, across


@dataclass(frozen=True, slots=True)
class Block:
    """What a task works on: patches of some images, and rows of weights in panels."""

    conv: Convolution
    places: cuts.Cut
    down: Axis  # patches of an image
    across: Axis
    weights: cuts.Cut  # panels of the outputs
    panel: Axis
    out: Axis  # outputs of a panel
    height: int  # patches of a register block
    lane: Axis  # channels that are transformed at once
    run: Axis  # counts these
    deep: Axis  # counts blocks of channels
    is_kept: bool  # transformed weights are

    @property
    def planes(self) -> tuple[Axis, ...]:
        """Axes of the images of a block."""
        return self.places.pieces[0].dims[:-2]

    @property
    def patch_axes(self) -> tuple[Axis, ...]:
        """Axes of the patches of a block."""
        return *self.planes, self.down, self.across

    @property
    def patches(self) -> int:
        """Patches of a block: whole register blocks."""
        return round_up(size_of(self.patch_axes), self.height)

    @property
    def spread(self) -> tuple[int, int]:
        """Places of an image with its border, down and across."""
        return STEP * self.down.size + TAPS - 1, STEP * self.across.size + TAPS - 1

    @property
    def results(self) -> int:
        """Results of a block for one row of weights."""
        return size_of(self.patch_axes) * STEP**2

    @property
    def channels(self) -> int:
        """Channels of a block."""
        return self.run.size * self.lane.size

    def tiles(self) -> tuple[Tile, ...]:
        """List the memory of a task but for its results."""
        lanes, width, (down, across) = self.lane.size, self.out.size, self.spread
        images, count = size_of(self.planes), size_of(self.patch_axes)
        places = images * down * across
        shapes = {
            "image": (lanes, places),
            "turned": (places, lanes),
            "half": (PATCH, images * self.down.size, across, lanes),
            "seen": (self.deep.size, MATRICES, self.patches + APART, self.channels),
            "weight": (lanes * TAPS**2, width),
            "taps_half": (PATCH, lanes * TAPS, width),
            "taps": (self.kept, MATRICES, self.channels + APART, width),
            "product": (MATRICES * self.patches, width),
            "back_half": (STEP, PATCH, count, width),
            "back": (self.results, width),
        }
        return tuple([Tile(name, shape, float32, "shared") for name, shape in shapes.items()])

    @property
    def kept(self) -> int:
        """Panels of transformed weights that are kept."""
        return self.deep.size * self.panel.size if self.is_kept else 1

    def kept_place(self) -> Index:
        """Say where a panel of transformed weights is."""
        return position_over((self.deep, self.panel)) if self.is_kept else constant(0)

    def before(self) -> tuple[Step, ...]:
        """Transform the weights of a task."""
        if not self.is_kept:
            return ()
        return loops((self.deep, self.panel, self.run), [*self.weight(), *self.taps()])

    def steps(self) -> tuple[Step, ...]:
        """Compute the block of results."""
        is_first = self.deep.size == 1
        row = Axis("row", MATRICES * self.patches)
        place = axis_index(row), axis_index(self.out)
        clear = [] if is_first else [pack("product", (row, self.out), const(0, float32), place)]
        seen = loops((self.deep, self.run), [*self.image(), *self.seen()])
        taps = loops((self.run,), [] if self.is_kept else [*self.weight(), *self.taps()])
        multiply = loops((self.deep,), [*taps, *self.products(is_first)])
        return (*seen, *loops((self.panel,), [*clear, *multiply, *self.back()]))

    def channel_place(self) -> Index:
        """Say which channel is in a lane."""
        first = axis_index(self.deep) * self.channels + axis_index(self.run) * self.lane.size
        return first + axis_index(self.lane)

    def image(self) -> list[Step]:
        """Evaluate some channels of the image with its border; they become neighbours."""
        conv, piece = self.conv, self.places.pieces[0]
        spread = Axis("v", self.spread[0]), Axis("h", self.spread[1])
        values: dict[Axis, Index] = {self.conv.channel: self.channel_place()}
        inside: list[Condition] = []
        for axis in conv.places[:-2]:
            values[axis] = piece.values.get(axis, axis_index(axis))
            inside.append((values[axis], 0, axis.size - 1))
        for number, (axis, dim) in enumerate(zip(conv.places[-2:], piece.dims[-2:])):
            first = cuts.first_of(piece, axis, dim)
            values[axis] = first + axis_index(spread[number])
            values[conv.taps[number]] = constant(0)
            inside.append((values[axis], 0, axis.size + TAPS - 2))
        expr = guarded(bind(conv.image, values), inside)
        dims, lane = (*self.planes, *spread), axis_index(self.lane)
        if strides(conv.image, (conv.channel,))[conv.channel] == 1:
            return [pack("turned", (*dims, self.lane), expr, (position_over(dims), lane))]
        whole = Axis("place", size_of(dims))
        at = axis_index(whole)
        seen = tile("image", lane, at).expr
        turn = Assign("turned", (self.lane, whole), seen, (at, lane))
        return [pack("image", (self.lane, *dims), expr, (lane, position_over(dims))), turn]

    def seen(self) -> list[Step]:
        """Transform patches of the image."""
        *planes, down, across = self.patch_axes
        height, width = self.spread
        strips, place = (*planes, down), Axis("h", width)
        strip, lane, first = position_over(strips), axis_index(self.lane), Axis("first", PATCH)
        steps: list[Step] = []
        corner = (position_over(planes) * height + axis_index(down) * STEP) * width

        def row(number: int) -> Term:
            return tile("turned", corner + axis_index(place) + number * width, lane)

        def column(number: int) -> Term:
            at = axis_index(across) * STEP + number
            return tile("half", axis_index(first), strip, at, lane)

        for number, expr in transformed(patch_terms, map(row, range(PATCH))):
            where = constant(number), strip, axis_index(place), lane
            steps.append(pack("half", (*strips, place, self.lane), expr, where))
        deep, channel = axis_index(self.deep), axis_index(self.run) * self.lane.size + lane
        for number, expr in transformed(patch_terms, map(column, range(PATCH))):
            matrix = axis_index(first) * PATCH + number
            spot = deep, matrix, position_over(self.patch_axes), channel
            dims = first, *self.patch_axes, self.lane
            steps.append(pack("seen", dims, expr, spot))
        return steps

    def weight(self) -> list[Step]:
        """Evaluate a panel of the weights of some channels: neighbours are outputs."""
        conv, tap = self.conv, Axis("tap", TAPS**2)
        found: list[Step] = []
        both = dict(zip(conv.taps, unflatten(axis_index(tap), (TAPS, TAPS))))
        values = {conv.channel: self.channel_place(), **both}
        at = axis_index(self.lane) * TAPS**2 + axis_index(tap)
        steps = strides(conv.weight, (conv.channel, *conv.outputs))
        for piece in self.weights.pieces:
            expr = bind(conv.weight, {**piece.values, **values})
            dims = (self.lane, *piece.dims, tap)
            if steps[conv.channel] == 1:
                dims = (tap, *piece.dims, self.lane)
            elif 1 in steps.values():
                dims = (self.lane, tap, *piece.dims)
            step = pack("weight", dims, expr, (at, piece.position))
            found += guarded_steps(piece.when, [step])
        return found

    def taps(self) -> list[Step]:
        """Transform the weights of a panel."""
        lane, tap, out = self.lane, Axis("tap", TAPS), axis_index(self.out)
        first = Axis("first", PATCH)
        steps: list[Step] = []

        def row(number: int) -> Term:
            at = axis_index(lane) * TAPS + number
            return tile("weight", at * TAPS + axis_index(tap), out)

        def column(number: int) -> Term:
            at = axis_index(lane) * TAPS + number
            return tile("taps_half", axis_index(first), at, out)

        for number, expr in transformed(factor_terms, map(row, range(TAPS))):
            at = constant(number), axis_index(lane) * TAPS + axis_index(tap), out
            steps.append(pack("taps_half", (lane, tap, self.out), expr, at))
        channel = axis_index(self.run) * lane.size + axis_index(lane)
        for number, expr in transformed(factor_terms, map(column, range(TAPS))):
            place = self.kept_place(), axis_index(first) * PATCH + number, channel, out
            steps.append(pack("taps", (first, lane, self.out), expr, place))
        return steps

    def products(self, is_first: bool) -> tuple[Step, ...]:
        """Multiply all matrices of patches by a panel of weights each."""
        number = Axis("matrix", MATRICES)
        group = Axis("group", self.patches // self.height)
        row, zero = axis_index(group) * self.height, constant(0)
        dot = Dot(
            "product", "seen", "taps", self.channels,
            a_origin=(axis_index(self.deep), axis_index(number), row, zero),
            b_origin=(self.kept_place(), axis_index(number), zero, zero),
            acc_origin=(axis_index(number) * self.patches + row, zero),
            block=(self.height, self.out.size),
            is_first=is_first,
        )  # fmt: skip
        return loops((number, group), [dot])

    def back(self) -> list[Step]:
        """Transform the products of a panel back to results, which lie along the image then."""
        *planes, down, across = self.patch_axes
        patch, out = position_over(self.patch_axes), axis_index(self.out)
        first, second = Axis("first", STEP), Axis("second", PATCH)
        steps: list[Step] = []
        from_panel = axis_index(self.panel) * self.out.size + out

        def row(number: int) -> Term:
            at = (axis_index(second) + number * PATCH) * self.patches + patch
            return tile("product", at, out)

        def column(number: int) -> Term:
            return tile("back_half", axis_index(first), constant(number), patch, out)

        for number, expr in transformed(result_terms, map(row, range(PATCH))):
            at = constant(number), axis_index(second), patch, out
            dims = second, *self.patch_axes, self.out
            steps.append(pack("back_half", dims, expr, at))
        height, width = STEP * self.down.size, STEP * self.across.size
        corner = (position_over(planes) * height + axis_index(down) * STEP) * width
        corner = corner + axis_index(first) * width + axis_index(across) * STEP
        name = "c" if self.conv.is_last else "back"
        where = from_panel if self.conv.is_last else out
        for number, expr in transformed(result_terms, map(column, range(PATCH))):
            dims = first, *self.patch_axes, self.out
            steps.append(pack(name, dims, expr, (corner + number, where)))
        if self.conv.is_last:
            return steps
        result = Axis("result", self.results)
        turned = tile("back", axis_index(result), out).expr
        return [*steps, Assign("c", (result, self.out), turned, (from_panel, axis_index(result)))]

    def place_cut(self) -> cuts.Cut:
        """Say where places are in the block of results."""
        down, across = STEP * self.down.size, STEP * self.across.size
        pieces = []
        for piece in self.places.pieces:
            *planes, row, column = piece.dims
            place = (position_over(planes) * down + axis_index(row)) * across + axis_index(column)
            pieces.append(replace(piece, position=place))
        return replace(self.places, pieces=tuple(pieces), size=self.results)
