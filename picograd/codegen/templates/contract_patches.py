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

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen import cuts
from picograd.codegen.dot import Dot
from picograd.codegen.operands import Contraction, bind, strides
from picograd.codegen.templates.contract_thin import guarded_steps, loops, pack
from picograd.codegen.templates.patches_steps import (
    APART,
    MATRICES,
    TAPS,
    Back,
    Field,
    Operand,
    tile,
    transformed,
)
from picograd.codegen.terms import Term
from picograd.codegen.tile import Assign, Step, Tile
from picograd.dtype import float32
from picograd.graph.conv_winograd import PATCH, STEP, factor_terms, patch_terms, result_terms
from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, position_over, unflatten
from picograd.schedule.loop import Expr, const


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
    field: Field
    weights: cuts.Cut  # panels of the outputs
    panel: Axis
    out: Axis  # outputs of a panel
    height: int  # patches of a register block
    run: Axis  # counts the channels that are transformed at once
    deep: Axis  # counts blocks of channels
    is_kept: bool  # transformed weights are

    @property
    def lane(self) -> Axis:
        """Channels that are transformed at once."""
        return self.field.lane

    @property
    def patches(self) -> int:
        """Patches of a block: whole register blocks."""
        return round_up(self.field.count, self.height)

    @property
    def results(self) -> int:
        """Results of a block for one row of weights."""
        return self.field.count * STEP**2

    @property
    def channels(self) -> int:
        """Channels of a block."""
        return self.run.size * self.lane.size

    def tiles(self) -> tuple[Tile, ...]:
        """List the memory of a task but for its results."""
        lanes, width = self.lane.size, self.out.size
        shapes = {
            **self.field.shapes(),
            "seen": (self.deep.size, MATRICES, self.patches + APART, self.channels),
            "weight": (lanes * TAPS**2, width),
            "taps_half": (PATCH, lanes * TAPS, width),
            "taps": (self.kept, MATRICES, self.channels + APART, width),
            "product": (MATRICES * self.patches, width),
            "back_half": (STEP, PATCH, width),
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
        seen = loops((self.deep, self.run), self.seen())
        taps = loops((self.run,), [] if self.is_kept else [*self.weight(), *self.taps()])
        multiply = loops((self.deep,), [*taps, *self.products(is_first)])
        return (*seen, *loops((self.panel,), [*clear, *multiply, *self.back()]))

    def first_channel(self) -> Index:
        """Say which channel is the first that is transformed at once."""
        return axis_index(self.deep) * self.channels + axis_index(self.run) * self.lane.size

    def seen(self) -> list[Step]:
        """Transform patches of some channels of the image."""
        conv = self.conv
        deep = axis_index(self.deep)
        run = axis_index(self.run)
        image = Operand(conv.image, conv.channel, conv.taps, PATCH, patch_terms)

        def where(matrix: Index, patch: Index, lane: Index) -> tuple[Index, ...]:
            return deep, matrix, patch, run * self.lane.size + lane

        steps = self.field.image(image, self.first_channel())
        return [*steps, *self.field.seen(image, "seen", where)]

    def weight(self) -> list[Step]:
        """Evaluate a panel of the weights of some channels: neighbours are outputs."""
        conv = self.conv
        tap = Axis("tap", TAPS**2)
        lane, number = axis_index(self.lane), axis_index(tap)
        found: list[Step] = []
        values = dict(zip(conv.taps, unflatten(number, (TAPS, TAPS))))
        values[conv.channel] = self.first_channel() + lane
        at = lane * tap.size + number
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
        lane, tap = self.lane, Axis("tap", TAPS)
        out = axis_index(self.out)
        first = Axis("first", PATCH)
        begin, beside = axis_index(lane) * TAPS, axis_index(tap)
        steps: list[Step] = []

        def row(number: int) -> Term:
            return tile("weight", (begin + number) * TAPS + beside, out)

        def column(number: int) -> Term:
            return tile("taps_half", axis_index(first), begin + number, out)

        for number, expr in transformed(factor_terms, map(row, range(TAPS))):
            at = constant(number), begin + beside, out
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

    def back(self) -> Sequence[Step]:
        """Transform the products of a panel back to results, which lie along the image then."""
        *planes, down, across = self.field.patch_axes
        height, width = self.field.spread(STEP)
        line = position_over(planes) * height + axis_index(down) * STEP
        corner = line * width + axis_index(across) * STEP
        out = axis_index(self.out)
        from_panel = axis_index(self.panel) * self.out.size + out
        back = Back(self.field.patch_axes, self.patches, self.out, result_terms, STEP)

        def place(first: Index, number: int) -> Index:
            return corner + first * width + number

        if self.conv.is_last:
            return back.steps(constant(0), place, "c", from_panel)
        result = Axis("result", self.results)
        at = axis_index(result)
        turned = tile("back", at, out).expr
        turn = Assign("c", (result, self.out), turned, (from_panel, at))
        return [*back.steps(constant(0), place, "back", out), turn]

    def place_cut(self) -> cuts.Cut:
        """Say where places are in the block of results."""
        down, across = self.field.spread(STEP)
        pieces = []
        for piece in self.places.pieces:
            *planes, row, column = piece.dims
            line = position_over(planes) * down + axis_index(row)
            place = line * across + axis_index(column)
            pieces.append(replace(piece, position=place))
        return replace(self.places, pieces=tuple(pieces), size=self.results)
