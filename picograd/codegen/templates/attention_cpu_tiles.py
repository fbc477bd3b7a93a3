"""Tiles of attention on a CPU, and what fills them before the stream: rows in lanes of vectors."""

from collections.abc import Sequence
from dataclasses import field

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import Role, bind_roles, guarded, role, size_of
from picograd.codegen.streams import read
from picograd.codegen.tile import Accumulate, Assign, Step, Tile
from picograd.dtype import DType
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Compute, Expr

Indices = tuple[Index, ...]


@dataclass(slots=True)
class Tiles:
    """The tiles of a task, by name; equal operands share one."""

    every: dict[str, Tile] = field(default_factory=dict)
    names: dict[tuple[str, Expr], str] = field(default_factory=dict)

    def add(self, name: str, shape: tuple[int, ...], dtype: DType, space: str = "shared") -> str:
        """Add a tile."""
        tile = Tile(name, shape, dtype, space)
        self.every[name] = tile
        return name


def pack(tile: str, dims: Sequence[Axis], expr: Expr, index: Indices) -> Assign:
    """Make a step that copies with explicit vectors where it can."""
    shape = tuple(axis.size for axis in dims)
    ones = (1,) * len(shape)
    vector = (*ones[:-1], 16)
    return Assign(tile, tuple(dims), expr, index, Blocked(shape, ones, vector))


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
