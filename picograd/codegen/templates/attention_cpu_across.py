"""CPU attention: sums over the rows of a task, beside those over what is streamed.

    for a panel of rows, once its weights for a block of the stream are there
      result[place][v] = result[place][v] + weights[place][lane] @ value[lane][v]

A task has all rows of a matrix then: it begins with zeros for every place of the stream, and stores
them once the last rows are done (schedule/both_sides.py).
"""

from collections.abc import Mapping

from picograd.codegen.dot import Dot
from picograd.codegen.operands import Role, bind_roles, guarded, role, size_of
from picograd.codegen.streams import Product, Stream, left, read
from picograd.codegen.templates.attention_cpu_tiles import Tiles, pack
from picograd.codegen.tile import Assign, For, Step, Store
from picograd.helpers import round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Indices, axis_index, constant
from picograd.schedule.loop import Compute, Expr, cast, const


@dataclass(frozen=True, slots=True)
class Across:
    """What is summed over rows; `over` is a block and the places in it, `lanes` a panel."""

    stream: Stream
    tiles: Tiles
    rows: Role
    places: Role
    height: int
    over: tuple[Axis, Axis]
    lanes: tuple[Axis, Axis]

    def has(self, compute: Compute) -> bool:
        """Tell whether a compute has an element for every place of the stream."""
        return bool(self.stream.across) and set(self.stream.over) <= set(compute.axes)

    def columns(self, product: Product) -> Axis:
        """Make the axis of the columns of a product, whole vectors of them."""
        _, lane = self.lanes
        count = size_of(product.columns)
        return Axis("column", round_up(count, lane.size))

    def begin(self) -> list[Step]:
        """Start every sum with zero."""
        found: list[Step] = []
        block, place = self.over
        for product in self.stream.across:
            column = self.columns(product)
            wide = Axis("every", block.size * place.size)
            dtype = self.stream.computes[product.number].dtype
            name = f"value{product.number}"
            self.tiles.add(name, (wide.size, column.size), dtype)
            found.append(Assign(name, (wide, column), const(0.0, dtype)))
        return found

    def pack(self) -> list[Step]:
        """Copy what is multiplied with weights: [panel][lane][column]."""
        found: list[Step] = []
        panel, lane = self.lanes
        for product in self.stream.across:
            column = self.columns(product)
            dims = panel, lane, column
            dtype = self.stream.computes[product.number].dtype
            sizes = tuple(axis.size for axis in dims)
            name = self.tiles.add(f"across{product.number}", sizes, dtype)
            beside = role(product.columns, axis_index(column))
            value = bind_roles(cast(product.value, dtype), self.rows, beside)
            value = guarded(value, (*self.rows.conditions, *beside.conditions))
            index = tuple(map(axis_index, dims))
            found.append(pack(name, dims, value, index))
        return found

    def multiply(self, weights: Mapping[int, str]) -> list[Step]:
        """Add the weights of a block times the values of the rows of a panel."""
        found: list[Step] = []
        block, place = self.over
        panel, lane = self.lanes
        zero = constant(0)
        for product in self.stream.across:
            columns = self.columns(product).size
            part, group = (
                Axis("part", columns // lane.size),
                Axis("group", place.size // self.height),
            )
            column = axis_index(part) * lane.size
            row = axis_index(group) * self.height
            dot = Dot(
                f"value{product.number}",
                weights[product.number],
                f"across{product.number}",
                lane.size,
                a_origin=(row, zero),
                b_origin=(axis_index(panel), zero, column),
                acc_origin=(axis_index(block) * place.size + row, column),
                block=(self.height, lane.size),
            )
            found.append(For(part, (For(group, (dot,)),)))
        return found

    def leave(self) -> list[Step]:
        """Store what was summed over all rows."""
        steps: list[Step] = []
        block, place = self.over
        found = {frozenset(each.columns): each for each in self.stream.across}
        for number, compute in enumerate(self.stream.computes):
            if compute.store is None or not self.has(compute):
                continue
            own = frozenset(compute.axes) - {*self.stream.batch, *self.stream.over}
            column = Axis("column", size_of(found[own].columns))
            beside = role(found[own].columns, axis_index(column))
            at = axis_index(block) * place.size + axis_index(place), axis_index(column)

            def held(number: int, ref: Expr, at: Indices = at) -> Expr:
                return read(f"value{number}", at, ref.dtype)

            slot, target, value = left(self.stream, number, (self.places, beside), held)
            dims = place, column
            store = Store(slot, target, dims, value, self.places.conditions)
            steps.append(For(block, (store,)))
        return steps
