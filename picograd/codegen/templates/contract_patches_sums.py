"""Gradients of weights of 3 x 3 taps and stride 1 on a CPU with fewer products: F(3 x 3, 4 x 4).

    task (outputs, channels, images or rows of them):
      for block of places: for channels: the image with its border; its patches, transformed
                           for panel of outputs: gradients of their results, transformed
                                                 36 products, which add to those before
      for panel: products, transformed back: 3 x 3 results a pair of channel and output
      epilogue over the finished block

The patches are those of contract_patches.py; a product sums over them. Where a block has all places
it stays, and panels are finished one after the other.
"""

from picograd.codegen import cuts
from picograd.codegen.dot import Dot
from picograd.codegen.templates.contract_patches import Convolution
from picograd.codegen.templates.contract_thin import guarded_steps, loops, pack
from picograd.codegen.templates.patches_steps import (
    APART,
    MATRICES,
    TAPS,
    Back,
    Field,
    Operand,
    tile,
)
from picograd.codegen.tile import Assign, Step, Tile
from picograd.dtype import float32
from picograd.graph.conv_winograd import PATCH, STEP, factor_terms, patch_terms, weight_terms
from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, position_over
from picograd.schedule.loop import const


@dataclass(frozen=True, slots=True)
class Block:
    """What a task works on: pairs of channels and outputs, and blocks of places one by one."""

    conv: Convolution
    field: Field
    places: cuts.Cut
    walked: tuple[Axis, ...]  # blocks of places of a task
    first: Index  # channel of a task
    run: Axis  # counts the channels that are transformed at once
    chunk: Axis  # counts the channels that are multiplied at once
    row: Index  # output of a block
    panel: Axis  # counts panels of the outputs
    out: Axis  # outputs of a panel
    height: int  # channels of a register block
    is_whole: bool  # one block has all places

    @property
    def channels(self) -> int:
        """Channels of a task."""
        return self.run.size * self.field.lane.size

    @property
    def items(self) -> int:
        """Channels that are multiplied at once."""
        return self.channels // self.chunk.size

    @property
    def group(self) -> int:
        """Channels whose gradients are turned round at once."""
        return self.field.lane.size

    @property
    def rows(self) -> int:
        """Rows of a matrix of products: whole register blocks."""
        return round_up(self.items, self.height) + APART

    @property
    def kept(self) -> int:
        """Blocks of products that are kept: of each panel and some channels."""
        return 1 if self.is_whole else self.panel.size * self.chunk.size

    def tiles(self) -> tuple[Tile, ...]:
        """List the memory of a task but for its results."""
        width, count = self.out.size, self.field.count
        shapes = {
            **self.field.shapes(),
            "seen": (MATRICES, count + APART, round_up(self.channels, self.height)),
            "given": (MATRICES, count + APART, width),
            "product": (self.kept * MATRICES * self.rows, width),
            "back_half": (TAPS, PATCH, width),
            "back": (self.group * TAPS**2, width),
        }
        return tuple([Tile(name, shape, float32, "shared") for name, shape in shapes.items()])

    def before(self) -> tuple[Step, ...]:
        """Transform the image of a task whose panels are finished one after the other."""
        return loops((self.run,), self.seen()) if self.is_whole else ()

    def steps(self) -> tuple[Step, ...]:
        """Compute a block of results."""
        lanes = Axis("lanes", self.out.size // self.field.lane.size)
        given = loops((lanes,), self.given(lanes))
        if self.is_whole:
            each = loops((self.chunk,), [*self.products(), *self.back()])
            return *given, *each
        dims = Axis("row", self.kept * MATRICES * self.rows), self.out
        here = tuple(map(axis_index, dims))
        clear = pack("product", dims, const(0, float32), here)
        add = loops((self.chunk,), self.products())
        seen = loops((self.run,), self.seen())
        step = [*seen, *loops((self.panel,), [*given, *add])]
        every = loops(self.walked, guarded_steps(self.places.guard, step))
        return clear, *every, *loops((self.panel, self.chunk), self.back())

    def seen(self) -> list[Step]:
        """Transform patches of some channels of the image."""
        conv = self.conv
        run = axis_index(self.run) * self.field.lane.size
        image = Operand(conv.image, conv.channel, conv.taps, PATCH, patch_terms)

        def where(matrix: Index, patch: Index, lane: Index) -> tuple[Index, ...]:
            return matrix, patch, run + lane

        read = self.field.image(image, self.first + run)
        return [*read, *self.field.seen(image, "seen", where)]

    def given(self, lanes: Axis) -> list[Step]:
        """Transform some of a panel's gradients; those beyond the image, or the last, are 0."""
        lane = self.field.lane
        (output,) = self.conv.outputs
        given = Operand(self.conv.weight, output, (), STEP, factor_terms)
        begin = axis_index(lanes) * lane.size

        def where(matrix: Index, patch: Index, lane: Index) -> tuple[Index, ...]:
            return matrix, patch, begin + lane

        first = self.row + begin + self.panel_place(self.out.size)
        inside = first + axis_index(lane), 0, output.size - 1
        read = self.field.image(given, first, [inside])
        return [*read, *self.field.seen(given, "given", where)]

    def panel_place(self, size: int) -> Index:
        """Say where a panel is among others of a size, all in a block."""
        return constant(0) if self.is_whole else axis_index(self.panel) * size

    def first_row(self) -> Index:
        """Say where the products of a panel and some channels begin."""
        if self.is_whole:
            return constant(0)
        block = position_over((self.panel, self.chunk))
        return block * MATRICES * self.rows

    def products(self) -> tuple[Step, ...]:
        """Multiply all matrices of some channels by those of a panel."""
        matrix, zero = Axis("matrix", MATRICES), constant(0)
        group = Axis("group", self.rows // self.height)
        row, number = axis_index(group) * self.height, axis_index(matrix)
        column = axis_index(self.chunk) * self.items
        place = self.first_row() + number * self.rows
        dot = Dot(
            "product", "seen", "given", self.field.count,
            a_is_km=True,
            a_origin=(number, zero, column + row),
            b_origin=(number, zero, zero),
            acc_origin=(place + row, zero),
            block=(self.height, self.out.size),
            is_first=self.is_whole,
        )  # fmt: skip
        return loops((matrix, group), [dot])

    def back(self) -> tuple[Step, ...]:
        """Transform products back to gradients, which lie along a weight's channels then."""
        group = Axis("group", self.items // self.group)
        item = Axis("item", self.group)
        begin, out = axis_index(group) * item.size, axis_index(self.out)
        first_row = self.first_row() + begin
        channel = axis_index(self.chunk) * self.items + begin
        begin = channel * TAPS**2
        panel = self.panel_place(self.out.size) + out
        back = Back((item,), self.rows, self.out, weight_terms, TAPS)
        start = begin if self.conv.is_last else constant(0)

        def place(first: Index, number: int) -> Index:
            row = axis_index(item) * TAPS + first
            return start + row * TAPS + number

        if self.conv.is_last:
            return loops((group,), back.steps(first_row, place, "c", panel))
        result = Axis("result", item.size * TAPS**2)
        at = axis_index(result)
        turned = tile("back", at, out).expr
        turn = Assign("c", (result, self.out), turned, (panel, begin + at))
        return loops((group,), [*back.steps(first_row, place, "back", out), turn])
