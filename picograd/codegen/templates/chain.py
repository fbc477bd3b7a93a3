"""Chain template: maps in turn over the rows of a block, which exchange elements in shared memory.

grid: blocks of rows    steps: for each map its values, in registers; wait until all have read what
the map before it shares; write what it shares itself, and wait until that is there

So what one map shares lies where what it reads did, and there is room for longer rows. A row of a
tile is as many elements as there are banks, and padding: elements that lie a power of two apart are
in several banks.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from picograd.codegen.layout import Blocked
from picograd.codegen.templates.grid import Cut, cut_flat, part_indices
from picograd.codegen.templates.map import in_steps, is_aligned, map_steps
from picograd.codegen.tile import Assign, Barrier, Step, Store, Tile, TileKernel, TilePart
from picograd.errors import internal
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.block_cuts import place_in_block
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import Condition, Expr, Kernel, Part, rewrite
from picograd.target import Target

WARP = 32
LEFT_OVER = 1.3  # times the least work that threads take together
BANKS = 32
PADDING = 2  # elements, and neighbours that a thread has: they lie in one row


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a chain of maps for the target."""
    chain = Chain(kernel)
    for number, part in enumerate(kernel.parts):
        chain.add(part, number)
    tiles = tuple(chain.tiles.values())
    made = TilePart(chain.grid, tiles, tuple(chain.steps))
    return TileKernel(kernel, (made,), chain.threads)


class Chain:
    """This class collects the tiles and steps of a chain, map by map."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        steps = [points_of(part) // lanes_of(part) for part in kernel.parts]
        self.threads = threads_of(steps)
        self.grid = kernel.parts[0].rows[:2]
        self.tiles: dict[str, Tile] = {}
        self.steps: list[Step] = []
        self.shared: dict[int, str] = {}  # the tile of what the map before shares, by its slot

    def add(self, part: Part, number: int) -> None:
        """Add a map of that number."""
        lanes = lanes_of(part)
        space, tests = self.cut(part, lanes)
        layout = in_steps(space, lanes, self.threads)
        tiles, steps = map_steps(part, space, layout, f"m{number}")
        for tile in tiles:
            self.tiles[tile.name] = tile
        shares: list[Step] = []
        shared: dict[int, str] = {}
        for step in map(self.read, steps):
            is_store = isinstance(step, Store)
            slot = step.slot if is_store else -1
            if not is_store or self.kernel.slots[slot].role != "shared":
                step = replace(step, conditions=tests) if is_store else step
                self.steps.append(step)
                continue
            if slot not in shared:
                shared[slot] = self.tile(slot, len(shared))
            value = self.kept(step, layout)
            place = self.place(slot, step.index)
            share = Assign(shared[slot], step.dims, value, place, layout, tests)
            shares.append(share)
        if shares and self.shared:
            self.steps.append(Barrier())
        if shares:
            self.steps += [*shares, Barrier()]
        self.shared = shared

    def cut(self, part: Part, lanes: int) -> tuple[Cut, tuple[Condition, ...]]:
        """Cut the rows of a block into steps of a few neighbours; say which are stored.

        Threads that are left over do what others do: no load is then under a condition.
        """
        inner = part.rows[2:]
        count = points_of(part) // lanes
        space = cut_flat(inner, count, lanes)
        first, *others = space.dims
        step = Axis("step", round_up(count, self.threads))
        place = axis_index(step) % count
        axes = dict(space.axes)
        for axis, index in axes.items():
            axes[axis] = substitute(index, {first: place})
        for own, axis in zip(part.rows, self.grid):
            axes[own] = axis_index(axis)
        cut = Cut(self.grid, (step, *others), axes, ())
        if step.size == count:
            return cut, ()
        return cut, ((axis_index(step), 0, count - 1),)

    def kept(self, step: Store, layout: Blocked) -> Expr:
        """Hold what is to be shared in registers until all have read."""
        value, dtype = step.expr, step.expr.dtype
        if value.op == "tile" and value.arg[0] not in self.shared.values():
            return value
        name = f"k{len(self.tiles)}"
        kept = Tile(name, layout.shape, dtype, "register", layout)
        self.tiles[name] = kept
        self.steps.append(Assign(name, step.dims, value))
        here = tuple(map(axis_index, step.dims))
        return Expr("tile", (), (name, here), dtype)

    def tile(self, slot: int, number: int) -> str:
        """Find the tile of a slot that is so many-th of what a map shares, or make it longer."""
        own = self.kernel.slots[slot]
        name = f"shared{number}_{own.dtype.name}"
        blocks = product(axis.size for axis in self.grid)
        rows = ceil_div(own.size // blocks, BANKS)
        if name in self.tiles:
            rows = max(rows, self.tiles[name].shape[0])
        shape = (rows, BANKS)
        tile = Tile(name, shape, own.dtype, "shared", row_padding=PADDING)
        self.tiles[name] = tile
        return name

    def place(self, slot: int, index: Index) -> tuple[Index, Index]:
        """Find where an element of a slot is in its tile."""
        inside = place_in_block(index, self.grid, self.kernel.slots[slot])
        if inside is None:
            internal(f"s{slot}[{index}] is not in the block", self.kernel)
        place, _ = inside
        return place // BANKS, place % BANKS

    def read(self, step: Any) -> Any:
        """Read tiles in place of what is shared."""

        def found(expr: Expr) -> Expr | None:
            if expr.op != "load" or expr.arg[0] not in self.shared:
                return None
            slot, index = expr.arg
            place = self.place(slot, index)
            return Expr("tile", (), (self.shared[slot], place), expr.dtype)

        return replace(step, expr=rewrite(step.expr, {}, found))


def threads_of(steps: Sequence[int]) -> int:
    """Choose the threads of a block: many, of which few are left over in any map."""
    taken = {}
    for threads in (512, 256, 128, 64, WARP):
        taken[threads] = sum(round_up(count, threads) for count in steps)
    least = min(taken.values())
    return next(threads for threads, each in taken.items() if each <= least * LEFT_OVER)


def points_of(part: Part) -> int:
    """Count the points of a map in a block."""
    return product(axis.size for axis in part.rows[2:])


def lanes_of(part: Part) -> int:
    """Choose how many neighbours a thread has: several, if all that it touches allows it."""
    last = part.rows[-1]
    if last.size % PADDING or len(part.rows) == 2:
        return 1
    is_regular = all(is_aligned(each, last, PADDING) for each in part_indices(part))
    return PADDING if is_regular else 1
