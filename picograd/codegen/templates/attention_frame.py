"""What kernels on Hopper that stream over scores share: tiles of rows, rings, masks, results.

A block has `groups` warpgroups of 64 rows, and `size` places of the stream at once. One warpgroup
more copies: what is streamed arrives in rings, what stays for a tile of rows may be held too. The
longest tiles of a mask come first.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from picograd.codegen import streams
from picograd.codegen.boxes import (
    BoxStore,
    CopyBox,
    Persistent,
    Pipeline,
    Teams,
    View,
    places_of,
    read_place,
    view_of,
)
from picograd.codegen.layout import Layout, RowsOf, Swizzled, WgmmaAccumulator, WgmmaOperand
from picograd.codegen.operands import Role, expr_axes, narrow, role, size_of
from picograd.codegen.page_boxes import Paging, page_boxes
from picograd.codegen.stream_masks import (
    atom_axes,
    edges,
    emptied,
    extreme,
    extreme_of,
    minimum_of,
    seen_places,
)
from picograd.codegen.streams import Product, Stream, read, replaced
from picograd.codegen.templates.attention_heads import head_axes
from picograd.codegen.tile import Accumulate, Assign, Step, Tile, TilePart, When
from picograd.dtype import DType
from picograd.errors import internal
from picograd.helpers import ceil_div, product, round_up
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axes,
    Axis,
    Dynamic,
    Index,
    atom_index,
    axis_index,
    constant,
    substitute,
)
from picograd.schedule.loop import Compute, Condition, Expr, binary, const
from picograd.schedule.monoid import COMBINE
from picograd.schedule.pages import pages_of, tables_in
from picograd.target import Target

ROWS = 64  # of a warpgroup
MEMORY = 200 << 10  # bytes of shared memory, for what is copied
MOST_STAGES = 4
SPAN = 64  # columns of a slab
GRAIN = 16  # columns of a product on the tensor cores
WARPGROUP = 128  # threads
WARP_ROWS = 16  # that a warp stores at once
FEW_PLACES = 1024  # that a row sees
SHARING = {3: (24, 136), 2: (40, 216)}  # registers, by blocks that share a multiprocessor
SPARE = 24  # registers of a thread beside fragments: addresses, values of rows
SPARE_BYTES = 2048  # of shared memory, for barriers


@dataclass(frozen=True, slots=True)
class Schedule:
    """How blocks work: see the module docstring; `registers` as in `Teams`.

    The stream of few rows may be cut in `splits`, dealt block by block.
    """

    groups: int
    size: int
    registers: tuple[int, int]
    splits: int = 1
    rows: int = ROWS  # of a group
    blocks: int = 1  # that share a multiprocessor
    is_plain: bool = False  # for CUDA cores, which find all digits


def side_by_side(stream: Stream, live: Callable[[int], int]) -> Iterator[Schedule]:
    """List schedules of small blocks that share a multiprocessor, for rows that see few places.

    While one begins or ends its tile of rows, others multiply; and of 64 rows, few see what a row
    does not. Heads beyond 64 have no registers for three, and two are slower than one large block.
    `live` counts the registers of a thread for fragments, by places of a block.
    """
    is_narrow = max(stream.depths + stream.widths) <= SPAN and bool(emptied(stream))
    if not is_narrow or (not stream.shown and seen_places(stream) > FEW_PLACES):
        return
    for blocks, registers in SHARING.items():
        if live(SPAN) + SPARE <= registers[1]:
            yield Schedule(1, SPAN, registers, blocks=blocks)


class Frame:
    """This class holds the tiles of a block, and what is copied to them."""

    def __init__(self, stream: Stream, schedule: Schedule, target: Target) -> None:
        self.stream = stream
        self.schedule = schedule
        self.target = target
        first = stream.scores[0]
        self.dtype = stream.computes[first.number].dtype
        self.half = narrow(first.streamed).dtype
        self.is_relaxed = not schedule.is_plain
        is_few = size_of(stream.rows) <= ROWS and schedule.splits > 1
        is_exact = self.is_relaxed and not is_few
        self.grain = GRAIN if is_exact else SPAN
        self.size = schedule.size
        self.height = schedule.rows * schedule.groups
        blocks = ceil_div(size_of(stream.over), self.size)
        tiles = ceil_div(size_of(stream.rows), self.height)
        self.block = Axis("block", ceil_div(blocks, schedule.splits))
        self.split = Axis("split", schedule.splits)
        self.tile = Axis("rows", tiles)
        self.row = Axis("row", self.height)
        self.place = Axis("place", self.size)
        turned = axis_index(self.tile) * -1 + (tiles - 1)
        self.start = turned * self.height
        own = axis_index(self.block) * schedule.splits + axis_index(self.split)
        self.first = own * self.size
        self.batch = self.cut_batch()
        row, place = self.point
        self.rows = self.in_batch(stream.rows, self.start + row)
        self.over = self.in_batch(stream.over, self.first + place)
        self.scored = self.fragment(self.size)
        self.tiles: dict[str, Tile] = {}
        self.copied: dict[tuple[int, Index, Index], str] = {}
        self.ring: list[CopyBox] = []
        self.held: list[CopyBox] = []
        self.behind: list[CopyBox] = []  # read when the stream has ended
        self.factors: dict[int, float] = {}  # of results, that their tiles are without
        self.workspaces: list[tuple[int, bool]] = []
        self.stages = 0  # of the rings
        self.is_crowded = False  # a bias has no room beside them
        self.known: dict[Index, Axis] = {}  # of each block

    def cut_batch(self) -> Role:
        """Find the values of the axes of the batch: of a head in a group."""
        stream, itemsize = self.stream, self.half.itemsize
        blocks = self.target.multiprocessors * self.schedule.blocks
        self.group, self.head = head_axes(stream, itemsize, self.tile.size, blocks)
        before = axis_index(self.group) * self.head.size
        self.number = before + axis_index(self.head)
        return role(stream.batch, self.number)

    def in_batch(self, axes: tuple[Axis, ...], position: Index) -> Role:
        """Find the values of axes at a position, and those of the batch."""
        found = role(axes, position)
        values = {**self.batch.values, **found.values}
        return Role(values, found.conditions)

    # -- tiles ------------------------------------------------------------------------------------

    @property
    def point(self) -> tuple[Index, Index]:
        """Place of a score in its tile."""
        row = axis_index(self.row)
        place = axis_index(self.place)
        return row, place

    @property
    def unit(self) -> str:
        """What multiplies a left operand in registers."""
        return "wgmma" if self.half.bits == 16 else "mma"

    @property
    def dims(self) -> tuple[Axis, Axis]:
        """Dimensions of the tile of scores."""
        return self.row, self.place

    def fragment(self, columns: int) -> WgmmaAccumulator:
        """Lay out a tile of the block's rows."""
        return WgmmaAccumulator(columns, self.schedule.groups)

    def add(self, name: str, shape: tuple[int, ...], layout: Layout, dtype: DType) -> str:
        """Add a register tile."""
        self.tiles[name] = Tile(name, shape, dtype, "register", layout)
        return name

    def add_rows(self, name: str, dtype: DType) -> str:
        """Add a register tile of one value a row."""
        shape = (self.height,)
        layout = RowsOf(self.scored)
        return self.add(name, shape, layout, dtype)

    def add_scores(self, name: str, dtype: DType) -> str:
        """Add a register tile of one value a score."""
        shape = self.height, self.size
        return self.add(name, shape, self.scored, dtype)

    def width(self, each: Product) -> int:
        """Count the columns of a product."""
        return round_up(size_of(each.columns), self.grain)

    def depth(self, axes: tuple[Axis, ...]) -> int:
        """Count what a product of scores sums over."""
        return round_up(size_of(axes), self.grain)

    def begin(self) -> list[Step]:
        """Add and start the rows of all reductions, and the accumulators of all products."""
        steps = [self.start_reduction(number) for number in self.stream.reductions]
        return [*steps, *map(self.start_product, self.stream.products)]

    def start_product(self, each: Product) -> Step:
        """Add the accumulator of a product, and start it."""
        width = self.width(each)
        shape = self.height, width
        layout = self.fragment(width)
        name = f"value{each.number}"
        self.add(name, shape, layout, self.dtype)
        dims = self.row, Axis("column", width)
        zero = const(0.0, self.dtype)
        return Assign(name, dims, zero)

    def start_reduction(self, number: int) -> Step:
        """Add the rows of a reduction, and start them."""
        compute = self.stream.computes[number]
        name = self.add_rows(f"value{number}", compute.dtype)
        start = self.stream.start_of(number, self.rows)
        return Assign(name, (self.row,), start)

    def sum_before(self, number: int) -> Expr:
        """Read the sum of a row over the blocks before this one."""
        return read(f"value{number}", self.point[:1], self.stream.computes[number].dtype)

    def add_up(self, number: int, element: Expr, before: Expr) -> list[Step]:
        """Add the elements of a block to a sum of rows."""
        compute = self.stream.computes[number]
        monoid = str(compute.monoid)
        rows = (self.row,)
        part = self.add_rows(f"part{number}", before.dtype)
        total = binary(COMBINE[monoid], before, read(part, self.point[:1], before.dtype))
        return [
            Accumulate(part, rows, (self.place,), monoid, element, layout=self.scored),
            Assign(f"value{number}", rows, total),
        ]

    def add_weight(self, each: Product) -> str:
        """Add the tile of the weights of a product, rounded to a left operand."""
        layout, shape = WgmmaOperand(self.scored), (self.height, self.size)
        return self.add(f"weight{each.number}", shape, layout, self.half)

    # -- boxes ------------------------------------------------------------------------------------

    def streamed(self, operand: Expr, axes: tuple[Axis, ...]) -> str:
        """Find or add the ring of a streamed operand, which boxes bring."""
        places = self.stream.over
        return self.copy(operand, axes, places, self.first, self.ring)

    def hold(self, operand: Expr, axes: tuple[Axis, ...]) -> str:
        """Find or add the tile of rows that stay for all of the stream."""
        rows = self.stream.rows
        return self.copy(operand, axes, rows, self.start, self.held)

    def can_hold(self, operand: Expr, axes: tuple[Axis, ...]) -> bool:
        """Tell whether boxes can bring rows."""
        is_half = narrow(operand).dtype is self.half
        return is_half and streams.has_boxes(self.stream, operand, axes)

    def copy(
        self,
        operand: Expr,
        near: tuple[Axis, ...],
        far: tuple[Axis, ...],
        first: Index,
        copies: list[CopyBox],
    ) -> str:
        """Find or add the tile that boxes of an operand fill: `far` positions from `first` on."""
        plain = narrow(operand)
        if plain.op != "load":
            internal("an operand in boxes lies in memory", plain)
        slot, index = plain.arg
        zeros = dict.fromkeys(near, constant(0))
        key = slot, substitute(index, zeros), first
        if key in self.copied:
            return self.copied[key]
        rows = self.size if copies is self.ring else self.height
        width = round_up(size_of(near), SPAN)
        layout = Swizzled((rows, width), self.half.itemsize)
        name = self.copied[key] = f"boxes{len(self.copied)}"
        paged = pages_of(index, far) if tables_in(index) else None
        if paged is not None:
            view = self.view_of(paged.index, near, (paged.place,))
            self.tiles[name] = Tile(name, layout.shape, plain.dtype, "shared", swizzle=layout)
            paging = Paging(paged, view, self.batch, self.known_value)
            copies += page_boxes(name, plain, layout, paging, first)
            return name
        view = self.view_of(index, near, far)
        self.add_boxes(name, plain, view, layout, (constant(0), first), copies)
        return name

    def view_of(self, index: Index, near: Axes, far: Axes) -> View:
        """See what is read as dimensions of boxes; values in memory that move it are some."""
        batch = self.stream.batch
        places = places_of(index, (), batch) or ()
        places += tuple([read_place(*each) for each in tables_in(index)])
        view = view_of(index, near, far, batch, self.half.itemsize, places)
        return view or internal("an operand has other strides than boxes", index)

    def add_boxes(
        self,
        name: str,
        load: Expr,
        view: View,
        layout: Swizzled,
        corner: tuple[Index, Index],
        copies: list[CopyBox],
    ) -> None:
        """Add a tile that boxes of an array fill, from a corner on: its column and its row."""
        slot, _ = load.arg
        self.tiles[name] = Tile(name, layout.shape, load.dtype, "shared", swizzle=layout)
        rest = view.places_of(self.batch.values)
        tensor = view.tensor(slot, load.dtype, (layout.span, layout.shape[0]))
        slab = Axis("slab", layout.slabs)
        first, row = corner
        column = axis_index(slab) * layout.span + first
        copies.append(CopyBox(name, tensor, (column, row, *rest), slab))

    def fill_memory(self, values: Sequence[str]) -> None:
        """Give the rings, those of values too, as many stages as there is memory for.

        What is held has two where that takes a third of the memory at most, and leaves two for the
        rings.
        """
        held = [each.tile for each in self.held]
        rings = list(dict.fromkeys(each.tile for each in self.ring))
        rings += values
        size, stage = self.bytes_of(held), self.bytes_of(rings)
        memory = self.memory
        is_small = 0 < size <= memory // 6 and memory >= 2 * (size + stage)
        stages = 2 if is_small else 1
        self.set_stages(held, stages)
        left_over = memory - size * stages
        self.stages = min(left_over // stage, MOST_STAGES)
        self.set_stages(rings, self.stages)

    @property
    def memory(self) -> int:
        """Count the bytes for what is held, and for rings."""
        behind = [each.tile for each in self.behind]
        return MEMORY // self.schedule.blocks - self.bytes_of(behind)

    def bytes_of(self, names: Collection[str]) -> int:
        """Count the bytes of one stage of some tiles."""
        tiles = [self.tiles[name] for name in names]
        return sum(product(tile.shape) * tile.dtype.itemsize for tile in tiles)

    def set_stages(self, names: Sequence[str], count: int) -> None:
        """Say how many stages some tiles have."""
        for name in names:
            tile = self.tiles[name]
            self.tiles[name] = replace(tile, stages=count)

    # -- the block --------------------------------------------------------------------------------

    def part(self, before: Sequence[Step], pipeline: Pipeline, after: Sequence[Step]) -> TilePart:
        """Write the program of a block: what starts a tile of rows, the main loop, what leaves."""
        body = (*before, *self.held, pipeline, *after)
        points = self.group, self.tile, self.head, self.split
        count = product(axis.size for axis in points)
        blocks = min(count, self.target.multiprocessors * self.schedule.blocks)
        block = Axis("blocks", blocks)
        schedule = self.schedule
        teams = Teams(1, WARPGROUP * schedule.groups, schedule.registers)
        is_wide = narrow(self.stream.scores[0].streamed).dtype.bits == 32  # few registers are left
        least = 1 + (is_wide and count == blocks)
        loop = Persistent(points, block, teams, body, is_dealt=True, least=least)
        tiles = tuple(self.tiles.values())
        memory = tuple(self.workspaces)
        return TilePart((block,), tiles, (loop,), memory)

    def pipeline(
        self, values: Sequence[Assign], steps: Sequence[Step], is_rotated: bool = False
    ) -> Pipeline:
        """Write the main loop over the blocks that a mask shows; rotated as `Pipeline` says."""
        self.fill_memory([each.tile for each in values])
        first, stop = self.shown()
        copies = (*self.ring, *values)
        if self.is_relaxed:
            steps = [relaxed(each) for each in steps]
        _, apart = self.bounds()
        seen = minimum_of(apart) if apart and not self.stream.kept else None
        pairs = self.known.items()
        known = tuple([(axis, index) for index, axis in pairs])
        body = tuple(steps)
        return Pipeline(self.block, copies, body, first, stop, is_rotated, known, seen)

    # -- masks ------------------------------------------------------------------------------------

    def bounded(self, index: Index, is_most: bool = False) -> Index:
        """Bound an index over the rows and places of a block."""
        values = {**self.rows.values, **self.over.values}
        return self.read_ahead(extreme(index, values, self.dims, is_most))

    def read_ahead(self, index: Index) -> Index:
        """Let what is read of memory for each block be known before."""
        for atom, factor in index.terms:
            if isinstance(atom, Dynamic) and self.block in expr_axes(atom.expr):
                index += (self.known_as(atom) - atom_index(atom)) * factor
        return index

    def known_value(self, atom: Dynamic) -> Index:
        """Find or add the axis that has a value that is read."""
        low, high = atom.bounds
        new = Axis(f"known{len(self.known)}", high - low + 1)
        return axis_index(self.known.setdefault(atom_index(atom) - low, new)) + low

    def known_as(self, atom: Dynamic) -> Index:
        """Find or add the axis that has a value that is read, else write it with what is known."""
        if atom.expr.op in ("load", "guard"):
            return self.known_value(atom)

        def find(expr: Expr) -> Expr | None:
            is_index = expr.op == "index"
            return Expr("index", (), self.read_ahead(expr.arg), expr.dtype) if is_index else None

        return atom_index(Dynamic(replaced(atom.expr, find), *atom.bounds))

    def shown(self) -> tuple[Index | None, Index | None]:
        """Find the blocks that a mask shows anything of: from the first, and before the stop."""
        firsts: list[Index] = []
        stops: list[Index] = []
        last = constant(size_of(self.stream.over) - 1)
        even, _ = self.bounds()
        for most in (*even, self.bounded(last - self.first, True)):
            terms = dict(most.terms)
            step = terms.get(self.block, 0)
            rest = substitute(most, {self.block: constant(0)})
            if step <= 0:  # rest + step * block >= 0
                far = max(abs(rest.lo), abs(rest.hi)) + 1
                stop = rest // -step + 1 if step else (rest // far + 1) * self.block.size
                stops += [stop] if stop.lo < self.block.size else []
            else:
                firsts.append((rest * -1 + (step - 1)) // step)
        first = extreme_of("maximum", firsts) if firsts else None
        return first, minimum_of(stops) if stops else None

    def bounds(self) -> tuple[list[Index], list[Index]]:
        """Bound the indices that say what a mask shows of a block: those that move evenly with the
        block, and those that are known of each."""
        even: list[Index] = []
        apart: list[Index] = []
        for index in emptied(self.stream):
            most = self.bounded(index, True)
            known = self.known.values()
            is_known = any(axis in known for atom, _ in most.terms for axis in atom_axes(atom))
            (apart if is_known else even).append(most)
        return even, apart

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Where there are rows and places."""
        return (*self.rows.conditions, *self.over.conditions)

    def chosen(
        self,
        whole: Sequence[Step],
        edge: Sequence[Step],
        conditions: Sequence[Condition] | None = None,
    ) -> list[Step]:
        """Take steps without masks and guards where a block needs neither, else others."""
        guards = self.conditions if conditions is None else conditions
        found = edges(self.stream, self.bounded, guards)
        if not found or whole == edge:
            return list(whole)
        least = minimum_of(found)
        lowest, highest = min(least.lo, -1), max(least.hi, 0)
        is_edge = least, lowest, -1
        is_whole = least, 0, highest
        last = When((is_edge,), tuple(edge))
        if not whole:
            return [last]
        first = When((is_whole,), tuple(whole))
        return [first, last]

    # -- results ----------------------------------------------------------------------------------

    def box_of(self, compute: Compute, columns: tuple[Axis, ...], first: Index) -> BoxStore | None:
        """Describe how columns leave in boxes; None if they cannot, or are of few rows."""
        slot, index = compute.store or internal("a stream leaves what is stored", compute)
        stream, dtype = self.stream, compute.dtype
        is_half = dtype is self.half and dtype.bits == 16
        if not is_half or size_of(stream.rows) <= ROWS:
            return None
        view = view_of(index, columns, stream.rows, stream.batch, dtype.itemsize)
        if view is None:
            return None
        rest = view.places_of(self.batch.values)
        tensor = view.tensor(slot, dtype, (SPAN, WARP_ROWS))
        self.add_leaving(dtype)
        places = (first, self.start, *rest)
        return BoxStore(tensor, places, "leaving")

    def add_leaving(self, dtype: DType) -> None:
        """Add the slots in which results leave: one for each slab of columns, if there is room."""
        if "leaving" in self.tiles:
            return
        shape = self.height // WARP_ROWS, WARP_ROWS, SPAN
        slabs = [ceil_div(self.width(each), SPAN) for each in self.stream.products]
        slabs += [1 for _ in self.stream.kept]  # asked for before the rings have their memory
        stages = min(slabs)
        held = [name for name, tile in self.tiles.items() if tile.space == "shared"]
        stages_of = {name: self.tiles[name].stages for name in held}
        used = sum(self.bytes_of([name]) * count for name, count in stages_of.items())
        slot = product(shape) * dtype.itemsize
        whole = self.target.shared_bytes // self.schedule.blocks
        room = whole - used - SPARE_BYTES
        if stages * slot > room or any(count % stages for count in slabs):
            stages = 1
        self.tiles["leaving"] = Tile("leaving", shape, dtype, "shared", stages=stages)


def relaxed(step: Step) -> Step:
    """Let scores made of 16-bit floats, or TF32, be edited by functions of few instructions."""
    if isinstance(step, When):
        return replace(step, body=tuple(map(relaxed, step.body)))
    return replace(step, is_relaxed=True) if isinstance(step, Assign) else step
