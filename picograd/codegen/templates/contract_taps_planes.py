"""Products of few results each, whose operands lie in planes, on a CPU.

    task (channel): for block of places: b = the image with its border; g = the gradient, 0 beyond
                      part[tap, lane] = sum of b[place + tap] * g[place]     in vectors of places
                      total[tap, lane] += part[tap, lane]
                    what follows, over the sums of total's lanes

These are gradients of depthwise convolutions' weights. Each tap reads the tile of an image from
another place, as in templates/contract_shift.py; a matrix product would be one column wide.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product as combinations

from picograd.codegen import cuts
from picograd.codegen.operands import Contraction, bind, guarded, size_of, stores, swap
from picograd.codegen.templates.contract_shift import Block, Shift, find, space_of
from picograd.codegen.templates.contract_taps import element, tile_over
from picograd.codegen.templates.contract_taps_sums import is_alike
from picograd.codegen.templates.contract_thin import guarded_steps, loops, pack
from picograd.codegen.tile import Accumulate, Assign, Step, Store, Tile, TilePart, When
from picograd.helpers import ceil_div, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, position_over
from picograd.schedule.loop import Condition, Expr, const
from picograd.target import Target

VECTOR, VECTOR_BYTES = 16, 64  # lanes of a part, of float32
POINTS = 2048  # places of a block: both tiles stay in the first-level cache
RESERVED = 5  # registers that sum nothing


@dataclass(frozen=True, slots=True)
class Planes:
    """A sum over places, of an image that its taps read and of what they multiply."""

    product: Contraction  # whose columns are the taps
    block: Block  # of places, which are its columns

    @property
    def places(self) -> int:
        """Count the places that are summed: whole vectors, from the first plane to the last."""
        space = self.block.space
        before = self.block.planes - 1
        last = before * space.extent
        return round_up(last + space.reached, VECTOR)

    @property
    def taps(self) -> list[int]:
        """List how far from a place each tap reads, in the order of the columns."""
        first = 0
        for tap, step in self.block.taps:
            if tap.step < 0:
                first += tap.reach * step
        places = []
        for digit in self.block.digits:
            numbers = range(digit.size)
            own = [digit.place(number) for number in numbers]
            places.append(own)
        return [first + sum(each) for each in combinations(*places)]

    def tiles(self) -> tuple[Tile, Tile]:
        """Make the tiles of both operands: vectors may end beyond what is filled."""
        dtype, block = self.product.dtype, self.block
        filled = block.places * size_of(block.phases)
        read = self.places + max(self.taps)
        around = block.planes * block.space.extent
        beside = max(around, self.places)
        width = max(filled, read)
        image = Tile("b", (1, width), dtype, "shared")
        return image, Tile("g", (beside,), dtype, "shared")

    @property
    def sizes(self) -> list[int]:
        """List the sizes of the dims of a whole block, with what taps read beyond them."""
        space, shift = self.block.space, self.block.shift
        found = [plane.size for plane in space.planes]
        for axis, dim in zip(space.axes, space.dims, strict=True):
            reach = shift.reach(axis)
            found.append(dim.size + reach)
        return found

    def fill(self) -> Iterator[Step]:
        """Lay out what the image is multiplied with, and zeros around it."""
        space = self.block.space
        planes = len(space.planes)
        for piece in self.block.columns.pieces:
            local: list[Axis] = []
            moved: dict[Axis, Index] = {}
            inside: list[Condition] = []
            for dim, size in zip(piece.dims, self.sizes, strict=True):
                axis = Axis(f"{dim.name}w", size)
                here = axis_index(axis)
                local.append(axis)
                moved[dim] = here
                inside.append((here, 0, dim.size - 1))
            value = bind(self.product.a, piece.values)
            value = bind(value, moved)
            expr = guarded(value, inside)
            laid = replace(space, planes=tuple(local[:planes]))
            where = laid.place(local[planes:], space.extent)
            filling = pack("g", local, expr, (where,))
            yield from guarded_steps(piece.when, [filling])


def build_part(product: Contraction, target: Target) -> TilePart | None:
    """Write such products; None if these are others."""
    batch, rows, _, _ = product.sizes
    if batch == 1 or not is_alike(product):
        return None
    turned = product if rows == 1 else swap(product)
    planes = found(turned)
    return None if planes is None else written(planes, target)


def found(c: Contraction) -> Planes | None:
    """Match the depth of a product with its columns, which are taps of a convolution then."""
    turned = replace(c, columns=c.depth, depth=c.columns)
    shift = find(turned)
    if shift is None:
        return None
    taps = {tap.axis for tap in shift.taps.values()}
    wide = {axis for axis in c.columns if axis.size > 1}
    if not taps or taps != wide:
        return None
    most = max(POINTS, least_places(shift))
    cut = cuts.nested_cut(shift.product.columns, most)
    space = space_of(shift, cut.pieces[0])
    if space is None:
        return None
    block = Block(shift, cut, space, VECTOR)
    return Planes(c, block)


def least_places(shift: Shift) -> int:
    """Count the places of two rows, of which the taps are in the same block."""
    columns = shift.product.columns
    outer = min(map(columns.index, shift.taps))
    inner = columns[outer + 1 :]
    return 2 * size_of(inner)


def written(planes: Planes, target: Target) -> TilePart:
    """Write the sums of a channel, and what is computed of them."""
    product, block = planes.product, planes.block
    image, beside = planes.tiles()
    tiles = [image, beside]
    dtype, lane = product.dtype, Axis("lane", VECTOR)
    steps = [cleared(image, 0), cleared(beside)]
    channels = cuts.nested_cut((), 1)
    inner: list[Step] = [*block.fill(channels), *planes.fill()]
    inner += multiplied(planes, lane, target)
    for number in range(len(planes.taps)):
        part, total = f"part{number}", f"total{number}"
        tiles.append(tile_over(part, (lane,), dtype))
        tiles.append(tile_over(total, (lane,), dtype))
        tiles.append(tile_over(f"sum{number}", (), dtype))
        zero = const(0, dtype)
        steps.append(Assign(total, (lane,), zero))
        found = element(part, (lane,), dtype)
        add = Accumulate(total, (lane,), (), "sum", found, False)
        inner.append(add)
    taps = Tile("c", (len(planes.taps),), dtype, "register")
    every = (*steps, *loops(block.columns.outer, inner), *results(planes, lane))
    return TilePart(product.batch, (*tiles, taps), every)


def cleared(tile: Tile, *before: int) -> Step:
    """Fill a tile with zeros."""
    place = Axis("place", tile.shape[-1])
    first = map(constant, before)
    zero = const(0, tile.dtype)
    return pack(tile.name, (place,), zero, (*first, axis_index(place)))


def multiplied(planes: Planes, lane: Axis, target: Target) -> Iterator[Step]:
    """Multiply a block of places with what each tap reads there, some taps in one loop."""
    dtype = planes.product.dtype
    count = planes.places // VECTOR
    vector = Axis("vector", count)
    first_lane = axis_index(vector) * VECTOR
    place = first_lane + axis_index(lane)
    beside = at_place("g", (place,), planes)
    registers = ceil_div(VECTOR_BYTES, target.vector_bytes)
    most = (target.registers - RESERVED) // registers
    taps = planes.taps
    groups = ceil_div(len(taps), max(most, 1))
    each = ceil_div(len(taps), groups)
    numbered = list(enumerate(taps))
    for first in range(0, len(taps), each):
        steps: list[Step] = []
        for number, tap in numbered[first : first + each]:
            read = constant(0), place + tap
            seen = at_place("b", read, planes)
            term = Expr("mul", (seen, beside), None, dtype)
            add = Accumulate(f"part{number}", (lane,), (vector,), "sum", term)
            steps.append(add)
        yield When((), tuple(steps))  # a nest of its own


def at_place(name: str, index: Sequence[Index], planes: Planes) -> Expr:
    """Read an element of a tile."""
    return Expr("tile", (), (name, tuple(index)), planes.product.dtype)


def results(planes: Planes, lane: Axis) -> Iterator[Step]:
    """Add up the lanes of each tap, and store what is computed of the sums."""
    product, axes = planes.product, planes.block.tap_axes
    dtype = product.dtype
    for number in range(len(planes.taps)):
        name = f"sum{number}"
        total = element(f"total{number}", (lane,), dtype)
        yield Accumulate(name, (), (lane,), "sum", total)
        whole = element(name, (), dtype)
        yield Assign("c", (), whole, (constant(number),))
    here = position_over(axes)
    sums = {product.number: at_place("c", (here,), planes)}
    for out in stores(product, {}, sums):
        yield Store(out.slot, out.index, axes, out.expr)
