"""Operands of attention on a CPU, packed as vectors read them, or as tile registers do.

vectors   panels [panel][depth][lane]; what is streamed [place][width], for both its products;
          weights [place][lane] as they are
tiles     of bfloat16: what is streamed [place][depth] beside the rows of a panel, turned
          [column][place] beside its weights; rows and weights as pairs [depth / 2][lane][2]
"""

from collections.abc import Callable

from picograd.codegen.operands import narrow, size_of
from picograd.codegen.streams import Stream
from picograd.codegen.templates.attention_cpu_tiles import Tiles, pack
from picograd.codegen.tile import Step
from picograd.codegen.tile_products import STEP
from picograd.dtype import bfloat16
from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, axis_index
from picograd.schedule.loop import Expr, const
from picograd.target import Target

LANES = 32  # of a panel of pairs, rows of its blocks: two tiles
MANY_REGISTERS = 32
BLOCK = 64  # of the stream: scores and weights of a panel, and what they meet, are in L1
PAIRED_BLOCK = 128  # results of tiles are read and written again for each
HEIGHT = 8  # rows of a register block; half of that where vector registers are few
Axes = tuple[Axis, ...]
Panels = Callable[[Tiles, str, Axes, Expr], list[Step]]
Places = Callable[[Tiles, str, Axes, Expr, int, bool], list[Step]]


@dataclass(frozen=True, slots=True)
class Form:
    """How operands are packed and multiplied: by `step` elements of K, `height` rows a block.

    A panel meets `block` places of the stream at a time.
    """

    unit: str
    step: int
    height: int
    block: int
    panels: Panels
    places: Places

    @property
    def is_paired(self) -> bool:
        """Tell whether tile registers multiply."""
        return self.step > 1


def form_of(stream: Stream, target: Target) -> Form:
    """Choose tile registers if the target has any and all that is multiplied is bfloat16."""
    operands: list[Expr] = []
    for score in stream.scores:
        operands += [score.row, score.streamed]
    for product in stream.products:
        operands += [product.value, product.weight]
    is_narrow = all(narrow(each).dtype is bfloat16 for each in operands)
    fills = size_of(stream.rows) >= LANES and not stream.across
    if target.multiplies_tiles and is_narrow and fills:
        return Form("tiles", STEP, LANES, PAIRED_BLOCK, pair_panels, turn_places)
    height = HEIGHT if target.registers >= MANY_REGISTERS else HEIGHT // 2
    return Form("fma", 1, height, BLOCK, copy_panels, copy_places)


def copy_panels(tiles: Tiles, name: str, dims: Axes, value: Expr) -> list[Step]:
    """Copy rows: panels, lanes and depths."""
    panel, lane, depth = dims
    tiles.add(name, (panel.size, depth.size, lane.size), value.dtype)
    row, column, deep = map(axis_index, dims)
    place = row, deep, column
    return [pack(name, dims, value, place)]


def pair_panels(tiles: Tiles, name: str, dims: Axes, value: Expr) -> list[Step]:
    """Copy rows, of which pairs of depths are put in turn; behind the last is 0."""
    panel, lane, depth = dims
    whole = round_up(depth.size, STEP)
    plain = f"{name}_plain"
    steps = copy_panels(tiles, plain, dims, narrow(value))
    tiles.add(plain, (panel.size, whole, lane.size), bfloat16)
    if whole > depth.size:
        rest = Axis("rest", whole - depth.size)
        zero = const(0.0, value.dtype)
        behind = axis_index(rest) + depth.size
        place = axis_index(panel), behind, axis_index(lane)
        steps.append(pack(plain, (panel, rest, lane), zero, place))
    deep = Axis("depth", whole)
    steps.append(put_in_turn(tiles, plain, name, (panel, deep, lane)))
    return steps


def put_in_turn(tiles: Tiles, plain: str, name: str, dims: Axes) -> Step:
    """Put pairs of the rows of a tile in turn: dims before them, rows and lanes."""
    *outer, rows, lanes = dims
    pairs = Axis("pair", rows.size // 2)
    parity = Axis("parity", 2)
    sizes = [axis.size for axis in outer]
    shape = *sizes, pairs.size, 2 * lanes.size
    tiles.add(name, shape, bfloat16)
    before = tuple(map(axis_index, outer))
    pair, lane, side = map(axis_index, (pairs, lanes, parity))
    element = *before, pair * 2 + side, lane
    read = Expr("tile", (), (plain, element), bfloat16)
    place = *before, pair, lane * 2 + side
    return pack(name, (*outer, pairs, lanes, parity), read, place)


def copy_places(
    tiles: Tiles, name: str, dims: Axes, value: Expr, height: int, is_value: bool
) -> list[Step]:
    """Copy what is streamed, whole register blocks of it: places and their elements."""
    place, width = dims
    whole = round_up(width.size, height)
    tiles.add(name, (place.size, whole), value.dtype)
    index = tuple(map(axis_index, dims))
    return [pack(name, dims, value, index)]


def turn_places(
    tiles: Tiles, name: str, dims: Axes, value: Expr, height: int, is_value: bool
) -> list[Step]:
    """Copy what is streamed, turned round for a sum over places; behind depths is 0."""
    place, width = dims
    row, column = map(axis_index, dims)
    value = narrow(value)
    if is_value:
        columns = round_up(width.size, height)
        tiles.add(name, (columns, place.size), bfloat16)
        return [pack(name, dims, value, (column, row))]
    whole = round_up(width.size, STEP)
    tiles.add(name, (place.size, whole), bfloat16)
    steps: list[Step] = [pack(name, dims, value, (row, column))]
    if whole > width.size:
        rest = Axis("rest", whole - width.size)
        zero = const(0.0, value.dtype)
        behind = axis_index(rest) + width.size
        steps.append(pack(name, (place, rest), zero, (row, behind)))
    return steps
