"""Attention of bfloat16 by a CPU's tile registers: operands are packed as those are read.

What is streamed lies as rows of K: `[place][depth]` beside the rows of a panel, `[column][place]`
beside its weights. Those two are paired, `[depth / 2][lane][2]` and `[place / 2][lane][2]`.
"""

from collections.abc import Sequence

from picograd.codegen.operands import narrow
from picograd.codegen.streams import Stream
from picograd.codegen.templates.attention_cpu_tiles import Tiles, pack
from picograd.codegen.tile import Step
from picograd.codegen.tile_products import STEP
from picograd.dtype import bfloat16
from picograd.helpers import round_up
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Expr, const
from picograd.target import Target

LANES = 32  # of a panel: two tiles
Indices = tuple[Index, ...]


def is_paired(stream: Stream, target: Target) -> bool:
    """Tell whether all that is multiplied is bfloat16 and the target has tiles of it."""
    if not target.multiplies_tiles or stream.across:
        return False
    operands = [each for score in stream.scores for each in (score.row, score.streamed)]
    operands += [each for product in stream.products for each in (product.value, product.weight)]
    return all(narrow(each).dtype is bfloat16 for each in operands)


def pack_panels(tiles: Tiles, name: str, dims: tuple[Axis, Axis, Axis], value: Expr) -> list[Step]:
    """Copy rows: panels, lanes and depths, of which pairs are put in turn."""
    panel, lane, depth = dims
    whole = round_up(depth.size, STEP)
    plain = tiles.add(f"{name}_plain", (panel.size, whole, lane.size), bfloat16)
    tiles.add(name, (panel.size, whole // 2, 2 * lane.size), bfloat16)
    row, column, deep = map(axis_index, dims)
    steps: list[Step] = [pack(plain, dims, narrow(value), (row, deep, column))]
    if whole > depth.size:
        rest = Axis("rest", whole - depth.size)
        behind = axis_index(rest) + depth.size
        zero = const(0.0, value.dtype)
        steps.append(pack(plain, (panel, rest, lane), zero, (row, behind, column)))
    return [*steps, put_in_turn(plain, name, (panel, Axis("pair", whole // 2), lane))]


def put_in_turn(plain: str, name: str, dims: Sequence[Axis]) -> Step:
    """Put pairs of the rows of a tile in turn: dims before them, pairs and lanes."""
    parity = Axis("parity", 2)
    *before, pair, lane = map(axis_index, dims)
    side = axis_index(parity)
    element = *before, pair * 2 + side, lane
    read = Expr("tile", (), (plain, element), bfloat16)
    return pack(name, (*dims, parity), read, (*before, pair, lane * 2 + side))


def pack_places(
    tiles: Tiles, name: str, dims: tuple[Axis, Axis], value: Expr, height: int, is_turned: bool
) -> list[Step]:
    """Copy what is streamed: places and their elements, or turned round for a sum over places."""
    place, width = dims
    index = tuple(map(axis_index, dims))
    if is_turned:
        tiles.add(name, (round_up(width.size, height), place.size), bfloat16)
        return [pack(name, dims, narrow(value), index[::-1])]
    whole = round_up(width.size, STEP)
    tiles.add(name, (place.size, whole), bfloat16)
    steps: list[Step] = [pack(name, dims, narrow(value), index)]
    if whole > width.size:
        rest = Axis("rest", whole - width.size)
        zero = const(0.0, value.dtype)
        behind = index[0], axis_index(rest) + width.size
        steps.append(pack(name, (place, rest), zero, behind))
    return steps
